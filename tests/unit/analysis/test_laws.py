"""The arithmetic of the laws, against others' and by hand."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis.rank_scaling.laws import (
    CONSTANT,
    FLOOR,
    LAW_REACH,
    LAWS,
    LOGARITHM,
    PARAMETERS,
    POWER,
    RESAMPLES,
    Law,
    _Data,
    _distances,
    _resample,
    choose,
    resampled,
)

RANKS = (1, 2, 4, 8, 16, 32, 64)
Values = Sequence[tuple[int, Sequence[float]]]
# 2, 3, 1 and 4 launches: counts of launches weigh
UNEVEN: Values = ((1, (10.0, 12.0)), (2, (13.0, 12.0, 14.5)), (4, (17.0,)), (8, (18, 21, 20, 19)))


def columns(name: str, ranks: Sequence[float], c: float) -> np.ndarray:
    p = np.array(ranks, float)
    second = {CONSTANT: [], LOGARITHM: [np.log2(p)], POWER: [p**c]}[name]
    return np.column_stack([np.ones(len(p)), *second])


def by_lstsq(values: Values, name: str, c: float = 0.0) -> tuple[np.ndarray, float]:
    """Parameters and sum of squares of numpy's own least squares over all launches, each divided
    by the median at its number of ranks."""
    ranks = [p for p, own in values for _ in own]
    scale = np.array([np.median(own) for _, own in values for _ in own])
    y = np.array([v for _, own in values for v in own])
    matrix = columns(name, ranks, c)
    solution = np.linalg.lstsq(matrix / scale[:, None], y / scale, rcond=None)[0]
    return solution, float((((y - matrix @ solution) / scale) ** 2).sum())


def aicc(squares: float, n: int, k: int) -> float:
    return n * math.log(squares / n) + 2 * k + 2 * k * (k + 1) / (n - k - 1)


@pytest.mark.parametrize("name", LAWS)
def test_the_least_squares_are_numpys(name: str) -> None:
    data = _Data.of(UNEVEN)
    laws, scores = data.fit(data.means[None], data.inner[None])
    law = laws[name][0]
    solution, squares = by_lstsq(UNEVEN, name, law.c)
    assert (law.c == 0) == (name != POWER)
    assert law.a == pytest.approx(solution[0])
    assert law.b == pytest.approx(solution[1] if len(solution) > 1 else 0)
    assert scores[name][0] == pytest.approx(
        aicc(squares, 10, {CONSTANT: 2, LOGARITHM: 3, POWER: 4}[name])
    )
    assert PARAMETERS[name] == {CONSTANT: 2, LOGARITHM: 3, POWER: 4}[name]
    assert law.at(8) == pytest.approx(float((columns(name, [8], law.c) @ solution)[0]))


def test_the_power_is_the_best_of_its_grid() -> None:
    data = _Data.of(UNEVEN)
    law = data.fit(data.means[None], data.inner[None])[0][POWER][0]
    grid = [c for c in np.round(np.arange(-2, 3.001, 0.02), 2) if abs(c) > 0.05]
    assert (grid[0], grid[-1]) == (-2, 3)
    fine = {float(c): by_lstsq(UNEVEN, POWER, float(c)) for c in grid}
    good = {c: s for c, ((a, b), s) in fine.items() if a + b * 32**c > 0}
    assert law.c == min(good, key=good.__getitem__)


@pytest.mark.parametrize("c", [-2.0, -0.06, 0.06, 1.0, 3.0])
def test_powers_of_the_whole_grid_are_fitted(c: float) -> None:
    values = [(p, (5 + 2 * float(p) ** c, 5.001 + 2 * float(p) ** c)) for p in (1, 2, 4, 8, 16)]
    data = _Data.of(values)
    law = data.fit(data.means[None], data.inner[None])[0][POWER][0]
    assert law.c == c


@pytest.mark.parametrize(("c", "found"), [(-2.5, -2), (3.5, 3)])
def test_powers_beyond_the_grid_are_its_ends(c: float, found: float) -> None:
    data = _Data.of([(p, (5 + 2 * float(p) ** c,)) for p in (1, 2, 4, 8, 16)])
    assert data.fit(data.means[None], data.inner[None])[0][POWER][0].c == found


def test_a_law_that_is_nothing_within_reach_is_none() -> None:
    """It would be zero at 4 x 8 ranks for b = -20, above for -19.9."""
    assert LAW_REACH == 4
    for slope, name in ((-20.1, CONSTANT), (-19.9, LOGARITHM)):
        values = [
            (p, [(100 + slope * math.log2(p)) * x for x in (1.0, 1.01)]) for p in (1, 2, 4, 8)
        ]
        data = _Data.of(values)
        scores = data.fit(data.means[None], data.inner[None])[1]
        assert math.isfinite(scores[LOGARITHM][0]) == (name == LOGARITHM)


def test_the_simplest_of_those_within_two_is_chosen() -> None:
    """The logarithm is chosen once it is better by more than 2, not before."""
    chosen = set()
    for slope in np.linspace(0, 0.6, 61):
        values = [(p, [10 + slope * math.log2(p) + x for x in (-1, 0.2, 1)]) for p in (1, 2, 4, 8)]
        data = _Data.of(values)
        scores = data.fit(data.means[None], data.inner[None])[1]
        gain = scores[CONSTANT][0] - min(s[0] for s in scores.values())
        law, why = choose(values)
        assert (law.name == CONSTANT) == (gain <= 2)
        for name in set(LAWS) - {law.name}:
            assert f"{LAWS[name]} {scores[name][0] - scores[law.name][0]:+.1f}" in why
        assert f"{LAWS[law.name]} " not in why.replace("a + b", "")
        chosen.add(law.name)
    assert {CONSTANT, LOGARITHM} <= chosen


def test_too_few_launches_for_a_law_leave_it_out() -> None:
    """n - k - 1 has to be above 0: of five launches the power, of four the logarithm is none."""
    for count, left in ((4, {CONSTANT}), (5, {CONSTANT, LOGARITHM}), (6, set(LAWS))):
        data = _Data.of([(2**k, [1.0 + 0.1 * k + 0.01 * k**2]) for k in range(count)])
        scores = data.fit(data.means[None], data.inner[None])[1]
        assert {name for name in LAWS if math.isfinite(scores[name][0])} == left
    assert choose([(2**k, [1.0]) for k in range(4)])[1] == "no other law can be compared"


def test_nearer_than_values_are_printed_is_no_nearer() -> None:
    data = _Data.of([(p, [100.0, 100.0]) for p in (1, 2, 4, 8)])
    scores = data.fit(data.means[None], data.inner[None])[1]
    assert scores[CONSTANT][0] == pytest.approx(aicc(8 * FLOOR**2, 8, 2))


def test_distances_have_the_variance_of_what_they_come_from() -> None:
    values = np.array([1.0, 2.0, 6.0])
    assert _distances(values).tolist() == pytest.approx([x * math.sqrt(1.5) for x in (-2, -1, 3)])
    assert (_distances(values) ** 2).mean() == pytest.approx(np.var(values, ddof=1))
    assert (_distances(np.array([1.0, 2.0])) ** 2).mean() == pytest.approx(0.5)
    assert _distances(np.array([5.0])).tolist() == [0]


def test_the_misfit_is_what_launches_do_not_explain() -> None:
    """By hand: means 10 % above and below a constant of 10, launches 1 % apart."""
    spread = (0.99, 1.01)
    values = [(2**k, [10 * (1.1 if k % 2 else 0.9) * x for x in spread]) for k in range(4)]
    data = _Data.of(values)
    every = np.concatenate(
        [_distances(np.array(v) / s) for (_, v), s in zip(values, data.scale, strict=True)]
    )
    own = 2 * 0.01**2  # of two launches, ddof 1
    off = [(1 - 10 / (9 if k % 2 == 0 else 11)) ** 2 for k in range(4)]
    assert data.misfit(Law(CONSTANT, 10), every) == pytest.approx(math.sqrt(sum(off) / 3 - own / 2))
    assert data.misfit(Law(LOGARITHM, 10), every) == pytest.approx(
        math.sqrt(sum(off) / 2 - own / 2)
    )
    assert data.misfit(Law(POWER, 10, 0, 1), every) == pytest.approx(math.sqrt(sum(off) - own / 2))
    wild = _Data.of([(2**k, [9.0, 11.0]) for k in range(4)])
    assert wild.misfit(Law(CONSTANT, 10), every) == 0


def test_the_misfit_takes_the_others_scatter_for_a_single_launch() -> None:
    values = [(1, [9.0, 11.0]), (2, [9.5, 10.5]), (4, [14.0]), (8, [9.0, 10.0, 11.0])]
    data = _Data.of(values)
    every = np.array([0.1, -0.3])
    own = [0.02 / 2, 0.005 / 2, 0.05, 0.01 / 3]
    off = (1 - 10 / 14) ** 2
    assert data.misfit(Law(CONSTANT, 10), every) == pytest.approx(math.sqrt(off / 3 - sum(own) / 4))


def spread(values: Values, ranks: int) -> float:
    values_there = [law.at(ranks) for law in resampled(values, choose(values)[0], 1)]
    assert len(values_there) == RESAMPLES
    return float(np.std(values_there))


def test_what_is_drawn_has_the_mean_and_the_variance_of_what_was_measured() -> None:
    """Skewed launches: the means' own skew, and the sum of squares is (n - 1) variances."""
    values = [(2**k, [10 * x for x in (0.9, 0.9, 0.9, 1.3)]) for k in range(4)]
    data = _Data.of(values)
    means, inner = _resample(values, data, Law(CONSTANT, 10), 2)
    variance = float(np.var([x / 0.9 for x in (0.9, 0.9, 0.9, 1.3)], ddof=1))
    assert means.shape == inner.shape == (RESAMPLES, 4)
    assert means.mean(axis=0) == pytest.approx(data.means, rel=0.03)
    assert means.var() == pytest.approx(variance / 4, rel=0.15)
    assert inner.mean() == pytest.approx(3 * variance, rel=0.1)
    assert np.max(means) - data.means[0] > 2 * (data.means[0] - np.min(means))


