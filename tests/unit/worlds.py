"""Guests in memory with links in them, and what an injection did to one, in a few words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

from mpigraft.abi_elf import as_elf
from mpigraft.elf import Elf, ElfError
from mpigraft.guest import Guest
from mpigraft.injection import Choice, Injection, Simulated, inject
from mpigraft.model import AbiObject, Copy, GuestKind, GuestLabel, MpiAbi, Replace
from mpigraft.root import Entry, RootError
from mpigraft.roots import Link, Pread, Walked, join
from tests.unit.checked import APP, LIB, PLACE, a_program, changed, libc, library

GRAFT = f"{PLACE}/lib"


class World(Walked):
    """A root of ELF facts and links: {path: facts}, {path: target}."""

    name = "world"

    def __init__(self, files: Mapping[str, Elf], links: Mapping[str, str] | None = None) -> None:
        super().__init__()
        self.facts = {path: changed(facts, name=path) for path, facts in files.items()}
        self.links = dict(links or {})
        self.folders: set[str] = {"/"}
        for path in (*self.facts, *self.links):
            while path := path.rpartition("/")[0]:
                self.folders.add(path)
        self.numbers = {path: number for number, path in enumerate(self.facts)}

    def look(self, folder: str, name: str) -> Entry | Link | None:
        path = join(folder, name)
        if path in self.links:
            return Link(self.links[path])
        if path in self.facts:
            return Entry(path, "file", 1, 0o755, (1, self.numbers[path]))
        return Entry(path, "folder", 0, 0o755, (2, hash(path))) if path in self.folders else None

    def _list(self, folder: str) -> list[str]:
        paths = (*self.facts, *self.links, *self.folders)
        return [p.rpartition("/")[2] for p in paths if (p.rpartition("/")[0] or "/") == folder]

    def _opened(self, entry: Entry) -> AbstractContextManager[Pread]:
        raise RootError(f"{entry.path}: only its facts are known")

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
) -> Guest:
    """A guest with these programs and libraries, and a libc unless one is among them."""
    found = programs if isinstance(programs, Mapping) else {APP: programs}
    if not any(o.soname == "libc.so.6" for o in libraries):
        libraries = (*libraries, libc())
    root = World({**found, **files_of(*libraries)}, links)
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


def grafted(
    guest: Guest,
    abi: MpiAbi,
    *,
    replace: Replace = Replace.MPI,
    glibc: bool = True,
    opened: Mapping[str, tuple[str, ...]] | None = None,
) -> Injection:
    return inject(guest, abi, replace=replace, place=PLACE, glibc=glibc, opened=opened)


# ------------------------------------------------------------------ what was done


def over(found: Injection) -> dict[str, str]:
    """{path inside: name of what lies over it}."""
    return {b.target: b.source.removeprefix("{graft}/") for b in found.binds}


def copies(found: Injection) -> dict[str, Copy]:
    return {copy.name: copy for copy in found.copies}


def choices(found: Injection) -> dict[str, Choice]:
    return {one.soname: one.choice for one in found.collisions}


def only(found: Injection) -> Simulated:
    (one,) = found.programs
    return one


def loads(found: Injection, program: int = 0) -> dict[str, str]:
    """{name asked for: path} of what ranks load."""
    return {r.name: str(r.path) for r in found.programs[program].after if r.path}


def search(found: Injection) -> str:
    return next((r.value or "" for r in found.environment if r.name == "LD_LIBRARY_PATH"), "")


def lacks(found: Injection) -> Iterator[str]:
    """All that the loader would still miss."""
    for one in found.programs:
        yield from (u.node for u in one.unmet)
        yield from (u.symbol for u in one.unbound)
        yield from (r.name for r in one.missing)


def host(soname: str, **facts: object) -> AbiObject:
    """A library of the host."""
    return library(soname, **{"path": f"/host/lib/{soname}", "digest": soname.ljust(64), **facts})


__all__ = [
    "APP", "GRAFT", "LIB", "PLACE", "World", "a_world", "at", "choices", "copies", "files_of",
    "grafted", "host", "lacks", "libc", "library", "loads", "needing", "only", "over", "search",
]  # fmt: skip
