"""Launches that failed weigh: no verdict rests on what the side that loses more has left."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mpigraft.analysis import across, completion, reasons
from mpigraft.analysis.grouping import table_of
from mpigraft.core.model import (
    Benchmark,
    CellGroup,
    Comparison,
    Completion,
    LaunchCount,
    LaunchRecord,
    LaunchState,
    Level,
    Origin,
    ValueRow,
    Verdict,
)
from mpigraft.report.wording import words
from tests.builders.campaigns import CAMPAIGN, Ratio, arms, around, campaign, lacking
from tests.builders.comparisons import codes, compare, compared, only, side_of, verdicts
from tests.builders.messages import matches, shows
from tests.builders.verdicts import EQUIVALENT, FASTER, INCONCLUSIVE, SLOWER

OK, FAILED = LaunchState.OK, LaunchState.FAILED
NAN = math.nan


def launch(name: str, turn: int, replica: int, state: LaunchState = OK) -> LaunchRecord:
    code = 0 if state is OK else 1
    return LaunchRecord(
        id=f"{name}{turn}{replica}",
        campaign="c1",
        allocation="a0",
        configuration=name,
        layout="1x2",
        round=turn,
        slot=0,
        replica=replica,
        started="",
        wall_s=1.0,
        exit_code=code,
        state=state,
        findings=(),
    )


def started(rounds: int, own: int, failed: Collection[int] = ()) -> list[LaunchRecord]:
    """Two launches of the baseline in each round, and one of k0 in its `own` first."""
    pair = [launch("base", turn, replica) for turn in range(rounds) for replica in (0, 1)]
    return pair + [launch("k0", t, 0, FAILED if t in failed else OK) for t in range(own)]


def measured(
    ratio: Ratio,
    rounds: int,
    lost: Collection[int] = (),
    base_lost: Collection[tuple[int, int]] = (),
    states: Sequence[LaunchState] = (FAILED,),
) -> Comparison:
    """A campaign that lost rounds of k0, and (round, replica) of the baseline."""
    gone = {("k0", turn, 0) for turn in lost} | {("base", *place) for place in base_lost}
    rows = [
        r
        for r in campaign(ratio, rounds=rounds)
        if (r.configuration, r.round, r.replica) not in gone
    ]
    places = [
        (name, turn, replica)
        for turn in range(rounds)
        for name, replica in (("base", 0), ("base", 1), ("k0", 0))
    ]
    ended = iter(list(states) * len(places))
    launches = [launch(*at, state=next(ended) if at in gone else OK) for at in places]
    return compared(rows, launches=launches)


def whole(comparison: Comparison) -> Completion:
    of = only(comparison).completion
    assert of is not None
    return of


def test_no_faster_rests_on_the_launches_that_survived() -> None:
    """Half as long, in 17 of 20 launches; the baseline's 40 all ended well: p = 0.033."""
    comparison = measured(around(0.5), 20, lost=(3, 8, 15))
    group, of = only(comparison), whole(comparison)
    assert {group.curve, *verdicts(group)} == {INCONCLUSIVE}
    assert (of.completed, of.launched, of.baseline_completed, of.baseline_launched) == (
        17,
        20,
        40,
        40,
    )
    assert of.p == pytest.approx(math.comb(20, 3) / math.comb(60, 3))
    assert (of.loser, of.held) == ("configuration", True)
    (finding,) = [f for f in comparison.findings if f.code == "launches-lost"]
    assert finding.level is Level.WARNING
    assert matches(
        finding, "launches-lost", configuration="mpi@k0",
        counts="native:latency on 1x2 17 of 20, the baseline 40 of 40", side="mpi@k0",
    )  # fmt: skip
    assert not any(
        "faster" in line for line in comparison.summary[:0] + comparison.summary if "0.50x" in line
    )
    assert comparison.launches == (
        LaunchCount("mpi@base", "1x2", 40, 40), LaunchCount("mpi@k0", "1x2", 17, 20),
    )  # fmt: skip


def test_a_configuration_that_never_got_beyond_its_first_size_is_no_winner() -> None:
    """Twice as quick at 8 B, and no launch of 20 came to an end: the baseline has the rest."""
    rows = lacking(campaign(around(0.5), rounds=20, sizes=(8, 64)), lambda r: r.size == 64)
    comparison = compared(rows, launches=started(20, 20, failed=range(20)))
    assert (whole(comparison).completed, whole(comparison).loser) == (0, "configuration")
    assert {only(comparison).curve, *verdicts(only(comparison))} == {INCONCLUSIVE}


