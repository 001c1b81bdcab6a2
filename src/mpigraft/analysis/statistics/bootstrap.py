"""Compute intervals of median log ratios. Arrays are (rounds, cells), without NaN unless stated.

Why these intervals: at 6 rounds the percentile bootstrap of a median covers the truth 91 to 94
times in 100, not 95 (table: docs/explanation/method.md), so it is not used alone. Fewer than 12
rounds of one allocation take Student's t on the logarithms, which held 94 to 96 % with normal,
heavy-tailed, skewed and bimodal launches. From 12 rounds on the order statistics of the median
need no shape at all and are as short. Several allocations add the bootstrap over allocations,
then rounds: values of one allocation share its nodes and its hour.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from mpigraft.core.arrays import Bools, Floats, Ints, NDArray, np
from mpigraft.core.model import EXACT_FROM
from mpigraft.core.numbers import from_log

LEVEL = 0.95
RESAMPLES = 1000
FARTHEST = 300.0  # logarithm of a ratio: beyond, floats end
Z_95, Z_POWER = 1.960, 0.842  # normal quantiles: 95 % two-sided, and a chance of 80 %
MOST_ROUNDS = 10_000  # a greater estimate is of no use

# Student's t, 97.5 %, for 1 to 10 degrees of freedom.
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def interval(logs: Floats, allocations: Ints, seed: int = 0) -> tuple[Floats, Floats]:
    """Bound each column's median log ratio by its 95 % interval.

    `allocations` numbers the allocation of each round. One round has no interval: NaN.
    """
    rounds, cells = logs.shape
    if rounds < 2:
        nothing = np.full(cells, np.nan)
        return nothing, nothing
    low, high = student(logs) if rounds < EXACT_FROM else order_statistics(logs)
    middle = np.median(logs, axis=0)
    low, high = np.minimum(low, middle), np.maximum(high, middle)
    if len(np.unique(allocations)) > 1:
        below, above = bootstrap(logs, allocations, seed)
        low, high = np.minimum(low, below), np.maximum(high, above)
    return low, high


def ratio_so_far(logs: Sequence[float]) -> tuple[float, float, float]:
    """Give the ratio of one curve's rounds and its 95 % interval, from the mean log ratio of each
    round; the interval of a verdict is wider where rounds depend on each other. One round has no
    interval: NaN."""
    column = np.array(logs, dtype=np.float64)[:, None]
    low, high = interval(column, np.zeros(len(logs), dtype=np.int64))
    ends = np.clip([np.median(column), low[0], high[0]], -FARTHEST, FARTHEST)
    ratio, least, most = map(from_log, ends.tolist())
    return ratio, least, most


def student(logs: Floats) -> tuple[Floats, Floats]:
    """Compute Student's t interval of the mean of each column, for 2 to 11 rounds."""
    rounds = logs.shape[0]
    half = T_975[rounds - 2] * logs.std(axis=0, ddof=1) / math.sqrt(rounds)
    middle = logs.mean(axis=0)
    return middle - half, middle + half


def order_statistics(logs: Floats) -> tuple[Floats, Floats]:
    """Return the k-th smallest and k-th largest of each column, with the greatest k for which they
    hold the median in at least 95 % of samples of any continuous distribution (sign test)."""
    rounds = logs.shape[0]
    rank = median_rank(rounds)
    ordered = np.sort(logs, axis=0)
    return ordered[rank - 1], ordered[rounds - rank]


@functools.lru_cache(maxsize=64)
def median_rank(rounds: int) -> int:
    """Find that k: P(Binomial(rounds, 1/2) < k) <= 2.5 %. 6 rounds are the fewest that have one."""
    below, rank = 0, 0
    while 2 * (below + math.comb(rounds, rank)) <= (1 - LEVEL) * 2**rounds:
        below += math.comb(rounds, rank)
        rank += 1
    return rank


def bootstrap(logs: Floats, allocations: Ints, seed: int) -> tuple[Floats, Floats]:
    """Compute the percentile interval of the median, resampled over allocations, then over the
    rounds of each. With A allocations the resampled means vary too little by (A - 1) / A, so the
    bounds are stretched by its root: else those of 2 or 3 allocations are far too narrow."""
    medians = drawn_medians(logs, allocations, seed)
    below, above = np.quantile(medians, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    middle = np.median(logs, axis=0)
    number = len(np.unique(allocations))
    stretch = math.sqrt(number / (number - 1))
    return middle - (middle - below) * stretch, middle + (above - middle) * stretch


def drawn_medians(logs: Floats, allocations: Ints, seed: int) -> Floats:
    """Draw allocations, then rounds of each: the medians of what was drawn, (RESAMPLES, cells)."""
    counts = _resampled(tuple(allocations.tolist()), seed)
    return np.stack([_weighted_medians(logs[:, k], counts) for k in range(logs.shape[1])], 1)


@functools.lru_cache(maxsize=8)
def _resampled(allocations: tuple[int, ...], seed: int) -> NDArray[np.int16]:
    """Draw allocations, then rounds: (RESAMPLES, rounds), how often each round was drawn."""
    rng = np.random.default_rng(seed)
    names = sorted(set(allocations))
    drawn = rng.multinomial(len(names), np.full(len(names), 1 / len(names)), RESAMPLES)
    counts = np.zeros((RESAMPLES, len(allocations)), dtype=np.int16)
    for column, name in enumerate(names):
        rows = [row for row, owner in enumerate(allocations) if owner == name]
        shares = np.full(len(rows), 1 / len(rows))
        counts[:, rows] = rng.multinomial(drawn[:, column] * len(rows), shares)
    return counts


def _weighted_medians(values: Floats, counts: NDArray[np.int16]) -> Floats:
    """Take the median of `values`, each as often as a row of `counts` says; one per row."""
    order = np.argsort(values)
    ordered = values[order]
    passed = np.cumsum(counts[:, order], axis=1, dtype=np.int16)
    half = passed[:, -1:] / 2
    lower = np.argmax(passed >= half, axis=1)
    upper = np.argmax(passed > half, axis=1)
    middles: Floats = (ordered[lower] + ordered[upper]) / 2
    return middles


def medians(logs: Floats) -> Floats:
    """Take the median of each column over the rounds that it has; at least one."""
    middles: Floats = (np.nanmedian if np.isnan(logs).any() else np.median)(logs, axis=0)
    return middles


def deviations(logs: Floats) -> Floats:
    """Take the standard deviation of each column over its rounds; NaN for a single one."""
    counts = (~np.isnan(logs)).sum(axis=0)
    free = np.maximum(counts - 1, 0)
    squares = np.nansum((logs - np.nansum(logs, axis=0) / counts) ** 2, axis=0)
    variances = np.divide(squares, free, out=np.full(len(free), np.nan), where=free > 0)
    roots: Floats = np.sqrt(variances)
    return roots


def filled(logs: Floats) -> Bools:
    """Mark the columns that have any value."""
    marked: Bools = np.any(~np.isnan(logs), axis=0)
    return marked


def rounds_for(spread: float, gap: float, power: bool = True) -> int | None:
    """Estimate the rounds after which an interval of log ratios with standard deviation `spread` is
    shorter than `gap` to each side; with `power` in 80 % of campaigns rather than on average.
    Normal approximation: (z spread / gap)^2. None beyond MOST_ROUNDS, or without a gap."""
    if gap <= 0 or not math.isfinite(spread):
        return None
    z = Z_95 + (Z_POWER if power else 0.0)
    rounds = (z * spread / gap) ** 2
    return math.ceil(rounds) if rounds <= MOST_ROUNDS else None
