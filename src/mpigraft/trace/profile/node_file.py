"""Files that ranks of a traced program write (native/trace/slot.h), as values.

A file may be of a run that was killed, cut short by a full disk, or no such file at all: every
offset and length is checked before it is used, and what does not fit is refused with file and
offset. What a killed rank was about to write may be half done; numbers alone are then off by one
call.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntFlag
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.worlds import Lineage, make_lineage

MAGIC = b"mpigraft-trace\n\0"
VERSION = 3
NAMES, START, NAME_BYTES = 4096, 65536, 32
MOST_ROUTINES = (START - NAMES) // NAME_BYTES
MOST_THREADS = 4096  # of one rank
MOST_RANKS = 1 << 24
MOST_PATH = 4096
MOST_TASK = 4096
MOST_MAPS = 16 * 1024 * 1024
RUNNING, FINALIZED = 1, 2
SLOWEST, FASTEST = 1e3, 1e12  # of a counter, ticks a second; 0: not measured yet
SIZE_CLASSES, PEER_KINDS, SITE_FRAMES, SITES = 64, 3, 8, 4096

HEADER = struct.Struct("<16sIIQQ")
RANK = struct.Struct("<IIiiiiQQQdQQQQQQQQQQQQQ")
ROUTINE = struct.Struct("<8Q")
SIZE = struct.Struct("<3Q")
MIXED = struct.Struct("<5Q")
PEER = struct.Struct("<2Q")
THREAD = struct.Struct("<QqQQQ3Q")
SITE = struct.Struct(f"<4Q{SITE_FRAMES}Q")


class Dropped(IntFlag):
    """What a rank no longer counted, and why."""

    THREADS = 1
    SIZES = 2
    PEERS = 4
    SITES = 8
    EVENTS = 16
    NO_DISK_SPACE = 32


@dataclass(frozen=True, slots=True)
class RoutineCounts:
    """One routine of one thread; times in ticks. `sizes` has (class, calls, bytes, ticks), `mixed`
    (calls, bytes, ticks, least, most) of calls whose blocks are in more than two classes."""

    calls: int
    ticks: int
    bytes: int
    waited: int
    longest: int
    errors: int
    sizes: tuple[tuple[int, int, int, int], ...] = ()
    mixed: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ThreadCounts:
    thread: int
    routines: dict[str, RoutineCounts]
    current: str  # routine that runs
    entered: int  # ticks
    peers: tuple[tuple[int, int, int, int], ...]  # (rank, kind, messages, bytes)
    paused: int = 0  # ticks that MPI_Pcontrol had left out at `entered`


@dataclass(frozen=True, slots=True)
class SiteCounts:
    routine: str
    calls: int
    ticks: int
    bytes: int
    frames: tuple[int, ...]  # addresses


@dataclass(frozen=True, slots=True)
class RankSlot:
    """What one rank wrote. `rank` is -1 where MPI_Init did not return."""

    finalized: bool
    dropped: Dropped
    rank: int
    size: int
    pid: int
    began: int
    ended: int
    began_ns: int
    ticks_per_s: float
    pair_ticks: int
    threads: tuple[ThreadCounts, ...]
    sites: tuple[SiteCounts, ...]
    maps: str = field(repr=False)
    lineage: Lineage = field(repr=False)  # `key`: the name of its record, without the suffix
    program: str = ""
    paused: int = 0  # ticks that MPI_Pcontrol left out
    paused_since: int = 0  # ticks; 0: it does not leave out the end


def read_node_file(path: Path) -> tuple[RankSlot, ...]:
    """Read the slots of all ranks of a node. Raises UsageError for a file that cannot be read, is
    not ours, or is damaged."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < START:
                raise _refused(path, 0, f"it has {size} bytes, fewer than its head")
            with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
                return _NodeFileReader(path, data).slots()
    except OSError as error:
        raise UsageError.of("trace-unreadable", path=path, reason=error.strerror) from error
    except ValueError as error:  # a folder or a pipe cannot be mapped
        raise UsageError.of("trace-unreadable", path=path, reason=error) from error


