"""The logic of a proof on its own: phases, the wire, signs and their names."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Kind, Peer, ProofStatus, Sign
from mpigraft.evidence.traffic.lanes import (
    TrafficFinding,
    Wire,
    differing_parts,
    exercised,
    expected,
    judge_traffic,
    lines,
    phase_of,
    wire_state,
    with_peer_class,
)
from mpigraft.evidence.traffic.probe import ProbePhase, Transfer, phases
from tests.builders.messages import shows
from tests.builders.probes import records

# ------------------------------------------------------------------ the wire


def a_phase(sent: int | None, kind: Kind = Kind.P2P, peer: Peer = Peer.ON_NODE) -> ProbePhase:
    return ProbePhase(kind, peer, 100_000, () if sent is None else (("lo", sent),), ok=True)


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (None, Wire.UNREAD),
        (0, Wire.QUIET),
        (10_000, Wire.QUIET),
        (10_001, Wire.UNCLEAR),
        (49_999, Wire.UNCLEAR),
        (50_000, Wire.CARRIED),
        (200_000, Wire.CARRIED),
    ],
)
def test_the_state_of_the_wire_by_its_bytes(sent: int | None, says: Wire) -> None:
    assert wire_state(a_phase(sent), frozenset({Peer.ON_NODE})) is says


def test_a_collective_over_nodes_has_bytes_of_both_classes_in_it() -> None:
    both = frozenset({Peer.ON_NODE, Peer.OFF_NODE})
    assert wire_state(a_phase(50_000, Kind.COLLECTIVE), both) is None
    assert wire_state(a_phase(50_000), both) is Wire.CARRIED
    assert wire_state(None, both) is None
    assert wire_state(replace(a_phase(0), bytes=0), both) is Wire.UNREAD
    assert wire_state(replace(a_phase(1), bytes=1), both) is Wire.CARRIED


SHORT, LONG = 8000, 1 << 20  # bytes of payload


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({SHORT: SHORT, LONG: LONG}, Wire.CARRIED),
        ({SHORT: 0, LONG: 0}, Wire.QUIET),
        ({SHORT: 2048, LONG: 2048}, Wire.QUIET),  # what is always about
        ({SHORT: 300, LONG: LONG}, Wire.SPLIT),  # Intel MPI adds up 8 bytes in shared memory
        ({SHORT: SHORT, LONG: 0}, Wire.UNCLEAR),  # so little may be another program's
        ({SHORT: 2049, LONG: LONG}, Wire.SPLIT),
        ({SHORT: 2049, LONG: 0}, Wire.UNCLEAR),
        ({SHORT: 0, 262_144: 262_144}, Wire.SPLIT),  # from here on it is no other program's
        ({SHORT: 0, 262_143: 262_143}, Wire.UNCLEAR),
    ],
)
def test_each_part_of_a_phase_is_compared_with_its_own_payload(
    parts: dict[int, int], says: Wire
) -> None:
    told = tuple(Transfer(f"{n} B", n, (("lo", sent),)) for n, sent in parts.items())
    whole = replace(a_phase(sum(parts.values())), bytes=sum(parts), parts=told)
    assert wire_state(whole, frozenset({Peer.ON_NODE})) is says
    assert bool(differing_parts(whole)) is (says in (Wire.SPLIT, Wire.UNCLEAR))


@pytest.mark.parametrize(
    ("sent", "noise", "says"),
    [
        (SHORT, 0, Wire.CARRIED),
        (SHORT, 400, Wire.CARRIED),  # ten times that leave half of the payload
        (SHORT, 401, Wire.UNCLEAR),
        (80_000, 7_600, Wire.CARRIED),
        (80_000, 7_601, Wire.UNCLEAR),
        (80_000, math.inf, Wire.UNCLEAR),
        (2048, math.inf, Wire.QUIET),  # whatever others send, this did not cross
        (3000, math.inf, Wire.UNCLEAR),
    ],
)
def test_what_others_may_have_sent_is_no_payload(sent: int, noise: float, says: Wire) -> None:
    part = Transfer("8 B", SHORT, (("lo", sent),), noise)
    phase = replace(a_phase(sent), bytes=SHORT, parts=(part,))
    assert wire_state(phase, frozenset({Peer.ON_NODE})) is says
    assert part.drowned is (says is Wire.UNCLEAR and sent > 3000)


def loud(size: int, noise: float = math.inf, sent: int | None = None) -> Transfer:
    return Transfer(f"{size} B", size, (("lo", size if sent is None else sent),), noise)


ACROSS, SHY = loud(LONG, 0), loud(LONG, 0, 0)


@pytest.mark.parametrize(
    ("claim", "parts", "due"),
    [
        ("bytes", (loud(SHORT), ACROSS), ProofStatus.NO_EVIDENCE),
        ("bytes", (loud(SHORT), loud(LONG)), ProofStatus.NO_EVIDENCE),
        ("bytes", (loud(SHORT), SHY), ProofStatus.CONTRADICTED),  # no noise hides that
        ("bytes", (ACROSS,), ProofStatus.PROVEN),
        ("none", (loud(SHORT), SHY), ProofStatus.PROVEN),
        ("none", (loud((1 << 18) - 1), SHY), ProofStatus.PROVEN),
        ("none", (loud(1 << 18), SHY), ProofStatus.NO_EVIDENCE),
        ("none", (loud(LONG),), ProofStatus.NO_EVIDENCE),
        ("none", (loud(SHORT), ACROSS), ProofStatus.CONTRADICTED),
    ],
)
def test_a_part_that_others_drown_is_no_evidence(
    claim: str, parts: tuple[Transfer, ...], due: ProofStatus
) -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane: (?P<lane>x)", "x", proves=True, wire=claim)
    phase = replace(a_phase(1), bytes=sum(p.bytes for p in parts), parts=parts)
    wire = wire_state(phase, frozenset({Peer.ON_NODE}))
    heard = judge_traffic(
        (Kind.P2P, Peer.ON_NODE), [sign], lines("lane: x", ""), phase, ranks=2, wire=wire
    )
    assert heard.proof.standing is due
    assert ("other programs' traffic" in heard.reason) is (due is ProofStatus.NO_EVIDENCE)
    if due is ProofStatus.NO_EVIDENCE:
        assert not heard.by_wire
        lost = next(p for p in parts if p.drowned)
        assert shows(heard.reason, f"{lost.what} {lost.bytes} of {lost.bytes} B", "inf B")


def test_a_network_that_only_long_messages_take_is_not_proven() -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane: (?P<lane>tcp)", "tcp", proves=True, wire="bytes")
    told = (Transfer("8 B", SHORT, (("lo", 304),)), Transfer("1 MiB", LONG, (("lo", LONG),)))
    phase = replace(a_phase(LONG), bytes=SHORT + LONG, parts=told)
    wire = wire_state(phase, frozenset({Peer.ON_NODE}))
    heard = judge_traffic(
        (Kind.P2P, Peer.ON_NODE), [sign], lines("lane: tcp", ""), phase, ranks=2, wire=wire
    )
    assert heard.proof.standing is ProofStatus.CONTRADICTED
    assert heard.proof.lane == "tcp in part"
    assert shows(heard.reason, "8 B 304 of 8000 B")


WIRE_CASES = [
    (claim, wire, standing)  # no counters: None, and they have no say
    for claim, standing, wires in (
        ("bytes", ProofStatus.PROVEN, (Wire.CARRIED, None)),
        ("bytes", ProofStatus.CONTRADICTED, (Wire.QUIET, Wire.SPLIT, Wire.UNCLEAR)),
        ("bytes", ProofStatus.NO_EVIDENCE, (Wire.UNREAD,)),
        ("none", ProofStatus.PROVEN, (Wire.QUIET, Wire.UNCLEAR, None)),
        ("none", ProofStatus.CONTRADICTED, (Wire.CARRIED, Wire.SPLIT)),
        ("none", ProofStatus.NO_EVIDENCE, (Wire.UNREAD,)),
        ("", ProofStatus.PROVEN, (Wire.CARRIED, Wire.UNREAD)),
    )
    for wire in wires
]


@pytest.mark.parametrize(("claim", "wire", "due"), WIRE_CASES)
def test_the_wire_against_the_signs(claim: str, wire: Wire | None, due: ProofStatus) -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane: (?P<lane>sm)", "sm", proves=True, wire=claim)
    heard = judge_traffic(
        (Kind.P2P, Peer.ON_NODE), [sign], lines("lane: sm", ""), a_phase(0), ranks=2, wire=wire
    )
    assert heard.proof.standing is due
    assert heard.by_wire is (due is ProofStatus.CONTRADICTED)
    assert bool(heard.reason) is (due is not ProofStatus.PROVEN)
    if due is ProofStatus.PROVEN:
        assert heard.wire is (wire or Wire.UNREAD)


@pytest.mark.parametrize(
    ("claim", "wire", "lane", "unrequested"),
    [
        ("bytes", Wire.CARRIED, "rdma", False),
        ("bytes", Wire.SPLIT, "rdma over a network", True),
        ("bytes", Wire.QUIET, "rdma", True),
        ("none", Wire.CARRIED, "rdma over a network", True),
        ("none", Wire.QUIET, "rdma", True),
        ("none", Wire.UNREAD, "rdma", True),
        ("none", Wire.UNCLEAR, "rdma", True),
    ],
)
def test_the_wire_names_an_unrequested_lane_and_does_not_refuse_it(
    claim: str, wire: Wire, lane: str, *, unrequested: bool
) -> None:
    put, near = Kind.ONE_SIDED, Peer.ON_NODE
    sign = Sign(put, near, "osc/(?P<lane>rdma)", "rdma", True, wire=claim, unrequested=True)
    output, phase = lines("osc/rdma", ""), a_phase(50_000, put)
    finding = judge_traffic((put, near), [sign], output, phase, ranks=2, wire=wire)
    assert (finding.proof.standing, finding.proof.lane) == (ProofStatus.PROVEN, lane)
    assert finding.unrequested is unrequested


def test_of_several_signs_the_one_that_names_the_lane_is_quoted() -> None:
    def sign(pattern: str, lane: str, *, unrequested: bool = False) -> Sign:
        return Sign(Kind.P2P, Peer.ON_NODE, pattern, lane, proves=True, unrequested=unrequested)

    def told(*signs: Sign) -> TrafficFinding:
        output, phase = lines("first\nlane: sm\nlane: sm again", ""), a_phase(0)
        return judge_traffic((Kind.P2P, Peer.ON_NODE), signs, output, phase, ranks=2, wire=None)

    heard = told(sign("first", ""), sign("lane:", "sm", unrequested=True))
    assert (heard.proof.standing, heard.proof.lane) == (ProofStatus.PROVEN, "sm")
    assert heard.proof.sign == "lane: sm"
    assert heard.unrequested  # if only one of them is
    assert not told(sign("lane:", "sm")).unrequested


# ------------------------------------------------------------------ lines and phases

GOOD = {
    "mpigraft": "phase",
    "kind": "p2p",
    "peer": "on-node",
    "bytes": 7,
    "wire": {"lo": 5},
    "ok": True,
}


def written(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def test_a_phase_is_found_behind_other_words() -> None:
    found = phases(f"libfabric: warn{written(GOOD)}tail\n")
    assert found == (ProbePhase(Kind.P2P, Peer.ON_NODE, 7, (("lo", 5),), ok=True),)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "p3p"},
        {"peer": "near"},
        {"bytes": "7"},
        {"bytes": -1},
        {"bytes": True},
        {"ok": 1},
        {"ok": None},
        {"parts": [{"what": "8 B", "bytes": "7"}]},
        {"parts": [7]},
        {"parts": [{"what": "8 B", "bytes": 7, "wire": {}}, 7]},
        {"parts": 7},
        {"parts": None},
        {"kind": []},
        {"peer": {}},
    ],
)
def test_a_malformed_phase_is_none(change: dict[str, object]) -> None:
    assert phases(written({**GOOD, **change})) == ()


def test_a_phase_is_read_with_its_parts() -> None:
    parts = [{"what": "8 B", "bytes": 3, "wire": {"lo": 4}}, {"bytes": 4, "wire": {}}]
    found = phases(written({**GOOD, "parts": parts}))
    assert found[0].parts == (Transfer("8 B", 3, (("lo", 4),)), Transfer("", 4, ()))
    assert phases(written({**GOOD, "bytes": 0}))[0].bytes == 0


IDLE = {"mpigraft": "idle", "seconds": 0.5, "wire": {"lo": 3, "eth0": 1}}


def noise(seconds: object, *idle: object) -> list[float]:
    part = {"what": "8 B", "bytes": 7, "wire": {}, "seconds": seconds}
    told = phases("".join(map(written, [{**GOOD, "parts": [part]}, *idle])))
    return [part.noise for phase in told for part in phase.parts]


def test_noise_is_what_is_always_about_in_the_time_of_a_part() -> None:
    assert noise(2, IDLE) == [16]
    assert noise(0.25, IDLE) == [2]
    assert noise(0, IDLE) == [0]
    assert noise(2, IDLE, {**IDLE, "seconds": 4}) == [16]  # of several, the busiest
    assert noise(2, {**IDLE, "wire": {}}) == [0]
    assert phases(written({**GOOD, "parts": [{"bytes": 7}]}) + written(IDLE))[0].parts[0].noise == 0


@pytest.mark.parametrize(
    "idle",
    [
        {"mpigraft": "other"},
        {**IDLE, "seconds": 0},
        {**IDLE, "seconds": -1},
        {**IDLE, "seconds": True},
        {**IDLE, "seconds": math.inf},
        {**IDLE, "seconds": math.nan},
        {**IDLE, "wire": 7},
        {**IDLE, "wire": None},
        {"mpigraft": "idle", "seconds": 1},
    ],
)
def test_a_probe_that_timed_its_parts_and_did_not_listen_may_hear_anything(idle: object) -> None:
    assert noise(2, idle) == [math.inf]
    assert noise(2, idle, IDLE) == [16]


@pytest.mark.parametrize("seconds", [-1, "1", None, True, math.nan, math.inf])
def test_a_time_that_cannot_be_is_no_phase(seconds: object) -> None:
    assert noise(seconds, IDLE) == []


def test_a_phase_without_end_is_none() -> None:
    assert phases('{"mpigraft":"phase","parts":' + "[" * 100_000) == ()


def test_counts_that_are_no_counts_are_left_out() -> None:
    found = phases(written({**GOOD, "wire": {"lo": -1, "e0": "x", "e1": 3, "e2": True}}))
    assert found[0].wire == (("e1", 3),)
    assert phases(written({**GOOD, "wire": [1]}))[0].wire == ()


@given(st.text(), st.text(), st.integers(0, 60))
def test_phases_never_fail_and_never_come_from_a_cut_line(
    before: str, after: str, cut: int
) -> None:
    whole = written(GOOD)
    assert phases(before + whole[: len(whole) - 1 - cut] + "\n" + after.replace("}", "")) == ()
    assert len(phases(before.replace("{", "") + whole + after.replace("{", ""))) == 1


def test_phases_are_placed_where_the_witness_saw_the_ranks() -> None:
    """With MPIR_CVAR_NOLOCAL MPICH takes the ranks of one host for strangers."""
    told = (a_phase(5, peer=Peer.OFF_NODE),)
    assert with_peer_class(told, frozenset({Peer.ON_NODE}))[0].peer is Peer.ON_NODE
    assert with_peer_class(told, frozenset({Peer.ON_NODE, Peer.OFF_NODE})) == told


def test_which_phase_speaks_of_which_peers() -> None:
    near, far = a_phase(1), a_phase(2, peer=Peer.OFF_NODE)
    last = a_phase(3, Kind.COLLECTIVE, Peer.OFF_NODE)
    told = (near, far, last)
    assert phase_of(told, Kind.P2P, Peer.ON_NODE) is near
    assert phase_of(told, Kind.P2P, Peer.OFF_NODE) is far
    assert phase_of(told, Kind.COLLECTIVE, Peer.ON_NODE) is last
    assert phase_of((far,), Kind.P2P, Peer.ON_NODE) is None
    assert phase_of(told, Kind.ONE_SIDED, Peer.ON_NODE) is None


def test_peers_that_were_there() -> None:
    assert exercised(()) == frozenset()
    assert exercised(records(1)) == frozenset()
    assert exercised(records(2)) == {Peer.ON_NODE}
    assert exercised(records(2, hosts=2)) == {Peer.OFF_NODE}
    both = exercised(records(4, hosts=2))
    assert both == {Peer.ON_NODE, Peer.OFF_NODE}
    assert expected(frozenset()).total() == 0
    assert expected(both).total() == 5
    assert expected(both)[Kind.COLLECTIVE, Peer.OFF_NODE] == 1
    assert expected(frozenset({Peer.ON_NODE}))[Kind.COLLECTIVE, Peer.ON_NODE] == 1
