"""Read this node's load from its kernel before and after each measured launch.

On every node the ranks themselves record who used their CPUs (native/common/conditions.h).
What a kernel, a container or a right does not allow to read is absent, never an error.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from mpigraft.core.model import NodeState

SOME = re.compile(r"^some .*\bavg10=([0-9.]+) .*\btotal=(\d+)", re.MULTILINE)
STEAL = 8  # its word in the first line of /proc/stat (proc_stat(5))


def node_state(root: Path = Path("/")) -> NodeState:
    """Return the load of this node now."""
    proc = root / "proc"
    pressure = SOME.search(_text(proc / "pressure/cpu"))  # kernel.org, accounting/psi
    return NodeState(
        load=_load(_text(proc / "loadavg")),
        pressure=float(pressure[1]) if pressure else None,
        stalled_s=int(pressure[2]) / 1e6 if pressure else None,
        steal_s=_steal(_text(proc / "stat")),
        governor=_governor(root / "sys/devices/system/cpu/cpufreq"),
    )


def _text(path: Path) -> str:
    """Empty where it cannot be read: a kernel without PSI has the file and refuses to read it."""
    with contextlib.suppress(OSError):
        return path.read_text(encoding="ascii", errors="replace")
    return ""


def _load(text: str) -> tuple[float, ...]:
    with contextlib.suppress(ValueError):
        return tuple(map(float, text.split()[:3]))
    return ()


def _steal(text: str) -> float | None:
    words = text.partition("\n")[0].split()
    if len(words) <= STEAL or not words[STEAL].isdecimal():
        return None
    return int(words[STEAL]) / os.sysconf("SC_CLK_TCK")


def _governor(folder: Path) -> str:
    """Name the governors of all CPUs, in the order of the alphabet."""
    governors = {_text(path).strip() for path in folder.glob("policy*/scaling_governor")}
    return ",".join(sorted(governors - {""}))