def test_a_curve_that_lost_launches_says_why_it_has_no_verdict() -> None:
    comparison = measured(around(0.5), 20, lost=(3, 8, 15))
    why = "no verdict: 17 of 20 launches completed"
    assert any(line.endswith(why) for line in comparison.summary)
    assert words.curve_note(only(comparison)) == why
    twin = measured(lambda turn, _: 1.0 + 0.001 * (turn % 3), 20, lost=(3, 8, 15))
    assert only(twin).joint is None
    assert only(measured(lambda turn, _: 1.0 + 0.001 * (turn % 3), 20)).joint is not None
    assert not completion.findings([replace(only(comparison), repeats="bandwidth")])  # told once
    assert words.curve_note(only(twin)) == why  # not that sizes hardly differ
    slow = measured(around(0.5), 20, base_lost=[(n, k) for n in range(9) for k in (0, 1)])
    assert reasons.lost_launches(only(slow)) == ""  # faster stands
    fast = measured(around(2.0), 20, base_lost=[(n, k) for n in range(9) for k in (0, 1)])
    assert shows(reasons.lost_launches(only(fast)), "22 of 40 launches")


def test_losses_that_chance_explains_withhold_no_verdict() -> None:
    comparison = measured(around(0.5), 20, lost=(3, 8))
    assert {only(comparison).curve, *verdicts(only(comparison))} == {FASTER}
    of = whole(comparison)
    assert of.p == pytest.approx(math.comb(20, 2) / math.comb(60, 2))
    assert (of.loser, of.held) == ("", False)
    assert "launches-lost" not in codes(comparison.findings)


def test_both_sides_that_lose_alike_are_compared() -> None:
    base = [(turn, replica) for turn in (3, 8, 15) for replica in (0, 1)]
    comparison = measured(around(0.5), 20, lost=(2, 7, 14), base_lost=base)
    assert {only(comparison).curve, *verdicts(only(comparison))} == {FASTER}
    assert (whole(comparison).p, whole(comparison).loser) == (None, "")


def test_slower_stands_whatever_was_lost() -> None:
    comparison = measured(around(2.0), 20, lost=range(9))
    assert {only(comparison).curve, *verdicts(only(comparison))} == {SLOWER}
    assert (whole(comparison).loser, whole(comparison).held) == ("configuration", False)
    assert "launches-lost" not in codes(comparison.findings)


def test_no_side_that_loses_launches_is_equivalent() -> None:
    def near(turn: int, _: int) -> float:
        return math.exp(0.001 * (turn * 7 % 5 - 2))

    assert only(measured(near, 20)).curve is EQUIVALENT
    for lost, base in (
        (range(0, 12, 3), ()),
        ((), [(t, r) for t in range(0, 12, 3) for r in (0, 1)]),
    ):
        comparison = measured(near, 20, lost=lost, base_lost=base)
        assert {only(comparison).curve, *verdicts(only(comparison))} == {INCONCLUSIVE}
        assert whole(comparison).held


def test_no_slower_rests_on_the_launches_that_the_baseline_did_not_lose() -> None:
    base = [(turn, replica) for turn in range(0, 14, 2) for replica in (0, 1)]
    comparison = measured(around(2.0), 20, base_lost=base)
    assert {only(comparison).curve, *verdicts(only(comparison))} == {INCONCLUSIVE}
    assert (whole(comparison).loser, whole(comparison).baseline_completed) == ("baseline", 26)
    (finding,) = [f for f in comparison.findings if f.code == "launches-lost"]
    assert matches(finding, "launches-lost", side="the baseline")
    faster = measured(around(0.5), 20, base_lost=base)
    assert {only(faster).curve, *verdicts(only(faster))} == {FASTER}


@pytest.mark.parametrize(
    ("rounds", "lost", "loser"),
    [(7, 0, ""), (7, 1, "configuration"), (8, 1, "configuration"), (9, 1, ""),
     (10, 1, ""), (10, 2, "configuration"), (12, 2, ""), (12, 3, "configuration")],
)  # fmt: skip
def test_of_few_rounds_the_interval_hangs_on_what_was_lost(
    rounds: int, lost: int, loser: str
) -> None:
    """Were they the worst of all, the median's interval would reach to them."""
    comparison = measured(around(0.5), rounds, lost=range(lost))
    assert whole(comparison).loser == loser


@pytest.mark.parametrize("state", [s for s in LaunchState if s is not OK])
def test_every_way_to_fail_counts(state: LaunchState) -> None:
    comparison = measured(around(0.5), 12, lost=(1, 4, 9), states=(state,))
    assert (whole(comparison).completed, whole(comparison).loser) == (9, "configuration")
    assert comparison.launches[1] == LaunchCount("mpi@k0", "1x2", 9, 12)


def test_launches_that_did_not_run_yet_are_none_lost() -> None:
    rows = lacking(campaign(around(0.5), rounds=12), lambda r: r.round > 8)
    comparison = compared(rows, launches=started(12, 9))
    assert whole(comparison) == Completion(9, 9, 24, 24, None, "")
    assert set(verdicts(only(comparison))) == {FASTER}


