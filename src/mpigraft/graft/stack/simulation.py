"""Simulate the stack's own loader for its programs, without an override and with one in place.

Programs that need the same names and search the same folders have the same libraries: these are
resolved once, and each file is read once for all programs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePath
from types import MappingProxyType

from mpigraft.binary import (
    HERE,
    Elf,
    FolderRoot,
    MaskedRoot,
    OverlayRoot,
    Resolved,
    Root,
    Rule,
    closures,
)
from mpigraft.core.model import MpiAbi, Role
from mpigraft.graft.guest.own_mpi import find_own_mpi
from mpigraft.graft.injection.private_names import PrivateNames
from mpigraft.graft.injection.simulation import (
    Loaded,
    LoadedByLevel,
    SimulatedProgram,
    compare_levels,
)
from mpigraft.graft.stack.places import below
from mpigraft.graft.stack.values import LibraryChange, Slot, StackProgram
from mpigraft.knowledge import is_libmpi, network_library_of, role_of

ORIGIN = re.compile(r"\$(\{ORIGIN\}|ORIGIN(?![A-Za-z0-9_]))")

OF_NETWORK = re.compile(r"ofi|ucx|libfabric")  # plugins of an MPI that need libfabric or UCX
KEPT = 512  # ELF files: programs of a module share their libraries, those of others follow
CLOSURES = 512

Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class StackSimulation:
    """One program under its loader, without and with an override in place."""

    program: StackProgram
    loading: SimulatedProgram  # on the CPU that is meant
    elsewhere: tuple[SimulatedProgram, ...]  # on CPUs whose loader takes other files
    libmpi: str  # that it would load; empty: none
    injected: bool  # it is the override's
    changes: tuple[LibraryChange, ...]  # of libraries that are no part of an MPI
    broken: tuple[str, ...]  # libraries that it lacks without the override too


class PlannedOverride:
    """An override as it would be: its files, by the paths at which programs find them. With an
    `environment` it is no override: programs find the MPI in place, by these variables."""

    def __init__(
        self,
        slot: Slot,
        abi: MpiAbi,
        files: Mapping[str, Elf],
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.slot, self.abi, self.files, self.environment = slot, abi, files, environment
        self.names = PrivateNames(abi.objects, {o.soname: o for o in abi.objects})
        self.part = network_library_of(abi.objects[0].soname)  # libfabric or ucx; empty: an MPI
        self.public = [path for path in files if os.path.dirname(path) in slot.folders]  # noqa: PTH120
        self.plugin_names: Mapping[str, str] = {}

    @property
    def plugins(self) -> list[str]:
        """The paths of what the MPI, libfabric or UCX opens by name."""
        opened = [o for o in self.abi.objects if o.opened and o.place]
        ends = tuple(f"/{o.place}/{os.path.basename(o.path)}" for o in opened)  # noqa: PTH119
        return [path for path in self.files if path.endswith(ends)] if ends else []

    @cached_property
    def in_place(self) -> frozenset[str]:
        """Give the files of an MPI in place."""
        paths = (one.path for one in self.abi.objects) if self.environment else ()
        return frozenset(map(os.path.realpath, paths))

    def over(self, base: Root) -> Root:
        """Give this machine with the override in place."""
        own = [] if self.environment else [self.slot.path]
        return OverlayRoot(MaskedRoot(base, own), self.files)

    def grafted(self, path: PurePath | str) -> bool:
        if self.environment:
            return os.path.realpath(path) in self.in_place
        return below(str(path), (self.slot.path,))


class Simulator:
    """The loader over one stack's programs. `slots`: all overrides of the stack, which count as
    empty where the stack is meant as it was built. `flags` are those of the CPU that is meant."""

    def __init__(
        self,
        slots: Sequence[Slot],
        override: PlannedOverride,
        base: Root | None = None,
        flags: frozenset[str] | None = None,
    ) -> None:
        self.flags = flags
        self.override = override
        if base is None:
            base = FolderRoot(Path("/"))
            base.elves = KEPT
        hidden = [] if override.environment else [slot.path for slot in slots]
        self.bare = MaskedRoot(base, hidden)
        self.injected = override.over(base)
        self._closures: dict[tuple[bool, Key], dict[str, tuple[Resolved, ...]]] = {}

    def simulate(self, program: StackProgram) -> StackSimulation:
        """Simulate one program. Raises ElfError for one that cannot be read."""
        main = self.bare.elf(program.path)
        if program.opens:  # dlopen searches where the loader does for what a program needs
            main = replace(main, needed=(*main.needed, *program.mpi))
        before, after = (
            self._load(root, program.path, main, opens=program.opens)
            for root in (self.bare, self.injected)
        )
        levels = list(compare_levels(before, after, self.override))
        loading = next((one for one in levels if HERE in one.levels), levels[0])
        levels.remove(loading)
        broken = tuple(
            r.name
            for r in loading.before
            if r.path is None and not self.override.names.is_mpi(r.name)
        )
        kept = tuple(r for r in loading.after if r.path is not None or r.name not in broken)
        libmpi = next((r for r in loading.after if r.path and is_libmpi(r.soname, r.name)), None)
        return StackSimulation(
            program=program,
            loading=replace(loading, after=kept),
            elsewhere=tuple(levels),
            libmpi=str(libmpi.path) if libmpi else "",
            injected=self._injected(loading, libmpi),
            changes=tuple(self._changes(loading)),
            broken=broken,
        )

    def closed(self, program: StackProgram) -> tuple[tuple[str, str], ...]:
        """Give (plugin, why) of what is injected and cannot be opened in a program, which the
        loader finds under the stack's glibc and search paths."""
        main, opener = self.bare.elf(program.path), self.override.abi.objects[0].soname
        rows = closures(
            program.path,
            environment=self.override.environment,
            root=OverlayRoot(
                self.injected, {program.path: replace(main, needed=(*main.needed, opener))}
            ),
            opened={opener: self.override.plugins},
            flags=self.flags,
        )
        by_level = {id(level): level for level in rows.values()}.values()
        opened = (r for level in by_level for r in level if r.rule is Rule.OPENED and r.problem)
        return tuple(sorted({str(r.path): r.problem for r in opened}.items()))

    def _injected(self, loading: SimulatedProgram, libmpi: Resolved | None) -> bool:
        """Return whether a program would load what is injected: the MPI, or a library below its
        own."""
        rows = loading.after if self.override.part else ((libmpi,) if libmpi else ())
        return any(r.path is not None and self.override.grafted(r.path) for r in rows)

    def _opened(self, path: str) -> Mapping[str, Sequence[str]]:
        """Give what a program's own MPI opens by name and needs libfabric or UCX."""
        if not self.override.part:
            return {}
        own = find_own_mpi(self.bare, (path,), {})
        opened = {
            opener: [one for one in paths if OF_NETWORK.search(PurePath(one).name)]
            for opener, paths in (own.plugins if own else ())
            if not network_library_of(opener)
        }
        return {opener: paths for opener, paths in opened.items() if paths}

    def _load(self, root: Root, path: str, main: Elf, *, opens: bool) -> LoadedByLevel:
        key = root is self.bare, _key(path, main)
        if key not in self._closures:
            if len(self._closures) >= CLOSURES:
                self._closures.pop(next(iter(self._closures)))
            self._closures[key] = closures(
                path,
                environment={} if root is self.bare else self.override.environment,
                root=OverlayRoot(root, {path: main}) if opens else root,
                opened=self._opened(path),
                flags=self.flags,
            )
        known = self._closures[key]
        loaded = {id(r): Loaded(path, main, _needed_by(path, main, r)) for r in known.values()}
        return {level: loaded[id(rows)] for level, rows in known.items()}

    def _changes(self, loading: SimulatedProgram) -> list[LibraryChange]:
        """List the libraries that are other files. What only the stack's own MPI needed goes with
        it, and what the host's needs comes with that: these are no changes."""
        now = {r.name: r for r in loading.after}
        of_mpi = (Role.MPI, Role.NET)
        users = [r.elf for r in loading.before if r.elf and role_of(r.name) not in of_mpi]
        needed = {name for elf in (loading.main, *users) for name in elf.needed}
        changes = []
        for r in loading.before:
            own = Role.NET if self.override.part else Role.MPI
            gone = r.path is None or role_of(r.name) in (Role.MPI, own) or r.name not in now
            if gone or (role_of(r.name) is Role.NET and r.name not in needed):
                continue
            other = now[r.name].path
            if other != r.path and not self._same(str(r.path), str(other or "")):
                changes.append(LibraryChange(r.name, str(r.path), str(other or "")))
        return changes

    def _same(self, path: str, other: str) -> bool:
        one, two = self.bare.find(path), self.injected.find(other) if other else None
        return one is not None and two is not None and one.identity == two.identity


def _needed_by(path: str, main: Elf, known: tuple[Resolved, ...]) -> tuple[Resolved, ...]:
    """Give what was resolved for a program that needs the same as needed by this one."""
    if all(r.path for r in known):  # as they are: others count lists that are the same
        return known
    own = Path(path)
    first = next((r.needed_by for r in known if r.name in main.needed), own)
    if first == own:
        return known
    return tuple(replace(r, needed_by=own) if r.needed_by == first else r for r in known)


def _key(path: str, main: Elf) -> Key:
    """Return all that decides which libraries a file gets, besides the files themselves."""
    folder = path.rpartition("/")[0]
    rpath, runpath = (ORIGIN.sub(folder, text or "") for text in (main.rpath, main.runpath))
    flags = main.flags_1, main.machine, main.bits, main.interpreter
    return (main.needed, rpath, runpath, main.runpath is None, *flags)
