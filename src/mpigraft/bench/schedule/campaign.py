"""The schedule: configurations x layouts x rounds, decided before the first launch.

Everything here only computes: a spec in, a `Campaign` out, and `schedule_launches` gives the same
order on every machine for the same seed. The number of rounds, and after which of them the campaign
may end, is fixed before the start; nothing here looks at a result."""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mpigraft import __version__
from mpigraft.analysis import settle_looks
from mpigraft.bench.schedule.benchmarks import requested_benchmarks
from mpigraft.bench.schedule.places import Start
from mpigraft.bench.schedule.starts import left_out, plan_starts, startable, suitable_layouts
from mpigraft.bench.schedule.times import (
    completed_limits,
    default_limit_s,
    estimate_launch_s,
    refuse_idle_limits,
    usual_max_size,
)
from mpigraft.bench.suites.registry import NATIVE
from mpigraft.core.clock import utc_now
from mpigraft.core.env import refuse_secrets
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    LAYOUT_PATTERN,
    Allocation,
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    Configuration,
    Layout,
    Machine,
    MpiInstall,
    Origin,
    SettingEffect,
)
from mpigraft.core.serialize import canonical
from mpigraft.discovery import module_mpis, with_places
from mpigraft.launch import THIS_HOST
from mpigraft.native import ALONE, STARTUP
from mpigraft.request import CampaignSpec, stored_spec
from mpigraft.selection import (
    choose_baseline,
    library_digests,
    make_configurations,
    reached_nodes,
    requested_layouts,
)

QUICK_ROUNDS, DEFAULT_ROUNDS = 6, 10
QUICK_SPARE_ROUNDS = 3
QUICK_BUDGET_MS, DEFAULT_BUDGET_MS = 8.0, 20.0  # per benchmark and size

Contents = Callable[[MpiInstall], tuple[tuple[str, str], ...]]  # of an MPI: (name, SHA-256)


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything that a campaign will do."""

    spec: CampaignSpec  # complete: rounds, seed, budget and limit are set
    configurations: tuple[Configuration, ...]
    baseline: Configuration
    layouts: tuple[Layout, ...]
    benchmarks: tuple[Benchmark, ...]
    cpu: str  # model and cores of the machine that it was planned for
    skipped: tuple[tuple[str, str], ...] = ()  # (configuration id, why it is not here)
    repeats: str = ""  # id of the campaign that it repeats
    starts: tuple[Start, ...] = ()  # of benchmarks with programs of their own
    # What the MPIs say of the variables of settings, by the configuration's key; empty: not asked.
    effects: Mapping[str, tuple[SettingEffect, ...]] = field(default_factory=dict)

    @property
    def native(self) -> tuple[Benchmark, ...]:
        """Benchmarks of our native program that it measures together, in one launch."""
        return tuple(b for b in self.benchmarks if b.suite == NATIVE and b.name not in ALONE)

    def programs(self, configuration: Configuration, layout: Layout) -> tuple[str, ...]:
        """List the programs that a round starts of a configuration on a layout (Step.program)."""
        own = [b for b in self.benchmarks if b.suite == NATIVE and b.name in ALONE]
        own += [
            start.benchmark
            for start in self.starts
            if start.configuration.key == configuration.key and layout in self.suitable(start)
        ]
        return (*([""] if self.native else []), *(b.key for b in own))

    def suitable(self, start: Start) -> tuple[Layout, ...]:
        """Layouts on which a program is started."""
        return suitable_layouts(self.spec, start.benchmark, self.layouts)

    def start_of(self, step: Step) -> Start:
        """Return the program of a step that starts one of a suite."""
        return {s.key: s for s in self.starts}[step.configuration.key, step.program]

    def files(self, configuration: Configuration) -> tuple[Path, ...]:
        """Return the files of suites' programs under a configuration."""
        own = (s for s in self.starts if s.configuration.key == configuration.key)
        return tuple(dict.fromkeys(path for start in own for path in start.files))

    def commands(self, configuration: Configuration) -> dict[str, tuple[str, ...]]:
        """Return where each program of a suite was found, and its command, by benchmark."""
        own = (s for s in self.starts if s.configuration.key == configuration.key)
        return {s.benchmark.key: (s.tool.source, *s.tool.words) for s in own}

    def benchmarks_of(self, step: Step) -> tuple[Benchmark, ...]:
        """Return the benchmarks of a launch."""
        return (Benchmark.parse(step.program),) if step.program else self.native

    def command_lines(self, configuration: Configuration) -> list[dict[str, object]]:
        """Return how to start each program of a suite without mpigraft: its words by layout, its
        folder, the file that has the figure, and its own environment."""
        return [
            {
                "benchmark": start.benchmark.key,
                "words": {y.key: start.words(self.spec, y) for y in self.suitable(start)},
                "program": len(start.tool.words),
                "folder": start.tool.folder,
                "output": start.tool.output,
                "environment": [
                    {"name": row.name, "value": row.value or "", "scope": row.scope}
                    for row in start.configuration.environment
                    if row not in configuration.environment
                ],
            }
            for start in self.starts
            if start.configuration.key == configuration.key
        ]

    @property
    def plan(self) -> str:
        """Canonical JSON that --resume reads again with `resume_campaign`."""
        repeats = {"repeats": self.repeats} if self.repeats else {}
        return canonical(
            {
                **repeats,
                "wish": self.spec,
                "configurations": [{"key": c.key, "id": c.id} for c in self.configurations],
                "baseline": self.baseline.key,
                "layouts": [layout.key for layout in self.layouts],
                "benchmarks": [b.key for b in self.benchmarks],
                "cpu": self.cpu,
                "skipped": self.skipped,
            }
        )

    @property
    def launch_s(self) -> float:
        """About how long one launch takes, in seconds."""
        return estimate_launch_s(self.spec, self.native, _most_nodes(self.layouts))

    @property
    def proofs_s(self) -> float:
        """About how long it takes to prove each configuration on each layout, in seconds."""
        return self.launch_s * len(self.configurations) * len(self.layouts)


