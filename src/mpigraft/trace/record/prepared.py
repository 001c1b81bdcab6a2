"""The file that mpigraft-replay reads (native/replay/walk.c): the parts of ranks as
they wrote them, with the place of each, a checksum, and the calls that are made."""

from __future__ import annotations

import contextlib
import struct
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.cache import folders
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.write import make_folder, write_whole
from mpigraft.trace.record.file import RecordFile, read_record
from mpigraft.trace.record.phases import find_phases, whole_calls
from mpigraft.trace.record.values import ABIS, STRAYS

MAGIC = b"mpigraft-replay\0"
VERSION = 1
HEAD = struct.Struct("<16s4I")
PART = struct.Struct("<5Q")
ALL = (0, 2**63)  # calls
PRIME, START = 0x100000001B3, 0xCBF29CE484222325
WORD = 2**64 - 1
KEPT_S = 30 * 24 * 3600.0


def prepare(
    parts: Sequence[bytes], abi: str, calls: Sequence[tuple[int, int]] | None = None
) -> bytes:
    """Return the file for the records of all ranks, of an MPI of `abi`; `calls`: the first that
    each rank makes, and the first that it makes no more."""
    offset = HEAD.size + PART.size * len(parts)
    rows = []
    for data, (first, last) in zip(parts, calls or [ALL] * len(parts), strict=True):
        rows.append(PART.pack(offset, len(data), checksum(data), first, last))
        offset += len(data)
    return b"".join((HEAD.pack(MAGIC, VERSION, len(parts), ABIS.index(abi), 0), *rows, *parts))


@dataclass(frozen=True, slots=True)
class Prepared:
    """The file for one phase of a record, from 1, or for all of it that every rank has; `digest`
    is that of its RecordFile."""

    digest: str
    phase: int = 0

    @property
    def path(self) -> Path:
        """Where ranks read it."""
        return folders().data / "replay" / f"{self.digest}-{self.phase}-{VERSION}.prepared"

    def data(self, file: RecordFile, record: Path) -> bytes:
        """Return its content. Raises UsageError for a record that is damaged or lacks the phase, or
        whose calls use what is not recorded."""
        values = read_record(file, record)
        if any(rank.lacks & STRAYS for rank in values.ranks):
            raise UsageError.of("record-strays", path=record)
        if not self.phase:
            return prepare(file.parts, file.provenance.abi, whole_calls(values))
        phases = find_phases(values)
        if self.phase > len(phases):
            raise UsageError.of("phase-unknown", path=record, phase=self.phase, count=len(phases))
        return prepare(file.parts, file.provenance.abi, phases[self.phase - 1].calls)

    def keep(self, file: RecordFile, record: Path) -> Path:
        """Write it, unless it is there, and remove what was written a month ago: a later replay
        writes it again. Raises UsageError, and MissingError where nothing can be written."""
        target = self.path
        try:
            make_folder(target.parent)
            if not target.is_file():
                _remove_old(target.parent)
                write_whole(target, self.data(file, record))
        except OSError as error:
            raise MissingError.of(
                "replay-unwritable", path=target, reason=error.strerror or error
            ) from error
        return target


def _remove_old(folder: Path) -> None:
    oldest = time.time() - KEPT_S
    for one in folder.iterdir():
        with contextlib.suppress(OSError):  # another process was first, or it is not ours
            if one.stat().st_mtime < oldest:
                one.unlink()


def checksum(data: bytes) -> int:
    """FNV-1a by words of eight bytes, the last one filled with zeros."""
    full = data + bytes(-len(data) % 8)
    value = START
    for (one,) in struct.iter_unpack("<Q", full):
        value = (value ^ one) * PRIME & WORD
    return value
