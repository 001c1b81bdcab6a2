"""What the loader of this host would pick for a file, by which rule, and what it tried.

The search order stands in `_search`, top to bottom, as in glibc's `_dl_map_object`
(elf/dl-load.c); objects are taken breadth first, as in `_dl_map_object_deps` (elf/dl-deps.c).
What differs between hosts (default folders, hwcaps, $LIB, $PLATFORM) `host_loader` asks.
Not followed: DT_FILTER, DT_AUXILIARY, LD_AUDIT, /etc/ld.so.preload, and what dlopen opens later.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from mpigraft import cache, elf, ld_cache
from mpigraft.elf import Elf, ElfError
from mpigraft.host_loader import loader_of

DF_1_NODEFLIB = 0x800
OSABIS = (0, 3)  # System V and GNU: the loader refuses others
MAX_LD_CACHE = 1 << 26  # bytes
MAX_OBJECTS = 4096  # of a closure


class Rule(StrEnum):
    """How a library was found."""

    PRELOAD = "LD_PRELOAD"
    PATH = "path"  # a name with a slash
    RPATH = "RPATH"
    LD_LIBRARY_PATH = "LD_LIBRARY_PATH"
    RUNPATH = "RUNPATH"
    LD_CACHE = "ld.so.cache"
    DEFAULT = "default folders"
    INTERPRETER = "interpreter"
    NONE = "not found"


@dataclass(frozen=True, slots=True)
class Resolved:
    """One object of a closure: where it was found and how, or what was tried in vain."""

    name: str  # as it was asked for: libm.so.6
    path: Path | None
    rule: Rule
    where: str  # the entry as it is written: "$ORIGIN/../lib of /opt/lib/libmpi.so.40"
    needed_by: Path
    tried: tuple[str, ...] = ()  # only of one that was not found
    problem: str = ""  # a file is there, but the loader stops at it
    elf: Elf | None = field(default=None, repr=False, compare=False)

    @property
    def soname(self) -> str:
        return (self.elf and self.elf.soname) or self.name

    @property
    def how(self) -> str:
        """For a person: "RPATH $ORIGIN/../lib of /opt/lib/libmpi.so.40"."""
        if self.problem:
            return self.problem
        return f"{self.rule} {self.where}".rstrip()


@dataclass(frozen=True, slots=True)
class Library:
    """One object of a closure by content. `digest` is empty when it was not found."""

    soname: str
    path: Path | None
    digest: str
    how: str


@dataclass(frozen=True, slots=True)
class AbiFacts:
    """What an MPI asks of its host and offers to a program, for `discover --abi`."""

    libmpi: Path
    soname: str
    exported: tuple[str, ...]  # of libmpi: name, name@@version or name@version
    versions_defined: tuple[tuple[str, tuple[str, ...]], ...]  # (soname, nodes), whole closure
    versions_needed: tuple[tuple[str, str, str], ...]  # (by, library, node), whole closure
    closure: tuple[Library, ...]  # libmpi first


def closure(path: Path | str, *, environment: Mapping[str, str]) -> tuple[Resolved, ...]:
    """Every object that the loader maps for `path` (without it), in the loader's order.

    `environment` is that of the process to be. For a program its own interpreter is asked, that
    is started, with a harmless task: trust it as you would trust the program.
    Raises ElfError when `path` itself cannot be read.
    """
    return tuple(_Walk(os.fspath(path), environment).objects())


def libraries(libmpi: Path, environment: Mapping[str, str]) -> tuple[Library, ...]:
    """`libmpi` and its closure by content, in the loader's order. Raises ElfError."""
    facts = elf.read(libmpi)
    first = Library(facts.soname or libmpi.name, libmpi, _digest(libmpi), "asked for")
    found = closure(libmpi, environment=environment)
    return (first, *(Library(r.soname, r.path, _digest(r.path), r.how) for r in found))


