"""What another user may have put into a store that all may write to, and how far it is followed.

A reader must not wait for ever, run what a file says, write anything, or take more memory than an
honest file of that size needs. What does not fit is an error, which the reader names.
"""

from __future__ import annotations

import itertools
import json
import os
import sqlite3
import stat
import zlib
from pathlib import Path
from typing import Any, BinaryIO

MOST_HOLES, HOLES = 16 * 1024 * 1024, 32  # bytes, and times what is on disk
STEPS, STEPS_A_BYTE = 2_000_000, 8  # of SQLite's machine; a value of 80 bytes takes fifty
STEPS_AT_ONCE = 100_000
MOST_FIELD = 80 * 1024 * 1024  # bytes of a text or blob
MOST_UNPACKED = 96 * 1024 * 1024  # bytes that a blob may hold
MOST_SAMPLES = 32 * 1024 * 1024  # bytes of all samples of a launch
SUPER = bytes.fromhex("d9d505f920a163d7")  # ends a journal that names a file (fileformat2.html)
WAL = b"\2"  # in a file's header
MOST_TEXT = 16 * 1024 * 1024  # bytes of a mark or of a plan
DEEPEST = 64  # levels of JSON
COMPUTED = (
    "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_xinfo(m.name) c"
    " WHERE m.type = 'table' AND c.hidden"
)


def open_regular(path: Path, *owners: int) -> BinaryIO:
    """Open a file that another user may have put there, of `owners` where there are some. What is
    opened is checked, not what had the name before. Raises OSError for a pipe or a device, another
    owner, and what is small on disk and long to read."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # no wait on a fifo
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("it is not a regular file")
        if owners and status.st_uid not in owners:
            raise OSError(f"it is of another user (id {status.st_uid})")
        if status.st_size > MOST_HOLES + HOLES * 512 * status.st_blocks:
            # A compressing file system counts less, and ZFS nothing for seconds: no holes there.
            if os.lseek(handle, 0, os.SEEK_HOLE) < status.st_size:
                raise OSError("it is mostly holes")
            os.lseek(handle, 0, os.SEEK_SET)
    except BaseException:
        os.close(handle)
        raise
    return os.fdopen(handle, "rb")


def read_text(path: Path, *, own: bool = False) -> str:
    """Read a small file beside the results; with `own` one that this user or the folder's owner
    wrote. Another user may have put anything in its place: a pipe, a device, an endless file.
    Raises OSError, ValueError."""
    owners = (os.geteuid(), path.parent.stat().st_uid) if own else ()
    with open_regular(path, *owners) as file:
        data = file.read(MOST_TEXT + 1)
    if len(data) > MOST_TEXT:
        raise ValueError(f"it has more than {MOST_TEXT} bytes")
    return data.decode()


def parse_json(text: Any) -> Any:
    """Read JSON that is not nested deeper than anything here writes: whoever walks it recurses.
    Raises ValueError, TypeError or RecursionError."""
    value = json.loads(text)
    level, depth = [value], 0
    while level := [one for one in level if isinstance(one, dict | list)]:
        if (depth := depth + 1) > DEEPEST:
            raise ValueError(f"it has JSON that is nested more than {DEEPEST} deep")
        level = [v for one in level for v in (one.values() if isinstance(one, dict) else one)]
    return value


def decompress(data: bytes, most: int = MOST_UNPACKED) -> bytes:
    """Decompress data of zlib. Raises zlib.error or ValueError for damage, and for more than
    `most` bytes."""
    stream = zlib.decompressobj()
    whole = stream.decompress(data, most + 1)
    if len(whole) > most or not stream.eof:
        raise ValueError(f"it has data that is cut off, or unpacks to more than {most} bytes")
    return whole


def has_journal(path: Path) -> bool:
    """Return whether the writer of a file left a journal beside it; another user's is none of its.
    Raises OSError for one that is no file."""
    try:
        status = os.lstat(f"{path}-journal")
    except FileNotFoundError:
        return False
    if status.st_uid != path.stat().st_uid:
        return False
    if not stat.S_ISREG(status.st_mode):
        raise OSError("its journal is not a regular file")
    return True


def is_obstructed(path: Path, file: BinaryIO) -> bool:
    """Return whether SQLite must be kept away from the files beside an open file: a journal of
    another user, or a write-ahead log, which no writer makes. Raises OSError, and ValueError for a
    file with one."""
    if WAL in file.read(20)[18:]:
        raise ValueError("it has a write-ahead log, which no mpigraft makes")
    return has_strange_journal(path) or os.path.lexists(f"{path}-wal")


def has_strange_journal(path: Path) -> bool:
    """Return whether another user put something where a file's journal would be: SQLite would write
    what it says into the file, and remove a file that it names. Raises OSError as `has_journal`
    does."""
    return os.path.lexists(f"{path}-journal") and not has_journal(path)


def refuse_programs(db: sqlite3.Connection) -> None:
    """Raise ValueError for what computes when it is read: a view may have no end."""
    for kind, name, root in db.execute("SELECT type, name, rootpage FROM sqlite_master"):
        if kind not in ("table", "index") or not root:
            raise ValueError(f"it has the {kind} {name!r}, which no mpigraft makes")
    if computed := db.execute(COMPUTED).fetchone():
        raise ValueError(f"it has the computed column {computed[0]!r}, which no mpigraft makes")


def bound(db: sqlite3.Connection, size: int) -> None:
    """Make every query of a file end, by what those of an honest one of `size` bytes take."""
    db.execute("PRAGMA trusted_schema = OFF")
    db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_FIELD)
    turns = itertools.count()
    most = (STEPS + STEPS_A_BYTE * size) // STEPS_AT_ONCE
    db.set_progress_handler(lambda: next(turns) > most, STEPS_AT_ONCE)
