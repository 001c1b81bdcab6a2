"""What a loader would pick for a file, by which rule, and what it tried: this host's, a guest's.

What is made of it: contents that make a configuration's key, and facts for `discover --abi`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from mpigraft import cache, elf
from mpigraft.library_files import HostFiles, RootFiles
from mpigraft.loading import Loading, Resolved, Rule
from mpigraft.roots import Root

__all__ = [
    "AbiFacts",
    "Library",
    "Resolved",
    "Rule",
    "abi_facts",
    "closure",
    "contents",
    "libraries",
]

NOTHING_OPENED: Mapping[str, Sequence[str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Library:
    """One object of a closure by content. `digest` is empty when it was not found."""

    soname: str
    path: Path | None
    digest: str
    how: str


@dataclass(frozen=True, slots=True)
class AbiFacts:
    """What an MPI asks of its host and offers to a program, for `discover --abi`."""

    libmpi: Path
    soname: str
    exported: tuple[str, ...]  # of libmpi: name, name@@version or name@version
    versions_defined: tuple[tuple[str, tuple[str, ...]], ...]  # (soname, nodes), whole closure
    versions_needed: tuple[tuple[str, str, str], ...]  # (by, library, node), whole closure
    closure: tuple[Library, ...]  # libmpi first


def closure(
    path: Path | str,
    *,
    environment: Mapping[str, str],
    root: Root | None = None,
    opened: Mapping[str, Sequence[str]] = NOTHING_OPENED,
) -> tuple[Resolved, ...]:
    """Every object that the loader maps for `path` (without it), in the loader's order.

    `environment` is that of the process to be. With a `root`, `path` and all that is found are
    paths inside of it, as the loader spells them (links are not resolved), and nothing is run.
    Without one a program's own interpreter is asked, that is started, with a harmless task: trust
    it as you would trust the program.
    `opened`: names that an object opens at run time, by that object's soname. They come last, each
    with what it needs. Of one that dlopen would refuse, its row has no `elf` and says why, and
    rows of what it and its needs lack follow, as needed by it; nothing of it stays mapped.
    Raises ElfError when `path` itself cannot be read, ForeignLoader when its loader is not glibc's.
    """
    files = RootFiles(root) if root is not None else HostFiles()
    loading = Loading(os.fspath(path), environment, files)
    found = list(loading.objects())
    return (*found, *loading.plugins(opened)) if opened else tuple(found)


def libraries(libmpi: Path, environment: Mapping[str, str]) -> tuple[Library, ...]:
    """`libmpi` and its closure by content, in the loader's order. Raises ElfError."""
    facts = elf.read(libmpi)
    first = Library(facts.soname or libmpi.name, libmpi, _digest(libmpi), "asked for")
    found = closure(libmpi, environment=environment)
    return (first, *(Library(r.soname, r.path, _digest(r.path), r.how) for r in found))


def contents(libmpi: Path, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Sorted (soname, SHA-256) of libmpi and its closure: what a configuration's key holds.

    A library that is not found stands with an empty digest. Raises ElfError.
    """
    return tuple(sorted({(x.soname, x.digest) for x in libraries(libmpi, environment)}))


def abi_facts(libmpi: Path, environment: Mapping[str, str]) -> AbiFacts:
    """Symbols, version nodes and closure of an installed libmpi. Raises ElfError."""
    facts = elf.read(libmpi)
    found = closure(libmpi, environment=environment)
    files = [facts, *(r.elf for r in found if r.elf is not None)]
    names = [f.soname or Path(f.name).name for f in files]
    needed = {
        (name, need.library, need.node)
        for name, file in zip(names, files, strict=True)
        for need in file.needs
    }
    return AbiFacts(
        libmpi=libmpi,
        soname=names[0],
        exported=tuple(sorted({str(symbol) for symbol in facts.exported})),
        versions_defined=tuple(
            (name, file.version_defs)
            for name, file in zip(names, files, strict=True)
            if file.version_defs
        ),
        versions_needed=tuple(sorted(needed)),
        closure=libraries(libmpi, environment),
    )


def _digest(path: Path | None) -> str:
    try:
        return cache.file_digest(path) if path else ""
    except OSError:
        return ""
