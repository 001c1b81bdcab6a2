"""Leases: files in a shared folder that name a job which uses something, and until when.

A lease protects what others would remove and cannot see in use: the job is another user's, or runs
on another host. It is of the standard library alone, since `run` writes one on its quick path.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mpigraft.core.fingerprint import boot_id

TYPE_CHECKING = False  # typing itself takes five milliseconds
if TYPE_CHECKING:
    from typing import Any

LEASES = "leases"  # a folder of them, beside what they protect
LASTS_S = 14 * 86400  # of a job whose end nobody knows
SPARE_S = 86400  # after the end of a scheduler's job: its limit may be raised
LONGEST_S = 366 * 86400  # even if a lease says more
MOST = 4096  # bytes of a lease
JOBS = ("SLURM_JOB_ID", "PBS_JOBID", "FLUX_JOB_ID")
ENDS = "SLURM_JOB_END_TIME"  # seconds since 1970; set by Slurm since 22.05
PID_NAMESPACE = "/proc/self/ns/pid"


def write_lease(wanted: Sequence[Any], environ: Mapping[str, str]) -> str:
    """Write a lease for this process; give its path, empty where that cannot be written. `wanted`:
    a folder of leases, and the number of what is used."""
    folder, number = wanted
    now, end = int(time.time()), environ.get(ENDS, "")
    lasts = max(int(end) - now, 0) + SPARE_S if end.isdecimal() else LASTS_S
    lease = {
        "number": number,
        "host": os.uname().nodename,
        "job": next((environ[name] for name in JOBS if environ.get(name)), ""),
        "process": os.getpid(),
        "started": process_state(os.getpid())[1],
        "place": _place(),
        "expires": now + lasts,
    }
    name = f"{number}-{os.urandom(8).hex()}"
    begun = f"{folder}/.{name}"
    try:
        handle = os.open(begun, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o644)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            os.fchmod(handle, 0o644)  # despite any umask: others have to read it
            json.dump(lease, file)
        os.rename(begun, f"{folder}/{name}")  # noqa: PTH104
    except OSError:
        remove_leases([begun])
        return ""
    return f"{folder}/{name}"


def write_leases(wanted: Iterable[Sequence[Any]], environ: Mapping[str, str]) -> list[str]:
    """Write leases of (folder, number) each, where that may be written; give their paths."""
    return [path for one in wanted if (path := write_lease(one, environ))]


def remove_leases(paths: list[str]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            os.unlink(path)  # noqa: PTH108


@contextlib.contextmanager
def holding_leases(wanted: Iterable[Sequence[Any]], environ: Mapping[str, str]) -> Iterator[None]:
    """Hold leases of (folder, number) each."""
    paths = write_leases(wanted, environ)
    try:
        yield
    finally:
        remove_leases(paths)


def read_lease(path: str) -> dict[str, Any]:
    """Read a lease: what `write_lease` wrote, and its user's id. One that cannot be read has no
    host and ends LASTS_S after it was written. Raises OSError for one that is gone."""
    status = os.lstat(path)
    number = os.path.basename(path).partition("-")[0]  # noqa: PTH119
    lease: dict[str, Any] = {
        "number": int(number) if number.isdecimal() else 0,
        "host": "", "job": "", "process": 0, "started": 0, "place": [],
        "expires": status.st_mtime + LASTS_S,
    }  # fmt: skip
    if stat.S_ISREG(status.st_mode) and status.st_size <= MOST:
        with contextlib.suppress(OSError, ValueError, RecursionError):
            handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, "rb") as file:
                value = json.loads(file.read(MOST + 1))
            kinds = {
                name: (int, float) if name == "expires" else type(lease[name]) for name in lease
            }
            if isinstance(value, dict) and all(isinstance(value.get(n), kinds[n]) for n in kinds):
                lease = {name: value[name] for name in lease}
    lease["expires"] = min(lease["expires"], status.st_mtime + LONGEST_S)
    return {**lease, "user": status.st_uid}


def lease_ended(lease: Mapping[str, Any], now: float) -> bool:
    """Return whether a lease counts no more: it expired, or its process is over. Only the same boot
    of the kernel and the same namespace of processes can know the latter."""
    if lease["expires"] <= now:
        return True
    if lease["place"] != _place() or not all(lease["place"]):
        return False
    try:
        os.kill(lease["process"], 0)
    except ProcessLookupError:
        return True
    except (OSError, OverflowError):  # another user's
        pass
    letter, started = process_state(lease["process"])
    return letter in ("Z", "X") or started not in (0, lease["started"])


def process_state(pid: int) -> tuple[str, int]:
    """Give the letter of a process's state and when it started, in clock ticks since the boot; 0
    where that may not be read."""
    with contextlib.suppress(OSError, ValueError, IndexError), open(f"/proc/{pid}/stat", "rb") as f:  # noqa: PTH123
        fields = f.read().rpartition(b")")[2].split()
        return fields[0].decode(), int(fields[19])
    return "", 0


def _place() -> list[str]:
    """Give what the numbers of processes are of."""
    with contextlib.suppress(OSError):
        return [boot_id(), os.readlink(PID_NAMESPACE)]  # noqa: PTH115  it links to no path
    return ["", ""]
