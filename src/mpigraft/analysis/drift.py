"""Find trends over the rounds of a campaign: a machine that grew slower while it was measured.

Rounds are compared by their order (Mann and Kendall: Econometrica 13, 1945; ties corrected as in
Gilbert, Statistical Methods for Environmental Pollution Monitoring, 16.4.2), and the slope is the
median of the slopes between any two rounds (Theil; Sen, JASA 63, 1968). Both hold for any
distribution. A campaign has many curves, so the chance of each is multiplied by their number
(Bonferroni), and a trend below LEAST is not reported.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import NamedTuple

from mpigraft.analysis.multiplicity import repeated_metric
from mpigraft.core.arrays import np
from mpigraft.core.model import METRICS, Better, Finding, ValueRow
from mpigraft.core.text import join_some

LEAST_ROUNDS = 8  # with fewer, hardly any order is rarer than one in a thousand
CHANCE = 0.01  # of a false finding in a campaign without any trend
LEAST = 0.05  # change from the first round to the last, a fraction
SHOWN = 4  # curves of a configuration in a finding
EXACT = 20  # rounds up to which orders are counted; beyond, the approximation is as good

Launch = tuple[int, int]  # round, replica


class DriftCurve(NamedTuple):
    """One benchmark of one configuration on one layout in one allocation, all sizes."""

    configuration: str
    benchmark: str
    metric: str
    layout: str
    allocation: str


def drift_findings(values: Iterable[ValueRow], labels: Mapping[str, str]) -> tuple[Finding, ...]:
    """Warn of each configuration whose values trend, the steepest curves first.

    A curve is one benchmark on one layout in one allocation. Its sizes are taken together, and the
    launches of a round too.
    """
    every = curves(values)
    trends: dict[str, list[tuple[float, str]]] = defaultdict(list)
    for curve, launches in every.items():
        rounds: dict[int, list[float]] = defaultdict(list)
        for (number, _), value in launches.items():
            rounds[number].append(value)
        if len(rounds) < LEAST_ROUNDS:
            continue
        order = [median(rounds[number]) for number in sorted(rounds)]
        if kendall(order) * len(every) >= CHANCE:
            continue
        change = slope(order) * (len(order) - 1)
        if abs(change) > math.log(1 + LEAST):
            worse = (change > 0) == (METRICS[curve.metric].better is Better.LOWER)
            word = "worse" if worse else "better"
            text = f"{curve.benchmark} on {curve.layout} by {abs(math.expm1(change)):.0%} ({word})"
            trends[curve.configuration].append((abs(change), text))
    return tuple(
        Finding.of(
            "drift",
            metrics=labels.get(key, key),
            changes=join_some([text for _, text in sorted(texts, reverse=True)], SHOWN, ", "),
        )
        for key, texts in sorted(trends.items())
    )


def curves(values: Iterable[ValueRow]) -> dict[DriftCurve, dict[Launch, float]]:
    """Reduce each curve to one value per launch: the median over sizes of the logarithm of its
    ratio to the curve's own median there. Values that are not finite and positive are left out,
    and curves that only repeat another metric of the same measurement."""
    logs: dict[DriftCurve, dict[int, dict[Launch, float]]] = {}
    for row in values:
        if row.metric in METRICS and 0 < row.value < math.inf:
            curve = DriftCurve(
                row.configuration, row.benchmark, row.metric, row.layout, row.allocation
            )
            by_size = logs.setdefault(curve, defaultdict(dict))
            by_size[row.size][row.round, row.replica] = math.log(row.value)
    return {
        curve: _over_sizes(by_size.values())
        for curve, by_size in logs.items()
        if not repeated_metric(curve, logs)
    }


def _over_sizes(sizes: Iterable[Mapping[Launch, float]]) -> dict[Launch, float]:
    ratios: dict[Launch, list[float]] = defaultdict(list)
    for by_launch in sizes:
        middle = median(by_launch.values())
        for launch, log in by_launch.items():
            ratios[launch].append(log - middle)
    return {launch: median(logs) for launch, logs in ratios.items()}


def slope(values: Sequence[float]) -> float:
    """Compute Theil and Sen's slope per step; 0 for fewer than two values."""
    first, last = np.triu_indices(len(values), 1)
    levels = np.array(values, dtype=float)
    steps = (levels[last] - levels[first]) / (last - first)
    return float(np.median(steps)) if len(steps) else 0.0


def kendall(values: Sequence[float]) -> float:
    """Compute Mann and Kendall's two-sided chance of an order at least as steady without a trend;
    1 for values that are all equal. Exact without ties up to EXACT values, where the normal
    approximation gives nine in ten thousand for one in twenty thousand (eight values in order);
    else the approximation, with its correction for continuity."""
    n = len(values)
    levels = np.array(values)
    score = sum(int(np.sign(levels[k + 1 :] - levels[k]).sum()) for k in range(n))
    if n <= EXACT and len(set(values)) == n:
        pairs = n * (n - 1) // 2
        steady = sum(_orders(n)[: (pairs - abs(score)) // 2 + 1])
        return min(2 * steady / math.factorial(n), 1.0)
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(values).values())
    variance = (n * (n - 1) * (2 * n + 5) - ties) / 18
    if variance <= 0 or score == 0:
        return 1.0
    return math.erfc((abs(score) - 1) / math.sqrt(2 * variance))


def _orders(count: int) -> list[int]:
    """Count the orders of `count` values that have 0, 1, 2 ... pairs the wrong way round (Knuth,
    The Art of Computer Programming, volume 3, 5.1.1)."""
    orders = [1]
    for n in range(2, count + 1):
        longer = len(orders) + n - 1
        orders = [sum(orders[max(0, k - n + 1) : k + 1]) for k in range(longer)]
    return orders
