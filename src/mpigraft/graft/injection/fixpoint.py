"""Find what has to go into a guest: simulate the loader over it with the graft laid over, and add
what it misses, until nothing is missing.

A `GraftState` is one graft as it grows. `begin` gives it what the guest needs by name; each
`improve` adds a library or climbs the ladder of copies, so the search ends.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from enum import StrEnum
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mpigraft.binary import (
    INTERPRETERS,
    Elf,
    OverlayRoot,
    Resolved,
    Root,
    UnboundSymbol,
    closures,
    read_elf,
)
from mpigraft.core.model import AbiObject, MpiAbi, Replace, Role
from mpigraft.graft.abi.copies import as_elf
from mpigraft.graft.injection.private_names import PrivateNames
from mpigraft.graft.injection.simulation import PRIVATE, Loaded, LoadedByLevel, plain
from mpigraft.knowledge import is_libmpi

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest

LOADERS = {PurePosixPath(path).name for path in INTERPRETERS.values()}
UCS, MODULES = "libucs.so.0", "ucx"
# The programs of a root without a graft, which are the same for every host MPI.
_BARE: WeakKeyDictionary[Root, dict[tuple[object, ...], LoadedByLevel]] = WeakKeyDictionary()


class CopyPolicy(StrEnum):
    """The side whose copy of a library is loaded, where both bring one."""

    GUEST = "guest"
    HOST = "host"
    PRIVATE = "private"  # both: the host's under another name


LADDER = {
    None: CopyPolicy.HOST,
    CopyPolicy.HOST: CopyPolicy.PRIVATE,
}  # of a library that does not satisfy


@dataclass(frozen=True, slots=True, kw_only=True)
class GraftRequest:
    """What a graft replaces, where ranks see it, and what its engine and user allow."""

    replace: Replace
    place: str  # of the graft folder
    glibc: bool = True  # False: the guest's glibc stays, though it lacks something
    binds: bool = True  # False: no engine binds over files, the loader must find the graft first
    ours: Mapping[str, Path] = field(default_factory=dict)  # {name below `place`: our program}
    # What the guest's own MPI opens by name, where that stays: {opener: paths inside}.
    opened: Mapping[str, Sequence[str]] = field(default_factory=dict)
    flags: Collection[str] | None = None  # of the CPU that is meant; None: any level is


@dataclass(eq=False)
class GraftState:
    """A graft as it grows over a guest."""

    guest: Guest
    abi: MpiAbi
    request: GraftRequest
    inside: dict[str, AbiObject] = field(default_factory=dict)  # files of `lib`, by needed name
    over: dict[str, AbiObject] = field(default_factory=dict)  # those over the guest's, by path
    choice: dict[str, CopyPolicy] = field(default_factory=dict)  # of names of both; never GUEST
    search: bool = False  # ranks need LD_LIBRARY_PATH, for a name that the guest lacks
    libc: bool = False  # the host's glibc is in
    lacking: set[str] = field(default_factory=set)  # nodes of glibc
    absent: dict[str, str] = field(default_factory=dict)  # {MPI soname: file that needs it}
    guests: dict[str, str] = field(default_factory=dict)  # {name: path of the guest's own}
    # {name: paths}; on other CPUs they may differ
    own: dict[str, dict[str, None]] = field(default_factory=dict)
    unmet: set[tuple[str, str, str]] = field(default_factory=set)  # of the bare guest
    unbound: set[UnboundSymbol] = field(default_factory=set)  # of the bare guest
    facts: dict[tuple[object, ...], Elf] = field(default_factory=dict)  # of copies

    @property
    def replace(self) -> Replace:
        return self.request.replace

    @cached_property
    def flags(self) -> frozenset[str] | None:
        return None if self.request.flags is None else frozenset(self.request.flags)

    @property
    def lib(self) -> str:
        return f"{self.request.place}/lib"

    @cached_property
    def ours(self) -> dict[str, Elf]:
        """Our programs by path: each copy searches the graft first."""
        return {
            f"{self.request.place}/{name}": replace_fields(
                read_elf(path), rpath=self.lib, runpath=None
            )
            for name, path in self.request.ours.items()
        }

    @cached_property
    def subjects(self) -> tuple[str, ...]:
        return (*self.guest.label.programs, *self.guest.libraries, *self.ours)

    @cached_property
    def names(self) -> PrivateNames:
        """The names of copies. Its `offered` are the host's libraries by soname. Intel MPI opens
        its libfabric by name, and that is where a linked one would be."""
        objects = self.abi.objects
        return PrivateNames(objects, {o.soname: o for o in objects if not (o.opened and o.place)})

    @property
    def offered(self) -> Mapping[str, AbiObject]:
        return self.names.offered

    @cached_property
    def programs(self) -> tuple[AbiObject, ...]:
        """The programs that the MPI itself starts."""
        return self.abi.programs if self.replace is Replace.MPI else ()

    @cached_property
    def plugins(self) -> tuple[AbiObject, ...]:
        roles = {Replace.MPI: tuple(Role), Replace.LIBFABRIC: (Role.NET,), Replace.NOTHING: ()}
        opened = (o for o in self.abi.objects if o.opened and o.role in roles[self.replace])
        return (*opened, *self.programs)

    @cached_property
    def opened(self) -> Mapping[str, Sequence[str]]:
        """What the guest's own MPI opens by name, where it stays."""
        return {} if self.replace is Replace.MPI else self.request.opened

    @cached_property
    def plugin_names(self) -> Mapping[str, str]:
        """Give {path at which ranks see a plugin: its name}."""
        return {path_of(self, p): PurePosixPath(p.path).name for p in self.plugins}

    def grafted(self, path: PurePath | str) -> bool:
        return posixpath.normpath(path).startswith(f"{self.request.place}/")


