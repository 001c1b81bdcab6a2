"""The CPUs of this process's cpuset, which an affinity mask (taskset, numactl) does not change.

Standard library only, and no pathlib: the second start of a job imports this.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

NAMES = {"cgroup2": ("0", ""), "cgroup": ("", "cpuset")}  # hierarchy, controller in /proc/*/cgroup
FILES = {"cgroup2": "cpuset.cpus.effective", "cgroup": "cpuset.cpus"}


def cpuset_cpus(root: str = "") -> tuple[int, ...]:
    """Return the CPUs that hwloc counts in this process: those of its cpuset that are online.

    It follows hwloc (2.x, topology-linux.c: hwloc_linux__get_allowed_resources), because launchers
    number CPUs by hwloc: a cpuset that hwloc cannot read hides no CPU. Asking the kernel, which
    cuts a wide mask down to the cpuset, was rejected for that. Empty where nothing is known.
    """
    online = _cpus(f"{root}/sys/devices/system/cpu/online")
    for place, kind in _mounts(_text(f"{root}/proc/self/mounts")):
        name = _group(_text(f"{root}/proc/self/cgroup"), *NAMES[kind])
        cpus = _cpus(f"{root}{place}{name}/{FILES[kind]}") if name else ()
        if cpus:
            return tuple(cpu for cpu in cpus if cpu in online) if online else cpus
    return online


def is_confined() -> bool:
    """Return whether an affinity mask leaves this process fewer CPUs than its cpuset has."""
    return os.sched_getaffinity(0) < set(cpuset_cpus())


def ranges(text: str) -> Iterator[int]:
    """Numbers of `0-3,8`. Raises ValueError for anything else."""
    for part in text.strip().split(","):
        match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", part, re.ASCII)
        if not match or int(match[2] or match[1]) < int(match[1]):
            raise ValueError(f"{part!r} is not a range")
        yield from range(int(match[1]), int(match[2] or match[1]) + 1)


def format_cpus(cpus: Iterable[int]) -> str:
    """`0-3,8`: CPUs as most launchers write them."""
    ordered = sorted(set(cpus))
    starts = [ordered[0], *(b for a, b in pairwise(ordered) if b != a + 1)] if ordered else []
    ends = [*(a for a, b in pairwise(ordered) if b != a + 1), *ordered[-1:]]
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in zip(starts, ends, strict=True))


def _mounts(text: str) -> list[tuple[str, str]]:
    """(place, kind) of the file systems that have cpusets."""
    rows = [line.split() for line in text.splitlines()]
    return [
        (row[1], row[2])
        for row in rows
        if len(row) > 3
        and (row[2] == "cgroup2" or (row[2] == "cgroup" and "cpuset" in row[3].split(",")))
    ]


def _group(text: str, hierarchy: str, controller: str) -> str:
    """Return the path of this process's group, without a slash at its end."""
    for line in text.splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if number == hierarchy or (controller and controller in controllers.split(",")):
            return path.rstrip("/") or "/"
    return ""


def _text(path: str) -> str:
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:  # noqa: PTH123
        return file.read()
    return ""


def _cpus(path: str) -> tuple[int, ...]:
    with contextlib.suppress(ValueError):
        return tuple(ranges(_text(path)))
    return ()
