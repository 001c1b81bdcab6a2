"""Graft folders: what a plan copies, made once on a disk that all nodes see.

$MPIGRAFT_HOME/grafts/KEY holds `lib`, `bin`, `share`, the plan itself and `ranks`, into which the
ranks of each launch write their records. A folder appears whole or not at all. Its copies are
shared with other plans (`graft_copies`).
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft import cache, graft_copies
from mpigraft.errors import LaunchFailed, MissingError, UsageError
from mpigraft.jsonout import document, revive
from mpigraft.model import EnvRow, GraftPlan
from mpigraft.natives import Natives
from mpigraft.plan import ANYWHERE, BENCH, WITNESS

PLAN = "plan.json"
RANKS = "ranks"
KEY = 32  # digits of a plan's key that name its folder
DAY_S = 86400.0
LEFT_S = DAY_S  # none takes a day to make: its process was killed
LONGEST_S = 30 * DAY_S  # no job runs longer: the records of one that was killed


@dataclass(frozen=True, slots=True)
class Kept:
    """A graft folder that is there. `plan` is None for one of another version of mpigraft."""

    key: str
    folder: Path
    plan: GraftPlan | None
    size: int  # bytes
    made: float  # seconds since 1970
    used: float  # when a job last began or ended
    jobs: int  # that have their records in it: what runs now


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was removed, or would be; what has been unused for as long and jobs have; the bytes
    that nothing else has a name of."""

    removed: tuple[Kept, ...]
    busy: tuple[Kept, ...]
    freed: int


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
        graft_copies.sweep()  # those of the plan that came to nothing take room that is missing
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
        graft_copies.fill(new, copies)
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


def kept() -> Iterator[Kept]:
    """Every graft folder, by key."""
    for made in sorted(home().glob("*")):
        with contextlib.suppress(OSError):  # somebody removes it meanwhile
            begun = (made / PLAN).stat().st_mtime
            jobs, used = _jobs(made)
            yield Kept(made.name, made, read(made), size(made), begun, max(begun, used), jobs)


def _jobs(made: Path) -> tuple[int, float]:
    """How many jobs have a folder of records in a graft's, and when the last one made or removed
    its own: the kernel notes that for nothing. What is older than the longest job is nobody's."""
    ranks = made / RANKS
    try:
        used = ranks.stat().st_mtime
        begun = [folder.lstat().st_mtime for folder in ranks.iterdir()]
    except OSError:
        return 0, 0.0
    return sum(time.time() - one < LONGEST_S for one in begun), used


def size(made: Path) -> int:
    """Bytes of a graft folder. Files with two names count once."""
    return sum({(f.st_dev, f.st_ino): f.st_size for f in _files(made)}.values())


def disk() -> int:
    """Bytes of all graft folders and of the copies that they share."""
    every = [*graft_copies.stored(), *(f for made in home().glob("*") for f in _files(made))]
    return sum({(f.st_dev, f.st_ino): f.st_size for f in every}.values())


def _files(made: Path) -> Iterator[os.stat_result]:
    for folder, _, names in os.walk(made):  # which passes over what goes away meanwhile
        for name in names:
            with contextlib.suppress(OSError):
                yield Path(folder, name).lstat()


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
    if hits[0].jobs:
        raise UsageError(
            f"the plan {hits[0].key[:12]} is in use",
            why=f"a job has its records in {hits[0].folder / RANKS}",
            mend="wait until it has ended; of one that was killed, remove that folder",
        )
    try:
        removed = _remove(hits[0])
    except OSError as error:
        raise UsageError(f"{hits[0].folder}: {error.strerror}") from error
    graft_copies.sweep()
    if not removed:
        raise UsageError(f"the plan {hits[0].key[:12]} is in use: a job has just begun")
    return hits[0]


def prune(days: float, *, dry: bool = False) -> Pruned:
    """Remove what no job has used for so many days, of other versions too, and the copies that no
    plan is left for. `dry`: only say what. Folders that may not be removed stay."""
    before = time.time() - days * DAY_S
    old = [one for one in kept() if one.used <= before]
    busy = tuple(one for one in old if one.jobs)
    free = tuple(one for one in old if not one.jobs)
    if dry:
        return Pruned(free, busy, _freed(free))
    had = disk()
    removed = []
    for one in free:
        with contextlib.suppress(OSError):
            if _remove(one):
                removed.append(one)
    graft_copies.sweep()
    _sweep()
    return Pruned(tuple(removed), busy, max(0, had - disk()))


def _freed(plans: Iterable[Kept]) -> int:
    """Bytes of files all of whose names are in these plans or in the store."""
    names: Counter[tuple[int, int]] = Counter()
    found: dict[tuple[int, int], os.stat_result] = {}
    for seen in (*graft_copies.stored(), *(f for one in plans for f in _files(one.folder))):
        names[seen.st_dev, seen.st_ino] += 1
        found[seen.st_dev, seen.st_ino] = seen
    return sum(seen.st_size for which, seen in found.items() if names[which] >= seen.st_nlink)


def _remove(one: Kept) -> bool:
    """Remove a graft folder at once, so that what is interrupted leaves no half of one under its
    name; False where a job has begun in it meanwhile, which keeps it. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix=".old-", dir=home()) as scratch:
        moved = Path(scratch) / "graft"
        one.folder.rename(moved)
        if _jobs(moved)[0]:
            moved.rename(one.folder)
            return False
    return True
