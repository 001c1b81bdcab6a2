"""mpigraft-probe: known traffic between known peers, and what the wires saw of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Family
from tests.native.native_world import World, records

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH, Family.INTEL])
def test_the_probe_has_every_kind(world: World, family: Family) -> None:
    done = world.probe(family)
    assert done.code == 0, done.text()
    phases = [r for r in records(done) if r["mpigraft"] == "phase"]
    assert [p["kind"] for p in phases] == ["p2p", "one-sided", "collective"]
    assert all(p["ok"] and p["peer"] == "on-node" for p in phases)
    assert phases[0]["bytes"] == 2 * messages(phases[0])
    assert phases[2]["bytes"] == collective(phases[2], 2)
    for phase in phases:
        assert sum(part["bytes"] for part in phase["parts"]) == phase["bytes"]
        assert sum(part["wire"]["lo"] for part in phase["parts"]) == phase["wire"]["lo"]
    assert all("lo" in p["wire"] for p in phases)
    for phase in phases:
        assert all(part["seconds"] > 0 for part in phase["parts"])
        assert all(part["least"] == part["wire"] for part in phase["parts"])  # of one host
    (idle,) = (r for r in records(done) if r["mpigraft"] == "idle")
    assert idle["seconds"] >= 0.1
    assert idle["wire"].keys() == phases[0]["wire"].keys() == idle["counters"].keys()
    assert idle["counters"]["lo"] == "netdev"
    assert records(done)[-1] == {"mpigraft": "end", "values": 0, "phases": 3}


def test_the_probe_sees_the_bytes_on_the_wire(world: World) -> None:
    """Sockets through the loopback: at least the payload was sent there."""
    env = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}
    done = world.probe(Family.OPENMPI, env=env)
    assert done.code == 0, done.text()
    p2p = next(r for r in records(done) if r.get("kind") == "p2p")
    assert p2p["wire"]["lo"] >= p2p["bytes"]


def test_the_ranks_own_connections_carry_the_payload(world: World) -> None:
    """Each part to the byte, headers aside, and the daemon's connection is none of a rank."""
    env = {"OMPI_MCA_btl": "self,tcp", "OMPI_MCA_btl_tcp_if_include": "lo"}
    done = world.probe(Family.OPENMPI, env=env, ranks=3)
    assert done.code == 0, done.text()
    phases = {p["kind"]: p for p in records(done) if p["mpigraft"] == "phase"}
    for part in (*phases["p2p"]["parts"], *phases["collective"]["parts"]):
        own = part["sockets"]
        assert own["gap"] == ""
        sent, received = own["on-node"]
        assert sent >= part["bytes"]
        assert abs(sent - received) < 1000
        assert own["through"] == {"lo": sent}
        assert own["off-node"] == own["self"] == [0, 0]
        assert sum(own["no-rank"]) < 1000
        assert own["lacking"] == {}
    for part in phases["p2p"]["parts"]:
        own = part["sockets"]
        assert own["each"] * 3 == part["bytes"]
        assert own["each"] <= own["least"] <= own["most"] < 1.2 * own["each"] + 50_000


@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH, Family.INTEL])
def test_shared_memory_leaves_the_ranks_own_connections_alone(world: World, family: Family) -> None:
    done = world.probe(family)
    assert done.code == 0, done.text()
    for phase in (r for r in records(done) if r["mpigraft"] == "phase"):
        for part in phase["parts"]:
            own = part["sockets"]
            assert own["gap"] == ""
            assert sum(own["on-node"]) < 1000
            assert own["each"] == (part["bytes"] / 2 if phase["kind"] != "collective" else 0)


def test_ranks_that_share_a_network_and_no_host_are_far(world: World, corrupt: Path) -> None:
    """Two hosts of two ranks: neighbours and strangers by TCP, each class by itself."""
    tcp = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
    shim = {"LD_PRELOAD": str(corrupt), "NODES": "2", "MPIR_CVAR_NOLOCAL": "1"}
    done = world.probe(Family.MPICH, ranks=4, env={**tcp, **shim})
    assert done.code == 0, done.text()
    for phase in (r for r in records(done) if r.get("kind") == "p2p"):
        other = "off-node" if phase["peer"] == "on-node" else "on-node"
        for part in phase["parts"]:
            own = part["sockets"]
            assert own[phase["peer"]][0] >= part["bytes"]
            assert own[other][0] < 20_000  # ranks that wait for each other
            assert own["through"] == {"lo": own[phase["peer"]][0]}


