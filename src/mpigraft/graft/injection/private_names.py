"""Names of private copies: what a library is called in a graft, and what that changes in others."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

from mpigraft.core.model import AbiObject, Role
from mpigraft.graft.injection.simulation import PRIVATE
from mpigraft.knowledge import binding_of


class PrivateNames:
    """The names in a graft of `offered`, the libraries of a host MPI by soname. `objects` are these
    and the plugins; `chosen` are the names that have private copies."""

    def __init__(
        self,
        objects: Sequence[AbiObject],
        offered: Mapping[str, AbiObject],
        chosen: Collection[str] = (),
    ) -> None:
        self.objects, self.offered, self.chosen = objects, offered, list(chosen)
        self._alone: dict[str, set[str]] = {}

    def is_mpi(self, name: str) -> bool:
        """Return whether a library of that name is part of an MPI."""
        library = self.offered.get(name)
        return binding_of(name) is not None or (library is not None and library.role is Role.MPI)

    def library_for(self, name: str) -> AbiObject | None:
        """Find the host's library of that name, or of another name of the same binding."""
        binding = binding_of(name)
        if binding is None or name in self.offered:
            return self.offered.get(name)
        same = (o for o in self.offered.values() if binding_of(o.soname) == binding)
        return next(same, None)

    def private(self, name: str) -> bool:
        return name in self.chosen

    def file_name(self, name: str) -> str:
        return f"{PRIVATE}{name}" if self.private(name) else name

    def soname(self, library: AbiObject) -> str:
        return self.file_name(library.soname)

    def renamed(self, library: AbiObject) -> tuple[tuple[str, str], ...]:
        """Give (old, new) names of what it needs that has a private copy."""
        return tuple((n, self.file_name(n)) for n in library.needed if self.private(n))

    def symbols(
        self, library: AbiObject, shared: Collection[str] = ()
    ) -> tuple[tuple[str, str], ...]:
        """Give (old, new) names of symbols that only a private copy defines. The loader searches a
        symbol by name in all loaded files, so under another file name alone the copy would still
        bind to the guest's files, or they to it. Of `shared` this library takes the guest's."""
        renames: set[str] = set()
        imported = {symbol.partition("@")[0] for symbol in library.imported}
        for name in self.chosen:
            if name in shared:
                continue
            own = self.alone(name)
            if name == library.soname or name in library.needed:
                renames |= own
            else:
                renames |= own & imported
        return tuple((symbol, f"{PRIVATE}{symbol}") for symbol in sorted(renames))

    def alone(self, name: str) -> set[str]:
        """Give the symbols that only this library of the host defines."""
        if name not in self._alone:
            symbols = {symbol.partition("@")[0] for symbol in self.offered[name].exported}
            self._alone[name] = {symbol for symbol in symbols if self.homes[symbol] == {name}}
        return self._alone[name]

    @cached_property
    def homes(self) -> dict[str, set[str]]:
        return names_of(self.objects)


def names_of(libraries: Sequence[AbiObject]) -> dict[str, set[str]]:
    """Give {symbol without version: sonames that export it}."""
    exporters: dict[str, set[str]] = {}
    for library in libraries:
        for symbol in library.exported:
            exporters.setdefault(symbol.partition("@")[0], set()).add(library.soname)
    return exporters
