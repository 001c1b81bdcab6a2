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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpigraft.binary import Rule
from mpigraft.core.model import Bind, Copy, EnvRow, MpiAbi, Replace, Role, Scope
from mpigraft.graft.injection.fixpoint import (
    CopyPolicy,
    GraftRequest,
    GraftState,
    begin,
    copy_name,
    improve,
    load_bare,
    load_grafted,
    name_of,
    rank_environment,
)
from mpigraft.graft.injection.simulation import (
    Loaded,
    LoadedByLevel,
    SimulatedProgram,
    brought_by,
    compare_levels,
    distinct,
)
from mpigraft.knowledge import is_libmpi

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
    files: frozenset[str] = frozenset()  # the host's, where they stay: none is at `place`

    def of_host(self, path: object) -> bool:
        """Return whether ranks see a file of the host's MPI there."""
        return str(path).startswith(f"{self.place}/") or str(path) in self.files


def decide_contents(guest: Guest, abi: MpiAbi, request: GraftRequest) -> GraftContents:
    """Decide what of `abi` goes under `guest`.

    The answer is always complete; `check` decides whether it works. Our programs go in too, and
    must run like the guest's. What goes in fits every CPU: the loader is simulated on each level
    that it distinguishes. Raises ElfError or RootError for a program that cannot be read.
    """
    state = GraftState(guest, abi, request)
    bare = tuple(load_bare(state, path) for path in state.subjects)
    before = distinct(bare)
    begin(state, before)
    by_level, after = bare, before
    for _ in range(MAX_STEPS):
        by_level = load_grafted(state)
        after = distinct(by_level)
        if not improve(state, after):
            break
    pairs = zip(bare, by_level, strict=True)
    paths = _libmpis(state, by_level)
    return GraftContents(
        replace=request.replace,
        place=request.place,
        copies=_copies(state),
        binds=_binds(state),
        environment=_environment(state),
        glibc=state.libc,
        glibc_lacking=tuple(sorted(state.lacking, key=node_numbers)),
        programs=tuple(one for b, a in pairs for one in compare_levels(b, a, state)),
        collisions=tuple(_collisions(state, after)),
        absent=tuple(sorted(state.absent.items())),
        closed=tuple(sorted(_closed(state, after).items())),
        libmpi=next(iter(paths), ""),
        libmpi_elsewhere=paths[1:],
        inputs=tuple(sorted(_inputs(state, (*before, *after)))),
    )


def describe_bare_guest(guest: Guest, abi: MpiAbi, replace: Replace) -> GraftContents:
    """Describe the programs of a guest as they are, without a file of the host's. Raises as
    `decide_contents` does."""
    state = GraftState(guest, abi, GraftRequest(replace=replace, place=NOWHERE))
    loaded = [load_bare(state, path) for path in state.subjects]
    programs = tuple(each for one in loaded for each in compare_levels(one, one, state))
    return GraftContents(replace=replace, place=NOWHERE, programs=programs, libmpi="")


def keep_mpi(
    place: str,
    libmpi: str,
    *,
    replace: Replace = Replace.NOTHING,
    elsewhere: Sequence[str] = (),
    preloads: Sequence[str] = (),
    inputs: Iterable[str] = (),
) -> GraftContents:
    """Describe a graft under which the MPI that is there stays, at `libmpi`: no library of the
    host's goes in. `replace`: what was replaced before, as in a stack."""
    preload = EnvRow("LD_PRELOAD", ":".join(preloads), Scope.RANK, "plan")
    return GraftContents(
        replace=replace,
        place=place,
        environment=(preload,) if preloads else (),
        libmpi=libmpi,
        libmpi_elsewhere=tuple(elsewhere),
        inputs=tuple(inputs),
    )


def node_numbers(node: str) -> tuple[int, ...]:
    """Give the numbers of a version node, by which it is newer than others."""
    return tuple(int(n) for n in re.findall(r"\d+", node))


# ------------------------------------------------------------------ what the loader would say


def _closed(state: GraftState, after: Sequence[Loaded]) -> dict[str, str]:
    """Give the plugins that could not be opened, each with the first reason."""
    reasons: dict[str, str] = {}
    for process in after:
        brought = brought_by(state, process)
        for r in process.objects:
            if r.rule is Rule.OPENED and r.problem and str(r.path) in brought:
                reasons.setdefault(brought[str(r.path)], r.problem)
        for need in process.unmet:
            if need.by in brought:
                reasons.setdefault(brought[need.by], f"{need.library} lacks {need.node}")
    return reasons


