"""The record of one rank as values, and of all ranks of an application."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

ABIS = ("ompi", "mpich", "mpi-abi")  # in the order of their numbers in a prepared file
LACKS_END, THREADS, ABORTED, STRAYS, FAILED = 1, 4, 8, 16, 32  # bits of `lacks`
LACKS = {
    LACKS_END: "the budget ended the record early",
    THREADS: "several threads called MPI, which one replays: times mean little, and it may hang",
    ABORTED: "MPI_Abort ended the record",
    STRAYS: "no replay: spawned processes, sessions and dynamic windows are not recorded",
    FAILED: "calls that returned an error are left out, and a replay may wait for their partners",
}


@dataclass(frozen=True, slots=True)
class RecordedRoutine:
    """A routine of MPI, without `MPI_`. `fields` has a letter for each value of its calls; empty:
    they are not recorded."""

    name: str
    fields: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """A call: the number of its signature, how often it was made, and ticks before and in it.
    `gaps` has (exponent, count, ticks, standard deviation in ticks); empty: all are their mean."""

    signature: int
    times: int
    gap: int
    took: int
    gaps: tuple[tuple[int, int, int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Loop:
    """`items`, `count` times."""

    count: int
    items: tuple[Node, ...]


Node = Leaf | Loop


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A signature, read: the routine and a value for each of its fields."""

    routine: RecordedRoutine
    values: tuple[object, ...]

    def of(self, letter: str) -> list[object]:
        """Return the values of the fields with this letter, in their order."""
        pairs = zip(self.routine.fields, self.values, strict=True)
        return [value for one, value in pairs if one == letter]


@dataclass(frozen=True, slots=True)
class RankCalls:
    """What one rank called. Times are ticks; there are `ticks_per_s` in a second."""

    rank: int
    size: int
    routines: tuple[RecordedRoutine, ...]
    signatures: tuple[bytes, ...]
    nodes: tuple[Node, ...]
    ticks_per_s: float = 1e9
    lacks: int = 0
    began_ns: int = 0
    run_ticks: int = 0
    events: int = 0
    polls: int = 0
    world_collectives: int = 0

    @property
    def run_s(self) -> float:
        return self.run_ticks / self.ticks_per_s

    @property
    def recorded_s(self) -> float:
        """From the first call of the record to its last."""
        return sum(leaf.gap + leaf.took for leaf in self.leaves()) / self.ticks_per_s

    def leaves(self) -> Iterator[Leaf]:
        """Yield every call of the folded sequence, once."""
        stack = [*reversed(self.nodes)]
        while stack:
            node = stack.pop()
            if isinstance(node, Leaf):
                yield node
            else:
                stack.extend(reversed(node.items))


@dataclass(frozen=True, slots=True)
class Provenance:
    """Where a record comes from."""

    program: str = ""
    mpi: str = ""
    abi: str = "ompi"  # of the MPI that was recorded: ompi, mpich or mpi-abi
    layout: str = ""
    date: str = ""
    notes: tuple[str, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class CallRecord:
    """The ranks of an application, in their order."""

    ranks: tuple[RankCalls, ...]
    provenance: Provenance = Provenance()

    @property
    def size(self) -> int:
        return len(self.ranks)

    def notes(self) -> tuple[str, ...]:
        """Return sentences on its limits, which whoever replays it should know too."""
        notes = []
        for bit, words in LACKS.items():
            ranks = [rank for rank in self.ranks if rank.lacks & bit]
            if not ranks:
                continue
            least = min(ranks, key=lambda rank: rank.recorded_s / (rank.run_s or 1.0))
            part = f" after {least.recorded_s:.3g} of {least.run_s:.3g} s of the run"
            where = f"{len(ranks)} of {self.size} ranks, first rank {ranks[0].rank}"
            notes.append(f"{words}{part if bit == LACKS_END else ''}: {where}")
        return tuple(notes)

    def totals(self) -> dict[str, int]:
        """Return readable sizes: events, signatures and nodes of all ranks."""
        return {
            "events": sum(rank.events for rank in self.ranks),
            "nodes": sum(1 for rank in self.ranks for _ in rank.leaves()),
            "signatures": sum(len(rank.signatures) for rank in self.ranks),
        }
