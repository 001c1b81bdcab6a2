"""Decide which files of a host MPI go under a guest: simulate the loader until all fits.

There is no table of known problems: the loader is simulated for the guest's programs, over the
guest with the graft bound over it, and what it would miss tells what else has to go in.
Network and MPI libraries are always the host's. Others stay the guest's as long as they have what
the host's libraries need of them (version nodes and symbols); else the host's go over them where
these have what the guest's programs need; else the host's libraries get private copies under
other names. glibc stays the guest's unless it is too old: then all of the host's goes in, since
its parts share private symbols.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mpigraft.binary import Rule
from mpigraft.core.model import Bind, Copy, EnvRow, MpiAbi, Replace, Role, Scope
from mpigraft.graft.injection.fixpoint import Growth
from mpigraft.graft.injection.simulation import (
    Loaded,
    LoadedByLevel,
    SimulatedProgram,
    brought_by,
    compare_levels,
    distinct,
)
from mpigraft.graft.injection.view import CopyPolicy, name_of
from mpigraft.knowledge import binding_of

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest

LD_CACHE = "/etc/ld.so.cache"
MAX_STEPS = 1000
NOWHERE = "/.mpigraft"  # of a graft that has no file


@dataclass(frozen=True, slots=True)
class Collision:
    """A soname that both sides bring."""

    soname: str
    guest: str  # path inside
    host: str  # path on the host
    choice: CopyPolicy
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GraftContents:
    """What goes in, where, and the loader's simulation with it."""

    replace: Replace
    place: str
    copies: tuple[Copy, ...] = ()
    binds: tuple[Bind, ...] = ()
    environment: tuple[EnvRow, ...] = ()
    glibc: bool = False  # the host's set goes in
    glibc_lacking: tuple[str, ...] = ()  # nodes that the guest's glibc lacks: GLIBC_2.38
    programs: tuple[SimulatedProgram, ...] = ()
    collisions: tuple[Collision, ...] = ()
    absent: tuple[tuple[str, str], ...] = ()  # (soname, needed by): no name of it on the host
    closed: tuple[tuple[str, str], ...] = ()  # (plugin, why it cannot be opened)
    libmpi: str  # path inside of the libmpi that ranks map
    libmpi_elsewhere: tuple[str, ...] = ()  # its other paths, on CPUs of other levels
    inputs: tuple[str, ...] = ()  # files that were read, of the host and of a folder on it
    files: frozenset[str] = frozenset()  # the host's, where they stay: none lies at `place`

    def of_host(self, path: object) -> bool:
        """Whether ranks see a file of the host's MPI there."""
        return str(path).startswith(f"{self.place}/") or str(path) in self.files


def decide_contents(
    guest: Guest,
    abi: MpiAbi,
    *,
    replace: Replace,
    place: str,
    glibc: bool = True,
    binds: bool = True,
    ours: Mapping[str, Path] | None = None,
    opened: Mapping[str, Sequence[str]] | None = None,
    flags: Collection[str] | None = None,
) -> GraftContents:
    """Decide what of `abi` goes under `guest`, whose ranks see the graft folder at `place`.

    `glibc` False keeps the guest's glibc, and what it lacks stays in `unmet`. The answer is always
    complete; `check` judges whether it works. `binds` False: the engine binds nothing over the
    guest's files. `ours` are programs of ours that go in too, {name below the graft folder: file},
    and must run like the guest's. `opened` is what the guest's own MPI opens by name, where that
    stays: {opener: paths inside}. `flags` are those of the CPU that is meant. What goes in fits
    every CPU: the loader is simulated on each level that it tells apart.
    Raises ElfError or RootError for a program that cannot be read.
    """
    growth = Growth(guest, abi, replace, place, ours, opened)
    growth.allow_glibc, growth.binds = glibc and binds, binds
    growth.flags = None if flags is None else frozenset(flags)
    bare = tuple(growth.load(path) for path in growth.subjects)
    before = distinct(bare)
    growth.begin(before)
    by_level, after = bare, before
    for _ in range(MAX_STEPS):
        by_level = growth.load_all()
        after = distinct(by_level)
        if not growth.improve(after):
            break
    pairs = zip(bare, by_level, strict=True)
    programs = tuple(one for b, a in pairs for one in compare_levels(b, a, growth))
    paths = _libmpis(growth, by_level)
    return GraftContents(
        replace=replace,
        place=place,
        copies=_copies(growth),
        binds=_binds(growth),
        environment=_environment(growth),
        glibc=growth.libc,
        glibc_lacking=tuple(sorted(growth.lacking, key=_by_number)),
        programs=programs,
        collisions=tuple(_collisions(growth, after)),
        absent=tuple(sorted(growth.absent.items())),
        closed=tuple(sorted(_closed(growth, after).items())),
        libmpi=next(iter(paths), ""),
        libmpi_elsewhere=paths[1:],
        inputs=tuple(sorted(_inputs(growth, (*before, *after)))),
    )


