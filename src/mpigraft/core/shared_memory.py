"""The memory that ranks of a node share. Standard library only: the second start imports this."""

from __future__ import annotations

import os

PLACE = "/dev/shm"  # noqa: S108
ENOUGH_MIB = 32  # with 16 two ranks of MPICH 5.0.2 died in MPI_Init, with 32 they ran
SMALL_MIB = 1024  # of all: one window of a program may fill it
BUS_ERRORS = (135, 7)  # exit codes: Open MPI 4 and 5 add 128, hydra of MPICH 5.0.2 does not
MIB = 1 << 20


def memory() -> tuple[float, float] | None:
    """(free, size) of it in MiB; None where there is none."""
    try:
        room = os.statvfs(PLACE)
    except OSError:
        return None
    free, size = (blocks * room.f_frsize / MIB for blocks in (room.f_bavail, room.f_blocks))
    return free, size


def scarce_memory(code: int = 0) -> tuple[float, float] | None:
    """(free, size) of it in MiB where less than ENOUGH_MIB is free, or where it is small and
    `code`, with which a job failed, says that SIGBUS ended a rank; None elsewhere. What a rank
    wrote that died of it is still there, unless its file was removed before."""
    if (room := memory()) is None:
        return None
    free, size = room
    died_of_it = code in BUS_ERRORS and size < SMALL_MIB
    return (free, size) if free < ENOUGH_MIB or died_of_it else None
