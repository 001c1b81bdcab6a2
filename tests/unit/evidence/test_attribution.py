"""What the ranks' own connections prove where other programs' traffic fills the interfaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from mpigraft.core.model import Kind, Peer, ProofStatus
from mpigraft.evidence.traffic import attribution
from mpigraft.evidence.traffic.attribution import why_undecided
from mpigraft.evidence.traffic.lanes import Wire, claims_of
from mpigraft.evidence.traffic.probe import CARRIED, LONG, WHOLE, ProbePhase
from mpigraft.evidence.traffic.sockets import SLACK, Sockets
from tests.builders.messages import shows
from tests.builders.probes import (
    FLOOD,
    PAYLOAD,
    WHO,
    a_phase,
    asked_for,
    attributed,
    configuration,
    heard_of,
    own,
    says,
)

# ------------------------------------------------------------------ on one node


@pytest.mark.parametrize(
    ("sent", "wire"),
    [
        (PAYLOAD, Wire.CARRIED),
        (int(PAYLOAD * WHOLE) + 1, Wire.CARRIED),
        (int(PAYLOAD * WHOLE) - 2, Wire.SPLIT),
        (0, Wire.QUIET),
    ],
)
def test_tcp_is_what_the_ranks_connections_carried(sent: int, wire: Wire) -> None:
    assert says(a_phase(own(sent)), "bytes") is wire


@pytest.mark.parametrize(
    ("sent", "wire"),
    [
        (0, Wire.QUIET),
        (PAYLOAD // 10, Wire.QUIET),
        (PAYLOAD // 10 + 2, Wire.SPLIT),
        (PAYLOAD // 2, Wire.CARRIED),
        (PAYLOAD, Wire.CARRIED),
    ],
)
def test_shared_memory_is_what_they_did_not_carry(sent: int, wire: Wire) -> None:
    assert says(a_phase(own(sent)), "none") is wire


def test_a_short_part_that_crossed_somewhat_is_unclear() -> None:
    short = LONG - 1
    some = Sockets(short // 4, short // 4, 0, 0, 0, 0, (("lo", short // 4),))
    assert says(a_phase(some, size=short), "none") is Wire.UNCLEAR
    longer = Sockets(LONG // 4, LONG // 4, 0, 0, 0, 0, (("lo", LONG // 4),))
    assert says(a_phase(longer, size=LONG), "none") is Wire.SPLIT
    without = replace(a_phase(None, size=LONG, noise=0.0), wire=())
    raw = replace(without, parts=(replace(without.parts[0], wire=(("lo", LONG // 4),)),))
    assert says(raw, "none") is Wire.UNCLEAR  # by interfaces: others may have sent that


def test_without_them_the_flood_is_all_there_is() -> None:
    assert says(a_phase(None), "bytes") is Wire.UNCLEAR
    heard = heard_of(a_phase(None), "bytes")
    assert heard.proof.standing is ProofStatus.NO_EVIDENCE
    assert shows(heard.reason, "other programs")


def test_a_lane_that_they_contradict_is_reported_with_their_name() -> None:
    wrong = heard_of(a_phase(own(PAYLOAD)), "none")
    assert wrong.proof.standing is ProofStatus.CONTRADICTED
    assert wrong.by_sockets
    assert shows(wrong.reason, "ranks' own")
    assert "settings" in wrong.fix
    quiet = heard_of(a_phase(own(0)), "bytes")
    assert shows(quiet.proof.lane, "no network", "not lane")
    assert shows(quiet.reason, "not", "ranks' own")
    by_interfaces = heard_of(a_phase(None, noise=0.0), "none")
    assert by_interfaces.by_wire
    assert not by_interfaces.by_sockets
    assert "idle host" in by_interfaces.fix
    assert shows(by_interfaces.reason, "interfaces")
    assert heard_of(a_phase(own(0)), "none").fix == ""


def test_one_rank_that_goes_another_way_is_noticed() -> None:
    """Of many ranks it would be lost in the sum."""
    share = PAYLOAD // 64
    enough = Sockets(PAYLOAD, PAYLOAD, 0, share, int(share * WHOLE) + 1, share, (("lo", PAYLOAD),))
    assert says(a_phase(enough), "bytes") is Wire.CARRIED
    short = replace(enough, least=int(share * WHOLE) - 1)
    heard = heard_of(a_phase(short), "bytes")
    assert heard.proof.standing is ProofStatus.CONTRADICTED
    assert shows(heard.reason, "a rank", "share through lo")
    one = Sockets(share, share, 0, share, 0, int(share * CARRIED), (("lo", share),))
    assert says(a_phase(one), "none") is Wire.SPLIT
    less = replace(one, most=int(share * CARRIED) - 1)
    assert says(a_phase(less), "none") is Wire.QUIET


def test_of_shares_that_differ_only_the_sum_is_known() -> None:
    some = replace(own(PAYLOAD), each=0, least=0, most=0)
    assert says(a_phase(some, kind=Kind.COLLECTIVE), "bytes") is Wire.CARRIED
    assert says(a_phase(replace(own(0), each=0), kind=Kind.COLLECTIVE), "none") is Wire.QUIET


def test_bytes_without_an_interface_are_the_loopback_s_on_a_node() -> None:
    made = attributed(a_phase(own(PAYLOAD, through=())), WHO, {"bytes"})
    assert dict(made.wire) == {"lo": PAYLOAD, "e0": 0, "e1": 0}
    made = attributed(a_phase(own(PAYLOAD, through=(("e0", 9), ("lo", 5)))), WHO, {"bytes"})
    assert dict(made.wire) == {"lo": PAYLOAD - 9, "e0": 9, "e1": 0}


# ------------------------------------------------------------------ where they cannot tell


CANNOT_TELL = [
    ({}, True),
    ({"gap": "a rank uses io_uring, which may have connections of its own"}, False),
    ({"strangers": PAYLOAD // 10}, True),
    ({"strangers": PAYLOAD // 10 + 1}, False),  # a peer behind a translated address
    ({"received": SLACK + 1}, False),
    ({"received": SLACK}, True),
]


@pytest.mark.parametrize(
    ("claim", "changes", "known"),
    [(claim, *row) for claim in ("none", "bytes") for row in CANNOT_TELL],
)
def test_that_nothing_was_sent_needs_all_connections(
    claim: str, changes: dict[str, Any], known: bool
) -> None:
    given = a_phase(own(0, **changes))
    made = attributed(given, WHO, {claim})
    assert (made is not given) is known
    assert (says(given, claim) is Wire.QUIET) is known


def test_strangers_of_a_short_part_may_be_daemons() -> None:
    for strangers, known in ((SLACK, True), (SLACK + 1, False)):
        given = a_phase(Sockets(0, 0, strangers), size=9)
        assert (attributed(given, WHO, {"none"}) is not given) is known


def test_of_a_lane_that_claims_nothing_half_is_enough() -> None:
    gap = "a connection was closed meanwhile"
    given = a_phase(own(PAYLOAD // 2, gap=gap))
    assert attributed(given, WHO, set()) is not given
    less = a_phase(own(PAYLOAD // 2 - 2, gap=gap))
    assert attributed(less, WHO, set()) is less


@pytest.mark.parametrize(
    "changes", [{"gap": "a connection was closed meanwhile"}, {"strangers": PAYLOAD}]
)
def test_what_was_sent_is_known_of_those_that_are_there(changes: dict[str, Any]) -> None:
    assert says(a_phase(own(PAYLOAD, **changes)), "bytes") is Wire.CARRIED
    assert says(a_phase(own(PAYLOAD, **changes)), "none") is Wire.CARRIED
    assert says(a_phase(own(PAYLOAD // 10 + 2, **changes)), "none") is Wire.SPLIT
    for little, claim in ((PAYLOAD // 2, "bytes"), (PAYLOAD // 10, "none")):
        given = a_phase(own(little, **changes))
        assert attributed(given, WHO, {claim}) is given
    short = own(PAYLOAD, **changes, least=0)
    assert attributed(a_phase(short), WHO, {"bytes"}) == a_phase(short)


def test_ends_that_count_unlike_are_not_believed() -> None:
    given = a_phase(own(PAYLOAD, received=PAYLOAD // 2))
    assert attributed(given, WHO, {"bytes"}) is given


def test_who_counts_has_to_be_known() -> None:
    given = a_phase(own(PAYLOAD))
    assert attributed(given, (), {"bytes"}) is given
    assert attributed(given, WHO[3:], {"bytes"}) is given


@pytest.mark.parametrize(
    ("sockets", "why"),
    [
        (own(0, gap="a rank has an RDMA device open"), "a rank has an RDMA device open"),
        (own(0, received=PAYLOAD), "the two ends of connections count differently"),
        (own(0, strangers=PAYLOAD), "some of their peers cannot be found among the ranks"),
    ],
)
def test_why_they_cannot_tell_is_reported(sockets: Sockets, why: str) -> None:
    heard = heard_of(a_phase(sockets), "none")
    assert heard.proof.standing is ProofStatus.NO_EVIDENCE
    assert shows(heard.reason, why)
    assert why_undecided(a_phase(sockets)) == why
    first = a_phase(None).parts[0]
    both = replace(a_phase(sockets), parts=(first, *a_phase(sockets).parts))
    assert why_undecided(both) == why
    decided = attributed(a_phase(own(PAYLOAD, gap="x")), WHO, {"bytes"}).parts
    assert why_undecided(replace(both, parts=(*decided, *both.parts))) == why


def test_nothing_is_reported_of_those_that_can() -> None:
    assert why_undecided(a_phase(None)) == ""
    assert why_undecided(attributed(a_phase(own(PAYLOAD)), WHO, {"bytes"})) == ""
    given = a_phase(own(PAYLOAD, through=()), peer=Peer.OFF_NODE)
    assert shows(why_undecided(given), "kernel", "which interface")
    assert shows(heard_of(a_phase(None), "none").reason, "always about")


def test_a_phase_that_is_not_there_stays_away() -> None:
    assert attribution.attributed(None, WHO, {"bytes"}) is None


def test_a_network_without_a_loopback_has_none_of_its_bytes() -> None:
    made = attributed(a_phase(own(PAYLOAD, "e0")), WHO[1:2], {"bytes"})
    assert dict(made.parts[0].wire) == {"e0": PAYLOAD, "lo": 0}
    assert made.parts[0].noise == 0.0


def test_a_gap_leaves_what_is_about_anyway() -> None:
    for sent, known in ((SLACK, False), (SLACK + 1, True)):
        given = a_phase(Sockets(sent, sent, through=(("lo", sent),), gap="x"), size=9)
        assert (attributed(given, WHO, {"none"}) is not given) is known


def test_signs_say_what_is_due_on_the_wire() -> None:
    signs = asked_for(configuration("intel@2021.18.1", "shm-ofi-tcp")).signs
    for kind in Kind:
        assert claims_of(signs, kind, Peer.ON_NODE) == {"none"}
        assert claims_of(signs, kind, Peer.OFF_NODE) == {"bytes"}
    against = [replace(sign, proves=False) for sign in signs]
    assert claims_of(against, Kind.P2P, Peer.ON_NODE) == set()
    mute = [replace(sign, wire="") for sign in signs]
    assert claims_of(mute, Kind.P2P, Peer.ON_NODE) == set()


def test_one_part_of_their_own_is_enough_to_name_them() -> None:
    raw = a_phase(None, noise=0.0)
    both = replace(raw, parts=(a_phase(own(0)).parts[0], raw.parts[0]))
    assert heard_of(both, "none").by_sockets
    assert not heard_of(raw, "none").by_sockets


def test_parts_are_taken_one_by_one() -> None:
    given = a_phase(own(PAYLOAD))
    both = replace(given, parts=(given.parts[0], replace(given.parts[0], sockets=None)))
    made = attributed(both, WHO, {"bytes"})
    assert [part.own is not None for part in made.parts] == [True, False]
    assert dict(made.wire) == {"lo": FLOOD + PAYLOAD, "e0": FLOOD, "e1": FLOOD}


# ------------------------------------------------------------------ devices


def with_device(phase: ProbePhase, sent: int, noise: float = 0.0) -> ProbePhase:
    device = ("mlx5_0:1", sent)
    parts = tuple(replace(p, wire=(*p.wire, device), noise=noise) for p in phase.parts)
    return replace(phase, wire=(*phase.wire, device), parts=parts)


def test_a_device_is_no_witness_of_tcp() -> None:
    assert says(with_device(a_phase(own(0)), PAYLOAD), "bytes") is Wire.QUIET


def test_what_connections_carried_drowns_in_no_noise() -> None:
    made = attributed(with_device(a_phase(own(PAYLOAD)), 0, noise=PAYLOAD), WHO, {"none"})
    assert made.parts[0].noise == 0.0
    made = attributed(with_device(a_phase(own(0)), 0, noise=PAYLOAD), WHO, {"none"})
    assert made.parts[0].noise == PAYLOAD
    assert attributed(a_phase(own(0)), WHO, {"none"}).parts[0].noise == 0.0


def test_memory_has_to_spare_devices_too() -> None:
    assert says(with_device(a_phase(own(0)), PAYLOAD), "none") is Wire.CARRIED
    assert says(with_device(a_phase(own(0)), 0), "none") is Wire.QUIET
    drowned = with_device(a_phase(own(0)), PAYLOAD, noise=PAYLOAD)
    assert says(drowned, "none") is Wire.UNCLEAR
    assert says(with_device(a_phase(own(PAYLOAD)), 0, noise=PAYLOAD), "none") is Wire.CARRIED
