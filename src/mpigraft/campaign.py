"""The schedule: configurations x layouts x rounds, decided before the first launch.

Everything here only computes: a wish in, a `Campaign` out, and `schedule` gives the same order
on every machine for the same seed. The number of rounds, and after which of them the campaign may
end, is fixed before the start; nothing here looks at a result.
"""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from mpigraft import __version__, axes, configure
from mpigraft.env import refuse_secrets
from mpigraft.errors import MissingError, UsageError
from mpigraft.jsonout import canonical
from mpigraft.launch import HERE
from mpigraft.layouts import GRAMMAR
from mpigraft.looks import refuse_empty, settled
from mpigraft.model import (
    Allocation,
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    Configuration,
    Layout,
    Machine,
    Origin,
)
from mpigraft.modules import brought
from mpigraft.natives import BENCHMARKS, OPTIONS, OWN, STARTUP
from mpigraft.wish import LARGEST, Wish, wish_from

QUICK_BENCHMARKS = ("native:latency", "native:bibw", "native:allreduce")
DEFAULT_BENCHMARKS = (*QUICK_BENCHMARKS, "native:bw", "native:bcast", "native:alltoall")
QUICK_ROUNDS, DEFAULT_ROUNDS = 6, 10
QUICK_BUDGET_MS, DEFAULT_BUDGET_MS = 8.0, 20.0  # per benchmark and size
LONG_TIMES = 12  # warm-up, tries and five samples at least, each prepared and checked
SLOWEST, USUAL = 1e8, 1e9  # bytes a second, of a network over TCP and of one node's memory
START_S = 30.0  # allowed for MPI_Init and the like before a launch counts as hung


@dataclass(frozen=True, slots=True)
class Campaign:
    """Everything that a campaign will do."""

    wish: Wish  # complete: rounds, seed, budget and limit are set
    configurations: tuple[Configuration, ...]
    baseline: Configuration
    layouts: tuple[Layout, ...]
    benchmarks: tuple[Benchmark, ...]
    cpu: str  # model and cores of the machine that it was planned for
    skipped: tuple[tuple[str, str], ...] = ()  # (configuration id, why it is not here)

    @property
    def plan(self) -> str:
        """Canonical JSON that --resume reads back with `resumed`."""
        return canonical(
            {
                "wish": self.wish,
                "configurations": [{"key": c.key, "id": c.id} for c in self.configurations],
                "baseline": self.baseline.key,
                "layouts": [layout.key for layout in self.layouts],
                "benchmarks": [b.key for b in self.benchmarks],
                "cpu": self.cpu,
                "skipped": self.skipped,
            }
        )


@dataclass(frozen=True, slots=True)
class Step:
    """One launch of the schedule. `replica` 1 is the baseline's second launch in a round."""

    round: int
    slot: int
    configuration: Configuration
    layout: Layout
    replica: int = 0

    @property
    def place(self) -> tuple[int, str, str, int]:
        """What names this launch in the store: round, configuration, layout, replica."""
        return (self.round, self.configuration.key, self.layout.key, self.replica)


def schedule(campaign: Campaign) -> tuple[Step, ...]:
    """Every launch in order: in each round every configuration once and the baseline twice, in
    an order that depends on the seed alone. Layouts go one after the other, in another order in
    each round: they may be held against each other too."""
    rng = random.Random(campaign.wish.seed)  # noqa: S311  an order, not a secret
    steps: list[Step] = []
    for number in range(campaign.wish.rounds):
        layouts = list(campaign.layouts)
        rng.shuffle(layouts)
        for layout in layouts:
            arms = [(c, 0) for c in campaign.configurations] + [(campaign.baseline, 1)]
            arms = [arm for arm in arms if configure.reaches(arm[0], layout)]
            rng.shuffle(arms)
            steps += [
                Step(number, slot, configuration, layout, replica)
                for slot, (configuration, replica) in enumerate(arms)
            ]
    return tuple(steps)


def plan(
    wish: Wish,
    machine: Machine,
    contents: configure.Contents = configure.contents,
    nodes: Allocation = HERE,
) -> Campaign:
    """Turn a wish into a campaign for this machine and `nodes` like it.

    `contents` gives (soname, digest) of an MPI's libmpi and closure, for the keys. Raises
    UsageError for a wish that cannot be read, MissingError for one that cannot be met here.
    """
    refuse_secrets(wish.name, *wish.set)
    machine = brought(machine, wish.modules)
    layouts = axes.layouts(wish, machine, nodes)
    benchmarks = _benchmarks(wish)
    _refuse_lonely(benchmarks, layouts)
    configurations, skipped = configure.configurations(wish, machine, layouts, contents)
    if not configurations:
        reasons = "; ".join(f"{name}: {why}" for name, why in skipped) or "no MPI was found"
        raise MissingError(
            f"no configuration can run here ({reasons})",
            mend="`mpigraft discover` shows what is here, `mpigraft get openmpi` fetches one",
        )
    base = configure.baseline(configurations, wish.baseline)
    if wish.baseline:  # it was named, so it has to run
        named = replace(base, named=True)
        configurations = tuple(named if c is base else c for c in configurations)
        base = named
    return Campaign(
        wish=_complete(wish, benchmarks, _most_nodes(layouts)),
        configurations=configurations,
        baseline=base,
        layouts=layouts,
        benchmarks=benchmarks,
        cpu=f"{machine.cpu.model}, {machine.cpu.architecture}, {machine.cpu.cores} cores",
        skipped=skipped,
    )


