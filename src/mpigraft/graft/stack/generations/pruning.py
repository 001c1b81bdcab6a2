"""Remove generations that nobody uses any more, as far as that can be known from here.

A generation stays where a job has a lease of it, or a process of this host has it mapped. What
other users' processes have mapped may not be read, and what other hosts run is not seen: there it
stays for a time after it was switched off.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.lease import LEASES, lease_ended, read_lease, remove_leases
from mpigraft.core.model import Finding
from mpigraft.core.numbers import counted
from mpigraft.core.storage import shared_type
from mpigraft.graft.stack.generations.reading import GENERATIONS, InstalledOverride, read_override
from mpigraft.graft.stack.generations.switching import FOLDERS, LOCK, NEW, OFF, writing
from mpigraft.graft.stack.override.content import LIB, SETTINGS
from mpigraft.graft.stack.values import Slot

KEEP_DAYS = 14
DAY_S = 86400
KERNEL_THREAD = 0x00200000  # PF_KTHREAD of Linux's include/linux/sched.h: it maps nothing
MOST_NAMED = 5  # processes of a generation


@dataclass(frozen=True, slots=True)
class Processes:
    """What the processes of this host have mapped of the generations of one store."""

    mapped: Mapping[int, tuple[int, ...]]  # generation -> process ids
    unread: int  # processes whose maps may not be read; -1: others are not even listed
    shared: str = ""  # type of a file system that other hosts share: they have processes too

    @property
    def blind(self) -> str:
        """What could not be seen, in words; empty: nothing."""
        if self.unread < 0:
            return "the processes of other users are hidden from this one"
        if self.unread:
            what = counted(self.unread, "process")
            return f"what {what} of this host has mapped may not be read"
        return f"other hosts may share this {self.shared} file system" if self.shared else ""


def prune(
    slot: Slot, keep_days: float | None = None, notice: Callable[[Finding], None] = lambda _: None
) -> tuple[tuple[int, ...], tuple[tuple[int, Finding], ...]]:
    """Remove generations; give their numbers, and (number, reason) of those that were kept.

    One stays that is on, has a lease, or that a process of this host has mapped; where a process
    may not be read, also one that was switched off less than `keep_days` ago (None: KEEP_DAYS).
    `notice` hears what could not be seen before anything is removed in spite of it. With none
    left, nothing of ours stays. Raises as `undo`."""
    keep_days = KEEP_DAYS if keep_days is None else keep_days
    override = read_override(slot)
    if not Path(os.path.realpath(override.store)).is_dir():
        raise UsageError.of("override-not-injected", path=override.link)
    with writing(override) as store:
        override = read_override(slot)
        folders = (f for f in (store / GENERATIONS).iterdir() if f.name.isdecimal())
        numbers = sorted(int(f.name) for f in folders)
        processes = read_processes(store, numbers)
        kept = dict(_kept(override, store, numbers, processes, keep_days))
        removed = [n for n in numbers if n not in kept and n != override.current]
        if removed and processes.blind:
            names = ", ".join(map(str, removed))
            notice(Finding.of("prune-unseen", blind=processes.blind, numbers=names))
        for number in removed:
            gone = store / f"{NEW}gone-{number}"
            (store / GENERATIONS / str(number)).rename(gone)
            shutil.rmtree(gone)
            (store / f"{OFF}{number}").unlink(missing_ok=True)
        if not override.current and not kept:
            _remove_store(store)
    return tuple(removed), tuple(sorted(kept.items()))


def _kept(
    override: InstalledOverride,
    store: Path,
    numbers: list[int],
    processes: Processes,
    keep_days: float,
) -> Iterator[tuple[int, Finding]]:
    """Yield each generation that is not on and has to stay, with the reason."""
    now = time.time()
    leases = _leases(store, now)
    for number in numbers:
        off_s = now - _switched_off(override, store, number)
        if number == override.current:
            continue
        if number in leases:
            yield number, leases[number]
        elif pids := processes.mapped.get(number):
            some = ", ".join(map(str, pids[:MOST_NAMED]))
            more = f" and {len(pids) - MOST_NAMED} more" if len(pids) > MOST_NAMED else ""
            yield number, Finding.of("prune-mapped", number=number, processes=some + more)
        elif processes.blind and off_s < keep_days * DAY_S:
            off = counted(max(int(off_s // DAY_S), 0), "day")
            days = f"{keep_days:g}"
            blind = processes.blind
            yield number, Finding.of("prune-recent", number=number, off=off, days=days, blind=blind)


def _leases(store: Path, now: float) -> dict[int, Finding]:
    """Give a lease that counts of each generation that has one, and remove those that do not."""
    leases: dict[int, Finding] = {}
    with contextlib.suppress(FileNotFoundError):
        for path in sorted((store / LEASES).iterdir()):
            with contextlib.suppress(FileNotFoundError):  # its job has just ended
                lease = read_lease(str(path))
                if lease_ended(lease, now):
                    remove_leases([str(path)])
                    continue
                until = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(lease["expires"]))
                job = f"job {lease['job']}" if lease["job"] else f"process {lease['process']}"
                host, user = lease["host"] or "an unknown host", _user(lease["user"])
                leases[lease["number"]] = Finding.of(
                    "prune-leased",
                    number=lease["number"],
                    job=job,
                    user=user,
                    host=host,
                    until=until,
                    path=path,
                )
    return leases


def _user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _switched_off(override: InstalledOverride, store: Path, number: int) -> float:
    """Give when a generation was last switched off. Without a note of it (a killed process, or an
    earlier version), the last switch of all is the latest that it can be."""
    with contextlib.suppress(OSError):
        return (store / f"{OFF}{number}").stat().st_mtime
    link = override.link
    switched = (link if link.is_symlink() else link.parent).lstat().st_mtime
    return max(switched, (store / GENERATIONS / str(number)).lstat().st_mtime)


def read_processes(store: Path, numbers: list[int]) -> Processes:
    """Read what processes of this host have mapped. In a container a store may have another path,
    but the name of our library in a generation is its own (`settings_name`)."""
    folders = {n: store / GENERATIONS / str(n) / LIB for n in numbers}
    marks = {path.name: n for n in numbers for path in folders[n].glob(f"{SETTINGS}*.so")}
    marks |= {f"{store}/{GENERATIONS}/{n}/": n for n in numbers}
    mapped: dict[int, list[int]] = defaultdict(list)
    unread = 0 if Path("/proc/1").exists() else -1
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            text = maps.read_text(errors="surrogateescape")
        except PermissionError:
            unread += unread >= 0 and not is_no_job(maps.parent)
            continue
        except OSError:  # it has just ended
            continue
        for number in {n for mark, n in marks.items() if mark in text}:
            mapped[number].append(int(maps.parent.name))
    shared = shared_type(store)
    return Processes({n: tuple(sorted(pids)) for n, pids in mapped.items()}, unread, shared)


def is_no_job(process: Path) -> bool:
    """Return whether a process is the init, which not even root may read on some machines, or a
    thread of the kernel."""
    if process.name == "1":
        return True
    try:
        fields = (process / "stat").read_bytes().rpartition(b")")[2].split()
        return bool(int(fields[6]) & KERNEL_THREAD)
    except (OSError, IndexError, ValueError):
        return False


def _remove_store(store: Path) -> None:
    """Remove an empty store, and the folders above it that were made for it and hold nothing."""
    made: list[bytes] = []
    with contextlib.suppress(OSError):  # of an earlier version, or made by commands
        made = (store / FOLDERS).read_bytes().splitlines()
        (store / FOLDERS).unlink()
    shutil.rmtree(store / LEASES, ignore_errors=True)
    for note in store.glob(f"{OFF}*"):
        note.unlink()
    (store / GENERATIONS).rmdir()
    (store / LOCK).unlink()
    store.rmdir()
    with contextlib.suppress(OSError):  # what somebody else uses stays, and all above it
        for folder in reversed(made):
            if Path(os.fsdecode(folder)) in store.parents:
                os.rmdir(folder)  # noqa: PTH106
