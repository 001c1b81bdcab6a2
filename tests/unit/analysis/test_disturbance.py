"""Rounds in which others took the CPU are marked; a verdict that rests on them is withheld."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from mpigraft.analysis import disturbance
from mpigraft.analysis.grouping import labels_of
from mpigraft.core.model import (
    CellGroup,
    Comparison,
    Conditions,
    CpuUse,
    LaunchRecord,
    LaunchState,
    NodeState,
    ValueRow,
    Verdict,
)
from mpigraft.report.headline import headline
from tests.builders.campaigns import CAMPAIGN, arms, around, campaign
from tests.builders.comparisons import codes, compare
from tests.builders.messages import matches, shows
from tests.builders.reports import report_of
from tests.builders.verdicts import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER

QUIET = 0.02
Where = tuple[str, int, int]  # configuration, round, replica


def use(others: float, *, host: str = "n1", wall_s: float = 3.0) -> CpuUse:
    return CpuUse(host, 2, 2, wall_s, 6.0, 0.0, 5.0, others, 9)


def launch(where: Where, *uses: CpuUse) -> LaunchRecord:
    name, number, replica = where
    state = NodeState()
    return LaunchRecord(
        f"{name}-{number}-{replica}", "c1", "a0", name, "1x2", number, 0, replica, "", 3.0, 0,
        LaunchState.OK, (), conditions=Conditions(state, state, uses),
    )  # fmt: skip


def launches(rows: Sequence[ValueRow], loaded: Mapping[Where, float]) -> list[LaunchRecord]:
    """One of each that has values; beside those that are `loaded` others took so much."""
    places = sorted({(row.configuration, row.round, row.replica) for row in rows})
    return [launch(place, use(loaded.get(place, QUIET))) for place in places]


def judged(
    rows: Sequence[ValueRow], loaded: Mapping[Where, float], margin: float = 0.03
) -> Comparison:
    names = sorted({row.configuration for row in rows} - {"base"})
    records = arms(*names)
    rounds = 1 + max(row.round for row in rows)
    made = partial(compare, replace(CAMPAIGN, rounds=rounds), records, margin=margin)
    factors = disturbance.slow_downs(rows, launches(rows, loaded))
    return disturbance.withhold_verdicts(made, rows, factors, labels_of(records, rows), margin)


def only(comparison: Comparison) -> CellGroup:
    (group,) = comparison.groups
    return group


def beside(name: str, *rounds: int, share: float = 0.5) -> dict[Where, float]:
    return {(name, number, 0): share for number in rounds}


# ------------------------------------------------------------------ marks


@pytest.mark.parametrize(
    ("uses", "expected"),
    [
        ((use(0.09),), False),
        ((use(0.12),), True),
        ((use(0.12, wall_s=1.0),), False),  # hundredths of a second may make that
        ((use(0.15, wall_s=1.0),), True),
        ((use(0.01), use(0.2, host="n2")), True),
        ((use(0.9, wall_s=0.0),), False),
        ((), False),
    ],
)
def test_a_launch_is_marked_where_others_had_a_tenth_of_a_nodes_cpus(
    uses: tuple[CpuUse, ...], expected: bool
) -> None:
    assert disturbance.is_disturbed(launch(("base", 0, 0), *uses)) is expected


def test_a_launch_without_conditions_is_not_marked() -> None:
    assert not disturbance.is_disturbed(replace(launch(("base", 0, 0)), conditions=None))


def test_rounds_are_counted_by_configuration_where_they_differ() -> None:
    rows = campaign(around(1.0), rounds=8)
    labels = {"base": "mpi@base", "k0": "mpi@k0"}
    quiet = launches(rows, {})
    assert list(disturbance.disturbance_findings(quiet, labels)) == []
    loaded = {**beside("k0", 2, 5, share=0.33), **beside("base", 5, share=0.75)}
    (finding,) = disturbance.disturbance_findings(launches(rows, loaded), labels)
    assert matches(
        finding, "cpu-taken", by_configuration="mpi@base in 1, mpi@k0 in 2", count=2, hosts="n1",
        known=8, range="33 to 75 %", rounds=" (3, 6)",
    )  # fmt: skip
    alike = {**beside("k0", 3, share=0.4), **beside("base", 3, share=0.4)}
    (finding,) = disturbance.disturbance_findings(launches(rows, alike), labels)
    assert matches(finding, "cpu-taken", count=1, hosts="n1", known=8, range="40 %", rounds=" (4)")


def test_a_round_that_two_jobs_share_counts_once() -> None:
    rows = campaign(around(1.0), rounds=8)
    whole = launches(rows, {**beside("k0", 3), **beside("base", 3)})
    parts = [replace(x, allocation="a1") if x.configuration == "k0" else x for x in whole]
    (finding,) = disturbance.disturbance_findings(parts, {})
    assert matches(finding, "cpu-taken", count=1, known=8, rounds=" (4)")


def test_long_lists_are_cut() -> None:
    rows = campaign(around(1.0), rounds=20)
    findings = next(disturbance.disturbance_findings(launches(rows, beside("k0", *range(15))), {}))
    assert matches(
        findings, "cpu-taken", rounds=" (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 3 more)"
    )


# ------------------------------------------------------------------ verdicts


def test_undisturbed_verdicts_are_not_withheld() -> None:
    rows = campaign(around(0.5), rounds=10)
    group = only(judged(rows, {}))
    assert (group.curve, group.withheld) == (FASTER, "")


def test_a_few_disturbed_rounds_take_nothing_from_a_clear_winner() -> None:
    rows = campaign(around(0.5), rounds=10)
    group = only(judged(rows, beside("k0", 1, 4, 5)))
    assert (group.curve, group.withheld) == (FASTER, "")


@pytest.mark.parametrize(
    ("who", "count", "expected"),
    [("base", 5, ""), ("base", 6, "in 6 of 10 rounds"), ("k0", 6, "")],  # k0 won all the same
)
def test_most_rounds_disturbed_carry_no_verdict(who: str, count: int, expected: str) -> None:
    rows = campaign(around(0.5), rounds=10)
    comparison = judged(rows, beside(who, *range(count)))
    group = only(comparison)
    assert group.withheld == (f"other processes used the CPU {expected}" if expected else "")
    assert group.curve is (INCONCLUSIVE if expected else FASTER)
    assert ("verdict-withheld" in codes(comparison.findings)) is bool(expected)
    assert any(": no verdict: other processes" in line for line in comparison.summary) is bool(
        expected
    )
    (line, *_) = headline(report_of(comparison))
    assert line.startswith("No curve" if expected else "Largest")


def test_a_verdict_of_disturbed_rounds_only_is_withheld() -> None:
    """Slower in all rounds, but beyond the noise only where other processes used the CPU."""
    rows = campaign(lambda turn, _: 1.3 if turn < 5 else 1.07, rounds=10, pair=1.08)
    assert only(judged(rows, {})).curve is SLOWER
    assert only(judged(rows, beside("k0", 5, 6, 7, 8, 9))).curve is SLOWER
    for who, expected in (("k0", INCONCLUSIVE), ("base", SLOWER)):  # it may be slower still
        loaded = {(who, turn, replica): 0.5 for turn in range(5) for replica in (0, 1)}
        group = only(judged(rows, loaded))
        assert group.curve is expected
        if who == "k0":
            assert shows(group.withheld, "difference", "5 rounds", "CPU")


def test_equal_under_load_is_not_equal() -> None:
    rows = campaign(lambda turn, _: 1.0 + 0.001 * (turn % 3), rounds=12)
    assert only(judged(rows, {})).curve is EQUIVALENT
    assert only(judged(rows, beside("k0", *range(7)))).curve is INCONCLUSIVE


def test_a_machine_that_calls_two_launches_of_one_thing_calls_nothing() -> None:
    rows = campaign(around(0.5), rounds=10, pair=1.3, sizes=(1,))
    # Another size at which the pair is alike keeps the floor down, and the first is called.
    rows += campaign(around(0.5), rounds=10, sizes=(8, 64))
    comparison = judged(rows, {})
    group = only(comparison)
    assert comparison.noise[0].false_verdicts == 1
    assert shows(group.withheld, "baseline's", "1 of 3 sizes")
    assert group.curve is INCONCLUSIVE


def test_a_difference_within_the_noise_says_so() -> None:
    rows = campaign(lambda turn, _: 1.06 + 0.001 * (turn % 3), rounds=10, pair=1.1)
    group = only(judged(rows, {}))
    assert group.curve is INCONCLUSIVE
    assert shows(group.withheld, "baseline's", "10 %")
    clear = only(judged(campaign(around(1.0), rounds=10, pair=1.1), {}))
    assert clear.withheld == ""


def test_values_whose_baseline_was_all_disturbed_keep_no_winner() -> None:
    rows = campaign(around(0.5), rounds=10)
    every = {("base", turn, replica): 0.5 for turn in range(10) for replica in (0, 1)}
    assert only(judged(rows, every)).curve is INCONCLUSIVE


# ------------------------------------------------------------------ dropped rounds, bounded ratios


@pytest.mark.parametrize("who", ["k0", "base"])
def test_six_rounds_without_the_disturbed_ones_decide_alone(who: str) -> None:
    """The disturbed ones would turn the sign, or hide the difference."""
    for odd in (2.0, 0.8):
        rows = campaign(lambda turn, _, odd=odd: odd if turn < 4 else 0.5, rounds=10)  # type: ignore[misc]
        comparison = judged(rows, beside(who, *range(4)))
        group = only(comparison)
        assert (group.curve, group.withheld) == (FASTER, "")
        assert group.pooled == pytest.approx(0.5)
        assert {cell.rounds for cell in group.cells} == {6}
        assert "rounds-dropped" in codes(comparison.findings)


def test_a_round_is_dropped_only_for_those_whom_it_disturbed() -> None:
    rows = campaign(around(0.5), around(0.5), rounds=10)
    first, second = judged(rows, beside("k0", 1, 2)).groups
    assert {cell.rounds for cell in first.cells} == {8}
    assert {cell.rounds for cell in second.cells} == {10}
    for group in judged(rows, {("base", 1, 1): 0.5}).groups:
        assert {cell.rounds for cell in group.cells} == {9}


@pytest.mark.parametrize(
    ("ratio", "share", "who", "expected"),
    [
        (17.0, 0.3, "k0", SLOWER),  # at most 2.5 times
        (2.0, 0.3, "k0", INCONCLUSIVE),
        (17.0, 0.5, "k0", INCONCLUSIVE),  # without a bound
        (2.0, 0.3, "base", SLOWER),  # it was the baseline that may have lost
        (1 / 17, 0.3, "base", FASTER),
        (1 / 2, 0.3, "base", INCONCLUSIVE),
        (1 / 2, 0.3, "k0", FASTER),
    ],
)
@pytest.mark.parametrize("rate", [False, True])
def test_a_difference_is_called_that_others_cannot_explain(
    ratio: float, share: float, who: str, expected: Verdict, *, rate: bool
) -> None:
    metric: dict[str, Any] = {"benchmark": "native:bw", "metric": "bandwidth"} if rate else {}
    rows = campaign(around(1 / ratio if rate else ratio), rounds=6, **metric)
    loaded = {(who, turn, replica): share for turn in range(6) for replica in (0, 1)}
    comparison = judged(rows, loaded)
    assert only(comparison).curve is expected
    called = expected is not INCONCLUSIVE
    assert ("slow-down-bounded" in codes(comparison.findings)) is called
    assert ("verdict-withheld" in codes(comparison.findings)) is not called
