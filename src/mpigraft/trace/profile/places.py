"""Names of places in a program: addresses of call sites as function, file and offset.

Names come from the symbols of the program's own files, which are in a guest's root where there is
one. What was stripped keeps file and offset, as addr2line takes them.
"""

from __future__ import annotations

import bisect
import mmap
import re
import struct
from collections.abc import Iterator
from pathlib import Path, PurePath

from mpigraft.core.text import printable

LINE = re.compile(r"([0-9a-f]+)-([0-9a-f]+) (\S{4}) ([0-9a-f]+) \S+ \d+\s+(/.*)")
ELF64 = b"\x7fELF\x02\x01"
HEADER, SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
SYMTAB, DYNSYM, FUNCTION = 2, 11, 2
LOAD, SEGMENT = 1, struct.Struct("<IIQQQQQQ")
MOST_SYMBOLS = 4_000_000
MOST_NAME = 80  # characters of a function


class Places:
    """What is mapped where in one rank."""

    def __init__(self, maps: str, root: Path | None = Path("/")) -> None:
        self.root = root
        self.ranges = sorted(_executable(maps))
        self.starts = [start for start, *_ in self.ranges]
        self.functions: dict[str, Functions] = {}

    def name(self, address: int) -> str:
        """Return `main (app+0x401f)`, `app+0x401f` without symbols, as addr2line takes it; the
        address where nothing is mapped. A return address: the call is right before it."""
        k = bisect.bisect_right(self.starts, address - 1) - 1
        if k < 0 or address > self.ranges[k][1]:
            return hex(address)
        start, _, offset, path = self.ranges[k]
        place = address - 1 - start + offset
        file = printable(PurePath(path.removesuffix(" (deleted)")).name)
        if path not in self.functions:
            file_here = self.root / path.lstrip("/") if self.root else None
            self.functions[path] = Functions(file_here)
        function = self.functions[path].at(place)
        where = f"{file}+{self.functions[path].address(place):#x}"
        return f"{function} ({where})" if function else where


def _executable(maps: str) -> Iterator[tuple[int, int, int, str]]:
    """(first address, end, offset in the file, file) of each piece of code."""
    for line in maps.splitlines():
        match = LINE.fullmatch(line)
        if match and "x" in match[3]:
            yield int(match[1], 16), int(match[2], 16), int(match[4], 16), match[5]


class Functions:
    """The functions of an ELF file of 64 bits, by offset in it; none where it cannot be read."""

    def __init__(self, path: Path | None) -> None:
        self.table: list[tuple[int, int, str]] = []  # address, end, name
        self.segments: list[tuple[int, int, int]] = []  # offset, size, address
        if path is not None:
            self._open(path)
        self.table.sort()
        self.starts = [start for start, *_ in self.table]

    def _open(self, path: Path) -> None:
        try:
            with (
                path.open("rb") as file,
                mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data,
            ):
                if data[:6] == ELF64:
                    self._read(data)
        except (OSError, ValueError, struct.error):
            self.table = []

    def _read(self, data: mmap.mmap) -> None:
        head = HEADER.unpack_from(data, 0)
        segments, sections, count, each = head[5], head[6], head[10], head[11]
        for k in range(count):
            kind, _, offset, address, _, size, *_ = SEGMENT.unpack_from(
                data, segments + k * head[9]
            )
            if kind == LOAD:
                self.segments.append((offset, size, address))
        rows = [SECTION.unpack_from(data, sections + k * each) for k in range(head[12])]
        tables = sorted((r for r in rows if r[1] in (SYMTAB, DYNSYM)), key=lambda r: r[1])
        for row in tables[:1]:
            _, _, _, _, offset, size, link, *_ = row
            names = rows[link][4] if link < len(rows) else 0
            block = data[offset : offset + min(size, MOST_SYMBOLS * SYMBOL.size)]
            block = block[: len(block) - len(block) % SYMBOL.size]
            for name, info, _, section, value, length in SYMBOL.iter_unpack(block):
                if info & 15 == FUNCTION and section and value:
                    self.table.append((value, value + max(length, 1), _text(data, names + name)))

    def at(self, place: int) -> str:
        """Return the function at an offset in the file; empty: none that is known."""
        address = self.address(place)
        k = bisect.bisect_right(self.starts, address) - 1
        if k < 0 or address >= self.table[k][1]:
            return ""
        return printable(self.table[k][2])[:MOST_NAME]

    def address(self, place: int) -> int:
        """Return the address in the file's own counting; the offset where it has no segments."""
        own = (a + place - o for o, size, a in self.segments if o <= place < o + size)
        return next(own, place)


def _text(data: mmap.mmap, start: int) -> str:
    end = data.find(b"\0", start, start + 1024)
    return data[start : end if end >= 0 else start].decode("utf-8", "replace")
