"""Looking at files that may be absent, odd or out of bounds: then they are empty, or not there.

pathlib's own questions raise PermissionError below another user's folder, and on a cluster there
is always one in somebody's PATH.
"""

from __future__ import annotations

import contextlib
import re
import stat
from pathlib import Path


def exists(path: Path) -> bool:
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path) or 0)


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the name
        return path.stat().st_mode
    return None


def text(path: Path) -> str:
    """The content of a small file without the white space around it."""
    with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
        return file.read(1 << 16).decode("utf-8", "replace").strip()
    return ""


def number(path: Path) -> int | None:
    """The content as an integer, decimal or 0x."""
    try:
        return int(text(path), 0)
    except ValueError:
        return None


def entries(folder: Path) -> list[Path]:
    """What is in a folder, in natural order: cpu2 before cpu10."""
    try:
        return sorted(folder.iterdir(), key=lambda p: natural(p.name))
    except (OSError, ValueError):
        return []


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key in which runs of digits count as numbers."""
    return [(int(n) if n else -1, word) for n, word in re.findall(r"(\d+)|(\D+)", name)]


def cpu_list(words: str) -> tuple[int, ...]:
    """`0-3,8,10-11` as numbers: the kernel's cpulist format. Malformed parts are left out."""
    numbers: set[int] = set()
    for part in words.split(","):
        if found := re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part):
            first = int(found[1])
            numbers.update(range(first, int(found[2] or first) + 1))
    return tuple(sorted(numbers))


def link_name(path: Path) -> str:
    """The name that a symbolic link leads to: the driver of a device."""
    with contextlib.suppress(OSError, ValueError):
        return path.readlink().name
    return ""
