"""Files of the tests' cache that are slow to make: made once, and anew when broken or outdated.

Beside each file lies a note of what it was made by and how long it is. The note is written last,
so a maker that was killed leaves none, and a file that was cut short does not agree with it.
"""

from __future__ import annotations

import fcntl
import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


def recipe(*parts: str | Path) -> str:
    """A short name for all that decides how a file is made; of a path the content counts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.read_bytes() if isinstance(part, Path) else part.encode()
        digest.update(b"%d:%b" % (len(data), data))
    return digest.hexdigest()[:16]


def kept(file: Path, made_by: str, make: Callable[[Path], None]) -> Path:
    """`file`, which `make` writes to the path it is given, unless it is there, whole and current.

    `make` is given a path beside `file`, with the same ending, where nothing is.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    note = file.with_name(f"{file.name}.made")
    with only_one(file.with_name(f"{file.name}.lock")):
        if _is_whole(file, note, made_by):
            return file
        new = file.with_name(f"new-{file.name}")
        new.unlink(missing_ok=True)
        note.unlink(missing_ok=True)
        make(new)
        new.rename(file)
        note.write_text(_said(file, made_by), encoding="utf-8")
    return file


def _said(file: Path, made_by: str) -> str:
    return f"{made_by} {file.stat().st_size}\n"


def _is_whole(file: Path, note: Path, made_by: str) -> bool:
    try:
        return note.read_text(encoding="utf-8") == _said(file, made_by)
    except OSError:
        return False


@contextmanager
def only_one(lock: Path) -> Iterator[None]:
    """Two test runs may share a cache; the second waits for what the first makes."""
    with lock.open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield
