"""Find configurations whose launches fall into two groups.

A gap between a curve's launches, in order of their values, is compared with the values on each
side of it: of n gaps between evenly spread values, the first takes more than the share g of their
sum with the chance (1 - g)^(n - 1) (Pyke, Spacings, JRSS B 27, 1965). The greater of both sides
counts, times the number of gaps that could part two groups. Even values represent all
distributions with one peak, since these come nearest to two peaks (Hartigan and Hartigan, The Dip
Test of Unimodality, Annals of Statistics 13, 1985). Compared with all values at once, as in
textbooks, a gap is found twice as often, and so is one between quiet launches and a few disturbed
ones that happen to be near each other: in one campaign of six. The dip test itself finds no group
of fewer than a quarter of twenty.

Only gaps that leave LEAST_LAUNCHES and SHARE of the launches on either side are tried. A campaign
has many curves, so the chance is multiplied by their number too (Bonferroni).

Where other configurations were launched in the same rounds, each curve is tried twice: as it is,
and less the level of each round, the median of the others' launches. Then the two groups are
compared with what the others did in the same rounds: if these moved along, the machine took two
states, and no configuration is to blame.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

from mpigraft.analysis.drift import DriftCurve, Launch, curves
from mpigraft.core.model import METRICS, Better, Finding, ValueRow
from mpigraft.core.numbers import round_numbers
from mpigraft.core.text import join_some

LEAST_ROUNDS = 8  # of fewer, only launches that hardly differ make a group
LEAST_LAUNCHES = 3  # in a group
SHARE = 0.2  # of all launches, in a group
CHANCE = 0.05  # of a false finding for even values; for values with a peak a tenth of it
LEAST = 0.1  # between the groups' medians, a fraction
STEPS = 3  # of the smallest step between values: a smaller gap comes from rounding
ALONG = 1 / 3  # of the groups' distance: if the others moved by more, it is the machine
SHOWN = 4  # curves of a configuration in a finding
ROUNDS = 12  # of a group in a finding

Launches = Mapping[Launch, float]  # logarithms
Rounds = dict[int, list[float]]  # the same, by round


class Groups(NamedTuple):
    """Two groups of launches of one curve."""

    distance: float  # logarithm of how many times slower the slower group is
    slow: frozenset[Launch]
    shared: bool  # by the other configurations, in the same rounds


Setting = tuple[str, str, str, str]  # benchmark, metric, layout, allocation: shares rounds


def bimodality_findings(
    values: Iterable[ValueRow], labels: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Warn of each configuration with such a curve, the greatest distance first, and of rounds in
    which all configurations were slower.

    A curve is one benchmark on one layout in one allocation, its sizes taken together. Each launch
    is a value of its own, also the baseline's two of a round.
    """
    every = curves(values)
    others = _other_configurations(every)
    tests = len(every) + sum(map(bool, others.values()))
    own: dict[str, list[tuple[float, str]]] = defaultdict(list)
    shared: dict[Setting, tuple[float, str]] = {}
    for curve, launches in every.items():
        groups = _groups(curve, launches, others[curve], tests)
        if groups is None:
            continue
        ranked = groups.distance, _describe(curve, launches, groups)
        if groups.shared:
            shared[curve[1:]] = max(ranked, shared.get(curve[1:], ranked))
        else:
            own[curve.configuration].append(ranked)
    machine = [Finding.of("slow-rounds", share=_greatest(shared.values()))] if shared else []
    alone = (
        Finding.of("two-groups", label=labels.get(key, key), texts=_greatest(texts))
        for key, texts in sorted(own.items())
    )
    return (*machine, *alone)


def _other_configurations(
    every: Mapping[DriftCurve, Launches],
) -> dict[DriftCurve, dict[str, Rounds]]:
    """Collect, for each curve, the launches of the other configurations by round."""
    settings: dict[Setting, dict[str, Rounds]] = defaultdict(dict)
    for curve, launches in every.items():
        rounds: Rounds = defaultdict(list)
        for (number, _), x in launches.items():
            rounds[number].append(x)
        settings[curve[1:]][curve.configuration] = rounds
    return {
        curve: {
            key: rounds for key, rounds in settings[curve[1:]].items() if key != curve.configuration
        }
        for curve in every
    }


def _groups(
    curve: DriftCurve, launches: Launches, others: Mapping[str, Rounds], tests: int
) -> Groups | None:
    """Part the launches of a curve into groups, as they are or else less their rounds' levels."""
    beside: Rounds = defaultdict(list)
    for rounds in others.values():
        for number, logs in rounds.items():
            beside[number] += logs
    levels = {number: median(logs) for number, logs in beside.items()}
    leveled = {
        launch: x - levels[launch[0]] for launch, x in launches.items() if launch[0] in levels
    }
    for series in (launches, leveled):
        if len({number for number, _ in series}) < LEAST_ROUNDS:
            continue
        chance, border = widest_gap(list(series.values()))
        if chance * tests >= CHANCE:
            continue
        low = {launch: launches[launch] for launch, x in series.items() if x < border}
        high = {launch: launches[launch] for launch, x in series.items() if x > border}
        distance = median(high.values()) - median(low.values())
        along = median([_shift(rounds, high, low) for rounds in others.values()] or [0.0])
        # Others that moved the other way, and further, make two groups of what is leveled.
        if distance > math.log(1 + LEAST) and distance > -along:
            slow = frozenset(high if METRICS[curve.metric].better is Better.LOWER else low)
            return Groups(distance, slow, shared=along >= ALONG * distance)
    return None


def _shift(rounds: Rounds, high: Launches, low: Launches) -> float:
    """Measure how much higher another configuration was in the rounds of `high` than of `low`."""
    above, below = (
        [x for number, _ in group for x in rounds.get(number, ())] for group in (high, low)
    )
    return fmean(above) - fmean(below) if above and below else 0.0


def widest_gap(values: Sequence[float]) -> tuple[float, float]:
    """Find the least probable gap that could part two groups: its chance, and its middle."""
    ordered = sorted(values)
    count = len(ordered)
    least = max(LEAST_LAUNCHES, math.ceil(SHARE * count))
    gaps = [b - a for a, b in pairwise(ordered)]
    floor = STEPS * min((x for x in gaps if x > 0), default=math.inf)
    chances = {
        n: max(
            _gap_chance(gaps[n], n, ordered[n] - ordered[0]),
            _gap_chance(gaps[n], count - n - 2, ordered[-1] - ordered[n + 1]),
        )
        for n in range(least - 1, count - least)
        if gaps[n] >= floor
    }
    if not chances:
        return 1.0, math.nan
    best = min(chances, key=chances.__getitem__)
    chance = (count - 2 * least + 1) * chances[best]
    return min(chance, 1.0), (ordered[best] + ordered[best + 1]) / 2


def _gap_chance(gap: float, others: int, width: float) -> float:
    """Return the chance that a gap takes so much of what it and `others`, `width` in all, take."""
    return float((1 - gap / (gap + width)) ** others)


def _describe(curve: DriftCurve, launches: Launches, groups: Groups) -> str:
    rounds = round_numbers({number for number, _ in groups.slow})
    return (
        f"{curve.benchmark} on {curve.layout}, {len(groups.slow)} of {len(launches)} launches "
        f"{math.exp(groups.distance):.2f} times slower (rounds {join_some(rounds, ROUNDS, ', ')})"
    )


def _greatest(texts: Iterable[tuple[float, str]]) -> str:
    """Join the texts of the greatest distances."""
    return join_some([text for _, text in sorted(texts, reverse=True)], SHOWN)