def _collisions(state: GraftState, after: Sequence[Loaded]) -> Iterator[Collision]:
    """Yield names that both sides bring, and whose copy the ranks load."""
    paths = dict(state.guests)
    for process in after:
        for r in process.objects:
            if r.path and not state.grafted(r.path) and str(r.path) not in state.over:
                paths.setdefault(name_of(r), str(r.path))
    for name, path in sorted(paths.items()):
        library = state.inside.get(name) or state.offered.get(name)
        if library is None or library.role is Role.LIBC:
            continue
        choice = state.choice.get(name)
        if choice is None:
            choice = CopyPolicy.HOST if name in state.inside else CopyPolicy.GUEST
        yield Collision(name, path, library.path, choice, _why(choice, library.role))


def _why(choice: CopyPolicy, role: Role) -> str:
    if choice is CopyPolicy.PRIVATE:
        return "neither has all that the other side needs: the host's copy gets a name of its own"
    if choice is CopyPolicy.GUEST:
        return "it has all that the host's libraries need"
    if role in (Role.MPI, Role.NET):
        return "it is part of the MPI, or drives this machine's network"
    return "the guest's lacks what the host's libraries need"


def _libmpis(state: GraftState, programs: Sequence[LoadedByLevel]) -> tuple[str, ...]:
    """Give the path inside at which ranks map their libmpi, then those at which they map it on
    CPUs of other levels. The graft's comes before the guest's own, which programs that do not fit
    would load."""
    paths = [tuple(dict.fromkeys(_libmpi(state, x) for x in p.values())) for p in programs]
    mapped = [path for path in paths if path[0]]
    ours = [path for path in mapped if state.grafted(path[0]) or path[0] in state.over]
    return tuple(filter(None, next(iter((*ours, *mapped)), ())))


def _libmpi(state: GraftState, process: Loaded) -> str:
    """Give the path inside of the libmpi that a program maps; empty: none."""
    for r in process.objects:
        if is_libmpi(name_of(r)) and r.path:
            entry = state.guest.root.find(str(r.path))
            return entry.path if entry else str(r.path)
    return ""


# ------------------------------------------------------------------ what goes in


def _copies(state: GraftState) -> tuple[Copy, ...]:
    """List every file of the graft's `lib`, and of glibc where it goes in."""
    files = {}
    for name, library in state.inside.items():
        files[f"lib/{state.names.file_name(name)}"] = library
    for plugin in state.plugins:
        files[copy_name(state, plugin)] = plugin
    for library in state.over.values():
        files.setdefault(copy_name(state, library), library)
    return tuple(
        Copy(
            source=library.path,
            name=name,
            digest=library.digest,
            edit=library.role is not Role.LIBC,
            rpath="" if library.role is Role.LIBC else state.lib,
            soname=state.names.soname(library) if state.names.private(library.soname) else "",
            renamed=state.names.renamed(library),
            symbols=() if library.role is Role.LIBC else state.names.symbols(library),
        )
        for name, library in sorted(files.items())
    )


def _binds(state: GraftState) -> tuple[Bind, ...]:
    return tuple(
        Bind(
            source=f"{{graft}}/{copy_name(state, library)}",
            target=path,
            why=f"the guest's loader takes {library.soname} from here",
        )
        for path, library in sorted(state.over.items())
    )


def _environment(state: GraftState) -> tuple[EnvRow, ...]:
    if not state.search:
        return ()
    value = rank_environment(state)["LD_LIBRARY_PATH"]
    return (EnvRow("LD_LIBRARY_PATH", value, Scope.RANK, "plan"),)


def _inputs(state: GraftState, loaded: Sequence[Loaded]) -> Iterator[str]:
    for library in state.abi.objects:
        yield library.path
    cache = state.guest.root.find(LD_CACHE)  # installing a library changes it
    if cache and cache.source:
        yield str(cache.source)
    for process in loaded:
        paths = (process.program, *(str(r.path) for r in process.objects if r.path))
        for path in paths:
            entry = state.guest.root.find(path)
            if entry and entry.source:
                yield str(entry.source)
