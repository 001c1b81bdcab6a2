"""Processors of a node's own, by the cgroups of this machine where they can be written.

An MPI's launcher asks hwloc which processors there are, and hwloc asks the cgroup: a mask set by
taskset alone does not hide the others.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

MOUNTED = Path("/sys/fs/cgroup/cpuset")  # version 1; version 2 gives no cpusets to a part
MEMORY = Path("/sys/fs/cgroup/memory")
PATIENCE_S = 5.0


def _own() -> Path | None:
    """The cpuset that this process is in; None where there are none."""
    with contextlib.suppress(OSError):
        inside = Path("/proc/self/cpuset").read_text().strip()
        for folder in (MOUNTED / inside.lstrip("/"), MOUNTED):
            if (folder / "cpuset.cpus").exists() and os.access(folder, os.W_OK):
                return folder
    return None


def cpus() -> list[int]:
    """Processors that cpusets can be made of; empty where they cannot be made."""
    if not (own := _own()):
        return []
    found: list[int] = []
    for part in (own / "cpuset.cpus").read_text().strip().split(","):
        first, _, last = part.partition("-")
        found += range(int(first), int(last or first) + 1)
    return found


class Cpuset:
    """A cpuset of one processor."""

    def __init__(self, name: str, cpu: int) -> None:
        own = _own()
        assert own, "`cpus` found some"
        self.folder, self.cpu = own / name, cpu
        self.folder.mkdir()
        self._write("cpuset.mems", (own / "cpuset.mems").read_text().strip())
        self._write("cpuset.cpus", str(cpu))

    def _write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def take(self, pid: int) -> None:
        """Move a process in; what it starts from now on is in it too. 0 is the caller."""
        self._write("cgroup.procs", str(pid))

    def remove(self) -> None:
        """The kernel refuses until the last of its processes is wholly gone."""
        deadline = time.monotonic() + PATIENCE_S
        while self.folder.exists():
            try:
                self.folder.rmdir()
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    @staticmethod
    def sweep(prefix: str) -> None:
        """Remove what a killed keeper of the same number left: empty ones, by the kernel's
        word."""
        if own := _own():
            for folder in own.glob(f"{prefix}*"):
                with contextlib.suppress(OSError):
                    folder.rmdir()


class MemoryGroup:
    """A node's own part of the memory controller, in which its Slurm limits jobs."""

    def __init__(self, name: str) -> None:
        self.folder = MEMORY / name
        self.folder.mkdir()

    def remove(self) -> None:
        """Remove it with the groups that a daemon left in it; none has a process any more."""
        for folder in sorted(self.folder.rglob("*/"), reverse=True):
            folder.rmdir()
        self.folder.rmdir()
