"""Own connections between nodes, whatever others send, and in a proof."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import Evidence, Kind, Layout, Peer, ProofStatus
from mpigraft.core.process.command import Completed
from mpigraft.evidence import judge
from mpigraft.evidence.traffic.attribution import disagreement, own_bytes
from mpigraft.evidence.traffic.counters import due_counters
from mpigraft.evidence.traffic.lanes import Wire
from mpigraft.evidence.traffic.probe import LONG, WHOLE, ProbePhase, Transfer
from mpigraft.evidence.traffic.sockets import SLACK, Sockets
from mpigraft.knowledge import load_document
from mpigraft.launch import LaunchResult
from tests.builders.messages import shows
from tests.builders.probes import (
    FLOOD,
    PAYLOAD,
    WHO,
    a_phase,
    attributed,
    between,
    configuration,
    heard_of,
    own,
    records,
    says,
)

# ------------------------------------------------------------------ between nodes


def test_the_interface_is_the_one_of_the_route() -> None:
    assert says(between(own(PAYLOAD, "e0")), "bytes", ("e0",)) is Wire.CARRIED
    heard = heard_of(between(own(PAYLOAD, "e1")), "bytes", ("e0",))
    assert heard.proof.standing is ProofStatus.CONTRADICTED
    assert heard.proof.lane == "lane over e1"
    assert says(between(own(PAYLOAD, "lo")), "bytes") is Wire.QUIET


def test_an_interface_that_is_not_known_leaves_the_counters() -> None:
    spare = int((1 - WHOLE) * PAYLOAD)
    given = between(own(PAYLOAD, through=(("e0", PAYLOAD - spare + 1),)))
    assert attributed(given, WHO, {"bytes"}) is not given
    given = between(own(PAYLOAD, through=(("e0", PAYLOAD - spare - 2),)))
    assert attributed(given, WHO, {"bytes"}) is given
    short = replace(given, parts=(replace(given.parts[0], bytes=9, sockets=Sockets(SLACK, SLACK)),))
    assert attributed(short, WHO, {"bytes"}) is not short
    short = replace(
        given, parts=(replace(given.parts[0], bytes=9, sockets=Sockets(SLACK + 1, SLACK)),)
    )
    assert attributed(short, WHO, {"bytes"}) is short


def test_route_and_counter_have_to_agree_where_there_are_several() -> None:
    lacks = int((1 - WHOLE) * PAYLOAD) + SLACK
    fine = between(own(PAYLOAD, "e0", lacking=(("e0", lacks),)))
    assert heard_of(fine, "bytes", ("e0",)).proof.standing is ProofStatus.PROVEN
    less = between(own(PAYLOAD, "e0", lacking=(("e0", lacks + 1),)))
    heard = heard_of(less, "bytes", ("e0",))
    assert heard.proof.standing is ProofStatus.NO_EVIDENCE
    assert heard.proof.lane == heard.proof.sign == ""
    assert shows(heard.reason, "1 MiB", f"{PAYLOAD} B", "e0", f"{lacks + 1} B")
    half = between(own(PAYLOAD // 2, "e0", lacking=(("e0", PAYLOAD),)))
    assert heard_of(half, "bytes", ("e0",)).proof.standing is ProofStatus.CONTRADICTED
    memory = between(own(PAYLOAD, "e0", lacking=(("e0", PAYLOAD),)))
    assert heard_of(memory, "none", ("e0",)).proof.standing is ProofStatus.CONTRADICTED
    other = between(own(PAYLOAD, "e0", lacking=(("e1", PAYLOAD),)))
    assert heard_of(other, "bytes", ("e0",)).proof.standing is ProofStatus.PROVEN


def test_little_that_lacks_is_the_slack_of_a_reading() -> None:
    for lacks, doubt in ((SLACK + 100, False), (SLACK + 101, True)):
        given = own(2000, "e0", lacking=(("e0", lacks),), each=0)
        part = Transfer("8 B", 2000, (("e0", 2000), ("e1", 0)), own=replace(given, sent=2000))
        made = ProbePhase(Kind.P2P, Peer.OFF_NODE, 2000, (), ok=True, parts=(part,))
        assert bool(disagreement(made)) is doubt


def test_one_interface_leaves_no_doubt() -> None:
    less = between(own(PAYLOAD, "e0", lacking=(("e0", PAYLOAD),)))
    made = due_counters(attributed(less, WHO[:2], {"bytes"}), ("e0",), 2)
    assert disagreement(made) == ""
    assert disagreement(due_counters(attributed(less, WHO, {"bytes"}), ("e0",), 2)) != ""
    near = replace(attributed(less, WHO, {"bytes"}), peer=Peer.ON_NODE)
    assert disagreement(near) == ""
    assert disagreement(between(own(PAYLOAD, "e0", lacking=(("e0", PAYLOAD),)))) == ""  # raw
    assert disagreement(replace(less, parts=(replace(less.parts[0], sockets=None),))) == ""
    whole = attributed(less, WHO, {"bytes"})
    both = replace(whole, parts=(*replace(less).parts, *whole.parts))  # raw ones are passed over
    assert disagreement(both) != ""


@pytest.mark.parametrize(
    ("sent", "each", "least", "most", "size", "left_out", "of_one", "by_own"),
    [
        (PAYLOAD, 100, 94, 100, PAYLOAD, True, True, True),
        (PAYLOAD, 100, 95, 50, PAYLOAD, False, True, True),
        (PAYLOAD // 2, 100, 0, 49, PAYLOAD, True, False, True),
        (PAYLOAD // 2 - 1, 100, 0, 49, PAYLOAD, False, False, True),
        (LONG, 100, 100, 50, LONG, False, True, True),
        (LONG, 100, 100, 50, LONG - 1, False, False, False),
        (LONG, 1, 1, 1, LONG, False, True, True),
        (LONG, 0, 0, 0, LONG, False, False, True),
        (10, 1, 1, 1, 100, False, False, False),
        (1 << 20, 0, 0, 0, 10 << 20, False, False, False),
        ((1 << 20) + 1, 0, 0, 0, 10 << 20, False, False, True),
    ],
)
def test_what_a_part_makes_of_the_shares(
    sent: int, each: int, least: int, most: int, size: int,
    left_out: bool, of_one: bool, by_own: bool,
) -> None:  # fmt: skip
    shares = Sockets(sent, sent, 0, each, least, most, (("lo", sent),))
    part = Transfer("x", size, (("lo", sent),), least=WHOLE, own=shares)
    assert (part.left_out, part.of_one, part.by_own) == (left_out, of_one, by_own)
    nobody = replace(part, own=None, sockets=shares)
    assert (nobody.left_out, nobody.of_one, nobody.by_own) == (False, False, False)


def test_shares_are_of_all_interfaces_together() -> None:
    """Of several, a rank's share through one of them is not known."""
    both = between(own(PAYLOAD, "e0", through=(("e0", PAYLOAD - 9), ("e1", 9))))
    (part,) = due_counters(attributed(both, WHO, {"bytes"}), ("e0",), 2).parts
    assert part.own
    assert part.own.each == 0
    (part,) = due_counters(attributed(both, WHO, {"bytes"}), ("e0", "e1"), 2).parts
    assert part.own
    assert part.own.each == PAYLOAD // 2


