"""Requests to end, and other signals, to jobs on two nodes: what is left of them, and told."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.cluster import Cluster, until
from testbed.slurm import Slurm
from tests.mpi.test_signals import MPIS, WAIT_S
from tests.native.native_world import compile_c
from tests.readable import readable

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

RUN = (sys.executable, "-m", "mpigraft.cli.entry", "run")
MARK = "MPIGRAFT_TEST_MARK"  # in the environment of everything that a job starts
SOURCE = Path(__file__).parents[1] / "mpi/signals.c"
APART_S = {"quick": 0.1, "slow": 0.8}  # between two signals; within 0.5 s they may be one
# Job of the batch system: MPI, launcher, whether its ranks end at SIGTERM.
LIMITED = {
    "srun-stubborn": (Family.OPENMPI, "srun", "stubborn"),
    "srun-mild": (Family.OPENMPI, "srun", ""),
    "prrte-stubborn": (Family.OPENMPI, "own", "stubborn"),
    "hydra-stubborn": (Family.MPICH, "own", "stubborn"),
}  # fmt: skip


class Site:
    """Two nodes under Slurm, an allocation of both that goes on whatever its jobs do, and the
    program that prints its signals, for each MPI."""

    def __init__(self, slurm: Slurm, mpis: Mapping[Family, Path]) -> None:
        self.slurm, self.cluster = slurm, slurm.cluster
        self.folder = self.cluster.shared
        home = self.folder / "home"
        home.mkdir()
        (home / "mpi").symlink_to(next(iter(mpis.values())).parent)
        self.environ = {**os.environ, **slurm.environ, "MPIGRAFT_HOME": str(home)}
        self.programs = {family: self._compiled(family, mpis[family]) for family in MPIS}

    def _compiled(self, family: Family, prefix: Path) -> Path:
        library = next(
            p for p in sorted((prefix / "lib").glob("libmpi.so.*")) if p.name.count(".") == 2
        )
        output = self.folder / f"signals-{family}"
        return compile_c(SOURCE, output, "-isystem", prefix / "include", library)

    def words(self, family: Family, launcher: str, *arguments: str) -> list[str]:
        """mpigraft with a rank on each node of an allocation."""
        words = ("--mpi", MPIS[family], "--launcher", launcher, "--ranks-per-node", "1")
        return [*RUN, *words, "--", str(self.programs[family]), *arguments]

    def submit(self, name: str) -> str:
        """A job that Slurm ends after a minute, and whose shell lives on to tell of it."""
        family, launcher, argument = LIMITED[name]
        line = shlex.join(self.words(family, launcher, *filter(None, [argument])))
        script = f"#!/bin/sh\nexport {MARK}={name}\ntrap : TERM\n{line}\necho code $?\n"
        done = subprocess.run(
            ["sbatch", "--parsable", "--nodes=2", "--ntasks-per-node=1", "--time=1",
             f"--output={self.output(name)}"],
            input=script, env=self.environ, cwd=self.folder, text=True, capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def output(self, name: str) -> Path:
        return self.folder / f"{name}.out"

    def marked(self, mark: str) -> dict[str, list[str]]:
        """The command lines of a job's processes, by node; nodes without any are not there."""
        script = (
            "for place in /proc/[0-9]*; do "
            f"if grep -qsz '^{MARK}={mark}$' $place/environ; then "
            "tr '\\0' ' ' <$place/cmdline; echo; fi; done"
        )
        rows = {node: self.cluster.run(node, ["sh", "-c", script]) for node in self.cluster.nodes}
        return {
            node: lines
            for node, done in rows.items()
            if (lines := [line for line in done.stdout.splitlines() if line and MARK not in line])
        }

    def halted(self, family: Family) -> list[bool]:
        """Of each rank, whether it is stopped."""
        program = str(self.programs[family])
        rows = [
            line.split()
            for node in self.cluster.nodes
            for line in self.cluster.said(node, "ps", "-ww", "-eo", "stat=,args=").splitlines()
        ]
        return [row[0].startswith("T") for row in rows if row[1:] == [program]]

    def empty(self, mark: str, what: str = "") -> None:
        """Nothing of a job is left on any node; Slurm needs a moment to end its steps."""
        try:
            until(lambda: not self.marked(mark), "the end of all", patience_s=15)
        except TimeoutError:
            pytest.fail(f"orphans: {self.marked(mark)}\n{what}")


