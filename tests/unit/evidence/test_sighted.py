"""Lines of hardware that no test can have, as people printed them: what rows make of them.

They are single lines of public logs and no probes, so they prove no transport. Each is held against
the signs that its row has for it, and against every other row of the family that hears the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpigraft.core.model import Kind, Peer
from mpigraft.evidence.traffic.lanes import OutputLine, PrintedSign, find_sign
from mpigraft.knowledge.transports.match import transport_rows
from mpigraft.knowledge.transports.rows import TransportRow

SIGHTED = Path(__file__).parents[2] / "data" / "logs" / "sighted"


@dataclass(frozen=True)
class Sighted:
    name: str
    row: TransportRow
    source: str
    lanes: tuple[tuple[str, str], ...]  # peer class, what carries messages there
    against: tuple[tuple[str, str], ...]
    ranks: int
    output: tuple[OutputLine, ...]


def sighted(path: Path) -> Sighted:
    text = path.read_text()

    def said(key: str) -> list[str]:
        return re.findall(rf"^# {key} (.+)$", text, re.M)

    def pairs(key: str) -> tuple[tuple[str, str], ...]:
        return tuple((peer, lane) for peer, _, lane in (w.partition(" ") for w in said(key)))

    return Sighted(
        name=path.stem,
        row=next(row for row in transport_rows() if row.id == said("row")[0]),
        source=said("source")[0],
        lanes=pairs("lane"),
        against=pairs("against"),
        ranks=int(said("ranks")[0]),
        output=tuple(OutputLine("stderr", s) for s in text.splitlines() if not s.startswith("#")),
    )


LOGS = [sighted(path) for path in sorted(SIGHTED.glob("*.log"))]
BY_NAME = pytest.mark.parametrize("log", LOGS, ids=lambda log: log.name)


def heard(log: Sighted, row: TransportRow, *, proves: bool) -> list[PrintedSign]:
    """What a row's signs for messages hear in a log, those that name the lane first."""
    signs = (s for s in row.signs if s.kind is Kind.P2P and s.proves is proves)
    found = [seen for sign in signs if (seen := find_sign(sign, log.output))]
    return sorted(found, key=lambda seen: not seen.sign.lane)


@BY_NAME
def test_the_line_is_read_as_the_lane_that_it_tells(log: Sighted) -> None:
    found = heard(log, log.row, proves=True)
    for peer, lane in log.lanes:
        lanes = {s.lane for s in found if s.sign.peer is Peer(peer) and s.sign.lane}
        assert lane in lanes, (peer, lanes)
        who = {len(s.who) for s in found if s.sign.peer is Peer(peer) and s.lane == lane and s.each}
        assert who <= {log.ranks}, "each rank speaks for itself"
    if not log.lanes:
        assert not [s for s in found if s.sign.lane], "nothing is proven by it"


@BY_NAME
def test_what_speaks_against_it_does_and_nothing_else(log: Sighted) -> None:
    found = {(s.sign.peer, s.lane) for s in heard(log, log.row, proves=False)}
    assert {(Peer(peer), lane) for peer, lane in log.against} <= found
    if not log.against:
        assert not found


@BY_NAME
def test_no_other_row_takes_the_line_for_its_own(log: Sighted) -> None:
    """A row of another lane is not proven by it: it lacks a sign, or hears another."""
    for row in transport_rows():
        if row.family is not log.row.family or row.name == log.row.name:
            continue
        for peer, lane in log.lanes:
            mine = [s for s in heard(log, row, proves=True) if s.sign.peer is Peer(peer)]
            due = [s for s in row.signs if (s.kind, s.peer) == (Kind.P2P, Peer(peer)) and s.proves]
            other = [s for s in heard(log, row, proves=False) if s.sign.peer is Peer(peer)]
            alike = all(s.sign.pattern in {o.pattern for o in log.row.signs} for s in mine)
            assert other or len(mine) < len(due) or alike, (row.id, peer, lane)


def test_lanes_of_other_networks_speak_against_a_row() -> None:
    by_name = {log.name: log for log in LOGS}
    rc, tcp = by_name["openmpi-ucx-rc"], by_name["openmpi-ucx-tcp"]
    for log, other in ((rc, tcp), (tcp, rc)):
        against = heard(log, other.row, proves=False)
        assert [s.lane for s in against if s.sign.peer is Peer.OFF_NODE] == [
            dict(log.lanes)["off-node"]
        ]
        assert not [s for s in against if s.sign.peer is Peer.ON_NODE]
    cma = next(row for row in transport_rows() if row.id == "cray-mpich-shm-ofi-cxi-cma")
    found = heard(by_name["cray-mpich-crusher"], cma, proves=False)
    assert {(s.sign.peer, s.lane) for s in found} == {(Peer.ON_NODE, "XPMEM")}


def test_every_sighting_says_where_it_is_from() -> None:
    assert len(LOGS) >= 12
    for log in LOGS:
        assert re.search(r"#\d+|/|guide|documentation|log of|study|\.com", log.source), log.name
    families = {log.row.family.value for log in LOGS}
    assert families >= {"openmpi", "mpich", "intel", "cray-mpich"}
