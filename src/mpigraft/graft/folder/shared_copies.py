"""Make the copies of a graft folder, once for all plans, by hard links where the disk has them.

`libraries/KEY/SHA-256` next to the graft folders holds a copy. KEY is the digest of its source and
its edits; SHA-256 is that of its content, which is checked before a plan takes the copy. A copy is
removed with the last plan that uses it. Where no link can be made each plan has its own copies.
A new link changes a file's ctime, so no code may take a changed ctime for a changed file.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mpigraft.core import cache
from mpigraft.core.model import Copy
from mpigraft.core.serialize import digest, plain
from mpigraft.core.write import make_folder
from mpigraft.graft.folder.library_copy import FULL, make_copy

FORM = 1  # of a copy: how patchelf is called is part of it
# Not the files that an MPI reads: users edit parameter files of one plan, and ctime shows it.
SHARED = ("lib/", "bin/", "glibc/")
NEW = ".new-"  # begins the names of what is being made
ABANDONED_S = 86400.0  # making one takes less than a day: its process was killed


def home() -> Path:
    return cache.folders().data / "libraries"


def fill(new: Path, copies: tuple[Copy, ...]) -> None:
    """Make every copy of a plan below `new`. Equal files are one file, so that the loader sees one.
    Raises LaunchFailed for a file that is not as planned, OSError for a full disk."""
    done: dict[str, Path] = {}
    for copy in copies:
        target = new / copy.name
        make_folder(target.parent)
        key = _key(copy)
        if copy.edit and key in done:
            _alias(done[key], target)
            continue
        shared = copy.name.startswith(SHARED)
        if not (shared and _linked(key, target)):
            make_copy(copy, target)
            if shared:
                _share(key, target)
        done[key] = target


def _alias(first: Path, target: Path) -> None:
    """Give a file another name: a hard link, or a symbolic one where the disk has no hard links."""
    try:
        os.link(first, target)
    except OSError as error:
        if error.errno in FULL:
            raise
        target.symlink_to(os.path.relpath(first, target.parent))


def _key(copy: Copy) -> str:
    """Make the key of a copy from its source and its edits. Its mode is that of its source."""
    content = [FORM, os.access(copy.source, os.X_OK), copy.digest, copy.edit]
    if copy.edit:
        content += [copy.rpath, copy.soname, copy.renamed, copy.symbols, *copy.added]
        content += [["interpreter", copy.interpreter]] if copy.interpreter else []
    return digest(plain(content))


# ------------------------------------------------------------------ the store


def _linked(key: str, target: Path) -> bool:
    """Link the stored copy to `target`. False where none is stored or no link can be made."""
    try:
        (stored,) = (home() / key).iterdir()
        os.link(stored, target)
        # Checked through the new link, which stays if another process removes the stored one.
        if cache.file_digest(target) == stored.name:
            return True
    except (OSError, ValueError):  # ValueError: none or several, which this module never makes
        pass
    with contextlib.suppress(OSError):
        target.unlink(missing_ok=True)
        shutil.rmtree(home() / key, ignore_errors=True)  # damaged: this plan's copy replaces it
    return False


def _share(key: str, copy: Path) -> None:
    """Put a new copy into the store, unless another process did so meanwhile."""
    with contextlib.suppress(OSError):
        make_folder(home())
        with tempfile.TemporaryDirectory(prefix=NEW, dir=home()) as scratch:
            folder = Path(scratch) / "copy"
            make_folder(folder)
            os.link(copy, folder / cache.file_digest(copy))
            folder.rename(home() / key)


def sweep() -> None:
    """Remove stored copies that no plan uses, and what killed processes left."""
    with contextlib.suppress(OSError):
        for folder in home().iterdir():
            with contextlib.suppress(OSError):
                if _is_spare(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_spare(folder: Path) -> bool:
    """Return whether no plan has the copy: one in use has two names or more, even before it is
    stored."""
    if folder.name.startswith(NEW):
        return time.time() - folder.stat().st_mtime > ABANDONED_S
    return all(file.stat().st_nlink == 1 for file in folder.iterdir())


def stored() -> Iterator[os.stat_result]:
    """Yield the status of every file of the store."""
    with contextlib.suppress(OSError):
        for file in home().glob("*/*"):
            with contextlib.suppress(OSError):
                yield file.lstat()
