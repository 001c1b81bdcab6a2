"""Files for people, written whole or not at all: a reader never meets half of one."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO


def write_whole(path: Path, data: bytes, mode: int | None = None) -> None:
    """Write a file with rights `mode`; without it those that it has, or that the umask leaves.

    A link is followed, so that the file it points at changes. Raises OSError.
    """
    with writing_whole(path, mode) as file:
        file.write(data)


@contextlib.contextmanager
def writing_whole(path: Path, mode: int | None = None) -> Iterator[IO[bytes]]:
    """Give a file to write, which takes the place of `path` at the end, as in `write_whole`. A
    device or a pipe (/dev/stdout) is written to, and stays what it is."""
    if is_stream(path):
        with path.open("wb") as file:
            yield file
        return
    target = path.resolve()
    if mode is None:
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~process_umask()
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    fresh = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        fresh.chmod(mode)
        fresh.replace(target)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def is_stream(path: Path) -> bool:
    """Whether something is there that bytes go through, or a link to what a process has open."""
    open_file = path.is_symlink() and path.parts[1:2] in (("dev",), ("proc",))
    return path.exists() and (open_file or not (path.is_file() or path.is_dir()))


def process_umask() -> int:
    """Give the umask of this process, which files that it makes have."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