# ------------------------------------------------------------------ whatever others send


@given(
    st.integers(0, 2 * PAYLOAD),
    st.dictionaries(st.sampled_from(["lo", "e0", "e1"]), st.integers(0, FLOOD)),
    st.floats(0, FLOOD),
    st.sampled_from(["none", "bytes"]),
    st.sampled_from([Peer.ON_NODE, Peer.OFF_NODE]),
)
def test_nothing_that_others_send_changes_a_verdict(
    sent: int, wire: dict[str, int], noise: float, claim: str, peer: Peer
) -> None:
    quiet = a_phase(
        own(sent, "e0"), peer=peer, noise=0.0, wire=dict.fromkeys(("lo", "e0", "e1"), 0)
    )
    loud = a_phase(own(sent, "e0"), peer=peer, noise=noise, wire=wire)
    assert says(quiet, claim, ("e0",)) is says(loud, claim, ("e0",))
    assert heard_of(quiet, claim).proof == heard_of(loud, claim).proof


@given(st.integers(0, PAYLOAD), st.integers(0, PAYLOAD), st.sampled_from(["none", "bytes"]))
def test_more_bytes_never_look_like_fewer(one: int, other: int, claim: str) -> None:
    order = [Wire.QUIET, Wire.SPLIT, Wire.CARRIED]
    less, more = (order.index(says(a_phase(own(n)), claim) or Wire.UNREAD)
                  for n in sorted((one, other)))  # fmt: skip
    assert less <= more


