"""Bound the error of coarse values: steps of the clock, and digits that were not printed.

A value in steps of r is within r of the truth: within r / 2 if a figure was rounded, within r if
a clock was read at both ends of what it timed. More rounds do not help, because a constant is
rounded the same way each time: two constants a step apart have an interval of width zero. So the
worst case is taken and not a root of squares. In logarithms a value v is off by at most
log1p(r / v), a ratio by the sum of both sides', a mean over sizes by the mean of theirs.
"""

from __future__ import annotations

import math

from mpigraft.core.arrays import Floats, np
from mpigraft.core.model import Verdict

TIE = 1e-9  # 0.11 - 0.10 is a little more than 0.01 in binary


def step(value: float, resolution: float | None) -> float:
    """Bound how far off a value may be, as a logarithm; 0 where its resolution is unknown."""
    return math.log1p(resolution / value) if resolution else 0.0


def steps_of(steps: Floats) -> Floats:
    """Take each size's median of (blocks, sizes); 0 where there is no value."""
    from mpigraft.analysis.statistics.bootstrap import filled

    present = filled(steps)
    typical: Floats = np.zeros(steps.shape[1])
    typical[present] = np.nanmedian(steps[:, present], axis=0)
    return typical


def narrowed(margin: float, limit: float, off: float) -> tuple[float, float]:
    """Narrow the margin and widen the limit of a winner for intervals that no number of rounds
    makes narrower than `off` to each side."""
    return math.expm1(math.log1p(margin) - off), math.expm1(math.log1p(limit) + off)


def resolved(verdict: Verdict, difference: float, one_step: float) -> Verdict:
    """Withhold the verdict on a cell whose medians differ by no more than `one_step`, both as
    logarithms: the values cannot show such a difference."""
    if verdict in (Verdict.FASTER, Verdict.SLOWER) and abs(difference) <= one_step * (1 + TIE):
        return Verdict.INCONCLUSIVE
    return verdict