@dataclass(frozen=True, slots=True)
class Step:
    """One launch of the schedule. `replica` 1 is the baseline's second launch in a round."""

    round: int
    slot: int
    configuration: Configuration
    layout: Layout
    replica: int = 0
    program: str = ""  # key of the one benchmark that it measures; empty: the native ones together

    @property
    def place(self) -> tuple[int, str, str, int, str]:
        """What names this launch in the store: round, configuration, layout, replica, program."""
        return (
            self.round, self.configuration.key, self.layout.key, self.replica, self.program,
        )  # fmt: skip


def schedule_launches(campaign: Campaign) -> tuple[Step, ...]:
    """List every launch in order: in each round every configuration once and the baseline twice, in
    an order that depends on the seed alone. Layouts go one after the other, in another order in
    each round: they may be compared with each other too."""
    rng = random.Random(campaign.spec.seed)  # noqa: S311  an order, not a secret
    steps: list[Step] = []
    for number in range(campaign.spec.rounds):
        layouts = list(campaign.layouts)
        rng.shuffle(layouts)
        for layout in layouts:
            pairs = [(c, 0) for c in campaign.configurations] + [(campaign.baseline, 1)]
            arms = [
                (configuration, replica, program)
                for configuration, replica in pairs
                if reached_nodes(configuration, layout)
                for program in campaign.programs(configuration, layout)
            ]
            rng.shuffle(arms)
            steps += [
                Step(number, slot, configuration, layout, replica, program)
                for slot, (configuration, replica, program) in enumerate(arms)
            ]
    return tuple(steps)


def plan_campaign(
    spec: CampaignSpec,
    machine: Machine,
    contents: Contents = library_digests,
    nodes: Allocation = THIS_HOST,
    repeats: str = "",
) -> Campaign:
    """Turn a spec into a campaign for this machine and `nodes` like it.

    `contents` gives (soname, digest) of an MPI's libmpi and closure, for the keys. `repeats` is the
    id of the campaign that this one repeats. Raises
    UsageError for a spec that cannot be read, MissingError for one that cannot be met here.
    """
    refuse_secrets(*_texts(spec))
    machine = module_mpis(with_places(machine, spec.mpi), spec.modules)
    layouts = requested_layouts(spec, machine, nodes)
    benchmarks = requested_benchmarks(spec)
    _refuse_lonely(benchmarks, layouts)
    configurations, skipped = make_configurations(spec, machine, layouts, contents)
    if not configurations:
        reasons = "; ".join(f"{name}: {why}" for name, why in skipped) or "no MPI was found"
        raise MissingError.of("no-configuration", reasons=reasons)
    starts = plan_starts(spec, benchmarks, configurations, machine)
    skipped = (*skipped, *starts.refused, *left_out(spec, benchmarks, layouts))
    if all(b.suite != NATIVE for b in benchmarks):
        configurations = startable(spec, configurations, starts)
    able = configurations if spec.baseline else starts.most_able(configurations)
    base = choose_baseline(able, spec.baseline)
    if spec.baseline:  # it was named, so it has to run
        named = replace(base, named=True)
        configurations = tuple(named if c is base else c for c in configurations)
        base = named
    return Campaign(
        spec=_complete(spec, benchmarks, _most_nodes(layouts)),
        configurations=configurations,
        baseline=base,
        layouts=layouts,
        benchmarks=benchmarks,
        cpu=f"{machine.cpu.model}, {machine.cpu.architecture}, {machine.cpu.cores} cores",
        skipped=skipped,
        repeats=repeats,
        starts=starts.possible,
    )