def test_a_launch_that_broke_off_is_not_whole() -> None:
    """Values of the smaller sizes count; the launch is lost to the curve all the same."""
    rows = lacking(campaign(around(0.5), rounds=12), lambda r: r.round < 4 and r.size == 64)
    comparison = compared(rows, launches=started(12, 12, failed=range(4)))
    assert [c.rounds for c in only(comparison).cells] == [12, 12, 8]
    assert (whole(comparison).completed, whole(comparison).loser) == (8, "configuration")


def test_a_launch_that_failed_after_a_benchmark_is_whole_to_it() -> None:
    rows = campaign(around(0.5), rounds=12)
    comparison = compared(rows, launches=started(12, 12, failed=range(12)))
    assert (whole(comparison).completed, whole(comparison).loser) == (12, "")
    assert comparison.launches[1].completed == 0


def test_unknown_launches_give_no_completion() -> None:
    rows = campaign(around(0.5), rounds=12)
    record = replace(CAMPAIGN, rounds=12)
    assert only(compare(record, arms("k0"), rows)).completion is None
    launches = [launch("k0", t, 0, FAILED) for t in range(12)]
    imported = replace(record, origin=Origin.IMPORT)
    assert only(compare(imported, arms("k0"), rows, launches=launches)).completion is None


def test_layouts_are_swapped_in_launches_too() -> None:
    values = [
        ValueRow("k0", layout, "a", 0, 0, "native:bw", "bandwidth", 8, 1.0, "host")
        for layout in ("1x2", "2x1")
    ]
    ended = [launch("k0", 0, 0), launch("gone", 0, 0)]
    first, second = across.swap_layouts(side_of(CAMPAIGN, arms("k0"), values, ended)).launches
    assert (first.configuration, first.layout) == ("1x2", "mpi@k0")
    assert (second.configuration, second.layout) == ("1x2", "gone")


def test_whole_launches_have_what_any_of_them_has() -> None:
    def count(*launches: list[float]) -> int:
        return completion.whole_launches(np.array([launches]), [False] * len(launches[0]))

    assert count([1, 2], [1, NAN], [1, 3]) == 2
    assert count([1, NAN], [1, NAN], [NAN, NAN]) == 2
    assert count([NAN, NAN]) == 0
    short = np.array([[[1, NAN], [2, NAN]]])
    assert completion.whole_launches(short, [True, False]) == 2
    assert completion.whole_launches(short, [False, True]) == 0  # the baseline has that size
    assert completion.whole_launches(np.array([[[1.0], [NAN]], [[2.0], [3.0]]]), [False]) == 3


def test_fisher_is_the_textbooks() -> None:
    """The lady tasting tea: 3 and 1 of 4 and 4, and 4 and 0."""
    assert completion.fisher((3, 4), (1, 4)) == pytest.approx(17 / 70)
    assert completion.fisher((4, 4), (0, 4)) == pytest.approx(1 / 70)
    assert completion.fisher((0, 4), (4, 4)) == 1
    assert completion.fisher((1, 3), (5, 9)) == pytest.approx(
        sum(math.comb(3, k) * math.comb(9, 6 - k) for k in (1, 2, 3)) / math.comb(12, 6)
    )
    assert completion.fisher((0, 0), (0, 0)) == 1


def test_more_values_than_launches_are_no_loss() -> None:
    assert completion.judge_completion((12, 0), (24, 24)) == Completion(12, 12, 24, 24, None, "")
    assert completion.judge_completion((5, 20), (40, 40)).loser == "configuration"
    assert completion.judge_completion((20, 20), (5, 40)).loser == "baseline"
    assert completion.judge_completion((20, 20), (38, 40)).p == pytest.approx(
        math.comb(40, 2) / math.comb(60, 2)
    )


def test_the_side_that_loses_more_of_what_it_launched_is_the_loser() -> None:
    """Of ten launches and of forty, whichever lost the greater number."""
    p = completion.fisher((2, 10), (3, 40))
    for of, loser in ((completion.judge_completion((8, 10), (37, 40)), "configuration"),
                      (completion.judge_completion((37, 40), (8, 10)), "baseline")):  # fmt: skip
        assert of.p == pytest.approx(p)
        assert of.loser == loser
    assert (
        completion.judge_completion((6, 7), (6, 7)).loser == ""
    )  # although the interval hangs on one


@pytest.mark.parametrize(
    ("lost", "base_lost", "p", "loser"),
    [(5, 3, 0.0729, ""), (4, 1, 0.0383, "configuration"), (0, 7, 0.0483, "baseline"),
     (6, 4, 0.0585, "configuration")],  # six of 20 reach the interval
)  # fmt: skip
def test_chance_explains_what_happens_in_more_than_a_twentieth(
    lost: int, base_lost: int, p: float, loser: str
) -> None:
    of = completion.judge_completion((20 - lost, 20), (40 - base_lost, 40))
    assert of.p == pytest.approx(p, abs=5e-4)
    assert of.loser == loser