class Job:
    """`mpigraft` on the first node, in the foreground of a terminal."""

    def __init__(
        self, site: Site, words: Sequence[str], mark: str, environ: Mapping[str, str], nodes: int
    ) -> None:
        self.site, self.mark, self.text = site, mark, b""
        self.pid = site.folder / f"{mark}.pid"
        self.terminal, end = os.openpty()
        start = ("setsid", "--ctty", "--wait", "sh", "-c", f'echo $$ >{self.pid}; exec "$@"', "sh")
        pipe = subprocess.PIPE
        self.process = site.cluster.popen(
            "n1", [*start, *words], env={**environ, MARK: mark}, cwd=site.folder, stdin=end,
            stdout=pipe, stderr=subprocess.STDOUT,
        )  # fmt: skip
        os.close(end)
        self.until(lambda: self.text.count(b"ready") == 2, "two ranks")
        assert len(site.marked(mark)) == nodes

    def until(self, true: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        out = self.process.stdout
        assert out
        while not true():
            assert time.monotonic() < deadline, f"never came: {what}: {self.text!r}"
            if readable(out, wait_s=0.2):
                read = os.read(out.fileno(), 10000)
                assert read, self.text
                self.text += read

    def until_got(self, number: signal.Signals, times: int) -> None:
        self.until(lambda: self.got(number) == [times] * 2, f"{number.name} in each rank")

    def got(self, number: int) -> list[int]:
        """How often each rank got it."""
        return [self.text.count(b"rank %d got %d\n" % (rank, number)) for rank in range(2)]

    def send(self, number: signal.Signals) -> None:
        """To mpigraft alone."""
        pid = self.pid.read_text().strip()
        self.site.cluster.run("n1", ["kill", f"-{number.name[3:]}", pid])

    def press(self) -> None:
        """Ctrl-C."""
        os.write(self.terminal, b"\x03")

    def end(self) -> int:
        rest, _ = self.process.communicate(timeout=WAIT_S / 3)  # the guard's grace is 30 s
        self.text += rest
        return int(self.process.returncode)

    def close(self) -> None:
        self.process.kill()
        with contextlib.suppress(ValueError):
            self.process.communicate()
        os.close(self.terminal)


@pytest.fixture(scope="module")
def site(
    slurms_here: None, clusters: Callable[..., Cluster], mpis: Mapping[Family, Path]
) -> Iterator[Site]:
    with Slurm(clusters(2), cpus=8) as slurm:  # room for all jobs at once
        yield Site(slurm, mpis)


@pytest.fixture(scope="module", autouse=True)
def limited(site: Site) -> Mapping[str, str]:
    """Jobs whose minute runs while other tests do."""
    return {name: site.submit(name) for name in LIMITED}


@pytest.fixture(scope="module")
def allocation(site: Site) -> Iterator[Mapping[str, str]]:
    """The environment of an allocation of both nodes, as a user's shell in it has it."""
    kept, over = site.folder / "allocation", site.folder / "over"
    script = f"env -0 >{kept}.new; mv {kept}.new {kept}; until [ -e {over} ]; do sleep 0.1; done"
    argv = ["salloc", "-Q", "-N2", "-n2", "sh", "-c", script]
    with site.cluster.popen("n1", argv, env=site.environ) as process:
        try:
            until(kept.exists, "the allocation")
            rows = kept.read_bytes().split(b"\0")
            yield dict(os.fsdecode(row).split("=", 1) for row in rows if row)
        finally:
            over.touch()
            process.wait(WAIT_S)


@pytest.fixture
def start(site: Site, request: pytest.FixtureRequest) -> Iterator[Callable[..., Job]]:
    jobs: list[Job] = []

    def make(words: Sequence[str], environ: Mapping[str, str], nodes: int = 2) -> Job:
        mark = "".join(c if c.isalnum() else "-" for c in request.node.name)
        jobs.append(Job(site, words, mark, environ, nodes))
        return jobs[-1]

    yield make
    for job in jobs:
        job.close()


def interrupt_twice(job: Job, pace: str) -> None:
    """Two key presses in quick succession, or two signals of a process apart from each other:
    ranks that heed neither are gone, and the code says that it was no success."""
    send = job.press if pace == "quick" else lambda: job.send(signal.SIGINT)
    send()
    time.sleep(APART_S[pace])
    send()
    code = job.end()
    job.site.empty(job.mark, job.text.decode())
    assert code != 0, job.text
    assert b"what was measured" not in job.text  # a word about campaigns


@pytest.mark.parametrize("pace", APART_S)
@pytest.mark.parametrize("family", MPIS, ids=str)
def test_two_interrupts_end_ranks_that_heed_none(
    site: Site, start: Callable[..., Job], family: Family, pace: str
) -> None:
    words = ("--mpi", MPIS[family], "-n", "2", "--", str(site.programs[family]), "stubborn")
    interrupt_twice(start([*RUN, *words], site.environ, 1), pace)


@pytest.mark.parametrize("pace", APART_S)
@pytest.mark.parametrize(("family", "launcher"), [
    (Family.OPENMPI, "srun"), (Family.OPENMPI, "own"), (Family.MPICH, "srun"),
    (Family.MPICH, "own"),
])  # fmt: skip
def test_two_interrupts_leave_no_rank_in_an_allocation_that_goes_on(
    site: Site, start: Callable[..., Job], allocation: Mapping[str, str], family: Family,
    launcher: str, pace: str,
) -> None:  # fmt: skip
    """srun has Slurm end its step by a helper of its own, which must outlive it."""
    interrupt_twice(start(site.words(family, launcher, "stubborn"), allocation), pace)


@pytest.mark.covering
@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH], ids=str)
def test_signals_reach_the_ranks_of_a_step_once(
    start: Callable[..., Job], site: Site, allocation: Mapping[str, str], family: Family
) -> None:
    """Those that mpigraft gets, as `scancel --batch` sends them, and those that Slurm sends to the
    step itself: so a job is suspended and continued."""
    job = start(site.words(family, "srun"), allocation)
    for times in (1, 2):
        job.send(signal.SIGUSR1)
        job.until_got(signal.SIGUSR1, times)
    for number in (signal.SIGTSTP, signal.SIGCONT, signal.SIGUSR2):
        done = site.slurm.ask("scancel", f"--signal={number.name[3:]}", allocation["SLURM_JOB_ID"])
        assert done.ok, done.stderr
        job.until_got(number, 1)
    job.send(signal.SIGTSTP)  # to which srun has no word for its step: it stops, the ranks go on
    job.send(signal.SIGCONT)
    job.send(signal.SIGUSR1)
    job.until_got(signal.SIGUSR1, 3)
    job.send(signal.SIGTERM)
    assert job.end() != 0
    site.empty(job.mark, job.text.decode())


