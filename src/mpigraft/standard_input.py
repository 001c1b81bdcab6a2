"""What a job's ranks read: this process's standard input, handed to them past the launcher.

Launchers read it ahead and lose what no rank asks for; some never send its end. So the launcher
gets nothing, `mpigraft-stdin` stands beside it with the real thing, and `mpigraft-seat` in each
rank fetches it or reads nothing. Standard library only, as all of `fast`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Sequence

from mpigraft import attached

NULL = os.makedev(1, 3)
READY = b"ready\n"


def ensure() -> None:
    """Have something at descriptor 0, where a shell closed it (`<&-`): what is opened next would
    be taken for the input."""
    try:
        os.fstat(0)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def is_empty() -> bool:
    """Whether descriptor 0 is /dev/null: nobody has to stand by then."""
    found = os.fstat(0)
    return found.st_rdev == NULL


def serve(given: Sequence[str], folder: str) -> int:
    """Start the program that hands standard input to ranks, and wait until they may come; its
    process id, or 0 where there is nothing to read. `given`: the program, and its words behind
    `folder`: for whom, how many ranks, near or far. Raises OSError."""
    program, whose, *rest = given
    if whose == "none" or is_empty():
        return 0
    ours, theirs = os.pipe()
    try:
        pid = attached.beside([program, folder, whose, *rest], theirs)
    except BaseException:
        os.close(ours)
        raise
    finally:
        os.close(theirs)
    with open(ours, "rb") as told:  # noqa: PTH123
        if told.read() == READY:
            return pid
    end(pid)
    raise OSError(errno.EIO, "standard input cannot be handed to the ranks", program)


def end(pid: int) -> None:
    """End it, if there is one: it puts back what of a file was not read."""
    if pid:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
