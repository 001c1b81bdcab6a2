"""Stored values sorted into what may be held against what: subjects and blocks.

Values of unlike benchmarks, options, layouts or buffers never meet: these are the subject.
Values of unlike nodes never meet: these are the block.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mpigraft.coarseness import step
from mpigraft.model import METRICS, ConfigurationRecord, Finding, Level, ValueRow
from mpigraft.stats import filled

if TYPE_CHECKING:
    from mpigraft.stats import Floats, Ints

SHOWN = 3  # examples that a finding names

Place = tuple[str, int, "Block", int]  # configuration, replica, block, size
Known = tuple[float, float]  # a value, and how far off it may be, as a logarithm


class Subject(NamedTuple):
    """What values must share to be compared at all."""

    benchmark: str
    metric: str
    layout: str
    buffers: str


class Block(NamedTuple):
    """One round on one set of nodes: what is measured in it is held against each other. `turn`
    counts those that measured the same round there, each from its beginning."""

    nodes: str
    round: int
    turn: int = 0


class Arm(NamedTuple):
    """One side of a comparison, (blocks, sizes): the logarithms of its values, and how far off
    these may be, of which NaN is where there is none."""

    logs: Floats
    steps: Floats


@dataclass(frozen=True, slots=True)
class Held:
    """All that was measured of one subject. `logs` has, per configuration, the logarithms as
    (replicas, blocks, sizes), NaN where there is none, `steps` how far off they may be; all share
    the same axes."""

    blocks: tuple[Block, ...]
    sizes: tuple[int, ...]
    logs: dict[str, Floats]
    steps: dict[str, Floats]

    def arm(self, configuration: str) -> Arm:
        return Arm(self.launches(configuration), _means(self.steps[configuration]))

    def launches(self, configuration: str) -> Floats:
        """(blocks, sizes): the geometric mean, as a logarithm, of what was launched in each."""
        return _means(self.logs[configuration])

    def sizes_of(self, configuration: str) -> set[int]:
        """Sizes of which this configuration has a value."""
        here = filled(self.launches(configuration)).tolist()
        return {size for size, found in zip(self.sizes, here, strict=True) if found}


def _means(cube: Floats) -> Floats:
    """Over the first axis, NaN where there is no value."""
    import numpy as np

    counts = (~np.isnan(cube)).sum(axis=0)
    sums = np.nansum(cube, axis=0)
    means: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


@dataclass(frozen=True, slots=True)
class Table:
    """All values of a campaign, sorted into what is compared with what."""

    subjects: dict[Subject, Held]
    allocation: dict[Block, int]  # number of the allocation of each block
    findings: tuple[Finding, ...]

    def rounds(self, held: Held) -> Ints:
        """Of each block of a subject its place among all blocks of the campaign."""
        import numpy as np

        places = {block: place for place, block in enumerate(sorted(self.allocation))}
        return np.array([places[block] for block in held.blocks], dtype=np.int64)

    def numbers(self, held: Held) -> Ints:
        """The allocation of each block of a subject."""
        import numpy as np

        return np.array([self.allocation[block] for block in held.blocks], dtype=np.int64)


def labels_of(
    configurations: Sequence[ConfigurationRecord], values: Sequence[ValueRow]
) -> dict[str, str]:
    """Key -> label. Two contents under one id are two configurations and told apart."""
    ids = {c.key: c.id for c in configurations}
    ids |= {row.configuration: row.configuration for row in values if row.configuration not in ids}
    taken = list(ids.values())
    return {k: f"{i} ({k[:8]})" if taken.count(i) > 1 else i for k, i in ids.items()}


def table_of(
    values: Iterable[ValueRow], hosts: Mapping[str, str], labels: Mapping[str, str]
) -> Table:
    """Sort the values. `hosts` names the host of each allocation, where it is known, `labels` the
    configurations by key."""
    found: dict[tuple[str, str, str, str], dict[Place, Known]] = defaultdict(dict)
    values = list(values)
    blocks = _blocks(values, hosts)
    numbers: dict[str, int] = {}
    allocation: dict[Block, int] = {}
    twice: list[str] = []
    odd: list[str] = []
    for (
        configuration,
        layout,
        job,
        number,
        replica,
        benchmark,
        metric,
        size,
        value,
        buffers,
        resolution,
    ) in values:
        if metric not in METRICS or not 0 < value < math.inf:
            odd.append(f"{labels[configuration]}: {benchmark} {metric} at {size} B: {value}")
            continue
        block = blocks[job, number]
        if block not in allocation:
            allocation[block] = numbers.setdefault(job, len(numbers))
        places = found[benchmark, metric, layout, buffers]
        place = (configuration, replica, block, size)
        if place in places:
            twice.append(f"{labels[configuration]}: {benchmark} at {size} B in round {number}")
        else:
            places[place] = (value, step(value, resolution))
    subjects = {Subject(*what): _held(places) for what, places in found.items()}
    return Table(subjects, allocation, _strange(twice, odd))


def _blocks(values: Iterable[ValueRow], hosts: Mapping[str, str]) -> dict[tuple[str, int], Block]:
    """The block of each allocation and round. Several allocations on the same nodes share one
    where none measured what another did: a kill has cut that round in two. Else each is a round
    of its own, at another hour."""
    made: dict[tuple[str, int], set[tuple[str, str, int]]] = defaultdict(set)
    for row in values:
        made[row.allocation, row.round].add((row.configuration, row.layout, row.replica))
    turns: dict[tuple[str, int], list[set[tuple[str, str, int]]]] = defaultdict(list)
    found = {}
    for (job, number), launches in made.items():
        nodes = hosts.get(job, job)
        there = turns[nodes, number]
        turn = next((n for n, of in enumerate(there) if not of & launches), len(there))
        if turn == len(there):
            there.append(set())
        there[turn] |= launches
        found[job, number] = Block(nodes, number, turn)
    return found


def _held(places: dict[Place, Known]) -> Held:
    import numpy as np

    names, replicas, blocks, sizes = (sorted(set(axis)) for axis in zip(*places, strict=True))
    at = [{name: n for n, name in enumerate(axis)} for axis in (names, replicas, blocks, sizes)]
    shape = [max(len(axis), 2) if n == 1 else len(axis) for n, axis in enumerate(at)]
    logs, steps = np.full([2, *shape], np.nan)
    index = tuple([at[n][place[n]] for place in places] for n in range(4))
    known = np.array(list(places.values()))
    logs[index], steps[index] = np.log(known[:, 0]), known[:, 1]
    axes = (tuple(blocks), tuple(sizes))
    return Held(*axes, dict(zip(names, logs, strict=True)), dict(zip(names, steps, strict=True)))


def _strange(twice: Iterable[str], odd: Iterable[str]) -> tuple[Finding, ...]:
    """Values that were left out, and why; nothing is averaged or mended in silence."""
    found = []
    if told := sorted(twice):
        seen = f"{_count(told)} there twice: {_examples(told)}"
        why = "the first of each was taken: a later one may be there because the first displeased"
        found.append(Finding(Level.WARNING, "values-twice", seen, why))
    if told := sorted(odd):
        seen = f"{_count(told)} no finite positive number of a known metric: "
        why = "they have no ratio and were left out"
        found.append(Finding(Level.WARNING, "values-odd", seen + _examples(told), why))
    return tuple(found)


def _count(values: Sequence[str]) -> str:
    return "1 value is" if len(values) == 1 else f"{len(values)} values are"


def _examples(values: Sequence[str]) -> str:
    """Some of them, each text once; how often it is there where it is so more than once."""
    texts = Counter(values)
    shown = [text + (f" ({n} times)" if n > 1 else "") for text, n in texts.items()]
    more = len(texts) - SHOWN
    return "; ".join(shown[:SHOWN]) + (f" and {more} more" if more > 0 else "")
