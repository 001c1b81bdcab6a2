"""Trends over the rounds of a campaign: a machine that grew slower while it was measured.

Rounds are held against each other by their order (Mann and Kendall: Econometrica 13, 1945; ties
corrected as in Gilbert, Statistical Methods for Environmental Pollution Monitoring, 16.4.2), and
the slope is the median of the slopes between all two rounds (Theil; Sen, JASA 63, 1968). Both ask
nothing of the distribution. A campaign has many curves, so the chance of each is multiplied by
their number (Bonferroni), and a trend that moves nothing to speak of is not told.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from statistics import median

from mpigraft.model import METRICS, Better, Finding, Level, ValueRow

LEAST_ROUNDS = 8  # with fewer, hardly any order is rarer than one in a thousand
CHANCE = 0.01  # of a false finding in a campaign without any trend
LEAST = 0.05  # change from the first round to the last, a fraction
SHOWN = 4


def findings(values: Iterable[ValueRow], labels: Mapping[str, str]) -> tuple[Finding, ...]:
    """A warning for each configuration whose values trend, the steepest curve of it by name.

    A curve is one benchmark on one layout in one allocation, its sizes taken together: a round's
    value is the median over sizes of the logarithm of its ratio to the curve's own median.
    """
    curves = _curves(values)
    found: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for (configuration, benchmark, metric, layout, _), rounds in curves.items():
        if len(rounds) < LEAST_ROUNDS:
            continue
        order = [rounds[number] for number in sorted(rounds)]
        change = slope(order) * (len(order) - 1)
        if kendall(order) * len(curves) < CHANCE and abs(change) > math.log(1 + LEAST):
            worse = (change > 0) == (METRICS[metric].better is Better.LOWER)
            word = "worse" if worse else "better"
            told = f"{benchmark} on {layout} by {abs(math.expm1(change)):.0%} ({word})"
            found[configuration].append((abs(change), told))
    return tuple(
        Finding(
            Level.WARNING,
            "drift",
            f"{labels.get(who, who)} changed from the first round to the last: {_listed(told)}",
            "something else changed too: heat, other jobs, a cache that fills; ratios of a round "
            "hold, absolute values do not",
            "run it again on idle nodes before publishing absolute values",
        )
        for who, told in sorted(found.items())
    )


def _curves(
    values: Iterable[ValueRow],
) -> dict[tuple[str, str, str, str, str], dict[int, float]]:
    """Each curve's value of each round. Replicas of a round are taken together."""
    sizes: dict[tuple[str, str, str, str, str], dict[int, dict[int, list[float]]]] = {}
    for row in values:
        if row.metric in METRICS and 0 < row.value < math.inf:
            what = (row.configuration, row.benchmark, row.metric, row.layout, row.allocation)
            by_size = sizes.setdefault(what, defaultdict(lambda: defaultdict(list)))
            by_size[row.size][row.round].append(math.log(row.value))
    found = {}
    for what, by_size in sizes.items():
        together: dict[int, list[float]] = defaultdict(list)
        for by_round in by_size.values():
            middle = median(x for logs in by_round.values() for x in logs)
            for number, logs in by_round.items():
                together[number].append(median(logs) - middle)
        found[what] = {number: median(logs) for number, logs in together.items()}
    return found


def slope(values: Sequence[float]) -> float:
    """Theil and Sen's slope per step; 0 for fewer than two values."""
    steps = [(b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(values), 2)]
    return median(steps) if steps else 0.0


def kendall(values: Sequence[float]) -> float:
    """Mann and Kendall's chance, two-sided, of an order at least as steady without a trend; by
    the normal approximation with its correction for continuity, 1 for values all alike."""
    n = len(values)
    score = sum((b > a) - (b < a) for a, b in combinations(values, 2))
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(values).values())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
    if variance <= 0 or score == 0:
        return 1.0
    return math.erfc((abs(score) - 1) / math.sqrt(2 * variance))


def _listed(told: Sequence[tuple[float, str]]) -> str:
    words = [text for _, text in sorted(told, reverse=True)]
    more = f" and {len(words) - SHOWN} more" if len(words) > SHOWN else ""
    return ", ".join(words[:SHOWN]) + more
