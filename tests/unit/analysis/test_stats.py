"""The arithmetic of a comparison, against values worked out by other means."""

from __future__ import annotations

import math
from statistics import NormalDist, mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis.statistics import bootstrap
from mpigraft.core.arrays import Floats
from mpigraft.core.model import EXACT_FROM

ONE = np.zeros(99, dtype=np.int64)
SAMPLE = np.array([[0.31, -2.0], [0.05, -1.0], [0.12, 1.0], [0.40, 2.0], [0.22, 4.0], [0.17, 9.0]])


def column(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)[:, None]


def test_student_is_the_textbooks_interval() -> None:
    low, high = bootstrap.student(SAMPLE)
    for k in range(2):
        numbers = SAMPLE[:, k].tolist()
        half = 2.570582 * stdev(numbers) / math.sqrt(6)
        assert low[k] == pytest.approx(mean(numbers) - half, rel=1e-3)
        assert high[k] == pytest.approx(mean(numbers) + half, rel=1e-3)


def test_student_quantiles_are_quantiles() -> None:
    """P(|T| < t) = 95 %, integrated over the density."""
    assert len(bootstrap.T_975) == EXACT_FROM - 2
    for free, quantile in enumerate(bootstrap.T_975, 1):
        scale = math.gamma((free + 1) / 2) / math.sqrt(free * math.pi) / math.gamma(free / 2)
        x = np.linspace(0.0, quantile, 20_001)
        y = scale * (1 + x * x / free) ** (-(free + 1) / 2)
        inside = float(((y[1:] + y[:-1]) / 2).sum() * (x[1] - x[0]))
        assert inside == pytest.approx(0.475, abs=2e-5)


def test_normal_quantiles_are_quantiles() -> None:
    assert pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-3) == bootstrap.Z_95
    assert pytest.approx(NormalDist().inv_cdf(0.8), abs=1e-3) == bootstrap.Z_POWER


@pytest.mark.parametrize(
    ("rounds", "rank"), [(1, 0), (5, 0), (6, 1), (8, 1), (9, 2), (12, 3), (20, 6), (60, 22)]
)
def test_median_rank_is_that_of_the_sign_test(rounds: int, rank: int) -> None:
    assert bootstrap.median_rank(rounds) == rank


@given(st.integers(6, 200))
def test_the_rank_is_the_greatest_that_covers(rounds: int) -> None:
    def coverage(rank: int) -> float:
        return float(1 - 2 * sum(math.comb(rounds, k) for k in range(rank)) / 2**rounds)

    rank = bootstrap.median_rank(rounds)
    assert coverage(rank) >= 0.95 > coverage(rank + 1)


def test_order_statistics_take_that_rank_from_both_ends() -> None:
    rng = np.random.default_rng(3)
    logs = np.stack([rng.permutation(20.0 + np.arange(20)), rng.permutation(np.arange(20.0))], 1)
    low, high = bootstrap.order_statistics(logs)
    assert low.tolist() == [25.0, 5.0]
    assert high.tolist() == [34.0, 14.0]


def test_the_method_changes_at_twelve_rounds() -> None:
    rng = np.random.default_rng(4)
    for rounds, method in ((11, bootstrap.student), (12, bootstrap.order_statistics)):
        logs = rng.standard_normal((rounds, 3))
        bounds = bootstrap.interval(logs, ONE[:rounds])
        for ours, theirs in zip(bounds, method(logs), strict=True):
            assert ours.tolist() == theirs.tolist()


def test_one_round_has_no_interval_and_two_have() -> None:
    low, high = bootstrap.interval(column(0.3), ONE[:1])
    assert np.isnan(low).all()
    assert np.isnan(high).all()
    low, high = bootstrap.interval(column(0.3, 0.4), ONE[:2])
    assert low[0] == pytest.approx(0.35 - 12.706 * 0.05)
    assert high[0] == pytest.approx(0.35 + 12.706 * 0.05)


