"""Limits of a node: each is reported where it is short, and not where it is just enough."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import Allocation, EnvRow, Layout, NetDevice, NetLibrary, Scope, SingleCopy
from mpigraft.evidence.limits import READERS, Limit, launch_limits, short_limits
from mpigraft.knowledge.limits import LIMITS, limit_needs
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import matches

ROOT = Path(__file__).parents[3]
IB = NetDevice("mlx5_0", "infiniband", "active")
UCX = NetLibrary("ucx", "1.16", None)
TWO = Layout(1, 2)
UNLOCK = "setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock " if os.geteuid() == 0 else ""
CHILD = """
from tests.unit.evidence.test_limits import short
print(*short({mpi!r}, {device}))
"""


def short(mpi: str, device: bool = False, root: Path = Path("/"), **rows: str) -> list[str]:
    """What is short for two ranks of an MPI, with or without an InfiniBand device."""
    machine = replace(a_machine(), fabrics=(IB,) if device else ())
    one = replace(an_mpi(mpi), ucx=UCX)
    given = [EnvRow(name, value, Scope.RANK, "user") for name, value in rows.items()]
    limits = launch_limits(one, TWO, machine, given, root)
    return [limit.need.limit for limit in limits if limit.short]


def in_child(setup: str, mpi: str = "openmpi@5.0.11", device: bool = False) -> list[str]:
    """The same in a process that a shell has set up."""
    code = CHILD.format(mpi=mpi, device=device)
    words = ["sh", "-c", f'{setup}"$0" -c "$1"', sys.executable, code]
    env = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"}
    ran = subprocess.run(words, env=env, cwd=ROOT, capture_output=True, text=True, check=True)
    return ran.stdout.split()


@pytest.mark.parametrize(
    ("setup", "device", "due"),
    [
        ("ulimit -n 33; ", False, ["nofile"]),
        ("ulimit -n 34; ", False, []),
        ("ulimit -s 255; ", False, ["stack"]),
        ("ulimit -s 256; ", False, []),
        (f"ulimit -l 64; {UNLOCK}", True, ["memlock"]),
        (f"ulimit -l 64; {UNLOCK}", False, []),  # nothing locks memory
    ],
)
def test_limits_of_processes(setup: str, device: bool, due: list[str]) -> None:
    assert in_child(setup, device=device) == due


@pytest.mark.root
@pytest.mark.parametrize(("size", "due"), [("1m", ["shm"]), ("5m", [])])
def test_room_in_dev_shm(size: str, due: list[str]) -> None:
    if os.geteuid() or not shutil.which("unshare"):
        pytest.skip("only root mounts a file system")
    mount = f"mount -t tmpfs -o size={size} tmpfs /dev/shm && "
    words = f"unshare -m --propagation private sh -c '{mount}exec \"$@\"' sh "
    assert in_child(words) == due


@pytest.mark.parametrize("folder", ["", "memory/"])
@pytest.mark.parametrize(("mib", "due"), [(31, ["memory"]), (32, [])])
def test_memory_of_a_cgroup_or_of_one_above_it(
    tmp_path: Path, folder: str, mib: int, due: list[str]
) -> None:
    name = "memory.limit_in_bytes" if folder else "memory.max"
    tree(tmp_path, f"0:{folder.strip('/')}:/job_1/step_0", {
        f"sys/fs/cgroup/{folder}job_1/{name}": f"{mib << 20}\n",
        f"sys/fs/cgroup/{folder}job_1/step_0/{name}": "max\n",
    })  # fmt: skip
    assert short("openmpi@5.0.11", root=tmp_path) == due


@pytest.mark.parametrize(
    ("files", "due"),
    [
        ({"cpu.max": "100000 100000"}, ["cpus"]),
        ({"cpu.max": "200000 100000"}, []),
        ({"cpu.max": "max 100000"}, []),
        ({"cpu/cpu.cfs_quota_us": "150000", "cpu/cpu.cfs_period_us": "100000"}, ["cpus"]),
        ({"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, []),
    ],
)
def test_cpu_quota(tmp_path: Path, files: dict[str, str], due: list[str]) -> None:
    tree(tmp_path, "0::/\n4:cpu,cpuacct:/", {f"sys/fs/cgroup/{n}": t for n, t in files.items()})
    assert short("openmpi@5.0.11", root=tmp_path) == due


@pytest.mark.parametrize(("scope", "due"), [("2", ["ptrace"]), ("1", []), ("", [])])
def test_ptrace_scope(tmp_path: Path, scope: str, due: list[str]) -> None:
    tree(tmp_path, "", {"proc/sys/kernel/yama/ptrace_scope": scope})
    assert short("openmpi@5.0.11", root=tmp_path) == due
    machine = replace(a_machine(), single_copy=(SingleCopy("xpmem", True, ""),))
    found = launch_limits(an_mpi(), TWO, machine, (), tmp_path)
    assert "ptrace" not in [limit.need.limit for limit in found]  # XPMEM does it


@pytest.mark.parametrize(
    ("mode", "pages", "due"),
    [("y", "0", ["hugepages"]), ("y", "1", []), ("try", "0", [])],
)
def test_huge_pages_that_a_setting_asks_for(
    tmp_path: Path, mode: str, pages: str, due: list[str]
) -> None:
    tree(tmp_path, "", {"sys/kernel/mm/hugepages/hugepages-2048kB/nr_overcommit_hugepages": pages})
    assert short("openmpi@5.0.11", root=tmp_path, UCX_POSIX_HUGETLB_MODE=mode) == due


@pytest.mark.parametrize(
    ("mpi", "name", "value"),
    [
        ("openmpi@5.0.11", "OMPI_MCA_btl", "self,tcp"),
        ("mpich@5.0.2", "MPIR_CVAR_NOLOCAL", "1"),
        ("intel@2021.18.1", "I_MPI_FABRICS", "ofi"),
    ],
)
def test_dev_shm_is_not_needed_without_shared_memory(mpi: str, name: str, value: str) -> None:
    def needs(*rows: EnvRow) -> set[str]:
        device = "ch4:ucx" if mpi.startswith("mpich") else ""
        found = launch_limits(replace(an_mpi(mpi), device=device), TWO, a_machine(), rows)
        return {limit.need.limit for limit in found}

    assert "shm" in needs()
    assert "shm" not in needs(EnvRow(name, value, Scope.RANK, "user"))


def test_the_mpi_that_needs_most_is_named_once_and_only_on_nodes_of_the_job() -> None:
    limits = [
        Limit(limit_needs()[0], "n1", f"mpi@{needed}", 4, here=1, needed=needed)
        for needed in (0, 2, 8, 4)
    ]
    (found,) = short_limits(limits)
    assert matches(found, "limit-short", host="n1", mpi="mpi@8", here="1 KiB", needed="8 KiB")
    assert found.evidence  # the sources
    others = Allocation(("n7", "n8"), "--hosts")
    assert short_limits(limits, others) == ()


def test_every_limit_of_the_table_is_read() -> None:
    assert sorted(READERS) == sorted(LIMITS) == sorted({need.limit for need in limit_needs()})


def tree(root: Path, groups: str, files: dict[str, str]) -> None:
    for name, text in {"proc/self/cgroup": groups, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="ascii")
