"""The joint test over all curves of a campaign, against its definition and its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from statistics import mean, stdev

import numpy as np
import pytest
from numpy.typing import NDArray

from mpigraft.analysis import multiplicity
from mpigraft.analysis.interim import FLIPS
from mpigraft.analysis.multiplicity import repeated_metric
from mpigraft.core.model import SeriesKey

Floats = NDArray[np.float64]


def numbered(*curves: Floats) -> list[NDArray[np.int64]]:
    return [np.arange(len(curve)) for curve in curves]


def adjusted_p(curves: list[Floats], rounds: list[NDArray[np.int64]]) -> list[float]:
    return multiplicity.adjusted_p(curves, rounds, seed=0)


def alone(curve: Floats, seed: int = 0) -> float:
    return multiplicity.adjusted_p([curve], numbered(curve), seed)[0]


def student(values: Sequence[float]) -> float:
    return abs(mean(values)) / stdev(values) * math.sqrt(len(values))


def defined(curves: list[list[list[float]]]) -> list[float]:
    """The step-down p of complete curves by its definition, with Student's t itself."""

    def greatest(signs: tuple[int, ...]) -> list[float]:
        return [
            max(
                student([s * row[k] for s, row in zip(signs, curve, strict=True)])
                for k in range(len(curve[0]))
            )
            for curve in curves
        ]

    every = [greatest(signs) for signs in product((1, -1), repeat=len(curves[0]))]
    statistics, largest, worst = every[0], [0.0] * len(curves), 0.0
    rest = sorted(range(len(curves)), key=lambda k: -statistics[k])
    while rest:
        as_great = sum(
            max(row[k] for k in rest) >= statistics[rest[0]] * (1 - 1e-6) for row in every
        )
        worst = max(worst, as_great / len(every))
        largest[rest.pop(0)] = worst
    return largest


def test_the_correction_is_the_one_that_its_definition_gives() -> None:
    rng = np.random.default_rng(3)
    for rounds, shifts in ((6, (0.0, 0.8, 0.0)), (7, (0.9, 0.0, 0.5, 3.0)), (5, (0.0,))):
        curves = [rng.standard_normal((rounds, 1 + n % 3)) + s for n, s in enumerate(shifts)]
        p = adjusted_p(curves, numbered(*curves))
        assert p == pytest.approx(defined([c.tolist() for c in curves]))


def test_rounds_are_flipped_together_over_all_curves() -> None:
    """A curve that repeats another is no second chance; one that varies on its own is."""
    rng = np.random.default_rng(4)
    curve, other = 0.3 + rng.standard_normal((8, 2)), rng.standard_normal((8, 20))
    single = alone(curve)
    assert adjusted_p([curve, -2 * curve], numbered(curve, curve)) == pytest.approx([single] * 2)
    assert adjusted_p([curve, other], numbered(curve, other))[0] > single
    turned = adjusted_p([curve, curve], [np.arange(8), np.arange(8, 16)])
    assert turned[0] > single


def test_a_row_belongs_to_the_round_that_is_named() -> None:
    curve = np.random.default_rng(5).standard_normal((7, 2)) + 0.3
    order = [3, 0, 6, 1, 5, 2, 4]
    places = np.arange(10, 17)
    assert adjusted_p([curve, curve[order]], [places, places[order]]) == [alone(curve)] * 2
    assert adjusted_p([curve, curve[order]], [places, places])[0] > alone(curve)


def test_a_curve_that_was_passed_leaves_the_comparison_of_the_next() -> None:
    """The second of two has its own p, however great the first; the first pays for both."""
    rng = np.random.default_rng(6)
    strong, weak = 5 + rng.standard_normal((10, 2)), 0.8 + rng.standard_normal((10, 2))
    both = adjusted_p([weak, strong], numbered(weak, strong))
    assert both[0] == pytest.approx(max(alone(weak), both[1]))
    assert both[1] <= both[0]
    assert adjusted_p([strong, weak], numbered(strong, weak)) == both[::-1]


def test_curves_of_fewer_rounds_or_sizes_with_gaps_are_measured_alike() -> None:
    """The same p alone is the same place in line: T itself grows with the rounds."""
    rng = np.random.default_rng(7)
    few, many = rng.standard_normal((4, 1)), rng.standard_normal((400, 1))
    signs = np.where(np.random.default_rng(1).random((20_000, 400)) < 0.5, -1.0, 1.0)
    for curve, places in ((few, 4), (many, 400)):
        deviates = multiplicity._greatest_t(curve, signs[:, :places])
        if places == 400:
            assert float(np.quantile(deviates, 0.95)) == pytest.approx(1.96, abs=0.05)
        else:
            assert deviates.max() < 3.0
    t, f = student([0.1, 0.3, 0.2, 0.5]), 3
    z = (8 * f + 1) / (8 * f + 3) * math.sqrt(f * math.log(1 + t * t / f))
    one = np.array([[0.1], [0.3], [0.2], [0.5]])
    assert multiplicity._greatest_t(one, np.ones((1, 4)))[0] == pytest.approx(z)
    gap = np.array([[0.1, np.nan], [0.3, 0.1], [0.2, 0.1], [0.5, -0.1], [np.nan, np.nan]])
    assert multiplicity._greatest_t(gap, np.ones((1, 5)))[0] == pytest.approx(z)
    gap[:4, 0] = (0.1, 0.11, 0.09, 0.1)
    assert multiplicity._greatest_t(gap, np.ones((1, 5)))[0] > z


