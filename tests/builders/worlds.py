"""Guests in memory with links in them, and libraries of the host and the guest by their paths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.root import BaseRoot, Link, Pread, RootEntry, RootError, join
from mpigraft.core.model import AbiObject, GuestKind, GuestLabel
from mpigraft.graft.abi.copies import as_elf
from mpigraft.graft.guest.examination import Guest
from tests.builders.guests import APP, a_program, changed, libc, library

LOADER = "/lib64/ld-linux-x86-64.so.2"


class World(BaseRoot):
    """A root of ELF facts and links: {path: facts}, {path: target}. Of the files in `contents` the
    bytes are known too."""

    name = "world"

    def __init__(
        self,
        files: Mapping[str, Elf],
        links: Mapping[str, str] | None = None,
        contents: Mapping[str, bytes] | None = None,
    ) -> None:
        super().__init__()
        self.contents = dict(contents or {})
        self.facts = {path: changed(facts, name=path) for path, facts in files.items()}
        self.links = dict(links or {})
        self.folders: set[str] = {"/"}
        for path in (*self.facts, *self.links):
            while path := path.rpartition("/")[0]:
                self.folders.add(path)
        self.numbers = {path: number for number, path in enumerate(self.facts)}

    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        path = join(folder, name)
        if path in self.links:
            return Link(self.links[path])
        if path in self.facts:
            return RootEntry(path, "file", 1, 0o755, (1, self.numbers[path]))
        return (
            RootEntry(path, "folder", 0, 0o755, (2, hash(path))) if path in self.folders else None
        )

    def _list(self, folder: str) -> list[str]:
        paths = (*self.facts, *self.links, *self.folders)
        return [p.rpartition("/")[2] for p in paths if (p.rpartition("/")[0] or "/") == folder]

    def _opened(self, entry: RootEntry) -> AbstractContextManager[Pread]:
        data = self.contents.get(entry.path)
        if data is None:
            raise RootError(f"{entry.path}: only its facts are known")
        return nullcontext(lambda size, offset: data[offset : offset + size])

    def elf(self, path: str) -> Elf:
        entry = self.find(path)
        if entry is None or entry.kind != "file":
            raise ElfError(f"{path}: no file is there") from FileNotFoundError(path)
        return self.facts[entry.path]


def files_of(*libraries: AbiObject) -> dict[str, Elf]:
    """Libraries of a guest, each at its path."""
    return {o.path: as_elf(o, name=o.path) for o in libraries}


def a_world(
    programs: Mapping[str, Elf] | Elf,
    *libraries: AbiObject,
    links: Mapping[str, str] | None = None,
    environment: Mapping[str, str] | None = None,
    modules: Iterable[str] = (),
    loader: bytes = b"",
) -> Guest:
    """A guest with these programs and libraries, and a libc unless one is among them. `loader` are
    the bytes of its loader; without them it searches the usual folders on any CPU."""
    found = programs if isinstance(programs, Mapping) else {APP: programs}
    if not any(o.soname == "libc.so.6" for o in libraries):
        libraries = (*libraries, libc())
    if loader:
        libraries = (*libraries, at(LOADER, "ld-linux-x86-64.so.2"))
    root = World({**found, **files_of(*libraries)}, links, {LOADER: loader} if loader else None)
    label = GuestLabel(
        "world", GuestKind.SIF, "/images/world.sif", "d" * 64, "x86_64", "Debian", "2.36",
        tuple(found), tuple((environment or {}).items()),
    )  # fmt: skip
    return Guest(label, root, tuple(modules))


def at(path: str, soname: str, **facts: object) -> AbiObject:
    return library(soname, **{"path": path, **facts})


def needing(*needed: str, **facts: object) -> Elf:
    """A program that needs these and libc."""
    return a_program(needed, **facts)


def host(soname: str, **facts: object) -> AbiObject:
    """A library of the host."""
    return library(soname, **{"path": f"/host/lib/{soname}", "digest": soname.ljust(64), **facts})