def test_a_single_launch_is_drawn_from_the_others_and_two_from_their_own() -> None:
    values = [(1, [9.9, 10.1]), (2, [8.0, 12.0]), (4, [10.0]), (8, [10.0])]
    data = _Data.of(values)
    means, inner = _resample(values, data, Law(CONSTANT, 10), 2)
    near, far = 0.01 * math.sqrt(2), 0.2 * math.sqrt(2)
    assert set(np.round(means[:, 0] - 1, 9)) == {round(x, 9) for x in (-near, 0, near)}
    assert set(np.round(means[:, 2] - 1, 9)) == {round(x, 9) for x in (-far, -near, near, far)}
    assert not inner[:, 2].any()


def test_launches_once_each_scatter_about_their_law_alone() -> None:
    values = [(2**k, [10 * (1.1 if k % 2 else 0.9)]) for k in range(8)]
    data = _Data.of(values)
    means, _ = _resample(values, data, Law(CONSTANT, 10), 2)
    off = [(1 - 10 / (11 if k % 2 else 9)) ** 2 for k in range(8)]
    assert means.std() == pytest.approx(math.sqrt(sum(off) / 7), rel=0.1)


def test_each_campaign_drawn_has_the_law_of_its_own() -> None:
    rng = np.random.default_rng(8)
    for rise, name in ((0, CONSTANT), (1, POWER)):
        curve = [(p, 10.0 + rise * p) for p in RANKS]
        values = [(p, (x * (1 + 0.03 * rng.normal(size=5))).tolist()) for p, x in curve]
        counts = Counter(law.name for law in resampled(values, choose(values)[0], 1))
        assert counts.most_common(1)[0][0] == name


def test_a_single_launch_scatters_as_the_others_do() -> None:
    many = [(p, [9.0, 9.5, 10.0, 10.5, 11.0]) for p in (1, 2, 4, 8)]
    once = [*many[:3], (8, [10.0])]
    assert spread(once, 32) > spread(many, 32)
    alike = [(p, [10.0, 10.0]) for p in (1, 2, 4, 8)]
    assert spread(alike, 32) == pytest.approx(0, abs=1e-12)  # but for a fit's rounding


def test_the_same_seed_draws_the_same() -> None:
    law = choose(UNEVEN)[0]
    assert resampled(UNEVEN, law, 3) == resampled(UNEVEN, law, 3)
    assert resampled(UNEVEN, law, 3) != resampled(UNEVEN, law, 4)


@given(st.floats(-3, 3), st.floats(0.1, 100), st.integers(1, 1 << 20))
def test_a_law_says_what_is_written(c: float, b: float, ranks: int) -> None:
    assert Law(CONSTANT, 3, b, c).at(ranks) == 3
    assert Law(LOGARITHM, 3, b).at(ranks) == 3 + b * math.log2(ranks)
    assert Law(POWER, 3, b, c).at(ranks) == 3 + b * float(ranks) ** c
