"""Lines of a probe's output, and the signs that are looked for in them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from mpigraft.core.model import Kind, Peer, ProofStatus, Sign
from mpigraft.evidence.traffic.lanes import OutputLine, find_sign, judge_traffic, lane_name, lines
from mpigraft.evidence.traffic.probe import ProbePhase
from mpigraft.knowledge.transports.match import transport_rows
from tests.builders.messages import shows

QUIET = ProbePhase(Kind.P2P, Peer.ON_NODE, 100_000, (("lo", 0),), ok=True)


def test_a_sign_is_looked_for_where_it_is_printed() -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane (?P<lane>x)", "", proves=True, where="stderr")
    output = [OutputLine("stdout", "lane x")]
    assert find_sign(sign, output) is None
    assert find_sign(replace(sign, where="any"), output) is not None
    seen = find_sign(sign, [*output, OutputLine("stderr", " lane x ")])
    assert seen is not None
    assert (seen.lane, seen.line, seen.each) == ("x", "lane x", False)


@pytest.mark.parametrize(
    ("group", "ranks", "said_by", "enough"),
    [
        ("who", 3, 3, True), ("who", 3, 2, False),
        ("end", 2, 1, True), ("end", 3, 2, True), ("end", 3, 1, False), ("end", 3, 3, True),
        ("end", 4, 2, True), ("end", 4, 1, False), ("end", 5, 3, True), ("end", 5, 2, False),
        ("end", 2, 0, False),
    ],
)  # fmt: skip
def test_a_connection_is_begun_at_one_of_its_ends(
    group: str, ranks: int, said_by: int, enough: bool
) -> None:
    pattern = rf"\[(?P<{group}>\d+)\] send"
    sign = Sign(Kind.P2P, Peer.ON_NODE, pattern, "ucx", proves=True, says="{lane} is in use")
    said = lines("", "".join(f"[{rank}] send\n[{rank}] send\n" for rank in range(said_by)))
    heard = judge_traffic((Kind.P2P, Peer.ON_NODE), [sign], said, QUIET, ranks=ranks, wire=None)
    due = ProofStatus.PROVEN if enough else ProofStatus.NO_EVIDENCE
    assert heard.proof.standing is due
    if said_by and not enough:
        assert shows(heard.reason, f"{said_by} of {ranks} ranks", "ucx")
    if not said_by:
        asked = replace(sign, due="ucx alone")
        heard = judge_traffic(
            (Kind.P2P, Peer.ON_NODE), [asked], said, QUIET, ranks=ranks, wire=None
        )
        assert shows(heard.reason, "did not print", "ucx alone")


def test_a_sign_is_shown_as_a_sentence_with_its_line() -> None:
    pattern = r"by (?P<told>\S+)"
    sign = Sign(
        Kind.P2P, Peer.ON_NODE, pattern, "x", proves=True, says="it goes by {lane}", due="y"
    )
    for one in (sign, replace(sign, pattern=r"by (?P<lane> *\S+)")):
        line = "[1] by tcp"
        seen = find_sign(one, lines("", f"{line}\n"))
        assert seen is not None
        assert seen.says == sign.says.format(lane="tcp")
        assert seen.quoted == (line, seen.says)


def test_nothing_that_a_person_reads_of_a_sign_is_an_expression() -> None:
    """Of every row: what is due in words, and a clause to say it in."""
    for row in transport_rows():
        for sign in row.signs:
            assert sign.says.count("{lane}") == 1, row.id
            assert bool(sign.due) is sign.proves, row.id
            assert not re.search(r"[\\\[\]^$*?]|\(\?", sign.says + sign.due), (row.id, sign.due)


def test_lines_of_ucx_that_a_launcher_glued_are_two() -> None:
    """As Open MPI 5.0.7 of Debian 13 passed them on."""
    one = "[1795332908.599910] [vm:209  :0]   ucp_worker.c:1887 UCX  INFO    cfg#1 amo(self/memory)"
    two = "[1795332908.599911] [vm:210  :0]   ucp_worker.c:1887 UCX  INFO    cfg#1 tag(sysv/memory)"
    texts = [line.text for line in lines("", f"{one}{two}\n{two}\n")]
    assert texts == ["", one, two, two, ""]
    plain = "took [1.500000] [s], [n1:12] and [vm:210  :0]"
    assert [line.text for line in lines(plain, "")] == [plain, ""]


def test_lanes_are_named_once() -> None:
    def seen(pattern: str, lane: str, text: str) -> Any:
        return find_sign(Sign(Kind.P2P, Peer.ON_NODE, pattern, lane, proves=True), lines(text, ""))

    one = seen("a (?P<lane>lnx)", "provider", "a lnx")
    two = seen("b (?P<lane>shm)", "domain", "b shm")
    unnamed = seen("c ofi", "", "c ofi")
    fixed = seen("d", "posix shm", "d")
    assert lane_name([one, two, one, unnamed]) == "lnx (shm)"
    assert lane_name([fixed]) == "posix shm"
    assert lane_name([unnamed]) == ""
    assert lane_name([seen("e (?P<lane>x)", "", "e x")]) == ""  # its sign names no lane
    assert lane_name([seen("f(?P<lane>.*)", "provider", "f "), fixed]) == "posix shm"