def contents(libmpi: Path, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Sorted (soname, SHA-256) of libmpi and its closure: what a configuration's key holds.

    A library that is not found stands with an empty digest. Raises ElfError.
    """
    return tuple(sorted({(x.soname, x.digest) for x in libraries(libmpi, environment)}))


def abi_facts(libmpi: Path, environment: Mapping[str, str]) -> AbiFacts:
    """Symbols, version nodes and closure of an installed libmpi. Raises ElfError."""
    facts = elf.read(libmpi)
    found = closure(libmpi, environment=environment)
    files = [facts, *(r.elf for r in found if r.elf is not None)]
    names = [f.soname or Path(f.name).name for f in files]
    needed = {
        (name, need.library, need.node)
        for name, file in zip(names, files, strict=True)
        for need in file.needs
    }
    return AbiFacts(
        libmpi=libmpi,
        soname=names[0],
        exported=tuple(sorted({str(symbol) for symbol in facts.exported})),
        versions_defined=tuple(
            (name, file.version_defs)
            for name, file in zip(names, files, strict=True)
            if file.version_defs
        ),
        versions_needed=tuple(sorted(needed)),
        closure=libraries(libmpi, environment),
    )


def _digest(path: Path | None) -> str:
    try:
        return cache.file_digest(path) if path else ""
    except OSError:
        return ""


# ------------------------------------------------------------------ files of the host


class _Files:
    """All that resolution reads of the host's files goes through here, once each."""

    def __init__(self) -> None:
        self._elves: dict[str, Elf] = {}

    def identity(self, path: str) -> tuple[int, int] | None:
        """What makes two paths one file; None when there is nothing to open."""
        try:
            seen = Path(path).stat()
        except (OSError, ValueError):
            return None
        return seen.st_dev, seen.st_ino

    def elf(self, path: str) -> Elf:
        if path not in self._elves:
            self._elves[path] = elf.read(path)
        return self._elves[path]

    def real(self, path: str) -> str:
        return str(Path(path).resolve())

    def absolute(self, path: str) -> str:
        return str(Path(path).absolute())  # "x/.." stays: x may be a link, and the loader keeps it

    def ld_cache(self, path: str) -> ld_cache.LdCache:
        try:
            seen = Path(path).stat()
            return _ld_cache(path, seen.st_ino, seen.st_size, seen.st_mtime_ns)
        except OSError:
            return ld_cache.LdCache({})


@lru_cache(maxsize=4)
def _ld_cache(path: str, *_identity: int) -> ld_cache.LdCache:
    with Path(path).open("rb") as file:
        return ld_cache.parse(file.read(MAX_LD_CACHE))


# ------------------------------------------------------------------ the walk


class _Refused(Exception):
    """A file is there, and the loader ends with an error instead of looking further."""


@dataclass(eq=False, slots=True)
class _Map:
    """A loaded object, glibc's link_map."""

    path: str
    origin: str
    elf: Elf
    loader: _Map | None  # whose DT_NEEDED loaded it
    names: set[str]
    identity: tuple[int, int] | None

    @property
    def rpath(self) -> str:
        # DT_RPATH does not count where there is a DT_RUNPATH.
        return "" if self.elf.runpath is not None else self.elf.rpath or ""


class _Walk:
    """One run of the loader over one file: breadth first, each object once."""

    def __init__(self, path: str, environment: Mapping[str, str]) -> None:
        self.files = _Files()
        self.environment = environment
        main = self.files.elf(path)
        # The kernel gives a program's $ORIGIN with links resolved, the loader a library's without.
        place = self.files.real(path) if main.interpreter else self.files.absolute(path)
        names = {path, main.soname or path}
        self.main = _Map(
            place, str(Path(place).parent), main, None, names, self.files.identity(path)
        )
        self.loader = loader_of(main, environment)
        self.loader_soname = self._loader_soname()
        self.maps = [self.main]
        self.missing: set[str] = set()
        self.tried: list[str] = []  # of the search that is going on

    def objects(self) -> Iterator[Resolved]:
        """Preloaded objects first, then what each object needs, nearest first."""
        for name in re.split(r"[ :]+", self.environment.get("LD_PRELOAD", "")):
            if name and (found := self._load(name, self.main)):
                yield found if not found.path else replace(found, rule=Rule.PRELOAD, where=name)
        for parent in self.maps:  # grows while it is walked
            for name in parent.elf.needed:
                if found := self._load(name, parent):
                    yield found
            if len(self.maps) > MAX_OBJECTS:
                raise ElfError(f"{self.main.path}: needs more than {MAX_OBJECTS} objects")

    def _load(self, wanted: str, parent: _Map) -> Resolved | None:
        """The object when it is new, found or missing."""
        name = self._expand(wanted, parent)
        if name in self.missing or any(name in m.names or name == m.elf.soname for m in self.maps):
            return None
        self.tried = []
        needed_by = Path(parent.path)
        try:
            hit = next(self._search(name, parent), None)
        except _Refused as refused:
            self.missing.add(name)
            return Resolved(name, None, Rule.NONE, "", needed_by, problem=str(refused))
        if hit is None:
            self.missing.add(name)
            return Resolved(name, None, Rule.NONE, "", needed_by, tried=tuple(self.tried))
        rule, where, path = hit
        identity = self.files.identity(path)
        for known in self.maps:
            if identity == known.identity:  # another name for a file that is loaded
                known.names.add(name)
                return None
        place, facts = self.files.absolute(path), self.files.elf(path)
        origin = str(Path(place).parent)
        self.maps.append(_Map(place, origin, facts, parent, {name, path}, identity))
        return Resolved(name, Path(place), rule, where, needed_by, elf=facts)

    def _search(self, name: str, parent: _Map) -> Iterator[tuple[Rule, str, str]]:
        """(rule, entry as it is written, path), in the loader's order: it takes the first."""
        if name in (self.loader.path, self.loader_soname):
            yield from self._at(Rule.INTERPRETER, "", self.loader.path)  # it is loaded already
        if "/" in name:
            yield from self._at(Rule.PATH, "", name)
            return
        if parent.elf.runpath is None:  # else no RPATH counts, not even an ancestor's
            ancestor: _Map | None = parent
            while ancestor:
                yield from self._along(Rule.RPATH, name, ancestor.rpath, ancestor)
                ancestor = ancestor.loader
        variable = self.environment.get("LD_LIBRARY_PATH", "").replace(";", ":")
        yield from self._along(Rule.LD_LIBRARY_PATH, name, variable, self.main)
        yield from self._along(Rule.RUNPATH, name, parent.elf.runpath or "", parent)
        no_defaults = bool(parent.elf.flags_1 & DF_1_NODEFLIB)
        found = self.files.ld_cache(self.loader.cache).find(
            name, self.main.elf.machine, self.loader.subfolders
        )
        if not (found and no_defaults and found.startswith(self.loader.defaults)):
            if found:
                yield from self._at(Rule.LD_CACHE, "", found)
            self.tried.append(f"{Rule.LD_CACHE} {self.loader.cache}")
        if not no_defaults:
            for folder in self.loader.defaults:
                yield from self._at(Rule.DEFAULT, folder, f"{folder}/{name}")
            self.tried.append(f"{Rule.DEFAULT} {self._plain_defaults()}")

    def _along(
        self, rule: Rule, name: str, path: str, owner: _Map
    ) -> Iterator[tuple[Rule, str, str]]:
        """Along a list of folders, each with its hwcaps subfolders first."""
        if not path:
            return
        for entry in path.split(":"):
            folder = self._expand(entry, owner).rstrip("/") if entry else "."
            where = entry if rule is Rule.LD_LIBRARY_PATH else f"{entry} of {owner.path}"
            for sub in self.loader.subfolders:
                yield from self._at(rule, where, f"{folder}/{sub}/{name}")
            yield from self._at(rule, where, f"{folder}/{name}")
            self.tried.append(f"{rule} {where}")

    def _at(self, rule: Rule, where: str, path: str) -> Iterator[tuple[Rule, str, str]]:
        """Yields when the loader would take the file at `path`."""
        if self.files.identity(path) is None:
            return
        try:
            facts = self.files.elf(path)
        except ElfError as error:
            if isinstance(error.__cause__, OSError):
                return  # not readable: the loader looks further
            raise _Refused(str(error)) from error
        main = self.main.elf
        if (facts.bits, facts.machine) != (main.bits, main.machine):
            return  # a library of another ABI in the same folder: the loader looks further
        if facts.osabi not in OSABIS or facts.type not in ("dyn", "exec"):
            raise _Refused(f"{path}: not a shared object that the loader takes")
        yield rule, where, path

    def _expand(self, text: str, owner: _Map) -> str:
        """$ORIGIN, $LIB and $PLATFORM, with or without braces."""
        if "$" not in text:
            return text
        values = {
            "ORIGIN": owner.origin,
            "LIB": self.loader.lib,
            "PLATFORM": self.loader.platform,
        }
        return re.sub(
            r"\$(?:\{(ORIGIN|LIB|PLATFORM)\}|(ORIGIN|LIB|PLATFORM)(?![A-Za-z0-9_]))",
            lambda m: values[m[1] or m[2]],
            text,
        )

    def _loader_soname(self) -> str | None:
        try:
            return self.files.elf(self.loader.path).soname
        except ElfError:
            return None

    def _plain_defaults(self) -> str:
        subs = tuple(f"/{s}" for s in self.loader.subfolders)
        return ":".join(d for d in self.loader.defaults if not (subs and d.endswith(subs)))