def _refused(path: Path, offset: int, reason: str) -> UsageError:
    return UsageError.of("trace-damaged", path=path, offset=offset, reason=reason)


class _NodeFileReader:
    """One file. Offsets in it are absolute; those of a slot count from its start."""

    def __init__(self, path: Path, data: mmap.mmap) -> None:
        self.path = path
        self.data = data
        self.size = len(data)

    def slots(self) -> tuple[RankSlot, ...]:
        magic, version, routines, slot_bytes, slots = HEADER.unpack_from(self.data, 0)
        if magic != MAGIC:
            raise _refused(self.path, 0, "it does not begin as such a file")
        if version != VERSION:
            raise _refused(self.path, 16, f"it has version {version}, {VERSION} is known")
        if not 0 < routines <= MOST_ROUTINES:
            raise _refused(self.path, 20, f"{routines} routines")
        if not RANK.size <= slot_bytes <= 1 << 40:
            raise _refused(self.path, 24, f"slots of {slot_bytes} bytes")
        if slots > MOST_RANKS:
            raise _refused(self.path, 32, f"{slots} ranks")
        names = [self._name(k) for k in range(routines)]
        # A rank that had no room on the disk took a number, and the file ends before its slot.
        there = min(slots, -(-(self.size - START) // slot_bytes))
        made = (self._slot(k, slot_bytes, names) for k in range(there))
        return tuple(one for one in made if one is not None)

    def _name(self, number: int) -> str:
        at = NAMES + number * NAME_BYTES
        name = self.data[at : at + NAME_BYTES].split(b"\0")[0]
        if not name or not name.replace(b"_", b"").isalnum():
            raise _refused(self.path, at, "the name of a routine is none")
        return name.decode("ascii")

    def _slot(self, number: int, room: int, names: list[str]) -> RankSlot | None:
        """Return one rank; None: its process took the slot and wrote nothing."""
        start = START + number * room
        if start + RANK.size > self.size:
            raise _refused(self.path, self.size, "it ends within the slot of a rank")
        (state, dropped, rank, world, pid, _level, began, ended, began_ns, speed, pair, _used,
         threads, sites, maps, maps_bytes, program, program_bytes, _record, paused,
         paused_since, task, task_bytes) = RANK.unpack_from(
            self.data, start
        )  # fmt: skip
        if state == 0:
            return None
        if state not in (RUNNING, FINALIZED):
            raise _refused(self.path, start, f"a rank in state {state}")
        if not (0 <= world <= MOST_RANKS and (rank < world or rank <= 0)):
            raise _refused(self.path, start + 8, f"rank {rank} of {world}")
        if speed and not SLOWEST <= speed <= FASTEST:
            raise _refused(self.path, start + 48, "a counter without a speed")
        slot = _Slot(self, start, min(room, self.size - start), names, world)
        command = slot.text(program, program_bytes, MOST_PATH)
        words = slot.text(task, task_bytes, MOST_TASK)
        return RankSlot(
            finalized=state == FINALIZED, dropped=Dropped(dropped & 63),
            rank=rank if world else -1, size=world, pid=pid, began=began, ended=ended,
            began_ns=began_ns, ticks_per_s=speed, pair_ticks=pair,
            threads=tuple(slot.threads(threads)), sites=tuple(slot.sites(sites)),
            maps=slot.text(maps, maps_bytes, MOST_MAPS),
            lineage=self._lineage(number, (rank, world), words or f'{{"pid": {pid}}}', command),
            program=command, paused=paused, paused_since=paused_since,
        )  # fmt: skip

    def _lineage(self, number: int, place: tuple[int, int], words: str, command: str) -> Lineage:
        """Return which process of the launch this is; `place` is its (rank, size)."""
        try:
            key, program = f"{self.path.stem}.{number}", command.partition("\0")[0]
            return make_lineage(key, (self.path.stem, *place), json.loads(words), program)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise _refused(self.path, START, f"slot {number} has a task that is none") from error


class _Slot:
    """The part of a file that one rank has."""

    def __init__(
        self, reader: _NodeFileReader, start: int, room: int, names: list[str], world: int
    ) -> None:
        self.reader, self.start, self.room = reader, start, room
        self.names, self.world = names, world

    def _at(self, offset: int, length: int, what: str) -> int:
        """Absolute offset of `length` bytes of this slot."""
        if offset < RANK.size or offset % 8 or offset + length > self.room:
            reason = f"{what} at {offset} are outside of the slot"
            raise _refused(self.reader.path, self.start + offset, reason)
        return self.start + offset

    def threads(self, offset: int) -> Iterator[ThreadCounts]:
        met: set[int] = set()
        while offset:
            if offset in met or len(met) >= MOST_THREADS:
                raise _refused(self.reader.path, self.start + offset, "threads in a circle")
            met.add(offset)
            at = self._at(offset, THREAD.size + ROUTINE.size * len(self.names), "a thread's counts")
            data = self.reader.data
            offset, thread, current, entered, peers, paused, *_ = THREAD.unpack_from(data, at)
            if current > len(self.names):
                raise _refused(self.reader.path, at + 16, f"routine {current - 1}")
            end = at + THREAD.size + ROUTINE.size * len(self.names)
            rows = ROUTINE.iter_unpack(data[at + THREAD.size : end])
            yield ThreadCounts(
                thread,
                {
                    name: self._routine(row)
                    for name, row in zip(self.names, rows, strict=True)
                    if row[0] or row[1]
                },
                self.names[current - 1] if current else "",
                entered,
                tuple(self._peers(peers)) if peers else (),
                paused,
            )

    def _routine(self, row: tuple[int, ...]) -> RoutineCounts:
        calls, ticks, total, waited, longest, errors, sizes, mixed = row
        return RoutineCounts(
            calls=calls, ticks=ticks, bytes=total, waited=waited, longest=longest, errors=errors,
            sizes=tuple(self._sizes(sizes)) if sizes else (),
            mixed=self._mixed(mixed) if mixed else (),
        )  # fmt: skip

    def _mixed(self, offset: int) -> tuple[int, ...]:
        at = self._at(offset, MIXED.size, "sizes of messages")
        return MIXED.unpack_from(self.reader.data, at)

    def _sizes(self, offset: int) -> Iterator[tuple[int, int, int, int]]:
        at = self._at(offset, SIZE.size * SIZE_CLASSES, "sizes of messages")
        block = self.reader.data[at : at + SIZE.size * SIZE_CLASSES]
        for number, (calls, total, ticks) in enumerate(SIZE.iter_unpack(block)):
            if calls or ticks:
                yield number, calls, total, ticks

    def _peers(self, offset: int) -> Iterator[tuple[int, int, int, int]]:
        length = PEER.size * PEER_KINDS * self.world
        at = self._at(offset, length, "counts of peers")
        block = self.reader.data[at : at + length]
        for number, (messages, total) in enumerate(PEER.iter_unpack(block)):
            if messages or total:
                yield number // PEER_KINDS, number % PEER_KINDS, messages, total

    def sites(self, offset: int) -> Iterator[SiteCounts]:
        if not offset:
            return
        at = self._at(offset, SITE.size * SITES, "call sites")
        block = self.reader.data[at : at + SITE.size * SITES]
        for number, (routine, calls, ticks, total, *frames) in enumerate(SITE.iter_unpack(block)):
            if not calls:
                continue
            if routine >= len(self.names):
                raise _refused(self.reader.path, at + number * SITE.size, f"routine {routine}")
            used = tuple(frame for frame in frames if frame)
            yield SiteCounts(self.names[routine], calls, ticks, total, used)

    def text(self, offset: int, length: int, most: int) -> str:
        if not offset or not length:
            return ""
        if length > most:
            raise _refused(self.reader.path, self.start + offset, f"a text of {length} bytes")
        if offset < RANK.size or offset + length > self.room:
            raise _refused(self.reader.path, self.start + offset, "a text outside of the slot")
        at = self.start + offset
        return self.reader.data[at : at + length].rstrip(b"\0").decode("utf-8", "surrogateescape")
