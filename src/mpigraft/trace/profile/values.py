"""A profile as frozen values: where the MPI time of one run went.

Imported reports fill what they have: a figure that is None was not measured. Times are seconds,
sizes bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum

OWN = "mpigraft"  # source of a profile that was made here
ENTRIES = ("Init", "Init_thread", "Session_init")  # they start MPI in every program


class PeerKind(StrEnum):
    P2P = "p2p"
    COLLECTIVE = "collective"
    ONE_SIDED = "one-sided"


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure over the ranks; those that never called a routine count with 0."""

    low: float | None
    mean: float
    high: float
    slowest: int | None = None  # rank that has `high`

    @property
    def imbalance(self) -> float | None:
        """How much more the highest has than the mean: 0.5 is half as much again."""
        return self.high / self.mean - 1 if self.mean > 0 else None


@dataclass(frozen=True, slots=True)
class SizeUse:
    """Calls with messages of `least` to `most` bytes, which are a class; or `mixed`: those of calls
    whose messages are in more than two classes, the smallest and the largest. Time is `estimated`
    where one call starts many messages: each has a part of it by its bytes."""

    least: int
    most: int
    calls: int
    bytes: int | None = None
    time_s: float | None = None
    mixed: bool = False
    estimated: bool = False


@dataclass(frozen=True, slots=True)
class Routine:
    """One routine of MPI, over all ranks; `name` has no MPI_."""

    name: str
    time_s: float | None = None
    calls: int | None = None
    bytes: int | None = None
    waited_s: float | None = None  # of `time_s`, for others; the rest moved data
    longest_s: float | None = None  # one call
    errors: int | None = None
    spread: Spread | None = None
    sizes: tuple[SizeUse, ...] = ()


@dataclass(frozen=True, slots=True)
class RankUse:
    """One rank. One that did not finalize was ended inside of a routine of MPI, or outside."""

    rank: int
    host: str = ""
    run_s: float | None = None
    mpi_s: float | None = None
    finalized: bool | None = None
    inside: str = ""  # routine that had not returned
    inside_s: float | None = None  # for how long; outside: since the last call
    threads: int = 1  # that called MPI: `mpi_s` is of all of them


@dataclass(frozen=True, slots=True)
class PeerTraffic:
    """What one rank of the world sent to another."""

    source: int
    target: int
    kind: PeerKind
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class CallSite:
    """Where a routine is called from, the innermost frame first."""

    routine: str
    frames: tuple[str, ...]
    calls: int | None = None
    time_s: float | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Profile:
    """One run of a program. `ranks` is the size of the world, `each` what is known of its ranks."""

    program: str
    source: str = OWN  # what made it: mpigraft, mpiP, IPM ...
    ranks: int = 0
    hosts: tuple[str, ...] = ()
    began: str = ""  # ISO 8601
    run_s: float | None = None
    total_s: float | None = None  # of all ranks and their threads: what shares are shares of
    mpi_s: float | None = None  # of all ranks and their threads
    entry_s: float | None = None  # of the rank that took longest; None: a part of the run time
    waits: bool = False  # waiting and moving were separated
    routines: tuple[Routine, ...] = ()  # by time
    each: tuple[RankUse, ...] = ()
    peers: tuple[PeerTraffic, ...] = ()
    sites: tuple[CallSite, ...] = ()
    notes: tuple[str, ...] = ()  # on what was not counted, and on the figures
    exit_code: int | None = None
    labels: tuple[tuple[str, str], ...] = field(default=())  # MPI, transport, layout
    others: tuple[Profile, ...] = ()  # of other worlds that ran in the job

    def share(self, time_s: float | None) -> float | None:
        """Return a part of the time of all ranks, as a fraction."""
        if time_s is None or not self.total_s:
            return None
        return time_s / self.total_s

    def routine_share(self, routine: str, time_s: float | None) -> float | None:
        """Return the share of a routine; None for one that is apart from the run time."""
        apart = self.entry_s is not None and routine in ENTRIES
        return None if apart else self.share(time_s)

    def of_world(self, number: int) -> Profile | None:
        """Return the profile of a world of the job: 0 is this one; None: there is none of that
        number."""
        worlds = (replace(self, others=()), *self.others)
        return worlds[number] if number < len(worlds) else None

    @property
    def unfinished(self) -> tuple[RankUse, ...]:
        return tuple(one for one in self.each if one.finalized is False)


def spread_of(values: dict[int, float], ranks: int) -> Spread | None:
    """Return the spread of a figure of each rank; a rank without one counts with 0."""
    if not values or ranks <= 0:
        return None
    slowest = max(values, key=lambda rank: (values[rank], -rank))
    low = min(values.values()) if len(values) >= ranks else 0.0
    return Spread(low, sum(values.values()) / ranks, values[slowest], slowest)


def by_time(routines: Iterable[Routine]) -> tuple[Routine, ...]:
    """Order routines: the longest first, then the most called."""

    def order(one: Routine) -> tuple[float, int, str]:
        return (-(one.time_s or 0.0), -(one.calls or 0), one.name)

    return tuple(sorted(routines, key=order))


def heaviest(peers: Iterable[PeerTraffic]) -> Iterator[PeerTraffic]:
    """Yield pairs of ranks by bytes, over all kinds apart."""
    yield from sorted(peers, key=lambda p: (-p.bytes, -p.messages, p.source, p.target, p.kind))
