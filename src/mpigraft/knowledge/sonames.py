"""What a soname says of a library: the MPI binding that it is, and its role."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache

from mpigraft.errors import UsageError
from mpigraft.knowledge.table import Document, Table, document
from mpigraft.model import Abi, Role

LANGUAGES = ("c", "fortran", "cxx", "java")
OLD = ("ompi-old", "mpich-old")  # ABIs that no MPI of today has


@dataclass(frozen=True, slots=True)
class Binding:
    """An MPI interface for a language. Libraries of one Binding stand in for each other."""

    abi: str  # a value of model.Abi, or one of OLD
    language: str
    part: str = ""  # of a language with several libraries: mpifh, usempif08


@dataclass(frozen=True, slots=True)
class Names:
    """Rows of sonames.toml: patterns for the whole of a soname."""

    bindings: tuple[tuple[re.Pattern[str], Binding], ...]
    roles: tuple[tuple[re.Pattern[str], Role], ...]


def read(data: Document, file: str = "sonames.toml") -> Names:
    """The rows of a document. Raises UsageError for a wrong row, or two rows of one binding."""
    whole = Table(file, dict(data))
    bindings: dict[Binding, re.Pattern[str]] = {}
    for table in whole.tables("binding"):
        binding = Binding(
            abi=table.choice("abi", (*(abi.value for abi in Abi), *OLD)),
            language=table.choice("language", LANGUAGES),
            part=table.text("part", ""),
        )
        if binding in bindings:
            raise table.wrong("abi", "another row has this abi, language and part")
        bindings[binding] = _pattern(table)
    roles = [
        (Role(table.choice("role", tuple(role.value for role in Role))), _pattern(table))
        for table in whole.tables("role")
    ]
    whole.done()
    return Names(
        tuple((pattern, binding) for binding, pattern in bindings.items()),
        tuple((pattern, role) for role, pattern in roles),
    )


def _pattern(table: Table) -> re.Pattern[str]:
    words = table.texts("soname")
    for key in ("soname", "sources"):
        if not table.texts(key):
            raise table.wrong(key, "empty")
    table.done()
    try:
        return re.compile("|".join(f"(?:{word})" for word in words))
    except re.error as error:
        raise UsageError(f"{table.where}, key soname: {error}") from None


@cache
def names() -> Names:
    """This package's table, read and checked once."""
    return read(document("sonames.toml"))


@lru_cache(maxsize=1 << 16)  # an image has tens of thousands of files and a few hundred names
def binding_of(soname: str) -> Binding | None:
    """The MPI binding that a library of this name is; None for any other library."""
    return next((b for pattern, b in names().bindings if pattern.fullmatch(soname)), None)


@lru_cache(maxsize=1 << 16)
def role_of(soname: str) -> Role:
    """Whose copy a guest gets of a library of this name."""
    if binding_of(soname):
        return Role.MPI
    return next((r for pattern, r in names().roles if pattern.fullmatch(soname)), Role.OTHER)
