"""A root with folders of this host bound into it, as an engine binds the working folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.layered import LayeredRoot
from mpigraft.binary.image.root import Link, Root, RootEntry, RootError, join
from mpigraft.core import file_dependencies


class BoundRoot(LayeredRoot):
    """`base` with {path inside: folder of this host} over it; an inner target wins.

    A target that `base` lacks appears with its parents. Links in a bound folder are followed
    inside the root, as in a container. Targets are taken as written: an engine resolves links of
    a mount point, but the path of a working folder has none.
    """

    def __init__(self, base: Root, folders: Mapping[str, Path]) -> None:
        super().__init__(base)
        self._roots: dict[str, FolderRoot] = {}
        self._made: dict[str, set[str]] = {}  # names that a target and its parents need
        for target, folder in folders.items():
            path = "/" + "/".join(p for p in target.split("/") if p not in ("", ".", ".."))
            if path == "/":
                continue
            file_dependencies.file(folder)
            try:
                self._roots[path] = FolderRoot(folder)
            except RootError:  # absent or unreadable: a container would not see it either
                continue
            while path != "/":
                upper, _, name = path.rpartition("/")
                path = upper or "/"
                self._made.setdefault(path, set()).add(name)

    def _owner(self, path: str) -> tuple[FolderRoot, str] | None:
        """Give the bound folder that contains a canonical path, and the path below its top."""
        target = self.cover(path)
        return (self._roots[target], path[len(target) :] or "/") if target else None

    def cover(self, path: str) -> str:
        """Give the target of the bound folder that contains a canonical path; empty: none does."""
        while path != "/":
            if path in self._roots:
                return path
            path = path.rpartition("/")[0] or "/"
        return ""

    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        path = join(folder, name)
        if path in self._roots:
            host = str(self._roots[path].folder)
            return RootEntry(path, "folder", 0, 0o755, (-5, hash(path)), host)
        entry: RootEntry | Link | None
        if owner := self._owner(folder):
            entry = owner[0].entry_in(owner[1], name)
        else:
            entry = self.base.entry_in(folder, name)
        if entry is None and name in self._made.get(folder, ()):
            return RootEntry(path, "folder", 0, 0o755, (-6, hash(path)))
        return replace(entry, path=path) if isinstance(entry, RootEntry) else entry

    def _list(self, folder: str) -> list[str]:
        owner = self._owner(folder)
        names = owner[0].names(owner[1]) if owner else self.base.names(folder)
        return list({*names, *self._made.get(folder, ())})

    def read(self, path: str, limit: int) -> bytes:
        entry = self._regular(path)
        owner = self._owner(entry.path)
        return owner[0].read(owner[1], limit) if owner else self.base.read(entry.path, limit)

    def _elf(self, path: str) -> Elf:
        owner = self._owner(path)
        return owner[0].elf(owner[1]) if owner else self.base.elf(path)
