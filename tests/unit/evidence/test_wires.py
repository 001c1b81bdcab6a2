"""Which counters saw a probe's bytes, and which of them had to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import (
    EnvRow,
    Evidence,
    Kind,
    Layout,
    Level,
    Peer,
    Proof,
    ProofStatus,
    Scope,
)
from mpigraft.core.process.command import Completed
from mpigraft.evidence import judge
from mpigraft.evidence.traffic.counters import (
    COUNTERS,
    counters,
    due_counters,
    lane_interfaces,
    named_interfaces,
    uncounted,
)
from mpigraft.evidence.traffic.lanes import TrafficFinding, Wire, _with_wire, wire_state
from mpigraft.evidence.traffic.probe import WHOLE, ProbePhase, Transfer
from mpigraft.launch import LaunchResult
from tests.builders.messages import matches, shows
from tests.builders.probes import configuration, records, with_transport

LONG = 16 << 20
FAR = frozenset({Peer.OFF_NODE})
WIRE = (("lo", 0), ("e0", LONG), ("e1", 0))


def rows(*pairs: tuple[str, str]) -> tuple[EnvRow, ...]:
    return tuple(EnvRow(name, value, Scope.RANK, "transport") for name, value in pairs)


def phase(wire: dict[str, int], *, peer: Peer = Peer.OFF_NODE, noise: float = 0.0) -> ProbePhase:
    counts = tuple(wire.items())
    return ProbePhase(
        Kind.P2P, peer, LONG, counts, ok=True, parts=(Transfer("1 MiB", LONG, counts, noise),)
    )


def test_the_last_setting_of_a_name_says_which_interface() -> None:
    assert named_interfaces(rows(("FI_TCP_IFACE", "e0")), WIRE) == ("e0",)
    assert named_interfaces(rows(("FI_TCP_IFACE", "e0"), ("FI_TCP_IFACE", "e1")), WIRE) == ("e1",)
    assert named_interfaces(rows(("OMPI_MCA_btl_tcp_if_include", "e1,e0")), WIRE) == ("e0", "e1")
    assert named_interfaces(rows(("FI_TCP_IFACE", "lo"), ("X", "e00")), WIRE) == ()
    assert named_interfaces((), WIRE) == ()
    for left_out in (("OMPI_MCA_btl_tcp_if_exclude", "lo,e1"), ("UCX_NET_DEVICES", "^e1")):
        assert named_interfaces(rows(("FI_TCP_IFACE", "e0"), left_out), WIRE) == ("e0",)
    ports = (("mlx5_0:1", 5), ("cxi0", 7), ("cxi1", 7))
    assert named_interfaces(rows(("UCX_NET_DEVICES", "mlx5_0:1")), ports) == ("mlx5_0:1",)
    assert named_interfaces(rows(("FI_LNX_PROV_LINKS", "shm+cxi:cxi1")), ports) == ("cxi1",)


def test_a_library_that_names_an_interface_is_held_to_it() -> None:
    assert lane_interfaces("ucx (tcp/e0)", WIRE) == ("e0",)
    assert lane_interfaces("ucx (rc_mlx5/mlx5_0:1)", (("mlx5_0:1", 5),)) == ("mlx5_0:1",)
    assert lane_interfaces("tcp", WIRE) == lane_interfaces("sm (lo)", WIRE) == ()


@pytest.mark.parametrize(
    ("wire", "names", "says"),
    [
        ({"lo": 0, "e0": LONG}, ("e0",), Wire.CARRIED),
        ({"lo": LONG, "e0": 0}, ("e0",), Wire.QUIET),  # nothing gets to another node by lo
        ({"lo": LONG, "e0": 0}, (), Wire.QUIET),
        ({"lo": 0, "e0": 0, "e1": LONG}, ("e0",), Wire.QUIET),
        ({"lo": 0, "e0": 0, "e1": LONG}, (), Wire.CARRIED),
        ({"e0": LONG // 2, "e1": LONG // 2}, ("e0", "e1"), Wire.CARRIED),
        ({"e0": LONG * 8 // 10}, ("e0",), Wire.UNCLEAR),  # a fifth of it took another way
        ({"e0": LONG * 2}, ("e0",), Wire.CARRIED),
        ({"lo": LONG}, (), Wire.UNREAD),  # of no interface that leads elsewhere
    ],
)
def test_between_nodes_the_payload_crosses_the_interface_that_is_named(
    wire: dict[str, int], names: tuple[str, ...], says: Wire
) -> None:
    assert wire_state(due_counters(phase(wire), names), FAR) is says


def test_among_other_programs_bytes_half_of_the_payload_has_to_do() -> None:
    most = phase({"e0": LONG * 8 // 10}, noise=LONG / 100)
    assert wire_state(due_counters(most, ("e0",)), FAR) is Wire.CARRIED


def test_on_a_node_the_loopback_carries_what_an_interface_is_named_for() -> None:
    near = phase({"lo": LONG, "e0": 0}, peer=Peer.ON_NODE)
    assert due_counters(near, ("e0",)) == near


@given(st.dictionaries(st.sampled_from(["lo", "e0", "e1", "ib0"]), st.integers(0, 1 << 40)))
def test_no_byte_is_lost_or_counted_twice(wire: dict[str, int]) -> None:
    made = due_counters(
        phase(wire), named_interfaces(rows(("FI_TCP_IFACE", "e0")), tuple(wire.items()))
    )
    assert sorted((*made.wire, *made.aside)) == sorted(wire.items())
    assert made.parts[0].wire == made.wire


# ------------------------------------------------------------------ who counted


def idle(**told: object) -> str:
    return json.dumps(
        {"mpigraft": "idle", "seconds": 0.1, "wire": {}, **told}, separators=(",", ":")
    )


def test_the_probe_says_who_counted() -> None:
    told = {"e0": "netdev", "mlx5_0:1": "infiniband", "cxi0": "cxi telemetry"}
    assert counters(f"x{idle(counters=told)}\n") == tuple(told.items())
    assert {by for _, by in counters(idle(counters=told))} == set(COUNTERS)
    assert counters(idle(counters={"e0": "hearsay", "e1": 7, "e2": ["netdev"]})) == ()
    for nothing in ("", idle(), idle(counters=7), idle(counters=None)):
        assert counters(nothing) == ()


def proven(lane: str, peer: Peer = Peer.OFF_NODE) -> Proof:
    return Proof(peer, Kind.P2P, ProofStatus.PROVEN, lane, "a line")


WHO = (("lo", "netdev"), ("hsn0", "netdev"), ("cxi0", "cxi telemetry"), ("mlx5_0:1", "infiniband"))


@pytest.mark.parametrize(
    ("lane", "wire", "told"),
    [
        ("cxi (cxi0)", {"hsn0": 0, "cxi0": LONG}, False),
        ("cxi (cxi0)", {"hsn0": 0, "cxi0": 9}, True),
        ("lnx (shm+cxi0)", {"hsn0": LONG, "cxi0": 0}, True),  # a netdev is no witness of RDMA
        ("ucx (rc_mlx5/mlx5_0:1)", {"mlx5_0:1": LONG}, False),
        ("ucx (rc_mlx5/mlx5_0:1)", {"mlx5_0:1": int(LONG * WHOLE) - 1}, True),
        ("cxi (cxi1)", {"cxi0": 0}, False),  # of that one nothing was read
        ("ucx (tcp/hsn0)", {"hsn0": 0, "x0": LONG}, True),  # a row that asks for any network
        ("ucx (tcp/hsn0)", {"hsn0": LONG}, False),
        ("ucx (tcp/lo)", {"lo": 0}, False),
    ],
)
def test_what_a_lane_names_is_requested_what_it_counted(
    lane: str, wire: dict[str, int], told: bool
) -> None:
    found = uncounted([proven(lane)], [phase(wire)], WHO)
    assert [f.code for f in found] == ["wire-unseen"] * told
    assert all(f.level is Level.WARNING for f in found)
    assert uncounted([proven(lane, Peer.ON_NODE)], [phase(wire, peer=Peer.ON_NODE)], WHO) == []
    both = replace(phase(wire), kind=Kind.COLLECTIVE)  # moves bytes on the nodes too
    assert uncounted([replace(proven(lane), kind=Kind.COLLECTIVE)], [both], WHO) == []


# ------------------------------------------------------------------ in a proof

KINDS = (Kind.P2P, Kind.ONE_SIDED, Kind.COLLECTIVE)


def said(wire: dict[str, int], kind: Kind, peer: Peer) -> dict[str, object]:
    parts = [{"what": "1 MiB", "bytes": LONG, "seconds": 0.1, "wire": wire}]
    told = {"bytes": LONG, "wire": wire, "parts": parts, "ok": True}
    return {"mpigraft": "phase", "kind": kind, "peer": peer, **told}


def judged(
    wire: dict[str, int],
    *,
    windows: dict[str, int] | None = None,
    near: dict[str, int] | None = None,
    by: str = "netdev",
    unset: bool = False,
) -> Evidence:
    """Of Intel MPI over TCP, which says its provider in one line; `near` are counters between
    ranks of one node, `windows` of one-sided traffic, `unset` names no interface."""
    asked = configuration("intel@2021.18.1", "shm-ofi-tcp")
    if unset:
        asked = with_transport(asked, env=())
    rows_ = [said(wire if kind is not Kind.ONE_SIDED else windows or wire, kind, Peer.OFF_NODE)
             for kind in KINDS]  # fmt: skip
    if near is not None:
        rows_ = [said(near, kind, Peer.ON_NODE) for kind in KINDS[:2]] + rows_
    lines = (
        "[0] MPI startup(): libfabric provider: tcp",
        "[0] MPI startup(): I_MPI_FABRICS=shm:ofi",
        "[0] MPI startup(): shm segment size (1 MB per rank)",
        *(json.dumps(row, separators=(",", ":")) for row in rows_),
        idle(counters=dict.fromkeys(wire, by)),
    )
    text = "\n".join(lines).encode()
    each = 2 if near is not None else 1
    ended = Completed(("mpiexec",), 0, text, b"", 1.0)
    return judge.judge_evidence(
        asked, Layout(2, each), LaunchResult(ended, records(2 * each, hosts=2))
    )


def test_evidence_has_the_counters_the_names_and_the_payload() -> None:
    found = judged({"lo": 0, "eth0": LONG + 9})
    assert found.ok, found.findings
    assert found.counters == (("lo", "netdev"), ("eth0", "netdev"))
    assert (found.named, found.payload) == (("eth0",), LONG)
    assert dict(found.wire) == {"lo": 0, "eth0": LONG + 9}


def test_the_wire_that_is_reported_is_that_of_the_farthest() -> None:
    found = judged({"lo": 0, "eth0": LONG + 9}, near={"lo": 5, "eth0": 0})
    assert dict(found.wire) == {"lo": 0, "eth0": LONG + 9}
    assert found.named == ("eth0",)


def test_a_probe_without_output_has_no_payload() -> None:
    asked = configuration("intel@2021.18.1", "shm-ofi-tcp")
    ended = Completed(("mpiexec",), 1, b"", b"", 1.0)
    found = judge.judge_evidence(asked, Layout(2, 1), LaunchResult(ended, ()))
    assert (found.wire, found.counters, found.named, found.payload) == ((), (), (), 0)


def test_another_interface_than_the_one_that_is_named_is_another_transport() -> None:
    found = judged({"lo": 0, "eth0": 0, "admin0": LONG + 9})
    assert not found.ok
    assert shows(found.ran, "tcp", "admin0")
    seen = next(f.message for f in found.findings if f.code == "wire-contradiction")
    assert matches(
        seen, "wire-contradiction", reason="the payload was to cross eth0, and crossed admin0"
    )
    (fix,) = {f.fix for f in found.findings if f.code == "wire-contradiction"}
    assert "ip route get" in fix


def test_so_it_is_where_the_library_alone_names_one() -> None:
    """Here the interface is called as its lane is."""
    found = judged({"tcp": LONG + 9, "admin0": 0}, unset=True)
    assert found.ok, found.findings
    assert found.named == ("tcp",)
    assert shows(judged({"tcp": 0, "admin0": LONG + 9}, unset=True).ran, "tcp", "admin0")


@pytest.mark.parametrize(
    ("aside", "ran"), [(LONG // 2, "tcp over admin0"), (LONG // 3, "no network, so not tcp")]
)
def test_from_half_of_the_payload_on_another_interface_carried_it(aside: int, ran: str) -> None:
    assert judged({"eth0": 0, "admin0": aside}).ran == ran


def test_interfaces_over_each_other_count_the_same_bytes() -> None:
    found = judged({"eth0": LONG + 9, "bond0": LONG + 9})
    assert found.ok, found.findings


def test_shared_memory_is_not_compared_with_an_interface_that_it_had_not_to_cross() -> None:
    one = TrafficFinding(proof=proven("shm"))
    beside = replace(phase({"eth0": 0}), aside=(("admin0", LONG),))
    assert _with_wire(one, {"none"}, Wire.QUIET, beside) is one


def test_evidence_says_what_a_device_s_own_counter_did_not_see() -> None:
    some = {"tcp": LONG * 6 // 10}
    found = judged({"tcp": LONG + 9}, windows=some, by="cxi telemetry", unset=True)
    assert found.ok
    assert "wire-unseen" in [f.code for f in found.findings]


def test_on_one_node_no_interface_is_due() -> None:
    wire = {"lo": LONG, "eth0": 0}
    rows = [json.dumps(said(wire, kind, Peer.ON_NODE), separators=(",", ":")) for kind in KINDS]
    ended = Completed(("mpiexec",), 0, "\n".join(rows).encode(), b"", 1.0)
    found = judge.judge_evidence(
        configuration("intel@2021.18.1", "ofi-tcp"), Layout(), LaunchResult(ended, records(2))
    )
    assert found.named == ()
    assert found.payload == LONG
