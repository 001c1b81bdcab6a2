"""The arithmetic under a comparison. Arrays are (rounds, cells) of log ratios; no NaN unless said.

Why these intervals: at 6 rounds the percentile bootstrap of a median covers the truth 91 to 94
times in 100, not 95 (docs/method.md has the table), so it is not used alone. Fewer than 12
rounds of one allocation take Student's t on the logarithms, which held 94 to 96 % with normal,
heavy-tailed, skewed and bimodal launches. From 12 rounds on the order statistics of the median
need no shape at all and are as short. Several allocations add the bootstrap over allocations,
then rounds: values of one allocation share its nodes and its hour.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

LEVEL = 0.95
EXACT_FROM = 12  # rounds from which order statistics are about as short as Student's t
RESAMPLES = 1000
Z_95, Z_POWER = 1.960, 0.842  # normal quantiles: 95 % two-sided, and a chance of 80 %
MOST_ROUNDS = 10_000  # more than that decides nothing for anyone

# Student's t, 97.5 %, for 1 to 10 degrees of freedom.
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


def interval(logs: Floats, allocations: Ints, seed: int = 0) -> tuple[Floats, Floats]:
    """Bounds of the 95 % interval of each column's median log ratio.

    `allocations` numbers the allocation of each round. One round has no interval: NaN.
    """
    import numpy as np

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


def student(logs: Floats) -> tuple[Floats, Floats]:
    """Student's t interval of the mean of each column, for 2 to 11 rounds."""
    rounds = logs.shape[0]
    half = T_975[rounds - 2] * logs.std(axis=0, ddof=1) / math.sqrt(rounds)
    middle = logs.mean(axis=0)
    return middle - half, middle + half


def order_statistics(logs: Floats) -> tuple[Floats, Floats]:
    """The k-th smallest and k-th largest of each column, with the greatest k for which they
    hold the median in at least 95 % of samples of any continuous distribution (sign test)."""
    import numpy as np

    rounds = logs.shape[0]
    rank = median_rank(rounds)
    ordered = np.sort(logs, axis=0)
    return ordered[rank - 1], ordered[rounds - rank]


def median_rank(rounds: int) -> int:
    """That k: P(Binomial(rounds, 1/2) < k) <= 2.5 %. 6 rounds are the fewest that have one."""
    below, rank = 0, 0
    while 2 * (below + math.comb(rounds, rank)) <= (1 - LEVEL) * 2**rounds:
        below += math.comb(rounds, rank)
        rank += 1
    return rank


def bootstrap(logs: Floats, allocations: Ints, seed: int) -> tuple[Floats, Floats]:
    """Percentile interval of the median, resampled over allocations, then over the rounds of
    each. With A allocations the resampled means vary too little by (A - 1) / A, so bounds are
    stretched by its root: else 2 or 3 allocations look far too sure of themselves."""
    import numpy as np

    counts = _resampled(tuple(allocations.tolist()), seed)
    medians = np.stack([_weighted_medians(logs[:, k], counts) for k in range(logs.shape[1])], 1)
    below, above = np.quantile(medians, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    middle = np.median(logs, axis=0)
    number = len(np.unique(allocations))
    stretch = math.sqrt(number / (number - 1))
    return middle - (middle - below) * stretch, middle + (above - middle) * stretch


@functools.lru_cache(maxsize=8)
def _resampled(allocations: tuple[int, ...], seed: int) -> NDArray[np.int16]:
    """(RESAMPLES, rounds): how often each round was drawn, allocations first."""
    import numpy as np

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
    """Median of `values`, each taken as often as a row of `counts` says; one per row."""
    import numpy as np

    order = np.argsort(values)
    ordered = values[order]
    passed = np.cumsum(counts[:, order], axis=1, dtype=np.int16)
    half = passed[:, -1:] / 2
    lower = np.argmax(passed >= half, axis=1)
    upper = np.argmax(passed > half, axis=1)
    middles: Floats = (ordered[lower] + ordered[upper]) / 2
    return middles


def medians(logs: Floats) -> Floats:
    """Median of each column over the rounds that it has; at least one."""
    import numpy as np

    middles: Floats = (np.nanmedian if np.isnan(logs).any() else np.median)(logs, axis=0)
    return middles


def deviations(logs: Floats) -> Floats:
    """Standard deviation of each column over the rounds that it has; NaN for a single one."""
    import numpy as np

    counts = (~np.isnan(logs)).sum(axis=0)
    free = np.maximum(counts - 1, 0)
    squares = np.nansum((logs - np.nansum(logs, axis=0) / counts) ** 2, axis=0)
    variances = np.divide(squares, free, out=np.full(len(free), np.nan), where=free > 0)
    roots: Floats = np.sqrt(variances)
    return roots


def filled(logs: Floats) -> NDArray[np.bool_]:
    """Which columns have any value."""
    import numpy as np

    there: NDArray[np.bool_] = np.any(~np.isnan(logs), axis=0)
    return there


def rounds_for(spread: float, gap: float, power: bool = True) -> int | None:
    """Rounds after which an interval of log ratios with standard deviation `spread` is shorter
    than `gap` to each side; with `power` in 80 % of campaigns rather than on average. Normal
    approximation: (z spread / gap)^2. None when that says nothing."""
    if gap <= 0 or not math.isfinite(spread):
        return None
    z = Z_95 + (Z_POWER if power else 0.0)
    rounds = (z * spread / gap) ** 2
    return math.ceil(rounds) if rounds <= MOST_ROUNDS else None
