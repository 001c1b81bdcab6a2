"""The logic of a proof on its own: phases, the wire, signs and their names."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.lanes import (
    Heard,
    Wire,
    apart,
    exercised,
    expected,
    hear,
    lines,
    phase_of,
    placed,
    wire_says,
)
from mpigraft.model import Kind, Peer, Sign, Standing
from mpigraft.phases import Part, Phase, phases
from tests.unit.probes import records

# ------------------------------------------------------------------ the wire


def a_phase(sent: int | None, kind: Kind = Kind.P2P, peer: Peer = Peer.ON_NODE) -> Phase:
    return Phase(kind, peer, 100_000, () if sent is None else (("lo", sent),), ok=True)


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
def test_what_the_wire_says(sent: int | None, says: Wire) -> None:
    assert wire_says(a_phase(sent), frozenset({Peer.ON_NODE})) is says


def test_a_collective_over_nodes_has_bytes_of_both_classes_in_it() -> None:
    both = frozenset({Peer.ON_NODE, Peer.OFF_NODE})
    assert wire_says(a_phase(50_000, Kind.COLLECTIVE), both) is None
    assert wire_says(a_phase(50_000), both) is Wire.CARRIED
    assert wire_says(None, both) is None
    assert wire_says(replace(a_phase(0), bytes=0), both) is Wire.UNREAD
    assert wire_says(replace(a_phase(1), bytes=1), both) is Wire.CARRIED


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
def test_each_part_of_a_phase_is_held_against_its_own_payload(
    parts: dict[int, int], says: Wire
) -> None:
    told = tuple(Part(f"{n} B", n, (("lo", sent),)) for n, sent in parts.items())
    whole = replace(a_phase(sum(parts.values())), bytes=sum(parts), parts=told)
    assert wire_says(whole, frozenset({Peer.ON_NODE})) is says
    assert bool(apart(whole)) is (says in (Wire.SPLIT, Wire.UNCLEAR))


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
    part = Part("8 B", SHORT, (("lo", sent),), noise)
    phase = replace(a_phase(sent), bytes=SHORT, parts=(part,))
    assert wire_says(phase, frozenset({Peer.ON_NODE})) is says
    assert part.drowned is (says is Wire.UNCLEAR and sent > 3000)


def loud(size: int, noise: float = math.inf, sent: int | None = None) -> Part:
    return Part(f"{size} B", size, (("lo", size if sent is None else sent),), noise)


ACROSS, SHY = loud(LONG, 0), loud(LONG, 0, 0)


@pytest.mark.parametrize(
    ("claim", "parts", "due"),
    [
        ("bytes", (loud(SHORT), ACROSS), Standing.NO_EVIDENCE),
        ("bytes", (loud(SHORT), loud(LONG)), Standing.NO_EVIDENCE),
        ("bytes", (loud(SHORT), SHY), Standing.CONTRADICTED),  # no noise hides that
        ("bytes", (ACROSS,), Standing.PROVEN),
        ("none", (loud(SHORT), SHY), Standing.PROVEN),
        ("none", (loud((1 << 18) - 1), SHY), Standing.PROVEN),
        ("none", (loud(1 << 18), SHY), Standing.NO_EVIDENCE),
        ("none", (loud(LONG),), Standing.NO_EVIDENCE),
        ("none", (loud(SHORT), ACROSS), Standing.CONTRADICTED),
    ],
)
def test_a_part_that_others_drown_is_no_evidence(
    claim: str, parts: tuple[Part, ...], due: Standing
) -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane: (?P<lane>x)", "x", proves=True, wire=claim)
    phase = replace(a_phase(1), bytes=sum(p.bytes for p in parts), parts=parts)
    wire = wire_says(phase, frozenset({Peer.ON_NODE}))
    heard = hear(Kind.P2P, Peer.ON_NODE, [sign], lines("lane: x", ""), phase, ranks=2, wire=wire)
    assert heard.proof.standing is due
    assert ("other programs' traffic" in heard.reason) is (due is Standing.NO_EVIDENCE)
    if due is Standing.NO_EVIDENCE:
        assert not heard.by_wire
        lost = next(p for p in parts if p.drowned)
        assert f"({lost.what} {lost.bytes} of {lost.bytes} B crossed, inf B" in heard.reason


def test_a_network_that_only_long_messages_take_is_not_proven() -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane: (?P<lane>tcp)", "tcp", proves=True, wire="bytes")
    told = (Part("8 B", SHORT, (("lo", 304),)), Part("1 MiB", LONG, (("lo", LONG),)))
    phase = replace(a_phase(LONG), bytes=SHORT + LONG, parts=told)
    wire = wire_says(phase, frozenset({Peer.ON_NODE}))
    heard = hear(Kind.P2P, Peer.ON_NODE, [sign], lines("lane: tcp", ""), phase, ranks=2, wire=wire)
    assert heard.proof.standing is Standing.CONTRADICTED
    assert heard.proof.lane == "tcp in part"
    assert "8 B 304 of 8000 B" in heard.reason


WIRE_CASES = [
    # claim, counters -> standing; None: the counters have no say
    ("bytes", Wire.CARRIED, Standing.PROVEN),
    ("bytes", Wire.QUIET, Standing.CONTRADICTED),
    ("bytes", Wire.SPLIT, Standing.CONTRADICTED),
    ("bytes", Wire.UNCLEAR, Standing.CONTRADICTED),
    ("bytes", Wire.UNREAD, Standing.NO_EVIDENCE),
    ("bytes", None, Standing.PROVEN),
    ("none", Wire.CARRIED, Standing.CONTRADICTED),
    ("none", Wire.SPLIT, Standing.CONTRADICTED),
    ("none", Wire.QUIET, Standing.PROVEN),
    ("none", Wire.UNCLEAR, Standing.PROVEN),
    ("none", Wire.UNREAD, Standing.NO_EVIDENCE),
    ("none", None, Standing.PROVEN),
    ("", Wire.CARRIED, Standing.PROVEN),
    ("", Wire.UNREAD, Standing.PROVEN),
]


@pytest.mark.parametrize(("claim", "wire", "due"), WIRE_CASES)
def test_the_wire_against_the_signs(claim: str, wire: Wire | None, due: Standing) -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane: (?P<lane>sm)", "sm", proves=True, wire=claim)
    heard = hear(
        Kind.P2P, Peer.ON_NODE, [sign], lines("lane: sm", ""), a_phase(0), ranks=2, wire=wire
    )
    assert heard.proof.standing is due
    assert heard.by_wire is (due is Standing.CONTRADICTED)
    assert bool(heard.reason) is (due is not Standing.PROVEN)
    if due is Standing.PROVEN:
        assert heard.wire is (wire or Wire.UNREAD)


def test_of_several_signs_the_one_that_names_the_lane_is_quoted() -> None:
    def sign(pattern: str, lane: str, *, beside: bool = False) -> Sign:
        return Sign(Kind.P2P, Peer.ON_NODE, pattern, lane, proves=True, beside=beside)

    def told(*signs: Sign) -> Heard:
        output, phase = lines("first\nlane: sm\nlane: sm again", ""), a_phase(0)
        return hear(Kind.P2P, Peer.ON_NODE, signs, output, phase, ranks=2, wire=None)

    heard = told(sign("first", ""), sign("lane:", "sm", beside=True))
    assert (heard.proof.standing, heard.proof.lane) == (Standing.PROVEN, "sm")
    assert heard.proof.sign == "lane: sm"
    assert heard.beside  # if only one of them is
    assert not told(sign("lane:", "sm")).beside


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
    assert found == (Phase(Kind.P2P, Peer.ON_NODE, 7, (("lo", 5),), ok=True),)


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
    assert found[0].parts == (Part("8 B", 3, (("lo", 4),)), Part("", 4, ()))
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
    assert placed(told, frozenset({Peer.ON_NODE}))[0].peer is Peer.ON_NODE
    assert placed(told, frozenset({Peer.ON_NODE, Peer.OFF_NODE})) == told


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
