"""Read the members of a tar stream, each header checked and bounded.

`tarfile` reads extended headers of any size into memory, and takes the first part of a broken
archive for the whole; the tests use it as their oracle.
Sources: POSIX.1-2017 pax, "ustar Interchange Format" and "pax Extended Header"; GNU tar manual,
"Basic Tar Format" and "Storing Sparse Files".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol
from zlib import adler32

from mpigraft.binary.image.root import MAX_NAMES, MAX_PATH, RootError

BLOCK = 512
MAX_HEADER = 1 << 20  # bytes of one extended header
MAX_SIZE = 1 << 46  # bytes of one member
CHECKSUM = slice(148, 156)
OCTAL = b"01234567"
KINDS = {
    b"\0": "file", b"0": "file", b"7": "file", b"1": "hard", b"2": "link", b"3": "other",
    b"4": "other", b"5": "folder", b"6": "other", b"S": "sparse",
}  # fmt: skip
EXTENDED = {b"L": "path", b"K": "linkpath", b"x": "", b"g": ""}


class ByteSource(Protocol):
    """Bytes from front to back: streams.Stream or streams.Plain."""

    at: int

    def read(self, size: int) -> bytes: ...
    def skip_to(self, at: int) -> bool: ...


class Member(NamedTuple):
    """One member. Its `stored` bytes start at `at`, and can be read until the next member is
    given."""

    name: str  # as it is written
    kind: str  # "file", "folder", "link", "hard", "sparse", "other"
    size: int  # of the file; of a sparse one with its holes
    mode: int
    target: str  # of a symbolic or a hard link
    at: int
    stored: int


def members(source: ByteSource, name: str) -> Iterator[Member]:
    """Yield members in the order of the archive. Raises RootError, with `name`, when malformed."""
    extended: dict[str, str] = {}
    for _ in range(MAX_NAMES):
        head = source.read(BLOCK)
        if not head.strip(b"\0"):  # the end, marked or not
            return
        if len(head) != BLOCK or not _sound(head):
            raise RootError(f"{name}: no tar header at byte {source.at - len(head)}")
        try:
            kind = head[156:157]
            if kind in EXTENDED:
                size = _number(head[124:136])
                extended |= _extended(kind, source, size)
                end = source.at + -size % BLOCK
            else:
                member = _member(head, source, extended)
                extended = {}
                end = member.at + member.stored + -member.stored % BLOCK
                yield member
        except ValueError as error:
            if isinstance(error, RootError):  # of the source, or of the reader of the member
                raise
            raise RootError(f"{name}: tar member at byte {source.at}: {error}") from error
        if not source.skip_to(end):
            raise RootError(f"{name}: it ends within a member")
    raise RootError(f"{name}: more than {MAX_NAMES} members")


def _sound(head: bytes) -> bool:
    """Return whether the checksum is right; some old programs sum signed bytes."""
    try:
        stored = _number(head[CHECKSUM])
    except ValueError:
        return False
    counted = head[:148] + b" " * 8 + head[156:]
    # sum() takes ten times as long. The lower half of Adler-32 (RFC 1950) is 1 and the sum of all
    # bytes, modulo 65,521, which 256 bytes do not reach.
    total = sum((adler32(half) & 0xFFFF) - 1 for half in (counted[:256], counted[256:]))
    return stored == total or stored == total - 256 * sum(byte > 127 for byte in counted)


def _number(field: bytes) -> int:
    """Parse octal, or binary where the first bit is set. ValueError over MAX_SIZE."""
    digits = field.rstrip(b"\0 ").lstrip()
    if digits.isdigit():  # as nearly all are written
        value = int(digits, 8)
    elif field[0] & 0x80:
        value = int.from_bytes(bytes([field[0] & 0x7F]) + field[1:], "big")
    else:
        digits = field.split(b"\0", 1)[0].strip()
        if digits.translate(None, OCTAL):
            raise ValueError(f"{digits!r} is not an octal number")
        value = int(digits or b"0", 8)
    if value > MAX_SIZE:
        raise ValueError(f"the number {value} is too large")
    return value


def _text(field: bytes) -> str:
    return field.split(b"\0", 1)[0].decode("utf-8", "surrogateescape")


def _extended(kind: bytes, source: ByteSource, size: int) -> dict[str, str]:
    """Read what one extended header sets for the member that follows."""
    if size > MAX_HEADER:
        raise ValueError(f"an extended header of {size} bytes")
    data = source.read(size)
    if len(data) != size:
        raise ValueError("the archive ends within a header")
    if kind == b"g":
        return {}  # a comment, as a rule; no tool writes paths into it
    return _records(data) if kind == b"x" else {EXTENDED[kind]: _text(data)}


def _records(data: bytes) -> dict[str, str]:
    """Parse pax records: "LENGTH KEY=VALUE\\n", where LENGTH counts all of it."""
    records: dict[str, str] = {}
    at = 0
    while at < len(data) and data[at] != 0:
        length = re.match(rb"([0-9]{1,8}) ", data[at : at + 10])
        if not length:
            raise ValueError("an extended header without a length")
        record = data[at : at + int(length[1])]
        key, equals, value = record[length.end() : -1].partition(b"=")
        if len(record) != int(length[1]) or not equals or not record.endswith(b"\n"):
            raise ValueError("a malformed extended header")
        text = value.decode("utf-8", "surrogateescape")
        records[key.decode("utf-8", "surrogateescape")] = text
        at += len(record)
    return records


def _member(head: bytes, source: ByteSource, extended: dict[str, str]) -> Member:
    kind = KINDS.get(head[156:157])
    name = _text(head[0:100])
    if head[345] != 0 and head[257:263] == b"ustar\0":
        name = f"{_text(head[345:500])}/{name}"
    name = extended.get("path", name)
    target = _text(head[157:257]) if head[157] else ""
    target = extended.get("linkpath", target)
    if kind is None:
        raise ValueError(f"{name!r} is of the unknown type {head[156:157]!r}")
    if head[156:157] == b"\0" and name.endswith("/"):
        kind = "folder"  # as tars before POSIX wrote it
    stored = size = int(extended.get("size", _number(head[124:136])))
    if kind == "sparse":
        size = _number(head[483:495])
        _skip_map(source, more=head[482] != 0)
    elif extended and any(key.startswith("GNU.sparse.") for key in extended):
        kind = "sparse"
        name = extended.get("GNU.sparse.name", name)
        size = int(extended.get("GNU.sparse.realsize", extended.get("GNU.sparse.size", size)))
    elif kind != "file":
        size = stored = 0  # the header may have another number
    if "\0" in name + target or max(len(name), len(target)) > MAX_PATH:
        raise ValueError("a name with a NUL, or too long")
    if not 0 <= stored <= MAX_SIZE or not 0 <= size <= MAX_SIZE:
        raise ValueError(f"{name!r} has a size of {size}")
    return Member(name, kind, size, _number(head[100:108]) & 0o7777, target, source.at, stored)


def _skip_map(source: ByteSource, *, more: bool) -> None:
    """Skip the blocks of an old sparse member's map, between header and data."""
    while more:
        block = source.read(BLOCK)
        if len(block) != BLOCK:
            raise ValueError("the archive ends within a map of holes")
        more = block[504] != 0
