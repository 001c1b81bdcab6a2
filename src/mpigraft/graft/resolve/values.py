"""The values of an injection."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from mpigraft.binary.elf import Elf
from mpigraft.binary.loader import Resolved
from mpigraft.core.model import Bind, Copy, EnvRow, Replace

if TYPE_CHECKING:
    from mpigraft.binary.loader import UnboundSymbol, UnmetVersion


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


@dataclass(frozen=True, slots=True)
class SimulatedProgram:
    """One program under the simulated loader, without and with the graft."""

    program: str
    main: Elf = field(repr=False, compare=False)
    before: tuple[Resolved, ...]
    after: tuple[Resolved, ...]  # plugins last
    unmet: tuple[UnmetVersion, ...]  # version nodes missing after and not before
    unbound: tuple[UnboundSymbol, ...]  # symbols; those of MPI also when they were missing before
    missing: tuple[Resolved, ...]  # libraries not found after and not before


@dataclass(frozen=True, slots=True)
class Injection:
    """What goes in, where, and the loader's simulation with it."""

    replace: Replace
    place: str
    copies: tuple[Copy, ...]
    binds: tuple[Bind, ...]
    environment: tuple[EnvRow, ...]
    glibc: bool  # the host's set goes in
    glibc_lacking: tuple[str, ...]  # nodes that the guest's glibc lacks: GLIBC_2.38
    programs: tuple[SimulatedProgram, ...]
    collisions: tuple[Collision, ...]
    absent: tuple[tuple[str, str], ...]  # (soname, needed by): no name of it on the host
    closed: tuple[tuple[str, str], ...]  # (plugin, why it cannot be opened)
    libmpi: str  # path inside of the libmpi that ranks map
    inputs: tuple[str, ...]  # files that were read, of the host and of a folder on it