# ------------------------------------------------------------------ in a proof


def printed(sockets: dict[str, object], kind: Kind) -> str:
    wire = {"lo": FLOOD, "eth0": FLOOD}
    part = {"what": "1 MiB", "bytes": PAYLOAD, "seconds": 0.1, "wire": wire, "sockets": sockets}
    line = {"mpigraft": "phase", "kind": kind, "peer": "on-node", "bytes": PAYLOAD, "wire": wire,
            "ok": True, "parts": [part]}  # fmt: skip
    return json.dumps(line, separators=(",", ":"))


def judged(sent: int, *, name: str = "ofi-tcp", gap: str = "") -> Evidence:
    """Of Intel MPI, which says its provider in one line, under a flood."""
    fabrics = "shm" if name == "shm" else "ofi"
    sockets: dict[str, object] = {
        "gap": gap, "no-rank": [90, 90], "self": [0, 0], "on-node": [sent, sent],
        "off-node": [0, 0], "each": 0, "least": 0, "most": 0,
        "through": {"lo": sent}, "lacking": {},
    }  # fmt: skip
    lines = (
        *(() if name == "shm" else ("[0] MPI startup(): libfabric provider: tcp",)),
        f"[0] MPI startup(): I_MPI_FABRICS={fabrics}",
        *(("[0] MPI startup(): shm segment size (1 MB per rank)",) if name == "shm" else ()),
        *(printed(sockets, kind) for kind in Kind),
        f'{{"mpigraft":"idle","seconds":0.1,"wire":{{"lo":{FLOOD},"eth0":0}},'
        '"counters":{"lo":"netdev","eth0":"netdev"}}',
    )
    ended = Completed(("mpiexec",), 0, "\n".join(lines).encode(), b"", 1.0)
    return judge.judge_evidence(
        configuration("intel@2021.18.1", name), Layout(), LaunchResult(ended, records(2))
    )


def test_foreign_traffic_neither_proves_nor_hides_a_transport() -> None:
    assert judged(PAYLOAD).ok
    assert not judged(0).ok
    assert judged(0, name="shm").ok
    assert not judged(PAYLOAD, name="shm").ok
    blind = judged(0, gap="a rank cannot list its open files")
    assert {f.code for f in blind.findings} == {"no-evidence"}


def test_only_lanes_of_tcp_claim_bytes_on_the_wire() -> None:
    """Of others connections would carry nothing, and a right transport would be contradicted."""
    claiming = [
        row
        for row in load_document("transports.toml")["transport"]
        if any(sign.get("wire") == "bytes" for sign in row.get("signs", ()))
    ]
    assert len(claiming) > 10
    for row in claiming:
        assert "tcp" in row["name"] or "shm+tcp" in row["env"]["FI_LNX_PROV_LINKS"], row["name"]


def test_evidence_has_what_the_ranks_connections_sent() -> None:
    assert judged(PAYLOAD).own == (("lo", PAYLOAD),)
    assert judged(0, gap="a rank cannot list its open files").own is None
    assert judged(PAYLOAD).wire == (("lo", FLOOD), ("eth0", FLOOD))


def test_bytes_of_a_phase_are_those_of_its_parts() -> None:
    part = Transfer("8 B", 9, (), sockets=Sockets(5, 5, through=(("lo", 2), ("e0", 3))))
    phase = ProbePhase(Kind.P2P, Peer.ON_NODE, 18, (), ok=True, parts=(part, part))
    assert own_bytes(phase) == (("lo", 4), ("e0", 6))
    assert own_bytes(replace(phase, parts=())) is None
    for sockets in (None, Sockets(5, 5, gap="x"), Sockets(9000, 0)):
        assert own_bytes(replace(phase, parts=(part, replace(part, sockets=sockets)))) is None
