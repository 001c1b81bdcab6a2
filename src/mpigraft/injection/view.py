"""The guest with a graft laid over it, as the loader would see it."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from functools import cached_property
from pathlib import Path, PurePath, PurePosixPath
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from mpigraft import elf
from mpigraft.abi import binding_of
from mpigraft.abi_elf import as_elf
from mpigraft.elf import Elf
from mpigraft.injection.values import Choice
from mpigraft.linking import Unbound, Unmet, unbound, unmet
from mpigraft.model import AbiObject, MpiAbi, Replace, Role
from mpigraft.resolve import Resolved, closure
from mpigraft.root import Over, Root

if TYPE_CHECKING:
    from mpigraft.guest import Guest

PRIVATE = "mpigraft-"  # before the name of a private copy


@dataclass(frozen=True, eq=False)
class Loaded:
    """One program under the loader; `files` are it and its libraries, by the name asked for."""

    program: str
    main: Elf
    found: tuple[Resolved, ...]

    @cached_property
    def files(self) -> list[tuple[str, Elf]]:
        first = (self.main.soname or self.program, self.main)
        return [first, *((r.name, r.elf) for r in self.found if r.elf is not None)]

    @cached_property
    def unmet(self) -> tuple[Unmet, ...]:
        names, files = zip(*self.files, strict=True)
        return unmet(files, names)

    @cached_property
    def unbound(self) -> tuple[Unbound, ...]:
        return unbound([file for _, file in self.files])


# Of each root: programs as they are without a graft, which is the same for every host MPI.
_BARE: WeakKeyDictionary[Root, dict[tuple[object, ...], Loaded]] = WeakKeyDictionary()


class View:
    """A graft as it grows. `inside` is what its `lib` holds, by the name that is asked for;
    `over` is what lies over the guest's files, by their paths."""

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
        self.offered = {o.soname: o for o in abi.objects if not (o.opened and o.place)}
        wanted = {Replace.MPI: tuple(Role), Replace.LIBFABRIC: (Role.NET,), Replace.NOTHING: ()}
        self.plugins = tuple(o for o in abi.objects if o.opened and o.role in wanted[replace])
        self.opened = {} if replace is Replace.MPI else dict(opened or {})
        self.inside: dict[str, AbiObject] = {}
        self.over: dict[str, AbiObject] = {}
        self.choice: dict[str, Choice] = {}  # of names that both sides bring; GUEST is not in it
        self.search = False  # ranks need LD_LIBRARY_PATH, for a name that the guest lacks
        self._facts: dict[tuple[object, ...], Elf] = {}

    def load(self, program: str) -> Loaded:
        """The program under the loader, as the guest is. Raises ElfError or RootError if it cannot
        be read."""
        environment = dict(self.guest.label.environment)
        if program in self.ours:
            root: Root = Over(self.guest.root, self.ours)
            found = closure(program, environment=environment, root=root, opened=self.opened)
            return Loaded(program, root.elf(program), found)
        root = self.guest.root
        opened = tuple((name, tuple(paths)) for name, paths in self.opened.items())
        known = _BARE.setdefault(root, {})
        key = (program, self.guest.label.environment, opened)
        if key not in known:
            found = closure(program, environment=environment, root=root, opened=self.opened)
            known[key] = Loaded(program, root.elf(program), found)
        return known[key]

    def load_all(self) -> tuple[Loaded, ...]:
        """Every program under the loader, over the graft as it is now. Raises as `load` does."""
        environment, opened = self.environment(), self._opened()
        root = Over(self.guest.root, self.files(), self.sources())
        found = [
            closure(program, environment=environment, root=root, opened=opened)
            for program in self.subjects
        ]
        mains = [self.ours.get(one) or self.guest.root.elf(one) for one in self.subjects]
        return tuple(map(Loaded, self.subjects, mains, found))

    def _opened(self) -> dict[str, Sequence[str]]:
        """What is opened by name: by the host's libraries their own, by the guest's theirs."""
        found = {name: paths for name, paths in self.opened.items() if name not in self.inside}
        if paths := [self.path_of(p) for p in self.plugins]:
            whole = self.replace is Replace.MPI
            mpis = [n for n in self.offered if (b := binding_of(n)) and b.language == "c"]
            found |= dict.fromkeys(mpis if whole else ["libfabric.so.1"], paths)
        return found

    def environment(self) -> dict[str, str]:
        """What ranks see, as far as the loader looks at it."""
        environment = dict(self.guest.label.environment)
        if self.search:
            own = environment.get("LD_LIBRARY_PATH")
            environment["LD_LIBRARY_PATH"] = f"{self.lib}:{own}" if own else self.lib
        return environment

    def files(self) -> dict[str, Elf]:
        """What stands where; one file is one value, since the loader goes by inodes."""
        files = {f"{self.lib}/{self.file_name(n)}": self.elf(o) for n, o in self.inside.items()}
        files |= {self.path_of(p): self.elf(p) for p in self.plugins}
        files |= self.ours
        return files | {path: self.elf(library) for path, library in self.over.items()}

    def sources(self) -> dict[str, Path]:
        """Files whose bytes the simulated loader looks at, not only their facts: glibc's."""
        found = {p: Path(o.path) for p, o in self.over.items() if o.role is Role.LIBC}
        return {path: source for path, source in found.items() if source.is_file()}

    def elf(self, library: AbiObject) -> Elf:
        """The facts of the copy. Those of glibc go in as they are."""
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
        """Below the graft folder: lib/libmpi.so.40, lib/openmpi/mca_pml_ob1.so."""
        if library.opened:
            return str(PurePosixPath("lib", library.place, PurePosixPath(library.path).name))
        folder = "glibc" if library.role is Role.LIBC else "lib"
        return f"{folder}/{self.soname(library)}"

    def _own(self, path: Path) -> Elf:
        """A program of ours: its copy looks into the graft first."""
        return replace_fields(elf.read(path), rpath=self.lib, runpath=None)

    def path_of(self, plugin: AbiObject) -> str:
        return f"{self.place}/{self.name_of(plugin)}"

    @cached_property
    def plugin_names(self) -> dict[str, str]:
        """{where ranks see a plugin: its name}."""
        return {self.path_of(p): PurePosixPath(p.path).name for p in self.plugins}

    def grafted(self, path: PurePath | str) -> bool:
        return posixpath.normpath(path).startswith(f"{self.place}/")

    def private(self, name: str) -> bool:
        return self.choice.get(name) is Choice.PRIVATE

    def privates(self) -> list[str]:
        return [name for name in self.choice if self.private(name)]

    def file_name(self, name: str) -> str:
        return f"{PRIVATE}{name}" if self.private(name) else name

    def soname(self, library: AbiObject) -> str:
        return self.file_name(library.soname)

    def renamed(self, library: AbiObject) -> tuple[tuple[str, str], ...]:
        """(old, new) of what it needs that has a private copy."""
        return tuple((n, self.file_name(n)) for n in library.needed if self.private(n))

    def symbols(self, library: AbiObject) -> tuple[tuple[str, str], ...]:
        """(old, new) of what is a private copy's alone. The loader looks for a symbol by its name
        in all that is loaded, so a library under another name would still serve the guest's, or
        be served by it: they have to differ in their symbols too."""
        found: set[str] = set()
        for name in self.privates():
            own = self.alone(name)
            if name == library.soname or name in library.needed:
                found |= own
            else:
                found |= own & {symbol.partition("@")[0] for symbol in library.imported}
        return tuple((symbol, f"{PRIVATE}{symbol}") for symbol in sorted(found))

    def alone(self, name: str) -> set[str]:
        """Symbols that this library of the host defines and no other does."""
        symbols = {symbol.partition("@")[0] for symbol in self.offered[name].exported}
        return {symbol for symbol in symbols if self.homes[symbol] == {name}}

    @cached_property
    def homes(self) -> dict[str, set[str]]:
        return names_of(self.abi.objects)


def name_of(row: Resolved) -> str:
    """The name that counts of what was asked for: a library may be asked for by its path."""
    own = row.elf.soname if row.elf else None
    return (own or PurePosixPath(row.name).name) if "/" in row.name else row.name


def names_of(libraries: Sequence[AbiObject]) -> dict[str, set[str]]:
    """{symbol without version: sonames that export it}."""
    found: dict[str, set[str]] = {}
    for library in libraries:
        for symbol in library.exported:
            found.setdefault(symbol.partition("@")[0], set()).add(library.soname)
    return found
