"""The file system of a guest: its values, and a walk that never leaves it.

A root is read, never run and never written. Its names and contents are not trusted: links are
followed as `chroot` would, so that nothing outside can be reached, and everything is bounded.
Answers are cached: a root that changes meanwhile may give old ones, never one from outside. Not
for several threads at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from mpigraft.binary.elf.reader import Elf, parse_with
from mpigraft.binary.elf.tables import ElfError

MAX_LINKS = 40  # of one path: Linux's MAXSYMLINKS
MAX_PATH = 4096  # bytes: Linux's PATH_MAX
MAX_NAMES = 1 << 21  # of a whole root; the largest images have a million or so
MAX_ELVES = 1024  # kept at once: their symbol tables take some hundred KiB each
MAX_UNREAD = 1000  # paths that are reported as unread
KERNEL_FOLDERS = ("/proc", "/sys", "/dev")  # of a running system: no files, and without end


_T = TypeVar("_T")
Pread = Callable[[int, int], bytes]  # (size, offset): fewer bytes at the end of the file


class RootError(ValueError):
    """A root or one of its files is broken, hostile or unreadable. The text says which and why."""


@dataclass(frozen=True, slots=True)
class RootEntry:
    """A file or folder of a root. Names are str with surrogateescape."""

    path: str  # canonical inside the root: absolute, no links, no ".."
    kind: str  # "file", "folder", "other"
    size: int  # bytes
    mode: int  # permission bits
    identity: tuple[int, int]  # the same for all names of one file
    host: str | None = None  # its path on this host; None in an archive

    @property
    def source(self) -> Path | None:
        """`host` as a Path, made on demand: a walk has a hundred thousand entries."""
        return Path(self.host) if self.host is not None else None


@dataclass(frozen=True, slots=True)
class Link:
    """A symbolic link, not followed. `target` is as it is written."""

    target: str


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """An image's settings for the process to be started in it."""

    environment: tuple[tuple[str, str], ...] = ()
    architecture: str = ""  # as `uname -m`; empty: not set
    entrypoint: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()  # lines of its environment scripts that take a shell to read


class Root(Protocol):
    """A file system to read. Paths are absolute inside; relative ones count from the top.

    All methods raise RootError where the image itself is broken.
    """

    name: str  # for messages

    def find(self, path: str) -> RootEntry | None:
        """Find `path`, links followed inside the root; None: nothing, a loop, a dangling link, or a
        folder on the way that this user may not enter."""

    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        """Look up one name in a canonical folder; no link is followed."""

    def names(self, folder: str) -> tuple[str, ...]:
        """List names in a folder, sorted; () when it is none or may not be read."""

    def read(self, path: str, limit: int) -> bytes:
        """Read at most `limit` bytes from the start. RootError when it is no readable file."""

    def elf(self, path: str) -> Elf:
        """Read a file's ELF facts, once per file. Raises ElfError, whose cause is an OSError where
        the file could not be opened."""

    def files(self, folder: str = "/") -> Iterator[RootEntry]:
        """Yield regular files below `folder`, each once, no links followed; none of /proc, /sys,
        /dev. Raises RootError for more than MAX_NAMES names."""

    def unread(self) -> tuple[str, ...]:
        """List paths that could not be read (permissions), sorted."""

    def config(self) -> ImageConfig:
        """Give the image's settings for its process; empty values where it has none."""


