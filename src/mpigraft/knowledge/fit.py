"""The rows of fit.toml as values: what fits, of what the loader cannot see."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from mpigraft.knowledge.table import Document, Range, Table, document, version, version_range
from mpigraft.model import Family

Row = TypeVar("Row")
PMI = ("pmix", "pmi2", "pmi1", "simple", "cray_shasta", "cray-pals")  # as launchers name them
NEVER = r"(?!)()"  # for a compiler whose names say nothing of it


@dataclass(frozen=True, slots=True)
class Compiler:
    """A family of Fortran compilers, and how its work is known."""

    name: str
    runtime: re.Pattern[str]  # for the whole of a soname
    mangled: re.Pattern[str]  # for the beginning of a symbol; group 1 is its module


@dataclass(frozen=True, slots=True)
class World:
    """Whether the ranks of an MPI find each other under a launcher."""

    launcher: str
    families: tuple[str, ...]
    when: Range | None
    pmi: str  # what the launcher offers the ranks; empty: it has one way only
    speaks: tuple[str, ...]  # the row is for an MPI that speaks one of these; empty: for any
    alone: bool  # each rank is 0 of 1

    def concerns(self, launcher: str, family: str, release: str, spoken: Iterable[str]) -> bool:
        return (
            self.launcher == launcher
            and family in self.families
            and (self.when is None or version(release) in self.when)
            and (not self.speaks or any(word in spoken for word in self.speaks))
        )


@dataclass(frozen=True, slots=True)
class GpuLibraries:
    vendor: str
    driver: re.Pattern[str]
    runtime: re.Pattern[str]
    option: str


@dataclass(frozen=True, slots=True)
class Fabric:
    kind: str
    providers: tuple[str, ...]
    ucx: bool


@dataclass(frozen=True, slots=True)
class Facts:
    compilers: tuple[Compiler, ...]
    worlds: tuple[World, ...]
    gpus: tuple[GpuLibraries, ...]
    fabrics: tuple[Fabric, ...]


def read(data: Document, file: str = "fit.toml") -> Facts:
    """The rows of a document. Raises UsageError for a wrong one."""
    whole = Table(file, dict(data))
    facts = Facts(
        compilers=tuple(_compiler(table) for table in whole.tables("compiler")),
        worlds=tuple(_world(table) for table in whole.tables("world")),
        gpus=tuple(_gpu(table) for table in whole.tables("gpu")),
        fabrics=tuple(_fabric(table) for table in whole.tables("fabric")),
    )
    whole.done()
    return facts


@cache
def facts() -> Facts:
    """This package's table, read and checked once."""
    return read(document("fit.toml"))


def world(launcher: str, family: str, release: str, spoken: Iterable[str] = ()) -> World | None:
    """What is known of an MPI's ranks under a launcher; None: nothing. `spoken`: pmix, pmi2."""
    known = tuple(spoken)
    rows = facts().worlds
    return next((row for row in rows if row.concerns(launcher, family, release, known)), None)


def starts(launcher: str, family: str, release: str, spoken: Iterable[str]) -> tuple[World, ...]:
    """Every way in which ranks of an MPI find each other under a launcher, best first."""
    known = tuple(spoken)
    return tuple(
        row
        for row in facts().worlds
        if row.concerns(launcher, family, release, known) and not row.alone
    )


def compilers_of_libraries(sonames: Iterable[str]) -> set[str]:
    """Fortran compilers whose run-time library is among these."""
    names = set(sonames)
    return {c.name for c in facts().compilers if any(c.runtime.fullmatch(name) for name in names)}


def modules_of_symbols(symbols: Iterable[str]) -> set[tuple[str, str]]:
    """(compiler, module in small letters) that gave one of these symbols its name."""
    return {
        (compiler.name, match[1].lower())
        for symbol in symbols
        for compiler in facts().compilers
        if (match := compiler.mangled.match(symbol)) and match[1]
    }


def compilers_of_symbols(symbols: Iterable[str], module: str = "mpi") -> set[str]:
    """Fortran compilers that gave a symbol of a module its name; `module` begins the module's."""
    found: set[str] = set()
    for symbol in symbols:
        for compiler in facts().compilers:
            match = compiler.mangled.match(symbol)
            if match and match[1].lower().startswith(module):
                found.add(compiler.name)
    return found


# ------------------------------------------------------------------ rows


def _compiler(table: Table) -> Compiler:
    row = Compiler(
        name=table.text("name"),
        runtime=_any(table, "runtime"),
        mangled=re.compile(table.pattern("mangled", NEVER)),
    )
    if row.mangled.groups != 1:
        raise table.wrong("mangled", "needs one group, for the module")
    return _ended(table, row)


def _world(table: Table) -> World:
    pmi = table.choice("pmi", PMI, "")
    row = World(
        launcher=table.text("launcher"),
        families=table.texts("family"),
        when=version_range(table, "when"),
        pmi=pmi,
        speaks=table.texts("speaks", [pmi] if pmi else []),
        alone=bool(table.flag("alone")),
    )
    if unknown := set(row.families) - {family.value for family in Family}:
        raise table.wrong("family", f"{sorted(unknown)} are unknown")
    if unknown := set(row.speaks) - set(PMI):
        raise table.wrong("speaks", f"{sorted(unknown)} are unknown")
    return _ended(table, row)


def _gpu(table: Table) -> GpuLibraries:
    row = GpuLibraries(
        table.text("vendor"), _any(table, "driver"), _any(table, "runtime"), table.text("option")
    )
    return _ended(table, row)


def _fabric(table: Table) -> Fabric:
    row = Fabric(table.text("kind"), table.texts("provider"), bool(table.flag("ucx")))
    return _ended(table, row)


def _any(table: Table, key: str) -> re.Pattern[str]:
    """One pattern for a list of them; without any it matches nothing."""
    words = table.texts(key, [])
    try:
        return re.compile("|".join(f"(?:{word})" for word in words) or NEVER)
    except re.error as error:
        raise table.wrong(key, f"not a regular expression: {error}") from None


def _ended(table: Table, row: Row) -> Row:
    if not table.texts("sources"):
        raise table.wrong("sources", "empty")
    table.done()
    return row
