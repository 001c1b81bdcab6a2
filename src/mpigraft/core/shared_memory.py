"""The memory that ranks of a node share. Standard library only: the second start imports this."""

from __future__ import annotations

import os

PLACE = "/dev/shm"  # noqa: S108
ENOUGH_MIB = 32  # with 16 two ranks of MPICH 5.0.2 died in MPI_Init, with 32 they ran
MIB = 1 << 20


def scarce_memory() -> tuple[float, float] | None:
    """(free, size) of it in MiB where less than ENOUGH_MIB is free; None elsewhere. What a rank
    wrote that died of it is still there."""
    try:
        room = os.statvfs(PLACE)
    except OSError:
        return None
    free, size = (blocks * room.f_frsize / MIB for blocks in (room.f_bavail, room.f_blocks))
    return (free, size) if free < ENOUGH_MIB else None
