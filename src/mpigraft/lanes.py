"""What a probe's output says of each kind of traffic: the logic of a proof, and nothing else.

Two witnesses that know nothing of each other are heard. The library prints which lane it took
(signs); the kernel counts the bytes that left (the wire). A lane is proven when every sign of it
was seen, from every rank where ranks speak for themselves, no sign of another was, and the wire
does not say otherwise. Silence is no evidence.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from mpigraft.model import Kind, Peer, Proof, RankRecord, Sign, Standing

PHASE = '{"mpigraft":"phase"'  # how each of the probe's lines begins
CARRIED = 0.5  # of the payload: from here on the kernel's interfaces carried it
QUIET = 0.1  # of the payload: up to here they only carried what is always about


@dataclass(frozen=True, slots=True)
class Line:
    stream: str  # stdout, stderr
    text: str


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of the probe. `bytes`: payload that all ranks sent; `wire`: (interface, bytes
    sent) as rank 0's host counted them; empty where its counters could not be read."""

    kind: Kind
    bytes: int
    wire: tuple[tuple[str, int], ...]
    ok: bool
    error: str = ""

    @property
    def sent(self) -> int:
        return sum(count for _, count in self.wire)


class Wire(StrEnum):
    """What the kernel's counters say of one phase."""

    CARRIED = "carried"
    QUIET = "quiet"
    UNCLEAR = "unclear"  # other traffic, or a part of the payload
    UNREAD = "unread"


def lines(stdout: str, stderr: str) -> tuple[Line, ...]:
    """Both streams line by line."""
    both = (("stdout", stdout), ("stderr", stderr))
    return tuple(Line(name, text) for name, stream in both for text in stream.split("\n"))


def phases(stdout: str) -> tuple[Phase, ...]:
    """The probe's phases in order; a line that is cut short or malformed is not one.

    Libraries print without a newline before ours and launchers glue lines together, so a phase
    is looked for anywhere in a line.
    """
    found = []
    decoder = json.JSONDecoder()
    for match in re.finditer(re.escape(PHASE), stdout):
        try:
            value, _ = decoder.raw_decode(stdout, match.start())
        except ValueError:
            continue
        if (phase := _phase(value)) is not None:
            found.append(phase)
    return tuple(found)


def _phase(value: Mapping[str, Any]) -> Phase | None:
    kind, size, ok = value.get("kind"), value.get("bytes"), value.get("ok")
    wire = value.get("wire")
    if kind not in set(Kind) or type(size) is not int or size < 0 or not isinstance(ok, bool):
        return None
    counts = wire.items() if isinstance(wire, dict) else ()
    good = tuple((name, n) for name, n in counts if type(n) is int and n >= 0)
    return Phase(Kind(kind), size, good, ok, str(value.get("error", "")))


def exercised(ranks: Sequence[RankRecord]) -> frozenset[Peer]:
    """Peer classes between which a probe among all these ranks moved bytes."""
    per_host = Counter(rank.host for rank in ranks)
    found = set()
    if any(count > 1 for count in per_host.values()):
        found.add(Peer.ON_NODE)
    if len(per_host) > 1:
        found.add(Peer.OFF_NODE)
    return frozenset(found)


def wire_says(phase: Phase, hosts: int) -> Wire:
    """What crossed rank 0's interfaces, held against its host's share of the payload."""
    if not phase.wire or phase.bytes == 0:
        return Wire.UNREAD
    share = phase.bytes / max(1, hosts)
    if phase.sent >= CARRIED * share:
        return Wire.CARRIED
    return Wire.QUIET if phase.sent <= QUIET * share else Wire.UNCLEAR


@dataclass(frozen=True, slots=True)
class Seen:
    """One sign and the first line that it was seen in; `who` are the processes that said it."""

    sign: Sign
    lane: str
    line: str
    who: frozenset[str]
    each: bool  # processes name themselves, so every rank has to say it


