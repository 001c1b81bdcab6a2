"""The file that mpigraft-replay reads (native/replay_file.h): the parts of ranks as they wrote
them, with the place of each, a checksum, and the calls that are made."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.trace.record.file import RecordFile, read_record
from mpigraft.trace.record.phases import find_phases, whole_calls
from mpigraft.trace.record.values import ABIS

MAGIC = b"mpigraft-replay\0"
VERSION = 1
HEAD = struct.Struct("<16s4I")
PART = struct.Struct("<5Q")
ALL = (0, 2**63)  # calls
PRIME, START = 0x100000001B3, 0xCBF29CE484222325
WORD = 2**64 - 1


def prepare(
    parts: Sequence[bytes], abi: str, calls: Sequence[tuple[int, int]] | None = None
) -> bytes:
    """The file for the records of all ranks, of an MPI of `abi`; `calls`: the first that each
    rank makes, and the first that it makes no more."""
    offset = HEAD.size + PART.size * len(parts)
    rows = []
    for data, (first, last) in zip(parts, calls or [ALL] * len(parts), strict=True):
        rows.append(PART.pack(offset, len(data), checksum(data), first, last))
        offset += len(data)
    return b"".join((HEAD.pack(MAGIC, VERSION, len(parts), ABIS.index(abi), 0), *rows, *parts))


def prepare_record(file: RecordFile, path: Path, phase: int = 0) -> bytes:
    """The file for one phase of a record, from 1, or for all of it that every rank has. Raises
    UsageError for a record that is damaged or lacks the phase."""
    record = read_record(file, path)
    if not phase:
        return prepare(file.parts, file.provenance.abi, whole_calls(record))
    phases = find_phases(record)
    if phase > len(phases):
        raise UsageError.of("phase-unknown", path=path, phase=phase, count=len(phases))
    return prepare(file.parts, file.provenance.abi, phases[phase - 1].calls)


def checksum(data: bytes) -> int:
    """FNV-1a by words of eight bytes, the last one filled with zeros."""
    full = data + bytes(-len(data) % 8)
    value = START
    for (one,) in struct.iter_unpack("<Q", full):
        value = (value ^ one) * PRIME & WORD
    return value
