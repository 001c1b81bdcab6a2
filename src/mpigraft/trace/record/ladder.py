"""Records of one exchange, from a benchmark's even one to the application's own: each step puts one
of its properties back, so that a campaign over the steps says which of them moves a ratio."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mpigraft.trace.record.coding import write_call
from mpigraft.trace.record.exchanges import WORLD, Exchange
from mpigraft.trace.record.file import write_record
from mpigraft.trace.record.rank_file import write_rank
from mpigraft.trace.record.types import BYTE
from mpigraft.trace.record.values import Leaf, Loop, Provenance, RankCalls, RecordedRoutine

CALLS = 200  # of a synthetic record
ALLTOALLV = RecordedRoutine("Alltoallv", "aIItaIItc")
FINALIZE = RecordedRoutine("Finalize", "")
TICKS_PER_S = 1e9
Matrix = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class LadderStep:
    """A synthetic record: its name, what it has that the step before has not, and its file."""

    name: str
    what: str
    data: bytes


def even(exchange: Exchange) -> Matrix:
    """Return the same block for each, as osu_alltoallv has it."""
    block = round(exchange.total / exchange.ranks**2)
    return ((block,) * exchange.ranks,) * exchange.ranks


def skewed(exchange: Exchange) -> Matrix:
    """As many bytes of each rank as it has, in even blocks."""
    return tuple(
        (round(sum(row) / exchange.ranks),) * exchange.ranks for row in exchange.bytes_sent
    )


def sparse(exchange: Exchange) -> Matrix:
    """Return the same, to those that the rank sends anything to."""
    rows = []
    for row in exchange.bytes_sent:
        filled = sum(number > 0 for number in row)
        rows.append(tuple(round(sum(row) / filled) if number else 0 for number in row))
    return tuple(rows)


def true(exchange: Exchange) -> Matrix:
    """Return the application's mean blocks."""
    return tuple(tuple(map(round, row)) for row in exchange.bytes_sent)


STEPS: tuple[tuple[str, str, Callable[[Exchange], Matrix], bool], ...] = (
    ("1-even", "equal blocks, as osu_alltoallv", even, False),
    ("2-skew", "each rank's own share of the bytes", skewed, False),
    ("3-zeros", "its empty blocks", sparse, False),
    ("4-sizes", "its block for each rank", true, False),
    ("5-spread", "its time before each call", true, True),
)


def make_ladder(exchange: Exchange) -> tuple[LadderStep, ...]:
    """Make the steps, each with CALLS calls of MPI_Alltoallv on all its ranks."""
    none = (0.0,) * exchange.ranks
    return tuple(
        LadderStep(name, what, _record(matrix(exchange), exchange.gaps_s if gaps else none, name))
        for name, what, matrix, gaps in STEPS
    )


def _record(matrix: Matrix, gaps_s: tuple[float, ...], name: str) -> bytes:
    parts = [_rank(matrix, gaps_s[rank], rank) for rank in range(len(matrix))]
    return write_record(parts, Provenance(f"synthetic {name}", "", "ompi"))


def _rank(matrix: Matrix, gap_s: float, rank: int) -> bytes:
    sent, received = matrix[rank], tuple(row[rank] for row in matrix)
    values = (0, sent, _places(sent), BYTE, 0, received, _places(received), BYTE, WORLD)
    texts = (write_call(0, ALLTOALLV, values), write_call(1, FINALIZE, ()))
    gap = round(gap_s * TICKS_PER_S)
    nodes = (Loop(CALLS, (Leaf(0, CALLS, gap * CALLS, 0),)), Leaf(1, 1, 0, 0))
    record = RankCalls(
        rank, len(matrix), (ALLTOALLV, FINALIZE), texts, nodes, TICKS_PER_S,
        run_ticks=gap * CALLS, events=CALLS, world_collectives=CALLS,
    )  # fmt: skip
    return write_rank(record)


def _places(counts: tuple[int, ...]) -> tuple[int, ...]:
    """Return where consecutive blocks begin."""
    places, at = [], 0
    for count in counts:
        places.append(at)
        at += count
    return tuple(places)