def test_scancel_signals_a_batch_jobs_ranks(site: Site) -> None:
    """To a script whose own process mpigraft has become; before and after a suspension."""
    name, family = "batch", Family.MPICH  # no other job has these ranks
    line = shlex.join(site.words(family, "srun"))
    script = f"#!/bin/sh\nexport {MARK}={name}\nexec {line}\n"
    out = site.output(name)
    done = subprocess.run(
        ["sbatch", "--parsable", "-N2", "--ntasks-per-node=1", f"--output={out}"],
        input=script, env=site.environ, cwd=site.folder, text=True, capture_output=True,
    )  # fmt: skip
    job = done.stdout.strip()
    until(lambda: out.exists() and out.read_text().count("ready") == 2, "two ranks")
    site.slurm.ask("scancel", "--batch", "--signal=USR1", job)
    due = [f"rank {rank} got {signal.SIGUSR1:d}" for rank in range(2)]
    until(lambda: all(word in out.read_text() for word in due), "SIGUSR1")
    assert [out.read_text().count(word) for word in due] == [1, 1]
    assert site.slurm.ask("scontrol", "suspend", job).ok
    until(lambda: site.halted(family) == [True] * 2, "the halt of both ranks")
    assert site.slurm.ask("scontrol", "resume", job).ok
    until(lambda: site.halted(family) == [False] * 2, "both ranks' going on")
    site.slurm.ask("scancel", "--batch", "--signal=USR1", job)
    until(lambda: [out.read_text().count(word) for word in due] == [2, 2], "SIGUSR1 again")
    site.slurm.ask("scancel", job)
    until(lambda: f"JobId={job} " in site.slurm.jobs_ended(), "the end of the job")
    site.empty(name, out.read_text())


@pytest.mark.parametrize("name", LIMITED)
def test_a_time_limit_leaves_no_process_on_any_node(
    site: Site, limited: Mapping[str, str], name: str
) -> None:
    ends = f"JobId={limited[name]} "
    until(lambda: ends in site.slurm.jobs_ended(), "the limit", patience_s=150)
    site.empty(name, site.output(name).read_text())
    (end,) = (line for line in site.slurm.jobs_ended().splitlines() if ends in line)
    text = site.output(name).read_text()
    assert text.count("ready") == 2
    assert "DUE TO TIME LIMIT" in text
    assert "JobState=TIMEOUT" in end
    assert "code 0" not in text
    if name == "srun-mild":  # of the others Slurm may have killed the shell before it could tell
        assert "code 143" in text
