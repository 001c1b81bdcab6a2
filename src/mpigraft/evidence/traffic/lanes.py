"""Prove each kind of traffic from a probe's output: the logic of a proof, and nothing else.

Two independent sources count. The library prints which lane it took
(signs); the kernel counts the bytes that left (the wire). A lane is proven when every sign of it
was printed, by every rank where ranks print it themselves, no sign of another was, and the wire
does not contradict. Silence is no evidence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product

from mpigraft.core.model import Kind, Peer, Proof, ProofStatus, RankRecord, Sign
from mpigraft.evidence.traffic.attribution import disagreement, why_undecided
from mpigraft.evidence.traffic.probe import CARRIED, LONG, ProbePhase, Transfer
from mpigraft.evidence.traffic.sockets import QUIET, SLACK

OWN_WAYS = "the ranks' own TCP connections"


@dataclass(frozen=True, slots=True)
class OutputLine:
    stream: str  # stdout, stderr
    text: str


class Wire(StrEnum):
    """What the kernel's counters show of one phase."""

    CARRIED = "carried"
    QUIET = "quiet"
    SPLIT = "split"  # a long part crossed and another did not, or what one host of several sends
    UNCLEAR = "unclear"  # other traffic, or a part of the payload
    UNREAD = "unread"


# UCX begins a line with time and process. A launcher that passes on the output of two ranks may
# put it right behind what the other had not yet ended: seen with Open MPI 5.0.7 of Debian 13.
STAMP = re.compile(r"(?<!^)(?=\[\d+\.\d{6}\] \[[^\[\]\s]+:\d+ *:\d+ *\])")


def lines(stdout: str, stderr: str) -> tuple[OutputLine, ...]:
    """Return both streams line by line."""
    both = (("stdout", stdout), ("stderr", stderr))
    return tuple(
        OutputLine(name, line)
        for name, stream in both
        for text in stream.split("\n")
        for line in STAMP.split(text)
    )


def exercised(ranks: Sequence[RankRecord]) -> frozenset[Peer]:
    """Return the peer classes between which a probe among all these ranks moved bytes."""
    per_host = Counter(rank.host for rank in ranks)
    classes = set()
    if any(count > 1 for count in per_host.values()):
        classes.add(Peer.ON_NODE)
    if len(per_host) > 1:
        classes.add(Peer.OFF_NODE)
    return frozenset(classes)


def with_peer_class(
    phases: Iterable[ProbePhase], classes: frozenset[Peer]
) -> tuple[ProbePhase, ...]:
    """Return the phases with the peer class that the witness saw. The probe asks MPI who shares a
    node, and with MPIR_CVAR_NOLOCAL MPICH says nobody does; where all peers are of one class, its
    phases are between those."""
    if len(classes) != 1:
        return tuple(phases)
    return tuple(replace(phase, peer=peer) for phase in phases for peer in classes)


def phase_of(phases: Sequence[ProbePhase], kind: Kind, peer: Peer) -> ProbePhase | None:
    """Return the phase in which bytes of this kind moved between peers of this class. A collective
    over several nodes moves those of both classes at once."""
    for phase in phases:
        if phase.kind is kind and (phase.peer is peer or kind is Kind.COLLECTIVE):
            return phase
    return None


def expected(classes: frozenset[Peer]) -> Counter[tuple[Kind, Peer]]:
    """Return the phases that a probe among such peers reports, each once."""
    phases = Counter(product((Kind.P2P, Kind.ONE_SIDED), classes))
    if classes:
        phases[Kind.COLLECTIVE, Peer.OFF_NODE if Peer.OFF_NODE in classes else Peer.ON_NODE] = 1
    return phases


def claims_of(signs: Iterable[Sign], kind: Kind, peer: Peer) -> set[str]:
    """Return what the signs of a lane require of the wire: "bytes" must cross it, or "none" may."""
    due = (s for s in signs if s.proves and (s.kind, s.peer) == (kind, peer))
    return {sign.wire for sign in due if sign.wire}


def wire_state(phase: ProbePhase | None, classes: frozenset[Peer]) -> Wire | None:
    """Compare what crossed the interfaces with the payload of each part. None: it is not known
    whose bytes they were, since a collective among peers of both classes moved both."""
    if phase is None or (phase.kind is Kind.COLLECTIVE and len(classes) > 1):
        return None
    parts = _parts(phase)
    states = {_part_state(part) for part in parts}
    if len(states) == 1:
        return states.pop()
    crossed = (Wire.CARRIED, Wire.SPLIT)
    carried = any(_part_state(part) in crossed and part.bytes >= LONG for part in parts)
    return Wire.SPLIT if carried else Wire.UNCLEAR


