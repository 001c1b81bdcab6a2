"""Read the text of a kept file from any packing or encoding."""

from __future__ import annotations

import codecs
import os
import stat
import zlib
from pathlib import Path
from typing import IO

from mpigraft.bench.exchange.reading import HEAD, export_format
from mpigraft.core.budget import Budget
from mpigraft.core.errors import UsageError
from mpigraft.core.gunzip import GZIP, MEMBER_BYTES, gunzip, pieces

MAX_FILE = 64 * 1024 * 1024  # bytes; a table has kilobytes
ARCHIVES = ((257, b"ustar"), (0, b"PK\x03\x04"))  # tar, zip: several files, each with its name
ENCODINGS = (  # by what a file begins with: PowerShell and editors of Windows write these
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def read_content(file_path: Path, path: str) -> bytes | str:
    """Read a file's text as UTF-8 with plain line ends, unpacked if it is gzip; or its format if
    it is an exported campaign, of any size. Bytes of an unknown encoding are not changed.
    `path` names it in messages. Raises UsageError for a file that cannot be read, is too large, or
    is being written."""
    try:
        # a pipe that nobody writes into is empty: there is nothing to wait for
        handle = os.open(file_path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(handle, "rb") as file:
            os.set_blocking(file.fileno(), True)
            before = _state(file)
            head = file.read(HEAD)
            if form := export_format(head):
                return form
            data = head + file.read(MAX_FILE + 1 - len(head))
            after = _state(file)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError.of("import-unreadable", path=path, reason=reason) from error
    if before != after:
        raise UsageError.of("import-growing", path=path)
    if data.startswith(GZIP):
        data = _unpacked(data, path)
    if len(data) > MAX_FILE:
        raise UsageError.of("import-too-large", path=path, max_mib=MAX_FILE >> 20)
    if any(data[at : at + len(mark)] == mark for at, mark in ARCHIVES):
        raise UsageError.of("import-archive", path=path)
    return _utf8(data)


def _state(file: IO[bytes]) -> tuple[int, int]:
    """Return what changes while a file is written; of a pipe nothing, which is read to its end."""
    status = os.fstat(file.fileno())
    return (status.st_size, status.st_mtime_ns) if stat.S_ISREG(status.st_mode) else (0, 0)


def _unpacked(data: bytes, path: str) -> bytes:
    """Unpack what gzip packed, which may be several files in a row."""
    parts: list[bytes] = []
    room = MAX_FILE + 1
    try:
        for part in gunzip(pieces(data), Budget(path, len(data), MEMBER_BYTES)):
            parts.append(part)
            room -= len(part)
            if room <= 0:
                break
    except (zlib.error, EOFError) as error:
        reason = f"it is damaged gzip: {error}"
        raise UsageError.of("import-unreadable", path=path, reason=reason) from error
    unpacked = b"".join(parts)
    if export_format(unpacked[:HEAD]):
        raise UsageError.of("import-packed-export", path=path)
    return unpacked


def _utf8(data: bytes) -> bytes:
    for mark, encoding in ENCODINGS:
        if data.startswith(mark):
            data = data[len(mark) :].decode(encoding, "replace").encode("utf-8", "replace")
            break
    return data.replace(b"\r\n", b"\n")  # the same table from any system
