"""What judges a curve, whether rounds pair its two sides or not: each size a cell, all of them
pooled, and the joint test over them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic, NamedTuple, TypeVar

from mpigraft.analysis.reasons import IMPORTED, open_reason
from mpigraft.analysis.statistics.coarseness import narrowed, resolved
from mpigraft.analysis.statistics.serial import Dependence
from mpigraft.analysis.verdict_rules import crossovers, curve_verdict, decide, rounds_needed
from mpigraft.core.arrays import Floats, Ints, np
from mpigraft.core.model import Cell, CellGroup, JointBound, Metric, SeriesKey, Verdict
from mpigraft.core.numbers import from_log

Log = TypeVar("Log")
Count = TypeVar("Count")


class JointTest(NamedTuple):
    """Whether all sizes together differ. None: no rounds that chance could deal otherwise."""

    p: float | None  # corrected for all curves that are judged together
    alone: float | None  # as if this were the only curve
    repeats: str = ""  # the metric of the same measurement that counts instead


class Limits(NamedTuple):
    """What decides: the fixed margin, what a winner must exceed, the level of the joint test."""

    margin: float
    winner: float
    level: float


class CellValues(NamedTuple, Generic[Log, Count]):
    """The values of one size, or an array of them over sizes; all but `rounds` are logs, or
    differences of logs."""

    old: Log  # the baseline, or the old campaign
    new: Log
    middle: Log
    low: Log  # before what the coarse clock takes off
    high: Log
    rounds: Count
    spread: Log
    coarse: Log  # what both sides' coarseness may shift the ratio by
    widest: Log  # the coarser side's step


Columns = CellValues[Floats, Ints]


class Pooled(NamedTuple):
    """All sizes of a curve together, as logarithms."""

    middle: float  # of the geometric mean
    low: float  # NaN: no interval
    high: float
    rounds: int
    sizes: tuple[int, ...]  # that it is over


class JudgedCurve(ABC):
    """One configuration in one series, compared with a baseline or an old campaign."""

    alternated: bool = True  # False: imported runs, which have no interval
    key: SeriesKey
    label: str
    metric: Metric
    sizes: Sequence[int]
    dependence: Dependence

    def group(self, limits: Limits, test: JointTest) -> CellGroup:
        """Judge all cells, the curve and the pooled ratio."""
        cells = self._cells(limits)
        pooled = self._pooled()
        _, low, high, rounds, _ = pooled
        whole = decide(low, high, self.metric.better, rounds, limits.margin, limits.winner)
        bound = self._joint_bound(limits.margin) if whole is Verdict.EQUIVALENT else None
        key, dependence = self.key, self.dependence
        group = CellGroup(
            benchmark=key.benchmark,
            metric=key.metric,
            unit=self.metric.unit,
            layout=key.layout,
            buffers=key.buffers,
            configuration=self.label,
            cells=cells,
            curve=curve_verdict(cells, whole, test.p, limits.level, bound),
            curve_p=test.p,
            pooled=from_log(pooled.middle),
            pooled_low=_exp_or_none(low),
            pooled_high=_exp_or_none(high),
            crossovers=crossovers(cells),
            curve_p_alone=test.alone,
            by_chance=self._by_chance(limits.winner),
            repeats=test.repeats,
            joint=bound,
            autocorrelation=dependence.correlation,
            effective_rounds=dependence.effective,
            pooled_sizes=pooled.sizes,
        )
        reason = open_reason(group, whole, rounds, limits) if self.alternated else IMPORTED
        return replace(group, no_verdict=reason)

    def _cells(self, limits: Limits) -> tuple[Cell, ...]:
        columns = (np.asarray(column).tolist() for column in self._columns())
        rows = (CellValues(*row) for row in zip(*columns, strict=True))
        return tuple(
            self._cell(limits, size, row) for size, row in zip(self.sizes, rows, strict=True)
        )

    def _cell(self, limits: Limits, size: int, row: CellValues[float, int]) -> Cell:
        low, high, count = row.low - row.coarse, row.high + row.coarse, row.rounds
        verdict = decide(low, high, self.metric.better, count, limits.margin, limits.winner)
        verdict = resolved(verdict, row.new - row.old, row.widest)
        needed = None
        if verdict is Verdict.INCONCLUSIVE:
            edges = narrowed(limits.margin, limits.winner, row.coarse)
            needed = rounds_needed(row.middle, row.spread, count, *edges)
        absolute = (from_log(row.old), from_log(row.new), from_log(row.middle))
        return Cell(size, *absolute, _exp_or_none(low), _exp_or_none(high), verdict, count, needed)

    @abstractmethod
    def _columns(self) -> Columns:
        """Make what the cells are judged by."""

    @abstractmethod
    def _pooled(self) -> Pooled:
        """Pool the sizes that have every round."""

    @abstractmethod
    def _joint_bound(self, margin: float) -> JointBound:
        """Bound the size that may differ most in a curve that is equivalent when pooled."""

    @abstractmethod
    def _by_chance(self, winner: float) -> float:
        """Count the cells that would be faster or slower if there were no difference."""


def _exp_or_none(log: float) -> float | None:
    return None if math.isnan(log) else from_log(log)
