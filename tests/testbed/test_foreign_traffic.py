"""Probes while other programs' traffic fills the interface: nothing is hidden, nothing is proven
by it. `evaluation/foreign_traffic.py` does the same some hundred times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Evidence, Family, Kind, Level, Machine, Peer, ProofStatus
from mpigraft.discovery import inventory
from testbed.cluster import Cluster
from testbed.foreign import SHARED, TCP, Probes, doctored, pumping

pytestmark = [pytest.mark.mpi, pytest.mark.long]

TCP_CASES = [(family, name) for family, names in TCP.items() for name in names]
SHARED_CASES = [(family, name) for family, names in SHARED.items() for name in names]


@pytest.fixture(scope="module")
def machine(mpis: Mapping[Family, Path]) -> Machine:
    assert len(mpis) == 3
    return inventory.discover_machine()


def errors(evidence: Evidence) -> list[str]:
    return [f.message for f in evidence.findings if f.level is Level.ERROR]


def test_on_one_node_each_transport_is_proven_or_caught(machine: Machine) -> None:
    probes = Probes(machine)
    alone = []
    with pumping():
        for family, name in TCP_CASES + SHARED_CASES:
            evidence, before = probes.judged(family, probes.transport(family, name))
            assert evidence.ok, (family, name, errors(evidence))
            assert evidence.own is not None
            alone.append(before.ok)
        lnx = probes.transport(Family.OPENMPI, "ofi-lnx")
        evidence, _ = probes.judged(Family.OPENMPI, doctored(lnx, FI_LNX_DISABLE_SHM="1"))
    assert not evidence.ok
    (proof,) = (p for p in evidence.proof if (p.kind, p.peer) == (Kind.P2P, Peer.ON_NODE))
    assert proof.standing is ProofStatus.CONTRADICTED
    assert "the ranks' own TCP connections" in errors(evidence)[0]
    assert not all(alone)  # or the traffic was none


@pytest.mark.covering
@pytest.mark.root
@pytest.mark.testbed
def test_between_nodes_each_transport_is_proven(machine: Machine, cluster: Cluster) -> None:
    probes = Probes(machine, cluster)
    alone = []
    with pumping(cluster):
        for family, name in TCP_CASES:
            evidence, before = probes.judged(family, probes.transport(family, name))
            assert evidence.ok, (family, name, errors(evidence))
            assert dict(evidence.own or ())["e0"] >= evidence.payload
            alone.append(before.ok)
    assert not all(alone)


@pytest.mark.root
@pytest.mark.testbed
def test_an_address_of_one_interface_and_a_route_by_another(
    machine: Machine, cluster: Cluster
) -> None:
    """e1 has the addresses that Open MPI is told to use; the kernel sends by e0, and others fill
    both interfaces."""
    for number, (own, peer) in enumerate((("n1", "n2"), ("n2", "n1")), 1):
        for words in (
            "link add e1 type veth peer name nowhere",
            "link set nowhere up",
            f"address add 10.88.0.{number}/32 dev e1",
            "link set e1 up",
            f"route add 10.88.0.{3 - number} via {cluster.address(peer)} src 10.88.0.{number}",
        ):
            cluster.run(own, ["ip", *words.split()], check=True)
    try:
        probes = Probes(machine, cluster)
        tcp = doctored(
            probes.transport(Family.OPENMPI, "ob1-tcp"), OMPI_MCA_btl_tcp_if_include="e1"
        )
        with pumping(cluster):
            evidence, _ = probes.judged(Family.OPENMPI, tcp)
    finally:  # the cluster is the session's: others would use e1 too
        for node in ("n1", "n2"):
            cluster.run(node, ["ip", "link", "delete", "e1"], check=True)
    assert not evidence.ok
    assert evidence.named == ("e1",)
    assert "the payload was to cross e1, and crossed e0" in errors(evidence)[0]
