"""Which step of a ladder moves the ratio, of campaigns whose answer is known."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from mpigraft.analysis.steps import StepRatio, judge_steps
from mpigraft.core.model import ConfigurationRecord, ValueRow, Verdict
from tests.builders.campaigns import CAMPAIGN, arms, row

STEPS = (("1-even", "1-even.record,"), ("2-skew", "2-skew.record,"), ("3-zeros", "3-zeros.record,"))
METRIC = "time [ms] lower"


def ladder(ratios: Sequence[float], rounds: int, noise: float = 0.02) -> list[ValueRow]:
    """Values of a baseline and of k0, whose times are `ratios` of it at each step."""
    dice = random.Random(7)
    rows = []
    for turn in range(rounds):
        for (_, part), ratio in zip(STEPS, ratios, strict=True):
            of = {"benchmark": f"app:/a b/{part}record=0,routine=Alltoallv", "metric": METRIC}
            for name, replica, level in (("base", 0, 1.0), ("base", 1, 1.0), ("k0", 0, ratio)):
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
