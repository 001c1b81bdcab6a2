"""The rows of fit.toml as values: what fits, of what the loader does not check."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mpigraft.core.model import Family
from mpigraft.knowledge.reader import NEVER, RowError, load_table, toml
from mpigraft.knowledge.versions import Range, version_numbers

PMI = ("pmix", "pmi2", "pmi1", "simple", "cray_shasta", "cray-pals")  # as launchers name them
PLUGINS = (*PMI, "pmix_v3", "pmix_v4", "pmix_v5")  # of srun: `pmix` is the newest of its own
NOTHING = re.compile(NEVER)


@dataclass(frozen=True, slots=True)
class FortranCompiler:
    """A family of Fortran compilers, and how its output is recognized."""

    name: str
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    runtime: re.Pattern[str] = NOTHING  # for the whole of a soname
    mangled: re.Pattern[str] = NOTHING  # for the beginning of a symbol; group 1 is its module

    def __post_init__(self) -> None:
        if self.mangled.groups != 1:
            raise RowError("mangled", "needs one group, for the module")


@dataclass(frozen=True, slots=True)
class WorldRow:
    """Whether the ranks of an MPI find each other under a launcher."""

    launcher: str
    families: tuple[Family, ...] = field(metadata=toml("family"))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    when: Range | None = None
    pmi: str = field(
        default="", metadata=toml(words=PLUGINS)
    )  # that the launcher offers; empty: it has one way
    unless: str = field(default="", metadata=toml(words=PLUGINS))  # that it must not offer
    supports: tuple[str, ...] = field(default=(), metadata=toml(words=PMI))  # else `pmi`, or any
    alone: bool = False  # each rank is 0 of 1

    def __post_init__(self) -> None:
        if self.pmi and not self.supports:
            object.__setattr__(self, "supports", (self.pmi,))

    def concerns(self, launcher: str, family: str, release: str, supported: Iterable[str]) -> bool:
        return (
            self.launcher == launcher
            and family in self.families
            and (self.when is None or version_numbers(release) in self.when)
            and (not self.supports or any(pmi in supported for pmi in self.supports))
        )


@dataclass(frozen=True, slots=True)
class GpuLibraries:
    vendor: str
    option: str
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    driver: re.Pattern[str] = NOTHING
    runtime: re.Pattern[str] = NOTHING


@dataclass(frozen=True, slots=True)
class CxxCall:
    """Functions of libmpi, and the few of MPI's C++ bindings that call them."""

    symbol: re.Pattern[str]  # for the whole of a name in libmpi
    callers: re.Pattern[str]  # for the beginning of a name, as compilers write it
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))


@dataclass(frozen=True, slots=True)
class BrokenPackage:
    """A distribution's package of an MPI that does not work in that release."""

    os: str
    package: re.Pattern[str]
    version: re.Pattern[str]
    message: str
    fix: str
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    beside: re.Pattern[str] | None = None

    def installed(self, os: str, packages: Mapping[str, str]) -> str:
        """Return `name version` of the package, if it is in a guest; else nothing."""
        if os != self.os or (self.beside and not any(map(self.beside.fullmatch, packages))):
            return ""
        names = (
            n
            for n, v in packages.items()
            if self.package.fullmatch(n) and self.version.fullmatch(v)
        )
        return next((f"{name} {packages[name]}" for name in names), "")


@dataclass(frozen=True, slots=True)
class FitFacts:
    compilers: tuple[FortranCompiler, ...] = field(default=(), metadata=toml("compiler"))
    worlds: tuple[WorldRow, ...] = field(default=(), metadata=toml("world"))
    gpus: tuple[GpuLibraries, ...] = field(default=(), metadata=toml("gpu"))
    cxx_calls: tuple[CxxCall, ...] = field(default=(), metadata=toml("cxx-call"))
    packages: tuple[BrokenPackage, ...] = field(default=(), metadata=toml("broken-package"))


def fit_facts() -> FitFacts:
    """Return this package's table."""
    return load_table(FitFacts, "fit.toml")


def known_world(
    launcher: str, family: str, release: str, supported: Iterable[str] = ()
) -> WorldRow | None:
    """Return what is known of an MPI's ranks under a launcher; None: nothing. `supported`: pmix,
    pmi2."""
    known = tuple(supported)
    rows = fit_facts().worlds
    return next((row for row in rows if row.concerns(launcher, family, release, known)), None)


def wireups(
    launcher: str, family: str, release: str, supported: Iterable[str]
) -> tuple[WorldRow, ...]:
    """Return every way in which ranks of an MPI find each other under a launcher, best first."""
    known = tuple(supported)
    return tuple(
        row
        for row in fit_facts().worlds
        if row.concerns(launcher, family, release, known) and not row.alone
    )


def compilers_of_libraries(sonames: Iterable[str]) -> set[str]:
    """Fortran compilers whose run-time library is among these."""
    names = set(sonames)
    return {
        c.name for c in fit_facts().compilers if any(c.runtime.fullmatch(name) for name in names)
    }


def modules_of_symbols(symbols: Iterable[str]) -> set[tuple[str, str]]:
    """(compiler, module in small letters) that gave one of these symbols its name."""
    return {
        (compiler.name, match[1].lower())
        for symbol in symbols
        for compiler in fit_facts().compilers
        if (match := compiler.mangled.match(symbol)) and match[1]
    }


def compilers_of_symbols(symbols: Iterable[str], module: str = "mpi") -> set[str]:
    """Fortran compilers that gave a symbol of a module its name; `module` begins the module's."""
    names: set[str] = set()
    for symbol in symbols:
        for compiler in fit_facts().compilers:
            match = compiler.mangled.match(symbol)
            if match and match[1].lower().startswith(module):
                names.add(compiler.name)
    return names
