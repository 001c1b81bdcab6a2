"""A folder as a root: this host itself ("/"), an unpacked image, a software stack.

Each component is opened by itself, without following links, so that neither a link nor a
concurrent change of the folder leads outside. `openat2(RESOLVE_IN_ROOT)` does it in one call, but
Python and Linux 4.18 (RHEL 8) lack it.
"""

from __future__ import annotations

import os
import stat
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from mpigraft.binary.image.root import (
    MAX_NAMES,
    MAX_PATH,
    BaseRoot,
    ImageConfig,
    Link,
    Pread,
    RootEntry,
    RootError,
    join,
)
from mpigraft.binary.image.singularity import config_of
from mpigraft.core import file_dependencies

MAX_HANDLES = 64  # folders kept open at once
FOLDER = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


class FolderRoot(BaseRoot):
    """A folder of this host. Raises RootError where it is none or may not be entered."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.name = os.fspath(folder)
        try:
            self.folder = folder.resolve(strict=True)
            self._handles = OrderedDict({"/": os.open(self.folder, FOLDER)})
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a NUL
            self._handles = OrderedDict()
            raise RootError(f"{self.name}: {getattr(error, 'strerror', error)}") from error
        self._top = os.fspath(self.folder).rstrip("/")

    def __del__(self) -> None:
        for handle in self._handles.values():
            os.close(handle)

    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        path = join(folder, name)
        if "/" in name or name in ("", ".", "..") or len(path) > MAX_PATH:
            return None
        try:
            handle = self._handle(folder)
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            file_dependencies.name(self._top + path, status)
            if stat.S_ISLNK(status.st_mode):
                return Link(os.readlink(name, dir_fd=handle))
        except PermissionError:
            file_dependencies.name(self._top + path, None)
            self._note_unread(path)
            return None
        except (OSError, ValueError):  # gone, too long; a NUL
            file_dependencies.name(self._top + path, None)
            return None
        return RootEntry(
            path,
            _kind(status.st_mode),
            status.st_size,
            stat.S_IMODE(status.st_mode),
            (status.st_dev, status.st_ino),
            self._top + path,
        )

    def config(self) -> ImageConfig:
        """Read the settings of an image that Apptainer unpacked; other folders have none."""
        return config_of(self)

    def _handle(self, folder: str) -> int:
        """Open a canonical folder to read its entries. Raises OSError."""
        known = self._handles.get(folder)
        if known is not None:
            self._handles.move_to_end(folder)
            return known
        upper, missing = folder, []
        while upper not in self._handles:
            upper, _, name = upper.rpartition("/")
            upper = upper or "/"
            missing.append(name)
        for name in reversed(missing):
            opened = os.open(name, FOLDER, dir_fd=self._handles[upper])
            upper = join(upper, name)
            self._keep(upper, opened)
        return self._handles[folder]

    def _keep(self, folder: str, handle: int) -> None:
        self._handles[folder] = handle
        self._handles.move_to_end("/")  # never the oldest
        if len(self._handles) > MAX_HANDLES:
            os.close(self._handles.popitem(last=False)[1])

    def _list(self, folder: str) -> list[str]:
        file_dependencies.folder(self._top + folder)
        try:
            # A handle of O_PATH cannot be listed; "." of it is the same folder.
            handle = os.open(".", os.O_RDONLY | os.O_CLOEXEC, dir_fd=self._handle(folder))
        except OSError:
            self._note_unread(folder)
            return []
        try:
            with os.scandir(handle) as entries:
                return [entry.name for entry in islice(entries, MAX_NAMES + 1)]
        except OSError:
            self._note_unread(folder)
            return []
        finally:
            os.close(handle)

    @contextmanager
    def _opened(self, entry: RootEntry) -> Iterator[Pread]:
        """Open a file as O_PATH first, which does not affect a device or wait for a fifo."""
        folder, _, name = entry.path.rpartition("/")
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        handle = os.open(name, flags, dir_fd=self._handle(folder or "/"))
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise RootError(f"{self.name}: {entry.path}: not a regular file any more")
            file = os.open(f"/proc/self/fd/{handle}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        finally:
            os.close(handle)
        try:
            yield lambda size, at: os.pread(file, size, at)
        finally:
            os.close(file)


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    return "folder" if stat.S_ISDIR(mode) else "other"
