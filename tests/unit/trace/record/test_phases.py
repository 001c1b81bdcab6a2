"""Phases of a record, and what of one that ended early all ranks can replay."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from mpigraft.core.errors import UsageError
from mpigraft.trace.record.coding import write_call
from mpigraft.trace.record.phases import END, Borders, find_phases, whole_calls
from mpigraft.trace.record.values import (
    LACKS_END,
    CallRecord,
    Leaf,
    Loop,
    Node,
    RankCalls,
    RecordedRoutine,
)
from tests.builders.messages import shows

ROUTINES = (
    RecordedRoutine("Barrier", "c"), RecordedRoutine("Send", "aitrkc"),
    RecordedRoutine("Pcontrol", "i"), RecordedRoutine("Comm_split", "ciiC"),
    RecordedRoutine("Ibarrier", "cH"),
)  # fmt: skip
TEXTS = (
    write_call(0, ROUTINES[0], (-1,)),
    write_call(1, ROUTINES[1], (0, 1, -4, 0, 5, -1)),
    write_call(2, ROUTINES[2], (1,)),
    write_call(3, ROUTINES[3], (-1, 0, 0, (1, 1, 0, (0,)))),
    write_call(0, ROUTINES[0], (1,)),
    write_call(4, ROUTINES[4], (-1, 1)),
    write_call(3, ROUTINES[3], (-1, 0, 0, (1, 2, 0, (0, 1)))),
)
BARRIER, SEND, MARK, SPLIT, OWN_BARRIER, IBARRIER, JOIN = range(7)


def leaf(number: int, gap: int = 100) -> Leaf:
    return Leaf(number, 1, gap, 0)


def a_rank(nodes: Sequence[Node], rank: int = 0, lacks: int = 0) -> RankCalls:
    ticks = sum(one.gap for one in RankCalls(0, 1, (), (), tuple(nodes)).leaves())
    return RankCalls(rank, 2, ROUTINES, TEXTS, tuple(nodes), lacks=lacks, run_ticks=ticks)


def unfolded(nodes: Sequence[Node]) -> Iterator[int]:
    for node in nodes:
        if isinstance(node, Leaf):
            yield node.signature
        else:
            for _ in range(node.count):
                yield from unfolded(node.items)


def some_nodes(dice: random.Random, depth: int = 0) -> tuple[Node, ...]:
    return tuple(
        Loop(dice.randrange(1, 5), some_nodes(dice, depth + 1))
        if depth < 3 and dice.random() < 0.4
        else leaf(dice.randrange(len(TEXTS)))
        for _ in range(dice.randrange(1, 5))
    )


def borders_by_hand(calls: Sequence[int]) -> Iterator[int]:
    """The calls that follow a barrier of both ranks: number 1 is of one of them after SPLIT, of
    both after JOIN."""
    number_1 = False
    for place, call in enumerate(calls):
        if call in {SPLIT, JOIN}:
            number_1 = call == JOIN
        elif call == BARRIER or (call == OWN_BARRIER and number_1):
            yield place + 1


@pytest.mark.parametrize("seed", range(200))
def test_borders_are_those_of_the_unfolded_calls(seed: int) -> None:
    nodes = some_nodes(random.Random(seed))
    rank, found = Borders(a_rank(nodes)), [*borders_by_hand([*unfolded(nodes)])]
    assert rank.total == len(found)
    for number, place in enumerate([0, *found]):
        assert rank.call_after(number) == place


def test_a_number_of_a_communicator_is_used_again() -> None:
    """For a part of the ranks, on which one of them has more barriers, then for all of them."""
    parts: list[Sequence[Node]] = []
    for own in (3, 40):
        apart: list[Node] = [leaf(SPLIT), Loop(own, (leaf(OWN_BARRIER),))]
        parts.append((*apart, leaf(JOIN), Loop(30, (leaf(OWN_BARRIER),)), leaf(MARK),
                      Loop(9, (leaf(OWN_BARRIER),))))  # fmt: skip
    ranks = [a_rank(nodes, number) for number, nodes in enumerate(parts)]
    assert [one.calls for one in find_phases(CallRecord(tuple(ranks)))] == [
        ((0, 35), (0, 72)), ((35, END), (72, END)),
    ]  # fmt: skip


def test_steps_are_phases_and_marks_go_before_them() -> None:
    step = Loop(10, (leaf(SEND), leaf(BARRIER)))
    nodes: list[Node] = [leaf(BARRIER), step, leaf(BARRIER), Loop(5, (leaf(BARRIER),))]
    both = CallRecord((a_rank(nodes), a_rank(nodes, 1)))
    # The one call between the two loops is a phase of its own.
    assert [one.calls[0] for one in find_phases(both)] == [(0, 1), (1, 21), (21, 22), (22, END)]
    assert all(one.calls[0] == one.calls[1] for one in find_phases(both))
    marked: list[Node] = [leaf(BARRIER), leaf(MARK), *nodes[1:]]
    both = CallRecord((a_rank(marked), a_rank(marked, 1)))
    assert [one.calls[0] for one in find_phases(both)] == [(0, 1), (1, END)]


def test_times_of_phases_are_those_of_their_calls() -> None:
    """Those of the first rank, in seconds. What follows the last border is of the last phase."""
    nodes = (Loop(10, (leaf(SEND, 5_000), leaf(BARRIER, 1_000))), leaf(SEND, 500),
             Loop(20, (Leaf(BARRIER, 1, 1_000, 3_000),)), leaf(SEND, 50))  # fmt: skip
    found = find_phases(CallRecord((a_rank(nodes), a_rank((Loop(30, (leaf(BARRIER),)),), 1))))
    assert [one.number for one in found] == [1, 2]
    assert [one.calls[0] for one in found] == [(0, 20), (20, END)]
    assert [one.time_s * 1e9 for one in found] == pytest.approx([6_000, 4_550])


def test_short_steps_and_those_without_borders_are_no_phases() -> None:
    long, short = Loop(2, (leaf(BARRIER, 950),)), Loop(9, (leaf(BARRIER, 40),))
    apart = Loop(9, (leaf(SEND, 10_000),))
    calls = {
        (long, short): [(0, 2), (2, END)],
        (short, long): [(0, 9), (9, END)],
        (short, long, short): [(0, 9), (9, 11), (11, END)],
        (leaf(BARRIER), short, leaf(BARRIER), long): [(0, 11), (11, END)],
        (long, apart, leaf(BARRIER), leaf(BARRIER)): [(0, 2), (2, END)],
        (leaf(BARRIER, 9_000), leaf(BARRIER, 9_000)): [(0, END)],
    }
    for nodes, ranges in calls.items():
        assert [one.calls[0] for one in find_phases(CallRecord((a_rank(nodes),)))] == ranges


def test_a_phase_that_a_rank_has_not_is_left_out() -> None:
    nodes: tuple[Node, ...] = (leaf(BARRIER), leaf(MARK), leaf(BARRIER), leaf(MARK), leaf(BARRIER))
    early = a_rank(nodes[:3], 1, lacks=LACKS_END)
    found = find_phases(CallRecord((a_rank(nodes), early)))
    assert [one.calls for one in found] == [((0, 1), (0, 1)), ((1, END), (1, END))]


def test_a_program_without_borders_is_one_phase() -> None:
    (phase,) = find_phases(CallRecord((a_rank([Loop(9, (leaf(SEND),))]),)))
    assert phase.calls == ((0, END),)


def test_a_record_that_ended_early_ends_for_all_at_one_border() -> None:
    """The first rank came to its third collective, the second to its second."""
    one = a_rank([Loop(3, (leaf(SEND), leaf(BARRIER))), leaf(SEND)])
    other = a_rank([Loop(2, (leaf(BARRIER), leaf(SEND)))], 1, lacks=LACKS_END)
    assert whole_calls(CallRecord((one, other))) == ((0, 4), (0, 3))
    assert whole_calls(CallRecord((one, one))) is None
    none = a_rank([leaf(SEND), leaf(OWN_BARRIER), leaf(IBARRIER)], lacks=LACKS_END)
    with pytest.raises(UsageError) as error:
        whole_calls(CallRecord((none,)))
    assert error.value.code == "record-no-border"


def test_a_record_that_its_budget_ended_tells_how_much_it_has() -> None:
    whole = a_rank([leaf(SEND, 300), leaf(BARRIER, 700)])
    cut = replace(a_rank([leaf(SEND, 250), leaf(SEND, 250)], 1, LACKS_END), run_ticks=2000)
    cut = replace(cut, ticks_per_s=1000.0)
    (note,) = CallRecord((whole, cut)).notes()
    assert shows(note, "0.5 of 2 s")
    assert whole.recorded_s == whole.run_s
