"""What mpigraft-bench does between nodes: who is paired with whom, and what the wires saw."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpigraft.analysis.pairs import matrices
from mpigraft.analysis.pairs.outliers import Way
from mpigraft.core.model import Family, ValueRow
from mpigraft.native.programs import BENCH, PROBE
from testbed.cluster import Cluster
from tests.native.conftest import programs  # noqa: F401
from tests.native.native_world import SHORT, abi_of
from tests.native.native_world import records as read

pytestmark = [pytest.mark.mpi, pytest.mark.root]

Bench = Callable[..., list[dict[str, Any]]]
FEW = ("--min", "1M", "--max", "1M", "--iterations", "20")
MIB = 1 << 20


class Ended:
    """What `records` reads of a Completed."""

    def __init__(self, text: str) -> None:
        self.stdout = text.encode()


@pytest.fixture(params=[Family.OPENMPI, Family.MPICH], ids=str)
def family(request: pytest.FixtureRequest) -> Family:
    found: Family = request.param
    return found


def start(
    cluster: Cluster,
    mpis: Mapping[Family, Path],
    programs: Path,  # noqa: F811
    family: Family,
    hosts: Mapping[str, int],
    *words: str,
    program: str = BENCH,
    dealt: bool = False,
) -> list[dict[str, Any]]:
    """The records of a program; `hosts` says how many ranks each gets, `dealt` that they go
    round the hosts."""
    prefix, ranks = mpis[family], sum(hosts.values())
    command = [str(programs / abi_of(family) / program), *words]
    env = {"LD_LIBRARY_PATH": str(prefix / "lib")}
    if family is Family.OPENMPI:
        env |= {f"OMPI_ALLOW_RUN_AS_ROOT{end}": "1" for end in ("", "_CONFIRM")}
        env |= {"OPAL_PREFIX": str(prefix)}
        order = ["--map-by", "node" if dealt else "slot", "--bind-to", "none"]
        net = ["--prtemca", "prte_if_include", cluster.subnet]
        net += ["--mca", "btl_tcp_if_include", cluster.subnet, "--mca", "pml", "ob1"]
        slots = ",".join(f"{host}:{count}" for host, count in hosts.items())
        argv = [prefix / "bin/mpirun", *net, "-H", slots, *order, "-n", str(ranks)]
        argv += ["-x", "LD_LIBRARY_PATH", "-x", "OPAL_PREFIX"]
    else:
        names = ",".join(h if dealt else f"{h}:{n}" for h, n in hosts.items())
        argv = [prefix / "bin/mpiexec", "-launcher", "ssh", "-launcher-exec", cluster.remote]
        argv += ["-iface", "e0", "-hosts", names, "-n", str(ranks)]
        argv += ["env", *(f"{k}={v}" for k, v in env.items())]
    own = {**os.environ, **cluster.environ, **env}
    done = cluster.run("n1", [*map(str, argv), *command], env=own, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return read(Ended(done.stdout))  # type: ignore[arg-type]


def sent(cluster: Cluster, node: str) -> int:
    return int(cluster.said(node, "cat", "/sys/class/net/e0/statistics/tx_bytes"))


def phases(told: list[dict[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(r["kind"], r["peer"]): r for r in told if r["mpigraft"] == "phase"}


def crossed(phase: dict[str, Any]) -> int:
    return int(phase["wire"]["e0"])


@pytest.mark.parametrize("dealt", [False, True], ids=["filled", "dealt"])
def test_pairs_stand_on_two_nodes_however_ranks_are_dealt(
    cluster: Cluster,
    mpis: Mapping[Family, Path],
    programs: Path,  # noqa: F811
    family: Family,
    dealt: bool,
) -> None:
    """Twenty windows of one message from each rank of the first node to one of the second."""
    before = sent(cluster, "n1")
    words = (*SHORT, "--benchmark", "mbw_mr:window=1,bw:window=1", *FEW)
    start(cluster, mpis, programs, family, {"n1": 2, "n2": 2}, *words, dealt=dealt)
    assert sent(cluster, "n1") - before > 3 * 20 * MIB


@pytest.mark.parametrize(  # ranks of MPICH poll, two on the one CPU of a node
    "family", [Family.OPENMPI, pytest.param(Family.MPICH, marks=pytest.mark.long)], indirect=True
)
def test_the_probe_attributes_the_wire(
    cluster: Cluster,
    mpis: Mapping[Family, Path],
    programs: Path,  # noqa: F811
    family: Family,
) -> None:
    """Payload between nodes is on the wire once; payload within them is not on it."""
    told = phases(start(cluster, mpis, programs, family, {"n1": 2, "n2": 2}, program=PROBE))
    assert set(told) == {
        ("p2p", "on-node"), ("p2p", "off-node"), ("one-sided", "on-node"),
        ("one-sided", "off-node"), ("collective", "off-node"),
    }  # fmt: skip
    assert all(phase["ok"] for phase in told.values())
    for kind in ("p2p", "one-sided"):
        assert crossed(told[kind, "on-node"]) < 0.001 * told[kind, "on-node"]["bytes"]
        assert crossed(told[kind, "off-node"]) >= told[kind, "off-node"]["bytes"]
    p2p = told["p2p", "off-node"]
    assert crossed(p2p) < 1.05 * p2p["bytes"]


@pytest.fixture
def four(clusters: Callable[..., Cluster]) -> Iterator[Cluster]:
    with clusters(4) as made:
        yield made


def test_four_nodes_with_unlike_numbers_of_ranks(
    four: Cluster,
    mpis: Mapping[Family, Path],
    programs: Path,  # noqa: F811
) -> None:
    hosts = {"n1": 2, "n2": 1, "n3": 1, "n4": 1}
    told = phases(start(four, mpis, programs, Family.OPENMPI, hosts, program=PROBE))
    parts = told["p2p", "off-node"]["parts"]
    sizes = {"8 B": 8, "64 KiB": 64 << 10, "1 MiB": MIB}
    for part in parts:  # the second rank of the first node has nobody at its place elsewhere
        assert part["bytes"] == 4 * part["times"] * sizes[part["what"]]
    assert told["p2p", "on-node"]["parts"][0]["bytes"] % 16 == 0
    assert crossed(told["p2p", "off-node"]) >= told["p2p", "off-node"]["bytes"]


def test_launch_time_and_collectives_of_four_nodes(
    four: Cluster,
    mpis: Mapping[Family, Path],
    programs: Path,  # noqa: F811
) -> None:
    names = "launch_time,init_time,memory,alltoall,allgather,multi_lat,mbw_mr"
    begin = f"{time.time():.6f}"
    words = (*SHORT, "--benchmark", names, "--max", "64", "--launched", begin)
    told = start(four, mpis, programs, Family.MPICH, dict.fromkeys(four.nodes, 1), *words)
    found = [r for r in told if r["mpigraft"] == "value"]
    value = {r["metric"]: r["value"] for r in found if r["size"] == 0}
    assert value["launch_time"] > value["init_time"] > 0
    assert {r["benchmark"] for r in found} == set(names.split(","))
    assert all(r["valid"] is not False for r in found)


def switch(cluster: Cluster) -> Path:
    """The network namespace of the bridge, which its keeper holds open."""
    held = Path(f"/proc/{cluster.keeper.pid}/fd").iterdir()
    return next(path for path in held if str(path.readlink()).startswith("net:"))


@pytest.mark.long  # ranks poll for a minute while the cable is slow
@pytest.mark.parametrize(
    "way", [Way.SENDING, pytest.param(Way.RECEIVING, marks=pytest.mark.covering)]
)
def test_the_node_with_a_slow_cable_is_named(
    four: Cluster,
    mpis: Mapping[Family, Path],
    programs: Path,  # noqa: F811
    way: Way,
) -> None:
    """A twentieth of what the others can, launch after launch; no other node and no link is named,
    although every third link of theirs is as slow."""
    shape = ["root", "tbf", "rate", "200mbit", "burst", "256kb", "latency", "50ms"]
    if way is Way.SENDING:
        four.said("n3", "tc", "qdisc", "add", "dev", "e0", *shape)
    else:  # the port of the switch, which is named after the node
        inside = ["nsenter", f"--net={switch(four)}"]
        subprocess.run([*inside, "tc", "qdisc", "add", "dev", "n3", *shape], check=True)
    words = (*SHORT, "--samples", "2", "--warmup", "1", "--benchmark", "pairs")  # the cable is slow
    one_each = dict.fromkeys(four.nodes, 1)
    rows = [
        ValueRow("key", "4x1", "job", number, 0, f"native:{r['benchmark']}", r["metric"],
                 r["size"], r["value"], "host")
        for number in range(6)
        for r in start(four, mpis, programs, Family.MPICH, one_each, *words)
        if r["mpigraft"] == "value"
    ]  # fmt: skip
    found = {m.metric: m for m in matrices.pair_matrices(filter(matrices.is_link, rows), {})}
    assert [(one.node, one.way) for one in found["bandwidth"].slow_nodes] == [("n3", way)]
    assert not found["bandwidth"].slow_links
    assert len(found["bandwidth"].links) == 12
