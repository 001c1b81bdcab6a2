"""A root without some of its names: what a guest would be if nothing were there."""

from __future__ import annotations

from collections.abc import Iterable

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.image.layered import LayeredRoot
from mpigraft.binary.image.root import Link, Root, RootEntry, join


class MaskedRoot(LayeredRoot):
    """`base` without `paths`: a link, or a folder with all its contents.

    Links above a path are followed, the path itself is the name that vanishes.
    """

    def __init__(self, base: Root, paths: Iterable[str]) -> None:
        super().__init__(base)
        self._masked: set[str] = set()
        for path in paths:
            folder, _, name = path.rstrip("/").rpartition("/")
            entry = base.find(folder or "/")
            if entry is not None and name not in ("", ".", ".."):
                self._masked.add(join(entry.path, name))

    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        if self._masked and join(folder, name) in self._masked:
            return None
        return self.base.entry_in(folder, name)

    def _list(self, folder: str) -> list[str]:
        return [name for name in self.base.names(folder) if join(folder, name) not in self._masked]

    def _elf(self, path: str) -> Elf:
        return self.base.elf(path)

    def read(self, path: str, limit: int) -> bytes:
        return self.base.read(self._regular(path).path, limit)
