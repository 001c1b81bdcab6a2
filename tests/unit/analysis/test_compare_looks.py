"""Verdicts of a campaign that is looked at several times."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import replace

import pytest

from mpigraft.core.model import CellGroup, Comparison
from mpigraft.core.serialize import canonical
from tests.builders.campaigns import CAMPAIGN, arms, around, campaign
from tests.builders.comparisons import compare, only
from tests.builders.verdicts import FASTER, SLOWER

LOOKS = (9, 14)


def looked(
    ratio: Callable[[int, int], float],
    rounds: int,
    over: Collection[int] | None = None,
    looks: Collection[int] = LOOKS,
) -> Comparison:
    """A campaign planned with `looks`, of which so many rounds have values."""
    plan = canonical({"wish": {"looks": list(looks)}})
    record = replace(CAMPAIGN, rounds=max(looks), plan=plan)
    return compare(record, arms("k0"), campaign(ratio, rounds=rounds), over=over)


def called(comparison: Comparison) -> tuple[object, ...]:
    group: CellGroup = only(comparison)
    return comparison.taken, group.curve, group.curve_p, group.look


def test_a_look_judges_the_rounds_before_it() -> None:
    """Nine rounds on one side have a p of 2 / 512; the cells are those of all rounds."""
    comparison = looked(around(0.5), 14)
    assert called(comparison) == (2, FASTER, pytest.approx(2 / 512), 9)
    assert [cell.rounds for cell in only(comparison).cells] == [14] * 3


def test_a_look_is_taken_when_its_rounds_are_over() -> None:
    """Those with values are, unless somebody knows better."""
    for rounds, over, taken in (
        (8, None, 0), (9, None, 1), (13, None, 1), (14, None, 2),
        (14, range(8), 0), (14, range(9), 1), (9, range(14), 2),
    ):  # fmt: skip
        assert looked(around(0.5), rounds, over).taken == taken, (rounds, over)


def test_what_a_look_called_stands_while_the_pooled_ratio_does() -> None:
    """One round far on the other side takes the joint test from it, but not the median."""

    def ratio(turn: int, _: int) -> float:
        return math.exp(-2.0 if turn == 11 else 0.3 + 0.001 * turn)

    p = only(looked(ratio, 14, looks=(14,))).curve_p
    assert p is not None
    assert p > 0.1
    assert called(looked(ratio, 14)) == (2, SLOWER, pytest.approx(2 / 512), 9)


def test_a_single_look_is_the_end_and_none_is_taken() -> None:
    comparison = looked(around(0.5), 14, looks=(14,))
    assert called(comparison) == (0, FASTER, only(comparison).curve_p, None)
    assert [look.rounds for look in comparison.looks] == [14]
