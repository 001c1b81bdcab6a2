"""Verdicts on cells and curves from intervals of log ratios, and rounds that would decide more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

from mpigraft.analysis.statistics import bootstrap
from mpigraft.core.arrays import Floats, Ints, np
from mpigraft.core.model import METRICS, Better, Cell, CellGroup, JointBound, Verdict

MIN_ROUNDS = 6
CONCLUSIVE = (Verdict.FASTER, Verdict.SLOWER)


def speed_of(group: CellGroup, ratio: float | None = None) -> float:
    """Return how many times as fast as the baseline a curve is, above 1 where it is better: from
    its pooled ratio, or from another ratio of its values."""
    ratio = group.pooled if ratio is None else ratio
    metric = METRICS.get(group.metric)
    if metric and metric.better is Better.HIGHER:
        return ratio
    return 1 / ratio if ratio else math.inf


def intervals(logs: Floats, allocations: Ints, seed: int) -> tuple[Floats, Floats]:
    """Bound each column of logs with gaps; columns that lack the same rounds go together."""
    low, high = np.full((2, logs.shape[1]), np.nan)
    gaps = np.isnan(logs)
    for pattern in {tuple(column) for column in gaps.T.tolist()}:
        columns = (gaps == np.array(pattern)[:, None]).all(axis=0)
        present = ~np.array(pattern, dtype=bool)
        low[columns], high[columns] = bootstrap.interval(
            logs[np.ix_(present, columns)], allocations[present], seed
        )
    return low, high


def decide(
    low: float, high: float, better: Better, rounds: int, margin: float, limit: float
) -> Verdict:
    """Judge an interval of log ratios. NaN bounds (no interval) decide nothing."""
    if rounds < MIN_ROUNDS:
        return Verdict.INCONCLUSIVE
    if low > math.log1p(limit):
        return Verdict.FASTER if better is Better.HIGHER else Verdict.SLOWER
    if high < -math.log1p(limit):
        return Verdict.FASTER if better is Better.LOWER else Verdict.SLOWER
    if low >= -math.log1p(margin) and high <= math.log1p(margin):
        return Verdict.EQUIVALENT
    return Verdict.INCONCLUSIVE


def curve_verdict(
    cells: Sequence[Cell], whole: Verdict, p: float | None, level: float, joint: JointBound | None
) -> Verdict:
    """Judge all sizes together. A winner needs three things: a joint test whose `p` is at most
    `level`, a pooled ratio outside the margin (`whole`), and no size with the opposite verdict.
    Equivalence needs a pooled ratio within the margin, and no size that may be far from it."""
    if whole is Verdict.EQUIVALENT and joint is not None and not joint.beyond:
        return Verdict.EQUIVALENT
    verdicts = {cell.verdict for cell in cells}
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    if whole in opposite and opposite[whole] not in verdicts and p is not None and p <= level:
        return whole
    return Verdict.INCONCLUSIVE


def crossovers(cells: Sequence[Cell]) -> tuple[int, ...]:
    """List the sizes from which the other side is better; only conclusive cells count."""
    called = [c for c in cells if c.verdict in CONCLUSIVE]
    return tuple(b.size for a, b in pairwise(called) if a.verdict is not b.verdict)


def rounds_needed(
    middle: float, spread: float, rounds: int, margin: float, limit: float
) -> int | None:
    """Estimate the rounds that would decide a cell in 80 % of campaigns, if its median and spread
    stayed: as a winner beyond `limit` or as equivalent within `margin`. None between the two."""
    gap = max(abs(middle) - math.log1p(limit), math.log1p(margin) - abs(middle))
    needed = bootstrap.rounds_for(spread, gap)
    return None if needed is None else max(needed, MIN_ROUNDS, rounds + 1)
