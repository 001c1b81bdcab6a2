"""Which files of a host MPI go under a guest, and where: the loader is simulated until it fits.

Nothing is looked up in tables of known troubles: the guest's programs are loaded, on paper, over
the guest with the graft laid over it, and what the loader would miss says what else has to go in.
Network and MPI libraries are always the host's. Others stay the guest's as long as they have what
the host's libraries need of them (version nodes and symbols); else the host's go over them where
these have what the guest's programs need; else the host's libraries get private copies under
other names. glibc stays the guest's unless it is too old: then all of the host's goes in, since
its parts share private symbols.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from mpigraft.model import Bind, Copy, EnvRow, Replace
from mpigraft.resolve import Resolved

if TYPE_CHECKING:
    from mpigraft.linking import Unbound, Unmet


class Choice(StrEnum):
    """Whose copy of a library that both sides bring is loaded."""

    GUEST = "guest"
    HOST = "host"
    PRIVATE = "private"  # both: the host's under another name


@dataclass(frozen=True, slots=True)
class Collision:
    """A soname that both sides bring."""

    soname: str
    guest: str  # path inside
    host: str  # path on the host
    choice: Choice
    why: str


@dataclass(frozen=True, slots=True)
class Simulated:
    """One program of the guest under the loader, as it is and with the graft."""

    program: str
    before: tuple[Resolved, ...]
    after: tuple[Resolved, ...]  # plugins last
    unmet: tuple[Unmet, ...]  # version nodes missing after and not before
    unbound: tuple[Unbound, ...]  # symbols; those of MPI also when they were missing before
    missing: tuple[Resolved, ...]  # libraries not found after and not before


@dataclass(frozen=True, slots=True)
class Injection:
    """What goes in, where, and what the loader would then say."""

    replace: Replace
    place: str
    copies: tuple[Copy, ...]
    binds: tuple[Bind, ...]
    environment: tuple[EnvRow, ...]
    glibc: bool  # the host's set goes in
    glibc_lacking: tuple[str, ...]  # nodes that the guest's glibc lacks: GLIBC_2.38
    programs: tuple[Simulated, ...]
    collisions: tuple[Collision, ...]
    absent: tuple[tuple[str, str], ...]  # (soname, needed by): no name of it on the host
    closed: tuple[tuple[str, str], ...]  # (plugin, why it cannot be opened)
    libmpi: str  # path inside of the libmpi that ranks map
    inputs: tuple[str, ...]  # files that were read, of the host and of a folder on it