# ------------------------------------------------------------------ the guest under the graft


def load_bare(state: GraftState, program: str) -> LoadedByLevel:
    """Simulate the loader for a program in the bare guest, on each level of CPU. Raises
    ElfError or RootError if it cannot be read."""
    environment = dict(state.guest.label.environment)
    if program in state.ours:
        root: Root = OverlayRoot(state.guest.root, state.ours)
        return _load(state, program, root, environment, state.opened)
    root = state.guest.root
    opened = tuple((name, tuple(paths)) for name, paths in state.opened.items())
    known = _BARE.setdefault(root, {})
    key = (program, state.guest.label.environment, opened, state.flags)
    if key not in known:
        known[key] = _load(state, program, root, environment, state.opened)
    return known[key]


def load_grafted(state: GraftState) -> tuple[LoadedByLevel, ...]:
    """Simulate the loader for every program, over the graft as it is now. Raises as
    `load_bare` does."""
    environment, opened = rank_environment(state), _opened(state)
    root = OverlayRoot(state.guest.root, graft_files(state), graft_sources(state))
    return tuple(_load(state, path, root, environment, opened) for path in state.subjects)


def _load(
    state: GraftState,
    program: str,
    root: Root,
    environment: Mapping[str, str],
    opened: Mapping[str, Sequence[str]],
) -> LoadedByLevel:
    levels = closures(program, environment=environment, root=root, opened=opened, flags=state.flags)
    main = state.ours.get(program) or state.guest.root.elf(program)
    loaded = {id(rows): Loaded(program, main, rows) for rows in levels.values()}
    return {level: loaded[id(rows)] for level, rows in levels.items()}


def _opened(state: GraftState) -> dict[str, Sequence[str]]:
    """Give what the libraries of each side open by name."""
    opened = {name: paths for name, paths in state.opened.items() if name not in state.inside}
    if paths := [path_of(state, p) for p in state.plugins]:
        whole = state.replace is Replace.MPI
        mpis = list(filter(is_libmpi, state.offered))
        opened |= dict.fromkeys(mpis if whole else ["libfabric.so.1"], paths)
    return opened


def rank_environment(state: GraftState) -> dict[str, str]:
    """Give the environment of ranks, as far as the loader reads it."""
    environment = dict(state.guest.label.environment)
    if state.search:
        own = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{state.lib}:{own}" if own else state.lib
    return environment


def graft_files(state: GraftState) -> dict[str, Elf]:
    """Give the files by path; one file is one value, since the loader compares inodes."""
    files = {
        f"{state.lib}/{state.names.file_name(n)}": copy_elf(state, o)
        for n, o in state.inside.items()
    }
    files |= {path_of(state, p): copy_elf(state, p) for p in state.plugins}
    files |= state.ours
    return files | {path: copy_elf(state, library) for path, library in state.over.items()}


def graft_sources(state: GraftState) -> dict[str, Path]:
    """Give the files whose bytes the simulated loader reads, besides their facts: glibc's."""
    libraries = {p: Path(o.path) for p, o in state.over.items() if o.role is Role.LIBC}
    return {path: source for path, source in libraries.items() if source.is_file()}


def copy_elf(state: GraftState, library: AbiObject) -> Elf:
    """Give the facts of a library's copy. glibc's copies are not edited."""
    key = (library.path, tuple(state.names.chosen))
    if key not in state.facts:
        libc = library.role is Role.LIBC
        state.facts[key] = as_elf(
            library,
            name=f"{state.request.place}/{copy_name(state, library)}",
            rpath=None if libc else state.lib,
            soname=state.names.soname(library),
            renamed=dict(state.names.renamed(library)),
            symbols=dict(state.names.symbols(library)),
        )
    return state.facts[key]


