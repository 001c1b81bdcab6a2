"""Numbered generations of an override, switched by renaming one symlink.

    .../OpenMPI/system -> .mpigraft-system/generations/3       what programs search
    .../OpenMPI/.mpigraft-system/generations/3/lib             the MPI by its names
                                            /3/mpi             its closure, plugins and data
                                            /3/plan.json

A generation is made under another name and renamed when it is whole; then the symlink is made
under another name and renamed over the old one. However this process ends, programs find what
they found before, or the new one. What it left is removed the next time. Programs that run go on
with the generation that they were started with, since their copies search it by its number.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mpigraft.core.cache import file_digest
from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.lease import LEASES
from mpigraft.core.lock import file_lock
from mpigraft.core.model import Copy
from mpigraft.core.serialize import document
from mpigraft.core.write import write_whole
from mpigraft.graft.folder.library_copy import FULL, make_copy
from mpigraft.graft.stack.generations.reading import (
    GENERATIONS,
    MOST_FOREIGN,
    PLAN,
    GenerationRecord,
    InstalledOverride,
    current_number,
    damaged,
    read_override,
)
from mpigraft.graft.stack.override.content import (
    ENVIRONMENT_FILE,
    GENERATION,
    OverridePlan,
    SourceFile,
)
from mpigraft.graft.stack.values import Slot

BEFORE, LOCK = "before", "lock"
OFF = "off-"  # begins the names of empty files: when generation off-N was last switched off
FOLDERS = "folders"  # lists the folders that had to be made for the store, a line each
NEW = ".new-"  # begins the names of what is being made
SPARE = 64 << 20  # bytes of a disk that a generation leaves free


# ------------------------------------------------------------------ switching on


def refuse_unfit(override: InstalledOverride, plan: OverridePlan | None = None) -> None:
    """Raise CheckFailed where the override is somebody's data, MissingError where it may not be
    written or the disk is full. Nothing is written."""
    if override.foreign:
        more = "" if len(override.foreign) < MOST_FOREIGN else " and more"
        raise CheckFailed.of(
            "override-foreign",
            path=override.link,
            files=", ".join(override.foreign[:3]) + (more or _more(override.foreign)),
        )
    base = _existing(override.store)
    if not os.access(base, os.W_OK | os.X_OK):
        raise unwritable(override, _reason(base))
    if plan is not None:
        size = sum(_size(copy) for copy in plan.copies)
        free = os.statvfs(base)
        if free.f_bavail * free.f_frsize < size + SPARE:
            raise MissingError.of(
                "override-disk-full",
                path=base,
                needed=(size + SPARE) >> 20,
                free=free.f_bavail * free.f_frsize >> 20,
            )


def _more(names: tuple[str, ...]) -> str:
    return f" and {len(names) - 3} more" if len(names) > 3 else ""


def _size(copy: Copy) -> int:
    try:
        return Path(copy.source).stat().st_size
    except OSError:
        return 0


def _existing(path: Path) -> Path:
    """Give the nearest folder on the way to `path` that is there, with links resolved."""
    real = Path(os.path.realpath(path))
    return next(folder for folder in (real, *real.parents) if folder.exists())


def _reason(base: Path) -> str:
    read_only = bool(os.statvfs(base).f_flag & os.ST_RDONLY)
    return f"{base} is on a read-only file system" if read_only else f"{base} may not be written"


def unwritable(override: InstalledOverride, reason: str) -> MissingError:
    """Make the error of an override that this user may not write: whose it is, where somebody
    injected there before, else what a site sets."""
    if override.generations:
        return MissingError.of(
            "override-owned", path=override.link, reason=reason, owner=_owner(override.store)
        )
    if "host_injections" in str(override.link):
        return MissingError.of("override-read-only", path=override.link, reason=reason)
    return MissingError.of("override-unwritable", path=override.link, reason=reason)


def _owner(path: Path) -> str:
    try:
        return path.owner()
    except (KeyError, OSError):  # of another system
        return "its owner"


@contextmanager
def writing(override: InstalledOverride) -> Iterator[Path]:
    """Hold the override alone and give the real folder of its generations. What an earlier process
    left is removed. Raises MissingError; then nothing is there that was not before."""
    made: list[Path] = []
    store = Path(os.path.realpath(override.store))
    try:
        _make_folders(store / GENERATIONS, made)
        if store in made:
            above = [folder for folder in made if folder in store.parents]
            _write(store / FOLDERS, "".join(f"{folder}\n" for folder in above))
        with file_lock(store / LOCK, str(override.link)):
            with contextlib.suppress(OSError):  # another user's: who may write here may lock
                (store / LOCK).chmod(stat.S_IMODE(store.stat().st_mode) & 0o666)
            _sweep(override, store)
            yield store
    except OSError as error:
        _unmake(store, made)
        if error.errno in FULL:
            raise MissingError.of(
                "override-disk-full-now", path=store, reason=error.strerror
            ) from error
        raise unwritable(override, f"{error.filename or store}: {error.strerror}") from error
    except BaseException:
        _unmake(store, made)
        raise


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it, with the rights of the nearest that is there."""
    missing = [f for f in (folder, *folder.parents) if not f.exists()]
    for one in reversed(missing):
        with contextlib.suppress(FileExistsError):
            one.mkdir()
            made.append(one)
            _like(one, one.parent)