def differing_parts(phase: ProbePhase) -> str:
    """Describe what crossed of each part, where parts or hosts of a phase went unlike ways; else
    empty."""
    parts = _parts(phase)
    states = {_part_state(part) for part in parts}
    if len(states) == 1 and Wire.SPLIT not in states:
        return ""
    return ", ".join(f"{part.what} {part.sent} of {part.bytes} B" for part in parts)


def left_out(phase: ProbePhase) -> bool:
    """Return whether a host sent a part by another way than the others did."""
    return any(part.left_out for part in _parts(phase))


def drowned_parts(phase: ProbePhase, claims: Collection[str]) -> str:
    """Return the parts that other programs' traffic drowned, where these decide; else empty. They
    do for a network when all else crossed, for shared memory when a long one may have."""
    parts = [part for part in _parts(phase) if part.drowned]
    crossed = {_part_state(part) for part in _parts(phase) if not part.drowned}
    if "bytes" not in claims:
        parts = [part for part in parts if part.bytes >= LONG]
    elif crossed - {Wire.CARRIED}:
        return ""
    return ", ".join(
        f"{p.what} {p.sent} of {p.bytes} B crossed, {p.noise:.0f} B are always about" for p in parts
    )


def _parts(phase: ProbePhase) -> tuple[Transfer, ...]:
    return phase.parts or (Transfer("all", phase.bytes, phase.wire),)


def _part_state(part: Transfer) -> Wire:
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
class PrintedSign:
    """One sign and the first line that has it; `who` are the processes that printed it: a sign's
    pattern names them in group `who`, or in `end` where it is printed by whichever of two processes
    begins a connection between them."""

    sign: Sign
    lane: str
    line: str
    who: frozenset[str]
    each: bool  # processes name themselves, so every rank has to print it
    ends: bool  # or one end of every connection
    says: str = ""  # the line as a clause

    @property
    def quoted(self) -> tuple[str, str]:
        """For a proof."""
        return self.line, self.says


def find_sign(sign: Sign, output: Iterable[OutputLine]) -> PrintedSign | None:
    """Find where a sign was printed; None: nowhere."""
    pattern = re.compile(sign.pattern)
    first: re.Match[str] | None = None
    processes: set[str] = set()
    for line in output:
        if sign.where not in ("any", line.stream):
            continue
        if (match := pattern.search(line.text)) is None:
            continue
        first = first or match
        processes.update(match[group] for group in ("who", "end") if group in pattern.groupindex)
    if first is None:
        return None
    lane = first["lane"] if "lane" in pattern.groupindex else sign.lane
    printed = first["told"] if "told" in pattern.groupindex else lane
    ends = "end" in pattern.groupindex
    says = sign.says.replace("{lane}", printed.strip())
    return PrintedSign(
        sign, lane.strip(), first.string.strip(), frozenset(processes), bool(processes), ends, says
    )


def lane_name(printed: Sequence[PrintedSign]) -> str:
    """Return one name for the lanes of several signs: `lnx (shm+lo)`."""
    lanes = list(dict.fromkeys(s.lane for s in printed if s.sign.lane and s.lane))
    if not lanes:
        return ""
    return lanes[0] if len(lanes) == 1 else f"{lanes[0]} ({', '.join(lanes[1:])})"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrafficFinding:
    """A proof with what a finding needs beside it."""

    proof: Proof
    unrequested: bool = False  # not the transport's own: the wire cannot refuse it
    reason: str = ""  # why it is not proven
    refused: bool = False  # MPI itself said that it cannot
    unreported: bool = False  # this MPI never says
    wire: Wire = Wire.UNREAD
    by_wire: bool = False  # it is the kernel's counters that contradict
    by_sockets: bool = False  # those of the ranks' own connections
    astray: bool = False  # the payload crossed another interface than was due

    @property
    def fix(self) -> str:
        """What to do about a contradiction by the kernel's counters; empty without one."""
        if self.astray:
            return (
                "type `ip route get ADDRESS` on a node, with the other node's address on that "
                "interface: the kernel chooses the way, so correct its route or use "
                "another interface"
            )
        if self.by_sockets:
            return "check its settings: other programs' traffic was not counted"
        again = "run it again on an idle host, then check its settings"
        return again if self.by_wire else ""


