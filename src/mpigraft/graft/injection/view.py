"""The guest with a graft bound over it, as the loader would see it."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace as replace_fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mpigraft.binary import Elf, OverlayRoot, Resolved, Root, closures, read_elf
from mpigraft.core.model import AbiObject, MpiAbi, Replace, Role
from mpigraft.graft.abi.copies import as_elf
from mpigraft.graft.injection.private_names import Naming
from mpigraft.graft.injection.simulation import Loaded, LoadedByLevel
from mpigraft.knowledge import binding_of

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest

# For each root: its programs without a graft, which are the same for every host MPI.
_BARE: WeakKeyDictionary[Root, dict[tuple[object, ...], LoadedByLevel]] = WeakKeyDictionary()


class CopyPolicy(StrEnum):
    """The side whose copy of a library is loaded, where both bring one."""

    GUEST = "guest"
    HOST = "host"
    PRIVATE = "private"  # both: the host's under another name


class View(Naming):
    """A graft as it grows. `inside` are the files of its `lib`, by needed name; `over` are those
    bound over the guest's files, by path."""

    flags: frozenset[str] | None = None  # of the CPU that is meant; None: any level is

    def __init__(
        self,
        guest: Guest,
        abi: MpiAbi,
        replace: Replace,
        place: str,
        ours: Mapping[str, Path] | None = None,
        opened: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        self.guest, self.abi, self.replace, self.place = guest, abi, replace, place
        self.lib = f"{place}/lib"
        self.ours = {f"{place}/{name}": self._own(path) for name, path in (ours or {}).items()}
        self.subjects = (*guest.label.programs, *guest.libraries, *self.ours)
        # Intel MPI opens its libfabric by name, and that lies where a linked one would.
        offered = {o.soname: o for o in abi.objects if not (o.opened and o.place)}
        super().__init__(abi.objects, offered)
        roles = {Replace.MPI: tuple(Role), Replace.LIBFABRIC: (Role.NET,), Replace.NOTHING: ()}
        plugins = (o for o in abi.objects if o.opened and o.role in roles[replace])
        self.programs = abi.programs if replace is Replace.MPI else ()  # the MPI starts them
        self.plugins = (*plugins, *self.programs)
        self.opened = {} if replace is Replace.MPI else dict(opened or {})
        self.inside: dict[str, AbiObject] = {}
        self.over: dict[str, AbiObject] = {}
        self.choice: dict[
            str, CopyPolicy
        ] = {}  # of names that both sides bring; GUEST is not in it
        self.search = False  # ranks need LD_LIBRARY_PATH, for a name that the guest lacks
        self._facts: dict[tuple[object, ...], Elf] = {}

    def load(self, program: str) -> LoadedByLevel:
        """Simulate the loader for a program in the bare guest, on each level of CPU. Raises
        ElfError or RootError if it cannot be read."""
        environment = dict(self.guest.label.environment)
        if program in self.ours:
            root: Root = OverlayRoot(self.guest.root, self.ours)
            return self._loaded(program, root, environment, self.opened)
        root = self.guest.root
        opened = tuple((name, tuple(paths)) for name, paths in self.opened.items())
        known = _BARE.setdefault(root, {})
        key = (program, self.guest.label.environment, opened, self.flags)
        if key not in known:
            known[key] = self._loaded(program, root, environment, self.opened)
        return known[key]

    def load_all(self) -> tuple[LoadedByLevel, ...]:
        """Simulate the loader for every program, over the graft as it is now. Raises as `load`."""
        environment, opened = self.environment(), self._opened()
        root = OverlayRoot(self.guest.root, self.files(), self.sources())
        return tuple(self._loaded(path, root, environment, opened) for path in self.subjects)

    def _loaded(
        self,
        program: str,
        root: Root,
        environment: Mapping[str, str],
        opened: Mapping[str, Sequence[str]],
    ) -> LoadedByLevel:
        levels = closures(
            program, environment=environment, root=root, opened=opened, flags=self.flags
        )
        main = self.ours.get(program) or self.guest.root.elf(program)
        loaded = {id(rows): Loaded(program, main, rows) for rows in levels.values()}
        return {level: loaded[id(rows)] for level, rows in levels.items()}

    def _opened(self) -> dict[str, Sequence[str]]:
        """Give what the libraries of each side open by name."""
        opened = {name: paths for name, paths in self.opened.items() if name not in self.inside}
        if paths := [self.path_of(p) for p in self.plugins]:
            whole = self.replace is Replace.MPI
            mpis = [n for n in self.offered if (b := binding_of(n)) and b.language == "c"]
            opened |= dict.fromkeys(mpis if whole else ["libfabric.so.1"], paths)
        return opened

    def environment(self) -> dict[str, str]:
        """Give the environment of ranks, as far as the loader reads it."""
        environment = dict(self.guest.label.environment)
        if self.search:
            own = environment.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = f"{self.lib}:{own}" if own else self.lib
        return environment

    def files(self) -> dict[str, Elf]:
        """Give the files by path; one file is one value, since the loader compares inodes."""
        files = {f"{self.lib}/{self.file_name(n)}": self.elf(o) for n, o in self.inside.items()}
        files |= {self.path_of(p): self.elf(p) for p in self.plugins}
        files |= self.ours
        return files | {path: self.elf(library) for path, library in self.over.items()}

    def sources(self) -> dict[str, Path]:
        """Give the files whose bytes the simulated loader reads, besides their facts: glibc's."""
        libraries = {p: Path(o.path) for p, o in self.over.items() if o.role is Role.LIBC}
        return {path: source for path, source in libraries.items() if source.is_file()}

    def elf(self, library: AbiObject) -> Elf:
        """Give the facts of a library's copy. glibc's copies are not edited."""
        key = (library.path, tuple(self.privates()))
        if key not in self._facts:
            libc = library.role is Role.LIBC
            self._facts[key] = as_elf(
                library,
                name=f"{self.place}/{self.name_of(library)}",
                rpath=None if libc else self.lib,
                soname=self.soname(library),
                renamed=dict(self.renamed(library)),
                symbols=dict(self.symbols(library)),
            )
        return self._facts[key]

    def name_of(self, library: AbiObject) -> str:
        """Give the name below the graft folder: lib/libmpi.so.40, lib/openmpi/mca_pml_ob1.so."""
        if library.opened:
            top = "" if library in self.programs else "lib"
            return str(PurePosixPath(top, library.place, PurePosixPath(library.path).name))
        folder = "glibc" if library.role is Role.LIBC else "lib"
        return f"{folder}/{self.soname(library)}"

    def _own(self, path: Path) -> Elf:
        """Read a program of ours: its copy searches the graft first."""
        return replace_fields(read_elf(path), rpath=self.lib, runpath=None)

    def path_of(self, plugin: AbiObject) -> str:
        return f"{self.place}/{self.name_of(plugin)}"

    @cached_property
    def plugin_names(self) -> dict[str, str]:
        """Give {path at which ranks see a plugin: its name}."""
        return {self.path_of(p): PurePosixPath(p.path).name for p in self.plugins}

    def grafted(self, path: PurePath | str) -> bool:
        return posixpath.normpath(path).startswith(f"{self.place}/")

    def paths(self, name: str, loaded: Iterable[Loaded]) -> list[str]:
        """Where programs load a library from. A search path of the host's may lead through the
        graft to a file of the guest's, which has no such folder: the path is without that way."""
        paths = (str(r.path) for p in loaded for r in p.objects if name_of(r) == name and r.path)
        way = f"{self.place}/"
        return sorted({posixpath.normpath(p) if p.startswith(way) else p for p in paths})

    def private(self, name: str) -> bool:
        return self.choice.get(name) is CopyPolicy.PRIVATE

    def privates(self) -> list[str]:
        return [name for name in self.choice if self.private(name)]


def name_of(row: Resolved) -> str:
    """Give the name of a library, which may be needed by its path."""
    own = row.elf.soname if row.elf else None
    return (own or PurePosixPath(row.name).name) if "/" in row.name else row.name
