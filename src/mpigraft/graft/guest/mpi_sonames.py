"""Follow the needs of files by name: which of them need MPI, directly or through libraries.

Names decide here, not the loader: two libraries of one name are one. The loader is simulated later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from mpigraft.knowledge import binding_of

# An MPI's own tools need it too, but are no guest programs.
MPI_TOOLS = re.compile(
    r"ompi_info|ompi-(clean|dvm|info|ps|server|submit|top)|(ompi|oshmem|orte|opal)_wrapper|"
    r"oshmem_info|shmem_info|orterun|orted|orte-(clean|dvm|info|ps|server|submit|top)|"
    r"mpi(run|exec)(\.(openmpi|mpich|hydra|gforker|remshell))?|mpichversion(\.mpich)?|mpivars|"
    r"hydra_(pmi_proxy|nameserver|persist)|parkill|impi_(info|cpuinfo)|mpitune(_fast)?"
)


class LinkedFile(NamedTuple):
    """A file that needs libraries."""

    path: str
    names: tuple[str, ...]  # file name and soname
    needed: tuple[str, ...]
    program: bool


def mpi_carriers(files: Iterable[LinkedFile]) -> frozenset[str]:
    """Give the names of libraries that need an MPI library, directly or not; and of these."""
    users: dict[str, list[LinkedFile]] = {}
    for file in files:
        for needed in file.needed:
            users.setdefault(needed, []).append(file)
    carriers = {name for name in users if binding_of(name)}
    fresh = list(carriers)
    while fresh:
        for user in users.get(fresh.pop(), ()):
            new = set(user.names) - carriers if not user.program else set()
            carriers |= new
            fresh += new
    return frozenset(carriers)
