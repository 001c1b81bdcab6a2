"""What roots share that show another root with changes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.root import BaseRoot, ImageConfig, Pread, Root, RootEntry, RootError


class LayeredRoot(BaseRoot):
    """`base` with changes: what is not changed comes from `base`, which reads its own files."""

    def __init__(self, base: Root) -> None:
        super().__init__()
        self.base = base
        self.name = base.name

    @abstractmethod
    def _elf(self, path: str) -> Elf:
        """Read the file at a canonical path, in the root that it belongs to."""

    def elf(self, path: str) -> Elf:
        entry = self.find(path)
        if entry is None or entry.kind != "file":
            raise ElfError(f"{path}: no file is there") from FileNotFoundError(path)
        return self._elf(entry.path)

    @contextmanager
    def _opened(self, entry: RootEntry) -> Iterator[Pread]:
        raise RootError(f"{self.name}: {entry.path}: read by the root that it belongs to")
        yield  # a generator, as its kind has it

    def unread(self) -> tuple[str, ...]:
        return self.base.unread()

    def config(self) -> ImageConfig:
        return self.base.config()
