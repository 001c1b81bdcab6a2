"""What a value cannot show: steps of the clock and digits that were not printed.

A value that moves in steps of r lies within r of the truth: by r / 2 where a figure was rounded,
by r where a clock was read at both ends of what it timed. Rounds do not mend it, since a constant
is rounded the same way each time: two constants a step apart have an interval of width zero. So
the worst case is taken and not a root of squares. In logarithms a value v is off by at most
log1p(r / v), a ratio by the sum of both sides', a mean over sizes by the mean of theirs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from mpigraft.model import Verdict

if TYPE_CHECKING:
    from mpigraft.stats import Floats

TIE = 1e-9  # 0.11 - 0.10 is a little more than 0.01 in binary


def step(value: float, resolution: float | None) -> float:
    """How far off the truth a value may be, as a logarithm; 0 where its resolution is unknown."""
    return math.log1p(resolution / value) if resolution else 0.0


def steps_of(steps: Floats) -> Floats:
    """Of each size, the median over (blocks, sizes); 0 where there is no value."""
    import numpy as np

    from mpigraft.stats import filled

    here = filled(steps)
    found: Floats = np.zeros(steps.shape[1])
    found[here] = np.nanmedian(steps[:, here], axis=0)
    return found


def narrowed(margin: float, limit: float, off: float) -> tuple[float, float]:
    """The margin and the limit of a winner for intervals that no rounds make narrower than `off`
    to each side: what is left of the one, and what the other comes to."""
    return math.expm1(math.log1p(margin) - off), math.expm1(math.log1p(limit) + off)


def resolved(verdict: Verdict, difference: float, one: float) -> Verdict:
    """The verdict on a cell whose medians differ by `difference`, as a logarithm. Medians within
    `one` step of each other are alike as far as anyone can see."""
    if verdict in (Verdict.FASTER, Verdict.SLOWER) and abs(difference) <= one * (1 + TIE):
        return Verdict.INCONCLUSIVE
    return verdict