def test_the_interval_holds_the_ratio_that_is_shown() -> None:
    """Of mostly equal values the mean may be far from the median."""
    logs = column(*[0.0] * 10, 50.0)
    low, high = bootstrap.student(logs)
    assert low[0] < 0 < high[0]
    low, high = bootstrap.interval(np.hstack([logs, -logs]), ONE[:11])
    assert low[0] <= 0 <= high[0]
    shifted = column(*[0.0] * 6, *[1.0] * 5)
    low, high = bootstrap.interval(np.hstack([shifted, -shifted]), ONE[:11])
    assert low[0] == 0.0
    assert high[1] == 0.0
    assert low[1] == -high[0] < -0.5


def test_several_allocations_make_the_interval_wider_not_narrower() -> None:
    """The wider of both on each side. In the first column allocations differ, so that only the
    bootstrap sees it; in the second they agree better than chance would have it."""
    rng = np.random.default_rng(5)
    jobs = np.repeat([0, 1, 2], 5)
    apart = np.repeat([-1.0, 0.0, 1.0], 5) + 0.01 * rng.standard_normal(15)
    agreed = np.tile([-2.0, -1.0, 0.0, 1.0, 2.0], 3)
    logs = np.stack([apart, agreed], axis=1)
    below, above = bootstrap.bootstrap(logs, jobs, seed=3)
    alone = bootstrap.interval(logs, ONE[:15], seed=3)
    low, high = bootstrap.interval(logs, jobs, seed=3)
    assert low.tolist() == np.minimum(alone[0], below).tolist()
    assert high.tolist() == np.maximum(alone[1], above).tolist()
    assert low[0] < alone[0][0]
    assert high[0] > alone[1][0]
    logs[:, 0] -= 3 * jobs  # two allocations suffice
    low, high = bootstrap.interval(logs[:10], jobs[:10], seed=3)
    alone = bootstrap.interval(logs[:10], ONE[:10], seed=3)
    assert low[0] < alone[0][0]


def test_the_wider_of_the_two_may_be_that_of_the_rounds() -> None:
    """Four rounds have a wide t, and resampling cannot leave their range by much."""
    logs, jobs = column(0.0, 1.0, 0.0, 1.0), np.array([0, 0, 1, 1])
    alone = bootstrap.interval(logs, ONE[:4], seed=3)
    below, above = bootstrap.bootstrap(logs, jobs, seed=3)
    assert alone[0][0] < below[0]
    assert above[0] < alone[1][0]
    assert bootstrap.interval(logs, jobs, seed=3) == alone


def test_the_bootstrap_is_the_stretched_percentile_interval() -> None:
    """By its definition, from the same draws, on skewed values."""
    logs = np.random.default_rng(13).exponential(1.0, (15, 2)) ** 2
    jobs = np.repeat([0, 1, 2], 5)
    counts = bootstrap._resampled(tuple(jobs.tolist()), 3)
    low, high = bootstrap.bootstrap(logs, jobs, seed=3)
    for k in range(2):
        drawn = sorted(float(np.median(np.repeat(logs[:, k], c))) for c in counts)
        middle = float(np.median(logs[:, k]))
        for bound, share in ((low[k], 0.025), (high[k], 0.975)):
            expected = middle + (np.quantile(drawn, share) - middle) * math.sqrt(3 / 2)
            assert bound == pytest.approx(expected)


def test_the_bootstrap_of_allocations_knows_what_they_share() -> None:
    """Rounds that agree inside each of three allocations say no more than three values do: the
    chance that all three draws are the lowest is 1/27, more than 2.5 %."""
    logs = np.repeat([[0.0], [1.0], [2.0]], 5, axis=0)
    jobs = np.repeat([0, 1, 2], 5)
    low, high = bootstrap.bootstrap(logs, jobs, seed=1)
    assert low[0] == pytest.approx(1 - math.sqrt(3 / 2))
    assert high[0] == pytest.approx(1 + math.sqrt(3 / 2))


def test_the_bootstrap_is_the_same_for_the_same_seed_alone() -> None:
    logs = np.random.default_rng(6).standard_normal((12, 2))
    jobs = np.repeat([4, 7], 6)
    first = bootstrap.bootstrap(logs, jobs, seed=1)
    again = bootstrap.bootstrap(logs, jobs, seed=1)
    other = bootstrap.bootstrap(logs, jobs, seed=2)
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


