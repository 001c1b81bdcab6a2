"""The test class. ReFrame gives the nodes, mpigraft starts the ranks on them.

ReFrame's own launcher is not used: `mpigraft bench` starts each MPI with the launcher that fits it,
and proves which transport carried the bytes. Scales and tags are those of the EESSI test suite.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mpigraft.core.errors import MissingError
from mpigraft.reframe.results import (
    CI_TAG,
    SCALES,
    layout_of,
    performance_variables,
    read_document,
    read_error,
    slower_curves,
)

try:
    import reframe as rfm
    import reframe.utility.sanity as sn
    from reframe.core.backends import getlauncher
    from reframe.core.builtins import parameter, run_after, run_before, sanity_function, variable
except ImportError as error:
    raise MissingError.of("reframe-missing", error=error) from error

STORE, DOCUMENT = "results", "compare.json"
STARTUP = {"init_time", "launch_time", "memory"}


class MpigraftCheck(rfm.RunOnlyRegressionTest):
    """Derive a test from it and decorate that with `@reframe.simple_test`."""

    scale = parameter(SCALES)
    mpi = variable(list, value=[])  # words of `bench --mpi`; empty: all
    transport = variable(list, value=[])
    benchmark = variable(list, value=["latency", "allreduce"])
    baseline = variable(str, value="")
    rounds = variable(int, value=10)
    bench_options = variable(list, value=[])  # further words of `mpigraft bench`
    ci_scales = variable(list, value=["1_node", "2_nodes"])  # tagged CI
    fail_on_slower = variable(bool, value=False)
    mpigraft = variable(str, value="mpigraft")

    valid_systems = ["*"]  # noqa: RUF012  ReFrame makes variables of them
    valid_prog_environs = ["*"]  # noqa: RUF012
    time_limit = "30m"

    @run_after("init")
    def tag_scale(self) -> None:
        self.tags |= {self.scale}
        if self.scale in self.ci_scales:
            self.tags |= {CI_TAG}

    @run_after("setup")
    def fit_scale(self) -> None:
        """Take as many ranks as the scale has cores; skip what the nodes do not have."""
        processor = self.current_partition.processor
        cores = processor.num_cores or processor.num_cpus
        self.skip_if(not cores, "no num_cpus of the partition's processor in ReFrame's settings")
        nodes, ranks = layout_of(self.scale, cores)
        social = set(self.benchmark) - STARTUP
        self.skip_if(ranks < 1, f"a node has {cores} cores, too few for {self.scale}")
        self.skip_if(
            nodes * ranks < 2 and bool(social), f"{self.scale} has one rank, and nobody to send to"
        )
        self.num_tasks, self.num_tasks_per_node = nodes * ranks, ranks
        self.executable = self.mpigraft
        self.executable_opts = [
            "--store", STORE, "bench", "--name", self.scale, "--layout", f"{nodes}x{ranks}",
            "--rounds", str(self.rounds), *self._repeated("--mpi", self.mpi),
            *self._repeated("--transport", self.transport),
            *self._repeated("--benchmark", self.benchmark),
            *(["--baseline", self.baseline] if self.baseline else []), *self.bench_options,
        ]  # fmt: skip
        self.postrun_cmds = [  # the job's exit code is that of the campaign
            "campaign=$?",
            f"{self.mpigraft} --store {STORE} compare --json > {DOCUMENT}",
            "exit $campaign",
        ]

    @run_before("run")
    def start_no_ranks(self) -> None:
        """mpigraft is started once, on the first node."""
        self.job.launcher = getlauncher("local")()

    @sanity_function
    def campaign_is_whole(self) -> Any:
        """Return the campaign ended, has values, and nothing is slower if that was asked."""
        if self.job.exitcode != 0:
            reason = read_error(Path(self.stagedir) / self.job.stderr)
            return sn.assert_true(
                False, f"mpigraft ended with exit code {self.job.exitcode}: {reason}"
            )
        document = self._document()
        measured = document["comparisons"] or document.get("baseline_only")
        slower = slower_curves(document) if self.fail_on_slower else []
        text = "slower than the baseline: " + ", ".join(slower)
        return sn.all([
            sn.assert_true(measured, "the campaign has no values"),
            sn.assert_false(slower, text),
        ])  # fmt: skip

    @run_before("performance")
    def take_figures(self) -> None:
        """Medians at the smallest and largest size, ratios and verdicts of all curves."""
        for name, (value, unit) in performance_variables(self._document()).items():
            figure = sn.make_performance_function(sn.defer(value), unit)
            self.perf_variables[name] = figure

    def _document(self) -> dict[str, Any]:
        return read_document(Path(self.stagedir) / DOCUMENT)

    @staticmethod
    def _repeated(flag: str, words: list[str]) -> list[str]:
        return [part for word in words for part in (flag, word)]
