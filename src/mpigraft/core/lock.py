"""One campaign at a time on a node: two at once spoil each other's figures.

The lock is a listening socket with an abstract name: the kernel frees it when the holder dies,
however it dies, and no file is left for another user to trip over (a lock file in a sticky
folder cannot even be opened by a second user under fs.protected_regular). Containers with a
network namespace of their own have a lock of their own.

Campaigns that one host starts on other nodes hold a lock for each of those nodes. Two hosts that
start on the same nodes do not see each other: there a scheduler has to keep them apart.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import stat
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from mpigraft.core.errors import MissingError
from mpigraft.core.hostnames import short_name
from mpigraft.core.model import Allocation

NAME = "\0mpigraft-campaign"


@contextlib.contextmanager
def nodes_lock(nodes: Allocation) -> Iterator[None]:
    """Hold the lock of this host if it is one of `nodes`, else of each of them as it is called.
    Raises MissingError as `campaign_lock` does, and where files run out."""
    names = _lock_names(nodes)
    with contextlib.ExitStack() as locks:
        try:
            for name, host in names.items():
                locks.enter_context(campaign_lock(name, host))
        except OSError as error:
            locks.close()  # the error's text is in a file
            raise MissingError.of(
                "locks-too-many", count=len(names), reason=error.strerror
            ) from error
        yield


def _lock_names(nodes: Allocation) -> dict[str, str]:
    """Return the locks of nodes, each with what its host is called."""
    own = short_name(os.uname().nodename)
    shorts = set(map(short_name, nodes.hosts))
    if nodes.here or own in shorts:
        return {NAME: "this host"}
    return {f"{NAME}-{host[:64]}": host for host in sorted(shorts)}  # of 107 that fit


def wait_for_release(nodes: Allocation) -> None:
    """Return when nobody holds a lock of these nodes any more: the kernel closes a holder's
    socket, and with it every connection, when the holder ends."""
    for name in _lock_names(nodes):
        waiting = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with waiting, contextlib.suppress(OSError):
            waiting.connect(name)
            waiting.recv(1)


@contextlib.contextmanager
def campaign_lock(name: str = NAME, host: str = "this host") -> Iterator[None]:
    """Hold the lock of a host, or raise MissingError naming the process that holds it."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
        try:
            lock.bind(name)
        except OSError:
            raise MissingError.of("campaign-running", host=host, holder=_holder(name)) from None
        lock.listen(1)
        yield


def _holder(name: str) -> str:
    """Return who holds the lock, as far as the kernel shows it: pid, user and command line."""
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


def open_lock(path: Path) -> TextIO:
    """Open a file to be locked, which is made. Raises OSError for what another user may have put
    in its place: a link would lead to a file that this one empties."""
    how = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    handle = os.open(path, os.O_RDWR | os.O_CREAT | how, 0o664)
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(handle)
        raise OSError(errno.EINVAL, f"{path} is not a file of its own")
    return os.fdopen(handle, "r+", encoding="utf-8", errors="replace")


@contextlib.contextmanager
def file_lock(path: Path, what: str) -> Iterator[None]:
    """Hold the lock of a file, which is made; other hosts that see it see the lock, where the file
    server has locks. Raises MissingError naming who holds it, OSError for one that cannot be made.
    """
    with open_lock(path) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise MissingError.of("at-work", what=what, holder=file.read(200).strip()) from None
        except OSError as error:
            if error.errno not in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
                raise
        if not _is_same(path, file.fileno()):  # its holder removed it at the end
            raise MissingError.of("at-work", what=what, holder="it has just ended")
        file.truncate(0)
        file.write(f"process {os.getpid()} on {os.uname().nodename}")
        file.flush()
        yield


def _is_same(path: Path, number: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(number))
    except OSError:
        return False
