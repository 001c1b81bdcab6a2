"""Changes of a line's level, stretch by stretch in plain Python: what `segments` has to find."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import NormalDist, fmean, median

Change = tuple[int, float, float]  # place, shift, p


def changes(levels: Sequence[float], errors: Sequence[float], lines: int) -> list[Change]:
    edges: dict[int, float] = {}
    _split(list(levels), list(errors), 0, lines, edges)
    places = [0, *sorted(edges), len(levels)]
    made = []
    for before, place, after in zip(places, places[1:], places[2:], strict=False):
        shift = fmean(levels[place:after]) - fmean(levels[before:place])
        if abs(shift) > math.log(1.03):
            made.append((place, shift, edges[place]))
    return made


def _split(
    levels: list[float], errors: list[float], offset: int, lines: int, edges: dict[int, float]
) -> None:
    if len(levels) < 4:
        return
    found = _best(levels, errors, lines)
    if found is None:
        return
    first, last, p = found
    inner = [edge for edge in (first, last) if 0 < edge < len(levels)]
    edges.update({offset + edge: p for edge in inner})
    bounds = [0, *inner, len(levels)]
    for low, high in pairwise(bounds):
        _split(levels[low:high], errors[low:high], offset + low, lines, edges)


def _best(levels: list[float], errors: list[float], lines: int) -> tuple[int, int, float] | None:
    n = len(levels)
    tried = []
    for first in range(n):
        for last in range(first + 1, n + 1):
            k = last - first
            at_end = first == 0 or last == n
            if min(k, n - k) >= 2 and (at_end or k >= 3):
                tried.append((-_t(levels, errors, first, last), first, last))
    for negative, first, last in sorted(tried)[:200]:
        inside, outside = levels[first:last], levels[:first] + levels[last:]
        shift = fmean(inside) - fmean(outside)
        free = n - 2
        scale = (8 * free + 1) / (8 * free + 3)
        deviate = scale * math.sqrt(free * math.log(1 + negative * negative / free))
        if _p(deviate, lines, n) > 0.01:
            return None
        if abs(shift) <= math.log(1.03) or not _two_levels(inside, outside, shift):
            continue
        p = _p(_corrected(deviate, levels, first, last), lines, n)
        if p <= 0.01:
            return first, last, p
    return None


def _p(deviate: float, lines: int, n: int) -> float:
    return (
        2
        * (1 - NormalDist().cdf(deviate) if deviate < 5 else NormalDist().cdf(-deviate))
        * (lines * n * (n - 1) / 2)
    )


def _t(levels: list[float], errors: list[float], first: int, last: int) -> float:
    n = len(levels)
    inside, outside = levels[first:last], levels[:first] + levels[last:]
    means = fmean(inside), fmean(outside)
    rest = sum((x - means[0]) ** 2 for x in inside) + sum((x - means[1]) ** 2 for x in outside)
    rest = max(rest, (n - 2) * fmean([e * e for e in errors]))
    variance = rest / (n - 2) * (1 / len(inside) + 1 / len(outside))
    return abs(means[0] - means[1]) / math.sqrt(variance)


def _two_levels(inside: list[float], outside: list[float], shift: float) -> bool:
    middle = (median(inside) + median(outside)) / 2
    sign = 1 if shift > 0 else -1
    own = sorted(sign * (x - middle) for x in inside)
    others = sorted(sign * (x - middle) for x in outside)
    low = own[math.floor((len(own) - 1) / 4)]
    high = others[math.ceil((len(others) - 1) * 3 / 4)]
    return low > abs(shift) / 4 and high < 0


def _corrected(deviate: float, levels: list[float], first: int, last: int) -> float:
    n, k = len(levels), last - first
    if n < 20:
        return deviate
    inside, outside = levels[first:last], levels[:first] + levels[last:]
    middle = [fmean(inside) if first <= x < last else fmean(outside) for x in range(n)]
    rest = [x - m for x, m in zip(levels, middle, strict=True)]
    variance = fmean([x * x for x in rest])
    m = n - k
    skewness = fmean([x**3 for x in rest]) / variance**1.5
    of_difference = skewness * (1 / k**2 - 1 / m**2) / (1 / k + 1 / m) ** 1.5
    g = of_difference / 6 * (1 if fmean(inside) > fmean(outside) else -1)
    if g < 1e-9:
        return deviate
    low, high = 0.0, deviate  # of z + g (z^2 - 1) = deviate
    for _ in range(200):
        z = (low + high) / 2
        low, high = (z, high) if z + g * (z * z - 1) < deviate else (low, z)
    return low
