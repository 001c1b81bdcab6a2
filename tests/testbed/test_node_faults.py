"""Nodes that fail under a launch: it ends, leaves nothing, and says what is known."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.cluster import Cluster, until
from testbed.nodes import SHORT, User, codes, lanes
from testbed.slurm import Slurm

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

Mpis = Mapping[Family, Path]
Clusters = Callable[..., Cluster]
LONG, COVERING = pytest.mark.long, pytest.mark.covering
LIMIT_S = 8
OVER = ("--transport", "ofi-tcp", "--layout", "2x1")
TRANSPORT = ("--mpi", "mpich@5", *OVER)
ENDLESS = (
    "--benchmark", "latency", "--max", "8", "--ms-per-size", "60000", "--rounds", "1",
    "--limit", LIMIT_S,
)  # fmt: skip


def strays(cluster: Cluster, node: str) -> list[str]:
    ours = ("mpigraft", "hydra", "prted", "mpirun")
    return [line for line in cluster.processes(node) if any(word in line for word in ours)]


@pytest.mark.parametrize(
    ("mpi", "told"),
    [
        pytest.param("mpich@5", False, marks=[LONG, COVERING], id="mpich@5-silent"),
        pytest.param("openmpi@5", False, marks=LONG, id="openmpi@5-silent"),
        pytest.param("mpich@5", True, id="mpich@5-told"),
        pytest.param("openmpi@5", True, marks=LONG, id="openmpi@5-told"),
    ],
)
def test_a_node_killed_in_a_launch_ends_it_within_its_limit(
    clusters: Clusters, mpis: Mpis, mpi: str, told: bool
) -> None:
    """Of a silent end nobody hears, so the limit ends the launch."""
    with clusters(2) as cluster:
        user = User(cluster, mpis)
        argv = user.words("bench", *user.nodes(), "--mpi", mpi, *OVER, *ENDLESS)
        with cluster.popen("n1", argv, env=user.environ, cwd=user.folder) as process:
            measuring = "--budget"
            until(lambda: any(measuring in p and "bench" in p
                              for p in strays(cluster, "n2")), "ranks on n2")  # fmt: skip
            until(lambda: len(list(user.home.glob("cache/ranks/*/*/*.ranks"))) == 2, "records")
            cluster.kill("n2", told=told)
            code = process.wait(timeout=120)
        assert code == 4
        until(lambda: not strays(cluster, "n1"), "an n1 without processes")
        (one,) = user.shown().values()
    assert one["proven"]  # the probe had ended well before
    assert one["launches"].keys() <= {"failed", "timeout"}
    assert one["launches"]
    if not told:  # else the peers hear resets, as of a node whose system still runs
        lost = [f["message"] for f in one["findings"] if f["code"] == "node-lost"]
        assert lost
        assert lost[0].startswith("n2 answered at the start")


@pytest.mark.covering
@pytest.mark.long
def test_a_node_killed_under_srun_ends_the_launch_within_its_limit(
    clusters: Clusters, slurms_here: None, mpis: Mpis
) -> None:
    """Slurm takes longer than the limit to see that a node does not answer."""
    with clusters(2) as cluster, Slurm(cluster) as slurm:
        user = User(cluster, mpis, slurm)
        words = user.words("bench", "--launcher", "srun", *TRANSPORT, *ENDLESS)
        argv = ["salloc", "-Q", "-N2", *words]
        with cluster.popen("n1", argv, env=user.environ, cwd=user.folder) as process:
            until(lambda: any("--budget" in p and "mpigraft-bench" in p
                              for p in strays(cluster, "n2")), "ranks on n2")  # fmt: skip
            cluster.kill("n2")
            code = process.wait(timeout=120)
        assert code == 4
        until(lambda: not strays(cluster, "n1"), "an n1 without processes")
        (one,) = user.shown().values()
    assert one["proven"]
    assert one["launches"].keys() <= {"failed", "timeout"}
    assert one["launches"]
    assert "node-lost" in codes(one)


@pytest.mark.parametrize(
    "shape",
    [{"shared_tmp": True}, pytest.param({"loopback_hostname": True}, marks=LONG)],
    ids=str,
)
def test_nodes_that_are_unlike_what_one_hopes_for_do(
    clusters: Clusters, mpis: Mpis, shape: dict[str, bool]
) -> None:
    with clusters(2, **shape) as cluster:
        user = User(cluster, mpis)
        user.on("n1", "bench", *user.nodes(), *TRANSPORT, *SHORT)
        (one,) = user.shown().values()
    assert one["proven"], one["findings"]
    assert lanes(one, "off-node")["p2p"] == "tcp"


def test_records_in_a_folder_that_is_not_shared_are_told(clusters: Clusters, mpis: Mpis) -> None:
    """/tmp is each node's own: the finding names the node and says what to do."""
    with clusters(2) as cluster:
        user = User(cluster, mpis, env={"MPIGRAFT_HOME": "/tmp/home"})
        linked = f"mkdir -p /tmp/home && ln -s {user.home}/mpi /tmp/home/mpi"
        for node in cluster.nodes:
            cluster.run(node, ["sh", "-c", linked], check=True)
        done = user.on("n1", "bench", *user.nodes(), *TRANSPORT, *SHORT, code=5)
    assert "the ranks on n2 left no record" in done.stderr
    assert "set MPIGRAFT_HOME to a folder that every node sees" in " ".join(done.stderr.split())
