"""Resolve what a loader, this host's or a guest's, would map for a file, and by which rule.

The digests of the result are part of a configuration's key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from mpigraft.binary.elf import read_elf
from mpigraft.binary.image import Root
from mpigraft.binary.loader.files import HostFiles, RootFiles
from mpigraft.binary.loader.search import Loading, Resolved, Rule
from mpigraft.core import cache

__all__ = ["Resolved", "Rule", "closure", "closure_digests"]

NOTHING_OPENED: Mapping[str, Sequence[str]] = MappingProxyType({})


def closure(
    path: Path | str,
    *,
    environment: Mapping[str, str],
    root: Root | None = None,
    opened: Mapping[str, Sequence[str]] = NOTHING_OPENED,
) -> tuple[Resolved, ...]:
    """List every object that the loader maps for `path` (without it), in the loader's order.

    `environment` is that of the process. With a `root`, `path` and all results are paths inside
    it, as the loader spells them (links are not resolved), and nothing is run. Without one the
    program's own interpreter is started for a query: trust it as you would trust the program.
    `opened`: names that an object opens at run time, by that object's soname. They come last, each
    with what it needs. Of one that dlopen would refuse, its row has no `elf` and says why, and
    rows of what it and its needs lack follow, as needed by it; nothing of it stays mapped.
    Raises ElfError when `path` itself cannot be read, ForeignLoader when its loader is not glibc's.
    """
    files = RootFiles(root) if root is not None else HostFiles()
    loading = Loading(os.fspath(path), environment, files)
    objects = list(loading.objects())
    return (*objects, *loading.plugins(opened)) if opened else tuple(objects)


def closure_digests(libmpi: Path, environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Give sorted (soname, SHA-256) of libmpi and its closure, for a configuration's key.

    A library that is not found has an empty digest. Raises ElfError.
    """
    own = read_elf(libmpi).soname or libmpi.name
    objects = closure(libmpi, environment=environment)
    return tuple(sorted({(own, _digest(libmpi)), *((r.soname, _digest(r.path)) for r in objects)}))


def _digest(path: Path | None) -> str:
    try:
        return cache.file_digest(path) if path else ""
    except OSError:
        return ""
