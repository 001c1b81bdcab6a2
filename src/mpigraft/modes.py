"""Two groups: a configuration whose launches come out in one of two states.

A gap between a curve's launches, in order of their values, is held against the values on each
side of it alone: of n gaps that come from values spread evenly, the first takes more than the
share g of their sum with the chance (1 - g)^(n - 1) (Pyke, Spacings, JRSS B 27, 1965). The
greater of both sides counts, times the number of gaps that could part two groups. Even values
stand for all that have one peak, since these come nearest to two (Hartigan and Hartigan, The Dip
Test of Unimodality, Annals of Statistics 13, 1985). Held against all values at once, as textbooks
have it, a gap is found twice as often, and so is one between quiet launches and a few disturbed
ones that happen to be near each other: in one campaign of six. The dip itself finds no group of
fewer than a quarter of twenty.

Only gaps that leave LEAST_LAUNCHES and SHARE of them on either side are looked at. A campaign has
many curves, so the chance is multiplied by their number too (Bonferroni).
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import median

from mpigraft.drift import Curve, Launch, curves
from mpigraft.model import METRICS, Better, Finding, Level, ValueRow

LEAST_ROUNDS = 8  # of fewer, only launches that differ by a hair make a group
LEAST_LAUNCHES = 3  # in a group
SHARE = 0.2  # of all launches, in a group
CHANCE = 0.05  # of a false finding where all is even; of values with a peak a tenth of it
LEAST = 0.1  # how far apart the groups' medians are, a fraction
STEPS = 3  # a gap of fewer of the smallest steps between values is of their rounding
SHOWN = 4  # curves of a configuration
ROUNDS = 12  # of a group, that a finding numbers


def findings(values: Iterable[ValueRow], labels: Mapping[str, str]) -> tuple[Finding, ...]:
    """A warning for each configuration with such a curve, those furthest apart by name.

    A curve is one benchmark on one layout in one allocation, its sizes taken together, each launch
    a value of its own, the baseline's two of a round as well.
    """
    every = curves(values)
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for curve, launches in every.items():
        if len({number for number, _ in launches}) < LEAST_ROUNDS:
            continue
        chance, border = parted(list(launches.values()))
        if chance * len(every) >= CHANCE:
            continue
        low = {launch: x for launch, x in launches.items() if x < border}
        high = {launch: x for launch, x in launches.items() if x > border}
        apart = median(high.values()) - median(low.values())
        if apart > math.log(1 + LEAST):
            slow = high if METRICS[curve.metric].better is Better.LOWER else low
            found[curve.configuration].append((apart, _told(curve, launches, slow, apart)))
    return tuple(
        Finding(
            Level.WARNING,
            "two-groups",
            f"launches of {labels.get(who, who)} fall into two groups: {_listed(told)}",
            "each launch takes one of two states: a place, a route, a clock, a protocol; the "
            "median is of one of them, and which one may change with the next campaign",
            "see what those rounds have in common, and what other configurations did in them",
        )
        for who, told in sorted(found.items())
    )


def parted(values: Sequence[float]) -> tuple[float, float]:
    """The chance of a gap as telling as the best that could part two groups, and its middle."""
    ordered = sorted(values)
    count = len(ordered)
    least = max(LEAST_LAUNCHES, math.ceil(SHARE * count))
    gaps = [b - a for a, b in pairwise(ordered)]
    floor = STEPS * min((x for x in gaps if x > 0), default=math.inf)
    chances = {
        place: max(_beside(gaps[place], gaps[:place]), _beside(gaps[place], gaps[place + 1 :]))
        for place in range(least - 1, count - least)
        if gaps[place] >= floor
    }
    if not chances:
        return 1.0, math.nan
    place = min(chances, key=chances.__getitem__)
    chance = (count - 2 * least + 1) * chances[place]
    return min(chance, 1.0), (ordered[place] + ordered[place + 1]) / 2


def _beside(gap: float, inner: Sequence[float]) -> float:
    """The chance that the first of len(inner) + 1 gaps takes so much of their sum."""
    return float((1 - gap / (gap + sum(inner))) ** len(inner))


def _told(
    curve: Curve, launches: Mapping[Launch, float], slow: Mapping[Launch, float], apart: float
) -> str:
    rounds = sorted({number for number, _ in slow})
    numbers = ", ".join(map(str, rounds[:ROUNDS]))
    more = f" and {len(rounds) - ROUNDS} more" if len(rounds) > ROUNDS else ""
    return (
        f"{curve.benchmark} on {curve.layout}, {len(slow)} of {len(launches)} launches "
        f"{math.exp(apart):.2f} times slower (rounds {numbers}{more})"
    )


def _listed(told: Sequence[tuple[float, str]]) -> str:
    words = [text for _, text in sorted(told, reverse=True)]
    more = f"; and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return "; ".join(words[:SHOWN]) + more
