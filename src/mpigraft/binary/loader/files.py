"""The files that resolution reads: this host's, whose loader is queried, or a guest's.

A guest is read through its Root alone, and its loader is not run.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Protocol
from weakref import WeakKeyDictionary

from mpigraft.binary.architecture.levels import cpu_flags
from mpigraft.binary.elf.reader import Elf, read_elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.root import Root, RootEntry, RootError
from mpigraft.binary.loader import guest, host, ld_cache
from mpigraft.binary.loader.host import Loader
from mpigraft.core import file_dependencies

MAX_LD_CACHE = 1 << 24  # bytes; ten thousand libraries take two million
MAX_TEXT = 1 << 16  # bytes of ld.so.preload
NO_LD_CACHE = ld_cache.LdCache({})


# Of a search path: (folders to search, best first, and the entry that they come from).
Places = Sequence[tuple[Sequence[str], str]]
PlaceKey = tuple[str, str, Loader]  # search path, $ORIGIN where it counts


class Files(Protocol):
    """The interface through which resolution reads all files."""

    places: dict[PlaceKey, Places]  # what search paths were expanded to

    def identity(self, path: str) -> tuple[int, int] | None:
        """Identify a file: equal for all its paths; None when there is no file."""

    def elf(self, path: str) -> Elf:
        """Read a file of the root. Raises ElfError; its cause is an OSError where the file may not
        be read."""

    def real(self, path: str) -> str:
        """Absolute, links followed."""

    def absolute(self, path: str) -> str:
        """Absolute as the loader keeps it: "x/.." stays, as x may be a link."""

    def searched(self, folder: str, subfolders: Sequence[str]) -> Sequence[str]:
        """Give the subfolders of a folder of a search path, then itself. Some that are not there
        may be left out."""

    def may_hold(self, folder: str, name: str) -> bool:
        """Return whether a folder may have a file of that name: False only where it has none for
        sure."""

    def ld_cache(self, path: str) -> ld_cache.LdCache: ...

    def text(self, path: str) -> str:
        """Give the text of a file; empty where it cannot be read."""

    def loader(self, main: Elf, environment: Mapping[str, str]) -> Loader: ...


class HostFiles:
    """This machine's. `any_cpu`: without those that are for some CPUs only."""

    def __init__(self, *, any_cpu: bool = False) -> None:
        self._any_cpu = any_cpu
        self.places: dict[PlaceKey, Places] = {}

    def identity(self, path: str) -> tuple[int, int] | None:
        file_dependencies.file(path)
        try:
            status = Path(path).stat()
        except (OSError, ValueError):
            return None
        return status.st_dev, status.st_ino

    def elf(self, path: str) -> Elf:
        file_dependencies.file(path)
        try:
            s = Path(path).stat()
        except (OSError, ValueError):
            return read_elf(path)  # raises with the reason
        return _elf(path, s.st_dev, s.st_ino, s.st_size, s.st_mtime_ns, s.st_ctime_ns)

    def real(self, path: str) -> str:
        return str(Path(path).resolve())

    def absolute(self, path: str) -> str:
        return str(Path(path).absolute())

    def searched(self, folder: str, subfolders: Sequence[str]) -> Sequence[str]:
        return tuple(f"{folder}/{sub}" if sub else folder for sub in (*subfolders, ""))

    def may_hold(self, folder: str, name: str) -> bool:
        del folder, name
        return True

    def ld_cache(self, path: str) -> ld_cache.LdCache:
        file_dependencies.file(path)
        try:
            status = Path(path).stat()
            return _ld_cache(path, status.st_ino, status.st_size, status.st_mtime_ns)
        except OSError:
            return NO_LD_CACHE

    def text(self, path: str) -> str:
        file_dependencies.file(path)
        try:
            with Path(path).open("rb") as file:
                return file.read(MAX_TEXT).decode(errors="replace")
        except OSError:
            return ""

    def _bytes(self, path: str) -> bytes:
        file_dependencies.file(path)
        try:
            handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # no wait on a fifo
            with os.fdopen(handle, "rb") as file:
                return file.read(guest.MAX_LOADER) or b""
        except OSError:
            return b""

    def loader(self, main: Elf, environment: Mapping[str, str]) -> Loader:
        path = main.interpreter or ""
        guest.refuse_foreign(main, path)
        if not path or host.is_own(path, main.machine):
            own = host.loader_of(main, environment)
        else:
            own = guest.loader_in(self._bytes(path), path, main, cpu_flags(main.machine))
        if self._any_cpu:
            return replace(own, subfolders=(), defaults=own.plain_defaults)
        return own