def _like(folder: Path, other: Path) -> None:
    """Give a folder the rights of another, under any umask: who reads that reads this. In a
    folder where all may write (/tmp) they may not write here: programs load these files."""
    mode = stat.S_IMODE(other.stat().st_mode) & ~(stat.S_ISVTX | stat.S_IWOTH)
    with contextlib.suppress(OSError):  # set-group-id, in a group that is not this user's
        folder.chmod(mode | stat.S_IRWXU)


def _unmake(store: Path, made: list[Path]) -> None:
    """Remove the folders that were made, where nothing has come into them."""
    if made and not any((store / GENERATIONS).glob("*")):
        with contextlib.suppress(OSError):
            (store / LEASES).rmdir()
        with contextlib.suppress(OSError):
            (store / LOCK).unlink(missing_ok=True)
            (store / FOLDERS).unlink(missing_ok=True)
        for folder in reversed(made):
            with contextlib.suppress(OSError):
                folder.rmdir()


def _sweep(override: InstalledOverride, store: Path) -> None:
    """Remove what a killed process left; put back an override that it had moved away."""
    for remains in store.glob(f"{NEW}*"):
        if remains.is_symlink() or remains.is_file():
            remains.unlink()
        else:
            shutil.rmtree(remains)
    link = Path(os.path.realpath(override.link.parent)) / override.link.name
    if (store / BEFORE).exists() and not os.path.lexists(link):
        (store / BEFORE).rename(link)


def switch_on(plan: OverridePlan) -> GenerationRecord:
    """Make a generation of a plan and switch it on; one that is on and whole stays.

    Raises CheckFailed for an override that is somebody's data, MissingError for one that may not
    be written, a full disk, or another mpigraft at work there, LaunchFailed for a library that
    changed or that patchelf cannot edit. Then the override is as it was.
    """
    override = read_override(plan.slot)
    refuse_unfit(override, plan)
    with writing(override) as store:
        override = read_override(plan.slot)  # another may have been at work until now
        refuse_unfit(override)
        active = override.active
        if active and active.key == plan.key and not damaged(override, active):
            return _accept(active, plan, store)
        numbers = [int(f.name) for f in (store / GENERATIONS).iterdir() if f.name.isdecimal()]
        number = max(numbers, default=0) + 1
        new = store / f"{NEW}{number}"
        try:
            record = _make(new, override, plan, number)
            _open_leases(store)
            new.rename(store / GENERATIONS / str(number))
            _switch(override, store, number)
        except BaseException:
            with contextlib.suppress(OSError):
                shutil.rmtree(new)
            if current_number(override.link, override.store) != number:
                shutil.rmtree(store / GENERATIONS / str(number), ignore_errors=True)
            raise
    return record


def _accept(active: GenerationRecord, plan: OverridePlan, store: Path) -> GenerationRecord:
    """Record which programs need not fit, where that is all that a plan changes."""
    if active.accepted != plan.accepted:
        active = replace(active, accepted=plan.accepted)
        _write(store / GENERATIONS / str(active.number) / PLAN, document(generation=active))
    return active


