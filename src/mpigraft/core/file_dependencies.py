"""What an answer was made from: files that were read, names that were looked for, folders listed.

An answer may be kept as long as none of that changes. Readers note it here before they read, so
that a change meanwhile is noticed too; nothing is noted unless somebody records. A name that was
absent counts: a library that is added earlier in a search path is a change. Contents are identified
by device, inode, size and both times: installers set mtime back, and cannot set ctime. A change
within the last two seconds is not trusted, because clocks of disks are coarse.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

SETTLED_NS = 2_000_000_000
ABSENT: tuple[int, ...] = ()

_active: list[Reads] = []


@dataclass(slots=True)
class Reads:
    """{absolute path: what was there}: names without following a link, files with, folders with
    the times at which a name in them changed last."""

    names: dict[str, tuple[int, ...]] = field(default_factory=dict)
    files: dict[str, tuple[int, ...]] = field(default_factory=dict)
    folders: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def document(self) -> dict[str, Any] | None:
        """Return what `unchanged` takes, as JSON; None where something is too young to be
        trusted."""
        now = time.time_ns()
        stamps = (*self.names.values(), *self.files.values(), *self.folders.values())
        if any(stamp[4:] and max(stamp[4:]) > now - SETTLED_NS for stamp in stamps):
            return None
        parts = {"names": self.names, "files": self.files, "folders": self.folders}
        groups = {part: _grouped(own) for part, own in parts.items()}
        every = ([own[path] for path in _paths(groups[part])] for part, own in parts.items())
        return {**groups, "digest": _digest(every)}


def unchanged(document: Mapping[str, Any]) -> bool:
    """Return whether all that was noted is as it was. ValueError, TypeError or KeyError for what
    `Reads.document` did not make."""
    now = (map(read, _paths(document[part])) for part, read in LOOKS.items())
    return bool(_digest(now) == document["digest"])


def repeat(document: Mapping[str, Any]) -> None:
    """Note again all that a document says was noted: an answer that was kept is part of another."""
    for path in _paths(document["files"]) if _active else ():
        file(path)
    for path in _paths(document["folders"]) if _active else ():
        folder(path)
    for path in _paths(document["names"]) if _active else ():
        for one in _active:
            one.names.setdefault(path, _name(path))


@contextmanager
def recorded() -> Iterator[Reads]:
    """Note all that is read until the end of the block."""
    one = Reads()
    _active.append(one)
    try:
        yield one
    finally:
        _active[:] = [other for other in _active if other is not one]


def file(path: str | os.PathLike[str]) -> None:
    """Note a file that is about to be read, or whose absence decides."""
    for one in _active:
        text = _absolute(path)
        if text not in one.files:
            one.files[text] = _file(text)


def folder(path: str | os.PathLike[str]) -> None:
    """Note a folder that is about to be listed."""
    for one in _active:
        text = _absolute(path)
        if text not in one.folders:
            one.folders[text] = _folder(text)


def name(path: str, stat: os.stat_result | None) -> None:
    """Note what a name is, no link followed; None: nothing that could be seen."""
    for one in _active:
        one.names.setdefault(path, _of(stat) if stat is not None else ABSENT)


def _absolute(path: str | os.PathLike[str]) -> str:
    """ "x/.." stays, as x may be a link."""
    text = os.fspath(path)
    return text if text.startswith("/") else f"{working_folder()}/{text}"


def working_folder() -> str:
    """Empty where it is gone."""
    try:
        return os.getcwd()  # noqa: PTH109
    except OSError:
        return ""


def _name(path: str) -> tuple[int, ...]:
    try:
        return _of(os.lstat(path))
    except (OSError, ValueError):
        return ABSENT


def _file(path: str) -> tuple[int, ...]:
    try:
        return _of(os.stat(path))  # noqa: PTH116
    except (OSError, ValueError):
        return ABSENT


def _of(status: os.stat_result) -> tuple[int, ...]:
    """Identify a folder on the way by itself: its other contents do not matter."""
    which = (status.st_dev, status.st_ino, status.st_mode, status.st_uid)
    if stat.S_ISDIR(status.st_mode):
        return which
    return (*which, status.st_mtime_ns, status.st_ctime_ns, status.st_size)


def _folder(path: str) -> tuple[int, ...]:
    try:
        stat = os.stat(path)  # noqa: PTH116
    except (OSError, ValueError):
        return ABSENT
    return (
        stat.st_dev, stat.st_ino, stat.st_mode, stat.st_uid, stat.st_mtime_ns, stat.st_ctime_ns,
    )  # fmt: skip


LOOKS: dict[str, Callable[[str], tuple[int, ...]]] = {
    "names": _name,
    "files": _file,
    "folders": _folder,
}


# ------------------------------------------------------------------ as a document


def _grouped(files: Mapping[str, object]) -> dict[str, list[str]]:
    """{folder: names}, since most paths share a few thousand folders; sorted."""
    groups: dict[str, list[str]] = {}
    for path in sorted(files):
        folder, _, name = path.rpartition("/")
        groups.setdefault(folder, []).append(name)
    return groups


def _paths(groups: Mapping[str, list[str]]) -> Iterator[str]:
    for folder, names in groups.items():
        for name in names:
            yield f"{folder}/{name}"


def _digest(parts: Iterable[Iterable[tuple[int, ...]]]) -> str:
    """Hash what was at each path; the paths are in the document, and give the order."""
    every = blake2b()
    for part in parts:
        every.update(repr(list(part)).encode())
    return every.hexdigest()