def test_what_the_baseline_lacks_has_no_completion() -> None:
    rows = [r for r in campaign(around(0.5)) if r.configuration == "k0" or r.size < 64]
    rows += [r._replace(benchmark="native:bw") for r in rows if r.configuration == "k0"]
    labels = {"base": "mpi@base", "k0": "mpi@k0"}
    launches = [launch(name, t, 0) for t in range(6) for name in labels]
    completions = completion.completions(table_of(rows, {}, labels), "base", labels, launches)
    assert [(subject.benchmark, label) for subject, label in completions] == [
        ("native:latency", "mpi@k0")
    ]


@pytest.mark.parametrize(
    ("curve", "cell", "held"),
    [(FASTER, INCONCLUSIVE, True), (INCONCLUSIVE, FASTER, True), (INCONCLUSIVE, SLOWER, False),
     (SLOWER, INCONCLUSIVE, False), (SLOWER, FASTER, True)],
)  # fmt: skip
def test_verdicts_of_curves_and_cells_are_withheld_apart(
    curve: Verdict, cell: Verdict, held: bool
) -> None:
    """And a look has called only what stands."""
    known = only(measured(around(0.5), 20, lost=(3, 8, 15)))
    cells = tuple(replace(one, verdict=cell) for one in known.cells)
    of = completion.judge_completion((17, 20), (40, 40))
    subject = known.series
    group = replace(known, curve=curve, cells=cells, look=9)
    judged = completion.apply_completion(group, {(subject, known.configuration): of})
    assert judged.completion == replace(of, held=held)
    assert judged.curve is (INCONCLUSIVE if curve is FASTER else curve)
    assert verdicts(judged) == [INCONCLUSIVE if cell is FASTER else cell] * 3
    assert judged.look == (None if curve is FASTER else 9)


def a_group(comparison: Comparison, benchmark: str) -> CellGroup:
    return replace(only(comparison), benchmark=benchmark)


def test_a_finding_names_a_few_curves_and_counts_the_rest() -> None:
    lost = measured(around(0.5), 12, lost=(1, 4, 9))
    groups = [a_group(lost, f"native:b{k}") for k in range(6)]
    (six,) = completion.findings(groups)
    assert six.message.endswith("; and 2 more")
    assert six.message.count(" 9 of 12, the baseline 24 of 24") == 4
    (four,) = completion.findings(groups[:4])
    assert "more" not in four.message
    assert not completion.findings([only(measured(around(0.5), 12))])


def test_crossovers_are_those_of_the_verdicts_that_stand() -> None:
    def turning(turn: int, size: int) -> float:
        return around(0.5 if size < 64 else 2.0)(turn, size)

    assert only(measured(turning, 12)).crossovers == (64,)
    group = only(measured(turning, 12, lost=(1, 4, 9)))
    assert (group.crossovers, verdicts(group)) == ((), [INCONCLUSIVE, INCONCLUSIVE, Verdict.SLOWER])


def test_launches_of_one_program_are_not_lost_to_the_others() -> None:
    """Each benchmark of a suite has a launch of its own beside those of the native program."""
    asked = [Benchmark.parse(key) for key in ("osu:bw", "osu:bw,datatype=MPI_INT", "imb:PingPong")]
    measured = {
        "native:latency": "",
        "osu:bw": "osu:bw",
        "osu:bw,datatype=MPI_INT,window=32": "osu:bw,datatype=MPI_INT",
        "imb:PingPong,processes=2": "imb:PingPong",
        "imb:PingPing": "",
    }
    for key, program in measured.items():
        assert completion.program_of(Benchmark.parse(key), asked) == program


def test_a_series_is_judged_by_the_launches_of_its_program() -> None:
    rows = [r._replace(benchmark=b) for b in ("native:bw", "osu:bw") for r in campaign(around(0.5))]
    labels = {"base": "mpi@base", "k0": "mpi@k0"}
    places = [(name, t, replica) for t in range(6) for name, replica in (("base", 0), ("base", 1))]
    launches = [launch(*at) for at in [*places, *(("k0", t, 0) for t in range(6))]]
    launches += [replace(launch("k0", t, 0), program="osu:bw") for t in range(9)]
    launches += [replace(launch(*at), program="osu:bw") for at in places]
    judged = completion.completions(table_of(rows, {}, labels), "base", labels, launches)
    assert {key.benchmark: (of.completed, of.launched) for (key, _), of in judged.items()} == {
        "native:bw": (6, 6),
        "osu:bw": (6, 9),
    }