class BaseRoot(ABC):
    """The base of all roots: a subclass looks up one name, lists a folder and opens a file."""

    name = ""
    elves = MAX_ELVES  # whose facts are kept; fewer where many programs have many symbols

    def __init__(self) -> None:
        self._entries: dict[str, RootEntry | None] = {}
        self._elf_cache: OrderedDict[tuple[int, int], Elf] = OrderedDict()
        # Cached separately: most files are no ELF files, and would push out those that are.
        self._error_cache: OrderedDict[tuple[int, int], ElfError] = OrderedDict()
        self._unread: set[str] = set()

    @abstractmethod
    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        """As Root.entry_in."""

    @abstractmethod
    def _list(self, folder: str) -> list[str]:
        """Return names in a canonical folder, in any order."""

    @abstractmethod
    def _opened(self, entry: RootEntry) -> AbstractContextManager[Pread]:
        """Return a regular file's bytes. OSError or RootError."""

    def config(self) -> ImageConfig:
        return ImageConfig()

    def unread(self) -> tuple[str, ...]:
        return tuple(sorted(self._unread))

    def find(self, path: str) -> RootEntry | None:
        if path not in self._entries:
            self._entries[path] = self._follow(path)
        return self._entries[path]

    def _follow(self, path: str) -> RootEntry | None:
        """Resolve as Linux's path_lookupat, with this root as the root of the process."""
        if len(path) > MAX_PATH or "\0" in path:
            return None
        folder, _, name = path.rpartition("/")
        if not folder or name in ("", ".", ".."):
            return self._walk("/", path.split("/"))
        if folder not in self._entries:  # cached too: most paths share a few folders
            self._entries[folder] = self._walk("/", folder.split("/"))
        start = self._entries[folder]
        return self._walk(start.path, [name]) if start and start.kind == "folder" else None

    def _walk(self, folder: str, parts: list[str]) -> RootEntry | None:
        rest = parts[::-1]
        links = 0
        while rest and len(folder) <= MAX_PATH:
            name = rest.pop()
            if name == "..":
                folder = folder.rpartition("/")[0] or "/"  # above the top is the top
            if name in ("", ".", ".."):
                continue
            entry = self.entry_in(folder, name)
            if isinstance(entry, Link):
                links += 1
                if links > MAX_LINKS or not entry.target or len(entry.target) > MAX_PATH:
                    return None
                folder = "/" if entry.target.startswith("/") else folder
                rest += entry.target.split("/")[::-1]
            elif entry is None or entry.kind != "folder":
                return None if rest else entry  # "file/" and "file/.." are nothing
            else:
                folder = entry.path
        return self._folder(folder) if not rest else None

    def _folder(self, path: str) -> RootEntry | None:
        """Give the entry of a canonical folder."""
        if path == "/":
            return RootEntry("/", "folder", 0, 0o755, (-1, 0))
        folder, _, name = path.rpartition("/")
        entry = self.entry_in(folder or "/", name)
        return entry if isinstance(entry, RootEntry) else None

    def names(self, folder: str) -> tuple[str, ...]:
        entry = self.find(folder)
        if entry is None or entry.kind != "folder":
            return ()
        return tuple(sorted(self._list(entry.path)))

    def read(self, path: str, limit: int) -> bytes:
        entry = self._regular(path)
        try:
            with self._opened(entry) as pread:
                data = b""
                while len(data) < limit and (more := pread(limit - len(data), len(data))):
                    data += more
                return data
        except OSError as error:
            self._note_unread(entry.path)
            raise RootError(f"{self.name}: {path}: {error.strerror}") from error

    def _regular(self, path: str) -> RootEntry:
        entry = self.find(path)
        if entry is None:
            raise RootError(f"{self.name}: {path}: nothing is there")
        if entry.kind != "file":
            raise RootError(f"{self.name}: {path}: not a regular file")
        return entry

    def elf(self, path: str) -> Elf:
        try:
            entry = self._regular(path)
        except RootError as error:
            raise ElfError(str(error)) from FileNotFoundError(path)
        key = entry.identity
        known = (
            self._elf_cache.pop(key, None)
            or self._error_cache.pop(key, None)
            or self._parsed(entry)
        )
        if isinstance(known, ElfError):
            _keep(self._error_cache, key, known, MAX_ELVES)
            raise known.with_traceback(None)
        _keep(self._elf_cache, key, known, self.elves)
        return known

    def _parsed(self, entry: RootEntry) -> Elf | ElfError:
        try:
            with self._opened(entry) as pread:
                return parse_with(entry.path, entry.size, pread)
        except ElfError as error:
            return ElfError(str(error))  # without the frames that the other one holds
        except (OSError, RootError) as error:
            self._note_unread(entry.path)
            failed = ElfError(f"{entry.path}: {getattr(error, 'strerror', None) or error}")
            failed.__cause__ = error.with_traceback(None)
            return failed

    def files(self, folder: str = "/") -> Iterator[RootEntry]:
        top = self.find(folder)
        rest = [top.path] if top and top.kind == "folder" else []
        identities: set[tuple[int, int]] = set()
        count = 0
        while rest:
            current = rest.pop()
            below = []
            for name in sorted(self._list(current)):
                count += 1
                if count > MAX_NAMES:
                    raise RootError(f"{self.name}: more than {MAX_NAMES} names")
                if len(current) + len(name) >= MAX_PATH:
                    self._note_unread(current)
                    continue
                entry = self.entry_in(current, name)
                if not isinstance(entry, RootEntry) or entry.identity in identities:
                    continue
                if entry.kind == "folder" and entry.path not in KERNEL_FOLDERS:
                    identities.add(entry.identity)  # a folder may be mounted below itself
                    below.append(entry.path)
                elif entry.kind == "file":
                    identities.add(entry.identity)
                    yield entry
            rest += below[::-1]

    def _note_unread(self, path: str) -> None:
        if len(self._unread) < MAX_UNREAD:
            self._unread.add(path)


def _keep(
    cached: OrderedDict[tuple[int, int], _T], key: tuple[int, int], value: _T, most: int
) -> None:
    """Cache a value at the end, and drop the oldest one."""
    cached[key] = value
    if len(cached) > most:
        cached.popitem(last=False)


def join(folder: str, name: str) -> str:
    """Give the path of a name in a canonical folder."""
    return f"{folder}/{name}" if folder != "/" else f"/{name}"


def host_path(root: Root, path: str) -> Path | None:
    """Give the path on this machine of a file of the root, there or not; None: in an archive."""
    entry = root.find(path)
    if entry is not None or path in ("", "/"):
        return entry.source if entry else None
    folder, _, name = path.rpartition("/")
    above = host_path(root, folder or "/")
    return above / name if above else None
