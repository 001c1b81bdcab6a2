"""Bounds that hold for all sizes at once, and what they let a curve be called."""

from __future__ import annotations

import math
from itertools import product
from statistics import median

import numpy as np
import pytest
from numpy.typing import NDArray

from evaluation.equivalence_synthetic import TRUTHS, shares
from mpigraft.analysis import equivalence
from mpigraft.analysis.equivalence import joint_bounds, widest_bound
from mpigraft.analysis.interim import FLIPS
from tests.builders.campaigns import SPREAD, Ratio, campaign
from tests.builders.comparisons import compared, only
from tests.builders.verdicts import EQUIVALENT, INCONCLUSIVE

Floats = NDArray[np.float64]
NAN = math.nan


def one(rounds: int) -> NDArray[np.int64]:
    return np.zeros(rounds, dtype=np.int64)


def defined(logs: list[list[float]]) -> list[tuple[float, float]]:
    """The bounds by their definition: Student's t of every column under every pattern of signs."""
    columns = [[row[k] for row in logs] for k in range(len(logs[0]))]

    def figures(values: list[float]) -> tuple[float, float]:
        here = [x for x in values if not math.isnan(x)]
        mean = sum(here) / len(here)
        free = len(here) - 1
        return mean, math.sqrt(sum((x - mean) ** 2 for x in here) / free / len(here))

    means, errors = zip(*map(figures, columns), strict=True)
    greatest = []
    for signs in product((1, -1), repeat=len(logs)):
        ts = []
        for values, mean in zip(columns, means, strict=True):
            flipped, error = figures([s * (x - mean) for s, x in zip(signs, values, strict=True)])
            ts.append(abs(flipped) / error)
        greatest.append(max(ts))
    rank = math.ceil(0.95 * (len(greatest) - 1))
    c = sorted(greatest)[rank]
    return [(mean - c * error, mean + c * error) for mean, error in zip(means, errors, strict=True)]


def checked(logs: list[list[float]]) -> None:
    low, high = joint_bounds(np.array(logs), one(len(logs)), 0)
    for k, (below, above) in enumerate(defined(logs)):
        assert low[k] == pytest.approx(below)
        assert high[k] == pytest.approx(above)


def test_bounds_are_those_of_their_definition() -> None:
    rng = np.random.default_rng(4)
    made = 0.01 + 0.03 * (rng.normal(size=(8, 1)) + rng.normal(size=(8, 4)))
    checked(made.tolist())
    checked(made[:7, :1].tolist())
    made[2, 1] = made[5, 3] = made[6, 3] = NAN
    checked(made.tolist())
    checked((5 * made - 3).tolist())


def test_sizes_with_few_rounds_have_no_bounds() -> None:
    logs = np.array([[x, x, x] for x in (*SPREAD, 0.02)])
    logs[0, 1] = logs[:2, 2] = NAN
    low, high = joint_bounds(logs, one(7), 0)
    assert np.isfinite(low).tolist() == np.isfinite(high).tolist() == [True, True, False]
    assert (low[2], high[2]) == (-math.inf, math.inf)
    alone = joint_bounds(logs[:, :2], one(7), 0)
    assert (low[:2].tolist(), high[:2].tolist()) == tuple(part.tolist() for part in alone)
    none = joint_bounds(logs[:5], one(5), 0)
    assert not np.isfinite(none).any()


def test_sizes_that_never_vary_are_known() -> None:
    logs = np.array([[0.01, x] for x in (*SPREAD, 0.02)])
    low, high = joint_bounds(logs, one(7), 0)
    assert low[0] == high[0] == 0.01
    assert low[1] < 0 < high[1]
    same = joint_bounds(logs[:, :1], one(7), 0)
    assert [part.tolist() for part in same] == [[0.01], [0.01]]


def test_bounds_reach_as_far_as_the_median() -> None:
    skewed = np.array([[-math.log((k + 0.5) / 400)] for k in range(400)])
    for sign in (1, -1):
        low, high = joint_bounds(sign * skewed, one(400), 0)
        middle = sign * median(skewed[:, 0].tolist())
        assert (low[0] if sign > 0 else high[0]) == middle
        assert low[0] < sign * skewed.mean() < high[0]


def test_what_allocations_differ_in_widens_the_bounds() -> None:
    """The standard error of 3 allocations' means, stretched by the root of 3 / 2."""
    levels = (0.0, 0.1, -0.07)
    rows = [[level + x / 10, x] for level in levels for x in SPREAD]
    logs, jobs = np.array(rows), np.repeat(np.arange(3), 6)
    alone = joint_bounds(logs, one(18), 0)
    low, high = joint_bounds(logs, jobs, 0)
    assert high[1] == alone[1][1]  # the second does not differ
    c = (high[1] - low[1]) / 2 / math.sqrt(np.var(SPREAD, ddof=0) / 17)
    mean = logs[:, 0].mean()
    means = [x + np.mean(SPREAD) / 10 for x in levels]
    error = math.sqrt(sum((x - mean) ** 2 for x in means) / 9 * 3 / 2)
    assert (high[0] - low[0]) / 2 == pytest.approx(c * error)
    assert high[0] - low[0] > 2 * (alone[1][0] - alone[0][0])