def copy_name(state: GraftState, library: AbiObject) -> str:
    """Give the name below the graft folder: lib/libmpi.so.40, lib/openmpi/mca_pml_ob1.so."""
    if library.opened:
        top = "" if library in state.programs else "lib"
        return str(PurePosixPath(top, library.place, PurePosixPath(library.path).name))
    folder = "glibc" if library.role is Role.LIBC else "lib"
    return f"{folder}/{state.names.soname(library)}"


def path_of(state: GraftState, plugin: AbiObject) -> str:
    return f"{state.request.place}/{copy_name(state, plugin)}"


def load_paths(state: GraftState, name: str, loaded: Iterable[Loaded]) -> list[str]:
    """Return where programs load a library from. A search path of the host's may lead through the
    graft to a file of the guest's, which has no such folder: the path is without that way."""
    paths = (str(r.path) for p in loaded for r in p.objects if name_of(r) == name and r.path)
    way = f"{state.request.place}/"
    return sorted({posixpath.normpath(p) if p.startswith(way) else p for p in paths})


def name_of(row: Resolved) -> str:
    """Give the name of a library, which may be needed by its path."""
    own = row.elf.soname if row.elf else None
    return (own or PurePosixPath(row.name).name) if "/" in row.name else row.name


# ------------------------------------------------------------------ what goes in by name


def begin(state: GraftState, before: Sequence[Loaded]) -> None:
    """Start with what the guest needs by name, and what that needs of MPI and network."""
    for r in (r for process in before for r in process.objects if r.path):
        state.own.setdefault(name_of(r), {})[str(r.path)] = None
    state.unmet = {(u.by, u.library, u.node) for process in before for u in process.unmet}
    state.unbound = {u for process in before for u in process.unbound}
    if state.replace is Replace.MPI:
        add(state, state.abi.objects[0].soname)
        for name, by in needed_bindings(state, before):
            if (library := state.names.library_for(name)) is None:
                state.absent.setdefault(name, by)
            else:
                add(state, library.soname)
                state.inside.setdefault(name, library)
    elif state.replace is Replace.LIBFABRIC:
        for library in state.offered.values():
            if library.role is Role.NET:
                add(state, library.soname)
    for plugin in state.plugins:
        add_needs(state, plugin)
    cover_files(state, before)


def needed_bindings(state: GraftState, loaded: Sequence[Loaded]) -> Iterator[tuple[str, str]]:
    """Yield (MPI soname, file that needs it) of files that stay. Bindings that only the guest
    has stay too, and get the host's libmpi; the rest of their own MPI stays with them."""
    for process in loaded:
        known = {r.name: name_of(r) for r in process.objects}
        for name, file in process.files:
            names = [known.get(n, n) for n in file.needed]
            needed = [n for n in names if state.names.is_mpi(n)]
            if state.names.is_mpi(name) or state.names.is_mpi(file.soname or ""):
                stays = not (
                    state.names.library_for(name) or state.names.library_for(file.soname or "")
                )
                needed = [n for n in needed if stays and state.names.library_for(n)]
            yield from ((n, file.name) for n in needed)


def add(state: GraftState, name: str) -> None:
    library = state.offered.get(name)
    if library is None or name in state.inside:
        return
    if library.role is Role.LIBC and not state.libc:  # its parts share private symbols
        return
    if library.role is Role.MPI and state.replace is not Replace.MPI:
        return
    state.inside[name] = library
    add_needs(state, library)


def add_needs(state: GraftState, library: AbiObject) -> None:
    """Add needed MPI and network libraries; others go in when the loader misses them."""
    for needed in library.needed:
        other = state.offered.get(needed)
        if other and (other.role is Role.NET or other.role is library.role is Role.MPI):
            add(state, needed)


# ------------------------------------------------------------------ one step


def improve(state: GraftState, after: Sequence[Loaded]) -> bool:
    """Fix one kind of problem that the simulation shows; False when there is none."""
    return cover_files(state, after) or add_missing(state, after) or change_copies(state, after)


def cover_files(state: GraftState, loaded: Sequence[Loaded]) -> bool:
    """Bind the graft's libraries over the guest's files of the same name; where the guest has
    none, make the loader search the graft."""
    size, search = len(state.over), state.search
    for r in (r for process in loaded for r in process.objects):
        name = name_of(r)
        library = state.inside.get(name)
        if library is None or state.names.private(name):
            continue
        if r.path is None or not state.request.binds:
            state.search = True
        elif not state.grafted(r.path) and (entry := state.guest.root.find(str(r.path))):
            state.over.setdefault(entry.path, library)
            state.guests.setdefault(name, entry.path)
            cover_modules(state, name, PurePosixPath(r.path).parent)
    return (len(state.over), state.search) != (size, search)


