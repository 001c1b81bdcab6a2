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

Where other configurations were launched in the same rounds, each launch counts twice: as it is, and
as what is left of it after the round's own level, the median of the others' launches. What two
groups of launches differ in is then held against what the others did in the same rounds: if they
moved along, it is the machine that took two states, and no configuration is blamed for that.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

from mpigraft.drift import Curve, Launch, curves
from mpigraft.model import METRICS, Better, Finding, Level, ValueRow

LEAST_ROUNDS = 8  # of fewer, only launches that differ by a hair make a group
LEAST_LAUNCHES = 3  # in a group
SHARE = 0.2  # of all launches, in a group
CHANCE = 0.05  # of a false finding where all is even; of values with a peak a tenth of it
LEAST = 0.1  # how far apart the groups' medians are, a fraction
STEPS = 3  # a gap of fewer of the smallest steps between values is of their rounding
ALONG = 1 / 3  # of a group's distance, that the others moved by in its rounds: the machine's own
SHOWN = 4  # curves of a configuration
ROUNDS = 12  # of a group, that a finding numbers

Launches = Mapping[Launch, float]  # logarithms
Rounds = dict[int, list[float]]  # the same, by round


class Groups(NamedTuple):
    """Two groups of launches of one curve."""

    apart: float  # logarithm of how many times slower the slower group is
    slow: frozenset[Launch]
    shared: bool  # by the other configurations, in the same rounds


Place = tuple[str, str, str, str]  # benchmark, metric, layout, allocation: what shares rounds


def findings(values: Iterable[ValueRow], labels: Mapping[str, str]) -> tuple[Finding, ...]:
    """A warning for each configuration with such a curve, those furthest apart by name; and one
    for rounds in which all configurations were slower.

    A curve is one benchmark on one layout in one allocation, its sizes taken together, each launch
    a value of its own, the baseline's two of a round as well.
    """
    every = curves(values)
    beside = _beside_each(every)
    tests = len(every) + sum(map(bool, beside.values()))
    own: dict[str, list[tuple[float, str]]] = defaultdict(list)
    shared: dict[Place, tuple[float, str]] = {}
    for curve, launches in every.items():
        groups = _groups(curve, launches, beside[curve], tests)
        if groups is None:
            continue
        told = groups.apart, _told(curve, launches, groups)
        if groups.shared:
            shared[curve[1:]] = max(told, shared.get(curve[1:], told))
        else:
            own[curve.configuration].append(told)
    machine = (_of_the_machine(list(shared.values())),) if shared else ()
    return (*machine, *(_of_one(labels.get(who, who), told) for who, told in sorted(own.items())))


def _of_the_machine(told: Sequence[tuple[float, str]]) -> Finding:
    return Finding(
        Level.WARNING,
        "slow-rounds",
        f"all configurations were slower in the same rounds: {_listed(told)}",
        "the machine was in another state then: other jobs, a clock, CPUs that moved apart; no "
        "configuration is to blame, and ratios within a round hold",
        "see what ran beside these rounds before publishing absolute values",
    )


def _of_one(who: str, told: Sequence[tuple[float, str]]) -> Finding:
    return Finding(
        Level.WARNING,
        "two-groups",
        f"launches of {who} fall into two groups: {_listed(told)}",
        "each launch takes one of two states: a place, a route, a clock, a protocol; the "
        "median is of one of them, and which one may change with the next campaign",
        "see what those rounds have in common: the other configurations did not follow",
    )


def _beside_each(every: Mapping[Curve, Launches]) -> dict[Curve, dict[str, Rounds]]:
    """What the other configurations did in the rounds of each curve: their launches by round."""
    places: dict[Place, dict[str, Rounds]] = defaultdict(dict)
    for curve, launches in every.items():
        rounds: Rounds = defaultdict(list)
        for (number, _), x in launches.items():
            rounds[number].append(x)
        places[curve[1:]][curve.configuration] = rounds
    return {
        curve: {who: of for who, of in places[curve[1:]].items() if who != curve.configuration}
        for curve in every
    }


def _groups(
    curve: Curve, launches: Launches, others: Mapping[str, Rounds], tests: int
) -> Groups | None:
    """The groups that the launches of a curve fall into, as they are or else by what is left of
    them after the level of their rounds."""
    levels: Rounds = defaultdict(list)
    for rounds in others.values():
        for number, logs in rounds.items():
            levels[number] += logs
    left = {
        launch: x - median(levels[launch[0]])
        for launch, x in launches.items()
        if launch[0] in levels
    }
    for series in (launches, left):
        if len({number for number, _ in series}) < LEAST_ROUNDS:
            continue
        chance, border = parted(list(series.values()))
        if chance * tests >= CHANCE:
            continue
        low = {launch: launches[launch] for launch, x in series.items() if x < border}
        high = {launch: launches[launch] for launch, x in series.items() if x > border}
        apart = median(high.values()) - median(low.values())
        along = median([_moved(rounds, high, low) for rounds in others.values()] or [0.0])
        # Where the others moved the other way, and further, two groups of the rest are theirs.
        if apart > math.log(1 + LEAST) and apart > -along:
            slow = frozenset(high if METRICS[curve.metric].better is Better.LOWER else low)
            return Groups(apart, slow, shared=along >= ALONG * apart)
    return None


def _moved(rounds: Rounds, high: Launches, low: Launches) -> float:
    """How much higher another configuration was in the rounds of one group than of the other."""
    here, there = (
        [x for number, _ in group for x in rounds.get(number, ())] for group in (high, low)
    )
    return fmean(here) - fmean(there) if here and there else 0.0


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


def _told(curve: Curve, launches: Launches, groups: Groups) -> str:
    rounds = sorted({number for number, _ in groups.slow})
    numbers = ", ".join(map(str, rounds[:ROUNDS]))
    more = f" and {len(rounds) - ROUNDS} more" if len(rounds) > ROUNDS else ""
    return (
        f"{curve.benchmark} on {curve.layout}, {len(groups.slow)} of {len(launches)} launches "
        f"{math.exp(groups.apart):.2f} times slower (rounds {numbers}{more})"
    )


def _listed(told: Sequence[tuple[float, str]]) -> str:
    words = [text for _, text in sorted(told, reverse=True)]
    more = f"; and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return "; ".join(words[:SHOWN]) + more
