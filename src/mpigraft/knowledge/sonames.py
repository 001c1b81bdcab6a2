"""What a soname says of a library: its MPI binding and its role: sonames.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache, lru_cache

from mpigraft.core.model import Abi, Role
from mpigraft.knowledge.reader import Document, RowError, load_document, read_table, toml

LANGUAGES = ("c", "fortran", "cxx", "java", "shmem")
OLD_ABIS = ("ompi-old", "mpich-old")  # ABIs that no MPI of today has


@dataclass(frozen=True, slots=True)
class Binding:
    """An MPI interface for a language. Libraries of one Binding stand in for each other."""

    abi: str  # a value of model.Abi, or one of OLD_ABIS
    language: str
    part: str = ""  # of a language with several libraries: mpifh, usempif08


@dataclass(frozen=True, slots=True)
class SonameTable:
    """Patterns for the whole of a soname."""

    bindings: tuple[tuple[re.Pattern[str], Binding], ...]
    roles: tuple[tuple[re.Pattern[str], Role], ...]


@dataclass(frozen=True, slots=True)
class BindingRow:
    abi: str = field(metadata=toml(words=(*(abi.value for abi in Abi), *OLD_ABIS)))
    language: str = field(metadata=toml(words=LANGUAGES))
    soname: re.Pattern[str] = field(metadata=toml(nonempty=True))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    part: str = ""


@dataclass(frozen=True, slots=True)
class RoleRow:
    role: Role
    soname: re.Pattern[str] = field(metadata=toml(nonempty=True))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))


@dataclass(frozen=True, slots=True)
class Rows:
    binding: tuple[BindingRow, ...] = ()
    role: tuple[RoleRow, ...] = ()

    def __post_init__(self) -> None:
        known = [(row.abi, row.language, row.part) for row in self.binding]
        if len(set(known)) < len(known):
            raise RowError("binding", "two rows have one abi, language and part")


def read(data: Document, file: str = "sonames.toml") -> SonameTable:
    """Return the rows of a document. Raises UsageError for a wrong row, or two rows of one
    binding."""
    rows = read_table(Rows, data, file)
    return SonameTable(
        tuple((row.soname, Binding(row.abi, row.language, row.part)) for row in rows.binding),
        tuple((row.soname, row.role) for row in rows.role),
    )


@cache
def soname_table() -> SonameTable:
    """Return this package's table, read and checked once."""
    return read(load_document("sonames.toml"))


@lru_cache(maxsize=1 << 16)  # an image has tens of thousands of files and a few hundred names
def binding_of(soname: str) -> Binding | None:
    """Return the MPI binding that a library of this name is; None for any other library."""
    return next((b for pattern, b in soname_table().bindings if pattern.fullmatch(soname)), None)


def is_libmpi(*names: str) -> bool:
    """Return whether a library of one of these names has MPI's C functions."""
    return any((binding := binding_of(name)) and binding.language == "c" for name in names)


@lru_cache(maxsize=1 << 16)
def role_of(soname: str) -> Role:
    """Return the role of a library of this name: whose copy a guest gets of it."""
    if binding_of(soname):
        return Role.MPI
    return next((r for pattern, r in soname_table().roles if pattern.fullmatch(soname)), Role.OTHER)