def _refuse_lonely(benchmarks: tuple[Benchmark, ...], layouts: tuple[Layout, ...]) -> None:
    """One rank has nobody to send to; only starting up can be measured of it."""
    social = [b.key for b in benchmarks if b.name not in STARTUP]
    for layout in layouts:
        if layout.ranks < 2 and social:
            raise UsageError(
                f"layout {layout.key} is one rank, and {social[0]} needs two or more",
                mend=f"use two ranks or more, as in 1x2, or --benchmark {','.join(STARTUP)}",
            )


def _benchmarks(wish: Wish) -> tuple[Benchmark, ...]:
    names = wish.benchmark or (QUICK_BENCHMARKS if wish.quick else DEFAULT_BENCHMARKS)
    keys = [key for name in names for key in split_benchmarks(name)]
    like = f",like={wish.like}" if wish.like != Wish().like else ""
    keys = [key if ",like=" in key else key + like for key in keys]
    benchmarks = tuple(dict.fromkeys(Benchmark.parse(key) for key in keys))
    for benchmark in benchmarks:
        _check(benchmark)
    return benchmarks


def split_benchmarks(text: str) -> list[str]:
    """`latency,alltoallv,counts=sparse` -> `latency` and `alltoallv,counts=sparse`: a word with
    `=` belongs to the benchmark before it."""
    keys: list[str] = []
    for word in text.split(","):
        if "=" in word and keys:
            keys[-1] += f",{word}"
        else:
            keys.append(word)
    return keys


def _check(benchmark: Benchmark) -> None:
    """Refuse what cannot be started, before anything is."""
    if benchmark.suite != "native":
        raise UsageError(
            f"{benchmark.key} cannot be started: only native: benchmarks are run here",
            mend="`mpigraft import` takes the output of OSU and IMB",
        )
    if benchmark.name not in BENCHMARKS:
        raise UsageError(
            f"there is no benchmark {benchmark.name!r}", mend=f"one of {', '.join(BENCHMARKS)}"
        )
    for option, value in benchmark.options:
        if option not in OPTIONS or not value or value not in (OPTIONS[option] or (value,)):
            known = "; ".join(f"{k}={'|'.join(v) or 'N'}" for k, v in OPTIONS.items())
            raise UsageError(f"{benchmark.key}: no option {option}={value}", mend=known)
        if option == "like" and benchmark.name in OWN:
            raise UsageError(
                f"{benchmark.key}: OSU has no benchmark of this kind",
                mend=f"measure {', '.join(OWN)} without --like",
            )


def completed(wish: Wish, nodes: int = 2) -> Wish:
    """The wish with all that does not depend on the machine settled, so that each of several jobs
    of so many `nodes` plans the same. Raises UsageError for what cannot be started anywhere."""
    refuse_secrets(wish.name, *wish.set)
    said = [int(found["nodes"]) for text in wish.layout if (found := GRAMMAR.fullmatch(text))]
    return _complete(wish, _benchmarks(wish), max((*said, *wish.nodes), default=nodes))


def _most_nodes(layouts: Iterable[Layout]) -> int:
    return max(layout.nodes for layout in layouts)


def _complete(wish: Wish, benchmarks: Sequence[Benchmark], nodes: int) -> Wish:
    """The wish with every default that a later look must find again: rounds, seed, times."""
    if not 1 <= wish.min_size <= wish.max_size <= LARGEST:
        raise UsageError(
            f"message sizes {wish.min_size} to {wish.max_size} are no range within 1 B to 4 TiB"
        )
    rounds, looks = settled(wish.rounds, wish.looks)
    budget = wish.budget_ms or (QUICK_BUDGET_MS if wish.quick else DEFAULT_BUDGET_MS)
    return replace(
        wish,
        name=wish.name or ("quick" if wish.quick else "bench"),
        rounds=rounds or (QUICK_ROUNDS if wish.quick else DEFAULT_ROUNDS),
        looks=looks,
        seed=wish.seed or random.SystemRandom().randrange(1, 2**32),
        budget_ms=budget,
        limit_s=wish.limit_s
        or START_S
        + 30 * measured(wish, benchmarks, nodes) * budget / 1000
        + LONG_TIMES * long_bytes(wish, benchmarks) / SLOWEST,
    )


