"""The files among which a suite's programs are looked for: this machine's, or those that ranks in a
guest see."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from mpigraft.binary import BoundRoot, FolderRoot, Link, Root, RootError
from mpigraft.core import env
from mpigraft.core.model import MpiInstall, Scope

MAX_PROGRAM = 1 << 28  # bytes of a program that are read for its option strings
USUAL_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True, eq=False, slots=True)
class RankFiles:
    """A file system as ranks see it. Paths are absolute, as ranks name them."""

    root: Root
    path: tuple[str, ...]  # folders of PATH
    guest: str = ""  # its name; empty: this machine
    bound: Mapping[str, Path] = field(default_factory=dict)  # what a guest is given to see

    @classmethod
    def of_host(cls, root: FolderRoot, mpi: MpiInstall) -> RankFiles:
        """Return this machine's: first the folders of the MPI's modules, then this process's."""
        environment = env.apply(dict(os.environ), mpi.environment, Scope.LAUNCHER, Scope.RANK)
        folders = environment.get("PATH", "").split(os.pathsep)
        return cls(root, tuple(str(Path(folder).absolute()) for folder in folders if folder))

    @classmethod
    def inside(
        cls, root: Root, name: str, shared: Mapping[str, Path], folders: Iterable[str]
    ) -> RankFiles:
        """Return those of a guest, in which ranks see the folders `shared` anyway. Of `folders`,
        those that it lacks and this machine has are bound into it, by paths without links."""
        guest = BoundRoot(root, shared)
        real = {text: Path(text).resolve() for text in folders if guest.find(text) is None}
        bound = {
            str(path): path
            for path in real.values()
            if path.is_dir() and guest.find(str(path)) is None
        }
        own = dict(root.config().environment).get("PATH") or USUAL_PATH
        path = tuple(folder for folder in own.split(":") if folder.startswith("/"))
        return cls(BoundRoot(root, {**shared, **bound}), path, name, bound)

    def with_path(self, folders: tuple[str, ...]) -> RankFiles:
        """Return the same with another PATH; unchanged where there is none."""
        return replace(self, path=folders) if folders else self

    def folder(self, path: str) -> str:
        """Return a folder's path as ranks see it: a link of this machine may lead nowhere in a
        guest."""
        real = str(Path(path).resolve())
        return real if self.binds_of([f"{real}/"]) else path

    def is_folder(self, path: str) -> bool:
        entry = self.root.find(path)
        return entry is not None and entry.kind == "folder"

    def is_file(self, path: str) -> bool:
        entry = self.root.find(path)
        return entry is not None and entry.kind == "file"

    def is_program(self, path: str) -> bool:
        entry = self.root.find(path)
        return entry is not None and entry.kind == "file" and bool(entry.mode & 0o111)

    def which(self, name: str) -> str | None:
        """Return the first program of a name in PATH."""
        paths = (f"{folder}/{name}" for folder in self.path)
        return next((path for path in paths if self.is_program(path)), None)

    def read(self, path: str) -> bytes:
        """Read the beginning of a file; nothing of one that cannot be read."""
        try:
            return self.root.read(path, MAX_PROGRAM)
        except (OSError, RootError):
            return b""

    def below(self, folder: str) -> Iterator[str]:
        """Yield every file below a folder; links to folders are not followed."""
        entry = self.root.find(folder)
        yield from self._below(folder.rstrip("/"), entry.path if entry else "")

    def _below(self, spelled: str, canonical: str) -> Iterator[str]:
        for name in self.root.names(canonical) if canonical else ():
            one = self.root.entry_in(canonical, name)
            if one is None:
                continue
            if not isinstance(one, Link) and one.kind == "folder":
                yield from self._below(f"{spelled}/{name}", one.path)
            else:
                yield f"{spelled}/{name}"

    def binds_of(self, words: Iterable[str]) -> tuple[str, ...]:
        """Return the bound folders that have files of a command."""
        words = tuple(words)
        return tuple(
            folder
            for folder in self.bound
            if any(word.startswith(f"{folder.rstrip('/')}/") for word in words)
        )
