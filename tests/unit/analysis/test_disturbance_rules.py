"""By which rules noise withholds a verdict, each at its limits."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import pytest

from mpigraft.analysis import disturbance
from mpigraft.core.model import (
    CellGroup,
    Comparison,
    Finding,
    LaunchRecord,
    Level,
    Noise,
    Origin,
    ValueRow,
    Verdict,
)
from tests.builders.campaigns import row
from tests.builders.comparisons import codes
from tests.builders.messages import matches, shows
from tests.builders.verdicts import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER
from tests.unit.analysis.test_disturbance import launch, use
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
) -> str:
    """The first words of why a verdict is withheld."""
    return " ".join(disturbance.noise_reason(one, again, pair, rounds, MARGIN).split()[:4])


WON, LOST = curve(FASTER, 0.5, 0.6), curve(SLOWER, 1.5, 1.6)
SAME, OPEN = curve(EQUIVALENT, 0.99, 1.01), curve(INCONCLUSIVE, 1.05, 1.08)


@pytest.mark.parametrize("one", [WON, LOST, SAME])
def test_a_verdict_needs_half_of_its_rounds_undisturbed(one: CellGroup) -> None:
    assert reason(one, one, rounds=(5, 10)) == ""
    assert reason(one, one, rounds=(6, 10)) == "other processes used the"
    some, every = (disturbance.noise_reason(one, one, None, (n, 10), MARGIN) for n in (6, 10))
    assert "6 of 10" in some
    assert "10" not in every
    assert reason(replace(one, curve=INCONCLUSIVE), one, rounds=(6, 10)) == ""


def test_a_winner_has_to_win_without_the_disturbed_rounds() -> None:
    assert reason(WON, curve(FASTER, 0.96, 0.96), rounds=(1, 10)) == ""
    assert reason(WON, curve(FASTER, 0.98, 0.98), rounds=(1, 10)) == "it does not hold"
    assert reason(LOST, curve(SLOWER, 1.04, 1.04), rounds=(1, 10)) == ""
    assert reason(LOST, curve(SLOWER, 1.02, 1.02), rounds=(1, 10)) == "it does not hold"
    assert reason(LOST, curve(SLOWER, 1.04, 1.04), PAIR, (1, 10)) == "it does not hold"
    assert reason(WON, None, rounds=(1, 10)) == "it does not hold"
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
        groups = [replace(WON, withheld="why", configuration=f"k{n}") for n in range(count)]
        finding = disturbance.verdict_finding(groups)
        assert finding.level.name == "WARNING"
        assert finding.message.count(": why") == min(count, 12)
        assert finding.message.endswith(": why" + more)
        assert f"on {count} {'curve' if count == 1 else 'curves'}: " in finding.message


# ------------------------------------------------------------------ what is marked


@pytest.mark.parametrize(
    ("others", "wall_s", "share"),
    [(0.5, 4.0, 0.49), (0.5, 0.5, 0.42), (0.001, 4.0, 0.0), (0.9, 0.0, 0.0)],
)
def test_what_the_kernel_counts_too_coarsely_is_not_taken(
    others: float, wall_s: float, share: float
) -> None:
    assert disturbance.taken(use(others, wall_s=wall_s)) == pytest.approx(share)


TENTH, MORE, LESS = (use(x, wall_s=4.0) for x in (0.11, 0.3, 0.1))  # less a hundredth


def test_a_tenth_of_one_nodes_cpus_marks_a_launch() -> None:
    assert disturbance.taken(TENTH) == disturbance.TAKEN
    assert disturbance.is_disturbed(launch(("k0", 0, 0), LESS, TENTH))
    assert not disturbance.is_disturbed(launch(("k0", 0, 0), LESS, LESS))
    assert not disturbance.is_disturbed(replace(launch(("k0", 0, 0)), conditions=None))


def finding(*launches: LaunchRecord) -> Finding:
    (one,) = disturbance.disturbance_findings(launches, {"k0": "mpi@k0"})
    return one


def test_rounds_are_counted_whose_launches_have_conditions() -> None:
    unknown = replace(launch(("k0", 2, 0)), conditions=None)
    one = finding(launch(("k0", 0, 0), TENTH, LESS), launch(("k0", 1, 0), MORE), unknown)
    assert (one.level, one.code) == (Level.WARNING, "cpu-taken")
    assert matches(
        one, "cpu-taken", count=2, hosts="n1", known=2, range="11 to 30 %", rounds="1, 2"
    )
    assert list(disturbance.disturbance_findings([launch(("k0", 0, 0), LESS), unknown], {})) == []


def test_configurations_are_counted_apart_where_they_differ() -> None:
    base = launch(("base", 0, 0), MORE)
    alike = finding(base, launch(("k0", 0, 0), MORE))
    assert alike.message == "other processes used the CPU in 1 of 1 rounds (1); 30 % of it on n1"
    other = finding(base, launch(("k0", 0, 0), LESS))
    assert shows(other.message.split(": ")[1], "base in 1", "mpi@k0 in 0", "30 %", "n1")


@pytest.mark.parametrize(("count", "more"), [(12, ""), (13, " and 1 more"), (15, " and 3 more")])
def test_twelve_rounds_and_hosts_are_named_and_the_rest_counted(count: int, more: str) -> None:
    one = finding(*(launch(("k0", n, 0), use(0.3, host=f"n{n:02}")) for n in range(count)))
    first = range(12)
    assert f"({', '.join(str(n + 1) for n in first)}{more})" in one.message
    assert one.message.endswith(f" on {', '.join(f'n{n:02}' for n in first)}{more}")


def test_a_value_is_as_disturbed_as_its_own_launch() -> None:
    rows = [row(name, turn, 8, 1.0) for name in ("base", "k0") for turn in (0, 1)]
    loaded = [launch(("base", 0, 0), LESS), launch(("k0", 1, 0), MORE)]
    assert disturbance.undisturbed(rows, loaded) == [True, True, True, False]


# ------------------------------------------------------------------ what is judged

NOTE = Finding(Level.INFO, "note", "a finding of the comparison")


def judged(
    groups: Sequence[CellGroup],
    loaded: Mapping[str, Collection[int]],
    again: Sequence[CellGroup] = (),
    rounds: int = 10,
) -> tuple[Comparison, list[int]]:
    """What is made of a comparison whose second call has `again`, and of how many values each
    call was. Of ten rounds the baseline has the first `rounds`."""
    curves = {(who, one.metric) for one in groups for who in ("base", one.configuration)}
    values = [
        row(name, turn, 8, 1.0, metric=metric)
        for name, metric in sorted(curves)
        for turn in range(rounds if name == "base" else 10)
    ]
    clean = [value.round not in loaded.get(value.configuration, ()) for value in values]
    whole = Comparison("c1", "base", Origin.RUN, 10, tuple(groups), (), (NOTE,))
    calls: list[int] = []

    def compare(rows: Sequence[ValueRow]) -> Comparison:
        calls.append(len(rows))
        return whole if len(calls) == 1 else replace(whole, groups=tuple(again))

    labels = {value.configuration: value.configuration for value in values}
    return disturbance.withhold_verdicts(compare, values, clean, labels, MARGIN), calls


def own(one: CellGroup, name: str = "k0") -> CellGroup:
    return replace(
        one, benchmark="native:latency", metric="latency", layout="1x2", buffers="host",
        configuration=name,
    )  # fmt: skip


@pytest.mark.parametrize("one", [WON, SAME, OPEN])
def test_without_marks_and_reasons_a_comparison_stays_as_it_is(one: CellGroup) -> None:
    comparison, calls = judged([own(one)], {})
    assert (comparison.groups, comparison.findings, calls) == ((own(one),), (NOTE,), [20])


def test_only_a_winner_is_compared_again() -> None:
    """Without the values of marked launches, and where any of the baseline's are left."""
    comparison, calls = judged([own(SAME)], {"k0": [1]})
    assert (comparison.groups[0].withheld, calls) == ("", [20])
    both = [own(SAME, "k1"), own(WON)]
    comparison, calls = judged(both, {"k0": [1]}, both)
    assert ([one.withheld for one in comparison.groups], calls) == (["", ""], [30, 29])
    comparison, calls = judged(both, {"k0": [1]}, [own(SAME, "k1")])
    assert [bool(one.withheld) for one in comparison.groups] == [False, True]
    assert ([one.curve for one in comparison.groups], calls) == (
        [EQUIVALENT, INCONCLUSIVE],
        [30, 29],
    )
    assert judged([own(WON)], {"base": range(10)})[1] == [20]


def test_each_curve_is_judged_by_its_own_rounds() -> None:
    winners = [own(WON), own(WON, "k1")]
    again = [own(WON), own(curve(FASTER, 0.98, 0.98), "k1")]
    comparison, _ = judged(winners, {"k0": [1], "k1": [1]}, again)
    assert [bool(one.withheld) for one in comparison.groups] == [False, True]


def test_rounds_are_counted_that_both_have_and_either_is_disturbed_in() -> None:
    won = own(WON)
    (one,) = judged([won], {"k0": [0, 1, 2], "base": [2, 3, 4, 5]}, [won])[0].groups
    assert shows(one.withheld, "CPU", "6 of 10 rounds")
    assert one.curve is INCONCLUSIVE
    (one,) = judged([won], {"k0": [0, 1, 2], "base": [2, 3, 4]}, [won])[0].groups
    assert (one.withheld, one.curve) == ("", FASTER)
    (one,) = judged([won], {"k0": range(5)}, [won], rounds=8)[0].groups
    assert shows(one.withheld, "CPU", "5 of 8 rounds")
    (one,) = judged([won], {"k0": range(4, 10)}, [won], rounds=8)[0].groups
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