def test_all_rounds_on_one_side_give_the_least_p_that_there_is() -> None:
    rng = np.random.default_rng(8)
    for rounds, least in ((5, 2 / 32), (6, 2 / 64), (12, 2 / 4096)):
        curve = 1.0 + 0.01 * rng.standard_normal((rounds, 3))
        assert alone(curve) == pytest.approx(least)
        assert adjusted_p([curve] * 3, numbered(*[curve] * 3)) == pytest.approx([least] * 3)
    many = 1.0 + 0.01 * rng.standard_normal((40, 3))
    assert 1 / FLIPS <= alone(many) <= 2 / FLIPS


def test_random_flips_come_near_to_all_flips() -> None:
    """13 rounds have 8192 patterns, of which half as many are drawn."""
    curve = np.random.default_rng(9).standard_normal((13, 4)) + 0.45
    signs = np.array(list(product((1.0, -1.0), repeat=13)))
    greatest = np.abs(signs @ curve / np.sqrt((curve**2).sum(axis=0))).max(axis=1)
    exact = float(np.mean(greatest >= greatest[0] - 1e-9))
    assert 0.02 < exact < 0.1
    assert alone(curve, 3) == pytest.approx(exact, abs=0.015)
    assert alone(curve, 4) != alone(curve, 3)
    assert alone(curve, 3) == alone(curve, 3)


def test_the_joint_test_knows_no_scale_and_gaps_count_for_nothing() -> None:
    curve = np.random.default_rng(10).standard_normal((6, 3)) + 0.5
    assert alone(curve * 0.001) == alone(curve)
    assert alone(np.hstack([curve, np.full((6, 1), np.nan)])) == alone(curve)
    empty = np.full((2, 3), np.nan)
    assert alone(np.vstack([curve, empty])) == pytest.approx(alone(curve))


def test_what_does_not_differ_is_certain() -> None:
    zeros, curve = np.zeros((6, 2)), 1.0 + 0.01 * np.random.default_rng(11).random((6, 2))
    assert alone(zeros) == 1.0
    assert adjusted_p([zeros, curve], numbered(zeros, curve)) == pytest.approx([1.0, 2 / 64])
    assert alone(np.ones((6, 2))) == pytest.approx(2 / 64)
    assert alone(np.ones((1, 2))) == 1.0
    assert adjusted_p([], []) == []


def test_the_joint_test_takes_the_best_size_and_pays_for_the_search() -> None:
    rng = np.random.default_rng(12)
    noise = rng.standard_normal((10, 20))
    strong = np.hstack([noise, 2.0 + 0.3 * rng.standard_normal((10, 1))])
    assert alone(strong) < 0.01
    assert alone(noise) > min(alone(noise[:, [k]]) for k in range(20))


def test_one_of_ten_identical_curves_is_called_in_a_twentieth_of_campaigns() -> None:
    """Ten curves that share a baseline, so they go together: any of them at 5 %."""
    rng = np.random.default_rng(13)
    campaigns = 400
    false = 0
    for _ in range(campaigns):
        curves = list(rng.standard_normal((10, 8, 3)) - rng.standard_normal((8, 3)))
        false += min(adjusted_p(curves, numbered(*curves))) <= 0.05
    assert 0.02 <= false / campaigns <= 0.08


@pytest.mark.parametrize(
    ("metric", "measured", "expected"),
    [
        ("message_rate", ("bandwidth",), "bandwidth"), ("bandwidth", ("message_rate",), ""),
        ("message_rate", ("bandwidth", "latency"), "latency"), ("latency", ("bandwidth",), ""),
        ("overlap", ("latency",), ""), ("bandwidth", (), ""),
    ],
)  # fmt: skip
def test_a_metric_repeats_the_first_of_one_time(
    metric: str, measured: tuple[str, ...], expected: str
) -> None:
    key = SeriesKey("osu:mbw_mr", metric, "1x2", "host")
    keys = {key._replace(metric=name) for name in (metric, *measured)}
    elsewhere = {key._replace(metric="latency", layout="1x4")}
    assert repeated_metric(key, keys | elsewhere) == expected
