"""Find the MPI libraries that a program names in its own bytes, which it may open by dlopen."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mpigraft.binary import Root, RootError
from mpigraft.knowledge import is_libmpi

MOST = 1 << 26  # bytes of a file
NAME = re.compile(rb"(?<![\w.+-])lib[\w+-]{1,40}\.so(?:\.\d{1,4}){0,3}(?![\w.])")


def named_libraries(root: Root, paths: Iterable[str]) -> tuple[str, ...]:
    """List the names of libraries with MPI's C functions in these files, programs or scripts."""
    names: dict[str, None] = {}
    for path in paths:
        try:
            data = root.read(path, MOST)
        except RootError:
            continue
        for hit in NAME.finditer(data):
            name = hit[0].decode("ascii", "replace")
            if is_libmpi(name):
                names[name] = None
    return tuple(names)
