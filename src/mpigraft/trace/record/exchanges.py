"""The all-to-all exchanges of a record: who gave how much to whom, and how far apart ranks came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from mpigraft.trace.record.coding import read_call
from mpigraft.trace.record.types import TypeSizes
from mpigraft.trace.record.values import CallRecord, Leaf, RankCalls, RecordedCall

ROUTINES = ("Alltoallv", "Ialltoallv", "Alltoallw", "Ialltoallw", "Alltoall", "Ialltoall")
WORLD, SELF = -1, -2  # communicators, as a record names them
IN_PLACE = 1


@dataclass(frozen=True, slots=True)
class Exchange:
    """One routine on one group of ranks, over all its calls.

    `bytes_sent` has the mean bytes of a call, a row for each rank with a number for each that it
    sends to; `sizes` has how often a block of how many bytes was sent; `gaps_s` and `took_s` have
    the mean seconds before a call and in it, of each rank.
    """

    routine: str
    ranks: int
    calls: int  # of a rank
    bytes_sent: tuple[tuple[float, ...], ...]
    sizes: tuple[tuple[int, int], ...]
    gaps_s: tuple[float, ...]
    took_s: tuple[float, ...]

    @property
    def total(self) -> float:
        """Bytes of a call, of all ranks."""
        return sum(map(sum, self.bytes_sent))

    @property
    def time_s(self) -> float:
        """Seconds of a rank in all calls, on average."""
        return self.calls * sum(self.took_s) / self.ranks

    @property
    def zeros(self) -> float:
        """Share of blocks that are empty."""
        sizes = dict(self.sizes)
        return sizes.get(0, 0) / (sum(sizes.values()) or 1)

    @property
    def silent(self) -> float:
        """Share of pairs of ranks between which nothing was ever sent."""
        rows = [number for row in self.bytes_sent for number in row]
        return sum(not number for number in rows) / (len(rows) or 1)

    @property
    def skew(self) -> float:
        """Bytes of the rank that sends most, over the mean of ranks."""
        sums = [*map(sum, self.bytes_sent)]
        return max(sums) * len(sums) / (sum(sums) or 1)

    @property
    def spread_s(self) -> float:
        """Seconds between the rank that computes least before a call and the one that does most:
        how far apart they would arrive if they began together."""
        return max(self.gaps_s) - min(self.gaps_s)

    def block(self, share: float) -> int:
        """Return the size that this share of the blocks that are not empty does not exceed,
        bytes."""
        filled = [(size, times) for size, times in self.sizes if size]
        below = share * sum(times for _, times in filled)
        for size, times in filled:
            below -= times
            if below <= 0:
                return size
        return filled[-1][0] if filled else 0


@dataclass(slots=True)
class _Sends:
    """What one rank sent in an exchange."""

    sent: list[float]
    times: int = 0
    gap_s: float = 0.0
    took_s: float = 0.0
    sizes: Counter[int] = field(default_factory=Counter)


Key = tuple[str, int, int]  # routine, first rank of the group as one of the world, its size


def find_exchanges(record: CallRecord) -> tuple[Exchange, ...]:
    """Return every all-to-all of a record, the one that takes longest first. Groups with the same
    first rank and size count as one."""
    rows: dict[Key, dict[int, _Sends]] = {}
    for rank in record.ranks:
        for key, own, sent, leaf in _sends(rank):
            row = rows.setdefault(key, {}).setdefault(own, _Sends([0.0] * key[2]))
            _add(row, sent, leaf, rank.ticks_per_s)
    exchanges = [_exchange(key, by_rank) for key, by_rank in rows.items() if len(by_rank) == key[2]]
    return tuple(sorted(exchanges, key=lambda one: (-one.time_s, one.routine, one.ranks)))


def _add(row: _Sends, sent: tuple[int, ...], leaf: Leaf, rate: float) -> None:
    for to, size in enumerate(sent):
        row.sent[to] += size * leaf.times
        row.sizes[size] += leaf.times
    row.times += leaf.times
    row.gap_s += leaf.gap / rate
    row.took_s += leaf.took / rate


def _exchange(key: Key, by_rank: dict[int, _Sends]) -> Exchange:
    ordered = [by_rank[rank] for rank in sorted(by_rank)]
    sizes: Counter[int] = Counter()
    for row in ordered:
        sizes.update(row.sizes)
    return Exchange(
        key[0],
        key[2],
        max(row.times for row in ordered),
        tuple(tuple(number / row.times for number in row.sent) for row in ordered),
        tuple(sorted(sizes.items())),
        tuple(row.gap_s / row.times for row in ordered),
        tuple(row.took_s / row.times for row in ordered),
    )


def _sends(rank: RankCalls) -> Iterator[tuple[Key, int, tuple[int, ...], Leaf]]:
    """Yield each exchange of a rank: its key, the own rank in it, bytes to each rank, and the
    call."""
    calls = [read_call(text, rank.routines) for text in rank.signatures]
    types = TypeSizes()
    groups: dict[int, tuple[int, int, int]] = {  # first rank, size, own rank
        WORLD: (0, rank.size, rank.rank),
        SELF: (rank.rank, 1, 0),
    }
    for leaf in rank.leaves():
        call = calls[leaf.signature]
        types.note(call)
        for made in call.of("C"):
            _note_group(groups, made)
        if call.routine.name not in ROUTINES:
            continue
        group = groups.get(_communicator(call))
        if group is None:
            continue
        first, size, own = group
        sent = _sent(call, types, size)
        if len(sent) == size:
            yield (call.routine.name, first, size), own, sent, leaf


def _note_group(groups: dict[int, tuple[int, int, int]], made: Any) -> None:
    number, size, own, members = made
    if number and members:
        groups[number] = (members[0], size, own)


def _communicator(call: RecordedCall) -> int:
    (number,) = call.of("c")
    assert isinstance(number, int)
    return number


def _sent(call: RecordedCall, types: TypeSizes, size: int) -> tuple[int, ...]:
    """Return bytes to each rank of the group. In place, what is sent is what is received."""
    values: Any = call.values
    in_place = values[0] == IN_PLACE
    if call.routine.name.lower().endswith("alltoall"):  # a buffer, a count and a type, twice
        count, kind = values[4:6] if in_place else values[1:3]
        return (count * types.of(kind),) * size
    counts, kinds = (values[5], values[7]) if in_place else (values[1], values[3])
    if isinstance(kinds, tuple):
        return tuple(n * types.of(kind) for n, kind in zip(counts, kinds, strict=True))
    return tuple(count * types.of(kinds) for count in counts)
