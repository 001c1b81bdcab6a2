"""What really ran, and whether it is what was requested.

The probe moves a known number of bytes of each kind while the library is made to print what it
uses. This module compares that with the request: the exit code, the witness, the signs and the wire
all have to agree. LNX requested and ob1 run is an error that says what to do; silence is never a
pass.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from mpigraft.core.env import redact
from mpigraft.core.messages import Lines
from mpigraft.core.model import (
    Configuration,
    Evidence,
    Finding,
    Kind,
    Layout,
    Level,
    Peer,
    Proof,
    ProofStatus,
    RankRecord,
    Transport,
)
from mpigraft.core.process import Completed, clean
from mpigraft.evidence.issues import matching_issues
from mpigraft.evidence.traffic.attribution import attributed, own_bytes
from mpigraft.evidence.traffic.counters import (
    counters,
    due_counters,
    lane_interfaces,
    named_interfaces,
    uncounted,
)
from mpigraft.evidence.traffic.lanes import (
    TrafficFinding,
    Wire,
    claims_of,
    exercised,
    expected,
    judge_traffic,
    lines,
    phase_of,
    wire_state,
    with_peer_class,
)
from mpigraft.evidence.traffic.probe import ProbePhase, phases
from mpigraft.evidence.world.records import read_witness
from mpigraft.evidence.world.witness import check_launched
from mpigraft.knowledge import KnownIssue
from mpigraft.launch import LaunchResult
from mpigraft.native import Natives

__all__ = [
    "check_launched",
    "judge_evidence",
    "probe_program",
    "read_witness",
    "worth_repeating",
]

ALONE = "one rank alone"  # in the place of a lane
FORCE = "force the top layer (pml, netmod, fabrics), so that a mismatch aborts"
CHANCE = frozenset({"wire-contradiction", "no-evidence", "probe-incomplete"})
FAR = (Kind.P2P, Peer.OFF_NODE)
TIMED_OUT = 124  # the guard's exit code when the time limit passed
TAIL_LINES = 6  # of a failed probe's output, in the finding
RULE = re.compile(r"-{20,}")
CRASHES = frozenset(
    signal.Signals[name]
    for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGKILL")
)


def probe_program(natives: Natives, buffers: str = "host") -> tuple[str, ...]:
    """Return the program of a probe launch: it moves memory of the kind that will be measured."""
    return (str(natives.probe), "--buffers", buffers)


def judge_evidence(
    configuration: Configuration,
    layout: Layout,
    launched: LaunchResult,
) -> Evidence:
    """Judge what a probe launch proves of its configuration.

    `ok` needs all of it: the launch ended well, the witness recorded the requested world and
    libmpi, and every kind of traffic that moved bytes is proven. A kind that MPI refused (no
    windows over some providers) is a warning: nothing of it can be measured either. The same
    holds for a layout of one rank: only its start-up can be measured, with any transport.
    """
    alone = layout.ranks == 1
    transport = configuration.transport
    asked = transport.name if transport else ""
    completed, ranks = launched.completed, launched.ranks
    records = [rank for rank in ranks if rank.of_launch]
    reported = with_peer_class(phases(clean(completed.stdout)), exercised(records))
    counted_by = counters(clean(completed.stdout))
    traffic = _assess_all(configuration, records, completed, reported, counted_by)
    output = _context(configuration, completed)
    known = matching_issues(output, transport)
    findings = [
        *launched.nodes,
        *_launch_failure(completed, known),
        *check_launched(configuration, layout, launched),
        *_unreachable(transport, traffic),
        *_overridden(configuration),
        *_lane_findings(asked, traffic, known, ended=completed.ok, alone=alone),
        *_phase_findings(reported, records, ended=completed.ok),
        *uncounted((h.proof for h in traffic), reported, counted_by),
    ]
    p2p = [phase for phase in reported if phase.kind is Kind.P2P][-1:]  # of the farthest peers
    wire = p2p[0].wire if p2p else ()
    far = next(h.proof.lane for h in traffic if (h.proof.kind, h.proof.peer) == FAR)
    return Evidence(
        asked=asked,
        ran=_label(traffic, ended=completed.ok, alone=alone),
        proof=tuple(_redacted(h.proof) for h in traffic),
        findings=tuple(findings),
        ranks=tuple(records),
        wire=wire,
        counters=counted_by,
        named=(named_interfaces(configuration.rows, wire) or lane_interfaces(far, wire))
        if far
        else (),
        payload=p2p[0].bytes if p2p else 0,
        own=own_bytes(p2p[0]) if p2p else None,
        ok=not any(finding.level is Level.ERROR for finding in findings)
        and (alone or _all_proven(traffic)),
    )


def worth_repeating(evidence: Evidence) -> bool:
    """Return whether a probe may have failed by chance: bytes of another job on the wires, or a
    line that a launcher split. Neither happens twice; a real contradiction does, and a
    second probe has to prove everything that the first had to."""
    errors = {f.code for f in evidence.findings if f.level is Level.ERROR}
    return bool(errors) and errors <= CHANCE


def _all_proven(traffic: Sequence[TrafficFinding]) -> bool:
    """Return whether messages were proven and nothing that moved bytes is left unproven. Findings
    say why not; this is checked again here, so that a forgotten finding is not a pass."""
    moved = [h for h in traffic if h.proof.standing is not ProofStatus.NOT_EXERCISED]
    messages = [h for h in moved if h.proof.kind is Kind.P2P]
    unproven = [h for h in moved if h.proof.standing is not ProofStatus.PROVEN]
    excused = all(h.proof.kind is not Kind.P2P and (h.refused or h.unreported) for h in unproven)
    return bool(messages) and excused


def _assess_all(
    configuration: Configuration,
    ranks: Sequence[RankRecord],
    completed: Completed,
    reported: Sequence[ProbePhase],
    counted_by: Sequence[tuple[str, str]],
) -> tuple[TrafficFinding, ...]:
    """Return every kind between every class of peers; what nothing used is not exercised."""
    output = lines(clean(completed.stdout), clean(completed.stderr))
    signs = configuration.transport.signs if configuration.transport else ()
    classes, hosts = exercised(ranks), len({rank.host for rank in ranks})
    traffic = []
    for kind, peer in product(Kind, Peer):
        if peer not in classes:
            traffic.append(
                TrafficFinding(proof=Proof(peer, kind, ProofStatus.NOT_EXERCISED, "", ""))
            )
            continue
        phase = attributed(phase_of(reported, kind, peer), counted_by, claims_of(signs, kind, peer))

        def judge_phase(due: ProbePhase | None) -> TrafficFinding:
            wire = wire_state(due, classes)
            return judge_traffic((kind, peer), signs, output, due, ranks=len(ranks), wire=wire)  # noqa: B023

        names = named_interfaces(configuration.rows, phase.wire) if phase else ()
        finding = judge_phase(phase and due_counters(phase, names, hosts))
        if (
            phase
            and not names
            and (names_of_lane := lane_interfaces(finding.proof.lane, phase.wire))
        ):
            finding = judge_phase(due_counters(phase, names_of_lane, hosts))
        traffic.append(finding)
    return tuple(traffic)


def _label(traffic: Sequence[TrafficFinding], *, ended: bool, alone: bool) -> str:
    """Name the lanes that ran; empty for a launch that failed before another lane was printed."""
    if ended:
        return lane_label(traffic) or (ALONE if alone else "not known")
    against = any(h.proof.standing is ProofStatus.CONTRADICTED for h in traffic)
    return lane_label(traffic) if against else ""


def lane_label(traffic: Sequence[TrafficFinding]) -> str:
    """Return the label of what ran: one lane, or each kind's where they differ; empty: nothing did.

    `lnx (shm+lo)`, or `p2p lnx (shm+lo), one-sided sm, collective lnx (shm+lo)`.
    """
    proofs = [h.proof for h in traffic if h.proof.standing is not ProofStatus.NOT_EXERCISED]
    by_kind: dict[str, list[str]] = {}
    for proof in proofs:
        by_kind.setdefault(proof.kind, []).append(proof.lane)
    if not any(proof.lane for proof in proofs):
        return ""
    words = {kind: " and ".join(dict.fromkeys(filter(None, own))) for kind, own in by_kind.items()}
    words = {kind: lane or "not known" for kind, lane in words.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{kind} {lane}" for kind, lane in words.items())


def _context(configuration: Configuration, completed: Completed) -> str:
    """Return the output with what was set before it: a silent fallback prints nothing of its
    own."""
    settings = "\n".join(f"{row.name}={row.value}" for row in configuration.rows)
    return f"{settings}\n{completed.text()}"


def _launch_failure(completed: Completed, known: Sequence[KnownIssue]) -> list[Finding]:
    """Report a probe that did not end by itself with exit code 0."""
    if completed.ok:
        return []
    text = redact(clean(completed.stderr) or clean(completed.stdout))
    output = Lines("".join(f"\n{line}" for line in relevant_lines(text)))
    if completed.timed_out or completed.code == TIMED_OUT:
        finding = Finding.of("probe-timeout", seconds=completed.wall_s, output=output)
    elif (number := _crash(completed.code)) is not None:
        finding = Finding.of("probe-crash", signal=number.name, output=output)
    else:
        finding = Finding.of("probe-failed", exit_code=completed.code, output=output)
    return [_explained(finding, known)]


def _explained(finding: Finding, known: Sequence[KnownIssue]) -> Finding:
    """Name the known issue that explains a finding, if there is one."""
    if not known:
        return finding
    why, fix = _explanation(known)
    return replace(finding, code=known[0].id, why=why, fix=fix)


def _crash(code: int) -> signal.Signals | None:
    """Return the signal that a program died by: minus its number, or 128 and its number from a
    launcher. SIGTERM is not one: launchers send it to the other ranks when one of them gives up."""
    return next((number for number in CRASHES if code in (-number, 128 + number)), None)


def relevant_lines(output: str) -> list[str]:
    """Select the most relevant lines of a failed program: the first block between Open MPI's
    rules, else the last lines."""
    text = [line.strip() for line in output.splitlines() if line.strip()]
    rules = [i for i, line in enumerate(text) if RULE.fullmatch(line)]
    if len(rules) >= 2:
        return text[rules[0] + 1 : rules[1]][:TAIL_LINES]
    return text[-TAIL_LINES:]


def _explanation(known: Sequence[KnownIssue]) -> tuple[str, str]:
    """Return why, and what to do, by the best known issue; empty without one."""
    if not known:
        return "", ""
    issue = known[0]
    return f"{issue.id}: {issue.symptom}; {issue.cause}", issue.fix


def _lane_findings(
    asked: str,
    traffic: Sequence[TrafficFinding],
    known: Sequence[KnownIssue],
    *,
    ended: bool,
    alone: bool = False,
) -> list[Finding]:
    """Return findings about what ran instead, what is not proven, and what took a lane of its own.
    `ended`: the probe ended well; of one that did not, only its end is reported. `alone`: one rank
    was requested."""
    findings = _mismatches(asked, traffic, known)
    for item in traffic:
        proof = item.proof
        kind = f"{proof.kind} {proof.peer}"
        if proof.standing is ProofStatus.NO_EVIDENCE and ended and not item.refused:
            excused = item.unreported and proof.kind is not Kind.P2P
            level = Level.WARNING if excused else Level.ERROR
            findings.append(
                Finding.of(
                    "no-evidence",
                    level=level,
                    where=kind,
                    requested=asked,
                    reason=item.reason,
                    advice=_explanation(known)[1],
                )
            )
        if proof.standing is not ProofStatus.PROVEN:
            continue
        if item.unrequested:
            findings.append(Finding.of("lane-other", where=kind, lane=proof.lane, requested=asked))
        if item.wire is Wire.UNCLEAR:
            findings.append(Finding.of("wire-unclear", where=kind))
    if ended and not any(h.proof.standing is not ProofStatus.NOT_EXERCISED for h in traffic):
        level = Level.WARNING if alone else Level.ERROR
        findings.append(Finding.of("not-exercised", level=level))
    return findings


def _overridden(configuration: Configuration) -> list[Finding]:
    """Report settings of the user that replace what forces the transport."""
    forced: dict[str, str | None] = {}
    findings = []
    for row in configuration.rows:
        if row.source != "user":
            forced[row.name] = row.value
        elif row.name in forced and forced[row.name] != row.value:
            was = forced[row.name]
            findings.append(
                Finding.of("setting-overrides", name=row.name, value=row.value, was=was)
            )
    return findings


def _mismatches(
    asked: str, traffic: Sequence[TrafficFinding], known: Sequence[KnownIssue]
) -> list[Finding]:
    """Return one error for each lane that ran instead, naming every kind that took it."""
    kinds: dict[tuple[str, str, str, str], list[str]] = {}
    for item in traffic:
        if item.proof.standing is ProofStatus.CONTRADICTED:
            parts = (item.reason, item.proof.says and f"the library says that {item.proof.says}")
            mismatch = (item.proof.lane, "; ".join(filter(None, parts)), item.proof.sign, item.fix)
            kinds.setdefault(mismatch, []).append(f"{item.proof.kind} {item.proof.peer}")
    findings = []
    for (lane, reason, line, of_wire), where in kinds.items():
        finding = Finding.of(
            "wire-contradiction" if of_wire else "transport-mismatch",
            where=redact(", ".join(where)),
            requested=redact(asked),
            lane=redact(lane),
            reason=redact(reason),
            advice=of_wire or FORCE,
            evidence=(redact(line),) if line else (),
        )
        explained = _explained(finding, known)
        findings.append(replace(finding, why=explained.why) if of_wire else explained)
    return findings


def _unreachable(transport: Transport | None, traffic: Sequence[TrafficFinding]) -> list[Finding]:
    """Peers of a class that the transport is not made for."""
    reachable = transport.peers if transport else ()
    exercised_classes = {
        h.proof.peer for h in traffic if h.proof.standing is not ProofStatus.NOT_EXERCISED
    }
    name = transport.name if transport else "no transport"
    return [
        Finding.of("peer-class", name=name, peer=peer)
        for peer in sorted(exercised_classes - set(reachable))
    ]


def _phase_findings(
    reported: Sequence[ProbePhase], ranks: Sequence[RankRecord], *, ended: bool
) -> list[Finding]:
    """Return findings about what MPI refused, and about a probe that reports less than it
    should."""
    findings = []
    for phase in reported:
        if not phase.ok:
            level = Level.ERROR if phase.kind is Kind.P2P else Level.WARNING
            findings.append(
                Finding.of(
                    "kind-refused",
                    level=level,
                    where=f"{phase.kind} {phase.peer}",
                    reason=phase.error or "no reason given",
                )
            )
    counts = Counter((phase.kind, phase.peer) for phase in reported)
    if ended and counts != expected(exercised(ranks)):
        findings.append(Finding.of("probe-incomplete"))
    return findings


def _redacted(proof: Proof) -> Proof:
    lane, sign, says = redact(proof.lane), redact(proof.sign), redact(proof.says)
    return replace(proof, lane=lane, sign=sign, says=says)
