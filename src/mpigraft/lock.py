"""One campaign at a time on a host: two at once spoil each other's figures.

The lock is a listening socket with an abstract name: the kernel frees it when the holder dies,
however it dies, and no file is left for another user to trip over (a lock file in a sticky
folder cannot even be opened by a second user under fs.protected_regular). Containers with a
network namespace of their own have a lock of their own.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from mpigraft.errors import MissingError

NAME = "\0mpigraft-campaign"


@contextlib.contextmanager
def campaign_lock(name: str = NAME) -> Iterator[None]:
    """Hold the host-wide lock, or raise MissingError naming the process that holds it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as held:
        try:
            held.bind(name)
        except OSError:
            raise MissingError(
                f"another campaign is running on this host{_holder(name)}",
                why="two campaigns at once slow each other down and neither is true",
                mend="wait for it to end, or end it; then start again (--resume goes on)",
            ) from None
        held.listen(1)
        yield


def _holder(name: str) -> str:
    """Who holds the lock, as far as the kernel tells: pid, user and command line."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(1)
        try:
            probe.connect(name)
            peer = probe.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        except OSError:
            return ""
    pid, uid, _ = struct.unpack("3i", peer)
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
        command = " ".join(w.decode(errors="replace") for w in words if w)[:120]
        return f" (pid {pid}, user id {uid}: {command})"
    return f" (pid {pid}, user id {uid})"
