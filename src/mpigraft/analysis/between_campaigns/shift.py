"""Bound the ratio of two campaigns whose rounds were not measured side by side.

Nothing pairs their rounds, so what affected a whole round stays in its values, and the interval
is wider than that of configurations of one campaign. It is the one of Hodges and Lehmann (Annals of
Mathematical Statistics 34, 1963): of all differences between a launch of the one and a launch of
the other, from the k-th smallest to the k-th largest, with the greatest k for which the rank sum
test (Mann and Whitney 1947) is below 2.5 % on each side. It holds for any continuous distribution
that only shifts, at any number of launches. Why not the percentile bootstrap of the two medians:
at 6 launches a side it claims more than it knows (docs/explanation/method.md). With several
allocations the bounds are the wider, on each side, of these and of the bootstrap over allocations,
then rounds, of each campaign.
"""

from __future__ import annotations

import functools
import math

from mpigraft.analysis.equivalence import LEAST_ROUNDS
from mpigraft.analysis.multiplicity import sign_patterns
from mpigraft.analysis.statistics import bootstrap
from mpigraft.core.arrays import Bools, Floats, Ints, np

TAIL = (1 - bootstrap.LEVEL) / 2
COUNTED = 400  # pairs of launches up to which ranks are counted; the normal limit holds for more


def intervals(
    new: Floats, old: Floats, allocations: tuple[Ints, Ints], seed: int
) -> tuple[Floats, Floats]:
    """Bound each column's median of `new` less that of `old`: (rounds, cells) of logarithms, NaN
    where a round lacks a cell. `allocations` numbers those of the rounds of `new` and of `old`.
    NaN where there are too few rounds for an interval."""
    low, high = np.full((2, new.shape[1]), np.nan)
    gaps = np.isnan(np.concatenate([new, old]))
    for pattern in {tuple(column) for column in gaps.T.tolist()}:
        columns = (gaps == np.array(pattern)[:, None]).all(axis=0)
        present = ~np.array(pattern, dtype=bool)
        rows, others = present[: len(new)], present[len(new) :]
        arms = new[np.ix_(rows, columns)], old[np.ix_(others, columns)]
        places = allocations[0][rows], allocations[1][others]
        low[columns], high[columns] = _interval(*arms, places, seed)
    return low, high


def _interval(
    new: Floats, old: Floats, allocations: tuple[Ints, Ints], seed: int
) -> tuple[Floats, Floats]:
    rank = rank_of(len(new), len(old))
    if not rank:
        nothing = np.full(new.shape[1], np.nan)
        return nothing, nothing
    differences = np.sort((new[:, None] - old).reshape(-1, new.shape[1]), axis=0)
    middle = np.median(new, axis=0) - np.median(old, axis=0)
    low = np.minimum(differences[rank - 1], middle)
    high = np.maximum(differences[-rank], middle)
    if max(len(np.unique(places)) for places in allocations) > 1:
        drawn = _drawn(new, allocations[0], seed) - _drawn(old, allocations[1], seed + 1)
        below, above = np.quantile(drawn, [TAIL, 1 - TAIL], axis=0)
        low, high = np.minimum(low, below), np.maximum(high, above)
    return low, high


def _drawn(logs: Floats, allocations: Ints, seed: int) -> Floats:
    """Draw medians, of allocations and then of rounds: (resamples, cells). With A allocations they
    vary too little by (A - 1) / A, so they are stretched from the median by its root."""
    number = len(np.unique(allocations))
    middle = np.median(logs, axis=0)
    stretch = math.sqrt(number / (number - 1)) if number > 1 else 1.0
    drawn: Floats = middle + (bootstrap.drawn_medians(logs, allocations, seed) - middle) * stretch
    return drawn


@functools.lru_cache(maxsize=64)
def rank_of(first: int, second: int) -> int:
    """Find that k: P(U < k) <= 2.5 % for the rank sum of so many launches; 0 if there is none."""
    if first * second > COUNTED:
        middle, spread = first * second / 2, first * second * (first + second + 1) / 12
        return max(math.floor(middle - bootstrap.Z_95 * math.sqrt(spread)), 0)
    ways, total = _ways(first, second), math.comb(first + second, first)
    below, rank = 0, 0
    while below + ways[rank] <= TAIL * total:
        below += ways[rank]
        rank += 1
    return rank


def _ways(first: int, second: int) -> list[int]:
    """Count the orders of two samples by the number of pairs in which the first is ahead: the
    coefficients of the Gaussian binomial."""
    ways = [1] + [0] * (first * second)
    for step in range(1, first + 1):
        for place in range(len(ways) - 1, second + step - 1, -1):
            ways[place] -= ways[place - second - step]
        for place in range(step, len(ways)):
            ways[place] += ways[place - step]
    return ways


def joint_bounds(new: Floats, old: Floats, seed: int) -> tuple[Floats, Floats]:
    """Bound each column's shift, for all columns at once in 95 % of campaigns: the difference of
    the means +- c e, with c the 95 % quantile of the largest |t| when the signs of the residuals
    of whole rounds are flipped, as in `analysis.equivalence`. Infinite below LEAST_ROUNDS."""
    counts = [(~np.isnan(arm)).sum(axis=0) for arm in (new, old)]
    known = np.minimum(*counts) >= LEAST_ROUNDS
    low, high = np.full(len(known), -np.inf), np.full(len(known), np.inf)
    if not known.any():
        return low, high
    arms = (new[:, known], old[:, known])
    means = np.nanmean(arms[0], axis=0) - np.nanmean(arms[1], axis=0)
    errors, quantile = _greatest_t(arms, seed)
    middle = np.nanmedian(arms[0], axis=0) - np.nanmedian(arms[1], axis=0)
    low[known] = np.minimum(means - quantile * errors, middle)
    high[known] = np.maximum(means + quantile * errors, middle)
    return low, high


def _greatest_t(arms: tuple[Floats, ...], seed: int) -> tuple[Floats, float]:
    """Find the standard error of each column's difference of means, and the quantile of the
    greatest |t| of a column over the patterns of signs."""
    patterns = sign_patterns(sum(map(len, arms)), seed)
    parts = np.split(patterns, [len(arms[0])], axis=1)
    width = arms[0].shape[1]
    difference, flipped = np.zeros((2, len(patterns), width))
    errors = np.zeros(width)
    for arm, signs, side in zip(arms, parts, (1.0, -1.0), strict=True):
        counts = (~np.isnan(arm)).sum(axis=0)
        residuals = np.nan_to_num(arm - np.nanmean(arm, axis=0))
        squares = (residuals**2).sum(axis=0)
        sums = signs @ residuals
        difference = difference + side * sums / counts
        errors = errors + squares / counts / (counts - 1)
        flipped = flipped + (squares - sums**2 / counts) / counts / (counts - 1)
    deviations: Floats = np.sqrt(errors)
    varying = deviations > 0
    if not varying.any():
        return deviations, 0.0
    remainders = np.maximum(flipped[:, varying], 1e-12 * deviations[varying] ** 2)
    greatest = (np.abs(difference[:, varying]) / np.sqrt(remainders)).max(axis=1)
    return deviations, float(np.quantile(greatest, bootstrap.LEVEL, method="higher"))


def complete_rounds(logs: Floats) -> tuple[Bools, Bools]:
    """Mark the sizes that have every round which any size has, and the rounds that have all of
    these."""
    counts = (~np.isnan(logs)).sum(axis=0)
    sizes: Bools = np.equal(counts, counts.max())
    rounds: Bools = np.all(~np.isnan(logs[:, sizes]), axis=1)
    return sizes, rounds
