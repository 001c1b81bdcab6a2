"""Simulate a loader over one file: what it maps, in its order, and what it tries before.

`_search` has the search order, top to bottom, as in glibc's `_dl_map_object`
(elf/dl-load.c); objects are taken breadth first, as in `_dl_map_object_deps` (elf/dl-deps.c).
What differs between loaders (default folders, hwcaps, $LIB, $PLATFORM), `host` queries of this
host's, and `guest` reads in the bytes of a guest's.
Not followed: DT_FILTER, DT_AUXILIARY, and la_objsearch of what LD_AUDIT names. That itself is
loaded into a namespace of its own, or ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.loader.files import Files, Places

DF_1_NODEFLIB = 0x800
OSABIS = (0, 3)  # System V and GNU: the loader refuses others
# Bounds, for files that are made to be slow. A program of a few hundred libraries, each with its
# own long path, takes a tenth of them.
MAX_OBJECTS = 4096  # of a closure
MAX_FOLDERS = 4096  # of a search path
MAX_PROBES = 1 << 18  # files looked for


class Rule(StrEnum):
    """How a library was found."""

    PRELOAD = "LD_PRELOAD"
    PRELOAD_FILE = "ld.so.preload"
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
    """One object of a closure: where and how it was found, or what was tried in vain."""

    name: str  # as it is needed: libm.so.6
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


class _Refused(Exception):
    """A file is there, and the loader ends with an error instead of looking further."""


class _Hit(NamedTuple):
    """A file that the loader takes."""

    rule: Rule
    where: str  # the entry as it is written
    path: str
    identity: tuple[int, int]
    elf: Elf


class _SearchPath(NamedTuple):
    """A search path, and whose it is: " of /opt/lib/libmpi.so.40", empty for a variable."""

    places: Places
    of: str


NOWHERE = _SearchPath((), "")


@dataclass(eq=False, slots=True)
class _Map:
    """A loaded object, glibc's link_map."""

    path: str
    elf: Elf
    loader: _Map | None  # whose DT_NEEDED loaded it; None: the program, or opened by dlopen
    identity: tuple[int, int] | None
    rpath: _SearchPath = NOWHERE
    runpath: _SearchPath = NOWHERE

    @property
    def soname(self) -> str:
        return self.elf.soname or self.path.rpartition("/")[2]

    @property
    def origin(self) -> str:
        return self.path.rpartition("/")[0] or "/"


