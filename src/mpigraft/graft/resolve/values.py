"""The values of an injection."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from mpigraft.core.model import Bind, Copy, EnvRow, Replace
from mpigraft.graft.loading.values import SimulatedProgram


class CopyPolicy(StrEnum):
    """The side whose copy of a library is loaded, where both bring one."""

    GUEST = "guest"
    HOST = "host"
    PRIVATE = "private"  # both: the host's under another name


@dataclass(frozen=True, slots=True)
class Collision:
    """A soname that both sides bring."""

    soname: str
    guest: str  # path inside
    host: str  # path on the host
    choice: CopyPolicy
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Injection:
    """What goes in, where, and the loader's simulation with it."""

    replace: Replace
    place: str
    copies: tuple[Copy, ...] = ()
    binds: tuple[Bind, ...] = ()
    environment: tuple[EnvRow, ...] = ()
    glibc: bool = False  # the host's set goes in
    glibc_lacking: tuple[str, ...] = ()  # nodes that the guest's glibc lacks: GLIBC_2.38
    programs: tuple[SimulatedProgram, ...] = ()
    collisions: tuple[Collision, ...] = ()
    absent: tuple[tuple[str, str], ...] = ()  # (soname, needed by): no name of it on the host
    closed: tuple[tuple[str, str], ...] = ()  # (plugin, why it cannot be opened)
    libmpi: str  # path inside of the libmpi that ranks map
    libmpi_elsewhere: tuple[str, ...] = ()  # its other paths, on CPUs of other levels
    inputs: tuple[str, ...] = ()  # files that were read, of the host and of a folder on it
    files: frozenset[str] = frozenset()  # the host's, where they stay: none lies at `place`

    def of_host(self, path: object) -> bool:
        """Whether ranks see a file of the host's MPI there."""
        return str(path).startswith(f"{self.place}/") or str(path) in self.files
