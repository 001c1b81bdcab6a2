"""`mpigraft run` on hosts whose names launchers confuse: full ones, and lists with two brackets."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from testbed.cluster import Cluster
from testbed.slurm import Slurm

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

RUN = (sys.executable, "-m", "mpigraft.cli.entry", "run", "--no-proof", "--ranks-per-node", "1")
FULL, RACKS = ("w.1.example", "w.2.example"), ("rack0node01", "rack1node01")
SHOW = """\
echo ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} $(ip -br -4 address show e0 | grep -o '[.][12]/24')
"""
AGENT = """\
#!/bin/sh
for word; do
    shift
    case $word in {full[0]}) word=n1 ;; {full[1]}) word=n2 ;; esac
    set -- "$@" "$word"
done
exec {ssh} "$@"
"""
MPIS = ("openmpi@5", "openmpi@4.1.4", "mpich@5", "intel")


def each_mpi(daily: str) -> pytest.MarkDecorator:
    """One of them each day: all of them take a minute."""
    rows = [pytest.param(mpi, marks=() if mpi == daily else pytest.mark.long) for mpi in MPIS]
    return pytest.mark.parametrize("mpi", rows)


@pytest.fixture(scope="module")
def two(clusters: Callable[..., Cluster]) -> Cluster:
    """Nodes that have other names too, and an agent that knows these."""
    cluster = clusters(2)
    names = "".join(
        f"{cluster.address(node)} {' '.join(names)}\n"
        for node, *names in zip(cluster.nodes, FULL, RACKS, strict=True)
    )
    for node in cluster.nodes:
        with (cluster.folder / "nodes" / node / "hosts").open("a") as hosts:
            hosts.write(names)
    (cluster.shared / "show").write_text(SHOW)
    agent = cluster.shared / "agent"
    agent.write_text(AGENT.format(full=FULL, ssh=cluster.remote))
    agent.chmod(0o755)
    return cluster


@pytest.fixture(scope="module")
def racks(two: Cluster, slurms_here: None) -> Iterator[Slurm]:
    for node, name in zip(two.nodes, RACKS, strict=True):
        two.said(node, "hostname", name)
    with Slurm(two, names=RACKS) as slurm:
        yield slurm


def places(cluster: Cluster, home: Path, *words: str, inside: tuple[str, ...] = (),
           env: dict[str, str] | None = None) -> list[str]:  # fmt: skip
    """The number of each rank and of its node."""
    show = ("--", "/bin/sh", str(cluster.shared / "show"))
    done = cluster.run("n1", [*inside, *RUN, *words, *show], timeout=120,
                       env={**os.environ, **(env or {}), "MPIGRAFT_HOME": str(home)})  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines() if line.endswith("/24")]
    return [f"{rank} on n{node[1]}" for rank, node in sorted(lines)]


@pytest.mark.parametrize("hostname", ["full", pytest.param("other", marks=pytest.mark.long)])
@each_mpi("openmpi@5")
def test_full_names_that_share_a_first_label_are_two_hosts(
    two: Cluster, fresh_home: Path, mpi: str, hostname: str
) -> None:
    """Open MPI 4 and 5 cut names at the first dot, and saw one node, w."""
    for node, full in zip(two.nodes, FULL, strict=True):
        two.said(node, "hostname", full if hostname == "full" else node)
    where = ("--hosts", ",".join(FULL), "--ssh-command", str(two.shared / "agent"), "--nodes", "2")
    assert places(two, fresh_home, "--mpi", mpi, *where) == ["0 on n1", "1 on n2"]


@each_mpi("mpich@5")
def test_a_list_of_slurms_with_two_brackets_in_a_word(
    racks: Slurm, fresh_home: Path, mpi: str
) -> None:
    """Only hydra of MPICH 4 reads it by itself."""
    listed = [f"{name}=rack[0-1]node[01]" for name in ("SLURM_JOB_NODELIST", "SLURM_NODELIST")]
    inside = ("salloc", "-Q", "-N2", "-n2", "env", *listed)
    words = ("--mpi", mpi, "--nodes", "2")
    told = places(racks.cluster, fresh_home, *words, inside=inside, env=dict(racks.environ))
    assert told == ["0 on n1", "1 on n2"]


@each_mpi("intel")
def test_hosts_named_out_of_a_job_are_those_that_run(
    racks: Slurm, fresh_home: Path, mpi: str
) -> None:
    """The launcher read the job's hosts, and took the first."""
    inside = ("salloc", "-Q", "-N2", "-n2")
    words = ("--mpi", mpi, "--hosts", RACKS[1], "--nodes", "1")
    told = places(racks.cluster, fresh_home, *words, inside=inside, env=dict(racks.environ))
    assert told == ["0 on n2"]