def judge_traffic(
    traffic: tuple[Kind, Peer],
    signs: Sequence[Sign],
    output: Sequence[OutputLine],
    phase: ProbePhase | None,
    *,
    ranks: int,
    wire: Wire | None,
) -> TrafficFinding:
    """Assess one kind of traffic between peers of one class.

    A sign of another lane decides, even of a probe that went no further; then silence; then the
    wire, None where it is unknown whose bytes crossed it.
    """
    kind, peer = traffic
    own = [s for s in signs if (s.kind, s.peer) == traffic]
    against = _printed((s for s in own if not s.proves), output)
    if against:
        proof = Proof(peer, kind, ProofStatus.CONTRADICTED, lane_name(against), *against[0].quoted)
        return TrafficFinding(proof=proof)
    silent = Proof(peer, kind, ProofStatus.NO_EVIDENCE, "", "")
    if phase is None:
        return TrafficFinding(proof=silent, reason="the probe ended before it")
    if not phase.ok:
        reason = f"MPI refused it: {phase.error or 'no reason given'}"
        return TrafficFinding(proof=silent, reason=reason, refused=True)
    due = [s for s in own if s.proves]
    if not any(sign.lane for sign in due):
        return TrafficFinding(
            proof=silent, reason="this MPI does not print what carries it", unreported=True
        )
    printed = _printed(due, output)
    if missing := _missing(due, printed, ranks):
        return TrafficFinding(proof=silent, reason=missing)
    proof = Proof(peer, kind, ProofStatus.PROVEN, lane_name(printed), *printed[0].quoted)
    unrequested = any(s.sign.unrequested for s in printed)
    finding = TrafficFinding(proof=proof, unrequested=unrequested, wire=wire or Wire.UNREAD)
    return _with_wire(finding, claims_of(signs, kind, peer), wire, phase)


def _printed(signs: Iterable[Sign], output: Sequence[OutputLine]) -> list[PrintedSign]:
    """Return the signs that were printed, those that name a lane first."""
    printed = [sign_line for sign in signs if (sign_line := find_sign(sign, output)) is not None]
    return sorted(printed, key=lambda sign_line: not sign_line.sign.lane)


def _missing(due: Sequence[Sign], printed: Sequence[PrintedSign], ranks: int) -> str:
    """Return why signs do not suffice; empty if they do. Ranks meet in rings: of those that never
    begin a connection no two can be neighbours, so that they are half of a ring at the most."""
    for sign in due:
        if sign not in [s.sign for s in printed]:
            return f"the library did not print that {sign.says.replace('{lane}', sign.due)}"
    for sign_line in printed:
        if sign_line.each and len(sign_line.who) < (
            ranks - ranks // 2 if sign_line.ends else ranks
        ):
            return f"{len(sign_line.who)} of {ranks} ranks say that {sign_line.says}"
    return ""


def _with_wire(
    finding: TrafficFinding, claims: set[str], wire: Wire | None, phase: ProbePhase
) -> TrafficFinding:
    """Compare a lane that signs prove with the kernel's counters."""
    if wire is None or not claims:
        return finding
    if finding.unrequested:
        return _unrequested(finding, claims, wire, phase)
    proof = finding.proof
    silent = replace(proof, standing=ProofStatus.NO_EVIDENCE, lane="", sign="", says="")
    if wire is Wire.UNREAD:
        reason = "the bytes of the interfaces could not be counted"
        return replace(finding, proof=silent, reason=reason)
    if noise := drowned_parts(phase, claims):
        reason = f"other programs' traffic could be taken for the payload ({noise})"
        if why := why_undecided(phase):
            reason += f", and the ranks' own connections cannot tell: {why}"
        return replace(finding, proof=silent, reason=reason)
    if "bytes" in claims and wire is Wire.CARRIED and (reason := disagreement(phase)):
        return replace(finding, proof=silent, reason=reason)
    over = ", ".join(name for name, sent in phase.aside if sent >= CARRIED * phase.bytes)
    own = any(part.own for part in _parts(phase))
    ways = OWN_WAYS if own else "network interfaces"
    astray = "bytes" in claims and wire is not Wire.CARRIED and bool(over)
    if astray:
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
        return finding
    if parts := differing_parts(phase):
        lane, reason = f"{proof.lane} in part", f"{reason} ({parts} crossed)"
    other = replace(proof, standing=ProofStatus.CONTRADICTED, lane=lane)
    return replace(finding, proof=other, reason=reason, by_wire=True, by_sockets=own, astray=astray)


def _unrequested(
    finding: TrafficFinding, claims: set[str], wire: Wire, phase: ProbePhase
) -> TrafficFinding:
    """Name a lane that is not the transport's own by where its bytes went. A window's component
    does not say: osc/rdma uses any BTL that reaches the peers. Where the transport allows its bytes
    on the wire ("bytes") and they crossed, the lane is the transport's after all."""
    if wire not in (Wire.CARRIED, Wire.SPLIT):
        return finding
    if "bytes" in claims and wire is Wire.CARRIED:
        return replace(finding, unrequested=False)
    ways = OWN_WAYS if any(part.own for part in _parts(phase)) else "a network"
    lane = f"{finding.proof.lane} over {ways}"
    return replace(finding, proof=replace(finding.proof, lane=lane))
