"""Phases of a probe under foreign traffic, with what the ranks' own connections carried."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from mpigraft import attribution
from mpigraft.lanes import Heard, Wire, _with_wire, wire_says
from mpigraft.model import Kind, Peer, Proof, Standing
from mpigraft.phases import Part, Phase
from mpigraft.sockets import Sockets
from mpigraft.wires import held

PAYLOAD = 16 << 20
FLOOD = 1 << 40
WHO = (("lo", "netdev"), ("e0", "netdev"), ("e1", "netdev"), ("mlx5_0:1", "infiniband"))
NETDEVS = WHO[:3]


def own(sent: int, name: str = "lo", **changes: Any) -> Sockets:
    """Two ranks that each sent half of it, all through one interface."""
    half = PAYLOAD // 2
    made = Sockets(sent, sent, 0, half, sent // 2, sent // 2, ((name, sent),) if sent else ())
    return replace(made, **changes)


def a_phase(
    sockets: Sockets | None,
    *,
    peer: Peer = Peer.ON_NODE,
    kind: Kind = Kind.P2P,
    size: int = PAYLOAD,
    noise: float = float(FLOOD),
    wire: Mapping[str, int] | None = None,
) -> Phase:
    """Under traffic that drowns everything, unless `wire` says otherwise."""
    counts = tuple(({"lo": FLOOD, "e0": FLOOD, "e1": FLOOD} | dict(wire or {})).items())
    part = Part("1 MiB", size, counts, noise, weakest=counts, sockets=sockets)
    return Phase(kind, peer, size, counts, ok=True, parts=(part,))


def attributed(phase: Phase, who: tuple[tuple[str, str], ...], claims: Collection[str]) -> Phase:
    made = attribution.attributed(phase, who, claims)
    assert made
    return made


def says(phase: Phase, claim: str, names: tuple[str, ...] = ()) -> Wire | None:
    made = held(attributed(phase, WHO, {claim}), names, 2 if phase.peer is Peer.OFF_NODE else 1)
    return wire_says(made, frozenset({phase.peer}))


def heard_of(phase: Phase, claim: str, names: tuple[str, ...] = ()) -> Heard:
    made = held(attributed(phase, WHO, {claim}), names, 2 if phase.peer is Peer.OFF_NODE else 1)
    silent = Heard(proof=Proof(phase.peer, phase.kind, Standing.PROVEN, "lane", "a line"))
    return _with_wire(silent, {claim}, wire_says(made, frozenset({phase.peer})), made)


def between(sockets: Sockets) -> Phase:
    return a_phase(sockets, peer=Peer.OFF_NODE)