@given(
    st.lists(st.integers(-50, 50), min_size=1, max_size=12).flatmap(
        lambda values: st.tuples(
            st.just(values), st.lists(st.integers(0, 4), min_size=len(values), max_size=len(values))
        )
    )
)
def test_a_weighted_median_is_the_median_of_the_repeated_values(
    drawn: tuple[list[int], list[int]],
) -> None:
    values, counts = drawn
    if sum(counts):
        numbers = np.array([counts], dtype=np.int16)
        medians = bootstrap._weighted_medians(np.array(values, dtype=np.float64), numbers)
        assert medians[0] == np.median(np.repeat(values, counts))


@pytest.mark.parametrize(
    ("counts", "median"),
    [([1, 1, 1], 2.0), ([0, 0, 2], 9.0), ([1, 1, 0], 1.5), ([2, 0, 2], 5.0), ([1, 3, 1], 2.0),
     ([1, 0, 3], 9.0), ([0, 2, 1], 2.0), ([1, 0, 2], 9.0)],
)  # fmt: skip
def test_weighted_medians_of_three_values(counts: list[int], median: float) -> None:
    medians = bootstrap._weighted_medians(
        np.array([9.0, 1.0, 2.0]), np.array([[counts[2], *counts[:2]]], dtype=np.int16)
    )
    assert medians.tolist() == [median]


def test_drawn_rounds_are_as_many_as_their_allocations_have() -> None:
    """Allocations of 2 and 4 rounds: either, both or each twice."""
    counts = bootstrap._resampled((0, 0, 1, 1, 1, 1), 9)
    shares = {(int(row[:2].sum()), int(row[2:].sum())) for row in counts}
    assert shares == {(4, 0), (2, 4), (0, 8)}
    assert len(counts) == bootstrap.RESAMPLES
    assert counts.mean(axis=0) == pytest.approx(1.0, abs=0.15)


# ------------------------------------------------------------------ small helpers


def test_rounds_for_a_gap() -> None:
    assert bootstrap.rounds_for(0.1, 0.1, power=False) == math.ceil(1.96**2)
    assert bootstrap.rounds_for(0.1, 0.1) == math.ceil(2.802**2)
    assert bootstrap.rounds_for(0.2, 0.1) == math.ceil(4 * 2.802**2)
    assert bootstrap.rounds_for(0.1, 0.05) == math.ceil(4 * 2.802**2)
    assert bootstrap.rounds_for(0.1, 0.0) is None
    assert bootstrap.rounds_for(0.1, -0.1) is None
    assert bootstrap.rounds_for(math.nan, 0.1) is None
    assert bootstrap.rounds_for(1.0, 0.02803) == 9993
    assert bootstrap.rounds_for(1.0, 0.02801) is None


def test_medians_and_deviations_pass_over_gaps() -> None:
    gap = math.nan
    logs = np.array([[1.0, gap, 3.0, gap], [2.0, 5.0, gap, gap], [6.0, 8.0, gap, gap]])
    assert bootstrap.filled(logs).tolist() == [True, True, True, False]
    assert bootstrap.medians(logs[:, :3]).tolist() == [2.0, 6.5, 3.0]
    assert bootstrap.medians(logs[:, :1]).tolist() == [2.0]
    deviations = bootstrap.deviations(logs[:, :3])
    assert deviations[0] == pytest.approx(stdev([1, 2, 6]))
    assert deviations[1] == pytest.approx(stdev([5, 8]))
    assert math.isnan(deviations[2])


def test_a_ratio_so_far_is_the_median_in_the_interval_of_these_rounds() -> None:
    """Student's t: 4.303 * 0.1 / sqrt(3) is 0.2484."""
    ratio, low, high = bootstrap.ratio_so_far([0.6, 0.7, 0.8])
    assert (ratio, low, high) == pytest.approx(
        [math.exp(x) for x in (0.7, 0.4516, 0.9484)], rel=1e-4
    )
    assert bootstrap.ratio_so_far([0.7])[0] == pytest.approx(math.exp(0.7))
    assert all(map(math.isnan, bootstrap.ratio_so_far([0.7])[1:]))
    assert bootstrap.ratio_so_far([-700.0, 700.0, 700.0])[0] == pytest.approx(math.exp(300))
