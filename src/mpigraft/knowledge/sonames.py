"""Read a library's MPI binding and its role from its soname: sonames.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache

from mpigraft.core.model import Abi, Role
from mpigraft.knowledge.reader import RowError, load_table, toml

LANGUAGES = ("c", "fortran", "cxx", "java", "shmem")
OLD_ABIS = ("ompi-old", "mpich-old")  # ABIs that no MPI of today has


@dataclass(frozen=True, slots=True)
class Binding:
    """An MPI interface for a language. Libraries of one Binding replace each other."""

    abi: str  # a value of model.Abi, or one of OLD_ABIS
    language: str
    part: str = ""  # of a language with several libraries: mpifh, usempif08


@dataclass(frozen=True, slots=True)
class BindingRow:
    abi: str = field(metadata=toml(words=(*(abi.value for abi in Abi), *OLD_ABIS)))
    language: str = field(metadata=toml(words=LANGUAGES))
    soname: re.Pattern[str] = field(metadata=toml(nonempty=True))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))
    part: str = ""

    @property
    def binding(self) -> Binding:
        return Binding(self.abi, self.language, self.part)


@dataclass(frozen=True, slots=True)
class RoleRow:
    role: Role
    soname: re.Pattern[str] = field(metadata=toml(nonempty=True))
    sources: tuple[str, ...] = field(metadata=toml(nonempty=True))


@dataclass(frozen=True, slots=True)
class SonameTable:
    """Patterns for the whole of a soname."""

    bindings: tuple[BindingRow, ...] = field(default=(), metadata=toml("binding"))
    roles: tuple[RoleRow, ...] = field(default=(), metadata=toml("role"))

    def __post_init__(self) -> None:
        known = [row.binding for row in self.bindings]
        if len(set(known)) < len(known):
            raise RowError("binding", "two rows have one abi, language and part")


def soname_table() -> SonameTable:
    """Return this package's table."""
    return load_table(SonameTable, "sonames.toml")


@lru_cache(maxsize=1 << 16)  # an image has tens of thousands of files and a few hundred names
def binding_of(soname: str) -> Binding | None:
    """Return the MPI binding that a library of this name is; None for any other library."""
    rows = soname_table().bindings
    return next((row.binding for row in rows if row.soname.fullmatch(soname)), None)


def is_libmpi(*names: str) -> bool:
    """Return whether a library of one of these names has MPI's C functions."""
    return any((binding := binding_of(name)) and binding.language == "c" for name in names)


@lru_cache(maxsize=1 << 16)
def role_of(soname: str) -> Role:
    """Return the role of a library of this name: whose copy a guest gets of it."""
    if binding_of(soname):
        return Role.MPI
    rows = soname_table().roles
    return next((row.role for row in rows if row.soname.fullmatch(soname)), Role.OTHER)