def describe_bare_guest(guest: Guest, abi: MpiAbi, replace: Replace) -> GraftContents:
    """Describe the programs of a guest as they are, without a file of the host's. Raises as
    `decide_contents` does."""
    growth = Growth(guest, abi, replace, NOWHERE)
    loaded = [growth.load(path) for path in growth.subjects]
    programs = tuple(each for one in loaded for each in compare_levels(one, one, growth))
    return GraftContents(replace=replace, place=NOWHERE, programs=programs, libmpi="")


def _by_number(node: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", node))


# ------------------------------------------------------------------ what the loader would say


def _closed(growth: Growth, after: Sequence[Loaded]) -> dict[str, str]:
    """Give the plugins that could not be opened, each with the first reason."""
    reasons: dict[str, str] = {}
    for process in after:
        brought = brought_by(growth, process)
        for r in process.objects:
            if r.rule is Rule.OPENED and r.problem and str(r.path) in brought:
                reasons.setdefault(brought[str(r.path)], r.problem)
        for need in process.unmet:
            if need.by in brought:
                reasons.setdefault(brought[need.by], f"{need.library} lacks {need.node}")
    return reasons


def _collisions(growth: Growth, after: Sequence[Loaded]) -> Iterator[Collision]:
    """Yield names that both sides bring, and whose copy the ranks load."""
    paths = dict(growth.guests)
    for process in after:
        for r in process.objects:
            if r.path and not growth.grafted(r.path) and str(r.path) not in growth.over:
                paths.setdefault(name_of(r), str(r.path))
    for name, path in sorted(paths.items()):
        library = growth.inside.get(name) or growth.offered.get(name)
        if library is None or library.role is Role.LIBC:
            continue
        choice = growth.choice.get(name)
        if choice is None:
            choice = CopyPolicy.HOST if name in growth.inside else CopyPolicy.GUEST
        yield Collision(name, path, library.path, choice, _why(choice, library.role))


def _why(choice: CopyPolicy, role: Role) -> str:
    if choice is CopyPolicy.PRIVATE:
        return "neither has all that the other side needs: the host's copy gets a name of its own"
    if choice is CopyPolicy.GUEST:
        return "it has all that the host's libraries need"
    if role in (Role.MPI, Role.NET):
        return "it is part of the MPI, or drives this machine's network"
    return "the guest's lacks what the host's libraries need"


def _libmpis(growth: Growth, programs: Sequence[LoadedByLevel]) -> tuple[str, ...]:
    """Give the path inside at which ranks map their libmpi, then those at which they map it on
    CPUs of other levels. The graft's comes before the guest's own, which programs that do not fit
    would load."""
    paths = [tuple(dict.fromkeys(_libmpi(growth, x) for x in p.values())) for p in programs]
    mapped = [path for path in paths if path[0]]
    ours = [path for path in mapped if growth.grafted(path[0]) or path[0] in growth.over]
    return tuple(filter(None, next(iter((*ours, *mapped)), ())))


def _libmpi(growth: Growth, process: Loaded) -> str:
    """Give the path inside of the libmpi that a program maps; empty: none."""
    for r in process.objects:
        binding = binding_of(name_of(r))
        if binding and binding.language == "c" and r.path:
            entry = growth.guest.root.find(str(r.path))
            return entry.path if entry else str(r.path)
    return ""


# ------------------------------------------------------------------ what goes in


def _copies(growth: Growth) -> tuple[Copy, ...]:
    """List every file of the graft's `lib`, and of glibc where it goes in."""
    files = {}
    for name, library in growth.inside.items():
        files[f"lib/{growth.file_name(name)}"] = library
    for plugin in growth.plugins:
        files[growth.name_of(plugin)] = plugin
    for library in growth.over.values():
        files.setdefault(growth.name_of(library), library)
    return tuple(
        Copy(
            source=library.path,
            name=name,
            digest=library.digest,
            edit=library.role is not Role.LIBC,
            rpath="" if library.role is Role.LIBC else growth.lib,
            soname=growth.soname(library) if growth.private(library.soname) else "",
            renamed=growth.renamed(library),
            symbols=() if library.role is Role.LIBC else growth.symbols(library),
        )
        for name, library in sorted(files.items())
    )


def _binds(growth: Growth) -> tuple[Bind, ...]:
    return tuple(
        Bind(
            source=f"{{graft}}/{growth.name_of(library)}",
            target=path,
            why=f"the guest's loader takes {library.soname} from here",
        )
        for path, library in sorted(growth.over.items())
    )


def _environment(growth: Growth) -> tuple[EnvRow, ...]:
    if not growth.search:
        return ()
    value = growth.environment()["LD_LIBRARY_PATH"]
    return (EnvRow("LD_LIBRARY_PATH", value, Scope.RANK, "plan"),)


def _inputs(growth: Growth, loaded: Sequence[Loaded]) -> Iterator[str]:
    for library in growth.abi.objects:
        yield library.path
    cache = growth.guest.root.find(LD_CACHE)  # installing a library changes it
    if cache and cache.source:
        yield str(cache.source)
    for process in loaded:
        paths = (process.program, *(str(r.path) for r in process.objects if r.path))
        for path in paths:
            entry = growth.guest.root.find(path)
            if entry and entry.source:
                yield str(entry.source)
