"""Make graft folders: the files of a plan, copied once to a disk that all nodes see.

$MPIGRAFT_HOME/grafts/KEY holds `lib`, `bin`, `share`, the plan itself and `ranks`, into which the
ranks of each launch write their records. A folder appears whole or not at all. Plans share their
copies (`shared_copies`).
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

from mpigraft.core import cache
from mpigraft.core.errors import LaunchFailed, MissingError, UsageError
from mpigraft.core.model import EnvRow, GraftPlan
from mpigraft.core.noexec import refuse_noexec
from mpigraft.core.serialize import document, revive
from mpigraft.core.write import make_folder, write_whole
from mpigraft.graft.folder import shared_copies
from mpigraft.graft.injection.plan import BENCH, PLACE_ON_HOST, TRACE, WITNESS
from mpigraft.native import Natives

PLAN_FILE = "plan.json"
RANKS_FOLDER = "ranks"
KEY = 32  # digits of a plan's key that name its folder
DAY_S = 86400.0
ABANDONED_S = DAY_S  # making one takes less than a day: its process was killed
LONGEST_JOB_S = 30 * DAY_S  # no job runs longer: older records are those of a killed job


@dataclass(frozen=True, slots=True)
class GraftFolder:
    """An existing graft folder. `plan` is None for one of another version of mpigraft."""

    key: str
    folder: Path
    plan: GraftPlan | None
    size: int  # bytes
    made: float  # seconds since 1970
    used: float  # when a job last began or ended
    jobs: int  # running jobs: those that have their records in it


@dataclass(frozen=True, slots=True)
class Pruned:
    """What --prune removed, or would remove."""

    removed: tuple[GraftFolder, ...]
    busy: tuple[GraftFolder, ...]  # unused for as long, and kept for the jobs with records in them
    freed: int  # bytes


def home() -> Path:
    return cache.folders().data / "grafts"


def graft_folder(plan: GraftPlan) -> Path:
    """Give the path of the graft folder of `plan`, whether it exists or not."""
    return home() / plan.key[:KEY]


def path_in_guest(plan: GraftPlan, path: Path | None = None) -> Path:
    """Give the path at which ranks see the graft folder, or a path below it."""
    folder = graft_folder(plan)
    place = Path(plan.place.replace(PLACE_ON_HOST, str(folder)))
    return place / path.relative_to(folder) if path else place


def graft_environment(plan: GraftPlan) -> tuple[EnvRow, ...]:
    """Give the environment rows of ranks, with paths filled in."""
    return tuple(
        replace(row, value=row.value and row.value.replace(PLACE_ON_HOST, str(graft_folder(plan))))
        for row in plan.environment
    )


def paths_in_guest(plan: GraftPlan, natives: Natives) -> Natives:
    """Give our programs at the paths at which ranks see them; the guard stays outside."""
    folder = path_in_guest(plan)
    trace = folder / TRACE if natives.trace else None
    return replace(natives, bench=folder / BENCH, witness=folder / WITNESS, trace=trace)


def materialize(plan: GraftPlan) -> Path:
    """Make the graft folder of `plan`, unless it exists, and give its path.

    Raises MissingError when patchelf is missing or the folder cannot be written, LaunchFailed when
    a copy is not as planned: a library changed since, or patchelf failed. MissingError too where
    nothing of the folder can be executed.
    """
    folder = graft_folder(plan)
    try:
        if not _is_complete(folder, plan):
            _make(plan, folder)
    except OSError as error:
        shared_copies.sweep()  # copies of the failed plan take space that is needed
        raise MissingError.of(
            "graft-folder-unwritable", path=home(), reason=error.strerror
        ) from error
    refuse_noexec(folder, "programs and libraries of the graft")
    return folder


def _is_complete(folder: Path, plan: GraftPlan) -> bool:
    """Return whether all files exist: programs that remove old files may have removed some."""
    files = (folder / PLAN_FILE, *(folder / copy.name for copy in plan.copies))
    return (folder / RANKS_FOLDER).is_dir() and all(file.is_file() for file in files)


def _make(plan: GraftPlan, folder: Path) -> None:
    make_folder(home())
    _sweep()
    with tempfile.TemporaryDirectory(prefix=".new-", dir=home()) as scratch:
        new = Path(scratch) / "graft"
        make_folder(new / RANKS_FOLDER)
        copies = tuple(
            replace(c, rpath=c.rpath.replace(PLACE_ON_HOST, str(folder))) for c in plan.copies
        )
        shared_copies.fill(new, copies)
        # An image's environment may hold secrets.
        write_whole(new / PLAN_FILE, document(plan=plan).encode(), 0o600)
        try:
            if (folder / PLAN_FILE).exists() and not _is_complete(folder, plan):
                folder.rename(Path(scratch) / "old")
            new.rename(folder)
        except OSError as error:  # another process was faster, with the same contents
            if not (folder / PLAN_FILE).exists():
                raise LaunchFailed.of(
                    "graft-folder-taken", folder=folder, reason=error.strerror
                ) from error


def _sweep() -> None:
    """Remove what killed processes left. By age, not by process id: they may be on other nodes."""
    for remains in (*home().glob(".new-*"), *home().glob(".old-*")):
        with contextlib.suppress(OSError):
            if time.time() - remains.stat().st_mtime > ABANDONED_S:
                shutil.rmtree(remains, ignore_errors=True)


def graft_folders() -> Iterator[GraftFolder]:
    """Yield every graft folder, by key."""
    for folder in sorted(home().glob("*")):
        with contextlib.suppress(OSError):  # another process removes it meanwhile
            begun = (folder / PLAN_FILE).stat().st_mtime
            jobs, used = _jobs(folder)
            yield GraftFolder(
                folder.name,
                folder,
                read_plan(folder),
                disk_usage(folder),
                begun,
                max(begun, used),
                jobs,
            )


def _jobs(graft: Path) -> tuple[int, float]:
    """Count the jobs with a folder of records in a graft, and give the time at which the last one
    made or removed its own. A folder that is older than the longest job does not count."""
    ranks = graft / RANKS_FOLDER
    try:
        used = ranks.stat().st_mtime
        begun = [folder.lstat().st_mtime for folder in ranks.iterdir()]
    except OSError:
        return 0, 0.0
    return sum(time.time() - start < LONGEST_JOB_S for start in begun), used


def disk_usage(folder: Path | None = None) -> int:
    """Count the bytes of a graft folder, or of all of them and the copies that they share.

    A file with two names counts once.
    """
    folders = [folder] if folder else home().glob("*")
    files = [] if folder else [*shared_copies.stored()]
    files += [file for one in folders for file in _files(one)]
    return sum({(file.st_dev, file.st_ino): file.st_size for file in files}.values())


def _files(top: Path) -> Iterator[os.stat_result]:
    for folder, _, names in os.walk(top):  # which skips what is removed meanwhile
        for name in names:
            with contextlib.suppress(OSError):
                yield Path(folder, name).lstat()


def read_plan(file: Path) -> GraftPlan | None:
    """Read the plan of a graft folder, or of a file; None when this version cannot read it."""
    path = file / PLAN_FILE if file.is_dir() else file
    try:
        plan = revive(GraftPlan, json.loads(path.read_bytes())["plan"])
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return plan if isinstance(plan, GraftPlan) else None


def remove_graft(key: str) -> GraftFolder:
    """Remove the graft folder whose key begins with `key`. It is renamed first: an interruption
    leaves no half of one under its name. Raises UsageError."""
    hits = [graft for graft in graft_folders() if graft.key.startswith(key[:KEY])] if key else []
    if len(hits) != 1:
        problem = "matches several grafts" if hits else "matches no graft here"
        raise UsageError.of("plan-unknown", key=key, problem=problem)
    if hits[0].jobs:
        raise UsageError.of(
            "plan-in-use", key=hits[0].key[:12], folder=hits[0].folder / RANKS_FOLDER
        )
    try:
        removed = _remove(hits[0])
    except OSError as error:
        raise UsageError.of("file-unusable", path=hits[0].folder, reason=error.strerror) from error
    shared_copies.sweep()
    if not removed:
        raise UsageError.of("plan-just-used", key=hits[0].key[:12])
    return hits[0]


def prune_grafts(days: float, *, dry: bool = False) -> Pruned:
    """Remove grafts that no job used for `days`, of other versions too, and copies without a plan.
    `dry`: remove nothing. Folders that this user may not remove stay."""
    before = time.time() - days * DAY_S
    old = [graft for graft in graft_folders() if graft.used <= before]
    busy = tuple(graft for graft in old if graft.jobs)
    free = tuple(graft for graft in old if not graft.jobs)
    if dry:
        return Pruned(free, busy, _freed(free))
    had = disk_usage()
    removed = []
    for graft in free:
        with contextlib.suppress(OSError):
            if _remove(graft):
                removed.append(graft)
    shared_copies.sweep()
    _sweep()
    return Pruned(tuple(removed), busy, max(0, had - disk_usage()))


def _freed(plans: Iterable[GraftFolder]) -> int:
    """Count the bytes of files all of whose names are in these plans or in the store."""
    names: Counter[tuple[int, int]] = Counter()
    files: dict[tuple[int, int], os.stat_result] = {}
    for file in (*shared_copies.stored(), *(f for plan in plans for f in _files(plan.folder))):
        names[file.st_dev, file.st_ino] += 1
        files[file.st_dev, file.st_ino] = file
    return sum(file.st_size for which, file in files.items() if names[which] >= file.st_nlink)


def _remove(graft: GraftFolder) -> bool:
    """Rename a graft folder, then remove it. False where a job has started in it meanwhile, which
    keeps it. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix=".old-", dir=home()) as scratch:
        moved = Path(scratch) / "graft"
        graft.folder.rename(moved)
        if _jobs(moved)[0]:
            moved.rename(graft.folder)
            return False
    return True