def look(sign: Sign, output: Iterable[Line]) -> Seen | None:
    """Where a sign was seen, or None."""
    pattern = re.compile(sign.pattern)
    first: re.Match[str] | None = None
    who: set[str] = set()
    for line in output:
        if sign.where not in ("any", line.stream):
            continue
        if (match := pattern.search(line.text)) is None:
            continue
        first = first or match
        if "who" in pattern.groupindex:
            who.add(match["who"])
    if first is None:
        return None
    lane = first["lane"] if "lane" in pattern.groupindex else sign.lane
    return Seen(sign, lane.strip(), first.string.strip(), frozenset(who), bool(who))


def named(seen: Sequence[Seen]) -> str:
    """One name for what several signs tell: `lnx (shm+lo)`."""
    lanes = list(dict.fromkeys(s.lane for s in seen if s.sign.lane and s.lane))
    if not lanes:
        return ""
    return lanes[0] if len(lanes) == 1 else f"{lanes[0]} ({', '.join(lanes[1:])})"


@dataclass(frozen=True, slots=True)
class Heard:
    """A proof with what a finding needs beside it."""

    proof: Proof
    beside: bool = False
    reason: str = ""  # why it is not proven
    refused: bool = False  # MPI itself said that it cannot
    wire: Wire = Wire.UNREAD


def hear(
    kind: Kind,
    peer: Peer,
    signs: Sequence[Sign],
    output: Sequence[Line],
    phase: Phase | None,
    *,
    ranks: int,
    wire: Wire | None,
) -> Heard:
    """What is known of one kind of traffic between peers of one class that were there.

    `wire` None: the counters cannot be attributed, since bytes of another peer class are in them.
    """

    def answer(standing: Standing, lane: str, line: str, reason: str = "") -> Heard:
        beside = any(s.sign.beside for s in said if s is not None)
        return Heard(Proof(peer, kind, standing, lane, line), beside, reason, wire or Wire.UNREAD)

    mine = [s for s in signs if (s.kind, s.peer) == (kind, peer)]
    said = [look(s, output) for s in mine if s.proves]
    against = [found for s in mine if not s.proves and (found := look(s, output)) is not None]
    if against:
        return answer(Standing.CONTRADICTED, named(against), against[0].line)
    if phase is None:
        return answer(Standing.NO_EVIDENCE, "", "", "the probe did not get that far")
    if not phase.ok:
        reason = f"MPI refused it: {phase.error or 'no reason given'}"
        return Heard(Proof(peer, kind, Standing.NO_EVIDENCE, "", ""), False, reason, refused=True)
    if missing := _missing([s for s in mine if s.proves], said, ranks):
        return answer(Standing.NO_EVIDENCE, "", "", missing)
    seen = [s for s in said if s is not None]
    lane = named(seen)
    line = next((s.line for s in seen if s.sign.lane), "")
    standing, reason = _against_wire({s.sign.wire for s in seen if s.sign.wire}, wire)
    if standing is Standing.CONTRADICTED:
        return answer(standing, f"not {lane}", line, reason)
    return answer(standing, lane, line, reason)


def _missing(signs: Sequence[Sign], said: Sequence[Seen | None], ranks: int) -> str:
    """Why signs do not suffice; empty if they do."""
    if not any(sign.lane for sign in signs):
        return "nothing that the library prints would tell"
    for sign, seen in zip(signs, said, strict=True):
        if seen is None:
            return f"no line matches {sign.pattern!r}"
        if seen.each and len(seen.who) < ranks:
            return f"{len(seen.who)} of {ranks} ranks say {seen.line!r}"
    return ""


def _against_wire(claims: set[str], wire: Wire | None) -> tuple[Standing, str]:
    """Whether the kernel's counters bear the signs out; `wire` None has no say."""
    if wire is None or not claims:
        return Standing.PROVEN, ""
    if wire is Wire.UNREAD:
        return Standing.NO_EVIDENCE, "the bytes of the interfaces could not be counted"
    if "bytes" in claims and wire is not Wire.CARRIED:
        return Standing.CONTRADICTED, "the library names a network, but its bytes did not cross it"
    if "none" in claims and wire is Wire.CARRIED:
        return Standing.CONTRADICTED, "the library names shared memory, but bytes crossed a network"
    return Standing.PROVEN, ""