def test_more_rounds_than_patterns_draw_some() -> None:
    rng = np.random.default_rng(1)
    logs = rng.normal(0, 0.03, (30, 2))
    (first, again, other) = (joint_bounds(logs, one(30), seed) for seed in (1, 1, 2))
    assert first[0].tolist() == again[0].tolist()
    assert first[0].tolist() != other[0].tolist()
    assert first[0].tolist() == pytest.approx(other[0].tolist(), abs=0.002)
    assert FLIPS == 4096


def bounds(*pairs: tuple[float, float]) -> tuple[Floats, Floats]:
    low, high = np.log(np.array(pairs)).T
    return low, high


@pytest.mark.parametrize(
    ("pairs", "size", "beyond"),
    [
        (((0.99, 1.01), (0.97, 1.02), (0.98, 1.02)), 8, ()),
        (((0.99, 1.01), (0.98, 1.02), (0.98, 1.0599)), 64, ()),
        (((0.99, 1.01), (0.98, 1.02), (0.98, 1.0601)), 64, (64,)),
        (((1 / 1.0599, 1.01), (0.98, 1.02), (0.98, 1.02)), 1, ()),
        (((1 / 1.0601, 1.01), (0.98, 1.02), (0.98, 1.02)), 1, (1,)),
        (((1.0301, 1.05), (0.98, 1.02), (0.98, 1.02)), 1, (1,)),
        (((1.0299, 1.05), (0.95, 0.9715), (0.9, 0.97)), 64, (64,)),
        (((1.0299, 1.05), (0.95, 0.9705), (0.9, 0.98)), 64, (8, 64)),
    ],
)
def test_sizes_beyond_twice_the_margin_or_outside_it_for_sure(
    pairs: tuple[tuple[float, float], ...], size: int, beyond: tuple[int, ...]
) -> None:
    widest = widest_bound(bounds(*pairs), (1, 8, 64), 0.03)
    at = (1, 8, 64).index(size)
    assert (widest.size, widest.beyond, widest.limit) == (size, beyond, 0.06)
    assert (widest.low, widest.high) == pytest.approx(pairs[at])


def test_the_margin_that_is_asked_for_counts_twice() -> None:
    assert widest_bound(bounds((0.98, 1.09)), (1,), 0.05).beyond == ()
    assert widest_bound(bounds((0.98, 1.11)), (1,), 0.05).beyond == (1,)
    assert equivalence.GROUP == 2


def test_a_size_that_is_not_known_is_beyond() -> None:
    low, high = bounds((0.99, 1.01), (0.99, 1.01))
    low[1], high[1] = -math.inf, math.inf
    widest = widest_bound((low, high), (1, 8), 0.03)
    assert (widest.size, widest.low, widest.high, widest.beyond) == (8, None, None, (8,))


def test_a_curve_is_equivalent_as_a_whole_and_at_no_size_far_from_it() -> None:
    def at(far: float) -> Ratio:
        sizes = {1: 1.0, 8: far, 64: 1 / far}
        return lambda turn, size: sizes[size] * math.exp(SPREAD[turn % 6] / 4)

    for far, verdict in ((1.0, EQUIVALENT), (1.02, EQUIVALENT), (1.1, INCONCLUSIVE)):
        group = only(compared(campaign(at(far), rounds=12, pair=1.2)))
        assert group.curve is verdict
        assert group.joint is not None
        assert bool(group.joint.beyond) is (verdict is INCONCLUSIVE)


def test_a_curve_beyond_the_margin_has_no_joint_bounds() -> None:
    assert only(compared(campaign(lambda *_: 1.04))).joint is None
    assert only(compared(campaign(lambda *_: 1.0, rounds=5))).joint is None


@pytest.mark.parametrize(
    "truth",
    [
        *("1.00", "1.035"),
        *(pytest.param(t, marks=pytest.mark.long) for t in TRUTHS if t not in ("1.00", "1.035")),
    ],
)
def test_stated_rates_hold(truth: str) -> None:
    """evaluation/equivalence_synthetic.py counts many more campaigns."""
    result = shares(40, "normal", truth, 20)
    assert result.equivalent >= 0.6 if truth == "1.00" else result.equivalent <= 0.05
    assert result.covered >= 0.8
