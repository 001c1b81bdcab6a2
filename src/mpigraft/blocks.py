"""Stored values sorted into what may be held against what: subjects, blocks, series.

Values of unlike benchmarks, options, layouts or buffers never meet: these are the subject.
Values of unlike nodes never meet: these are the block.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from mpigraft.model import METRICS, ConfigurationRecord, Finding, Level, ValueRow

if TYPE_CHECKING:
    from mpigraft.stats import Floats

SHOWN = 3  # examples that a finding names


class Subject(NamedTuple):
    """What values must share to be compared at all."""

    benchmark: str
    metric: str
    layout: str
    buffers: str


class Block(NamedTuple):
    """One round on one set of nodes: what is measured in it is held against each other."""

    nodes: str
    round: int


@dataclass(frozen=True, slots=True)
class Series:
    """What one configuration measured of one subject: logarithms by block, replica and size."""

    logs: dict[Block, dict[int, dict[int, float]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(dict))
    )

    @property
    def sizes(self) -> set[int]:
        return {s for replicas in self.logs.values() for one in replicas.values() for s in one}

    def matrix(self, blocks: Sequence[Block], sizes: Sequence[int], *replicas: int) -> Floats:
        """(blocks, sizes): the mean over `replicas`, or over all; NaN where there is none."""
        import numpy as np

        out = np.full((len(blocks), len(sizes)), np.nan)
        for row, block in enumerate(blocks):
            launches = self.logs.get(block, {})
            chosen = [launches.get(r, {}) for r in (replicas or launches)]
            for column, size in enumerate(sizes):
                found = [launch[size] for launch in chosen if size in launch]
                if found:
                    out[row, column] = sum(found) / len(found)
        return out


@dataclass(frozen=True, slots=True)
class Table:
    """All values of a campaign, sorted into what is compared with what."""

    series: dict[Subject, dict[str, Series]]
    allocation: dict[Block, int]  # number of the allocation of each block
    findings: tuple[Finding, ...]


def labels_of(
    configurations: Sequence[ConfigurationRecord], values: Sequence[ValueRow]
) -> dict[str, str]:
    """Key -> label. Two contents under one id are two configurations and told apart."""
    ids = {c.key: c.id for c in configurations}
    ids |= {row.configuration: row.configuration for row in values if row.configuration not in ids}
    taken = list(ids.values())
    return {k: f"{i} ({k[:8]})" if taken.count(i) > 1 else i for k, i in ids.items()}


def table_of(values: Iterable[ValueRow], hosts: Mapping[str, str]) -> Table:
    series: dict[Subject, dict[str, Series]] = defaultdict(lambda: defaultdict(Series))
    numbers: dict[str, int] = {}
    allocation: dict[Block, int] = {}
    twice: set[str] = set()
    odd: set[str] = set()
    for row in values:
        if row.metric not in METRICS or not 0 < row.value < math.inf:
            odd.add(f"{row.benchmark} {row.metric} at {row.size} B: {row.value}")
            continue
        block = Block(hosts.get(row.allocation, row.allocation), row.round)
        allocation.setdefault(block, numbers.setdefault(row.allocation, len(numbers)))
        subject = Subject(row.benchmark, row.metric, row.layout, row.buffers)
        launch = series[subject][row.configuration].logs[block][row.replica]
        if row.size in launch:
            twice.add(f"{row.benchmark} at {row.size} B in round {row.round}")
        else:
            launch[row.size] = math.log(row.value)
    return Table(series, allocation, _strange(twice, odd))


def _strange(twice: Iterable[str], odd: Iterable[str]) -> tuple[Finding, ...]:
    """Values that were left out, and why; nothing is averaged or mended in silence."""
    found = []
    if told := sorted(twice):
        seen = f"{len(told)} values were there twice: {_examples(told)}"
        why = "the first of each was taken: a later one may be there because the first displeased"
        found.append(Finding(Level.WARNING, "values-twice", seen, why))
    if told := sorted(odd):
        seen = f"{len(told)} values are no finite positive number of a known metric: "
        why = "they have no ratio and were left out"
        found.append(Finding(Level.WARNING, "values-odd", seen + _examples(told), why))
    return tuple(found)


def _examples(told: Sequence[str]) -> str:
    more = len(told) - SHOWN
    return "; ".join(told[:SHOWN]) + (f" and {more} more" if more > 0 else "")
