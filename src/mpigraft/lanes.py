"""What a probe's output says of each kind of traffic: the logic of a proof, and nothing else.

Two witnesses that know nothing of each other are heard. The library prints which lane it took
(signs); the kernel counts the bytes that left (the wire). A lane is proven when every sign of it
was seen, from every rank where ranks speak for themselves, no sign of another was, and the wire
does not say otherwise. Silence is no evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product

from mpigraft.attribution import cannot_tell, disagreement
from mpigraft.model import Kind, Peer, Proof, RankRecord, Sign, Standing
from mpigraft.phases import CARRIED, LONG, Part, Phase
from mpigraft.sockets import QUIET, SLACK


@dataclass(frozen=True, slots=True)
class Line:
    stream: str  # stdout, stderr
    text: str


class Wire(StrEnum):
    """What the kernel's counters say of one phase."""

    CARRIED = "carried"
    QUIET = "quiet"
    SPLIT = "split"  # a long part crossed and another did not, or what one host of several sends
    UNCLEAR = "unclear"  # other traffic, or a part of the payload
    UNREAD = "unread"


# UCX begins a line with time and process. A launcher that passes on the output of two ranks may
# put it right behind what the other had not yet ended: seen with Open MPI 5.0.7 of Debian 13.
STAMP = re.compile(r"(?<!^)(?=\[\d+\.\d{6}\] \[[^\[\]\s]+:\d+ *:\d+ *\])")


def lines(stdout: str, stderr: str) -> tuple[Line, ...]:
    """Both streams line by line."""
    both = (("stdout", stdout), ("stderr", stderr))
    return tuple(
        Line(name, line)
        for name, stream in both
        for text in stream.split("\n")
        for line in STAMP.split(text)
    )


def exercised(ranks: Sequence[RankRecord]) -> frozenset[Peer]:
    """Peer classes between which a probe among all these ranks moved bytes."""
    per_host = Counter(rank.host for rank in ranks)
    found = set()
    if any(count > 1 for count in per_host.values()):
        found.add(Peer.ON_NODE)
    if len(per_host) > 1:
        found.add(Peer.OFF_NODE)
    return frozenset(found)


def placed(told: Iterable[Phase], there: frozenset[Peer]) -> tuple[Phase, ...]:
    """The phases with the peer class that the witness saw. The probe asks MPI who shares a node,
    and with MPIR_CVAR_NOLOCAL MPICH says nobody does; where all peers are of one class, its
    phases are between those."""
    if len(there) != 1:
        return tuple(told)
    return tuple(replace(phase, peer=peer) for phase in told for peer in there)


def phase_of(told: Sequence[Phase], kind: Kind, peer: Peer) -> Phase | None:
    """The phase in which bytes of this kind moved between peers of this class. A collective over
    several nodes moves those of both classes at once."""
    for phase in told:
        if phase.kind is kind and (phase.peer is peer or kind is Kind.COLLECTIVE):
            return phase
    return None


def expected(there: frozenset[Peer]) -> Counter[tuple[Kind, Peer]]:
    """The phases that a probe among such peers reports, each once."""
    found = Counter(product((Kind.P2P, Kind.ONE_SIDED), there))
    if there:
        found[Kind.COLLECTIVE, Peer.OFF_NODE if Peer.OFF_NODE in there else Peer.ON_NODE] = 1
    return found


def claims_of(signs: Iterable[Sign], kind: Kind, peer: Peer) -> set[str]:
    """What the signs of a lane say of the wire: "bytes" have to cross it, or "none" may."""
    due = (s for s in signs if s.proves and (s.kind, s.peer) == (kind, peer))
    return {sign.wire for sign in due if sign.wire}


def wire_says(phase: Phase | None, there: frozenset[Peer]) -> Wire | None:
    """What crossed the interfaces, held against the payload of each part. None: it cannot be told
    whose bytes they were, since a collective among peers of both classes moved both."""
    if phase is None or (phase.kind is Kind.COLLECTIVE and len(there) > 1):
        return None
    parts = _parts(phase)
    said = {_crossed(part) for part in parts}
    if len(said) == 1:
        return said.pop()
    crossed = (Wire.CARRIED, Wire.SPLIT)
    carried = any(_crossed(part) in crossed and part.bytes >= LONG for part in parts)
    return Wire.SPLIT if carried else Wire.UNCLEAR


