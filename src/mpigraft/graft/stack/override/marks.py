"""Tell generations apart by what their processes map: each has a file whose name has its key.

A number is no identity: where the overrides of a stack are local to each node, two nodes may both
have a generation 1, of different MPIs.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path, PurePath

from mpigraft.core.model import MappedLibrary
from mpigraft.graft.stack.override.content import LIB, SETTINGS


def generation_mark(libmpi: str) -> str:
    """Give the mark of the generation on this machine that a libmpi belongs to; empty where it is
    of none, or of one that is gone. `libmpi` is a path without links."""
    for folder in PurePath(libmpi).parents[:2]:
        names = sorted(path.name for path in Path(folder, LIB).glob(f"{SETTINGS}*.so"))
        if names:
            return names[0]
    return ""


def mapped_marks(libraries: Iterable[MappedLibrary]) -> frozenset[str]:
    """Give the marks of the generations that a process has mapped."""
    names = (PurePath(library.path.removesuffix(" (deleted)")).name for library in libraries)
    return frozenset(name for name in names if name.startswith(SETTINGS))
