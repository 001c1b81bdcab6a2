"""The CPUs of a cpuset, on machines that exist as files alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.cpuset import cpuset_cpus

ONE = "cgroup /sys/fs/cgroup/cpuset cgroup rw,relatime,cpuset 0 0\n"
TWO = "cgroup2 /sys/fs/cgroup cgroup2 rw,nsdelegate 0 0\n"
CPU = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu,cpuacct 0 0\n"


@pytest.mark.parametrize(
    ("mounts", "groups", "file", "due"),
    [
        (ONE, "3:cpuset:/job/step\n", "sys/fs/cgroup/cpuset/job/step/cpuset.cpus", (2, 3, 9)),
        (ONE, "3:cpuset:/\n", "sys/fs/cgroup/cpuset/cpuset.cpus", (2, 3, 9)),
        (TWO, "0::/job\n", "sys/fs/cgroup/job/cpuset.cpus.effective", (2, 3, 9)),
        (CPU + TWO + ONE, "4:cpuset:/job\n0::/\n", "sys/fs/cgroup/cpuset/job/cpuset.cpus",
         (2, 3, 9)),
        (TWO, "0::/of/the/host\n", "sys/fs/cgroup/cpuset.cpus.effective", tuple(range(10))),
        (CPU, "3:cpu:/job\n", "sys/fs/cgroup/cpu/job/cpuset.cpus", tuple(range(10))),
        (ONE, "", "sys/fs/cgroup/cpuset/cpuset.cpus", tuple(range(10))),
    ],
    ids=["v1", "v1-root", "v2", "both", "not-visible", "no-cpuset", "no-group"],
)  # fmt: skip
def test_a_cpuset_is_read_as_hwloc_reads_it(
    tmp_path: Path, mounts: str, groups: str, file: str, due: tuple[int, ...]
) -> None:
    texts = {
        "proc/self/mounts": mounts, "proc/self/cgroup": groups, file: "2-3,9,64\n",
        "sys/devices/system/cpu/online": "0-9\n",
    }  # fmt: skip
    for name, text in texts.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert cpuset_cpus(str(tmp_path)) == due


def test_nothing_is_known_without_sysfs(tmp_path: Path) -> None:
    assert cpuset_cpus(str(tmp_path)) == ()