def apart(phase: Phase) -> str:
    """What crossed of each part, where parts or hosts of a phase went unlike ways; else empty."""
    parts = _parts(phase)
    said = {_crossed(part) for part in parts}
    if len(said) == 1 and Wire.SPLIT not in said:
        return ""
    return ", ".join(f"{part.what} {part.sent} of {part.bytes} B" for part in parts)


def left_out(phase: Phase) -> bool:
    """Whether a host sent a part by another way than the others did."""
    return any(part.left_out for part in _parts(phase))


def drowned(phase: Phase, claims: Collection[str]) -> str:
    """The parts that other programs' traffic drowned, where these decide; else empty. They do
    for a network when all else crossed, for shared memory when a long one may have."""
    lost = [part for part in _parts(phase) if part.drowned]
    crossed = {_crossed(part) for part in _parts(phase) if not part.drowned}
    if "bytes" not in claims:
        lost = [part for part in lost if part.bytes >= LONG]
    elif crossed - {Wire.CARRIED}:
        return ""
    return ", ".join(
        f"{p.what} {p.sent} of {p.bytes} B crossed, {p.noise:.0f} B are always about" for p in lost
    )


def _parts(phase: Phase) -> tuple[Part, ...]:
    return phase.parts or (Part("all", phase.bytes, phase.wire),)


def _crossed(part: Part) -> Wire:
    if not part.wire or part.bytes <= 0:
        return Wire.UNREAD
    if part.drowned:
        return Wire.UNCLEAR
    if part.carried:
        return Wire.CARRIED
    if part.of_one:
        return Wire.SPLIT
    if part.sent <= max(QUIET * part.bytes, SLACK):
        return Wire.QUIET
    return Wire.SPLIT if part.by_own else Wire.UNCLEAR


@dataclass(frozen=True, slots=True)
class Seen:
    """One sign and the first line that it was seen in; `who` are the processes that said it: a
    sign's pattern names them in group `who`, or in `end` where it is said by whichever of two
    processes begins a connection between them."""

    sign: Sign
    lane: str
    line: str
    who: frozenset[str]
    each: bool  # processes name themselves, so every rank has to say it
    ends: bool  # or one end of every connection
    says: str = ""  # the line as a clause for a person

    @property
    def told(self) -> tuple[str, str]:
        """For a proof."""
        return self.line, self.says


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
        who.update(match[group] for group in ("who", "end") if group in pattern.groupindex)
    if first is None:
        return None
    lane = first["lane"] if "lane" in pattern.groupindex else sign.lane
    told = first["told"] if "told" in pattern.groupindex else lane
    ends = "end" in pattern.groupindex
    says = sign.says.replace("{lane}", told.strip())
    return Seen(sign, lane.strip(), first.string.strip(), frozenset(who), bool(who), ends, says)


