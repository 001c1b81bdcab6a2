"""Read ELF files as values: what the dynamic loader would read of them, and nothing else.

Facts come from the program headers and the dynamic section, never from section headers, which
the loader does not read and `sstrip` removes. Input is not trusted: every offset is checked,
every count is bounded, only regular files are opened, and every flaw is an ElfError.
Files are read with pread, not mapped: a mapped file that someone shortens, or an NFS server
that goes away, kills the process with SIGBUS; a short read is an error like any other.

Sources: System V ABI gABI 4.1 chapters 4 and 5; LSB 5.0 Core, "Symbol Versioning".
"""

from __future__ import annotations

import os
import stat
import struct
from array import array
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from mpigraft.binary.elf.tables import (
    HEAD,
    MAX_SYMBOLS,
    PT_LOAD,
    VERSYM_HIDDEN,
    ElfError,
    ElfImage,
    Segment,
    Strings,
    Symbol,
    SymbolTable,
    Version,
    copies_of,
    count_of_gnu_hash,
    count_of_hash,
    count_of_relocations,
    symbol_form,
)
from mpigraft.core import file_dependencies

__all__ = ["Elf", "ElfError", "Symbol", "VersionNeed", "parse", "parse_with", "read_elf"]

MAX_DYNAMIC = 1 << 20  # bytes: 65,536 entries
MAX_VERSIONS, MAX_VERSION_BYTES = 1 << 15, 1 << 20  # a version index has 15 bits

PT_DYNAMIC, PT_INTERP, PT_NOTE = 2, 3, 4
DT_NEEDED, DT_PLTRELSZ, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ = 1, 2, 4, 5, 6, 7, 8
DT_STRSZ, DT_SYMENT, DT_SONAME, DT_RPATH, DT_REL, DT_RELSZ = 10, 11, 14, 15, 17, 18
DT_PLTREL, DT_JMPREL, DT_RUNPATH, DT_FLAGS = 20, 23, 29, 30
DT_GNU_HASH, DT_VERSYM, DT_FLAGS_1 = 0x6FFFFEF5, 0x6FFFFFF0, 0x6FFFFFFB
DT_RELACOUNT, DT_RELCOUNT = 0x6FFFFFF9, 0x6FFFFFFA
DT_VERDEF, DT_VERNEED = 0x6FFFFFFC, 0x6FFFFFFE
NT_GNU_BUILD_ID = 3
VER_FLG_BASE, VER_FLG_WEAK = 1, 2
EM_S390, EM_ALPHA = 22, 0x9026

TYPES = {1: "rel", 2: "exec", 3: "dyn", 4: "core"}
MACHINES = {  # named as `uname -m` does
    (3, "little"): "i386", (8, "big"): "mips", (20, "big"): "ppc", (21, "big"): "ppc64",
    (21, "little"): "ppc64le", (EM_S390, "big"): "s390x", (40, "little"): "arm",
    (62, "little"): "x86_64", (183, "little"): "aarch64", (243, "little"): "riscv64",
    (258, "little"): "loongarch64",
}  # fmt: skip

COPY = {3: 5, 20: 19, 21: 19, 22: 9, 40: 20, 62: 5, 183: 1024, 243: 4, 258: 4}  # R_*_COPY


Dynamic = dict[int, list[int]]  # tag: values in the order of the file


class VersionNeed(NamedTuple):
    """A version node that must be defined by the library `library` (a soname)."""

    library: str
    node: str
    weak: bool  # the loader only warns when it is not there