class Loading:
    """One run of the loader over one file: breadth first, each object once."""

    def __init__(self, path: str, environment: Mapping[str, str], files: Files) -> None:
        self.files = files
        self.environment = environment
        main = files.elf(path)
        # The kernel gives a program's $ORIGIN with links resolved, the loader a library's without.
        place = files.real(path) if main.interpreter else files.absolute(path)
        self.main = _Map(place, main, None, files.identity(path))
        self.loader = files.loader(main, environment)
        self.loader_soname = self._loader_soname()
        self.maps: list[_Map] = []
        self.names: dict[str, _Map] = {}  # of what is loaded; its sonames too
        self.files_loaded: dict[tuple[int, int] | None, _Map] = {}
        self.missing: set[str] = set()
        self.tried: list[tuple[Rule, _SearchPath] | str] = []  # of the search that is going on
        self.probes = 0
        self.subfolders = tuple(f"/{sub}" for sub in self.loader.subfolders)
        self.depends_on_cpu = False  # a file was met that other CPUs do not search
        self._add(self.main, path)
        variable = environment.get("LD_LIBRARY_PATH", "").replace(";", ":")
        self.variable = self._places(variable, self.main)

    def objects(self) -> Iterator[Resolved]:
        """Preloaded objects first, then what each object needs, nearest first."""
        variable = re.split(r"[ :]+", self.environment.get("LD_PRELOAD", ""))
        lines = self.files.text(self.loader.preload).splitlines()
        listed = (name for line in lines for name in re.split(r"[ :\t]+", line.partition("#")[0]))
        for rule, names in ((Rule.PRELOAD, variable), (Rule.PRELOAD_FILE, listed)):
            for name in filter(None, names):
                yield from self._preload(rule, name)
        yield from self._needed(0)

    def _preload(self, rule: Rule, name: str) -> Iterator[Resolved]:
        """Load an object before what the program needs. One that is not there, or no library that
        the loader takes, it reports and ignores; what a preloaded one needs has to be there
        (elf/rtld.c, do_preload)."""
        resolved = self._load(name, self.main, preloaded=True)
        if resolved is None:
            return
        if resolved.path is None:
            self.missing.clear()
        else:
            yield replace(resolved, rule=rule, where=name)

    def plugins(self, opened: Mapping[str, Sequence[str]]) -> Iterator[Resolved]:
        """Yield what dlopen adds, in the order of the objects that call it."""
        for opener in self.maps:  # grows: a plugin may open others
            for name in opened.get(opener.soname, ()):
                yield from self._open(name, opener)

    def _needed(self, start: int) -> Iterator[Resolved]:
        """Yield what the objects from `start` on need."""
        for parent in _from(self.maps, start):  # grows while it is walked
            for name in parent.elf.needed:
                if resolved := self._load(name, parent):
                    yield resolved
            if len(self.maps) > MAX_OBJECTS:
                raise ElfError(f"{self.main.path}: needs more than {MAX_OBJECTS} objects")

    def _open(self, name: str, opener: _Map) -> Iterator[Resolved]:
        """dlopen: all of it, or nothing. The opener's RPATH serves to find the plugin, not to find
        what that needs."""
        self.missing.clear()  # what another failed to find may be found along this one's path
        start = len(self.maps)
        plugin = self._load(name, opener, opened=True)
        if plugin is None:  # loaded already
            return
        if plugin.path is None:
            yield plugin
            return
        objects = list(self._needed(start))
        by = _path(self.maps[start].path)
        missing = [replace(r, needed_by=by) for r in objects if r.path is None]
        plugin = replace(plugin, rule=Rule.OPENED, where=opener.soname)
        if missing:
            self._unload(start)
            why = f"needs {', '.join(r.name for r in missing)}, not found"
            plugin, objects = replace(plugin, elf=None, problem=why), missing
        yield plugin
        yield from objects

    def _add(self, new: _Map, *names: str) -> None:
        of = f" of {new.path}"
        if new.elf.runpath is None:  # else DT_RPATH does not count
            new.rpath = self._places(new.elf.rpath or "", new, of)
        new.runpath = self._places(new.elf.runpath or "", new, of)
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

    def _load(
        self, needed: str, parent: _Map, *, opened: bool = False, preloaded: bool = False
    ) -> Resolved | None:
        """Load an object: give it when it is new, found or missing. Of what is preloaded, only a
        path is expanded."""
        name = needed if preloaded and "/" not in needed else self._expand(needed, parent)
        if name in self.missing or name in self.names:
            return None
        self.tried = []
        needed_by = _path(parent.path)
        try:
            hit = next(self._search(name, parent), None)
        except _Refused as refused:
            self.missing.add(name)
            return Resolved(name, None, Rule.NONE, "", needed_by, problem=str(refused))
        if hit is None:
            self.missing.add(name)
            return Resolved(name, None, Rule.NONE, "", needed_by, tried=tuple(self._tried()))
        rule, where, path, identity, facts = hit
        if known := self.files_loaded.get(identity):  # another name for a file that is loaded
            self.names[name] = known
            return None
        place = self.files.absolute(path)
        self._add(_Map(place, facts, None if opened else parent, identity), name, path)
        return Resolved(name, _path(place), rule, where, needed_by, elf=facts)

    def _search(self, name: str, parent: _Map) -> Iterator[_Hit]:
        """Yield files in the loader's order: it takes the first."""
        if name in (self.loader.path, self.loader_soname):
            yield from self._at(Rule.INTERPRETER, "", self.loader.path)  # it is loaded already
        if "/" in name:
            yield from self._at(Rule.PATH, "", name)
            self.tried.append(f"{Rule.PATH} {name}")
            return
        if parent.elf.runpath is None:  # else no RPATH counts, not even an ancestor's
            last = parent
            ancestor: _Map | None = parent
            while ancestor:
                yield from self._along(Rule.RPATH, name, ancestor.rpath)
                last, ancestor = ancestor, ancestor.loader
            if last is not self.main:  # below what was opened by dlopen
                yield from self._along(Rule.RPATH, name, self.main.rpath)
        yield from self._along(Rule.LD_LIBRARY_PATH, name, self.variable)
        yield from self._along(Rule.RUNPATH, name, parent.runpath)
        no_defaults = bool(parent.elf.flags_1 & DF_1_NODEFLIB)
        cache, machine = self.files.ld_cache(self.loader.cache), self.main.elf.machine
        self.depends_on_cpu |= cache.has_levels(name, machine)
        cached = cache.find(name, machine, self.loader.subfolders)
        if not (cached and no_defaults and cached.startswith(self.loader.defaults)):
            if cached:
                yield from self._at(Rule.LD_CACHE, "", cached)
            self.tried.append(f"{Rule.LD_CACHE} {self.loader.cache}")
        if not no_defaults:
            for folder in self.loader.defaults:
                yield from self._at(Rule.DEFAULT, folder, f"{folder}/{name}")
            self.tried.append(f"{Rule.DEFAULT} {':'.join(self.loader.plain_defaults)}")

    def _along(self, rule: Rule, name: str, path: _SearchPath) -> Iterator[_Hit]:
        """Search a list of folders, each with its hwcaps subfolders first."""
        for folders, entry in path.places:
            for folder in folders:
                if self._may_hold(folder, name):
                    yield from self._at(rule, f"{entry}{path.of}", f"{folder}/{name}")
        if path.places:
            self.tried.append((rule, path))

    def _tried(self) -> Iterator[str]:
        for one in self.tried:
            if isinstance(one, str):
                yield one
            else:
                rule, path = one
                yield from (f"{rule} {entry}{path.of}" for _, entry in path.places)

    def _places(self, path: str, owner: _Map, of: str = "") -> _SearchPath:
        """Split and expand a search path. An empty entry is the working folder."""
        if not path:
            return NOWHERE
        origin = owner.origin if "$" in path else ""
        self.depends_on_cpu |= "PLATFORM" in path
        key = path, origin, self.loader
        known = self.files.places.get(key)
        if known is None:
            entries = path.split(":", MAX_FOLDERS)
            if len(entries) > MAX_FOLDERS:
                raise ElfError(f"{owner.path}: a search path of more than {MAX_FOLDERS} folders")
            expanded = [self._expand(e, owner).rstrip("/") if e else "." for e in entries]
            known = tuple(
                (self.files.searched(folder, self.loader.subfolders), entry)
                for folder, entry in zip(expanded, entries, strict=True)
            )
            self.files.places[key] = known
        return _SearchPath(known, of)

    def _may_hold(self, folder: str, name: str) -> bool:
        self._count_probe()
        return self.files.may_hold(folder, name)

    def _count_probe(self) -> None:
        self.probes += 1
        if self.probes > MAX_PROBES:
            raise ElfError(f"{self.main.path}: more than {MAX_PROBES} files are searched")

    def _at(self, rule: Rule, where: str, path: str) -> Iterator[_Hit]:
        """Yield when the loader would take the file at `path`."""
        self._count_probe()
        identity = self.files.identity(path)
        if identity is None:
            return
        if self.subfolders and path.rpartition("/")[0].endswith(self.subfolders):
            self.depends_on_cpu = True
        try:
            facts = self.files.elf(path)
        except ElfError as error:
            if isinstance(error.__cause__, OSError):
                return  # not readable: the loader searches on
            raise _Refused(str(error)) from error
        main = self.main.elf
        if (facts.bits, facts.machine) != (main.bits, main.machine):
            return  # a library of another ABI in the same folder: the loader searches on
        if facts.osabi not in OSABIS or facts.type not in ("dyn", "exec"):
            raise _Refused(f"{path}: not a shared object that the loader takes")
        yield _Hit(rule, where, path, identity, facts)

    def _expand(self, text: str, owner: _Map) -> str:
        """Expand $ORIGIN, $LIB and $PLATFORM, with or without braces."""
        if "$" not in text:
            return text
        self.depends_on_cpu |= "PLATFORM" in text
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


@lru_cache(maxsize=1 << 16)
def _path(path: str) -> Path:
    """Make a Path, cached: the programs of an image have the same few hundred libraries."""
    return Path(path)


def _from(maps: list[_Map], start: int) -> Iterator[_Map]:
    """Yield the maps from `start` on, and those that are added meanwhile."""
    while start < len(maps):
        yield maps[start]
        start += 1
