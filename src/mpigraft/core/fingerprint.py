"""Notice cheaply that a file was replaced, or that the kernel started anew.

Standard library only, and no pathlib: the second start of a job imports this.
"""

from __future__ import annotations

import contextlib
import os

BOOT, NETWORK = "/proc/sys/kernel/random/boot_id", "/proc/self/ns/net"


def file_fingerprint(path: str, time: str = "st_ctime_ns") -> list[int]:
    """[device, inode, size, `time`] of a file, links followed; zeros where there is none."""
    try:
        stat = os.stat(path)  # noqa: PTH116
    except OSError:
        return [0, 0, 0, 0]
    return [stat.st_dev, stat.st_ino, stat.st_size, getattr(stat, time)]


def boot_id() -> str:
    """Return the id of this boot of this kernel; empty where it is not known."""
    with contextlib.suppress(OSError), open(BOOT, encoding="ascii") as file:  # noqa: PTH123
        return file.read().strip()
    return ""


def network_namespace() -> str:
    """Return which network this process has; other interfaces are other lanes."""
    with contextlib.suppress(OSError):
        return os.readlink(NETWORK)  # noqa: PTH115  it links to no path
    return ""
