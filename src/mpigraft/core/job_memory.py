"""Whether a job of Slurm used up its memory on this node, by the counters of the job's cgroup."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

JOB = re.compile(r"\d+:(?P<controllers>[^:]*):(?P<group>.*/job_\d+)(?:/.*)?", re.ASCII)
KILLS = re.compile(r"^oom_kill ([1-9]\d*)$", re.ASCII | re.MULTILINE)
FULL = 0.99  # of the limit; in a cgroup of version 1 a step counts its kills for itself, then goes


def is_out_of_memory(root: Path = Path("/")) -> bool:
    """Return whether the kernel ended a process of this job for want of memory, or the job had all
    that it may have. False where nothing is known."""
    for line in _text(root / "proc/self/cgroup").splitlines():
        if not (hit := JOB.fullmatch(line)):
            continue
        folder = root / "sys/fs/cgroup"
        if "memory" in (controllers := hit["controllers"].split(",")):
            if _is_full(_below(folder / "memory", hit["group"])):
                return True
        elif controllers == [""] and KILLS.search(
            _text(_below(folder, hit["group"]) / "memory.events")
        ):
            return True
    return False


def _below(mount: Path, group: str) -> Path:
    """Return the folder of a group. In a container only its end may be below the mount."""
    parts = group.strip("/").split("/")
    places = (mount.joinpath(*parts[start:]) for start in range(len(parts)))
    return next((place for place in places if place.is_dir()), mount / parts[-1])


def _is_full(folder: Path) -> bool:
    most, limit = (
        _text(folder / f"memory.{name}_in_bytes").strip() for name in ("max_usage", "limit")
    )
    full = most.isdecimal() and limit.isdecimal() and int(most) >= FULL * int(limit)
    return full or bool(KILLS.search(_text(folder / "memory.oom_control")))


def _text(path: Path) -> str:
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace")
    return ""
