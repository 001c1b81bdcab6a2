"""What a loader would pick for a file, by which rule, and what it tried: this host's, a guest's.

What is made of it: contents that make a configuration's key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from mpigraft import cache, elf
from mpigraft.library_files import HostFiles, RootFiles
from mpigraft.loading import Loading, Resolved, Rule
from mpigraft.roots import Root

__all__ = ["Resolved", "Rule", "closure", "contents"]

NOTHING_OPENED: Mapping[str, Sequence[str]] = MappingProxyType({})


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


def contents(libmpi: Path, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Sorted (soname, SHA-256) of libmpi and its closure: what a configuration's key holds.

    A library that is not found stands with an empty digest. Raises ElfError.
    """
    own = elf.read(libmpi).soname or libmpi.name
    found = closure(libmpi, environment=environment)
    return tuple(sorted({(own, _digest(libmpi)), *((r.soname, _digest(r.path)) for r in found)}))


def _digest(path: Path | None) -> str:
    try:
        return cache.file_digest(path) if path else ""
    except OSError:
        return ""
