"""What a job's ranks read: this process's standard input, handed to them past the launcher.

Launchers read it ahead and lose what no rank asks for; some never send its end. So the launcher
gets nothing, `mpigraft-stdin` runs beside it and has the real thing, and `mpigraft-gpu-select` in
each rank fetches it or reads nothing. Standard library only, as all of `fast`.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
from collections.abc import Sequence

NULL = os.makedev(1, 3)
READY = b"ready\n"


def ensure_stdin() -> None:
    """Have something at descriptor 0, where a shell closed it (`<&-`): what is opened next would
    be taken for the input."""
    try:
        os.fstat(0)
    except OSError:
        os.set_inheritable(os.open(os.devnull, os.O_RDONLY), True)


def is_empty() -> bool:
    """Return whether descriptor 0 is /dev/null: nothing has to be forwarded then."""
    stat = os.fstat(0)
    return stat.st_rdev == NULL


def serve_stdin(given: Sequence[str], folder: str) -> int:
    """Start the program that hands standard input to ranks, and wait until they may come; its
    process id, or 0 where there is nothing to read. `given`: the program, and its words behind
    `folder`: for whom, how many ranks, near or far. Raises OSError."""
    program, readers, *rest = given
    if readers == "none" or is_empty():
        return 0
    read_end, write_end = os.pipe()
    try:
        pid = _start_beside([program, folder, readers, *rest], write_end)
    except BaseException:
        os.close(read_end)
        raise
    finally:
        os.close(write_end)
    with open(read_end, "rb") as answer:  # noqa: PTH123
        if answer.read() == READY:
            return pid
    end_stdin(pid)
    raise OSError(errno.EIO, "standard input cannot be handed to the ranks", program)


def _start_beside(argv: Sequence[str], output: int) -> int:
    """Start a program with this process's standard input that answers to the descriptor `output`;
    its process id. Raises OSError."""
    answer = [(os.POSIX_SPAWN_DUP2, output, 1)]
    return os.posix_spawn(argv[0], [*argv], {}, file_actions=answer, setsigmask=())


def start_silent(argv: Sequence[str]) -> int:
    """Start a program that reads and prints nothing beside a job; its process id. Raises
    OSError."""
    closed = [(os.POSIX_SPAWN_OPEN, stream, os.devnull, os.O_RDWR, 0) for stream in range(3)]
    return os.posix_spawn(argv[0], [*argv], os.environ, file_actions=closed, setsigmask=())


def end_stdin(pid: int) -> None:
    """End it, if there is one: it puts back what of a file was not read."""
    if pid:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGTERM)
            os.waitpid(pid, 0)
