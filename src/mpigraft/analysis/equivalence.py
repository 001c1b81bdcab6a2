"""Find the sizes that keep a curve from being equivalent, though it is when pooled.

A pooled ratio of 1.02 may be 23 sizes at 1.02, or four at 1.10 and the others at 1.00. So each
size gets bounds that hold for all sizes at once, and these must be within GROUP times the margin.
The mean of a group of sizes, neighbours or not, differs by no more than that one of them which
differs most, so bounds on every size bound every group.

The bounds are mean +- c e: e is the standard error of a size's mean, and c the 95 % quantile of
the largest |t| over the sizes when the signs of whole rounds of the residuals are flipped (the
wild bootstrap of Wu, Annals of Statistics 14, 1986, with the single-step max-T of Westfall and
Young, Resampling-Based Multiple Testing, 1993). Sizes of a launch move together, and every
flip keeps that.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from mpigraft.analysis.multiplicity import sign_patterns
from mpigraft.analysis.statistics.bootstrap import LEVEL
from mpigraft.core.arrays import Floats, Ints, np
from mpigraft.core.model import JointBound

GROUP = 2.0  # margins that a size of an equivalent curve may differ by
LEAST_ROUNDS = 6  # of a size: with fewer, its error says little


def joint_bounds(logs: Floats, allocations: Ints, seed: int) -> tuple[Floats, Floats]:
    """Bound each column's log ratio, for all columns at once in 95 % of campaigns.

    `logs` is (rounds, sizes), NaN where a round lacks a size; `allocations` numbers the allocation
    of each round. Bounds of columns of fewer than LEAST_ROUNDS rounds are infinite.
    """
    counts = (~np.isnan(logs)).sum(axis=0)
    known = counts >= LEAST_ROUNDS
    low, high = np.full(len(counts), -np.inf), np.full(len(counts), np.inf)
    logs, counts = logs[:, known], counts[known]
    means = np.nanmean(logs, axis=0)
    residuals = np.nan_to_num(logs - means)
    errors = np.maximum(
        np.sqrt((residuals**2).sum(axis=0) / (counts - 1) / counts),
        _between(residuals, counts, allocations),
    )
    half = _greatest_t(residuals, counts, seed) * errors
    middles = np.nanmedian(logs, axis=0)
    low[known] = np.minimum(means - half, middles)
    high[known] = np.maximum(means + half, middles)
    return low, high


def widest_bound(bounds: tuple[Floats, Floats], sizes: Sequence[int], margin: float) -> JointBound:
    """Find the size that may differ most, and the sizes that keep a curve from being equivalent:
    their bounds reach beyond GROUP margins, or are beyond one margin altogether.

    `bounds` are those of `joint_bounds`. The ratio is None where they are infinite, or too great
    for a number: c has no limit if the residuals of a few rounds are all equally great.
    """
    low, high = bounds
    edge, limit = math.log1p(margin), math.log1p(GROUP * margin)
    reach = np.maximum(high, -low)
    beyond = (reach > limit) | (np.maximum(low, -high) > edge)
    worst = int(reach.argmax())
    known = reach[worst] < math.log(sys.float_info.max)
    return JointBound(
        size=sizes[worst],
        low=math.exp(low[worst]) if known else None,
        high=math.exp(high[worst]) if known else None,
        limit=GROUP * margin,
        beyond=tuple(size for size, out in zip(sizes, beyond.tolist(), strict=True) if out),
    )


def _greatest_t(residuals: Floats, counts: Ints, seed: int) -> float:
    """Find the LEVEL quantile of the greatest |t| of a column over all patterns of signs."""
    roots = np.sqrt((residuals**2).sum(axis=0))
    varying = roots > 0
    if not varying.any():
        return 0.0
    patterns = sign_patterns(len(residuals), seed)
    shares = (patterns @ (residuals[:, varying] / roots[varying])) ** 2 / counts[varying]
    remainders = np.maximum(1 - shares, 1e-12)  # 0 if all residuals of a column are equally great
    squares = shares * (counts[varying] - 1) / remainders
    return float(np.quantile(np.sqrt(squares.max(axis=1)), LEVEL, method="higher"))


def _between(residuals: Floats, counts: Ints, allocations: Ints) -> Floats:
    """Compute the standard error of each column's mean from its A allocations, which vary too
    little by (A - 1) / A (Liang and Zeger, Biometrika 73, 1986); 0 for a single one."""
    names = np.unique(allocations)
    if len(names) == 1:
        return np.zeros(len(counts))
    sums = np.stack([residuals[allocations == name].sum(axis=0) for name in names])
    errors: Floats = np.sqrt((sums**2).sum(axis=0) * len(names) / (len(names) - 1)) / counts
    return errors
