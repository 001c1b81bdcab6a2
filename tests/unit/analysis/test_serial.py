"""Rounds that resemble their neighbours are worth fewer."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from itertools import pairwise
from statistics import mean

import numpy as np
import pytest
from numpy.typing import NDArray

from evaluation.serial_synthetic import shares
from mpigraft.analysis.statistics import serial
from mpigraft.analysis.statistics.bootstrap import T_975
from mpigraft.analysis.statistics.serial import UNKNOWN, dependence, stretched
from mpigraft.core.model import Level, Origin
from tests.builders.campaigns import CAMPAIGN, Ratio, arms, campaign
from tests.builders.comparisons import codes, compare, compared, only, verdicts
from tests.builders.messages import matches, shows
from tests.builders.verdicts import INCONCLUSIVE, SLOWER

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

STEADY = [0.05 * math.sin(k / 2.5) for k in range(20)]  # rounds that follow each other


def one(rounds: int) -> Ints:
    return np.zeros(rounds, dtype=np.int64)


def column(values: list[float]) -> Floats:
    return np.array(values)[:, None]


def following(steps: list[float], ratio: float = 1.0) -> Ratio:
    """A configuration that is `ratio` times as slow, and each round by a step more."""
    return lambda turn, _: ratio * math.exp(steps[turn])


def neighbours(values: list[float]) -> float:
    """The lag-1 correlation as textbooks have it."""
    middle = mean(values)
    away = [x - middle for x in values]
    products = sum(a * b for a, b in pairwise(away))
    return products / sum(x * x for x in away)


def unbiased(correlation: float, rounds: float) -> float:
    return (rounds * correlation + 1) / (rounds - 3)


def test_the_correlation_is_kendalls() -> None:
    rng = random.Random(1)
    noise = [rng.gauss(0, 1) for _ in range(20)]
    plain = dependence(column(noise), one(20), 0)
    assert plain.correlation == pytest.approx(unbiased(neighbours(noise), 20))
    assert (plain.effective, plain.stretch) == (None, 1.0)
    both = dependence(np.array([STEADY, noise]).T * [1, 9], one(20), 0)
    together = (neighbours(STEADY) + neighbours(noise)) / 2
    assert both.correlation == pytest.approx(unbiased(together, 20))


def test_rounds_that_follow_each_other_are_worth_fewer() -> None:
    half = [x + 0.02 * (-1) ** k for k, x in enumerate(STEADY)]
    estimate = dependence(column(half), one(20), 0)
    r = estimate.correlation
    assert r == pytest.approx(unbiased(neighbours(half), 20))
    assert r is not None
    assert estimate.effective == pytest.approx(20 * (1 - r) / (1 + r))
    assert estimate.effective is not None
    wider = serial._quantile(estimate.effective - 1) / serial._quantile(19)
    assert estimate.stretch == pytest.approx(wider * math.sqrt(20 / estimate.effective))
    assert 1.5 < estimate.stretch < 3


def test_a_line_is_worth_two_rounds() -> None:
    line = dependence(column([0.01 * k for k in range(20)]), one(20), 0)
    assert line.effective == 2
    assert line.stretch == pytest.approx(12.706 / serial._quantile(19) * math.sqrt(10))
    assert unbiased(neighbours([float(k) for k in range(20)]), 20) > 1
    assert line.correlation == 0.99


def test_rounds_that_alternate_keep_what_they_are_worth() -> None:
    estimate = dependence(column([0.05, -0.05] * 10), one(20), 0)
    assert estimate.correlation is not None
    assert estimate.correlation < -0.9
    assert (estimate.effective, estimate.stretch) == (None, 1.0)


@pytest.mark.parametrize(("rounds", "known"), [(5, False), (6, True)])
def test_few_rounds_have_no_correlation(rounds: int, known: bool) -> None:
    estimate = dependence(column(STEADY[:rounds]), one(rounds), 0)
    assert (estimate != UNKNOWN) is known


def test_ratios_that_are_all_the_same_have_none() -> None:
    assert dependence(column([0.3] * 20), one(20), 0) == UNKNOWN
    tiny = [0.3 + 1e-12 * x for x in STEADY]
    assert dependence(column(tiny), one(20), 0) == UNKNOWN
    beside = dependence(np.array([tiny, STEADY]).T, one(20), 0)
    assert beside == dependence(column(STEADY), one(20), 0)


def test_what_a_round_lacks_counts_for_nothing() -> None:
    half = [x + 0.03 * (-1) ** k for k, x in enumerate(STEADY)]
    logs = np.array([half, half]).T
    logs[[3, 9]] = np.nan
    short = [x for k, x in enumerate(half) if k not in (3, 9)]
    assert dependence(logs, one(20), 0) == dependence(np.array([short, short]).T, one(18), 0)
    logs[5, 1] = np.nan
    middle = mean(x for k, x in enumerate(half) if k not in (3, 5, 9))
    away = [x - middle if k != 5 else 0.0 for k, x in enumerate(half) if k not in (3, 9)]
    gap = sum(a * b for a, b in pairwise(away)) / sum(x * x for x in away)
    estimate = dependence(logs, one(20), 0)
    assert estimate.correlation == pytest.approx(unbiased((neighbours(short) + gap) / 2, 18))


def test_rounds_of_two_allocations_are_no_neighbours() -> None:
    """Their levels differ, and each has its own mean."""
    jobs = np.repeat(np.arange(2), 10)
    rng = random.Random(5)
    noise = [rng.gauss(0, 1) for _ in range(20)]
    apart = [x + 9 * (k >= 10) for k, x in enumerate(noise)]
    estimate = dependence(column(apart), jobs, 0)
    halves = [[x - mean(part) for x in part] for part in (noise[:10], noise[10:])]
    products = sum(a * b for part in halves for a, b in pairwise(part))
    together = products / sum(x * x for part in halves for x in part)
    assert estimate.correlation == pytest.approx(unbiased(together, 10))
    assert estimate.effective is None
    assert dependence(column(apart), one(20), 0).effective is not None
    mixed = [x for pair in zip(apart[:10], apart[10:], strict=True) for x in pair]
    alternating = np.array([0, 1] * 10)
    assert dependence(column(mixed), alternating, 0).correlation == estimate.correlation


def test_short_allocations_are_not_judged() -> None:
    for rounds, known in ((11, False), (12, True)):
        jobs = np.array([int(k >= 5) for k in range(rounds)])
        assert (dependence(column(STEADY[:rounds]), jobs, 0) != UNKNOWN) is known


def test_steady_allocations_are_judged_within_each() -> None:
    jobs = np.repeat(np.arange(2), 20)
    steps = [x + 9 * k for k in range(2) for x in STEADY]
    estimate = dependence(column(steps), jobs, 0)
    assert estimate.effective is not None
    assert estimate.effective < 20


def test_chance_alone_makes_one_in_a_hundred() -> None:
    rng = random.Random(2)
    made = [[rng.gauss(0, 1) for _ in range(12)] for _ in range(300)]
    widened = sum(dependence(column(values), one(12), 3).effective is not None for values in made)
    assert 1 <= widened <= 6


def test_rarer_than_one_in_a_hundred_is_rare() -> None:
    """Orders of which chance makes neighbours more alike in 1.25 and in 0.85 %."""
    for seed, widened in ((160, False), (477, True)):
        rng = random.Random(seed)
        made = column([rng.gauss(0, 1) for _ in range(12)])
        assert (dependence(made, one(12), 3).effective is not None) is widened


def test_a_size_with_one_round_of_an_allocation_says_nothing_there() -> None:
    jobs = np.array([0, 0, 1, 1])
    logs = np.array([[1.0, 5.0], [3.0, 9.0], [4.0, np.nan], [8.0, 2.0]])
    expected = [[-1.0, -2.0], [1.0, 2.0], [-2.0, 0.0], [2.0, 0.0]]
    assert serial._residuals(logs, jobs).tolist() == expected
    logs[3, 1] = np.nan
    assert serial._residuals(logs, jobs).tolist() == expected


def test_quantiles_are_students() -> None:
    for whole, quantile in enumerate(T_975, 1):
        assert serial._quantile(whole) == pytest.approx(quantile)
    for free, quantile in ((15.0, 2.131), (20, 2.086), (30, 2.042), (60, 2.000), (1e9, 1.960)):
        assert serial._quantile(free) == pytest.approx(quantile, abs=0.015)
    assert T_975[1] < serial._quantile(1.5) < T_975[0]


def test_intervals_are_stretched_from_their_middles() -> None:
    low, high = stretched((column([1.0]), column([4.0])), column([2.0]), 3.0)
    assert (low[0, 0], high[0, 0]) == (-1.0, 8.0)


def test_a_comparison_is_as_sure_as_its_rounds_are_worth() -> None:
    """1.1 times slower; in an order that follows itself that is a state of some hour."""
    order = sorted(range(20), key=lambda k: (k * 7) % 20)
    mixed = [STEADY[k] for k in order]
    for steps, verdict in ((mixed, SLOWER), (STEADY, INCONCLUSIVE)):
        rows = campaign(following(steps, 1.1), rounds=20)
        comparison = compared(rows)
        group = only(comparison)
        assert set(verdicts(group)) == {group.curve} == {verdict}
        assert ("rounds-alike" in codes(comparison.findings)) is (verdict is INCONCLUSIVE)
        assert group.autocorrelation is not None
        (cell, *_) = group.cells
        assert cell.low is not None
        assert cell.high is not None
        known = dependence(column(steps), one(20), 1)
        assert group.effective_rounds == pytest.approx(known.effective)
        middle = math.log(cell.ratio)
        ordered = sorted(steps)
        below, above = ordered[5] + math.log(1.1), ordered[14] + math.log(1.1)
        assert math.log(cell.low) == pytest.approx(middle - (middle - below) * known.stretch)
        assert math.log(cell.high) == pytest.approx(middle + (above - middle) * known.stretch)
        assert (group.pooled_low, group.pooled_high) == pytest.approx((cell.low, cell.high))
        if verdict is INCONCLUSIVE:
            gap = math.log(cell.ratio / 1.03)
            spread = known.stretch * float(np.std(steps, ddof=1))
            assert cell.rounds_needed == math.ceil((2.802 * spread / gap) ** 2)


def test_joint_bounds_are_stretched_too() -> None:
    order = sorted(range(20), key=lambda k: (k * 7) % 20)
    reaches = []
    for steps in ([STEADY[k] for k in order], STEADY):
        rows = campaign(following([x / 30 for x in steps]), rounds=20)
        group = only(compared(rows))
        assert group.joint is not None
        assert group.joint.high is not None
        reaches.append(math.log(group.joint.high))
    assert reaches[1] > 3 * reaches[0]


def test_imported_tables_have_no_rounds_that_follow() -> None:
    rows = campaign(following(STEADY), rounds=20)
    record = replace(CAMPAIGN, origin=Origin.IMPORT, rounds=20)
    group = only(compare(record, arms("k0"), rows))
    assert (group.autocorrelation, group.effective_rounds) == (None, None)


def test_one_finding_names_the_curves_that_lost_most() -> None:
    rows = campaign(
        *(following([x * (1 + w * (-1) ** k) for k, x in enumerate(STEADY)]) for w in range(6)),
        rounds=20,
    )
    comparison = compared(rows)
    findings = [f for f in comparison.findings if f.code == "rounds-alike"]
    alike = [g for g in comparison.groups if g.effective_rounds is not None]
    (finding,) = findings
    assert finding.level is Level.WARNING
    assert matches(finding, "rounds-alike", count=len(alike), curves=6)
    least = min(alike, key=lambda g: g.effective_rounds or 0)
    worth = (f"{least.autocorrelation:.2f}", f"{least.effective_rounds:.1f} rounds")
    assert shows(finding.message, least.configuration, "native:latency on 1x2", *worth)
    groups = [replace(alike[0], effective_rounds=worth) for worth in (9.0, 3.0, 8.0, 5.0, 7.0, 9.0)]
    (many,) = serial.findings(groups, CAMPAIGN)
    assert many.message.endswith("; and 2 more")
    assert re.findall(r"worth (\d)", many.message) == ["3", "5", "7", "8"]
    (four,) = serial.findings(groups[:4], CAMPAIGN)
    assert "more" not in four.message
    assert four.message.count(";") == 3
    assert matches(four, "rounds-alike", campaign=CAMPAIGN.id[:8], rounds=2 * CAMPAIGN.rounds)
    assert not serial.findings([replace(alike[0], repeats="bandwidth")], CAMPAIGN)
    assert not serial.findings([], CAMPAIGN)


def test_stated_rates_hold() -> None:
    """evaluation/serial_synthetic.py counts many more campaigns."""
    steady = shares(10, 0.9, 25)
    assert steady.false_cells <= 0.12
    assert steady.widened >= 0.6
    free = shares(10, 0.0, 25)
    assert free.widened <= 0.1
    assert free.power >= 0.9