@dataclass(frozen=True)
class Elf:
    """What the loader reads of a file. Strings are raw: $ORIGIN and colons are not expanded.

    Symbols are decoded at the first access, which may raise ElfError.
    """

    name: str  # path, or what the caller called it
    machine: str  # as `uname -m`: x86_64, aarch64; machine-NUMBER when unknown
    bits: int  # 32, 64
    endian: str  # little, big
    type: str  # rel, exec, dyn, core; type-NUMBER when unknown
    osabi: int
    interpreter: str | None = None
    dynamic: bool = False  # has a dynamic section: False for static programs and objects
    soname: str | None = None
    needed: tuple[str, ...] = ()
    rpath: str | None = None  # the loader ignores it where there is a runpath
    runpath: str | None = None
    needs: tuple[VersionNeed, ...] = ()
    version_defs: tuple[str, ...] = ()  # without the base definition, which names the file
    flags: int = 0  # DT_FLAGS
    flags_1: int = 0  # DT_FLAGS_1
    build_id: str | None = None  # hex
    _symbols: SymbolTable | None = field(default=None, repr=False, compare=False)

    @property
    def version_needs(self) -> dict[str, tuple[str, ...]]:
        """{soname: nodes} in the order of the file; weak ones included."""
        nodes: dict[str, tuple[str, ...]] = {}
        for need in self.needs:
            nodes[need.library] = (*nodes.get(need.library, ()), need.node)
        return nodes

    @property
    def symbols(self) -> int:
        """Count the dynamic symbols, without decoding them."""
        return self._symbols.count if self._symbols else 0

    @property
    def has_versions(self) -> bool:
        """Whether symbols may have versions."""
        return self._symbols is None or bool(self._symbols.versions)

    @cached_property
    def imported(self) -> tuple[Symbol, ...]:
        """Undefined symbols, in the order of the file."""
        return tuple(self._decode(defined=False))

    @cached_property
    def exported(self) -> tuple[Symbol, ...]:
        """Defined symbols that other files can bind to, without those that only name a version."""
        return tuple(self._decode(defined=True))

    def each_exported(self) -> Iterable[Symbol]:
        """Give `exported`, but keep nothing: a large library's take a hundred megabytes."""
        return self.__dict__.get("exported") or self._decode(defined=True)

    @cached_property
    def copied(self) -> tuple[Symbol, ...]:
        """Exported symbols of a program that copy a library's variable, which must be there too:
        the loader copies its value (R_COPY)."""
        if self._symbols is None or not self._symbols.copies:
            return ()
        with self._named():
            names = self._symbols.names(self._symbols.copies)
        return tuple(s for s in self.exported if s.name in names)

    def _decode(self, *, defined: bool) -> Iterator[Symbol]:
        if self._symbols is not None:
            with self._named():
                yield from self._symbols.decode(defined=defined)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except ElfError as error:
            raise ElfError(f"{self.name}: {error}") from error


