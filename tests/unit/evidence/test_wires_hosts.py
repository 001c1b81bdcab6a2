"""One node among many that sends by another way than the others: too few bytes to change a sum."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mpigraft.core.model import Kind, Peer, Proof, ProofStatus
from mpigraft.evidence.traffic.counters import due_counters
from mpigraft.evidence.traffic.lanes import TrafficFinding, Wire, _with_wire, wire_state
from mpigraft.evidence.traffic.probe import ProbePhase, Transfer, phases
from tests.builders.messages import shows

LONG = 16 << 20
FAR = frozenset({Peer.OFF_NODE})
HOSTS = 32


def of_hosts(
    sent: int,
    least: int | None,
    *,
    peer: Peer = Peer.OFF_NODE,
    kind: Kind = Kind.P2P,
    noise: float = 0.0,
    aside: int = 0,
) -> ProbePhase:
    """Each of HOSTS hosts had to send LONG; `least` is what one of them sent through e0."""
    counts = (("lo", 0), ("e0", sent), ("e1", aside))
    weakest = () if least is None else (("e0", least), ("e1", 0))
    whole = HOSTS * LONG
    part = Transfer("1 MiB", whole, counts, noise, weakest=weakest)
    return ProbePhase(kind, peer, whole, counts, ok=True, parts=(part,))


SHARES = HOSTS * LONG + LONG  # headers weigh as much as a host's share


@pytest.mark.parametrize(
    ("least", "says"),
    [
        (LONG, Wire.CARRIED),
        (LONG // 2, Wire.CARRIED),
        (LONG // 2 - 1, Wire.SPLIT),
        (0, Wire.SPLIT),
        (None, Wire.CARRIED),
    ],
)
def test_a_host_that_sends_another_way_is_noticed_among_many(least: int | None, says: Wire) -> None:
    told = of_hosts(SHARES, least)
    assert wire_state(due_counters(told, ("e0",), HOSTS), FAR) is says
    assert wire_state(due_counters(told, ("e0",)), FAR) is Wire.CARRIED  # one host is all there is
    both = due_counters(told, ("e0", "e1"), HOSTS)
    assert wire_state(both, FAR) is Wire.CARRIED  # each may have taken either


def test_of_short_parts_and_of_collectives_hosts_have_no_shares() -> None:
    told = of_hosts(SHARES, 0, kind=Kind.COLLECTIVE)
    assert wire_state(due_counters(told, ("e0",), HOSTS), FAR) is Wire.CARRIED
    short = replace(
        told, kind=Kind.P2P, parts=(Transfer("8 B", 8000, (("e0", 9000),), weakest=(("e0", 0),)),)
    )
    assert wire_state(due_counters(short, ("e0",), HOSTS), FAR) is Wire.CARRIED


def heard_of(phase: ProbePhase, claim: str) -> TrafficFinding:
    silent = TrafficFinding(
        proof=Proof(phase.peer, phase.kind, ProofStatus.PROVEN, "tcp", "a line")
    )
    made = due_counters(phase, ("e0",), HOSTS)
    return _with_wire(silent, {claim}, wire_state(made, frozenset({phase.peer})), made)


def test_a_lane_that_one_host_of_many_did_not_take_is_not_proven() -> None:
    heard = heard_of(of_hosts(SHARES, 0, aside=LONG), "bytes")
    assert heard.by_wire
    assert heard.proof.standing is ProofStatus.CONTRADICTED
    assert heard.proof.lane == "tcp in part"
    assert shows(heard.reason, "a node", "hardly any", "e0", "1 MiB")
    assert heard_of(of_hosts(SHARES, LONG), "bytes").proof.standing is ProofStatus.PROVEN


@pytest.mark.parametrize(
    ("sent", "noise", "standing"),
    [
        (LONG // 2 - 1, 0.0, ProofStatus.PROVEN),  # less than any host's share
        (LONG // 2, 0.0, ProofStatus.CONTRADICTED),
        (4 * LONG, 0.0, ProofStatus.CONTRADICTED),
        (LONG, LONG / 20, ProofStatus.CONTRADICTED),
        (LONG, LONG / 19, ProofStatus.PROVEN),  # others may have sent that
    ],
)
def test_memory_that_one_node_of_many_does_not_share_is_noticed(
    sent: int, noise: float, standing: ProofStatus
) -> None:
    heard = heard_of(of_hosts(sent, 0, peer=Peer.ON_NODE, noise=noise), "none")
    assert heard.proof.standing is standing
    if standing is ProofStatus.CONTRADICTED:
        assert heard.proof.lane == "tcp in part"


def test_what_the_probe_says_of_the_host_that_sent_least_is_read() -> None:
    part = {"what": "1 MiB", "bytes": 9, "wire": {"e0": 9}, "least": {"e0": 4, "x": -1, "y": "1"}}
    line = {
        "mpigraft": "phase",
        "kind": "p2p",
        "peer": "off-node",
        "bytes": 9,
        "wire": {},
        "ok": True,
    }
    text = json.dumps({**line, "parts": [part, {**part, "least": None}]}, separators=(",", ":"))
    (phase,) = phases(text)
    assert [p.weakest for p in phase.parts] == [(("e0", 4),), ()]


def a_part(
    share: float, least: float | None = None, *, hosts: int = 4, bytes_: int = 4 * LONG
) -> Transfer:
    """`share` of the payload crossed e0, and of one host `least` of its own share."""
    weakest = () if least is None else (("e0", int(least * bytes_ / hosts)),)
    return Transfer("1 MiB", bytes_, (("e0", int(share * bytes_)),), weakest=weakest, hosts=hosts)


@pytest.mark.parametrize(
    ("part", "left_out"),
    [
        (a_part(0.75, 0), True),
        (a_part(0.5, 0), True),
        (a_part(0.49, 0), False),  # then few did, and that is said
        (a_part(1.0, 0.49), True),
        (a_part(1.0, 0.5), False),
        (a_part(1.0), False),  # nobody told
        (a_part(1.0, 0, hosts=2), True),
        (a_part(1.0, 0, hosts=1), False),
        (a_part(1.0, 0, bytes_=4 << 18), True),  # each has to send 256 KiB
        (a_part(1.0, 0, bytes_=(4 << 18) - 4), False),  # less, which may drown
    ],
)
def test_who_is_left_out(part: Transfer, left_out: bool) -> None:
    assert part.left_out is left_out
    assert part.carried is (part.sent >= part.bytes / 2 and not left_out)


def test_one_part_that_a_host_sent_another_way_is_enough() -> None:
    whole, lacking = a_part(1.01, 1), a_part(1.01, 0)
    made = ProbePhase(
        Kind.P2P, Peer.OFF_NODE, 8 * LONG, whole.wire, ok=True, parts=(whole, lacking)
    )
    silent = TrafficFinding(proof=Proof(made.peer, made.kind, ProofStatus.PROVEN, "tcp", "a line"))
    heard = _with_wire(silent, {"bytes"}, wire_state(made, FAR), made)
    assert shows(heard.reason, "a node", "hardly any", "e0", "1 MiB")
    near = replace(made, peer=Peer.ON_NODE)
    said = wire_state(near, frozenset({Peer.ON_NODE}))
    assert said is Wire.SPLIT
    assert "names shared memory" in _with_wire(silent, {"none"}, said, near).reason


def test_a_long_part_of_one_host_beside_others_that_stayed_is_split() -> None:
    quiet = replace(a_part(0.0), what="64 KiB")
    made = ProbePhase(Kind.P2P, Peer.ON_NODE, 8 * LONG, (), ok=True, parts=(quiet, a_part(0.2)))
    assert wire_state(made, frozenset({Peer.ON_NODE})) is Wire.SPLIT
    less = replace(made, parts=(quiet, a_part(0.12)))
    assert wire_state(less, frozenset({Peer.ON_NODE})) is Wire.UNCLEAR
