"""Resolve what a loader, this host's or a guest's, would map for a file, and by which rule.

The digests of the result are part of a configuration's key.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from mpigraft.binary.architecture.levels import levels_of
from mpigraft.binary.elf.reader import read_elf
from mpigraft.binary.image.root import Root
from mpigraft.binary.loader.files import HostFiles, RootFiles
from mpigraft.binary.loader.guest import widest_loader
from mpigraft.binary.loader.host import Loader
from mpigraft.binary.loader.search import Loading, Resolved, Rule
from mpigraft.core import cache

__all__ = ["Resolved", "Rule", "closure", "closure_digests", "closures"]

NOTHING_OPENED: Mapping[str, Sequence[str]] = MappingProxyType({})


def closure(
    path: Path | str,
    *,
    environment: Mapping[str, str],
    root: Root | None = None,
    opened: Mapping[str, Sequence[str]] = NOTHING_OPENED,
    portable: bool = False,
) -> tuple[Resolved, ...]:
    """List every object that the loader maps for `path` (without it), in the loader's order.

    `environment` is that of the process. With a `root`, `path` and all results are paths inside
    it, as the loader spells them (links are not resolved), and nothing is run. Without one the
    program's own interpreter is started for a query: trust it as you would trust the program.
    `opened`: names that an object opens at run time, by that object's soname. They come last, each
    with what it needs. Of one that dlopen would refuse, its row has no `elf` and says why, and
    rows of what it and its needs lack follow, as needed by it; nothing of it stays mapped.
    `portable`: of a library of this machine that has a file for this CPU and one for any, the
    latter, since a copy of it may run on another node.
    Raises ElfError when `path` itself cannot be read, ForeignLoader when its loader is not glibc's.
    """
    if portable:
        return _portable(path, environment)
    files = RootFiles(root) if root is not None else HostFiles()
    return _objects(Loading(os.fspath(path), environment, files), opened)


def _portable(path: Path | str, environment: Mapping[str, str]) -> tuple[Resolved, ...]:
    here = Loading(os.fspath(path), environment, HostFiles())
    own = _objects(here, NOTHING_OPENED)
    if not here.depends_on_cpu:
        return own
    anywhere = _objects(
        Loading(os.fspath(path), environment, HostFiles(any_cpu=True)), NOTHING_OPENED
    )
    good = tuple(r for r in anywhere if r.path is not None)
    names = {r.name for r in good}
    return (*good, *(r for r in own if r.name not in names))


def closures(
    path: str,
    *,
    environment: Mapping[str, str],
    root: Root,
    opened: Mapping[str, Sequence[str]] = NOTHING_OPENED,
    flags: frozenset[str] | None = None,
) -> dict[str, tuple[Resolved, ...]]:
    """Give {level: objects}: what `closure` lists, on each level of CPU of the program's machine.

    `flags` are those of the CPU at level `HERE`; None: no such level. Levels with equal objects
    share one tuple. Raises as `closure`.
    """
    main = RootFiles(root).elf(path)
    rows = levels_of(main.machine, flags)
    loaders = {level: RootFiles(root).loader_on(main, own) for level, own in rows.items()}
    widest = Loading(path, environment, RootFiles(root, _widest(tuple(loaders.values()))))
    objects = _objects(widest, opened)
    if not widest.depends_on_cpu:  # no file was met that one CPU searches and another does not
        return dict.fromkeys(loaders, objects)
    known: dict[Loader, tuple[Resolved, ...]] = {}
    equal: dict[tuple[Resolved, ...], tuple[Resolved, ...]] = {}
    for loader in dict.fromkeys(loaders.values()):
        objects = _objects(Loading(path, environment, RootFiles(root, loader)), opened)
        known[loader] = equal.setdefault(objects, objects)
    return {level: known[loader] for level, loader in loaders.items()}


@lru_cache(maxsize=16)
def _widest(loaders: tuple[Loader, ...]) -> Loader:
    return widest_loader(loaders)


def _objects(loading: Loading, opened: Mapping[str, Sequence[str]]) -> tuple[Resolved, ...]:
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
