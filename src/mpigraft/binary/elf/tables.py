"""Read the tables of an ELF file: bytes within bounds, strings, and dynamic symbols.

Sources: System V ABI gABI 4.1 chapter 5; the layout of DT_GNU_HASH is that of glibc's
elf/dl-setup_hash.c.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

MAX_TABLE: Final = 1 << 27  # bytes of one table; the largest known string tables are below 64 MiB
MAX_SYMBOLS: Final = 1 << 19  # the largest known libraries export a few hundred thousand
MAX_NAMES: Final = 1 << 20  # characters of all names beyond those of their table, which may overlap
MAX_OVERLAP: Final = 8  # times the table: linkers merge ends of names; 2.6 was seen
HEAD: Final = 1 << 16  # read at once: for most files this holds all but the dynamic section

PT_LOAD = 1
VERSYM_HIDDEN = 0x8000
SHN_ABS = 0xFFF1
STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE = 1, 2, 10
KINDS = {0: "none", 1: "object", 2: "func", 5: "common", 6: "tls", 10: "ifunc"}
BOUND = {  # (kind, weak) by st_info, of the symbols that bind between files
    bind << 4 | kind: (KINDS.get(kind) or str(kind), bind == STB_WEAK)
    for bind in (STB_GLOBAL, STB_WEAK, STB_GNU_UNIQUE)
    for kind in range(16)
}
HIDDEN = (1, 2)  # visibilities internal and hidden
UNVERSIONED = (None, None)


class ElfError(ValueError):
    """A file cannot be read, is no ELF file, or is malformed. The text says which and why."""


class Segment(NamedTuple):
    """One program header. `size` is in the file."""

    kind: int
    offset: int
    address: int
    size: int


class ElfImage:
    """A file by offset and by address. Nothing outside the file or over a bound is ever read.

    `pread(size, offset)` gives bytes, fewer than asked for at the end of the file.
    """

    bits = 64
    endian = "little"
    mark = "<"  # byte order as struct has it
    segments: tuple[Segment, ...] = ()

    def __init__(self, size: int, pread: Callable[[int, int], bytes]) -> None:
        self.size = size
        self.head = pread(min(size, HEAD), 0)
        self._pread = pread

    def set_segments(self, segments: Iterable[Segment]) -> None:
        """Set the segments. Raises ElfError for a file that is cut short: the kernel maps it, and a
        signal ends the process that reads there."""
        self.segments = tuple(segments)
        end = max((s.offset + s.size for s in self.segments if s.kind == PT_LOAD), default=0)
        if end > self.size:
            raise ElfError(f"it is cut short: {end} bytes are loaded, the file has {self.size}")

    def at(self, offset: int, size: int, limit: int = MAX_TABLE) -> bytes:
        """Exactly `size` bytes at a file offset."""
        if size > limit:
            raise ElfError(f"a table of {size} bytes is over the bound of {limit}")
        if offset + size > self.size:
            raise ElfError(
                f"bytes {offset} to {offset + size} are outside the file of {self.size} bytes"
            )
        if offset + size <= len(self.head):
            return self.head[offset : offset + size]
        data = self._pread(size, offset)
        while len(data) < size and (more := self._pread(size - len(data), offset + len(data))):
            data += more
        if len(data) != size:
            raise ElfError("the file was shortened while it was read")
        return data

    def mapped(self, address: int, size: int, limit: int = MAX_TABLE) -> bytes:
        """Exactly `size` bytes at an address."""
        offset, room = self._place(address)
        if size > room:
            raise ElfError(f"{size} bytes at address {address:#x} go past their segment")
        return self.at(offset, size, limit)

    def upto(self, address: int, limit: int) -> bytes:
        """Return the bytes from an address to the end of its segment, at most `limit`."""
        offset, room = self._place(address)
        return self.at(offset, min(room, limit, max(0, self.size - offset)))

    def words(self, address: int, count: int, code: str) -> array[int]:
        """`count` unsigned integers of an array type code at an address."""
        words = array(code)
        words.frombytes(self.mapped(address, count * words.itemsize))
        if self.endian != sys.byteorder:
            words.byteswap()
        return words

    def _place(self, address: int) -> tuple[int, int]:
        """(file offset, bytes to the end of the segment) of an address."""
        for kind, offset, start, size in self.segments:
            if kind == PT_LOAD and start <= address < start + size:
                return offset + address - start, start + size - address
        raise ElfError(f"address {address:#x} is in no loaded segment")


class Strings:
    """A string table. Read as Latin-1, which keeps offsets; names are UTF-8 where they can be."""

    def __init__(self, data: bytes) -> None:
        self.text = data.decode("latin-1")
        self._ascii = data.isascii()
        self._most = self._budget = MAX_NAMES + MAX_OVERLAP * len(data)

    def start_over(self) -> None:
        """Take what is read from now on for the names of the file, not for more of them."""
        self._budget = self._most

    def at(self, offset: int) -> str:
        """Return the string that starts at an offset."""
        end = self.text.find("\0", offset)
        if end < 0:
            raise ElfError(f"the string at {offset} has no end")
        self._budget -= end - offset
        if self._budget < 0:
            raise ElfError(f"the names have more than {self._most} characters")
        text = self.text[offset:end]
        return text if self._ascii else text.encode("latin-1").decode("utf-8", "surrogateescape")


class Symbol(NamedTuple):
    """A dynamic symbol that other files can bind to, or that is bound to one of theirs."""

    name: str
    version: str | None
    library: str | None  # soname that is to define the version; of an exported one: it is a copy
    default: bool  # name@@version, which a reference without version gets; else name@version
    kind: str  # none, object, func, common, tls, ifunc, or the number
    weak: bool
    size: int  # bytes; of an object it is part of the ABI, because of copy relocations

    def __str__(self) -> str:
        if self.version is None:
            return self.name
        return f"{self.name}{'@@' if self.default else '@'}{self.version}"


Version = tuple[str, str | None]  # node, soname of the library that is to define it


@dataclass(frozen=True, slots=True)
class SymbolTable:
    """DT_SYMTAB as bytes, decoded on demand: that costs more than all the rest."""

    symbols: bytes
    versions: array[int]  # DT_VERSYM; empty without versions
    strings: Strings
    nodes: dict[int, Version]  # by version index
    definitions: frozenset[str]
    form: struct.Struct  # name, info, other, section, size; name, size, info, ... for 32 bits
    wide: bool
    copies: frozenset[int] = frozenset()  # numbers of those that relocations copy

    def names(self, numbers: Iterable[int]) -> frozenset[str]:
        """Give names by symbol number. ElfError for a malformed name or an unknown number."""
        if any(number >= self.count for number in numbers):
            raise ElfError("a relocation names an unknown symbol")
        starts = (self.form.unpack_from(self.symbols, n * self.form.size)[0] for n in numbers)
        return frozenset(map(self.strings.at, starts))

    def decode(self, *, defined: bool) -> Iterator[Symbol]:
        """Yield those that the file defines, or those that it needs, in the order of the table.
        ElfError for a malformed name."""
        self.strings.start_over()
        name_at, nodes, new = self.strings.at, self.nodes, tuple.__new__
        versions: Iterable[int] = self.versions or array("H", bytes(2)) * self.count
        for (at, info, other, section, size), number in zip(self._rows(), versions, strict=True):
            if bool(section) is not defined:
                continue
            bound = BOUND.get(info)
            if bound is None or not at or (section and other & 3 in HIDDEN):
                continue
            name = name_at(at)
            # GNU ld names each version that it defines by an absolute symbol.
            if section == SHN_ABS and name in self.definitions:
                continue
            kind, weak = bound
            # 0 (local) and 1 (global) are no versions; the loader binds both.
            node, library = nodes.get(number & 0x7FFF, UNVERSIONED)
            default = defined and number < VERSYM_HIDDEN
            # new() is what Symbol() does, in half the time.
            yield new(Symbol, (name, node, library, default, kind, weak, size))

    @property
    def count(self) -> int:
        return len(self.symbols) // self.form.size

    def _rows(self) -> Iterable[tuple[int, int, int, int, int]]:
        rows = self.form.iter_unpack(self.symbols)
        if self.wide:
            return rows
        return ((at, info, other, section, size) for at, size, info, other, section in rows)


def symbol_form(image: ElfImage) -> struct.Struct:
    """Return one entry of DT_SYMTAB without its value."""
    return struct.Struct(image.mark + ("IBBH8xQ" if image.bits == 64 else "I4xIBBH"))


def count_of_hash(image: ElfImage, address: int, *, wide: bool) -> int:
    """Count the symbols by DT_HASH: its chain has one entry for each. `wide`: 64-bit entries."""
    return image.words(address, 2, "Q" if wide else "I")[1]


def count_of_gnu_hash(image: ElfImage, address: int) -> tuple[int, bool]:
    """Return (number of symbols by DT_GNU_HASH: the end of the chain that starts last, known).

    Undefined symbols come first and are not hashed, so with nothing hashed the table says
    little of them (GNU ld then writes 1): the number is a lower bound.
    """
    buckets, first, bloom, _ = image.words(address, 4, "I")
    at = address + 16 + bloom * image.bits // 8
    last = max(image.words(at, buckets, "I"), default=0)
    if last == 0:
        return first, False
    if last < first:
        raise ElfError("the hash table points at symbols that it does not hold")
    at += buckets * 4 + (last - first) * 4
    while last < MAX_SYMBOLS:
        (value,) = image.words(at, 1, "I")
        last += 1
        if value & 1:  # the lowest bit marks the end of a chain
            return last, True
        at += 4
    raise ElfError(f"more than {MAX_SYMBOLS} symbols")


def count_of_relocations(image: ElfImage, tables: Iterable[tuple[int, int, bool]]) -> int:
    """1 + the highest symbol that a relocation names; `tables`: (address, bytes, with addend).

    For files that export nothing and have no DT_HASH, most programs: their relocations name what
    they import. The distance to the next table would do for fresh files, but patchelf
    moves tables and leaves filler behind.
    """
    shift = 32 if image.bits == 64 else 8
    return 1 + max((max(_infos(image, table), default=0) >> shift for table in tables), default=-1)


def copies_of(
    image: ElfImage, table: tuple[int, int, bool], relative: int, kind: int
) -> Iterator[int]:
    """Symbols of the relocations of one kind, after the first `relative` ones."""
    shift = 32 if image.bits == 64 else 8
    for info in _infos(image, table, relative):
        if info & (1 << shift) - 1 == kind:
            yield info >> shift


def _infos(image: ElfImage, table: tuple[int, int, bool], start: int = 0) -> array[int]:
    """r_info of a table (address, bytes, with addend), from relocation `start` on."""
    address, size, addend = table
    words, code = (3 if addend else 2), ("Q" if image.bits == 64 else "I")
    step = words * image.bits // 8
    count = size // step - start
    if count <= 0:  # nothing but such as are left out; then the address may be past the segment
        return array(code)
    return image.words(address + start * step, count * words, code)[1::words]
