"""The hardware's order of CPUs against hwloc's, on machines that exist as files alone."""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from mpigraft.launch.launchers.hardware import in_order

LSTOPO = shutil.which("lstopo-no-graphics")


def write(path: Path, text: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{text}\n")


def mask(cpus: Iterable[int]) -> str:
    return f"{sum(1 << cpu for cpu in cpus):x}"


class Files:
    """/sys and /proc of a machine with packages of domains of caches of cores of threads.

    `numbered` are the kernel's numbers of its hardware threads, in the order of the hardware;
    thread t of core c of all is number c * threads + t there.
    """

    def __init__(self, root: Path, shape: Sequence[int], numbered: Sequence[int]) -> None:
        self.root, self.system = root, root / "sys/devices/system"
        packages, domains, caches, cores, threads = shape
        size = packages * domains * caches * cores * threads
        for place, cpu in enumerate(numbered):

            def within(count: int, place: int = place) -> list[int]:
                first = place - place % count
                return sorted(numbered[first : first + count])

            core, cache = within(threads), within(threads * cores)
            domain, package = within(threads * cores * caches), within(size // packages)
            self._cpu(cpu, place // threads, core, cache, place * packages // size, package)
            number = place * packages * domains // size
            node = self.system / f"node/node{number}"
            write(node / "cpumap", mask(domain))
            write(node / "cpulist", ",".join(map(str, domain)))
            write(node / "meminfo", f"Node {number} MemTotal: 1000000 kB")
            write(node / "distance", " ".join(
                "10" if n == number else "20" for n in range(packages * domains)))  # fmt: skip
        for name in ("online", "possible", "present"):
            write(self.system / "cpu" / name, f"0-{size - 1}")
        for name in ("online", "possible"):
            write(self.system / "node" / name, f"0-{packages * domains - 1}")
        write(root / "proc/cpuinfo", "".join(f"processor\t: {c}\n" for c in sorted(numbered)))
        write(root / "proc/meminfo", "MemTotal: 1000000 kB")

    def _cpu(
        self, cpu: int, core: int, threads: list[int], cache: list[int], package: int,
        packaged: list[int],
    ) -> None:  # fmt: skip
        folder = self.system / f"cpu/cpu{cpu}"
        for name, cpus in (("core_cpus", threads), ("package_cpus", packaged)):
            write(folder / "topology" / name, mask(cpus))
            write(folder / "topology" / f"{name}_list", ",".join(map(str, cpus)))
        write(folder / "topology/core_id", core)
        write(folder / "topology/physical_package_id", package)
        facts = {
            "level": 3, "type": "Unified", "size": "16384K", "shared_cpu_map": mask(cache),
            "shared_cpu_list": ",".join(map(str, cache)), "coherency_line_size": 64,
            "number_of_sets": 16384, "ways_of_associativity": 16, "physical_line_partition": 1,
        }  # fmt: skip
        for name, value in facts.items():
            write(folder / "cache/index0" / name, value)

    def hwloc(self) -> tuple[int, ...]:
        """CPUs by hwloc's logical number."""
        argv = [str(LSTOPO), "-i", str(self.root), "--if", "fsroot", "--only", "pu", "-p"]
        done = subprocess.run([*argv, "--of", "console"], capture_output=True, text=True)
        return tuple(map(int, re.findall(r"P#(\d+)", done.stdout)))


SHAPES = ((2, 1, 1, 4, 1), (2, 4, 2, 2, 2), (1, 4, 1, 2, 1), (1, 1, 1, 1, 2), (2, 2, 1, 3, 2))


@pytest.mark.skipif(LSTOPO is None, reason="lstopo of hwloc is not here")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_hwlocs(tmp_path: Path, shape: tuple[int, ...], seed: int) -> None:
    """However the kernel numbers the hardware threads."""
    size = shape[0] * shape[1] * shape[2] * shape[3] * shape[4]
    numbered = list(range(size))
    if seed:
        random.Random(seed).shuffle(numbered)
    files = Files(tmp_path, shape, numbered)
    due = files.hwloc()
    assert sorted(due) == list(range(size))
    assert in_order(range(size), files.system) == due


ORDER = """\
import os
from mpigraft.launch.launchers.hardware import hardware_order
os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
print(*hardware_order())
"""


@pytest.mark.skipif(LSTOPO is None, reason="lstopo of hwloc is not here")
def test_hwloc_counts_the_cpus_of_the_cpuset() -> None:
    """Of this machine, under an affinity mask of one CPU, as taskset sets it."""
    last = {max(os.sched_getaffinity(0))}
    done = subprocess.run(
        [str(LSTOPO), "--only", "pu", "-p", "--of", "console"], capture_output=True, text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, last),
    )  # fmt: skip
    ours = subprocess.run([sys.executable, "-c", ORDER], capture_output=True, text=True)
    assert ours.stdout.split() == re.findall(r"P#(\d+)", done.stdout)