@lru_cache(maxsize=512)
def _elf(path: str, *_identity: int) -> Elf:
    """Several MPIs of one machine share most of their libraries."""
    return read_elf(path)


@lru_cache(maxsize=4)
def _ld_cache(path: str, *_identity: int) -> ld_cache.LdCache:
    with Path(path).open("rb") as file:
        return ld_cache.parse(file.read(MAX_LD_CACHE))


@lru_cache(maxsize=4)
def _of_bytes(data: bytes) -> ld_cache.LdCache:
    """Parse a cache, once for each content: grafts over one guest are roots with one cache."""
    return ld_cache.parse(data)


@dataclass(eq=False, slots=True)
class _Known:
    """What is cached for all programs of a root."""

    caches: dict[str, ld_cache.LdCache] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    loaders: dict[tuple[str | None, str, frozenset[str]], Loader] = field(default_factory=dict)
    places: dict[PlaceKey, Places] = field(default_factory=dict)
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    searched: dict[tuple[str, Sequence[str]], Sequence[str]] = field(default_factory=dict)


_KNOWN: WeakKeyDictionary[Root, _Known] = WeakKeyDictionary()


class RootFiles:
    """A guest's files; its root caches what was found and parsed. `given` is the loader as it is
    on another CPU than this machine's.

    The working folder of a program is unknown, so relative paths find nothing.
    """

    def __init__(self, root: Root, given: Loader | None = None) -> None:
        self.root, self._given = root, given
        self._known = _KNOWN.setdefault(root, _Known())
        self.places = self._known.places

    def _find(self, path: str) -> RootEntry | None:
        return self.root.find(path) if path.startswith("/") else None

    def identity(self, path: str) -> tuple[int, int] | None:
        entry = self._find(path)
        return entry.identity if entry else None

    def elf(self, path: str) -> Elf:
        entry = self._find(path)
        if entry is None or entry.kind != "file":
            raise ElfError(f"{path}: not a regular file")
        return self.root.elf(entry.path)

    def real(self, path: str) -> str:
        entry = self._find(path)
        return entry.path if entry else path

    def absolute(self, path: str) -> str:
        return path if path.startswith("/") else f"/{path}"

    def searched(self, folder: str, subfolders: Sequence[str]) -> Sequence[str]:
        key = folder, subfolders
        if key not in self._known.searched:
            every = (f"{folder}/{sub}" if sub else folder for sub in (*subfolders, ""))
            present = (f for f in every if (e := self._find(f or "/")) and e.kind == "folder")
            self._known.searched[key] = tuple(present)
        return self._known.searched[key]

    def may_hold(self, folder: str, name: str) -> bool:
        """By the folder's names, read once: programs of a stack search thousands of files in some
        hundred folders, and most of these searches are in vain."""
        names = self._known.names.get(folder)
        if names is None:
            names = self._known.names[folder] = frozenset(self.root.names(folder or "/"))
        return name in names or not names  # a folder that may be entered, and not listed

    def ld_cache(self, path: str) -> ld_cache.LdCache:
        if path not in self._known.caches:
            try:
                data = self.root.read(path, MAX_LD_CACHE)
                self._known.caches[path] = _of_bytes(data)
            except RootError:  # many images have none
                self._known.caches[path] = NO_LD_CACHE
        return self._known.caches[path]

    def text(self, path: str) -> str:
        if path not in self._known.texts:
            try:
                self._known.texts[path] = self.root.read(path, MAX_TEXT).decode(errors="replace")
            except RootError:
                self._known.texts[path] = ""
        return self._known.texts[path]

    def loader(self, main: Elf, environment: Mapping[str, str]) -> Loader:
        del environment  # settings that mask capabilities of the CPU are levels of their own
        return self._given or self.loader_on(main, cpu_flags(main.machine))

    def loader_on(self, main: Elf, flags: frozenset[str]) -> Loader:
        """Read the loader of `main` as it is on a CPU with these flags."""
        key = main.interpreter, main.machine, flags
        if key not in self._known.loaders:
            self._known.loaders[key] = guest.loader_of(main, self.root, flags)
        return self._known.loaders[key]
