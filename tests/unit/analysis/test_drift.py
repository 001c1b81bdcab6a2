"""A trend over rounds is told, noise is not."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from itertools import combinations, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis.drift import curves, drift_findings, kendall, slope
from mpigraft.core.model import Level, ValueRow
from tests.builders.messages import matches

CURVES = [("native:latency", "latency"), ("native:bw", "bandwidth"), ("native:bcast", "latency")]


def rows(trend: float, rounds: int = 12, noise: float = 0.05, seed: int = 0) -> list[ValueRow]:
    """Three curves of four sizes; `trend` is the change of the first in all."""
    rng = random.Random(seed)
    return [
        ValueRow("key", "1x2", "job", number, replica, name, metric, size,
                 size * math.exp(shift + (trend * number / (rounds - 1) if k == 0 else 0)), "host")
        for number in range(rounds)
        for replica in (0, 1)
        for shift in [rng.gauss(0, noise)]
        for k, (name, metric) in enumerate(CURVES)
        for size in (1, 8, 64, 512)
    ]  # fmt: skip


def test_a_steady_machine_has_no_finding() -> None:
    findings = [drift_findings(rows(0.0, seed=seed), {}) for seed in range(40)]
    assert sum(map(bool, findings)) <= 1


def test_a_machine_that_grows_slower_has_one() -> None:
    (finding,) = drift_findings(rows(0.5), {"key": "openmpi"})
    assert (finding.code, finding.level) == ("drift", Level.WARNING)
    assert matches(finding, "drift", metrics="openmpi", changes="native:latency on 1x2")
    assert "worse" in finding.message
    (faster,) = drift_findings(rows(-0.5), {})
    assert "better" in faster.message


def rates(bandwidths: list[ValueRow]) -> list[ValueRow]:
    """Message rates of the same messages: what `mbw_mr` prints beside bandwidths."""
    return [r._replace(metric="message_rate", value=r.value / r.size) for r in bandwidths]


def test_two_metrics_of_one_measurement_drift_once() -> None:
    bandwidths = [r for r in rows(0.5) if r.benchmark == "native:latency"]
    bandwidths = [r._replace(benchmark="osu:mbw_mr", metric="bandwidth") for r in bandwidths]
    (alone,) = drift_findings(bandwidths, {})
    assert drift_findings([*rates(bandwidths), *bandwidths], {}) == (alone,)
    assert alone.message.count("osu:mbw_mr") == 1
    (only_rate,) = drift_findings(rates(bandwidths), {})
    assert only_rate.message == alone.message


def test_the_steepest_curve_is_named_first() -> None:
    steep = [r for r in rows(1.0) if r.benchmark == "native:latency"]
    steep = [r._replace(benchmark="native:alltoall") for r in steep]
    for values in ([*rows(0.5), *steep], [*steep, *rows(0.5)]):
        (finding,) = drift_findings(values, {})
        assert finding.message.index("native:alltoall") < finding.message.index("native:latency")


def test_few_rounds_have_no_trend() -> None:
    assert not drift_findings(rows(2.0, rounds=7), {})


def test_a_trend_too_small_to_matter_is_not_reported() -> None:
    assert not drift_findings(rows(0.03, noise=0.0), {})


def test_eight_rounds_one_way_are_a_trend_of_stated_size() -> None:
    (worse,) = drift_findings(rows(math.log(1.6), rounds=8, noise=0.0), {})
    assert matches(worse, "drift", changes="native:latency on 1x2 by 60% (worse)")
    (better,) = drift_findings(rows(math.log(0.6), rounds=8, noise=0.0), {})
    assert matches(better, "drift", changes="by 40% (better)")
    assert drift_findings(rows(math.log(1.06), rounds=8, noise=0.0), {})
    assert not drift_findings(rows(math.log(1.045), rounds=8, noise=0.0), {})


def test_many_curves_ask_for_more() -> None:
    """Eight rounds in order come up by chance in 1 of 20 160 curves."""
    first = [row for row in rows(0.5, rounds=8, noise=0.0) if row.benchmark == "native:latency"]
    last = [row for row in rows(0.5, rounds=8, noise=0.0) if row.benchmark == "native:bw"]
    many = [row._replace(benchmark=f"native:b{k}") for k in range(200) for row in last]
    assert drift_findings([*first, *many], {})
    assert not drift_findings([*first, *many, *(r._replace(layout="1x4") for r in last)], {})


def test_a_curve_has_its_launches_relative_to_itself() -> None:
    """Sizes of unlike magnitude, one of which is missing once; values that are none left out."""
    good = [
        ValueRow("key", "1x2", "job", number, 0, "native:bw", "bandwidth", size, value, "host")
        for number, factor in enumerate((0.5, 1.0, 2.0))
        for size, value in ((1, 0.001 * factor), (8, 1000.0 * factor))
        if (number, size) != (2, 1)
    ]
    odd = [good[0]._replace(value=value, round=9) for value in (0.0, -1.0, math.inf, math.nan)]
    smell = good[0]._replace(metric="smell")
    ((curve, launches),) = curves([*good, *odd, smell]).items()
    assert (curve.benchmark, curve.allocation) == ("native:bw", "job")
    half = math.log(2) / 2  # of two values the median is half way
    assert launches == {
        (0, 0): pytest.approx((-half - 2 * half) / 2),
        (1, 0): pytest.approx((half + 0) / 2),
        (2, 0): pytest.approx(2 * half),
    }


def test_the_slope_is_the_middle_of_all_slopes() -> None:
    assert slope([0, 2, 4, 6]) == slope([1, 3, 5, 7]) == 2
    assert slope([0, 1, 4]) == 2
    assert slope([0, 0, 0, 5]) == pytest.approx(5 / 6)  # the median of six
    assert slope([]) == slope([5]) == 0


def test_trends_of_unlike_allocations_are_not_put_together() -> None:
    """Two jobs on unlike nodes are no drift."""
    every = [r._replace(allocation="a" if r.round < 6 else "b") for r in rows(0.5)]
    assert not drift_findings(every, {})


@pytest.mark.parametrize(
    ("values", "chance"),
    [([1, 2, 3, 4, 5, 6, 7, 8], 2 / 40320), ([1, 1, 1, 1], 1.0), ([3, 1, 2, 4, 6, 5], 0.1361)],
)
def test_kendalls_chance_is_the_textbooks(values: list[float], chance: float) -> None:
    """One order of 8! and its reverse; 49 of 720 orders of six have two pairs or fewer the wrong
    way round, and 49 the right (S = 9; Kendall, Rank Correlation Methods, table 1: 0.068)."""
    assert kendall(values) == pytest.approx(chance, rel=0.01)


@pytest.mark.parametrize("count", [2, 3, 5])
def test_kendalls_chance_is_what_counting_all_orders_says(count: int) -> None:
    def score(order: Sequence[float]) -> int:
        return abs(sum((b > a) - (b < a) for a, b in combinations(order, 2)))

    every = [score(order) for order in permutations(range(count))]
    for order in permutations(range(count)):
        share = sum(other >= score(order) for other in every) / len(every)
        assert kendall(order) == pytest.approx(share)


def test_kendalls_chance_with_ties_and_of_many_values_is_the_approximations() -> None:
    """S = 14 of 6 with one pair alike: (6 x 5 x 17 - 2 x 1 x 9) / 18 is the variance."""
    assert kendall([1, 1, 2, 3, 4, 5]) == pytest.approx(
        math.erfc((14 - 1) / math.sqrt(2 * (510 - 18) / 18))
    )
    assert kendall(list(range(21))) == pytest.approx(
        math.erfc((210 - 1) / math.sqrt(2 * 21 * 20 * 47 / 18))
    )
    assert kendall([2.0] * 25) == kendall([1, 2, 2, 1]) == 1
    assert kendall(list(range(20))) == pytest.approx(2 / math.factorial(20))
    # the last that is counted and the first that is not are next to each other
    nearly = [3, 1, 2, 0, *range(4, 16), 19, 17, 18, 16]
    assert kendall(nearly) == pytest.approx(kendall([*nearly, 20]), abs=1e-6)


@given(st.floats(-10, 10), st.floats(-1, 1), st.integers(2, 30))
def test_the_slope_of_a_line_is_its_own(start: float, step: float, count: int) -> None:
    values = [start + step * k for k in range(count)]
    assert slope(values) == pytest.approx(step, abs=1e-9)
    values[count // 2] += 1000  # one wild round of many moves nothing to speak of
    if count > 8:
        assert abs(slope(values) - step) < 0.5 * abs(step) + 1e-9 or slope(values) < 1000 / count
