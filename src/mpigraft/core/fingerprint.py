"""Notice cheaply that a file was replaced, that mpigraft itself was, or that the kernel started
anew.

Standard library only, and no pathlib: the second start of a job imports this.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
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


@functools.cache
def own_state() -> str:
    """Digest, hex, of the places, sizes and change times of mpigraft's own files: its rules and
    tables decide on an answer.

    In a tree that is worked on these are all files, since the version stays the same. What is
    installed is replaced as a whole, and a site may correct its tables.
    """
    worked_on = os.path.exists(f"{TOP}/../../pyproject.toml")  # noqa: PTH110
    first = f"{TOP}/__init__.py"
    states = [f"{first} {file_fingerprint(first)}"]
    states += _own_files(TOP if worked_on else f"{TOP}/knowledge")
    return hashlib.sha256("\n".join(sorted(states)).encode()).hexdigest()


def _own_files(folder: str) -> Iterator[str]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.endswith((".py", ".toml")):
                yield f"{entry.path} {file_fingerprint(entry.path)}"
            elif entry.name != "__pycache__" and entry.is_dir():
                yield from _own_files(entry.path)