def named(seen: Sequence[Seen]) -> str:
    """One name for what several signs tell: `lnx (shm+lo)`."""
    lanes = list(dict.fromkeys(s.lane for s in seen if s.sign.lane and s.lane))
    if not lanes:
        return ""
    return lanes[0] if len(lanes) == 1 else f"{lanes[0]} ({', '.join(lanes[1:])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """A proof with what a finding needs beside it."""

    proof: Proof
    beside: bool = False
    reason: str = ""  # why it is not proven
    refused: bool = False  # MPI itself said that it cannot
    untold: bool = False  # this MPI never says
    wire: Wire = Wire.UNREAD
    by_wire: bool = False  # it is the kernel's counters that contradict
    by_sockets: bool = False  # those of the ranks' own connections

    @property
    def mend(self) -> str:
        """What to do about a contradiction by the kernel's counters; empty without one."""
        if self.by_sockets:
            return "look at its settings: other programs' traffic was not counted"
        again = "prove it again on an idle host, then look at its settings"
        return again if self.by_wire else ""


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

    A sign of another lane decides, even of a probe that went no further; then silence; then the
    wire, None where it cannot be told whose bytes crossed it.
    """
    mine = [s for s in signs if (s.kind, s.peer) == (kind, peer)]
    against = _all_seen((s for s in mine if not s.proves), output)
    if against:
        proof = Proof(peer, kind, Standing.CONTRADICTED, named(against), *against[0].told)
        return Heard(proof=proof)
    silent = Proof(peer, kind, Standing.NO_EVIDENCE, "", "")
    if phase is None:
        return Heard(proof=silent, reason="the probe did not get that far")
    if not phase.ok:
        reason = f"MPI refused it: {phase.error or 'no reason given'}"
        return Heard(proof=silent, reason=reason, refused=True)
    due = [s for s in mine if s.proves]
    if not any(sign.lane for sign in due):
        return Heard(proof=silent, reason="this MPI does not say what carries it", untold=True)
    seen = _all_seen(due, output)
    if missing := _missing(due, seen, ranks):
        return Heard(proof=silent, reason=missing)
    proof = Proof(peer, kind, Standing.PROVEN, named(seen), *seen[0].told)
    beside = any(s.sign.beside for s in seen)
    heard = Heard(proof=proof, beside=beside, wire=wire or Wire.UNREAD)
    return _with_wire(heard, claims_of(signs, kind, peer), wire, phase)


def _all_seen(signs: Iterable[Sign], output: Sequence[Line]) -> list[Seen]:
    """The signs that were seen, those that name a lane first."""
    found = [seen for sign in signs if (seen := look(sign, output)) is not None]
    return sorted(found, key=lambda seen: not seen.sign.lane)


def _missing(due: Sequence[Sign], seen: Sequence[Seen], ranks: int) -> str:
    """Why signs do not suffice; empty if they do. Ranks meet in rings: of those that never begin a
    connection no two can be neighbours, so that they are half of a ring at the most."""
    for sign in due:
        if sign not in [s.sign for s in seen]:
            return f"the library did not say that {sign.says.replace('{lane}', sign.due)}"
    for one in seen:
        if one.each and len(one.who) < (ranks - ranks // 2 if one.ends else ranks):
            return f"{len(one.who)} of {ranks} ranks say that {one.says}"
    return ""


def _with_wire(heard: Heard, claims: set[str], wire: Wire | None, phase: Phase) -> Heard:
    """A lane that signs prove, held against the kernel's counters."""
    if wire is None or not claims:
        return heard
    proof = heard.proof
    silent = replace(proof, standing=Standing.NO_EVIDENCE, lane="", sign="", says="")
    if wire is Wire.UNREAD:
        reason = "the bytes of the interfaces could not be counted"
        return replace(heard, proof=silent, reason=reason)
    if noise := drowned(phase, claims):
        reason = f"other programs' traffic could be taken for the payload ({noise})"
        if why := cannot_tell(phase):
            reason += f", and the ranks' own connections cannot tell: {why}"
        return replace(heard, proof=silent, reason=reason)
    if "bytes" in claims and wire is Wire.CARRIED and (reason := disagreement(phase)):
        return replace(heard, proof=silent, reason=reason)
    over = ", ".join(name for name, sent in phase.aside if sent >= CARRIED * phase.bytes)
    own = any(part.own for part in _parts(phase))
    ways = "the ranks' own TCP connections" if own else "network interfaces"
    if "bytes" in claims and wire is not Wire.CARRIED and over:
        lane = f"{proof.lane} over {over}"
        reason = f"the payload was to cross {', '.join(dict(phase.wire))}, and crossed {over}"
    elif "bytes" in claims and left_out(phase):
        lane, who = f"not {proof.lane}", "rank" if own else "node"
        reason = f"a {who} sent hardly any of its share through {', '.join(dict(phase.wire))}"
    elif "bytes" in claims and wire is not Wire.CARRIED:
        lane = f"no network, so not {proof.lane}"
        reason = f"the library names a network, but the payload did not cross {ways}"
    elif "none" in claims and wire in (Wire.CARRIED, Wire.SPLIT):
        lane = f"a network, so not {proof.lane}"
        reason = f"the library names shared memory, but the payload crossed {ways}"
    else:
        return heard
    if parts := apart(phase):
        lane, reason = f"{proof.lane} in part", f"{reason} ({parts} crossed)"
    other = replace(proof, standing=Standing.CONTRADICTED, lane=lane)
    return replace(heard, proof=other, reason=reason, by_wire=True, by_sockets=own)