def cover_modules(state: GraftState, name: str, folder: PurePosixPath) -> None:
    """Cover UCX's modules: it searches its own folder before the configured one."""
    for plugin in state.plugins if name == UCS else ():
        if plugin.place == MODULES:
            path = folder / MODULES / PurePosixPath(plugin.path).name
            if entry := state.guest.root.find(str(path)):
                state.over.setdefault(entry.path, plugin)


def add_missing(state: GraftState, after: Sequence[Loaded]) -> bool:
    """Add what the loader does not find and the host has."""
    missing = {r.name for process in after for r in process.objects if r.path is None}
    if state.replace is not Replace.MPI:  # then the guest's programs keep their own needs
        missing &= {n for o in (*state.inside.values(), *state.plugins) for n in o.needed}
    size = len(state.inside)
    for name in sorted(missing):
        add(state, name)
    return len(state.inside) > size


def change_copies(state: GraftState, after: Sequence[Loaded]) -> bool:
    """Change the copy policy where one side's library lacks what the other side needs."""
    wrong: set[str] = set()
    for process in after:
        for need in process.unmet:
            if (need.by, need.library, need.node) in state.unmet:
                continue  # the guest's own problem
            library = state.offered.get(need.library.removeprefix(PRIVATE))
            if library and library.role is Role.LIBC:
                state.lacking.add(need.node)
            elif library and library.role is Role.OTHER:
                wrong.add(library.soname)
        wrong |= {
            name for loose in unbound_of_host(state, process) for name in providers(state, loose)
        }
        wrong |= set(robbed_libraries(state, process))
    if state.lacking and state.request.glibc and state.request.binds and not state.libc:
        take_glibc(state, after)
        return True
    chosen = [climb(state, name, after) for name in sorted(wrong)]  # all of them, not the first
    return any(chosen)


def unbound_of_host(state: GraftState, process: Loaded) -> Iterator[UnboundSymbol]:
    """Yield symbols that files of the host miss in the guest and find on the host."""
    for unbound in process.unbound:
        if state.grafted(unbound.by) and plain(unbound) in state.names.homes:
            yield unbound


def robbed_libraries(state: GraftState, process: Loaded) -> Iterator[str]:
    """Yield libraries whose guest version has a symbol that a file of the guest misses now."""
    for unbound in process.unbound:
        if state.grafted(unbound.by) or unbound in state.unbound:
            continue
        for name in {**state.own, **state.guests}:
            library = state.inside.get(name)
            paths = {*state.own.get(name, ()), state.guests.get(name, "")} - {""}
            if library and library.role is Role.OTHER:
                yield from (name for p in paths if plain(unbound) in exported_by(state, p))


def exported_by(state: GraftState, path: str) -> set[str]:
    return {symbol.name for symbol in state.guest.root.elf(path).exported}


def providers(state: GraftState, loose: UnboundSymbol) -> Iterator[str]:
    for name in state.names.homes[plain(loose)]:
        library = state.offered.get(name)
        if library and library.role is Role.OTHER:
            yield name


def climb(state: GraftState, name: str, after: Sequence[Loaded]) -> bool:
    """Climb the ladder: from the guest's copy to the host's, from the host's to both."""
    current = state.choice.get(name)
    guest_paths = [path for path in load_paths(state, name, after) if not state.grafted(path)]
    guest_paths += state.own.get(name, ())
    if current not in LADDER or (current is None and name in state.inside and not guest_paths):
        return False
    policy = state.choice[name] = LADDER[current]
    if guest_paths:
        state.guests.setdefault(name, guest_paths[0])
    if policy is CopyPolicy.PRIVATE:
        state.names.chosen.append(name)
        library = state.offered[name]
        state.over = {path: o for path, o in state.over.items() if o is not library}
    add(state, name)
    return True


def take_glibc(state: GraftState, after: Sequence[Loaded]) -> None:
    """Bind the host's glibc over the guest's, file by file, the loader at PT_INTERP too."""
    state.libc = True
    libc = {o.soname: o for o in state.offered.values() if o.role is Role.LIBC}
    loaded = [path for name in libc for path in load_paths(state, name, after)]
    folders = {PurePosixPath(path).parent for path in loaded if not state.grafted(path)}
    loader = next((o for name, o in libc.items() if name in LOADERS), None)
    places = {str(folder / name): o for folder in folders for name, o in libc.items()}
    # Under any name: ld-linux-x86-64.so.2 may be a link to /lib/ld-2.31.so.
    places |= {path: loader for process in after if (path := process.main.interpreter) and loader}
    for path, library in places.items():
        entry = state.guest.root.find(path)
        if entry and entry.kind == "file":
            state.over[entry.path] = library
