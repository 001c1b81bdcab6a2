"""The folder that the ranks of one job write their records into. Standard library only."""

from __future__ import annotations

import contextlib
import os

ROOM = bytes(1 << 16)  # more than the records of a node's ranks take, but for the largest nodes
MOST = 100  # names that are tried


def new_folder(home: str) -> str:
    """Name of a new folder in `home`; empty: it cannot be made, or nothing can be written into it.

    The process id in it lets a later command sweep up after one that was killed.
    """
    for number in range(MOST):
        name = f"mpigraft-{os.getpid()}-run{number}"
        try:
            os.mkdir(f"{home}/{name}", 0o700)  # noqa: PTH102
        except FileExistsError:
            continue
        except OSError:
            return ""
        if _has_room(f"{home}/{name}"):
            return name
        with contextlib.suppress(OSError):
            os.rmdir(f"{home}/{name}")  # noqa: PTH106
        return ""
    return ""


def _has_room(folder: str) -> bool:
    """Return whether records can be written: a job should not end first to tell that the disk, or
    the user's share of it, is full."""
    trial = f"{folder}/room"
    try:
        with open(trial, "xb", buffering=0) as file:  # noqa: PTH123
            return file.write(ROOM) == len(ROOM)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            os.unlink(trial)  # noqa: PTH108
