"""Every row that needs no hardware, proven on two nodes: what is told of peers near and far."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import (
    Allocation,
    Configuration,
    Evidence,
    Family,
    Kind,
    Layout,
    Level,
    Machine,
    MpiInstall,
    Peer,
    ProofStatus,
)
from mpigraft.core.process.command import Completed
from mpigraft.discovery import inventory
from mpigraft.evidence import judge
from mpigraft.knowledge.transports.match import Facts, resolve_transport, transport_offers
from mpigraft.launch import LaunchRequest, LaunchResult, prepare_launch
from mpigraft.native.programs import choose_natives
from testbed.cluster import Cluster

pytestmark = [pytest.mark.mpi, pytest.mark.root, pytest.mark.testbed]

APART = Layout(nodes=2, ranks_per_node=1, bind="none")
MIXED = Layout(nodes=2, ranks_per_node=2, bind="none")  # slow on one CPU for each node
# Rows with lanes of both kinds, and the one whose windows cross TCP within a node at 2x2 alone.
NEAR_TOO = ("ofi-lnx", "shm-ofi-tcp", "ob1-tcp")
WANTED = {  # and what carries messages to the other node
    Family.OPENMPI: {
        "ob1-tcp": "tcp",
        "ofi-tcp": "tcp (e0)",
        "ofi-tcp-rxm": "tcp;ofi_rxm (e0)",
        "ofi-lnx": "lnx (shm+e0)",
        "ucx": "ucx (tcp/e0)",
        "ucx-tcp": "ucx (tcp/e0)",
        "shm-ucx-tcp": "ucx (tcp/e0)",
    },
    Family.MPICH: {
        "ofi-tcp": "tcp",
        "shm-ofi-tcp": "tcp",
        "ucx": "ucx (tcp/e0)",
        "shm-ucx": "ucx (tcp/e0)",
    },
    Family.INTEL: {"ofi-tcp": "tcp", "shm-ofi-tcp": "tcp"},
}
SLOW = {(Family.INTEL, "shm-ofi-tcp")}  # it polls: two ranks on one CPU wait for their turns
CASES = [
    pytest.param(
        family, name, layout, id=f"{family}-{name}-{layout.nodes}x{layout.ranks_per_node}",
        marks=[] if daily and (family, name) not in SLOW else [pytest.mark.long],
    )
    for family, lanes in WANTED.items()
    for name in lanes
    for layout, daily in ((APART, name not in NEAR_TOO), (MIXED, name in NEAR_TOO))
]  # fmt: skip


@pytest.fixture(scope="module")
def machine(mpis: Mapping[Family, Path]) -> Machine:
    assert len(mpis) == 3
    return inventory.discover_machine()


@pytest.fixture(scope="module")
def facts(machine: Machine) -> Facts:
    return replace(Facts.of(machine, nodes=2), interface="e0")


def wheel(machine: Machine, family: Family) -> MpiInstall:
    return next(m for m in machine.mpis if m.family is family and m.source == "wheel" and m.usable)


def probed(cluster: Cluster, machine: Machine, asked: Configuration, layout: Layout) -> Evidence:
    """A probe on two nodes; a second one where chance may have spoilt it."""
    assert asked.mpi is not None
    programs = choose_natives(asked.mpi, machine.cpu.architecture)
    allocation = Allocation(cluster.nodes, "--hosts", agent=str(cluster.remote))
    for attempt in range(2):
        shape = f"{layout.ranks_per_node}-{attempt}"
        folder = cluster.shared / f"{asked.id.replace('/', '-')}-{shape}"
        witness = folder / "witness"
        witness.mkdir(parents=True)
        request = LaunchRequest(
            asked, layout, judge.probe_program(programs), natives=programs, witness=witness,
            limit_s=90.0, cwd=folder, probe=True, cores=1, allocation=allocation,
            environ={**os.environ, **cluster.environ},
        )  # fmt: skip
        launch = prepare_launch(request)
        for path, text in launch.files:
            path.write_text(text)
        words = launch.argv[launch.argv.index("--") + 1 :]  # a guard knows its parent's number
        done = cluster.run("n1", words, env=dict(launch.env), cwd=folder, timeout=120)
        ended = Completed(
            tuple(words), done.returncode, done.stdout.encode(), done.stderr.encode(), 1.0
        )
        evidence = judge.judge_evidence(
            asked, layout, LaunchResult(ended, judge.read_witness(witness))
        )
        if not judge.worth_repeating(evidence):
            break
    return evidence


@pytest.mark.parametrize(("family", "name", "layout"), CASES)
def test_messages_between_nodes_are_proven(
    cluster: Cluster, machine: Machine, facts: Facts, family: Family, name: str, layout: Layout
) -> None:
    mpi = wheel(machine, family)
    asked = Configuration("key", f"{mpi.id}/{name}", mpi, resolve_transport(name, mpi, facts))
    evidence = probed(cluster, machine, asked, layout)
    errors = [f for f in evidence.findings if f.level is Level.ERROR]
    assert evidence.ok, errors
    proof = {(p.kind, p.peer): p for p in evidence.proof}
    assert proof[Kind.P2P, Peer.OFF_NODE].lane == WANTED[family][name]
    for kind in Kind:
        for peer in (Peer.ON_NODE, Peer.OFF_NODE) if layout is MIXED else (Peer.OFF_NODE,):
            assert proof[kind, peer].standing is ProofStatus.PROVEN, (kind, peer, proof[kind, peer])


def test_no_row_that_can_run_is_forgotten(machine: Machine, facts: Facts) -> None:
    for family, lanes in WANTED.items():
        mpi = wheel(machine, family)
        able = {
            offer.name
            for offer in transport_offers(mpi, facts)
            if offer.usable and Peer.OFF_NODE in resolve_transport(offer.name, mpi, facts).peers
        }
        assert able == set(lanes)
