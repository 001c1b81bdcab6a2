"""A root with other files bound over it: the graft's view of a guest."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.image.layered import LayeredRoot
from mpigraft.binary.image.root import Link, Pread, Root, RootEntry, RootError, join


class OverlayRoot(LayeredRoot):
    """`base` with files bound over it: {path inside: facts of the file}.

    Links of a target are followed through `base`, as for a bind mount; where `base` has nothing,
    file and folders appear. `sources` are host files whose bytes `read` gives for a target;
    without one only its ELF facts are known. A target within another one is a RootError.
    """

    def __init__(
        self, base: Root, targets: Mapping[str, Elf], sources: Mapping[str, Path] | None = None
    ) -> None:
        super().__init__(base)
        self._over: dict[str, Elf] = {}
        self._bytes: dict[str, Path] = {}
        self._sizes: dict[str, int] = {}
        self._made: dict[str, set[str]] = {}  # names that appear in a folder
        for target, facts in targets.items():
            path = self._place(target)
            self._over[path] = facts
            if sources and target in sources:
                self._bytes[path] = sources[target]
                self._sizes[path] = _size(sources[target])
        # The same file under two targets is one file for the loader.
        self._numbers = {id(facts): n for n, facts in enumerate(self._over.values())}
        # Stacked overlays must not give one identity to two files.
        self._device: int = base._device - 2 if isinstance(base, OverlayRoot) else -2

    def _place(self, target: str) -> str:
        """Give the canonical path of a target, and note what `base` lacks of it."""
        folder, rest = "/", [p for p in target.split("/") if p not in ("", ".")]
        if ".." in rest or not rest:
            raise RootError(f"{target!r}: not a file to bind over")
        while rest:
            entry = self.base.find(join(folder, rest[0]))
            if entry is None:
                break
            folder = entry.path
            rest.pop(0)
            if rest and entry.kind != "folder":
                raise RootError(f"{target}: {folder} is not a folder")
            if entry.kind == "folder" and not rest:
                raise RootError(f"{target}: a folder, not a file to bind over")
        for name in rest:
            if folder in self._over:
                raise RootError(f"{target}: {folder} is not a folder")
            self._made.setdefault(folder, set()).add(name)
            folder = join(folder, name)
        if folder in self._made:
            raise RootError(f"{target}: another target is below it")
        return folder

    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        path = join(folder, name)
        if path in self._over:
            facts = self._over[path]
            source, size = self._bytes.get(path), self._sizes.get(path, 0)
            host = os.fspath(source) if source else None
            return RootEntry(
                path, "file", size, 0o755, (self._device, self._numbers[id(facts)]), host
            )
        if name in self._made.get(folder, ()):
            return RootEntry(path, "folder", 0, 0o755, (self._device - 1, hash(path)))
        return self.base.entry_in(folder, name)

    def _list(self, folder: str) -> list[str]:
        return list({*self.base.names(folder), *self._made.get(folder, ())})

    def _elf(self, path: str) -> Elf:
        return self._over[path] if path in self._over else self.base.elf(path)

    def read(self, path: str, limit: int) -> bytes:
        entry = self.find(path)
        if entry is not None and entry.path not in self._over:
            return self.base.read(entry.path, limit)
        return super().read(path, limit)

    @contextmanager
    def _opened(self, entry: RootEntry) -> Iterator[Pread]:
        """Open a file that was bound over; `base` reads all others."""
        if entry.source is None:
            raise RootError(f"{self.name}: {entry.path}: only its ELF facts are known")
        with entry.source.open("rb", buffering=0) as file:
            yield lambda size, at: os.pread(file.fileno(), size, at)


def _size(source: Path) -> int:
    try:
        return source.stat().st_size
    except OSError as error:
        raise RootError(f"{source}: {error.strerror}") from error
