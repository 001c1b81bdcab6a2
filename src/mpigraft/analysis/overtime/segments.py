"""Find the campaigns at which a line of results changed its level.

Every stretch of campaigns, from any one to any other, is compared with the rest of its segment: t
is the difference of the two means over its standard error, with the spread that is left in both.
The stretch of the greatest |t| (circular binary segmentation: Olshen, Venkatraman, Lucito and
Wigler, Biostatistics 5, 2004) is a change if its p, times the number of stretches and the number of
lines of the machine, is at most LEVEL, and if the levels differ by the margin. Then the three parts
are searched in the same way. So a week that was slow is found as well as an update that lasts.

The spread is never taken as less than what launches of one campaign vary by: two campaigns that
agree by chance do not make a third one a change.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from mpigraft.core.arrays import Floats, np

LEVEL = 0.01  # chance of any false change among the lines of a machine
MIN_CAMPAIGNS = 4  # campaigns of a segment: with fewer, nothing is known of their spread
MARGIN = 0.03
TRIED = 200  # stretches of a segment
ENOUGH = 20  # campaigns from which on their skewness is estimated
ROUNDING = 1e-9
SHORTEST = 2  # campaigns with a level of their own at an end; one more anywhere else


class LevelStep(NamedTuple):
    """A change of level."""

    place: int  # of the first campaign with the new level
    shift: float  # logarithm of the new level over the old one
    p: float  # corrected for stretches and lines


def steps(levels: Sequence[float], errors: Sequence[float], lines: int = 1) -> list[LevelStep]:
    """Find the changes of a line: `levels` are logarithms, one for each campaign in the order of
    their dates, `errors` their standard errors by the launches. `lines` is how many are tested."""
    values, variances = np.array(levels), np.array(errors) ** 2
    changes = _search(values, variances, 0, len(values), lines)
    edges = [0, *sorted(changes), len(values)]
    results = []
    for place in range(1, len(edges) - 1):
        before = values[edges[place - 1] : edges[place]].mean()
        after = values[edges[place] : edges[place + 1]].mean()
        shift = float(after - before)
        if abs(shift) > math.log1p(MARGIN):
            results.append(LevelStep(edges[place], shift, changes[edges[place]]))
    return results


def _search(
    values: Floats, variances: Floats, begin: int, end: int, lines: int
) -> dict[int, float]:
    """Find the edges of all stretches that differ, with their p."""
    if end - begin < MIN_CAMPAIGNS:
        return {}
    stretch = _greatest(values[begin:end], variances[begin:end], lines)
    if stretch is None:
        return {}
    first, last, p = stretch
    edges = [begin, begin + first, begin + last, end]
    inner = [edge for edge in edges[1:3] if begin < edge < end]
    changes = dict.fromkeys(inner, p)
    for low, high in zip([begin, *inner], [*inner, end], strict=True):
        changes |= _search(values, variances, low, high, lines)
    return changes


def _greatest(values: Floats, variances: Floats, lines: int) -> tuple[int, int, float] | None:
    """Find the stretch [first, last) of the greatest |t| that is a change, and its p. None: there
    is none."""
    count = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values - values.mean())])
    first, last = np.triu_indices(count + 1, 1)
    inside = last - first
    outside = count - inside
    ends = (first == 0) | (last == count)
    part = (np.minimum(inside, outside) >= SHORTEST) & (ends | (inside > SHORTEST))
    first, last, inside, outside = first[part], last[part], inside[part], outside[part]
    total = sums[last] - sums[first]  # of the centred values, whose sum over all is 0
    between = total**2 * (1 / inside + 1 / outside)
    whole = float(((values - values.mean()) ** 2).sum())
    rest = np.maximum(whole - between, (count - 2) * float(variances.mean()))
    squares = between * (count - 2) / np.maximum(rest, 1e-18)
    shifts = total * (1 / inside + 1 / outside)
    for best in np.argsort(-squares, kind="stable")[:TRIED].tolist():
        tried = lines * count * (count - 1) / 2
        deviate = normal_deviate(math.sqrt(float(squares[best])), count - 2)
        if tail(deviate) * tried > LEVEL:
            return None
        shift, place = float(shifts[best]), slice(int(first[best]), int(last[best]))
        if abs(shift) <= math.log1p(MARGIN) or not _is_level(values, place, shift):
            continue
        p = tail(corrected(deviate, values, place, shift)) * tried
        if p <= LEVEL:
            return place.start, place.stop, p
    return None


def corrected(deviate: float, values: Floats, place: slice, shift: float) -> float:
    """Lessen a deviate where levels are skewed towards the stretch, by the first term of Cornish
    and Fisher: the mean of three campaigns of a skewed law is far from normal. With fewer than
    ENOUGH campaigns the skewness is not known, and the deviate stays."""
    count = len(values)
    if count < ENOUGH:
        return deviate
    residuals = values - np.delete(values, place).mean()
    residuals[place] = values[place] - values[place].mean()
    spread = math.sqrt(float((residuals**2).mean()))
    if spread == 0:
        return deviate
    inside: int = place.stop - place.start
    outside = count - inside
    skew = float((residuals**3).mean()) / spread**3 * math.copysign(1.0, shift)
    skew *= (1 / inside**2 - 1 / outside**2) / math.sqrt(1 / inside + 1 / outside) ** 3 / 6
    if skew < ROUNDING:
        return deviate
    return (math.sqrt(1 + 4 * skew * (deviate + skew)) - 1) / (2 * skew)


def _is_level(values: Floats, place: slice, shift: float) -> bool:
    """Return whether most campaigns of both sides are on their own side of the middle: one odd
    night moves a mean and is no level."""
    inside, outside = values[place], np.delete(values, place)
    middle = (np.median(inside) + np.median(outside)) / 2
    sign = math.copysign(1.0, shift)
    low = np.quantile(sign * (inside - middle), 1 / 4, method="lower")
    high = np.quantile(sign * (outside - middle), 3 / 4, method="higher")
    return bool(low > abs(shift) / 4 and high < 0)


def normal_deviate(t: float, free: int) -> float:
    """Return the normal deviate that is as unlikely as this t, by Wallace (Annals of Mathematical
    Statistics 30, 1959). It is a little too small in the far tail: that errs on the safe side."""
    if free < 1:
        return 0.0
    scale = (8 * free + 1) / (8 * free + 3)
    return scale * math.sqrt(free * math.log1p(t * t / free))


def tail(deviate: float) -> float:
    """Return the chance of as great a deviate, on either side."""
    return 2 * NormalDist().cdf(-deviate)
