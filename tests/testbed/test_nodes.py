"""Transports between nodes in campaigns, under mpirun and under srun, with proof for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.cluster import Cluster
from testbed.nodes import SHORT, Told, User, codes, crossed, lanes, standing
from testbed.slurm import Slurm

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

Mpis = Mapping[Family, Path]
ALL = ("p2p", "one-sided", "collective")
LONG, COVERING = pytest.mark.long, pytest.mark.covering
MPIS = ("--mpi", "openmpi", "--mpi", "mpich@5", "--mpi", "intel")
# What carries messages, windows and collectives to the other node.
BETWEEN = {
    ("openmpi@5", "ob1-tcp"): ("tcp", "rdma", "tcp"),
    ("openmpi@5", "ofi-tcp"): ("tcp (e0)", "rdma", "tcp (e0)"),
    ("openmpi@5", "ofi-lnx"): ("lnx (shm+e0)", "rdma", "lnx (shm+e0)"),
    ("openmpi@5", "ucx"): ("ucx (tcp/e0)",) * 3,
    ("openmpi@4", "ob1-tcp"): ("tcp", "", "tcp"),  # it does not say what carries a window
    ("openmpi@4", "ofi-tcp"): ("tcp;ofi_rxm", "", "tcp;ofi_rxm"),
    ("openmpi@4", "ucx"): ("ucx (tcp/e0)",) * 3,
    ("mpich@5", "ofi-tcp"): ("tcp",) * 3,
    ("mpich@5", "shm-ofi-tcp"): ("tcp",) * 3,
    ("mpich@5", "ucx"): ("ucx (tcp/e0)",) * 3,
    ("intel@2021", "ofi-tcp"): ("tcp",) * 3,
    ("intel@2021", "shm-ofi-tcp"): ("tcp",) * 3,
}


Campaign = Callable[[str], dict[str, Told]]


@pytest.fixture(scope="module")
def campaign(slurm: Slurm, mpis: Mpis) -> Campaign:
    """Every transport here, started by one kind of launcher, in one batch job."""

    @cache
    def measured(launcher: str) -> dict[str, Told]:
        user = User(slurm.cluster, mpis, slurm)
        user.job("bench", "--layout", "2x1", "--launcher", launcher, *MPIS, *SHORT)
        return user.shown()

    return measured


def found(campaign: Campaign, mpi: str, transport: str, launcher: str) -> Told:
    by = "" if launcher == "own" else f"+{launcher}"
    hits = [c for name, c in campaign(launcher).items() if name.startswith(mpi)
            and name.partition("/")[2] == f"{transport}{by}"]  # fmt: skip
    if not hits and mpi == "openmpi@4":
        pytest.skip("Debian's Open MPI 4.1 is not here")
    assert len(hits) == 1, sorted(campaign(launcher))
    return hits[0]


LAUNCHERS = ["own", pytest.param("srun", marks=LONG)]


@pytest.mark.parametrize("launcher", LAUNCHERS)
@pytest.mark.parametrize(("mpi", "transport"), [*BETWEEN])
def test_each_is_proven_between_two_nodes_of_a_job(
    campaign: Campaign, slurm: Slurm, mpi: str, transport: str, launcher: str
) -> None:
    told = found(campaign, mpi, transport, launcher)
    due = {kind: lane for kind, lane in zip(ALL, BETWEEN[mpi, transport], strict=True) if lane}
    assert told["proven"], told["findings"]
    ran = lanes(told, "off-node")
    rails = slurm.cluster.hard and transport == "ucx"  # it sends through both networks
    assert {
        kind: lane.replace(" tcp/e1", "").replace("tcp/e1 ", "") if rails else lane
        for kind, lane in ran.items()
    } == due
    assert standing(told, "on-node") == {"not exercised"}
    assert told["launches"].keys() == {"ok"}
    wire = crossed(told)
    assert wire["counter"] == "netdev"
    assert wire["named"]  # the transport or the library says that it is this one
    more = crossed(told, "e1")["bytes"] if rails else 0
    assert 1 <= (wire["bytes"] + more) / wire["payload"] < 1.2  # twice would be both ends of a link
    assert crossed(told, "lo")["bytes"] < 0.01 * wire["payload"]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_none_is_left_out_in_silence(campaign: Campaign, launcher: str) -> None:
    """Whatever ran is in the table above, and its rounds were measured."""
    names = {
        (name.partition("@")[0], name.partition("/")[2].partition("+")[0])
        for name in campaign(launcher)
    }
    assert names <= {(mpi.partition("@")[0], transport) for mpi, transport in BETWEEN}
    assert all(c["proven"] for c in campaign(launcher).values())


def test_srun_starts_each_family(slurm: Slurm, mpis: Mpis) -> None:
    """One transport, every day: others differ in the variables of the ranks, as under mpirun."""
    user = User(slurm.cluster, mpis, slurm)
    words = ("--layout", "2x1", "--launcher", "srun", "--transport", "ofi-tcp")
    user.job("bench", *words, "--mpi", "openmpi@5", *MPIS[2:], *SHORT)
    told = user.shown()
    assert {name.partition("@")[0] for name in told} == {"openmpi", "mpich", "intel"}
    for name, one in told.items():
        assert name.endswith("/ofi-tcp+srun")
        assert one["proven"], one["findings"]
        assert one["launches"].keys() == {"ok"}
        assert lanes(one, "off-node")["p2p"].startswith("tcp")


# ------------------------------------------------------------------ other shapes


@pytest.fixture(scope="module")
def wide(clusters: Callable[..., Cluster], slurms_here: None, mpis: Mpis) -> Iterator[User]:
    """Two nodes of several processors, so that ranks of a node need not take turns."""
    cluster = clusters(2, pin=False)
    with Slurm(cluster) as slurm:
        yield User(cluster, mpis, slurm)


@LONG
def test_two_ranks_on_each_of_two_nodes(wide: User) -> None:
    """In one launch the near go one way and the far another; LNX names both in one line, and it
    is the wire that tells its shared memory from its network. One transport alone, since four
    ranks that wait for each other take turns on the processors of a host."""
    words = ("--mpi", "openmpi@5", "--transport", "ofi-lnx", "--launcher", "srun")
    wide.job("bench", "--layout", "2x2:core-none", *words, *SHORT, ranks=4)
    (told,) = wide.shown().values()
    assert told["proven"], told["findings"]
    assert lanes(told, "on-node")["p2p"] == lanes(told, "off-node")["p2p"] == "lnx (shm+e0)"
    assert 1 <= crossed(told)["bytes"] / crossed(told)["payload"] < 1.2


@pytest.mark.parametrize(
    "transport",  # ob1's ranks give up their turns while they wait, of which there are many here
    ["ob1-tcp", pytest.param("ofi-lnx", marks=LONG), pytest.param("ucx", marks=LONG)],
)
def test_four_nodes(clusters: Callable[..., Cluster], mpis: Mpis, transport: str) -> None:
    """By hand, without a scheduler; each of the wires is counted once."""
    with clusters(4) as cluster:
        user = User(cluster, mpis)
        words = ("--layout", "4x1", "--mpi", "openmpi@5", "--transport", transport, *SHORT)
        user.on("n1", "bench", *user.nodes(), *words)
        (one,) = user.shown().values()
    assert one["proven"], one["findings"]
    assert lanes(one, "off-node").keys() == {*ALL}
    assert 1 <= crossed(one)["bytes"] / crossed(one)["payload"] < 1.2


# ------------------------------------------------------------------ what did not run as asked


def refused(user: User, *words: object, code: int, ranks: int = 1) -> tuple[str, Told]:
    """A campaign of one configuration that ends with that exit code."""
    said = user.job("bench", "--mpi", "openmpi@5", *SHORT, *words, code=code, ranks=ranks)
    (told,) = user.shown().values()
    assert not told["proven"]
    assert told["launches"] == {}  # nothing was measured under a wrong name
    return said, told


@LONG
@COVERING
def test_lnx_without_its_shared_memory_is_caught_by_the_wire(wide: User) -> None:
    """The library says the same words as ever, and the payload of the near crosses an interface."""
    layout = ("--layout", "2x2:core-none", "--launcher", "srun", "--transport", "ofi-lnx")
    said, told = refused(wide, *layout, "--env", "FI_LNX_DISABLE_SHM=1", code=5, ranks=4)
    assert codes(told) == {"wire-contradiction"}
    near = [p for p in told["proof"] if p["peer"] == "on-node" and p["kind"] == "p2p"]
    assert near[0]["standing"] == "contradicted"
    assert "a network, so not lnx" in near[0]["lane"]
    assert lanes(told, "off-node")["p2p"] == "lnx (shm+e0)"
    assert "wire-contradiction" in said


def test_another_pml_under_the_name_of_a_transport_is_caught(slurm: Slurm, mpis: Mpis) -> None:
    user = User(slurm.cluster, mpis, slurm)
    words = ("--layout", "2x1", "--transport", "ofi-tcp", "--env", "OMPI_MCA_pml=ob1")
    said, told = refused(user, *words, code=5)
    assert "requested ofi-tcp, ran ob1 (tcp)" in said
    assert codes(told) == {"transport-mismatch"}


def test_a_node_whose_interface_has_another_name_is_named(
    clusters: Callable[..., Cluster], mpis: Mpis
) -> None:
    """LNX's links name an interface, and they are the same everywhere (LNX-10)."""
    with clusters(2) as cluster:
        user = User(cluster, mpis)
        renamed = "ip link set e0 down; ip link set e0 name x0; ip link set x0 up"
        cluster.run("n2", ["sh", "-c", renamed], check=True)
        words = ("--mpi", "openmpi@5", "--transport", "ofi-lnx", "--layout", "2x1", *SHORT)
        done = user.on("n1", "bench", *user.nodes(), *words, code=4)
        assert "n2" in done.stderr
        (told,) = user.shown().values()
    assert not told["proven"]
    assert told["launches"] == {}
