"""Which program of a suite is started under which configuration.

For each benchmark with a program of its own and each configuration the first program that would
load this configuration's libmpi is chosen, by the checks that `run` makes of a user's program:
before anything is launched it is known which library each rank loads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpigraft.bench.schedule.app_environment import AppEnvironments, search_path
from mpigraft.bench.schedule.places import Place, Start, places
from mpigraft.bench.suites.registry import PROGRAM_SUITES
from mpigraft.core.errors import CheckFailed, MissingError, MpigraftError, UsageError
from mpigraft.core.model import Benchmark, Configuration, EnvRow, Layout, Machine
from mpigraft.request import CampaignSpec
from mpigraft.selection import select_mpis

NOT_HERE = "benchmark-program-missing"


@dataclass(frozen=True, slots=True)
class Starts:
    """All that can be started, and why the rest cannot."""

    possible: tuple[Start, ...]
    refused: tuple[tuple[str, str], ...]  # (configuration and benchmark, why)

    def of(self, configuration: Configuration) -> tuple[Start, ...]:
        return tuple(s for s in self.possible if s.configuration.key == configuration.key)

    def most_able(self, configurations: Sequence[Configuration]) -> tuple[Configuration, ...]:
        """Return those under which most programs fit: a curve without a baseline is compared with
        nothing."""
        most = max(len(self.of(c)) for c in configurations)
        return tuple(c for c in configurations if len(self.of(c)) == most)

    def reasons(self, configurations: Sequence[str]) -> str:
        """Return why programs do not fit these configurations (ids), each reason once."""
        heads = tuple(f"{identity} " for identity in configurations)
        own = [why for name, why in self.refused if name.startswith(heads)]
        return "; ".join(dict.fromkeys(own))


def plan_starts(
    spec: CampaignSpec,
    benchmarks: Sequence[Benchmark],
    configurations: Sequence[Configuration],
    machine: Machine,
) -> Starts:
    """Choose a program for each benchmark that has one of its own under each configuration.
    Raises CheckFailed for a benchmark that fits none of them, MissingError for one that is not
    here."""
    possible: list[Start] = []
    refused: list[tuple[str, str]] = []
    used = dict.fromkeys(b.suite for b in benchmarks if b.suite in PROGRAM_SUITES)
    folders = [one for name in used for one in PROGRAM_SUITES[name].folders(spec, machine)]
    planner = _Planner(spec, machine, places(spec, machine, folders), AppEnvironments())
    for benchmark in benchmarks:
        if benchmark.suite not in PROGRAM_SUITES:
            continue
        noes: dict[str, CheckFailed] = {}
        for configuration in configurations:
            try:
                possible.append(planner.start(benchmark, configuration))
            except CheckFailed as no:
                noes[configuration.id] = no
        if len(noes) == len(configurations):
            raise _fits_nothing(benchmark, tuple(noes.values()))
        refused += [(f"{name} {benchmark.key}", _reason(no)) for name, no in noes.items()]
    return Starts(tuple(possible), tuple(refused))


def _fits_nothing(benchmark: Benchmark, noes: Sequence[CheckFailed]) -> MpigraftError:
    """Return the error for a benchmark that no configuration can run, or that is not here at
    all."""
    if all(no.code == NOT_HERE for no in noes):
        return MissingError.of("benchmark-program-missing", problem=noes[0].message)
    shown = "; ".join(dict.fromkeys(map(_reason, noes)))
    return CheckFailed.of("benchmark-fits-no-mpi", key=benchmark.key, reasons=shown)


def _reason(no: CheckFailed) -> str:
    return f"{no.message}: {no.why}" if no.why else no.message


@dataclass(frozen=True, slots=True)
class _Planner:
    spec: CampaignSpec
    machine: Machine
    place_of: Callable[[Configuration], Place]
    environments: AppEnvironments

    def start(self, benchmark: Benchmark, configuration: Configuration) -> Start:
        """Return the first program that fits. Raises CheckFailed with the last one's reason."""
        suite, mpi = PROGRAM_SUITES[benchmark.suite], configuration.mpi
        assert mpi is not None
        place, given = self.place_of(configuration), self._rows(benchmark, configuration)
        files = place.files(mpi).with_path(search_path(given))
        no = CheckFailed.of(
            "benchmark-program-missing", problem=suite.missing(benchmark, self.spec)
        )
        for tool in suite.tools(benchmark, self.spec, self.machine, files, mpi):
            try:
                return place.start(benchmark, tool, configuration, (*given, *tool.rows))
            except CheckFailed as error:
                no = error.amended(why=f"{error.why}; {tool.advice}") if tool.advice else error
        raise no

    def _rows(self, benchmark: Benchmark, configuration: Configuration) -> tuple[EnvRow, ...]:
        """Return the further variables of an application's ranks."""
        own = (app for app in self.spec.app if benchmark.key == f"app:{app.name}")
        return tuple(row for app in own for row in self.environments.rows(app, configuration))


def suitable_layouts(
    spec: CampaignSpec, benchmark: Benchmark, layouts: Sequence[Layout]
) -> tuple[Layout, ...]:
    """Layouts on which a benchmark can run. Raises UsageError where there is none."""
    ranks = PROGRAM_SUITES[benchmark.suite].ranks(benchmark, spec)
    suitable = tuple(layout for layout in layouts if ranks.fit(layout))
    if not suitable:
        keys = ", ".join(layout.key for layout in layouts)
        raise UsageError.of("benchmark-no-layout", key=benchmark.key, ranks=ranks, layouts=keys)
    return suitable


def startable(
    spec: CampaignSpec, configurations: Sequence[Configuration], starts: Starts
) -> tuple[Configuration, ...]:
    """Return the configurations under which any program fits. Raises CheckFailed for one that was
    named, and for an MPI that was, where none does."""
    startable = tuple(c for c in configurations if starts.of(c))
    for text in spec.mpi:
        named = select_mpis((text,), [c.mpi for c in configurations if c.mpi])
        if not any(c.mpi in named for c in startable):
            own = [c.id for c in configurations if c.mpi in named]
            raise CheckFailed.of("configuration-fits-nothing", id=text, reasons=starts.reasons(own))
    for configuration in configurations:
        by_default = (
            bool(spec.image or spec.stack) and not spec.guest
        )  # here, in the guest, and on its own MPI
        if configuration.named and configuration not in startable and not by_default:
            identity = configuration.id
            raise CheckFailed.of(
                "configuration-fits-nothing", id=identity, reasons=starts.reasons([identity])
            )
    return startable


def left_out(
    spec: CampaignSpec, benchmarks: Sequence[Benchmark], layouts: Sequence[Layout]
) -> tuple[tuple[str, str], ...]:
    """Layouts on which a benchmark cannot run. Raises UsageError where there is no other."""
    rows = []
    for benchmark in benchmarks:
        if benchmark.suite not in PROGRAM_SUITES:
            continue
        suitable = suitable_layouts(spec, benchmark, layouts)
        need = PROGRAM_SUITES[benchmark.suite].ranks(benchmark, spec)
        rows += [
            (f"{benchmark.key} on {layout.key}", f"it needs {need}")
            for layout in layouts
            if layout not in suitable
        ]
    return tuple(rows)