def test_a_phase_that_fails_does_not_end_the_probe(world: World, corrupt: Path) -> None:
    env = {"LD_PRELOAD": str(corrupt), "CORRUPT": "Win_allocate"}
    done = world.probe(Family.MPICH, env=env)
    phases = [r for r in records(done) if r["mpigraft"] == "phase"]
    assert [p["ok"] for p in phases] == [True, False, True]
    assert "error" in phases[1]["error"].lower()


def test_intel_adds_up_short_messages_in_shared_memory_unless_told_not_to(world: World) -> None:
    """Whatever the fabric: a proof that only adds up all bytes would not notice."""
    tcp = {"I_MPI_FABRICS": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
    crossed = []
    for how in ("shm", "pt2pt"):
        done = world.probe(Family.INTEL, env={**tcp, "I_MPI_COLL_INTRANODE": how})
        assert done.code == 0, done.text()
        phase = next(r for r in records(done) if r.get("kind") == "collective")
        part = next(p for p in phase["parts"] if p["what"] == "allreduce 8 B")
        crossed.append(part["wire"]["lo"] >= part["bytes"])
    assert crossed == [False, True]


def messages(phase: dict[str, Any]) -> int:
    """Bytes that a rank with a partner sends in a phase; the probe says how often."""
    each = {"8 B": 8, "64 KiB": 64 << 10, "1 MiB": 1 << 20}
    assert [part["what"] for part in phase["parts"]] == [*each]
    assert all(1 <= part["times"] <= 1000 for part in phase["parts"])
    return sum(each[part["what"]] * int(part["times"]) for part in phase["parts"])


def collective(phase: dict[str, Any], ranks: int) -> int:
    """Bytes that all ranks together must send in the collective phase of the probe."""
    times = {part["what"]: part["times"] for part in phase["parts"]}
    alltoall = 8 * times["alltoall 8 B"] + (64 << 10) * times["alltoall 64 KiB"]
    allreduce = 8 * times["allreduce 8 B"] + (64 << 10) * times["allreduce 64 KiB"]
    bcast = (ranks - 1) * 8 * times["bcast 8 B"]
    return int(ranks * ((ranks - 1) * alltoall + allreduce) + bcast)


@pytest.mark.parametrize(
    ("ranks", "nodes", "near", "far"),
    [(4, 2, 4, 4), (2, 2, 0, 2), (3, 2, 2, 2), (3, 3, 0, 3), (3, 1, 3, 0)],
)
@pytest.mark.parametrize("local", ["0", "1"])
def test_the_probe_tells_near_from_far(
    world: World, corrupt: Path, ranks: int, nodes: int, near: int, far: int, local: str
) -> None:
    """`near` and `far` are how many ranks have a partner on their own node, and on another;
    whether MPI uses the memory of a node changes nothing."""
    env = {"LD_PRELOAD": str(corrupt), "NODES": str(nodes), "MPIR_CVAR_NOLOCAL": local}
    done = world.probe(Family.MPICH, ranks=ranks, env=env)
    assert done.code == 0, done.text()
    phases = {(p["kind"], p["peer"]): p for p in records(done) if p["mpigraft"] == "phase"}
    wanted = {("collective", "off-node" if nodes > 1 else "on-node")}
    for kind in ("p2p", "one-sided"):
        wanted |= {(kind, "on-node")} if near else set()
        wanted |= {(kind, "off-node")} if far else set()
    assert phases.keys() == wanted
    for (kind, peer), phase in phases.items():
        partners = near if peer == "on-node" else far
        alone = collective(phase, ranks) if kind == "collective" else partners * messages(phase)
        assert phase["bytes"] == alone


def test_bytes_of_one_network_are_counted_once(world: World) -> None:
    """Two ranks that MPI takes for two nodes send through one loopback."""
    tcp = {"MPIR_CVAR_CH4_NETMOD": "ofi", "FI_PROVIDER": "tcp", "FI_TCP_IFACE": "lo"}
    done = world.probe(Family.MPICH, env={**tcp, "MPIR_CVAR_NOLOCAL": "1"})
    assert done.code == 0, done.text()
    p2p = next(r for r in records(done) if r.get("kind") == "p2p")
    long = next(part for part in p2p["parts"] if part["what"] == "1 MiB")
    assert long["bytes"] <= long["wire"]["lo"] < 1.5 * long["bytes"]
