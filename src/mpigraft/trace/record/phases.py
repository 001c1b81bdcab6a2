"""Parts of a record that all ranks can replay together: from one collective call of all ranks to a
later one.

Every rank makes the same collective calls on communicators of all ranks in the same order, so the
k-th of them is a border that all ranks have. Phases are between borders: where the program calls
MPI_Pcontrol, else where the steps of rank 0 begin and end. A record that ends early (the budget,
MPI_Abort) ends for all ranks after the last border that every rank has.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpigraft.core.errors import UsageError
from mpigraft.trace.record.coding import read_call
from mpigraft.trace.record.values import (
    ABORTED,
    LACKS_END,
    CallRecord,
    Leaf,
    Loop,
    Node,
    RankCalls,
    RecordedCall,
)

BLOCKING = frozenset((
    "Barrier", "Bcast", "Gather", "Gatherv", "Scatter", "Scatterv", "Allgather", "Allgatherv",
    "Alltoall", "Alltoallv", "Alltoallw", "Reduce", "Allreduce", "Reduce_scatter",
    "Reduce_scatter_block", "Scan", "Exscan",
))  # fmt: skip
WORLD = -1
LEAST_SHARE = 0.05  # of all calls' time and gaps: shorter steps are no phase of their own
END = 2**63  # of calls: no rank makes as many
Calls = tuple[int, int]  # the first that a rank makes, and the first that it makes no more
Whole = frozenset[object]  # numbers of the communicators of all ranks, at one point of a rank
AT_FIRST: Whole = frozenset((WORLD,))


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of a record: which calls each rank makes, and how long rank 0 took for them."""

    number: int  # from 1
    calls: tuple[Calls, ...]
    time_s: float


class Borders:
    """The borders of a rank. Numbers of communicators are used again when they are free, so
    whether a collective is one of all ranks depends on what was made before it."""

    def __init__(self, rank: RankCalls) -> None:
        calls = [read_call(text, rank.routines) for text in rank.signatures]
        self.rank = rank
        self._on = [_blocking_on(call) for call in calls]
        self._made = [_made(call, rank.size) for call in calls]
        self._known: dict[tuple[int, Whole], tuple[int, int, Whole]] = {}

    def of(self, node: Node, whole: Whole) -> tuple[int, int, Whole]:
        """Return how many calls and borders a node has, and the communicators of all ranks after
        it."""
        if isinstance(node, Leaf):
            border = self._on[node.signature] in whole
            for number, of_all in self._made[node.signature]:
                if of_all != (number in whole):  # or with many of them each call would copy all
                    whole = whole ^ {number}
            return 1, int(border), whole
        known = self._known.get((id(node), whole))
        if known is None:
            calls, first, after = self._sum(node.items, whole)
            # What the first round makes, each later one begins and ends with.
            later = self._sum(node.items, after)[1] if node.count > 1 else 0
            known = node.count * calls, first + (node.count - 1) * later, after
            self._known[id(node), whole] = known
        return known

    def _sum(self, nodes: Sequence[Node], whole: Whole) -> tuple[int, int, Whole]:
        calls = borders = 0
        for node in nodes:
            own, more, whole = self.of(node, whole)
            calls, borders = calls + own, borders + more
        return calls, borders, whole

    def each(self) -> Iterator[tuple[Node, int]]:
        """Yield the nodes of the rank with the borders of each."""
        whole = AT_FIRST
        for node in self.rank.nodes:
            _, borders, whole = self.of(node, whole)
            yield node, borders

    @property
    def total(self) -> int:
        return sum(borders for _, borders in self.each())

    def call_after(self, border: int) -> int:
        """Return the number of the call that follows the `border`-th border, from 0."""
        calls, whole = 0, AT_FIRST
        nodes: Sequence[Node] = self.rank.nodes
        while border > 0:
            for node in nodes:
                own, borders, after = self.of(node, whole)
                if borders >= border:
                    break
                calls, border, whole = calls + own, border - borders, after
            else:
                return calls
            if isinstance(node, Leaf):
                return calls + 1
            nodes = node.items
            own, first, after = self._sum(nodes, whole)
            if border > first:
                later = self._sum(nodes, after)[1]
                rounds = (border - first - 1) // later
                calls, whole = calls + (1 + rounds) * own, after
                border -= first + rounds * later
        return calls


def _blocking_on(call: RecordedCall) -> object:
    """Return the communicator of a blocking collective; None: it is another call."""
    return call.of("c")[0] if call.routine.name in BLOCKING else None


def _made(call: RecordedCall, size: int) -> list[tuple[int, bool]]:
    """Return the communicators that a call makes, and whether they have all ranks."""
    communicators = []
    for made in call.of("C"):
        assert isinstance(made, tuple)
        communicators.append((made[0], made[1] == size))
    return communicators


def whole_calls(record: CallRecord) -> tuple[Calls, ...] | None:
    """Return which calls a replay of all makes: all of them (None), or those that every rank has of
    a record that ended early. Raises UsageError where there is no border to end at."""
    if not any(rank.lacks & (LACKS_END | ABORTED) for rank in record.ranks):
        return None
    ranks = [*map(Borders, record.ranks)]
    last = min(rank.total for rank in ranks)
    if not last:
        raise UsageError.of("record-no-border", program=record.provenance.program)
    return tuple((0, rank.call_after(last)) for rank in ranks)


def find_phases(record: CallRecord) -> tuple[Phase, ...]:
    """Return the phases of a record; one where there is no border inside."""
    ranks = [*map(Borders, record.ranks)]
    last = min(rank.total for rank in ranks)
    marks = sorted({0, *(mark for mark in _marks(ranks[0]) if mark < last)})
    ends = [*marks[1:], None]
    return tuple(
        Phase(
            number,
            tuple(_range(rank, first, end) for rank in ranks),
            _time(ranks[0], first, end),
        )
        for number, (first, end) in enumerate(zip(marks, ends, strict=True), 1)
    )


def _range(rank: Borders, first: int, end: int | None) -> Calls:
    return rank.call_after(first), END if end is None else rank.call_after(end)


def _marks(borders: Borders) -> list[int]:
    """Borders at which a phase begins, by the calls of one rank."""
    rank = borders.rank
    calls = [read_call(text, rank.routines) for text in rank.signatures]
    marked, steps, border = [], [], 0
    least = LEAST_SHARE * sum(map(_ticks, rank.nodes))
    for node, own in borders.each():
        if isinstance(node, Leaf) and calls[node.signature].routine.name == "Pcontrol":
            marked.append(border)
        long = _ticks(node) >= least
        before, border = border, border + own
        if isinstance(node, Loop) and long and border > before:
            steps += [before, border]
    return marked or steps


def _ticks(node: Node) -> int:
    if isinstance(node, Leaf):
        return node.gap + node.took
    return sum(map(_ticks, node.items))


def _time(borders: Borders, first: int, end: int | None) -> float:
    """Return seconds between two borders; a node counts where most of its time is."""
    border = total = 0
    for node, own in borders.each():
        middle = border + own / 2
        if middle >= first and (end is None or middle < end):
            total += _ticks(node)
        border += own
    return total / borders.rank.ticks_per_s
