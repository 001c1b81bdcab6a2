"""Grow a graft: from what the loader misses to the next library that goes in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from mpigraft.binary import INTERPRETERS, UnboundSymbol
from mpigraft.core.model import AbiObject, Replace, Role
from mpigraft.graft.injection.simulation import PRIVATE, Loaded, plain
from mpigraft.graft.injection.view import CopyPolicy, View, name_of
from mpigraft.knowledge import binding_of

LOADERS = {PurePosixPath(path).name for path in INTERPRETERS.values()}
UCS, MODULES = "libucs.so.0", "ucx"
LADDER = {
    None: CopyPolicy.HOST,
    CopyPolicy.HOST: CopyPolicy.PRIVATE,
}  # of a library that does not satisfy


class Growth(View):
    """A view that improves itself. Each step adds a library or climbs the ladder, so it ends."""

    allow_glibc = True
    binds = True  # False: no engine binds over files, the loader must find the graft first
    libc = False  # the host's glibc is in

    def begin(self, before: Sequence[Loaded]) -> None:
        """Start with what the guest needs by name, and what that needs of MPI and network."""
        self.lacking: set[str] = set()  # nodes of glibc
        self.absent: dict[str, str] = {}
        self.guests: dict[str, str] = {}  # name: path of the guest's own, where it has one
        self.own: dict[str, dict[str, None]] = {}  # name: paths; on other CPUs they may differ
        for r in (r for process in before for r in process.objects if r.path):
            self.own.setdefault(name_of(r), {})[str(r.path)] = None
        self.unmet = {(u.by, u.library, u.node) for process in before for u in process.unmet}
        self.unbound = {u for process in before for u in process.unbound}
        if self.replace is Replace.MPI:
            self.add(self.abi.objects[0].soname)
            for name, by in self.asked(before):
                if (library := self.host_for(name)) is None:
                    self.absent.setdefault(name, by)
                else:
                    self.add(library.soname)
                    self.inside.setdefault(name, library)
        elif self.replace is Replace.LIBFABRIC:
            for library in self.offered.values():
                if library.role is Role.NET:
                    self.add(library.soname)
        for plugin in self.plugins:
            self.add_needs(plugin)
        self.cover(before)

    def asked(self, loaded: Sequence[Loaded]) -> Iterator[tuple[str, str]]:
        """Yield (MPI soname, file that needs it) of files that stay. Bindings that only the guest
        has stay too, and get the host's libmpi; the rest of their own MPI stays with them."""
        for process in loaded:
            known = {r.name: name_of(r) for r in process.objects}
            for name, file in process.files:
                names = [known.get(n, n) for n in file.needed]
                needed = [n for n in names if self.is_mpi(n)]
                if self.is_mpi(name) or self.is_mpi(file.soname or ""):
                    stays = not (self.host_for(name) or self.host_for(file.soname or ""))
                    needed = [n for n in needed if stays and self.host_for(n)]
                yield from ((n, file.name) for n in needed)

    def is_mpi(self, name: str) -> bool:
        library = self.offered.get(name)
        return binding_of(name) is not None or (library is not None and library.role is Role.MPI)

    def host_for(self, name: str) -> AbiObject | None:
        """Find the host's library of that name, or of another name of the same binding."""
        if name in self.offered:
            return self.offered[name]
        binding = binding_of(name)
        same = (o for o in self.offered.values() if binding and binding_of(o.soname) == binding)
        return next(same, None)

    def add(self, name: str) -> None:
        library = self.offered.get(name)
        if library is None or name in self.inside:
            return
        if library.role is Role.LIBC and not self.libc:  # its parts share private symbols
            return
        if library.role is Role.MPI and self.replace is not Replace.MPI:
            return
        self.inside[name] = library
        self.add_needs(library)

    def add_needs(self, library: AbiObject) -> None:
        """Add needed MPI and network libraries; others go in when the loader misses them."""
        for needed in library.needed:
            other = self.offered.get(needed)
            if other and (other.role is Role.NET or other.role is library.role is Role.MPI):
                self.add(needed)

    # ------------------------------------------------------------------ one step

    def improve(self, after: Sequence[Loaded]) -> bool:
        """Fix one kind of problem that the simulation shows; False when there is none."""
        return self.cover(after) or self.fill(after) or self.settle(after)

    def cover(self, loaded: Sequence[Loaded]) -> bool:
        """Bind the graft's libraries over the guest's files of the same name; where the guest has
        none, make the loader search the graft."""
        size, search = len(self.over), self.search
        for r in (r for process in loaded for r in process.objects):
            name = name_of(r)
            library = self.inside.get(name)
            if library is None or self.private(name):
                continue
            if r.path is None or not self.binds:
                self.search = True
            elif not self.grafted(r.path) and (entry := self.guest.root.find(str(r.path))):
                self.over.setdefault(entry.path, library)
                self.guests.setdefault(name, entry.path)
                self.cover_modules(name, PurePosixPath(r.path).parent)
        return (len(self.over), self.search) != (size, search)

    def cover_modules(self, name: str, folder: PurePosixPath) -> None:
        """Cover UCX's modules: it searches its own folder before the configured one."""
        for plugin in self.plugins if name == UCS else ():
            if plugin.place == MODULES:
                path = folder / MODULES / PurePosixPath(plugin.path).name
                if entry := self.guest.root.find(str(path)):
                    self.over.setdefault(entry.path, plugin)

    def fill(self, after: Sequence[Loaded]) -> bool:
        """Add what the loader does not find and the host has."""
        missing = {r.name for process in after for r in process.objects if r.path is None}
        if self.replace is not Replace.MPI:  # then the guest's programs keep their own needs
            missing &= {n for o in (*self.inside.values(), *self.plugins) for n in o.needed}
        size = len(self.inside)
        for name in sorted(missing):
            self.add(name)
        return len(self.inside) > size

    def settle(self, after: Sequence[Loaded]) -> bool:
        """Change the copy policy where one side's library lacks what the other side needs."""
        wrong: set[str] = set()
        for process in after:
            for need in process.unmet:
                if (need.by, need.library, need.node) in self.unmet:
                    continue  # the guest's own problem
                library = self.offered.get(need.library.removeprefix(PRIVATE))
                if library and library.role is Role.LIBC:
                    self.lacking.add(need.node)
                elif library and library.role is Role.OTHER:
                    wrong.add(library.soname)
            wrong |= {name for loose in self.loose(process) for name in self.providers(loose)}
            wrong |= set(self.robbed(process))
        if self.lacking and self.allow_glibc and not self.libc:
            self.take_glibc(after)
            return True
        chosen = [self.choose(name, after) for name in sorted(wrong)]  # all of them, not the first
        return any(chosen)

    def loose(self, process: Loaded) -> Iterator[UnboundSymbol]:
        """Yield symbols that files of the host miss in the guest and find on the host."""
        for unbound in process.unbound:
            if self.grafted(unbound.by) and plain(unbound) in self.homes:
                yield unbound

    def robbed(self, process: Loaded) -> Iterator[str]:
        """Yield libraries whose guest version has a symbol that a file of the guest misses now."""
        for unbound in process.unbound:
            if self.grafted(unbound.by) or unbound in self.unbound:
                continue
            for name in {**self.own, **self.guests}:
                library = self.inside.get(name)
                paths = {*self.own.get(name, ()), self.guests.get(name, "")} - {""}
                if library and library.role is Role.OTHER:
                    yield from (name for p in paths if plain(unbound) in self.exported(p))

    def exported(self, path: str) -> set[str]:
        return {symbol.name for symbol in self.guest.root.elf(path).exported}

    def providers(self, loose: UnboundSymbol) -> Iterator[str]:
        for name in self.homes[plain(loose)]:
            library = self.offered.get(name)
            if library and library.role is Role.OTHER:
                yield name

    def choose(self, name: str, after: Sequence[Loaded]) -> bool:
        """Climb the ladder: from the guest's copy to the host's, from the host's to both."""
        current = self.choice.get(name)
        guest_paths = [path for path in self.paths(name, after) if not self.grafted(path)]
        guest_paths += self.own.get(name, ())
        if current not in LADDER or (current is None and name in self.inside and not guest_paths):
            return False
        self.choice[name] = LADDER[current]
        if guest_paths:
            self.guests.setdefault(name, guest_paths[0])
        if self.private(name):
            library = self.offered[name]
            self.over = {path: o for path, o in self.over.items() if o is not library}
        self.add(name)
        return True

    def take_glibc(self, after: Sequence[Loaded]) -> None:
        """Bind the host's glibc over the guest's, file by file, the loader at PT_INTERP too."""
        self.libc = True
        libc = {o.soname: o for o in self.offered.values() if o.role is Role.LIBC}
        loaded = [path for name in libc for path in self.paths(name, after)]
        folders = {PurePosixPath(path).parent for path in loaded if not self.grafted(path)}
        loader = next((o for name, o in libc.items() if name in LOADERS), None)
        places = {str(folder / name): o for folder in folders for name, o in libc.items()}
        # Under any name: ld-linux-x86-64.so.2 may be a link to /lib/ld-2.31.so.
        places |= {
            path: loader for process in after if (path := process.main.interpreter) and loader
        }
        for path, library in places.items():
            entry = self.guest.root.find(path)
            if entry and entry.kind == "file":
                self.over[entry.path] = library
