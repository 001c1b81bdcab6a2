"""Where MPIs are found: one module for each way in which they come to a machine.

A source only says where an MPI seems to be (`Candidate`); `install` looks at the place in the
same way whatever the source, so the same MPI found twice gives the same row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mpigraft.sources import cray, debian, easybuild, modules, path, spack, wheels
from mpigraft.sources.candidate import Candidate, Here


class Source(Protocol):
    """Looks in one kind of place. Finds nothing rather than raise when the place is not there."""

    def __call__(self, here: Here, /) -> Iterable[Candidate]: ...


# In order of rank: where several find the same MPI, the first gives the row its source.
SOURCES: dict[str, Source] = {
    "path": path.find,
    "cray": cray.find,
    "wheel": wheels.find,
    "module": modules.find,
    "easybuild": easybuild.find,
    "spack": spack.find,
    "debian": debian.find,
}