def measured(wish: Wish, benchmarks: Sequence[Benchmark], nodes: int) -> int:
    """How many times a launch on `nodes` spends the budget: once for each size; where nodes meet
    pair by pair, thrice in each round of meetings, which are no more than nodes. Thirty times as
    long counts as hung, since slow transports pass the budget with one message and validation is
    off the clock."""
    sizes = wish.max_size.bit_length() - wish.min_size.bit_length() + 1
    return sum(3 * nodes if b.name == "pairs" else sizes for b in benchmarks)


def long_bytes(wish: Wish, benchmarks: Sequence[Benchmark]) -> int:
    """Bytes of one message of every size that passes the budget by itself, of all benchmarks: each
    is sent LONG_TIMES, whatever the budget."""
    sizes = [wish.min_size]
    while sizes[-1] * 2 <= wish.max_size:
        sizes.append(sizes[-1] * 2)
    sized = [b for b in benchmarks if b.name not in (*STARTUP, "barrier", "pairs")]
    return len(sized) * sum(size for size in sizes if size > Wish().max_size)


def resumed(
    text: str,
    machine: Machine,
    contents: configure.Contents = configure.contents,
    nodes: Allocation = HERE,
) -> Campaign:
    """The campaign of a stored plan, with this machine's MPIs in it again.

    Raises UsageError when the libraries are no longer those of the plan.
    """
    stored = json.loads(text)
    wish = wish_from(stored["wish"], "stored plan")
    campaign = plan(replace(wish, looks=()), machine, contents, nodes)  # settled when it began
    campaign = replace(campaign, wish=replace(campaign.wish, looks=wish.looks))
    here = {c.key: c for c in campaign.configurations}
    lost = [c["id"] for c in stored["configurations"] if c["key"] not in here]
    now_here = json.loads(campaign.plan)
    lost += [
        what for what in ("layouts", "benchmarks", "cpu") if stored.get(what) != now_here[what]
    ]
    if lost:
        raise UsageError(
            f"cannot resume: {', '.join(lost)} is no longer what the campaign measured",
            why="libraries, transport, cores or places changed; old and new rounds would be mixed",
            mend="start a new campaign",
        )
    return replace(
        campaign,
        configurations=tuple(here[c["key"]] for c in stored["configurations"]),
        baseline=here[stored["baseline"]],
    )


def extended(campaign: CampaignRecord, rounds: int, measured: int) -> CampaignRecord:
    """The record of a campaign that goes on to `rounds` rounds, of which `measured` are begun.

    Its first rounds keep their order: the seed alone makes the schedule. The plan keeps each
    number of rounds that was planned before, and when more were asked for. The number that is
    planned already changes nothing, so the same command goes on after a kill. Raises UsageError
    for fewer.
    """
    if rounds < campaign.rounds:
        raise UsageError(
            f"{campaign.name} ({campaign.id[:8]}) is planned with {campaign.rounds} rounds, of "
            f"which {measured} are begun: --rounds {rounds} is fewer",
            why="a campaign that ends when its results please finds winners by chance",
            mend="leave --rounds out to go on with it as planned, or give a larger number",
        )
    if rounds == campaign.rounds:
        return campaign
    stored = json.loads(campaign.plan)
    if "wish" not in stored:
        raise UsageError(f"{campaign.name} ({campaign.id[:8]}) has no plan that could be extended")
    stored["wish"]["rounds"] = rounds
    step = {"planned": campaign.rounds, "rounds": rounds, "at": now()}
    stored["extensions"] = [*stored.get("extensions", ()), step]
    longer = replace(campaign, rounds=rounds, plan=canonical(stored))
    refuse_empty(longer)
    return longer


def extended_from(campaign: CampaignRecord) -> int:
    """Rounds that were planned before a campaign was extended last; 0 where it never was."""
    extensions = json.loads(campaign.plan).get("extensions")
    return int(extensions[-1]["planned"]) if extensions else 0


def record(campaign: Campaign, identity: str = "") -> CampaignRecord:
    """The campaign as the store keeps it, with an identity of its own or the one it was given."""
    return CampaignRecord(
        id=identity or str(uuid.uuid4()),
        name=campaign.wish.name,
        created=now(),
        origin=Origin.RUN,
        seed=campaign.wish.seed,
        rounds=campaign.wish.rounds,
        baseline=campaign.baseline.key,
        plan=campaign.plan,
        tool=__version__,
    )


def allocation(campaign: str, machine: Machine, nodes: Allocation = HERE) -> AllocationRecord:
    """These nodes, from now on, as one allocation of a campaign. Network addresses stay here:
    results are published."""
    unaddressed = tuple(replace(device, address="") for device in machine.fabrics)
    return AllocationRecord(
        id=str(uuid.uuid4()),
        campaign=campaign,
        started=now(),
        host=machine.hostname,
        machine=canonical(replace(machine, mpis=(), fabrics=unaddressed)),
        hosts=nodes.hosts,
        job=nodes.job,
    )


def now() -> str:
    """This moment, as `time_of` has it."""
    return time_of(time.time())


def time_of(seconds: float) -> str:
    """`seconds` since the epoch in ISO 8601 in UTC, to the millisecond."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")