def _open_leases(store: Path) -> None:
    """Make the folder in which every user's job may leave a lease, as in /tmp. One that is there
    has the rights that its owner gave it."""
    with contextlib.suppress(FileExistsError):
        (store / LEASES).mkdir()
        (store / LEASES).chmod(0o1777)


def _make(
    new: Path, override: InstalledOverride, plan: OverridePlan, number: int
) -> GenerationRecord:
    place = str(override.folder(number))
    new.mkdir()
    _like(new, new.parent)
    twins = plan.twins
    for copy in plan.copies:
        target = new / copy.name
        _make_folders(target.parent, [])
        if copy.name in twins:
            target.symlink_to(os.path.relpath(new / twins[copy.name], target.parent))
        else:
            make_copy(replace(copy, rpath=copy.rpath.replace(GENERATION, place)), target)
    for name, points_to in plan.links:
        _make_folders((new / name).parent, [])
        (new / name).symlink_to(points_to)
    lines = [
        name if value is None else f"{name}={value.replace(GENERATION, place)}"
        for name, value in plan.environment
    ]
    _write(new / ENVIRONMENT_FILE, "".join(f"{line}\n" for line in lines))
    for name, text in plan.scripts:
        _make_folders((new / name).parent, [])
        _write(new / name, text)
        (new / name).chmod(0o755)
    files = (SourceFile(name, file_digest(new / name)) for name in _names(new))
    made = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    record = override.record(number, plan, made, files)
    _write(new / PLAN, document(generation=record))
    return record


def _write(path: Path, text: str) -> None:
    write_whole(path, text.encode("utf-8", "surrogateescape"), 0o644, links=False)


def _names(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            yield str(path.relative_to(folder))


def _switch(override: InstalledOverride, store: Path, number: int) -> None:
    """Make the override a symlink to a generation, by one rename. Empty folders of a site's that
    are there are kept: programs find as little in them as in none."""
    _mark_off(store, override.current)
    link = Path(os.path.realpath(override.link.parent)) / override.link.name
    fresh = store / f"{NEW}link"
    fresh.symlink_to(f"{store.name}/{GENERATIONS}/{number}")
    if link.is_dir() and not link.is_symlink():
        link.rename(store / BEFORE)
    fresh.rename(link)


def _mark_off(store: Path, number: int) -> None:
    """Note when a generation is switched off; before it is, so that it never seems off for longer
    than it is. A new file: the old one may be another user's."""
    if number:
        fresh = store / f"{NEW}off"
        fresh.touch(0o644, exist_ok=False)
        fresh.rename(store / f"{OFF}{number}")


# ------------------------------------------------------------------ switching back


def undo(slot: Slot, to: int | None = None) -> InstalledOverride:
    """Switch to the generation that was on before, or to number `to`; 0 is none. Raises UsageError
    where there is no such generation, MissingError as `switch_on` does."""
    override = read_override(slot)
    target = _target(override, to)
    if not override.generations and not override.current:
        raise UsageError.of("override-not-injected", path=override.link)
    if target == override.current:
        return override
    if not os.access(_existing(override.store), os.W_OK | os.X_OK):
        raise unwritable(override, _reason(_existing(override.store)))
    with writing(override) as store:
        override = read_override(slot)  # another may have been at work until now
        if target:
            _switch(override, store, target)
        elif override.current:
            _mark_off(store, override.current)
            link = Path(os.path.realpath(override.link.parent)) / override.link.name
            link.unlink()
            if (store / BEFORE).exists():
                (store / BEFORE).rename(link)
    return read_override(slot)


def _target(override: InstalledOverride, to: int | None) -> int:
    known = [record.number for record in override.generations]
    if to is not None:
        if to and to not in known:
            raise UsageError.of(
                "generation-unknown",
                number=to,
                path=override.link,
                known=", ".join(map(str, (0, *known))),
            )
        return to
    active = override.active
    previous = active.previous if active else 0
    return max((n for n in known if n <= previous), default=0)
