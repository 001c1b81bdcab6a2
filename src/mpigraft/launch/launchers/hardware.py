"""CPUs in the order of the hardware: the numbers by which hwloc, and so PRRTE, counts them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from pathlib import Path

from mpigraft.core.cpuset import cpuset_cpus, ranges

SYSTEM = Path("/sys/devices/system")
LEVELS = (  # files of a CPU: each lists the CPUs that share a thing with it
    "topology/package_cpus_list",
    "topology/die_cpus_list",
    "topology/cluster_cpus_list",
    "topology/core_cpus_list",
    "topology/core_siblings_list",  # the package, and below the core, before Linux 5.2
    "topology/thread_siblings_list",
    "cache/index[0-9]/shared_cpu_list",
)


@cache
def hardware_order() -> tuple[int, ...]:
    """Return the CPUs that hwloc numbers, in the order of the hardware: those of this process's
    cpuset, also where an affinity mask leaves it fewer."""
    return in_order(cpuset_cpus())


def in_order(cpus: Iterable[int], system: Path = SYSTEM) -> tuple[int, ...]:
    """Order CPUs as a walk through packages, domains, caches and cores meets them, which is not the
    order of their numbers on machines with hardware threads, or with sockets numbered in turn.

    Siblings are in the order of their lowest CPU, as hwloc has it (hwloc 2, Terms and Definitions:
    Logical index). Unknown CPUs are in the order of their numbers.
    """
    domains = [_cpus(path) for path in system.glob("node/node[0-9]*/cpulist")]

    def position(cpu: int) -> tuple[int, ...]:
        folder = system / f"cpu/cpu{cpu}"
        shared = [_cpus(path) for level in LEVELS for path in folder.glob(level)]
        within = {s for s in (*shared, *domains) if cpu in s}
        return (*(min(s) for s in sorted(within, key=lambda s: (-len(s), min(s)))), cpu)

    return tuple(sorted(cpus, key=position))


def _cpus(path: Path) -> frozenset[int]:
    try:
        return frozenset(ranges(path.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return frozenset()
