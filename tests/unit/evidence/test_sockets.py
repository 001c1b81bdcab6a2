"""What the probe says of the ranks' own connections, read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Kind, Peer
from mpigraft.evidence.traffic.probe import phases
from mpigraft.evidence.traffic.sockets import MAX_BYTES, SLACK, Sockets, read_sockets

WHOLE: dict[str, Any] = {
    "gap": "",
    "no-rank": [3, 4],
    "self": [1, 1],
    "on-node": [100, 101],
    "off-node": [200, 202],
    "each": 50,
    "least": 49,
    "most": 51,
    "through": {"lo": 100, "e0": 200},
    "lacking": {"e0": 7},
}


def test_each_class_of_peers_has_its_own_bytes() -> None:
    near = read_sockets(WHOLE, Kind.P2P, Peer.ON_NODE)
    assert near == Sockets(
        sent=100, received=101, strangers=4, each=50, least=49, most=51,
        through=(("lo", 100), ("e0", 200)), lacking=(("e0", 7),), gap="",
    )  # fmt: skip
    far = read_sockets(WHOLE, Kind.ONE_SIDED, Peer.OFF_NODE)
    assert far
    assert (far.sent, far.received) == (200, 202)


@pytest.mark.parametrize("peer", [Peer.ON_NODE, Peer.OFF_NODE])
def test_a_collective_has_those_of_both(peer: Peer) -> None:
    both = read_sockets(WHOLE, Kind.COLLECTIVE, peer)
    assert both
    assert (both.sent, both.received) == (300, 303)


def test_a_gap_is_kept() -> None:
    one = read_sockets({**WHOLE, "gap": "a rank has an RDMA device open"}, Kind.P2P, Peer.ON_NODE)
    assert one
    assert one.gap == "a rank has an RDMA device open"


DAMAGED = [None, "1", -1, 1.5, True, [1], [1, 2, 3], [1, -2], [-1, 2], [1, "2"], {"e0": -1}]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name in WHOLE for value in DAMAGED])
def test_what_is_damaged_is_not_known(name: str, value: object) -> None:
    """Self-connections carry nothing that is due, so nobody reads them."""
    made = read_sockets({**WHOLE, name: value}, Kind.COLLECTIVE, Peer.OFF_NODE)
    fits = name == "self" or (name == "gap" and isinstance(value, str))
    assert (made is not None) is fits


@pytest.mark.parametrize("name", [name for name in WHOLE if name != "self"])
def test_what_is_missing_is_not_known(name: str) -> None:
    less = {key: value for key, value in WHOLE.items() if key != name}
    assert read_sockets(less, Kind.COLLECTIVE, Peer.OFF_NODE) is None
    assert read_sockets(None, Kind.P2P, Peer.ON_NODE) is None
    assert read_sockets([WHOLE], Kind.P2P, Peer.ON_NODE) is None


def test_a_class_that_is_not_due_may_be_damaged() -> None:
    assert read_sockets({**WHOLE, "off-node": None}, Kind.P2P, Peer.ON_NODE)
    assert read_sockets({**WHOLE, "off-node": None}, Kind.P2P, Peer.OFF_NODE) is None


def test_numbers_have_an_end() -> None:
    assert read_sockets({**WHOLE, "each": MAX_BYTES}, Kind.P2P, Peer.ON_NODE)
    assert read_sockets({**WHOLE, "each": MAX_BYTES + 1}, Kind.P2P, Peer.ON_NODE) is None
    assert read_sockets({**WHOLE, "each": 0}, Kind.P2P, Peer.ON_NODE)


@pytest.mark.parametrize(
    ("sent", "received", "agree"),
    [
        (0, 0, True),
        (SLACK, 0, True),
        (0, SLACK + 1, False),
        (SLACK + 1, 0, False),
        (1_000_000, 900_000, True),
        (1_000_000, 899_999, False),
        (900_000, 1_000_000, True),
        (899_999, 1_000_000, False),
    ],
)
def test_both_ends_have_to_agree(sent: int, received: int, agree: bool) -> None:
    assert Sockets(sent, received).agree is agree


def test_bytes_without_an_interface_are_counted() -> None:
    assert Sockets(10, 10, through=(("lo", 3), ("e0", 4))).unplaced == 3
    assert Sockets(10, 10, through=(("lo", 11),)).unplaced == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*WHOLE, "x"]), inner, max_size=6)
    ),
    max_leaves=20,
)


@given(JSON, st.sampled_from(list(Kind)), st.sampled_from(list(Peer)))
def test_whatever_is_printed_is_read_or_refused(value: Any, kind: Kind, peer: Peer) -> None:
    made = read_sockets(value, kind, peer)
    assert made is None or min(made.sent, made.received, made.strangers, made.each) >= 0


def test_a_part_has_the_counts_of_its_connections() -> None:
    parts = [{"what": "8 B", "bytes": 9, "wire": {}, "sockets": WHOLE}, {"what": "x", "bytes": 1}]
    line = {"mpigraft": "phase", "kind": "p2p", "peer": "off-node", "bytes": 10, "wire": {},
            "ok": True, "parts": parts}  # fmt: skip
    (phase,) = phases(json.dumps(line, separators=(",", ":")))
    one, other = phase.parts
    assert one.sockets == read_sockets(WHOLE, Kind.P2P, Peer.OFF_NODE)
    assert other.sockets is None
    assert one.own is None
