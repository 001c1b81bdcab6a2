"""When curves are tested, by which level, and what a look calls."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.analysis import interim as looks
from mpigraft.analysis.interim import (
    called_curves,
    campaign_looks,
    due_looks,
    looks_taken,
    rounds_over,
    settle_looks,
)
from mpigraft.bench.schedule.extension import extend_campaign
from mpigraft.core.errors import UsageError
from mpigraft.core.model import AllocationRecord, CampaignRecord, Cell, CellGroup, Look, Verdict
from mpigraft.core.serialize import canonical
from tests.builders.records import CAMPAIGN, launch

F, S, E, I = Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT, Verdict.INCONCLUSIVE  # noqa: E741


def record(rounds: int, *ends: int) -> CampaignRecord:
    plan = canonical({"wish": {"rounds": rounds, "looks": ends}})
    return replace(CAMPAIGN, rounds=rounds, plan=plan)


def levels(campaign: CampaignRecord) -> list[tuple[int, float, bool]]:
    return [(x.rounds, round(100 * x.level, 4), x.extension) for x in campaign_looks(campaign)]


# ------------------------------------------------------------------ what each may spend


def test_the_levels_of_a_plan_go_with_its_rounds() -> None:
    assert levels(record(20, 9, 14, 20)) == [
        (9, 0.405, False),
        (14, 0.225, False),
        (20, 0.27, False),
    ]
    assert levels(record(20)) == [(20, 4.0, False)]
    assert levels(record(1)) == [(1, 4.0, False)]
    assert levels(replace(CAMPAIGN, plan="{}")) == [(6, 4.0, False)]  # of an older version


def test_each_extension_is_one_look_more_and_spends_half_of_the_rest() -> None:
    once = extend_campaign(record(10), 24, 10)
    assert levels(once) == [(10, 4.0, False), (24, 0.5, True)]
    twice = extend_campaign(once, 40, 24)
    assert levels(twice) == [(10, 4.0, False), (24, 0.5, True), (40, 0.25, True)]
    assert levels(extend_campaign(record(12, 9, 12), 30, 12))[2:] == [(30, 0.05, True)]
    several = extend_campaign(record(20, 9, 14, 20), 30, 20)
    assert levels(several)[3:] == [(30, 0.05, True)]


@given(st.lists(st.integers(1, 60), max_size=5), st.lists(st.integers(1, 40), max_size=6))
def test_a_campaign_spends_no_more_than_it_may_however_it_is_extended(
    ends: list[int], more: list[int]
) -> None:
    try:
        rounds, planned = settle_looks(0, tuple(ends))
    except UsageError:
        return
    one = record(rounds or 10, *planned)
    for step in more:
        try:
            one = extend_campaign(one, one.rounds + step, 0)
        except UsageError:
            break
        assert campaign_looks(one)[-1].level >= max(2.0 ** (1 - one.rounds), 1 / 4096)
    spent = sum(look.level for look in campaign_looks(one))
    assert spent <= (looks.SEVERAL if planned else looks.ONCE) + 1e-12


@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.integers(0, 60))
def test_what_is_settled_is_settled_and_every_look_can_call(ends: list[int], rounds: int) -> None:
    try:
        last, planned = settle_looks(rounds, tuple(ends))
    except UsageError:
        return
    assert settle_looks(last, planned) == (last, planned)
    assert planned[0] >= 9
    assert planned[-1] == last
    for look in campaign_looks(record(last, *planned)):
        assert look.level >= max(2 / 2**look.rounds, 1 / 4096)


@pytest.mark.parametrize(
    ("rounds", "given_looks", "found"),
    [
        (0, (), (0, ())),
        (12, (), (12, ())),
        (0, (9, 14, 20), (20, (9, 14, 20))),
        (20, (9, 14), (20, (9, 14, 20))),
        (20, (9,), (20, (9, 20))),
        (0, (10, 40), (40, (10, 40))),
        (0, (20, 21, 36), (36, (20, 21, 36))),  # 0.025 %: one of 4,096 patterns
    ],
)
def test_the_last_look_is_the_end(
    rounds: int, given_looks: tuple[int, ...], found: tuple[int, tuple[int, ...]]
) -> None:
    assert settle_looks(rounds, given_looks) == found


@pytest.mark.parametrize(
    ("rounds", "given_looks", "refusal"),
    [
        (0, (20,), "one look, at the end"),
        (20, (20,), "one look, at the end"),
        (0, (8, 20), "the first look is after 8 rounds"),
        (0, (9, 9, 20), "--stop-early-at 9,9,20 is not an ascending list$"),
        (0, (14, 9), "--stop-early-at 14,9 is not an ascending list$"),
        (10, (9, 14, 20), "--stop-early-at 9,14,20 is not an ascending list within 10 rounds$"),
        (
            0,
            (9, 40),
            "cannot call any curve: its level is 0.2 %, and no p of 9 rounds is below 0.39",
        ),
        (0, (9, 10, 20), "the look after 10 of 20 rounds cannot call any curve"),
    ],
)
def test_looks_that_could_call_nothing_are_refused(
    rounds: int, given_looks: tuple[int, ...], refusal: str
) -> None:
    with pytest.raises(UsageError) as refused:
        settle_looks(rounds, given_looks)
    assert refusal.removesuffix("$") in refused.value.message
    assert not refusal.endswith("$") or refused.value.message == refusal[:-1]
    assert refused.value.fix


def test_the_joint_test_tries_every_pattern_of_twelve_rounds() -> None:
    assert looks.FLIPS == 2**12


# ------------------------------------------------------------------ which rounds are over


def on(name: str, node: str = "n1", share: str = "1/1", ended: str = "") -> AllocationRecord:
    return AllocationRecord(name, CAMPAIGN.id, "2026", node, "{}", (node,), "", share, 9, ended)


def over(allocations: list[AllocationRecord], *made: tuple[str, int]) -> set[int]:
    launches = [launch(number % 60, allocation=name, round=number) for name, number in made]
    return set(rounds_over(launches, allocations))


def test_a_round_is_over_when_its_job_has_passed_it() -> None:
    assert over([]) == set()
    assert over([on("a")], ("a", 0), ("a", 1), ("a", 2)) == {0, 1}
    assert over([on("a", ended="x")], ("a", 0), ("a", 1)) == {0, 1}
    assert over([on("a")], ("unknown", 0), ("unknown", 1)) == set()


def test_a_round_that_was_cut_off_is_over_when_another_job_has_ended_it() -> None:
    killed, again, elsewhere = on("a"), on("b"), on("c", "n2")
    assert over([killed, again], ("a", 0), ("a", 1), ("b", 1)) == {0}
    assert over([killed, again], ("a", 1), ("b", 1), ("b", 2)) == {1}
    assert over([killed, elsewhere], ("a", 0), ("a", 1), ("c", 1)) == {0}
    assert over([killed, elsewhere], ("a", 0), ("a", 1), ("c", 1), ("c", 2)) == {0, 1}
    # Killed between its last launch and its end: the next job has nothing to do and ends.
    assert over([killed, on("b", ended="x")], ("a", 0), ("a", 1)) == {0, 1}


def test_what_ended_before_says_nothing_of_rounds_that_were_added() -> None:
    assert over([on("a", ended="x"), on("b")], ("a", 0), ("a", 1), ("b", 2)) == {0, 1}


def test_shares_on_the_same_nodes_count_separately() -> None:
    first, second = on("a", share="1/2"), on("b", share="2/2")
    assert over([first, second], ("a", 0), ("a", 2), ("b", 1), ("b", 3)) == {0, 1}


def test_a_look_is_taken_when_all_of_its_rounds_are_over() -> None:
    planned = campaign_looks(record(20, 9, 14, 20))
    assert looks_taken(planned, range(8)) == ()
    assert looks_taken(planned, range(9)) == planned[:1]
    assert looks_taken(planned, {*range(9), *range(10, 20)}) == planned[:1]
    assert looks_taken(planned, range(20)) == planned


# ------------------------------------------------------------------ what they call


def group(
    curve: Verdict, p: float | None = 0.5, rounds: int = 9, name: str = "a", look: int | None = None
) -> CellGroup:
    cells = tuple(Cell(n, 1.0, 1.0, 1.0, 0.9, 1.1, I, rounds - n) for n in (1, 0))
    return CellGroup(
        "native:bw", "bw", "MB/s", "1x2", "host", name, cells, curve, p, 1.0, 0.9, 1.1, look=look
    )  # fmt: skip


PLANNED = campaign_looks(record(20, 9, 14, 20))
FIRST, SECOND, LAST = PLANNED


def test_the_first_look_that_calls_a_curve_decides() -> None:
    stages = [(FIRST, [group(S, 0.003)]), (SECOND, [group(S, 0.001, 14)])]
    (curve,) = called_curves([group(S, 0.001, 14)], stages, PLANNED)
    assert (curve.curve, curve.curve_p, curve.look) == (S, 0.003, 9)
    (curve,) = called_curves([group(F, 0.2, 17)], [(FIRST, [group(I, 0.2)]), *stages[1:]], PLANNED)
    assert curve.curve is I  # rounds after the look say something else
    assert (curve.curve_p, curve.look) == (0.001, None)


def test_a_curve_that_was_not_launched_since_stays_called() -> None:
    """The margin may have grown by what others measured; that is no more of this curve."""
    (curve,) = called_curves([group(I, 0.003, 9)], [(FIRST, [group(F, 0.003, 9)])], PLANNED)
    assert (curve.curve, curve.look) == (F, 9)
    (curve,) = called_curves([group(I, 0.003, 10)], [(FIRST, [group(F, 0.003, 9)])], PLANNED)
    assert (curve.curve, curve.look) == (I, None)


def test_a_size_that_lacks_a_round_hides_none_that_was_added() -> None:
    then, now = group(F, 0.003, 9), group(I, 0.003, 10)
    now = replace(now, cells=(then.cells[0], now.cells[1]))
    assert called_curves([now], [(FIRST, [then])], PLANNED)[0].curve is I


def test_between_looks_nothing_is_called() -> None:
    (curve,) = called_curves([group(S, 0.0001, 12)], [], PLANNED)
    assert (curve.curve, curve.curve_p, curve.look) == (I, None, None)
    (curve,) = called_curves([group(S, 0.0001, 12)], [(FIRST, [group(I, 0.03)])], PLANNED)
    assert (curve.curve, curve.curve_p, curve.look) == (I, 0.03, None)


def test_a_curve_is_equivalent_by_the_planned_end_or_an_extension() -> None:
    same = [(look, [group(E, 0.9, look.rounds)]) for look in PLANNED]
    for number, curve in ((0, I), (1, I), (2, I), (3, E)):
        (found,) = called_curves([group(E, 0.9, 20)], same[:number], PLANNED)
        assert (found.curve, found.look) == (curve, None)
    longer = (*PLANNED, Look(30, 0.0005, extension=True))
    ended = [*same, (longer[-1], [group(I, 0.9, 30)])]
    (found,) = called_curves([group(E, 0.9, 30)], ended, longer)
    assert found.curve is I  # the last that may say so does not
    (found,) = called_curves([group(E, 0.9, 25)], same, longer)
    assert found.curve is E
    (found,) = called_curves([group(I, 0.9, 25)], same, longer)
    assert found.curve is I  # rounds after it show something else
    (found,) = called_curves([group(I, 0.9, 20)], same, longer)
    assert found.curve is E


def test_a_curve_may_appear_late() -> None:
    stages = [(FIRST, [group(S, 0.003, name="b")]), (SECOND, [group(F, 0.001, 14, "a")])]
    now = [group(F, 0.001, 14, "a"), group(S, 0.003, 9, "b")]
    assert [(g.curve, g.look) for g in called_curves(now, stages, PLANNED)] == [(F, 14), (S, 9)]


def test_what_a_look_has_ended_lacks_no_rounds_after_it() -> None:
    open_, at_9, at_14 = group(I, name="a"), group(F, name="b", look=9), group(S, name="b", look=14)
    assert due_looks([at_9], PLANNED, "base", {}) == {("b", "1x2"): 9, ("base", "1x2"): 9}
    assert due_looks([at_9, at_14], PLANNED, "base", {}) == {("b", "1x2"): 14, ("base", "1x2"): 14}
    assert due_looks([open_, at_9], PLANNED, "base", {}) == {
        ("a", "1x2"): 20, ("b", "1x2"): 9, ("base", "1x2"): 20,
    }  # fmt: skip
    assert due_looks([at_9], campaign_looks(record(12, 9, 12)), "base", {})["b", "1x2"] == 9
    begun = {("a", "1x2"): 14, ("base", "1x2"): 30}  # a look ended it, by another margin
    assert due_looks([open_], PLANNED, "base", begun) == {("a", "1x2"): 14, ("base", "1x2"): 20}
    assert (
        due_looks([open_], campaign_looks(record(20)), "base", begun)["a", "1x2"] == 20
    )  # fixed: a gap
    extended = campaign_looks(extend_campaign(record(10), 24, 10))
    assert (
        due_looks([group(F, look=10)], extended, "base", {})["a", "1x2"] == 24
    )  # it was launched on


def test_an_extension_that_could_call_nothing_is_refused() -> None:
    """Each spends half of what is left, and a p of 4,096 patterns is never below 1 / 4,096."""
    longer = extend_campaign(record(20, 9, 14, 20), 30, 20)
    longer = extend_campaign(longer, 40, 30)
    with pytest.raises(UsageError, match="cannot be extended once more") as refused:
        extend_campaign(longer, 60, 40)
    assert "--rounds 60" in refused.value.fix
    fixed = record(10)
    for rounds in (20, 30, 40, 50, 60):
        fixed = extend_campaign(fixed, rounds, rounds - 10)
    with pytest.raises(UsageError, match=r"0\.016 %"):
        extend_campaign(fixed, 70, 60)


def test_a_stored_plan_keeps_its_looks_through_an_extension() -> None:
    longer = extend_campaign(record(20, 9, 14, 20), 30, 20)
    assert json.loads(longer.plan)["wish"]["looks"] == [9, 14, 20]
