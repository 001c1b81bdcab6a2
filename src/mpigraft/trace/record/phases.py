"""Parts of a record that all ranks can replay together: from one collective call of all ranks to a
later one.

Every rank makes the same collective calls on communicators of all ranks in the same order, so the
k-th of them is a border that all ranks have. Phases lie between borders: where the program calls
MPI_Pcontrol, else where the steps of rank 0 begin and end. A record that ends early (the budget,
MPI_Abort) ends for all ranks after the last border that every rank has.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mpigraft.core.errors import UsageError
from mpigraft.trace.record.coding import read_call
from mpigraft.trace.record.values import ABORTED, LACKS_END, Leaf, Loop, Node, RankRecord, Record

BLOCKING = frozenset((
    "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
    "Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter",
    "Reduce_scatter_block", "Scan", "Exscan",
))  # fmt: skip
WORLD = -1
LEAST_SHARE = 0.05  # of all calls' time and gaps: shorter steps are no phase of their own
END = 2**63  # of calls: no rank makes as many
Calls = tuple[int, int]  # the first that a rank makes, and the first that it makes no more


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a record: which calls each rank makes, and how long rank 0 took for them."""

    number: int  # from 1
    calls: tuple[Calls, ...]
    time_s: float


class _Counts:
    """How many calls, and border calls, a node of a rank has."""

    def __init__(self, rank: RankRecord) -> None:
        self._border = _borders(rank)
        self._known: dict[int, tuple[int, int]] = {}

    def of(self, node: Node) -> tuple[int, int]:
        if isinstance(node, Leaf):
            return 1, int(self._border[node.signature])
        if id(node) not in self._known:
            inner = [self.of(item) for item in node.items]
            calls, borders = sum(one for one, _ in inner), sum(one for _, one in inner)
            self._known[id(node)] = node.count * calls, node.count * borders
        return self._known[id(node)]


def _borders(rank: RankRecord) -> list[bool]:
    """Of each signature, whether it is a blocking collective on all ranks."""
    calls = [read_call(text, rank.routines) for text in rank.signatures]
    whole = {WORLD}
    for call in calls:
        for made in call.of("C"):
            assert isinstance(made, tuple)
            (whole.add if made[1] == rank.size else whole.discard)(made[0])
    return [call.routine.name in BLOCKING and call.of("c")[0] in whole for call in calls]


def call_after(rank: RankRecord, border: int) -> int:
    """The number of the call that follows the `border`-th border of a rank, from 0."""
    counts, calls = _Counts(rank), 0
    nodes: Sequence[Node] = rank.nodes
    while border > 0:
        for node in nodes:
            own, borders = counts.of(node)
            if borders >= border:
                break
            calls, border = calls + own, border - borders
        else:
            return calls
        if isinstance(node, Leaf):
            return calls + 1
        once_calls, once_borders = own // node.count, borders // node.count
        rounds = (border - 1) // once_borders
        calls, border = calls + rounds * once_calls, border - rounds * once_borders
        nodes = node.items
    return calls


def borders_of(rank: RankRecord) -> int:
    counts = _Counts(rank)
    return sum(counts.of(node)[1] for node in rank.nodes)


def whole_calls(record: Record) -> tuple[Calls, ...] | None:
    """Which calls a replay of all makes: all of them (None), or those that every rank has of a
    record that ended early. Raises UsageError where there is no border to end at."""
    if not any(rank.lacks & (LACKS_END | ABORTED) for rank in record.ranks):
        return None
    last = min(map(borders_of, record.ranks))
    if not last:
        raise UsageError.of("record-no-border", program=record.provenance.program)
    return tuple((0, call_after(rank, last)) for rank in record.ranks)


def find_phases(record: Record) -> tuple[Phase, ...]:
    """The phases of a record; one where there is no border inside."""
    marks = [0, *_marks(record.ranks[0])]
    last = min(map(borders_of, record.ranks))
    marks = sorted({mark for mark in marks if mark < last or not mark})
    ends = [*marks[1:], None]
    return tuple(
        Phase(
            number,
            tuple(_range(rank, first, end) for rank in record.ranks),
            _time(record.ranks[0], first, end),
        )
        for number, (first, end) in enumerate(zip(marks, ends, strict=True), 1)
    )


def _range(rank: RankRecord, first: int, end: int | None) -> Calls:
    return call_after(rank, first), END if end is None else call_after(rank, end)


def _marks(rank: RankRecord) -> list[int]:
    """Borders at which a phase begins, by the calls of one rank."""
    counts = _Counts(rank)
    calls = [read_call(text, rank.routines) for text in rank.signatures]
    marked, steps, border = [], [], 0
    least = LEAST_SHARE * sum(map(_ticks, rank.nodes))
    for node in rank.nodes:
        if isinstance(node, Leaf) and calls[node.signature].routine.name == "Pcontrol":
            marked.append(border)
        long = _ticks(node) >= least
        before, border = border, border + counts.of(node)[1]
        if isinstance(node, Loop) and long and border > before:
            steps += [before, border]
    return marked or steps


def _ticks(node: Node) -> int:
    if isinstance(node, Leaf):
        return node.gap + node.took
    return sum(map(_ticks, node.items))


def _time(rank: RankRecord, first: int, end: int | None) -> float:
    """Seconds between two borders, a node counting where most of it lies."""
    counts, border, total = _Counts(rank), 0, 0
    for node in rank.nodes:
        own = counts.of(node)[1]
        middle = border + own / 2
        if middle >= first and (end is None or middle < end):
            total += _ticks(node)
        border += own
    return total / rank.ticks_per_s
