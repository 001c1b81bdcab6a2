"""What a loader would pick for a file, by which rule, and what it tried: this host's, a guest's.

The search order stands in `_search`, top to bottom, as in glibc's `_dl_map_object`
(elf/dl-load.c); objects are taken breadth first, as in `_dl_map_object_deps` (elf/dl-deps.c).
What differs between loaders (default folders, hwcaps, $LIB, $PLATFORM) `host_loader` asks of this
host's, and `guest_loader` reads in the bytes of a guest's.
Not followed: DT_FILTER, DT_AUXILIARY, LD_AUDIT, /etc/ld.so.preload.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from mpigraft import cache, elf, library_files
from mpigraft.elf import Elf, ElfError
from mpigraft.library_files import Files
from mpigraft.roots import Root

DF_1_NODEFLIB = 0x800
NOTHING_OPENED: Mapping[str, Sequence[str]] = MappingProxyType({})
OSABIS = (0, 3)  # System V and GNU: the loader refuses others
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
    OPENED = "opened by"  # dlopen
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


def closure(
    path: Path | str,
    *,
    environment: Mapping[str, str],
    root: Root | None = None,
    opened: Mapping[str, Sequence[str]] = NOTHING_OPENED,
) -> tuple[Resolved, ...]:
    """Every object that the loader maps for `path` (without it), in the loader's order.

    `environment` is that of the process to be. With a `root`, `path` and all that is found are
    paths inside of it, as the loader spells them (links are not resolved), and nothing is run.
    Without one a program's own interpreter is asked, that is started, with a harmless task: trust
    it as you would trust the program.
    `opened`: names that an object opens at run time, by that object's soname. They come last, each
    with what it needs. Of one that dlopen would refuse, its row has no `elf` and says why, and
    rows of what it lacks follow; nothing of it stays mapped.
    Raises ElfError when `path` itself cannot be read, ForeignLoader when its loader is not glibc's.
    """
    files = library_files.of_root(root) if root is not None else library_files.HostFiles()
    walk = _Walk(os.fspath(path), environment, files)
    found = list(walk.objects())
    return (*found, *walk.plugins(opened)) if opened else tuple(found)


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


# ------------------------------------------------------------------ the walk


class _Refused(Exception):
    """A file is there, and the loader ends with an error instead of looking further."""


@dataclass(eq=False, slots=True)
class _Map:
    """A loaded object, glibc's link_map."""

    path: str
    origin: str
    elf: Elf
    loader: _Map | None  # whose DT_NEEDED or dlopen loaded it
    identity: tuple[int, int] | None

    @property
    def soname(self) -> str:
        return self.elf.soname or self.path.rpartition("/")[2]

    @property
    def rpath(self) -> str:
        # DT_RPATH does not count where there is a DT_RUNPATH.
        return "" if self.elf.runpath is not None else self.elf.rpath or ""


class _Walk:
    """One run of the loader over one file: breadth first, each object once."""

    def __init__(self, path: str, environment: Mapping[str, str], files: Files) -> None:
        self.files = files
        self.environment = environment
        main = files.elf(path)
        # The kernel gives a program's $ORIGIN with links resolved, the loader a library's without.
        place = files.real(path) if main.interpreter else files.absolute(path)
        self.main = _Map(place, _folder(place), main, None, files.identity(path))
        self.loader = files.loader(main, environment)
        self.loader_soname = self._loader_soname()
        self.maps: list[_Map] = []
        self.names: dict[str, _Map] = {}  # of what is loaded; its sonames too
        self.files_loaded: dict[tuple[int, int] | None, _Map] = {}
        self.missing: set[str] = set()
        self.tried: list[str] = []  # of the search that is going on
        self._add(self.main, path, main.soname or path)

    def objects(self) -> Iterator[Resolved]:
        """Preloaded objects first, then what each object needs, nearest first."""
        for name in re.split(r"[ :]+", self.environment.get("LD_PRELOAD", "")):
            if name and (found := self._load(name, self.main)):
                yield found if not found.path else replace(found, rule=Rule.PRELOAD, where=name)
        yield from self._needed(0)

    def plugins(self, opened: Mapping[str, Sequence[str]]) -> Iterator[Resolved]:
        """What dlopen adds, in the order of the objects that call it."""
        for opener in self.maps:  # grows: a plugin may open others
            for name in opened.get(opener.soname, ()):
                yield from self._open(name, opener)

    def _needed(self, start: int) -> Iterator[Resolved]:
        """What the objects from `start` on need."""
        for parent in _from(self.maps, start):  # grows while it is walked
            for name in parent.elf.needed:
                if found := self._load(name, parent):
                    yield found
            if len(self.maps) > MAX_OBJECTS:
                raise ElfError(f"{self.main.path}: needs more than {MAX_OBJECTS} objects")

    def _open(self, name: str, opener: _Map) -> Iterator[Resolved]:
        """dlopen: all of it, or nothing."""
        self.missing.clear()  # what another failed to find may be found along this one's path
        start = len(self.maps)
        plugin = self._load(name, opener)
        if plugin is None:  # loaded already
            return
        if plugin.path is None:
            yield plugin
            return
        found = list(self._needed(start))
        lacking = [r for r in found if r.path is None]
        plugin = replace(plugin, rule=Rule.OPENED, where=opener.soname)
        if lacking:
            self._unload(start)
            why = f"needs {', '.join(r.name for r in lacking)}, not found"
            plugin, found = replace(plugin, elf=None, problem=why), lacking
        yield plugin
        yield from found

    def _add(self, new: _Map, *names: str) -> None:
        self.maps.append(new)
        self.files_loaded[new.identity] = new
        for name in (*names, new.elf.soname):
            if name:
                self.names.setdefault(name, new)

    def _unload(self, start: int) -> None:
        gone = set(map(id, self.maps[start:]))
        del self.maps[start:]
        self.names = {k: v for k, v in self.names.items() if id(v) not in gone}
        self.files_loaded = {k: v for k, v in self.files_loaded.items() if id(v) not in gone}

    def _load(self, wanted: str, parent: _Map) -> Resolved | None:
        """The object when it is new, found or missing."""
        name = self._expand(wanted, parent)
        if name in self.missing or name in self.names:
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
        if known := self.files_loaded.get(identity):  # another name for a file that is loaded
            self.names[name] = known
            return None
        place, facts = self.files.absolute(path), self.files.elf(path)
        self._add(_Map(place, _folder(place), facts, parent, identity), name, path)
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


def _folder(path: str) -> str:
    return path.rpartition("/")[0] or "/"


def _from(maps: list[_Map], start: int) -> Iterator[_Map]:
    """Those from `start` on, and those that are added meanwhile."""
    while start < len(maps):
        yield maps[start]
        start += 1
