"""Sort stored values into what may be compared: series and blocks.

A series has the values of one benchmark, metric, layout and kind of buffers. A block has those of
one round on one set of nodes. Values of different series or blocks are never compared.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from mpigraft.analysis.statistics.bootstrap import filled
from mpigraft.analysis.statistics.coarseness import step
from mpigraft.core.arrays import Floats, Ints, np
from mpigraft.core.model import (
    METRICS,
    ConfigurationRecord,
    Finding,
    SeriesKey,
    ValueRow,
)
from mpigraft.core.text import join_some

SHOWN = 3  # examples in a finding
OVERLAP = "overlap"  # a metric that may be 0

Axes = tuple[str, int, "Block", int]  # configuration, replica, block, size
Reading = tuple[float, float]  # a value, and how far off it may be, as a logarithm


class Block(NamedTuple):
    """One round on one set of nodes; its values are compared with each other. `turn` counts the
    allocations that measured the same round there, each from its beginning."""

    nodes: str
    round: int
    turn: int = 0


class Arm(NamedTuple):
    """One side of a comparison, (blocks, sizes): the logarithms of its values, and how far off
    each may be. NaN: no value."""

    logs: Floats
    steps: Floats


@dataclass(frozen=True, slots=True)
class Series:
    """All values with one key. `logs` has the logarithms of each configuration as (replicas,
    blocks, sizes), NaN where there is no value; `steps` has how far off they may be."""

    blocks: tuple[Block, ...]
    sizes: tuple[int, ...]
    logs: dict[str, Floats]
    steps: dict[str, Floats]

    def arm(self, configuration: str) -> Arm:
        return Arm(self.launches(configuration), _means(self.steps[configuration]))

    def launches(self, configuration: str) -> Floats:
        """Average the launches of each block: (blocks, sizes) of logarithms."""
        return _means(self.logs[configuration])

    def sizes_of(self, configuration: str) -> set[int]:
        """List the sizes at which this configuration has a value."""
        present = filled(self.launches(configuration)).tolist()
        return {size for size, has_value in zip(self.sizes, present, strict=True) if has_value}


def _means(cube: Floats) -> Floats:
    """Average over the first axis; NaN where there is no value."""
    counts = (~np.isnan(cube)).sum(axis=0)
    sums = np.nansum(cube, axis=0)
    means: Floats = np.divide(sums, counts, out=np.full(sums.shape, np.nan), where=counts > 0)
    return means


@dataclass(frozen=True, slots=True)
class SeriesTable:
    """All values of a campaign, sorted into what may be compared."""

    series: dict[SeriesKey, Series]
    allocation: dict[Block, int]  # number of the allocation of each block
    findings: tuple[Finding, ...]

    def rounds_of(self, series: Series) -> Ints:
        """Give each block of a series the number of its place among all blocks of the campaign."""
        numbers = {block: number for number, block in enumerate(sorted(self.allocation))}
        return np.array([numbers[block] for block in series.blocks], dtype=np.int64)

    def allocations_of(self, series: Series) -> Ints:
        """Give the number of the allocation of each block of a series."""
        return np.array([self.allocation[block] for block in series.blocks], dtype=np.int64)


def labels_of(
    configurations: Sequence[ConfigurationRecord], values: Sequence[ValueRow]
) -> dict[str, str]:
    """Label each configuration, by key: its id, with a part of the key where ids repeat."""
    ids = {c.key: c.id for c in configurations}
    ids |= {row.configuration: row.configuration for row in values if row.configuration not in ids}
    counts = Counter(ids.values())
    return {k: f"{i} ({k[:8]})" if counts[i] > 1 else i for k, i in ids.items()}


def table_of(
    values: Iterable[ValueRow], hosts: Mapping[str, str], labels: Mapping[str, str]
) -> SeriesTable:
    """Sort the values. `hosts` has the nodes of each allocation where they are known, `labels` the
    labels of configurations by key."""
    readings: dict[SeriesKey, dict[Axes, Reading]] = defaultdict(dict)
    values = list(values)
    blocks = _blocks(values, hosts)
    numbers: dict[str, int] = {}
    allocation: dict[Block, int] = {}
    duplicates: list[str] = []
    invalid: list[str] = []
    hidden: list[tuple[str, int]] = []  # what, and its size in bytes
    for row in values:
        if row.metric == OVERLAP and row.value == 0:
            hidden.append((_what(row, labels), row.size))
            continue
        if row.metric not in METRICS or not 0 < row.value < math.inf:
            invalid.append(f"{_what(row, labels)} {row.metric} at {row.size} B: {row.value}")
            continue
        block = blocks[row.allocation, row.round]
        if block not in allocation:
            allocation[block] = numbers.setdefault(row.allocation, len(numbers))
        series = readings[row.series]
        axes = (row.configuration, row.replica, block, row.size)
        if axes in series:
            duplicates.append(f"{_what(row, labels)} at {row.size} B in round {row.round + 1}")
        else:
            series[axes] = (row.value, step(row.value, row.resolution))
    table = {key: _series_of(series) for key, series in readings.items()}
    return SeriesTable(table, allocation, _omissions(duplicates, invalid, hidden))


def _what(row: ValueRow, labels: Mapping[str, str]) -> str:
    return f"{labels[row.configuration]}: {row.benchmark}"


def _blocks(values: Iterable[ValueRow], hosts: Mapping[str, str]) -> dict[tuple[str, int], Block]:
    """Find the block of each allocation and round. Several allocations on the same nodes share one
    if none measured what another did: a kill split that round. Else each has a round of its own,
    at another hour."""
    launched: dict[tuple[str, int], set[tuple[str, str, int]]] = defaultdict(set)
    for row in values:
        launched[row.allocation, row.round].add((row.configuration, row.layout, row.replica))
    turns: dict[tuple[str, int], list[set[tuple[str, str, int]]]] = defaultdict(list)
    blocks = {}
    for (job, number), launches in launched.items():
        nodes = hosts.get(job, job)
        earlier = turns[nodes, number]
        turn = next((n for n, made in enumerate(earlier) if not made & launches), len(earlier))
        if turn == len(earlier):
            earlier.append(set())
        earlier[turn] |= launches
        blocks[job, number] = Block(nodes, number, turn)
    return blocks


def _series_of(readings: dict[Axes, Reading]) -> Series:
    names, replicas, blocks, sizes = (sorted(set(axis)) for axis in zip(*readings, strict=True))
    places = [{name: n for n, name in enumerate(axis)} for axis in (names, replicas, blocks, sizes)]
    shape = [max(len(axis), 2) if n == 1 else len(axis) for n, axis in enumerate(places)]
    logs, steps = np.full([2, *shape], np.nan)
    index = tuple([places[n][axes[n]] for axes in readings] for n in range(4))
    known = np.array(list(readings.values()))
    logs[index], steps[index] = np.log(known[:, 0]), known[:, 1]
    axes = (tuple(blocks), tuple(sizes))
    return Series(*axes, dict(zip(names, logs, strict=True)), dict(zip(names, steps, strict=True)))


def _omissions(
    duplicates: Iterable[str], invalid: Iterable[str], hidden: Iterable[tuple[str, int]]
) -> tuple[Finding, ...]:
    """Report the values that were left out, and why."""
    findings = []
    if examples := sorted(duplicates):
        findings.append(_omitted("values-twice", examples))
    if examples := sorted(invalid):
        findings.append(_omitted("values-odd", examples))
    if examples := [f"{what} at {size} B" for what, size in sorted(hidden)]:
        findings.append(_omitted("overlap-none", examples))
    return tuple(findings)


def _omitted(code: str, examples: Sequence[str]) -> Finding:
    return Finding.of(code, count=_count(examples), examples=_examples(examples))


def _count(values: Sequence[str]) -> str:
    return "1 value is" if len(values) == 1 else f"{len(values)} values are"


def _examples(values: Sequence[str]) -> str:
    """Join some of the texts, each once, with the number of times where it repeats."""
    counts = Counter(values)
    texts = [text + (f" ({n} times)" if n > 1 else "") for text, n in counts.items()]
    return join_some(texts, SHOWN)
