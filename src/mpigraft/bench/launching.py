"""Start the steps of a campaign: our native program, or one of a suite, with what it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.bench import measurement
from mpigraft.bench.measurement import LaunchOutcome
from mpigraft.bench.schedule.campaign import Campaign, Step
from mpigraft.bench.schedule.places import Start
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.registry import NATIVE, PROGRAM_SUITES
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Configuration, Finding, Layout
from mpigraft.core.process import clean
from mpigraft.evidence import OWN_SURROUNDINGS, Surroundings
from mpigraft.launch import LaunchResult
from mpigraft.native import Natives

Starter = Callable[[Configuration, Layout, tuple[str, ...], float, bool], LaunchResult]
Make = Callable[[Surroundings], AbstractContextManager[Starter]]
MOST_OUTPUT = 64 * 1024 * 1024  # bytes of a file that has a figure


@dataclass(frozen=True, slots=True)
class StepLauncher:
    """Starts steps; `starters` are by what ranks find where they start."""

    campaign: Campaign
    programs: Mapping[str, Natives]
    starters: Mapping[Surroundings, Starter]

    @property
    def start(self) -> Starter:
        """Starts ranks in an empty folder, as our own programs are."""
        return self.starters[OWN_SURROUNDINGS]

    def launch(self, step: Step) -> tuple[LaunchResult, LaunchOutcome]:
        """Start a step, wait, and judge what came of it."""
        spec = self.campaign.spec
        benchmarks = self.campaign.benchmarks_of(step)
        if all(benchmark.suite == NATIVE for benchmark in benchmarks):
            words = measurement.program(spec, benchmarks, self.programs[step.configuration.key])
            limit_s = spec.limit_of(step.program or NATIVE)
            ran = self.start(step.configuration, step.layout, words, limit_s, False)
            return ran, measurement.launch_outcome(step, benchmarks, ran)
        start = self.campaign.start_of(step)
        tool = start.tool
        path = tool.output_on(step.layout)
        before = _stamp(path)
        if tool.prepare:
            tool.prepare(step.layout)
        words = start.words(spec, step.layout)
        limit_s = spec.limit_of(step.program, tool.limit_s)
        starter = self.starters[_surroundings(start)]
        ran = starter(start.configuration, step.layout, words, limit_s, False)

        written: list[tuple[str, bytes]] = []

        def read(launched: LaunchResult) -> Parsed:
            if tool.whole and not launched.completed.ok:
                return Parsed(())
            data = _output(launched, path, before)
            written.extend([("figure", data)] if path else [])
            if tool.success and not _succeeded(tool.success, launched, data):
                source = step.configuration.id
                no = Finding.of("app-no-success", source=source, pattern=tool.success)
                return Parsed((), (no,))
            suite = PROGRAM_SUITES[start.benchmark.suite]
            return suite.read(start.benchmark, data, spec, step.configuration.id)

        # In a guest a program may have a plan of its own, and another path of libmpi.
        started = replace(step, configuration=start.configuration)
        outcome = measurement.launch_outcome(started, benchmarks, ran, read)
        return ran, replace(outcome, files=tuple(written))


@contextmanager
def make_launcher(
    campaign: Campaign, programs: Mapping[str, Natives], make: Make
) -> Iterator[StepLauncher]:
    """Make a launcher. `make` makes what starts ranks in some surroundings: in an empty folder, or
    in that in which an application has its input."""
    with ExitStack() as stack:
        every = {OWN_SURROUNDINGS, *map(_surroundings, campaign.starts)}
        starters = {one: stack.enter_context(make(one)) for one in every}
        yield StepLauncher(campaign, programs, starters)


def _succeeded(pattern: str, launched: LaunchResult, data: bytes) -> bool:
    """Return whether a launch printed what a run that is whole prints; or wrote it to its file."""
    texts = (data, launched.completed.stdout, launched.completed.stderr)
    return any(re.search(pattern, clean(text), re.MULTILINE) for text in texts)


def _surroundings(start: Start) -> Surroundings:
    return Surroundings(start.tool.folder, binds=start.binds)


def _stamp(path: Path | None) -> tuple[int, int, int] | None:
    """Return a stamp that changes when a file is written again; None where there is none."""
    if path is None:
        return None
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_mtime_ns, status.st_size, status.st_ino)


def _output(
    launched: LaunchResult, path: Path | None, before: tuple[int, int, int] | None
) -> bytes:
    """Read the output with the figure: standard output, or a file that this launch wrote. Raises
    UsageError for a file that is not there, or that another launch has left behind."""
    if path is None:
        return launched.completed.stdout
    now = _stamp(path)
    if now is None or now == before:
        problem = "it was not written" if now else "it is not there"
        raise UsageError.of("app-output", path=path, problem=problem)
    with path.open("rb") as file:
        data = file.read(MOST_OUTPUT + 1)
    if len(data) > MOST_OUTPUT:
        raise UsageError.of("app-output", path=path, problem="it is larger than 64 MiB")
    return data
