"""Which step of a ladder moves the ratio, of campaigns whose answer is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mpigraft.analysis.ratio_attribution import StepRatio, judge_steps
from mpigraft.core.model import ConfigurationRecord, ValueRow, Verdict
from tests.builders.campaigns import CAMPAIGN, arms, row

STEPS = (("1-even", "1-even.record,"), ("2-skew", "2-skew.record,"), ("3-zeros", "3-zeros.record,"))
METRIC = "time [ms] lower"


def ladder(
    ratios: Sequence[float], rounds: int, noise: float = 0.02, again: float = 1.0
) -> list[ValueRow]:
    """Values of a baseline and of k0, whose times are `ratios` of it at each step. The second
    launch of the baseline in a round takes `again` times as long, in the first half of them."""
    dice = random.Random(7)
    rows = []
    for turn in range(rounds):
        for (_, part), ratio in zip(STEPS, ratios, strict=True):
            of = {"benchmark": f"app:/a b/{part}record=0,routine=Alltoallv", "metric": METRIC}
            for name, replica, level in (
                ("base", 0, 1.0),
                ("base", 1, again if turn < rounds // 2 else 1.0),
                ("k0", 0, ratio),
            ):
                value = 5 * level * (1 + turn) * dice.uniform(1 - noise, 1 + noise)
                rows.append(row(name, turn, 0, value, replica=replica, **of))
    return rows


def judged(rows: Sequence[ValueRow], configurations: Sequence[ConfigurationRecord] = ()) -> (
    tuple[StepRatio, ...]
):  # fmt: skip
    baseline, steps = judge_steps(CAMPAIGN, configurations or arms("k0"), rows, STEPS)
    assert baseline == "mpi@base"
    return steps


def test_the_step_that_moves_the_ratio_is_named() -> None:
    rows = judged(ladder((1.0, 1.0, 2.0), rounds=10))
    assert [(row.step, row.moves) for row in rows] == [
        ("1-even", False), ("2-skew", False), ("3-zeros", True),
    ]  # fmt: skip
    last = rows[-1]
    assert last.configuration == "mpi@k0"
    assert last.verdict is Verdict.SLOWER
    assert last.ratio.value == pytest.approx(2, rel=0.05)
    assert last.change
    assert last.change.value == pytest.approx(2, rel=0.05)
    assert last.change.low
    assert last.change.high
    assert last.change.low < 2 < last.change.high


def test_a_ratio_that_stays_is_moved_by_no_step() -> None:
    """However far from 1 it is."""
    assert not any(row.moves for row in judged(ladder((3.0, 3.0, 3.0), rounds=20)))


def test_noise_and_few_rounds_move_nothing() -> None:
    assert not any(row.moves for row in judged(ladder((1.0, 1.0, 1.2), rounds=10, noise=0.6)))
    assert not any(row.moves for row in judged(ladder((1.0, 1.0, 2.0), rounds=3)))
    assert judged(ladder((1.0, 1.0, 2.0), rounds=1))[-1].change is not None


def test_steps_without_values_are_left_out() -> None:
    rows = [one for one in ladder((1.0, 1.0, 2.0), 10) if "2-skew" not in one.benchmark]
    assert [(one.step, one.change) for one in judged(rows)] == [("1-even", None), ("3-zeros", None)]
    alone = [one for one in rows if one.configuration == "base"]
    assert judged(alone, arms()) == ()
    assert judge_steps(replace(CAMPAIGN, baseline="none"), arms(), [], STEPS) == ("none", ())


def test_a_step_may_move_the_ratio_down() -> None:
    last = judged(ladder((2.0, 2.0, 1.0), rounds=10))[-1]
    assert last.moves
    assert last.change
    assert last.change.value == pytest.approx(0.5, rel=0.05)


@pytest.mark.parametrize(
    ("ratio", "noise"), [(1.02, 0.001), (1 / 1.02, 0.001), (1.04, 0.05), (1 / 1.04, 0.05)]
)
def test_what_is_sure_and_small_moves_nothing(ratio: float, noise: float) -> None:
    """Or may be small: an end of its interval is."""
    last = judged(ladder((1.0, 1.0, ratio), rounds=40, noise=noise))[-1]
    assert last.p is not None
    assert last.p < 0.05
    assert not last.moves


@pytest.mark.parametrize("ratio", [1.1, 1 / 1.1])
def test_no_step_moves_less_than_two_launches_of_the_baseline(ratio: float) -> None:
    for again, moves in ((1.0, True), (1.5, False)):
        rows = ladder((1.0, 1.0, ratio), rounds=20, noise=0.001, again=again)
        kept = [one for one in rows if one.configuration != "base" or one.replica == 0]
        limited = [*kept, *(one for one in rows if one not in kept)]
        assert judged(limited)[-1].moves is moves


def test_rounds_without_a_value_are_left_out() -> None:
    rows = ladder((1.0, 1.0, 2.0), rounds=10)
    lost = next(n for n, one in enumerate(rows)
                if one.configuration == "k0" and "2-skew" in one.benchmark)  # fmt: skip
    found = judged([one for n, one in enumerate(rows) if n != lost])
    assert [row.rounds for row in found] == [10, 9, 10]
    assert found[-1].moves


def test_a_configuration_without_a_step_has_no_row_of_it() -> None:
    rows = ladder((1.0, 1.0, 2.0), rounds=10)
    rest = [one for one in rows if one.configuration != "k0" or "2-skew" not in one.benchmark]
    assert [(one.step, one.change) for one in judged(rest)] == [("1-even", None), ("3-zeros", None)]
    lone = [one for one in rows if one.configuration != "base" or "2-skew" not in one.benchmark]
    assert [(one.step, one.change) for one in judged(lone)] == [("1-even", None), ("3-zeros", None)]


def test_one_round_has_no_interval() -> None:
    for one in judged(ladder((1.0, 1.0, 2.0), rounds=1)):
        assert (one.ratio.low, one.ratio.high, one.moves) == (None, None, False)
