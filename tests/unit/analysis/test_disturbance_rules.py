"""By which rules noise withholds a verdict, each at its limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from mpigraft.analysis import disturbance
from mpigraft.core.model import (
    Cause,
    CellGroup,
    Comparison,
    Completion,
    Finding,
    Level,
    Noise,
    NoVerdict,
    Origin,
    ValueRow,
    Verdict,
)
from tests.builders.campaigns import row
from tests.builders.comparisons import codes
from tests.builders.messages import matches, shows
from tests.builders.verdicts import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER
from tests.unit.analysis.test_looks import group

MARGIN = 0.03
PAIR = Noise("native:bw", "1x2", 0.1, 0.01, 1, 10)


def curve(
    verdict: Verdict, low: float | None, high: float | None, p: float | None = 0.01
) -> CellGroup:
    pooled = 1.0 if low is None or high is None else (low * high) ** 0.5
    return replace(group(verdict, p), pooled=pooled, pooled_low=low, pooled_high=high)


def reason(
    one: CellGroup,
    again: CellGroup | None = None,
    pair: Noise | None = None,
    rounds: tuple[int, int] = (0, 10),
    *,
    holds: bool = False,
) -> str:
    """The first words of why a verdict is withheld."""
    return " ".join(judge(one, again, pair, rounds, holds=holds).group.withheld.split()[:4])


def judge(
    one: CellGroup,
    again: CellGroup | None = None,
    pair: Noise | None = None,
    rounds: tuple[int, int] = (0, 10),
    *,
    holds: bool = False,
) -> disturbance.CurveJudgement:
    counts = disturbance.Disturbed(*rounds)
    return disturbance.judge_group(one, counts, again, lambda _: holds, (pair, pair), MARGIN)


WON, LOST = curve(FASTER, 0.5, 0.6), curve(SLOWER, 1.5, 1.6)
SAME, OPEN = curve(EQUIVALENT, 0.99, 1.01), curve(INCONCLUSIVE, 1.05, 1.08)


def rest(low: float | None, high: float | None = None) -> CellGroup:
    """The undisturbed rounds, which are too few for a verdict."""
    return curve(INCONCLUSIVE, low, high or low)


@pytest.mark.parametrize(("one", "near"), [(WON, 0.5), (LOST, 1.5), (SAME, 1.0)])
def test_a_verdict_needs_half_of_its_rounds_undisturbed(one: CellGroup, near: float) -> None:
    assert reason(one, rest(near), rounds=(5, 10)) == ""
    assert reason(one, rest(near), rounds=(6, 10)) == "other processes used the"
    some, every = (judge(one, rest(near), rounds=(n, 10)).group.withheld for n in (6, 10))
    assert "6 of 10" in some
    assert "10" not in every
    assert reason(replace(one, curve=INCONCLUSIVE), rest(near), rounds=(6, 10)) == ""


@pytest.mark.parametrize("one", [WON, LOST])
def test_a_winner_needs_none_of_them_where_others_cannot_explain_it(one: CellGroup) -> None:
    judged = judge(one, rounds=(10, 10), holds=True)
    assert judged == disturbance.CurveJudgement(one, "slow-down-bounded")
    assert judge(one, rounds=(5, 10), holds=True).code == ""
    assert judge(one, rounds=(6, 10), holds=True).code == "slow-down-bounded"
    assert reason(SAME, rounds=(6, 10), holds=True) == "other processes used the"


def test_undisturbed_rounds_that_decide_are_the_verdict() -> None:
    for one in (WON, LOST, SAME, OPEN):
        for again in (WON, LOST, SAME):
            assert judge(one, again, rounds=(1, 10)) == disturbance.CurveJudgement(
                again, "rounds-dropped"
            )
            assert judge(one, again, rounds=(0, 10)).code == ""


def test_lost_launches_are_lost_without_disturbed_rounds_too() -> None:
    few = Completion(4, 10, 10, 10, 0.01, "configuration", held=True)
    lost = replace(WON, curve=INCONCLUSIVE, completion=few)
    assert lost.completion is not None
    assert lost.completion.held
    assert judge(lost, WON, rounds=(1, 10)) == disturbance.CurveJudgement(lost)
    some = replace(OPEN, completion=replace(few, held=False))
    kept = replace(WON, completion=some.completion)
    assert judge(some, WON, rounds=(1, 10)) == disturbance.CurveJudgement(kept, "rounds-dropped")


def test_each_judgement_has_the_control_of_its_own_rounds() -> None:
    many = replace(PAIR, false_verdicts=2)
    for again, pairs, kept in (
        (WON, (many, PAIR), True),
        (WON, (PAIR, many), False),
        (rest(0.5), (PAIR, many), True),
        (rest(0.5), (many, PAIR), False),
    ):
        counts = disturbance.Disturbed(1, 10)
        one = disturbance.judge_group(WON, counts, again, lambda _: False, pairs, MARGIN)
        assert (one.group.withheld == "") is kept


def test_a_curve_without_a_verdict_is_not_among_those_that_others_cannot_explain() -> None:
    assert judge(OPEN, rounds=(9, 10), holds=True) == disturbance.CurveJudgement(OPEN)


def test_a_winner_has_to_win_without_the_disturbed_rounds() -> None:
    assert reason(WON, rest(0.96), rounds=(1, 10)) == ""
    assert reason(WON, rest(0.98), rounds=(1, 10)) == "the difference may come"
    assert reason(WON, rest(0.98), rounds=(1, 10), holds=True) == ""
    assert reason(LOST, rest(1.04), rounds=(1, 10)) == ""
    assert reason(LOST, rest(1.02), rounds=(1, 10)) == "the difference may come"
    assert reason(LOST, rest(1.04), PAIR, (1, 10)) == "the difference may come"
    for one, again in (
        (WON, rest(0.5, 0.98)),  # its ratio is beyond the margin, but not its interval
        (LOST, rest(1.02, 2.0)),
        (WON, rest(1.5, 1.6)),  # beyond it, but for the other
        (LOST, rest(0.5, 0.6)),
        (WON, rest(None)),  # a single round has no interval
        (LOST, rest(None)),
    ):
        assert reason(one, again, rounds=(1, 10)) == reason(WON, None, rounds=(1, 10))
    assert reason(WON, rest(0.5, 0.96), rounds=(1, 10)) == ""
    assert reason(LOST, rest(1.04, 2.0), rounds=(1, 10)) == ""
    assert reason(WON, None, rounds=(1, 10)) == "the difference may come"
    assert reason(WON, None) == ""  # none was disturbed
    assert reason(SAME, None, rounds=(1, 10)) == ""


def test_a_pair_that_is_called_at_more_than_a_tenth_of_its_sizes_calls_nothing() -> None:
    assert reason(WON, pair=PAIR) == ""
    many = replace(PAIR, false_verdicts=2)
    assert reason(WON, pair=many) == reason(LOST, pair=many) == "the baseline's two launches"
    assert reason(WON, pair=replace(many, cells=16)) == reason(WON, pair=many)
    assert reason(WON, pair=replace(many, cells=20)) == ""
    assert reason(SAME, pair=many) == ""


def test_a_difference_beyond_the_margin_and_within_the_pairs_is_reported() -> None:
    words = "the baseline's two launches"
    assert reason(OPEN, pair=PAIR) == words
    assert reason(curve(INCONCLUSIVE, 0.93, 0.95), pair=PAIR) == words
    wide = judge(OPEN, pair=replace(PAIR, margin=0.99)).group.withheld
    assert shows(wide, "99 %")
    assert reason(OPEN) == ""
    assert reason(SAME, pair=PAIR) == ""
    assert reason(curve(SLOWER, 1.05, 1.08), pair=PAIR) == ""
    for low, high in ((1.02, 1.08), (0.93, 0.98), (0.9, 1.1), (1.12, 1.2), (0.8, 0.9)):
        assert reason(curve(INCONCLUSIVE, low, high), pair=PAIR) == "", (low, high)
    assert reason(curve(INCONCLUSIVE, None, None), pair=PAIR) == ""
    assert reason(curve(INCONCLUSIVE, 1.05, 1.08, 0.04), pair=PAIR) == words
    for p in (0.041, None):
        assert reason(curve(INCONCLUSIVE, 1.05, 1.08, p), pair=PAIR) == ""


def test_the_pair_is_that_of_the_layout_or_the_widest_of_the_benchmark() -> None:
    near, wide, far = (
        replace(PAIR, layout=layout, margin=margin)
        for layout, margin in (("1x2", 0.1), ("1x4", 0.3), ("1x8", 0.2))
    )
    other = replace(PAIR, benchmark="native:latency", margin=0.9)
    assert disturbance.control_of(WON, [wide, near, far, other]) == near
    assert disturbance.control_of(WON, [far, wide, other]) == wide
    assert disturbance.control_of(WON, [other]) is None


def test_a_finding_names_twelve_curves_and_counts_the_rest() -> None:
    for count, more in ((1, ""), (12, ""), (13, "; and 1 more")):
        why = NoVerdict(Cause.NOISE, "why")
        groups = [replace(WON, no_verdict=why, configuration=f"k{n}") for n in range(count)]
        judged = [disturbance.CurveJudgement(one, "verdict-withheld") for one in groups]
        (finding,) = disturbance.judged_findings([*judged, disturbance.CurveJudgement(WON)])
        assert finding.level.name == "WARNING"
        assert finding.message.count(": why") == min(count, 12)
        assert finding.message.endswith(": why" + more)
        assert f"on {count} {'curve' if count == 1 else 'curves'}: " in finding.message
    (finding,) = disturbance.judged_findings([disturbance.CurveJudgement(WON, "rounds-dropped")])
    assert finding.message.endswith(")")


# ------------------------------------------------------------------ what is judged

NOTE = Finding(Level.INFO, "note", "a finding of the comparison")


def judged(
    groups: Sequence[CellGroup],
    loaded: Mapping[str, Collection[int]],
    again: Sequence[CellGroup] = (),
    rounds: int = 10,
    bounded: Sequence[CellGroup] = (),
) -> tuple[Comparison, list[int]]:
    """What is made of a comparison that has `again` without disturbed rounds and `bounded` without
    slow-downs, and of how many values each call was. Of ten rounds the baseline has the first
    `rounds`."""
    curves = {(who, one.metric) for one in groups for who in ("base", one.configuration)}
    values = [
        row(name, turn, 8, 1.0, metric=metric)
        for name, metric in sorted(curves)
        for turn in range(rounds if name == "base" else 10)
    ]
    factors = [1.5 if v.round in loaded.get(v.configuration, ()) else 1.0 for v in values]
    whole = Comparison("c1", "base", Origin.RUN, 10, tuple(groups), (), (NOTE,))
    calls: list[int] = []

    def compare(rows: Sequence[ValueRow]) -> Comparison:
        calls.append(len(rows))
        if len(calls) == 1:
            return whole
        return replace(whole, groups=tuple(bounded if len(rows) == len(values) else again))

    labels = {value.configuration: value.configuration for value in values}
    return disturbance.withhold_verdicts(compare, values, factors, labels, MARGIN), calls


def own(one: CellGroup, name: str = "k0") -> CellGroup:
    return replace(
        one, benchmark="native:latency", metric="latency", layout="1x2", buffers="host",
        configuration=name,
    )  # fmt: skip


@pytest.mark.parametrize("one", [WON, SAME, OPEN])
def test_without_marks_and_reasons_a_comparison_stays_as_it_is(one: CellGroup) -> None:
    comparison, calls = judged([own(one)], {})
    assert (comparison.groups, comparison.findings, calls) == ((own(one),), (NOTE,), [20])


def test_values_are_compared_again_without_disturbed_rounds() -> None:
    """And once more, without what they may have cost, for a winner that has none of them."""
    comparison, calls = judged([own(SAME)], {"k0": [1]})
    assert (comparison.groups[0].withheld, calls) == ("", [20, 19])
    both = [own(SAME, "k1"), own(WON)]
    comparison, calls = judged(both, {"k0": [1]}, both)
    assert ([one.withheld for one in comparison.groups], calls) == (["", ""], [30, 29])
    comparison, calls = judged(both, {"k0": [1]}, [own(SAME, "k1")])
    assert [bool(one.withheld) for one in comparison.groups] == [False, True]
    assert ([one.curve for one in comparison.groups], calls) == (
        [EQUIVALENT, INCONCLUSIVE],
        [30, 29, 30],
    )
    assert judged([own(WON), own(WON, "k1")], {"base": range(10)})[1] == [30, 30]


def test_a_winner_has_to_be_the_same_where_the_loser_was_slowed() -> None:
    for bounded, expected in ((WON, FASTER), (LOST, INCONCLUSIVE), (OPEN, INCONCLUSIVE)):
        (one,) = judged([own(WON)], {"k0": range(9)}, bounded=[own(bounded)])[0].groups
        assert one.curve is expected


def test_rounds_are_dropped_for_a_pair_and_slow_downs_for_the_loser() -> None:
    """The baseline's disturbed rounds for all, a configuration's own for itself alone."""
    values = [row(name, turn, 8, 3.0) for name in ("base", "k0", "k1") for turn in (0, 1, 2)]
    marked = {("base", 0), ("k0", 1)}
    factors = [1.5 if (v.configuration, v.round) in marked else 1.0 for v in values]
    labels = {name: name for name in ("base", "k0", "k1")}
    for winner, loser in ((WON, ("base", 0)), (LOST, ("k0", 1))):
        groups = (own(winner), own(winner, "k1"))
        whole = Comparison("c1", "base", Origin.RUN, 3, groups, (), ())
        seen: list[Sequence[ValueRow]] = []

        def compare(
            rows: Sequence[ValueRow], whole: Comparison = whole, seen: list[Any] = seen
        ) -> Comparison:
            seen.append(rows)
            return whole if len(seen) == 1 else replace(whole, groups=())

        disturbance.withhold_verdicts(compare, values, factors, labels, MARGIN)
        _, without, bounded = ([(v.configuration, v.round, v.value) for v in s] for s in seen)
        kept = {("base", 1), ("base", 2), ("k0", 2), ("k1", 1), ("k1", 2)}
        assert {place[:2] for place in without} == kept
        assert [place[:2] for place in bounded if place[2] == 2.0] == [loser]
        assert [place[2] for place in bounded].count(3.0) == 8


def test_each_curve_is_judged_by_its_own_rounds() -> None:
    winners = [own(WON), own(WON, "k1")]
    again = [own(rest(0.5)), own(rest(0.98), "k1")]
    comparison, _ = judged(winners, {"k0": [1], "k1": [1]}, again)
    assert [bool(one.withheld) for one in comparison.groups] == [False, True]


def test_rounds_are_counted_that_both_have_and_either_is_disturbed_in() -> None:
    won, near = own(WON), [own(rest(0.5))]
    (one,) = judged([won], {"k0": [0, 1, 2], "base": [2, 3, 4, 5]}, near)[0].groups
    assert shows(one.withheld, "CPU", "6 of 10 rounds")
    assert one.curve is INCONCLUSIVE
    (one,) = judged([won], {"k0": [0, 1, 2], "base": [2, 3, 4]}, near)[0].groups
    assert (one.withheld, one.curve) == ("", FASTER)
    (one,) = judged([won], {"k0": range(5)}, near, rounds=8)[0].groups
    assert shows(one.withheld, "CPU", "5 of 8 rounds")
    (one,) = judged([won], {"k0": range(4, 10)}, near, rounds=8)[0].groups
    assert one.withheld == ""


def test_a_finding_counts_curves_that_repeat_no_other() -> None:
    again = replace(own(WON), metric="bandwidth", repeats="latency")
    groups = [own(WON), own(OPEN, "k1"), own(WON, "k2"), again]
    comparison, _ = judged(groups, {"k0": range(6), "k2": range(7)})
    assert [bool(one.withheld) for one in comparison.groups] == [True, False, True, True]
    assert codes(comparison.findings) == ["note", "verdict-withheld"]
    each = ("k0 on native:latency (1x2)", "6 of 10 rounds", "k2 on native:latency (1x2)", "7 of 10")
    assert matches(comparison.findings[1], "verdict-withheld", count=2, curves=each)


def test_a_round_is_disturbed_where_any_of_its_values_is() -> None:
    rows = [row("k0", turn, size, 1.0) for turn in (0, 1) for size in (1, 8)] + [row("k1", 0, 1, 1)]
    rounds = disturbance.disturbed_rounds(rows, [False, True, True, True, False], {"k0": "mpi"})
    assert rounds == {(rows[0].series, "mpi"): {("a0", 0): True, ("a0", 1): False}}
