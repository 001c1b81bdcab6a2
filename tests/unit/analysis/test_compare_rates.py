"""The symmetries of verdicts, and how often they are right."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.variation import variation
from evaluation.verdicts_synthetic import CORRELATION, SHAPES, rates, values
from mpigraft.core.model import ValueRow
from tests.builders.campaigns import campaign
from tests.builders.comparisons import compared, only
from tests.builders.verdicts import FASTER, INCONCLUSIVE, SLOWER

ratios = st.floats(0.3, 3.0)
noises = st.lists(st.floats(-0.2, 0.2), min_size=18, max_size=18)


def noisy(ratio: float, noise: list[float]) -> list[ValueRow]:
    places = {1: 0, 8: 1, 64: 2}
    return campaign(lambda turn, size: ratio * math.exp(noise[3 * turn + places[size]]))


@given(ratios, noises)
def test_swapping_the_two_swaps_the_verdicts(ratio: float, noise: list[float]) -> None:
    rows = noisy(ratio, noise)
    group, turned = only(compared(rows)), only(compared(rows, baseline="k0"))
    opposite = {FASTER: SLOWER, SLOWER: FASTER}
    for one, other in zip(group.cells, turned.cells, strict=True):
        assert other.verdict is opposite.get(one.verdict, one.verdict)
        assert other.ratio == pytest.approx(1 / one.ratio)
        assert other.low == pytest.approx(1 / (one.high or 0))
        assert other.rounds_needed == one.rounds_needed
    assert turned.curve is opposite.get(group.curve, group.curve)
    assert turned.curve_p == group.curve_p


@given(ratios, noises, st.floats(1e-9, 1e9))
def test_units_change_no_verdict(ratio: float, noise: list[float], unit: float) -> None:
    rows = noisy(ratio, noise)
    scaled = compared([r._replace(value=r.value * unit) for r in rows])
    for one, other in zip(only(compared(rows)).cells, only(scaled).cells, strict=True):
        assert other.verdict is one.verdict
        assert other.ratio == pytest.approx(one.ratio)
        assert other.value == pytest.approx(one.value * unit)


@given(ratios, noises, st.randoms(use_true_random=False))
def test_the_order_of_values_changes_nothing(ratio: float, noise: list[float], rng: object) -> None:
    rows = noisy(ratio, noise)
    shuffled = list(rows)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]
    assert compared(shuffled) == compared(rows)


@given(ratios, noises)
def test_verdicts_follow_from_what_is_shown(ratio: float, noise: list[float]) -> None:
    """The interval holds the ratio, and a reader can check each verdict against the margin."""
    comparison = compared(noisy(ratio, noise))
    limit = 1 + comparison.noise[0].margin
    for shown in only(comparison).cells:
        assert shown.low is not None
        assert shown.high is not None
        assert shown.low <= shown.ratio * (1 + 1e-12)
        assert shown.high >= shown.ratio * (1 - 1e-12)
        assert (shown.verdict is SLOWER) == (shown.low > limit)
        assert (shown.verdict is FASTER) == (shown.high < 1 / limit)
        assert (shown.rounds_needed is not None) <= (shown.verdict is INCONCLUSIVE)


@pytest.mark.parametrize(
    "shape", [SHAPES[0], *(pytest.param(shape, marks=pytest.mark.long) for shape in SHAPES[1:])]
)
def test_stated_rates_hold_on_synthetic_campaigns(shape: str) -> None:
    """With the variation and correlation of a small machine. evaluation/verdicts_synthetic.py
    counts many more campaigns; the bounds allow for the few here."""
    few = rates(5, 10, shape)
    assert few.false_winners == few.power == few.pair == 0
    for rounds, campaigns, power in ((6, 150, 0.80), (10, 100, 0.95), (20, 100, 0.98)):
        measured_rates = rates(rounds, campaigns, shape)
        assert measured_rates.false_winners <= 0.03
        assert measured_rates.pair <= 0.03
        assert measured_rates.false_curves <= 0.05
        assert measured_rates.power >= power
        assert measured_rates.wrong <= 0.001
        assert measured_rates.coverage >= 0.93


def test_allocations_that_differ_do_not_make_false_winners() -> None:
    measured_rates = rates(12, 60, "normal", allocations=3, between=0.06)
    assert measured_rates.false_winners <= 0.03
    assert measured_rates.coverage >= 0.93


def test_variation_finds_what_the_synthetic_campaigns_put_in() -> None:
    made = values(np.random.default_rng(1), 200, 0.12, "normal")
    ((_, pairs, spread, together),) = variation(made)
    assert pairs == 200
    assert spread == pytest.approx(0.12, abs=0.02)
    assert together == pytest.approx(CORRELATION, abs=0.05)