def read_elf(path: Path | str) -> Elf:
    """Read a regular file; symbolic links are followed. Raises ElfError only."""
    name = os.fspath(path)
    file_dependencies.file(name)
    try:
        # Tested before it is opened: opening a device may have effects (a tape rewinds).
        if not stat.S_ISREG(Path(name).stat().st_mode):
            raise ElfError(f"{name}: not a regular file")
        handle = os.open(name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(handle)
            if not stat.S_ISREG(status.st_mode):
                raise ElfError(f"{name}: not a regular file")
            return parse_with(name, status.st_size, lambda size, at: os.pread(handle, size, at))
        finally:
            os.close(handle)
    except OSError as error:
        raise ElfError(f"{name}: {error.strerror}") from error
    except ValueError as error:  # a NUL in the path
        if isinstance(error, ElfError):
            raise
        raise ElfError(f"{name!r}: {error}") from error


def parse(data: bytes, name: str) -> Elf:
    """Read a file that is in memory, a member of an archive. Raises ElfError only."""
    return parse_with(name, len(data), lambda size, at: data[at : at + size])


def parse_with(name: str, size: int, pread: Callable[[int, int], bytes]) -> Elf:
    """Read a file of `size` bytes by `pread(size, offset)`, which may give fewer bytes at the end.
    Raises ElfError, and what `pread` raises."""
    try:
        return _facts(name, ElfImage(size, pread))
    except ElfError as error:
        raise ElfError(f"{name}: {error}") from error
    except struct.error as error:
        raise ElfError(f"{name}: a table ends early") from error


# ------------------------------------------------------------------ header and dynamic section


def _facts(name: str, image: ElfImage) -> Elf:
    ident = image.head[:16]
    if ident[:4] != b"\x7fELF":
        raise ElfError("not an ELF file")
    if len(ident) < 16 or ident[4] not in (1, 2) or ident[5] not in (1, 2):
        raise ElfError("neither 32 nor 64 bits, or of no known byte order")
    image.bits = 32 * ident[4]
    image.mark, image.endian = ("<", "little") if ident[5] == 1 else (">", "big")
    kind, machine = _header(image)
    dynamic = _dynamic(image)
    strings = Strings(b"")
    if DT_STRTAB in dynamic:
        strings = Strings(image.mapped(dynamic[DT_STRTAB][-1], _one(dynamic, DT_STRSZ)))
    needs, needed = _version_needs(image, dynamic, strings)
    defs, defined = _version_defs(image, dynamic, strings)
    return Elf(
        name=name,
        machine=MACHINES.get((machine, image.endian), f"machine-{machine}"),
        bits=image.bits,
        endian=image.endian,
        type=TYPES.get(kind, f"type-{kind}"),
        osabi=ident[7],
        interpreter=_interpreter(image),
        dynamic=bool(dynamic),
        soname=_text(dynamic, DT_SONAME, strings),
        needed=tuple(strings.at(offset) for offset in dynamic.get(DT_NEEDED, ())),
        rpath=_text(dynamic, DT_RPATH, strings),
        runpath=_text(dynamic, DT_RUNPATH, strings),
        needs=needs,
        version_defs=defs,
        flags=_one(dynamic, DT_FLAGS),
        flags_1=_one(dynamic, DT_FLAGS_1),
        build_id=_build_id(image),
        _symbols=_symbol_table(image, dynamic, strings, needed | defined, machine),
    )


def _header(image: ElfImage) -> tuple[int, int]:
    """(type, machine); sets the image's segments."""
    form = struct.Struct(image.mark + ("HHI3QI6H" if image.bits == 64 else "HHI3II6H"))
    fields = form.unpack_from(image.head, 16)
    kind, machine, version, phoff, phentsize, phnum = (fields[i] for i in (0, 1, 2, 4, 8, 9))
    if version != 1 or image.head[6] != 1:
        raise ElfError(f"ELF of version {version}, only 1 is known")
    entry = struct.Struct(image.mark + ("I4x4Q16x" if image.bits == 64 else "5I12x"))
    if phnum and phentsize != entry.size:
        raise ElfError(f"program headers of {phentsize} bytes each, {entry.size} expected")
    table = image.at(phoff, phnum * entry.size)
    image.set_segments(
        Segment(t, offset, address, size)
        for t, offset, address, _, size in entry.iter_unpack(table)
        if t in (PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE)
    )
    return kind, machine


def _dynamic(image: ElfImage) -> Dynamic:
    """Read {tag: values}. Of a tag that should be there once the loader takes the last."""
    segment = next((s for s in image.segments if s.kind == PT_DYNAMIC and s.size), None)
    if segment is None:
        return {}
    entry = struct.Struct(image.mark + ("QQ" if image.bits == 64 else "II"))
    size = segment.size - segment.size % entry.size
    values_by_tag: Dynamic = {}
    for tag, value in entry.iter_unpack(image.mapped(segment.address, size, MAX_DYNAMIC)):
        if tag == 0:
            return values_by_tag
        values_by_tag.setdefault(tag, []).append(value)
    raise ElfError("the dynamic section has no end")


def _one(dynamic: Dynamic, tag: int) -> int:
    values = dynamic.get(tag)
    return values[-1] if values else 0


def _text(dynamic: Dynamic, tag: int, strings: Strings) -> str | None:
    return strings.at(dynamic[tag][-1]) if tag in dynamic else None


def _interpreter(image: ElfImage) -> str | None:
    for kind, offset, _, size in image.segments:
        if kind == PT_INTERP:
            return Strings(image.at(offset, size, 4096)).at(0)
    return None


def _build_id(image: ElfImage) -> str | None:
    """Read the build id from the notes. A malformed note ends the search without an error."""
    for kind, offset, _, size in image.segments:
        if kind != PT_NOTE or size > HEAD or offset + size > image.size:
            continue
        notes = image.at(offset, size)
        at = 0
        while at + 12 <= size:
            namesz, descsz, number = struct.unpack_from(image.mark + "3I", notes, at)
            desc = at + 12 + (namesz + 3 & ~3)
            if number == NT_GNU_BUILD_ID and notes[at + 12 : at + 16] == b"GNU\0":
                return notes[desc : desc + descsz].hex() or None
            at = desc + (descsz + 3 & ~3)
    return None


# ------------------------------------------------------------------ versions


def _version_needs(
    image: ElfImage, dynamic: Dynamic, strings: Strings
) -> tuple[tuple[VersionNeed, ...], dict[int, Version]]:
    """Needs in the order of the file, and the versions by index."""
    if DT_VERNEED not in dynamic:
        return (), {}
    table = image.upto(dynamic[DT_VERNEED][-1], MAX_VERSION_BYTES)
    entry, aux = struct.Struct(image.mark + "4xIII"), struct.Struct(image.mark + "4xHHII")
    needs: list[VersionNeed] = []
    versions: dict[int, Version] = {}
    for start, (file, first, _) in _chain(table, entry, 0):
        library = strings.at(file)
        for _, (flags, index, node, _) in _chain(table, aux, start + first):
            if len(needs) == MAX_VERSIONS:
                raise ElfError(f"more than {MAX_VERSIONS} versions are needed")
            need = VersionNeed(library, strings.at(node), bool(flags & VER_FLG_WEAK))
            needs.append(need)
            versions[index & ~VERSYM_HIDDEN] = (need.node, library)
    return tuple(needs), versions


def _version_defs(
    image: ElfImage, dynamic: Dynamic, strings: Strings
) -> tuple[tuple[str, ...], dict[int, Version]]:
    """Definitions in the order of the file without the base, and the versions by index."""
    if DT_VERDEF not in dynamic:
        return (), {}
    table = image.upto(dynamic[DT_VERDEF][-1], MAX_VERSION_BYTES)
    entry, aux = struct.Struct(image.mark + "2xHH6xII"), struct.Struct(image.mark + "I")
    versions: dict[int, Version] = {}
    for start, (flags, index, first, _) in _chain(table, entry, 0):
        if not flags & VER_FLG_BASE:
            (node,) = aux.unpack_from(table, start + first)
            versions[index & ~VERSYM_HIDDEN] = (strings.at(node), None)
    return tuple(node for node, _ in versions.values()), versions


def _chain(table: bytes, entry: struct.Struct, at: int) -> Iterator[tuple[int, tuple[int, ...]]]:
    """(offset, fields) of a linked list whose last field is the distance to the next.

    The counts of these lists are not used: the loader does not read them either.
    """
    for _ in range(MAX_VERSIONS):
        fields = entry.unpack_from(table, at)
        yield at, fields
        if not fields[-1]:
            return
        at += fields[-1]
    raise ElfError(f"more than {MAX_VERSIONS} versions")


# ------------------------------------------------------------------ symbols


def _symbol_table(
    image: ElfImage, dynamic: Dynamic, strings: Strings, nodes: dict[int, Version], machine: int
) -> SymbolTable | None:
    if DT_SYMTAB not in dynamic:
        return None
    form = symbol_form(image)
    if dynamic.get(DT_SYMENT, [form.size])[-1] != form.size:
        raise ElfError(f"symbols of {_one(dynamic, DT_SYMENT)} bytes each, {form.size} expected")
    count = _symbol_count(image, dynamic, machine)
    if count > MAX_SYMBOLS:
        raise ElfError(f"{count} symbols are more than {MAX_SYMBOLS}")
    versions = array("H")
    if DT_VERSYM in dynamic:
        versions = image.words(dynamic[DT_VERSYM][-1], count, "H")
    defined = frozenset(node for node, library in nodes.values() if library is None)
    symbols = image.mapped(dynamic[DT_SYMTAB][-1], count * form.size) if count else b""
    copies = frozenset(_copies(image, dynamic, machine))
    return SymbolTable(
        symbols=symbols,
        versions=versions,
        strings=strings,
        nodes=nodes,
        definitions=defined,
        form=form,
        wide=image.bits == 64,
        copies=copies,
    )


def _copies(image: ElfImage, dynamic: Dynamic, machine: int) -> Iterator[int]:
    """Yield numbers of the symbols that relocations copy. Only programs have such; relocations that
    only add the load address come first, and are counted."""
    if any(segment.kind == PT_INTERP for segment in image.segments):
        for where, size, relative, addend in (
            (DT_RELA, DT_RELASZ, DT_RELACOUNT, True),
            (DT_REL, DT_RELSZ, DT_RELCOUNT, False),
        ):
            if where in dynamic and _one(dynamic, size):
                table = (dynamic[where][-1], _one(dynamic, size), addend)
                yield from copies_of(image, table, _one(dynamic, relative), COPY.get(machine, -1))


def _symbol_count(image: ElfImage, dynamic: Dynamic, machine: int) -> int:
    """Count symbols by DT_GNU_HASH first, as the loader: lld's DT_HASH is wrong for s390x."""
    count = 0
    if DT_GNU_HASH in dynamic:
        count, known = count_of_gnu_hash(image, dynamic[DT_GNU_HASH][-1])
        if known:
            return count
    if DT_HASH in dynamic:
        wide = image.bits == 64 and machine in (EM_S390, EM_ALPHA)
        return count_of_hash(image, dynamic[DT_HASH][-1], wide=wide)
    plt_addend = _one(dynamic, DT_PLTREL) == DT_RELA
    tables = [
        (dynamic[where][-1], _one(dynamic, size), addend)
        for where, size, addend in (
            (DT_RELA, DT_RELASZ, True),
            (DT_REL, DT_RELSZ, False),
            (DT_JMPREL, DT_PLTRELSZ, plt_addend),
        )
        if where in dynamic and _one(dynamic, size)
    ]
    return max(count, count_of_relocations(image, tables))