def _texts(spec: CampaignSpec) -> Iterator[str]:
    """Yield what a person typed and the store keeps."""
    yield from (spec.name, *spec.env)
    for one in spec.setting:
        yield from (*one.env, *one.files, *one.launcher)
    for app in spec.app:
        yield from (*app.command, *app.env, app.figure, app.json, app.output, app.success)


def _refuse_lonely(benchmarks: tuple[Benchmark, ...], layouts: tuple[Layout, ...]) -> None:
    """One rank has nobody to send to; only starting up can be measured of it."""
    social = [b.key for b in benchmarks if b.suite == NATIVE and b.name not in STARTUP]
    for layout in layouts:
        if layout.ranks < 2 and social:
            raise UsageError.of(
                "layout-one-rank",
                key=layout.key,
                benchmark=social[0],
                alternatives=",".join(STARTUP),
            )


def completed_spec(spec: CampaignSpec, nodes: int = 2) -> CampaignSpec:
    """Settle all of a spec that does not depend on the machine, so that each of several jobs
    of so many `nodes` plans the same. Raises UsageError for what cannot be started anywhere."""
    refuse_secrets(*_texts(spec))
    counts = [
        int(match["nodes"]) for text in spec.layout if (match := LAYOUT_PATTERN.fullmatch(text))
    ]
    return _complete(spec, requested_benchmarks(spec), max((*counts, *spec.nodes), default=nodes))


def _most_nodes(layouts: Iterable[Layout]) -> int:
    return max(layout.nodes for layout in layouts)


def _complete(spec: CampaignSpec, benchmarks: Sequence[Benchmark], nodes: int) -> CampaignSpec:
    """Settle every default that a later look must find again: sizes, rounds, seed, times."""
    spec = replace(spec, max_size=spec.max_size or usual_max_size(spec))
    spec.refuse_empty_range()
    refuse_idle_limits(spec, benchmarks)
    rounds, looks = settle_looks(spec.rounds, spec.looks)
    if looks and spec.spare_rounds:
        raise UsageError.of("spare-rounds-looks")
    spare = spec.spare_rounds or (0 if rounds or not spec.quick else QUICK_SPARE_ROUNDS)
    budget = spec.budget_ms or (QUICK_BUDGET_MS if spec.quick else DEFAULT_BUDGET_MS)
    return replace(
        spec,
        name=spec.name or ("quick" if spec.quick else "bench"),
        rounds=rounds or (QUICK_ROUNDS if spec.quick else DEFAULT_ROUNDS),
        spare_rounds=spare,
        looks=looks,
        seed=spec.seed or random.SystemRandom().randrange(1, 2**32),
        budget_ms=budget,
        limits=completed_limits(spec, benchmarks, nodes, budget),
        limit_s=spec.limit_s or default_limit_s(spec, benchmarks, nodes, budget),
    )


def resume_campaign(
    text: str,
    machine: Machine,
    contents: Contents = library_digests,
    nodes: Allocation = THIS_HOST,
) -> Campaign:
    """Make the campaign of a stored plan again, with this machine's MPIs.

    Raises UsageError when the libraries are no longer those of the plan.
    """
    stored = json.loads(text)
    spec = stored_spec(stored["wish"], "stored plan")
    campaign = plan_campaign(
        replace(spec, looks=()), machine, contents, nodes
    )  # settled when it began
    campaign = replace(campaign, spec=replace(campaign.spec, looks=spec.looks))
    here = {c.key: c for c in campaign.configurations}
    missing = [c["id"] for c in stored["configurations"] if c["key"] not in here]
    now_here = json.loads(campaign.plan)
    missing += [
        what for what in ("layouts", "benchmarks", "cpu") if stored.get(what) != now_here[what]
    ]
    if missing:
        raise UsageError.of("resume-other-configurations", missing=", ".join(missing))
    return replace(
        campaign,
        configurations=tuple(here[c["key"]] for c in stored["configurations"]),
        baseline=here[stored["baseline"]],
    )


def campaign_record(campaign: Campaign, identity: str = "") -> CampaignRecord:
    """Make the record that the store keeps, with a new identity or the given one."""
    return CampaignRecord(
        id=identity or str(uuid.uuid4()),
        name=campaign.spec.name,
        created=utc_now(),
        origin=Origin.RUN,
        seed=campaign.spec.seed,
        rounds=campaign.spec.rounds,
        baseline=campaign.baseline.key,
        plan=campaign.plan,
        tool=__version__,
    )


def allocation_record(
    campaign: str, machine: Machine, nodes: Allocation = THIS_HOST
) -> AllocationRecord:
    """Take these nodes, from now on, as one allocation of a campaign. Network addresses stay
    here: results are published."""
    unaddressed = tuple(replace(device, address="") for device in machine.fabrics)
    return AllocationRecord(
        id=str(uuid.uuid4()),
        campaign=campaign,
        started=utc_now(),
        host=machine.hostname,
        machine=canonical(replace(machine, mpis=(), fabrics=unaddressed)),
        hosts=nodes.hosts,
        job=nodes.job,
    )
