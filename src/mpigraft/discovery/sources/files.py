"""Read files that may be absent, malformed or unreadable: these count as empty or absent.

Path.exists and its kin raise PermissionError below another user's folder, and on a cluster some
PATH always has one.
"""

from __future__ import annotations

import contextlib
import re
import stat
from collections.abc import Mapping
from pathlib import Path

from mpigraft.core import file_dependencies

OF_KERNEL = ("/proc/", "/sys/", "/dev/")  # no times that say anything


def _note(path: Path) -> None:
    if not str(path).startswith(OF_KERNEL):
        file_dependencies.file(path)


def exists(path: Path) -> bool:
    return _mode(path) is not None


def is_file(path: Path) -> bool:
    return stat.S_ISREG(_mode(path) or 0)


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(_mode(path) or 0)


def _mode(path: Path) -> int | None:
    _note(path)
    with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the name
        return path.stat().st_mode
    return None


def text(path: Path) -> str:
    """Read a small file, without the white space around its content."""
    _note(path)
    with contextlib.suppress(OSError, ValueError), path.open("rb") as file:
        return file.read(1 << 16).decode("utf-8", "replace").strip()
    return ""


def number(path: Path) -> int | None:
    """Read a file as an integer, decimal or 0x."""
    try:
        return int(text(path), 0)
    except ValueError:
        return None


def entries(folder: Path) -> list[Path]:
    """List a folder in natural order: cpu2 before cpu10."""
    if not str(folder).startswith(OF_KERNEL):
        file_dependencies.folder(folder)
    try:
        return sorted(folder.iterdir(), key=lambda p: natural(p.name))
    except (OSError, ValueError):
        return []


def present(details: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Give the details that have a value."""
    return tuple((name, value) for name, value in details.items() if value)


def natural(name: str) -> list[tuple[int, str]]:
    """Make a sort key in which runs of digits count as numbers."""
    return [(int(n) if n else -1, word) for n, word in re.findall(r"(\d+)|(\D+)", name)]


def cpu_list(words: str) -> tuple[int, ...]:
    """Parse the kernel's cpulist format, `0-3,8,10-11`. Malformed parts are left out."""
    numbers: set[int] = set()
    for part in words.split(","):
        if match := re.fullmatch(r"\s*(\d{1,6})(?:-(\d{1,6}))?\s*", part):
            first = int(match[1])
            numbers.update(range(first, int(match[2] or first) + 1))
    return tuple(sorted(numbers))


def link_name(path: Path) -> str:
    """Give the file name that a symbolic link leads to: the driver of a device."""
    with contextlib.suppress(OSError, ValueError):
        return path.readlink().name
    return ""
