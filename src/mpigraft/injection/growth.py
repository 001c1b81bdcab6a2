"""How a graft grows: from what the loader misses to the next library that goes in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import PurePosixPath

from mpigraft.abi import binding_of
from mpigraft.host_loader import INTERPRETERS
from mpigraft.injection.values import Choice
from mpigraft.injection.view import PRIVATE, Loaded, View, name_of
from mpigraft.linking import Unbound
from mpigraft.model import AbiObject, Replace, Role

LOADERS = {PurePosixPath(path).name for path in INTERPRETERS.values()}
UCS, MODULES = "libucs.so.0", "ucx"
LADDER = {None: Choice.HOST, Choice.HOST: Choice.PRIVATE}  # of a library that does not satisfy


class Growth(View):
    """A view that mends itself. Every step adds something or climbs the ladder, so it ends."""

    allow_glibc = True
    binds = True  # False: nothing can be laid over a file, the loader has to be led past it
    libc = False  # the host's glibc is in

    def begin(self, before: Sequence[Loaded]) -> None:
        """What the guest asks for by name, and what of MPI and network that needs."""
        self.lacking: set[str] = set()  # nodes of glibc
        self.absent: dict[str, str] = {}
        self.guests: dict[str, str] = {}  # name: path of the guest's own, where it has one
        self.own = {name_of(r): str(r.path) for one in before for r in one.found if r.path}
        self.unmet = {(u.by, u.library, u.node) for one in before for u in one.unmet}
        self.unbound = {u for one in before for u in one.unbound}
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
        """(MPI soname, who needs it) of files that stay. Bindings that only the guest has stay
        too, and get the host's libmpi; what else they need of their own MPI they have."""
        for one in loaded:
            known = {r.name: name_of(r) for r in one.found}
            for name, file in one.files:
                names = [known.get(n, n) for n in file.needed]
                wanted = [n for n in names if self.is_mpi(n)]
                if self.is_mpi(name) or self.is_mpi(file.soname or ""):
                    kept = not (self.host_for(name) or self.host_for(file.soname or ""))
                    wanted = [n for n in wanted if kept and self.host_for(n)]
                yield from ((n, file.name) for n in wanted)

    def is_mpi(self, name: str) -> bool:
        library = self.offered.get(name)
        return binding_of(name) is not None or (library is not None and library.role is Role.MPI)

    def host_for(self, name: str) -> AbiObject | None:
        """The host's library of that name, or of another name of the same binding of the ABI."""
        if name in self.offered:
            return self.offered[name]
        wanted = binding_of(name)
        same = (o for o in self.offered.values() if wanted and binding_of(o.soname) == wanted)
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
        """MPI and network libraries come along always; the others when they are missed."""
        for needed in library.needed:
            other = self.offered.get(needed)
            if other and (other.role is Role.NET or other.role is library.role is Role.MPI):
                self.add(needed)

    # ------------------------------------------------------------------ one step

    def improve(self, after: Sequence[Loaded]) -> bool:
        """Mend one kind of trouble that the simulation shows; False when there is none to mend."""
        return self.cover(after) or self.fill(after) or self.settle(after)

    def cover(self, loaded: Sequence[Loaded]) -> bool:
        """Lay the graft's libraries over the guest's files of the same name; where the guest has
        none, let the loader look into the graft."""
        size, search = len(self.over), self.search
        for r in (r for one in loaded for r in one.found):
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
        """UCX looks for its modules beside itself before it looks where it is told to."""
        for plugin in self.plugins if name == UCS else ():
            if plugin.place == MODULES:
                path = folder / MODULES / PurePosixPath(plugin.path).name
                if entry := self.guest.root.find(str(path)):
                    self.over.setdefault(entry.path, plugin)

    def fill(self, after: Sequence[Loaded]) -> bool:
        """Put in what is not found and the host has."""
        missing = {r.name for one in after for r in one.found if r.path is None}
        if self.replace is not Replace.MPI:  # then it is not for us to serve the guest's programs
            missing &= {n for o in (*self.inside.values(), *self.plugins) for n in o.needed}
        size = len(self.inside)
        for name in sorted(missing):
            self.add(name)
        return len(self.inside) > size

    def settle(self, after: Sequence[Loaded]) -> bool:
        """Choose again where one side's library lacks what the other side needs of it."""
        wrong: set[str] = set()
        for one in after:
            for lack in one.unmet:
                if (lack.by, lack.library, lack.node) in self.unmet:
                    continue  # the guest's own trouble
                library = self.offered.get(lack.library.removeprefix(PRIVATE))
                if library and library.role is Role.LIBC:
                    self.lacking.add(lack.node)
                elif library and library.role is Role.OTHER:
                    wrong.add(library.soname)
            wrong |= {name for loose in self.loose(one) for name in self.providers(loose)}
            wrong |= set(self.robbed(one))
        if self.lacking and self.allow_glibc and not self.libc:
            self.take_glibc(after)
            return True
        chosen = [self.choose(name, after) for name in sorted(wrong)]  # all of them, not the first
        return any(chosen)

    def loose(self, one: Loaded) -> Iterator[Unbound]:
        """Symbols that files of the host miss in the guest, and would not miss at home."""
        for unbound in one.unbound:
            if self.grafted(unbound.by) and plain(unbound) in self.homes:
                yield unbound

    def robbed(self, one: Loaded) -> Iterator[str]:
        """Libraries of which the guest's own had a symbol that a file of the guest misses now."""
        for unbound in one.unbound:
            if self.grafted(unbound.by) or unbound in self.unbound:
                continue
            for name, path in {**self.own, **self.guests}.items():
                library = self.inside.get(name)
                if library and library.role is Role.OTHER and plain(unbound) in self.exported(path):
                    yield name

    def exported(self, path: str) -> set[str]:
        return {symbol.name for symbol in self.guest.root.elf(path).exported}

    def providers(self, loose: Unbound) -> Iterator[str]:
        for name in self.homes[plain(loose)]:
            library = self.offered.get(name)
            if library and library.role is Role.OTHER:
                yield name

    def choose(self, name: str, after: Sequence[Loaded]) -> bool:
        """From the guest's to the host's, from the host's to both; never back."""
        now = self.choice.get(name)
        theirs = [path for path in _paths(name, after) if not self.grafted(path)]
        theirs += [self.own[name]] if name in self.own else []
        if now not in LADDER or (now is None and name in self.inside and not theirs):
            return False
        self.choice[name] = LADDER[now]
        if theirs:
            self.guests.setdefault(name, theirs[0])
        if self.private(name):
            library = self.offered[name]
            self.over = {path: o for path, o in self.over.items() if o is not library}
        self.add(name)
        return True

    def take_glibc(self, after: Sequence[Loaded]) -> None:
        """Lay the host's glibc over the guest's, file by file, the loader at PT_INTERP too."""
        self.libc = True
        libc = {o.soname: o for o in self.offered.values() if o.role is Role.LIBC}
        loaded = [path for name in libc for path in _paths(name, after)]
        folders = {PurePosixPath(path).parent for path in loaded if not self.grafted(path)}
        loader = next((o for name, o in libc.items() if name in LOADERS), None)
        places = {str(folder / name): o for folder in folders for name, o in libc.items()}
        # At whatever name: /lib/ld-2.31.so is what ld-linux-x86-64.so.2 is a link to.
        places |= {path: loader for one in after if (path := one.main.interpreter) and loader}
        for path, library in places.items():
            entry = self.guest.root.find(path)
            if entry and entry.kind == "file":
                self.over[entry.path] = library


def _paths(name: str, loaded: Iterable[Loaded]) -> set[str]:
    return {str(r.path) for one in loaded for r in one.found if name_of(r) == name and r.path}


def plain(loose: Unbound) -> str:
    """The symbol without its version, as it is called at home."""
    return loose.symbol.partition("@")[0].removeprefix(PRIVATE)
