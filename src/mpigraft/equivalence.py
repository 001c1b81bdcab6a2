"""Whether a curve that is equivalent as a whole hides sizes that are not.

A pooled ratio of 1.02 may be 23 sizes at 1.02, or four at 1.10 and the others at 1.00. So each
size gets bounds that hold for all sizes at once, and these have to lie within GROUP times the
margin. The mean of a group of sizes, neighbours or not, differs by no more than the size of it
that differs most, so what bounds every size bounds every group of them.

The bounds are mean +- c e: e is the standard error of a size's mean, and c the 95 % quantile of
the largest |t| over the sizes when the signs of whole rounds of the residuals are flipped (the
wild bootstrap of Wu, Annals of Statistics 14, 1986, with the single-step max-T of Westfall and
Young, Resampling-Based Multiple Testing, 1993). Sizes of a launch move together, and so they do
in every flip.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpigraft.model import JointBound
from mpigraft.multiplicity import sign_patterns
from mpigraft.stats import LEVEL

if TYPE_CHECKING:
    from mpigraft.stats import Floats, Ints

GROUP = 2.0  # margins that a size of an equivalent curve may differ by
LEAST_ROUNDS = 6  # of a size: with fewer, its error says little


def joint_bounds(logs: Floats, allocations: Ints, seed: int) -> tuple[Floats, Floats]:
    """Bounds of each column's log ratio that hold for all columns at once in 95 % of campaigns.

    `logs` is (rounds, sizes), NaN where a round lacks a size; `allocations` numbers the allocation
    of each round. Bounds of columns of fewer than LEAST_ROUNDS rounds are infinite.
    """
    import numpy as np

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
    """The bounds of the size that may differ most, and the sizes that keep a curve from being
    equivalent: theirs reach beyond GROUP margins, or lie beyond one of them altogether.

    `bounds` are those of `joint_bounds`; where they are infinite there is nothing to show, nor
    where no number holds their ratio: of few rounds that all lie as far off, c knows no end.
    """
    import numpy as np

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
    """The LEVEL quantile of the greatest |t| of a column over all patterns of signs."""
    import numpy as np

    roots = np.sqrt((residuals**2).sum(axis=0))
    here = roots > 0
    if not here.any():
        return 0.0
    patterns = sign_patterns(len(residuals), seed)
    shares = (patterns @ (residuals[:, here] / roots[here])) ** 2 / counts[here]
    rests = np.maximum(1 - shares, 1e-12)  # 0 where every residual of a column is as great
    squares = shares * (counts[here] - 1) / rests
    return float(np.quantile(np.sqrt(squares.max(axis=1)), LEVEL, method="higher"))


def _between(residuals: Floats, counts: Ints, allocations: Ints) -> Floats:
    """Standard error of each column's mean by what its allocations differ in, of which 2 or 3 vary
    too little by (A - 1) / A (Liang and Zeger, Biometrika 73, 1986); 0 of a single one."""
    import numpy as np

    names = np.unique(allocations)
    if len(names) == 1:
        return np.zeros(len(counts))
    sums = np.stack([residuals[allocations == name].sum(axis=0) for name in names])
    errors: Floats = np.sqrt((sums**2).sum(axis=0) * len(names) / (len(names) - 1)) / counts
    return errors
