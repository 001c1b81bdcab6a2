"""Sources of MPIs: one module for each way in which an MPI comes to a machine.

A source only says where an MPI seems to be (`Candidate`). `install` examines each place in the
same way, so an MPI that two sources find gives the same row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from mpigraft.discovery.sources import cray, debian, easybuild, modules, path, spack, wheels
from mpigraft.discovery.sources.candidate import Candidate, Host


class MpiSource(Protocol):
    """Search one kind of place. Yield nothing, rather than raise, when the place is absent."""

    def __call__(self, host: Host, /) -> Iterable[Candidate]: ...


# By rank: where several find the same MPI, the row bears the name of the first.
SOURCES: dict[str, MpiSource] = {
    "path": path.find,
    "cray": cray.find,
    "wheel": wheels.find,
    "module": modules.find,
    "easybuild": easybuild.find,
    "spack": spack.find,
    "debian": debian.find,
}
