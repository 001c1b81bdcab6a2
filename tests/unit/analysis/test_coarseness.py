"""What values cannot show is no difference, in cells and in curves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from mpigraft.analysis.statistics import coarseness
from mpigraft.core.model import ValueRow, Verdict
from tests.builders.campaigns import around, campaign, row
from tests.builders.comparisons import compared, only, verdicts
from tests.builders.verdicts import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER


def constants(own: float, base: float, resolution: float | None) -> list[ValueRow]:
    """Eight rounds of two constants, the baseline twice."""
    return [
        row(name, turn, size, value, replica=replica, resolution=resolution)
        for turn in range(8)
        for size in (1, 8, 64)
        for name, value, replica in (("base", base, 0), ("base", base, 1), ("k0", own, 0))
    ]


@pytest.mark.parametrize("mine", [0.10, 0.12])
def test_two_constants_a_step_apart_give_no_verdict(mine: float) -> None:
    """0.10 and 0.11 us were slower, with an interval of width zero."""
    group = only(compared(constants(mine, 0.11, 0.01)))
    assert verdicts(group) == [INCONCLUSIVE] * 3
    assert group.curve is INCONCLUSIVE
    (cell, *_) = group.cells
    assert cell.low is not None
    assert cell.high is not None
    off = (1 + 0.01 / mine) * (1 + 0.01 / 0.11)
    assert cell.low == pytest.approx(mine / 0.11 / off)
    assert cell.high == pytest.approx(mine / 0.11 * off)
    assert (group.pooled_low, group.pooled_high) == pytest.approx((cell.low, cell.high))
    assert cell.rounds_needed is None  # no number of rounds would show it


def test_constants_several_steps_apart_and_of_unknown_steps_are_called() -> None:
    for mine, resolution, verdict in ((0.20, 0.01, SLOWER), (0.05, 0.01, FASTER),
                                      (0.10, None, FASTER), (0.10, 1e-4, FASTER)):  # fmt: skip
        group = only(compared(constants(mine, 0.11, resolution)))
        assert verdicts(group) == [verdict] * 3
        assert group.curve is verdict


def test_what_is_alike_within_the_margin_needs_steps_within_it() -> None:
    assert verdicts(only(compared(constants(0.63, 0.63, 0.01)))) == [INCONCLUSIVE] * 3
    assert verdicts(only(compared(constants(0.63, 0.63, 0.005)))) == [EQUIVALENT] * 3


def test_rows_without_a_resolution_are_as_before() -> None:
    rows = campaign(around(0.5))
    fine = [r._replace(resolution=1e-12) for r in rows]
    before, after = only(compared(rows)), only(compared(fine))
    assert verdicts(before) == verdicts(after)
    assert [c.low for c in before.cells] == pytest.approx([c.low for c in after.cells])


def test_sizes_of_a_curve_have_steps_of_their_own() -> None:
    rows = [
        r._replace(resolution=0.5 if r.size == 8 else None) for r in campaign(around(0.5), rounds=8)
    ]
    plain = only(compared([r._replace(resolution=None) for r in rows]))
    coarse = only(compared(rows))
    widths = [
        math.log(new.high / new.low) - math.log(old.high / old.low)
        for new, old in zip(coarse.cells, plain.cells, strict=True)
        if new.low and new.high and old.low and old.high
    ]
    assert widths[0] == pytest.approx(0, abs=1e-12)
    assert widths[1] > 0.1
    assert widths[2] == pytest.approx(0, abs=1e-12)
    assert coarse.pooled_low
    assert coarse.pooled_high
    assert plain.pooled_low
    assert plain.pooled_high
    assert 2 * math.log(plain.pooled_low / coarse.pooled_low) == pytest.approx(widths[1] / 3)
    assert math.log(coarse.pooled_high / plain.pooled_high) == pytest.approx(widths[1] / 6)


def test_rounds_needed_allow_for_coarse_values() -> None:
    """A curve of 6 % with noise: steps take from what a winner has to spare."""
    rows = campaign(around(1.06), sizes=(8,))
    (plain,) = only(compared(rows)).cells
    (coarse,) = only(compared([r._replace(resolution=0.1) for r in rows])).cells
    assert plain.rounds_needed
    assert coarse.rounds_needed
    assert coarse.rounds_needed > plain.rounds_needed


def test_the_median_of_steps_and_none() -> None:
    steps = np.array([[0.1, np.nan, 0.0], [0.3, np.nan, 0.0], [0.2, np.nan, 0.5]])
    np.testing.assert_allclose(coarseness.steps_of(steps), [0.2, 0.0, 0.0])


def test_a_step_is_that_of_the_value() -> None:
    assert coarseness.step(2.0, 0.5) == pytest.approx(math.log(1.25))
    assert coarseness.step(2.0, None) == coarseness.step(2.0, 0.0) == 0.0


def test_medians_within_a_step_are_alike_whatever_the_interval() -> None:
    one = math.log1p(0.01 / 0.10)
    for verdict in (SLOWER, FASTER):
        assert coarseness.resolved(verdict, math.log(0.11 / 0.10), one) is INCONCLUSIVE
        assert coarseness.resolved(verdict, -math.log(0.11 / 0.10), one) is INCONCLUSIVE
        assert coarseness.resolved(verdict, math.log(0.12 / 0.10), one) is verdict
        assert coarseness.resolved(verdict, 0.0, 0.0) is INCONCLUSIVE
    for verdict in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE):
        assert coarseness.resolved(verdict, 0.0, one) is verdict


@pytest.mark.parametrize("coarse", ["k0", "base"])
def test_the_greater_step_of_both_sides_decides(coarse: str) -> None:
    """Half as slow again in all rounds but one, which is where both medians lie, 2 % apart."""
    base, mine = [1.0] * 7 + [4.0] + [10.0] * 7, [1.5] * 7 + [4.08] + [15.0] * 7
    for resolution, verdict in ((0.12, INCONCLUSIVE), (0.04, SLOWER)):
        rows = [
            row(name, turn, 8, value, resolution=resolution if name == coarse else None)
            for turn in range(15)
            for name, value in (("base", base[turn]), ("k0", mine[turn]))
        ]
        assert verdicts(only(compared(rows))) == [verdict]


def test_bounds_that_hold_for_all_sizes_are_wider_by_the_steps() -> None:
    def near(turn: int, size: int) -> float:
        return math.exp(0.002 * (turn * 7 % 5 - 2) + (0.003 if size == 8 else 0.0))

    rows = campaign(near, rounds=20)
    plain = only(compared(rows)).joint
    coarse = only(compared([r._replace(resolution=0.001 * r.value) for r in rows])).joint
    assert plain is not None
    assert coarse is not None
    assert plain.low is not None
    assert plain.high is not None
    assert plain.size == coarse.size == 8
    assert plain.low < math.exp(0.003) < plain.high
    assert coarse.low == pytest.approx(plain.low / 1.001**2, rel=1e-5)
    assert coarse.high == pytest.approx(plain.high * 1.001**2, rel=1e-5)


def test_coarse_values_narrow_the_margin_and_widen_the_limit() -> None:
    margin, limit = coarseness.narrowed(0.03, 0.05, math.log(1.02))
    assert margin == pytest.approx(1.03 / 1.02 - 1)
    assert limit == pytest.approx(1.05 * 1.02 - 1)
