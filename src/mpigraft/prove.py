"""What really ran, and whether it is what was asked for.

The probe moves a known number of bytes of each kind while the library is made to say what it
uses. `judge` holds that against the wish: the exit code, the witness, the signs and the wire all
have to agree. Asked for LNX and got ob1 is an error with the mend; silence is never a pass.
"""

from __future__ import annotations

import re
import signal
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from mpigraft.attribution import attributed, own_bytes
from mpigraft.env import redact
from mpigraft.knowledge.loader import matching_issues
from mpigraft.lanes import (
    Heard,
    Wire,
    claims_of,
    exercised,
    expected,
    hear,
    lines,
    phase_of,
    placed,
    wire_says,
)
from mpigraft.model import (
    NOWHERE,
    Configuration,
    Evidence,
    Finding,
    Kind,
    KnownIssue,
    Layout,
    Level,
    Peer,
    Placement,
    Proof,
    RankRecord,
    Standing,
    Transport,
)
from mpigraft.natives import Natives
from mpigraft.phases import Phase, phases
from mpigraft.records import UNREAD, read_witness
from mpigraft.run import Completed, clean
from mpigraft.wires import counters, held, in_lane, named, unseen
from mpigraft.witness import check_witness

__all__ = [
    "check_witness",
    "judge",
    "probe_program",
    "read_witness",
    "worth_repeating",
]

MISLABELLED = "values would carry the name of a transport that did not run"
WIRE_CODE = "wire-contradiction"  # the kernel counted what the library does not say
ALONE = "one rank alone"  # in the place of a lane
CHANCE = frozenset({WIRE_CODE, "no-evidence", "probe-incomplete"})
FAR = (Kind.P2P, Peer.OFF_NODE)
TIMED_OUT = 124  # the guard's exit code when the time limit passed
TAIL_LINES = 6  # of a failed probe's output, in the finding
RULE = re.compile(r"-{20,}")
CRASHES = frozenset(
    signal.Signals[name]
    for name in ("SIGSEGV", "SIGABRT", "SIGBUS", "SIGFPE", "SIGILL", "SIGSYS", "SIGKILL")
)


def probe_program(natives: Natives, buffers: str = "host") -> tuple[str, ...]:
    """The program of a probe launch: it moves memory of the kind that will be measured."""
    return (str(natives.bench), "--probe", "--buffers", buffers)


def judge(
    configuration: Configuration,
    layout: Layout,
    completed: Completed,
    ranks: Sequence[RankRecord],
    placement: Placement = NOWHERE,
    hosts: Sequence[str] = (),
    nodes: Sequence[Finding] = (),
) -> Evidence:
    """What a probe launch proves of its configuration.

    `ok` needs all of it: the launch ended well, the witness saw the world and the libmpi that were
    asked for, and every kind of traffic that moved bytes is proven. A kind that MPI refused (no
    windows over some providers) is a warning: nothing of it can be measured either. So it is for
    a layout of one rank: only what starting costs can be measured of it, by any transport.
    """
    alone = layout.ranks == 1
    transport = configuration.transport
    asked = transport.name if transport else ""
    good = [rank for rank in ranks if rank.rank != UNREAD]
    told = placed(phases(clean(completed.stdout)), exercised(good))
    who = counters(clean(completed.stdout))
    heard = _hear_all(transport, good, completed, told, who)
    output = _context(configuration, completed)
    known = matching_issues(output, transport)
    findings = [
        *nodes,
        *_ending(completed, known),
        *check_witness(configuration, layout, ranks, placement, hosts, ended=completed.ok),
        *_unreachable(transport, heard),
        *_overridden(configuration),
        *_of_lanes(asked, heard, known, ended=completed.ok, alone=alone),
        *_of_phases(told, good, ended=completed.ok),
        *unseen((h.proof for h in heard), told, who),
    ]
    p2p = [phase for phase in told if phase.kind is Kind.P2P][-1:]  # of the farthest peers
    wire = p2p[0].wire if p2p else ()
    far = next(h.proof.lane for h in heard if (h.proof.kind, h.proof.peer) == FAR)
    return Evidence(
        asked=asked,
        ran=_label(heard, ended=completed.ok, alone=alone),
        proof=tuple(_redacted(h.proof) for h in heard),
        findings=tuple(findings),
        ranks=tuple(good),
        wire=wire,
        counters=who,
        named=(named(transport, wire) or in_lane(far, wire)) if far else (),
        payload=p2p[0].bytes if p2p else 0,
        own=own_bytes(p2p[0]) if p2p else None,
        ok=not any(finding.level is Level.ERROR for finding in findings)
        and (alone or _all_proven(heard)),
    )


def worth_repeating(evidence: Evidence) -> bool:
    """Whether chance may be all that speaks against a probe: bytes of another job on the wires, or
    a line that a launcher cut in two. Neither comes twice; a real contradiction does, and a
    second probe has to prove everything as the first had to."""
    errors = {f.code for f in evidence.findings if f.level is Level.ERROR}
    return bool(errors) and errors <= CHANCE


def _all_proven(heard: Sequence[Heard]) -> bool:
    """Whether messages were proven and nothing that moved bytes is left unproven. Findings say
    why not; this says it again by itself, so that a finding forgotten is not a pass."""
    moved = [h for h in heard if h.proof.standing is not Standing.NOT_EXERCISED]
    messages = [h for h in moved if h.proof.kind is Kind.P2P]
    left = [h for h in moved if h.proof.standing is not Standing.PROVEN]
    excused = all(h.proof.kind is not Kind.P2P and (h.refused or h.untold) for h in left)
    return bool(messages) and excused


def _hear_all(
    transport: Transport | None,
    ranks: Sequence[RankRecord],
    completed: Completed,
    told: Sequence[Phase],
    who: Sequence[tuple[str, str]],
) -> tuple[Heard, ...]:
    """Every kind between every class of peers; what nothing used is not exercised."""
    output = lines(clean(completed.stdout), clean(completed.stderr))
    signs = transport.signs if transport else ()
    there, hosts = exercised(ranks), len({rank.host for rank in ranks})
    found = []
    for kind, peer in product(Kind, Peer):
        if peer not in there:
            found.append(Heard(proof=Proof(peer, kind, Standing.NOT_EXERCISED, "", "")))
            continue
        phase = attributed(phase_of(told, kind, peer), who, claims_of(signs, kind, peer))

        def heard(due: Phase | None) -> Heard:
            wire = wire_says(due, there)
            return hear(kind, peer, signs, output, due, ranks=len(ranks), wire=wire)  # noqa: B023

        names = named(transport, phase.wire) if phase else ()
        one = heard(phase and held(phase, names, hosts))
        if phase and not names and (spoken := in_lane(one.proof.lane, phase.wire)):
            one = heard(held(phase, spoken, hosts))
        found.append(one)
    return tuple(found)


def _label(heard: Sequence[Heard], *, ended: bool, alone: bool) -> str:
    """What ran; empty for a launch that failed on its way without another lane having shown."""
    if ended:
        return ran(heard) or (ALONE if alone else "not known")
    against = any(h.proof.standing is Standing.CONTRADICTED for h in heard)
    return ran(heard) if against else ""


def ran(heard: Sequence[Heard]) -> str:
    """The label of what ran: one lane, or each kind's where they differ; empty: nothing did.

    `lnx (shm+lo)`, or `p2p lnx (shm+lo), one-sided sm, collective lnx (shm+lo)`.
    """
    there = [h.proof for h in heard if h.proof.standing is not Standing.NOT_EXERCISED]
    by_kind: dict[str, list[str]] = {}
    for proof in there:
        by_kind.setdefault(proof.kind, []).append(proof.lane)
    if not any(proof.lane for proof in there):
        return ""
    words = {kind: " and ".join(dict.fromkeys(filter(None, own))) for kind, own in by_kind.items()}
    words = {kind: lane or "not known" for kind, lane in words.items()}
    if len(set(words.values())) == 1:
        return next(iter(words.values()))
    return ", ".join(f"{kind} {lane}" for kind, lane in words.items())


def _context(configuration: Configuration, completed: Completed) -> str:
    """The output with what was set before it: a silent fallback prints nothing of its own."""
    transport = configuration.transport
    rows = transport.env if transport else ()
    settings = "\n".join(f"{row.name}={row.value}" for row in rows)
    return f"{settings}\n{completed.text()}"


def _ending(completed: Completed, known: Sequence[KnownIssue]) -> list[Finding]:
    """What is to be said of a probe that did not end by itself with exit code 0."""
    if completed.ok:
        return []
    if completed.timed_out or completed.code == TIMED_OUT:
        code, seen = "probe-timeout", f"the probe still ran after {completed.wall_s:.0f} s"
    elif (number := _crash(completed.code)) is not None:
        code, seen = "probe-crash", f"the probe died by {number.name}"
    else:
        code, seen = "probe-failed", f"the probe ended with exit code {completed.code}"
    said = redact(clean(completed.stderr) or clean(completed.stdout))
    why, mend = _known(known)
    seen = "\n".join([seen, *telling(said)])
    return [Finding(Level.ERROR, known[0].id if known else code, seen, why, mend)]


def _crash(code: int) -> signal.Signals | None:
    """The signal that a program died by: minus its number, or 128 and its number from a launcher.
    SIGTERM is not one: launchers send it to the other ranks when one of them gives up."""
    return next((number for number in CRASHES if code in (-number, 128 + number)), None)


def telling(output: str) -> list[str]:
    """The lines of a failed program that say most: the first block between Open MPI's rules, else
    the last lines."""
    said = [line.strip() for line in output.splitlines() if line.strip()]
    rules = [i for i, line in enumerate(said) if RULE.fullmatch(line)]
    if len(rules) >= 2:
        return said[rules[0] + 1 : rules[1]][:TAIL_LINES]
    return said[-TAIL_LINES:]


def _known(known: Sequence[KnownIssue]) -> tuple[str, str]:
    """Why and mend in the words of the best known issue; empty without one."""
    if not known:
        return "", ""
    issue = known[0]
    return f"{issue.id}: {issue.symptom}; {issue.cause}", issue.fix


def _of_lanes(
    asked: str,
    heard: Sequence[Heard],
    known: Sequence[KnownIssue],
    *,
    ended: bool,
    alone: bool = False,
) -> list[Finding]:
    """Findings about what ran instead, what is not proven, and what took a lane of its own.
    `ended`: the probe ended well; of one that did not, its end is said and not what it lacks.
    `alone`: one rank was asked for."""
    found = _mismatches(asked, heard, known)
    for one in heard:
        proof = one.proof
        what = f"{proof.kind} {proof.peer}"
        if proof.standing is Standing.NO_EVIDENCE and ended and not one.refused:
            excused = one.untold and proof.kind is not Kind.P2P
            level = Level.WARNING if excused else Level.ERROR
            why = "silence is no evidence: another lane may have carried the bytes"
            seen = f"{what}: no evidence that {asked} ran: {one.reason}"
            found.append(Finding(level, "no-evidence", seen, why, _known(known)[1]))
        if proof.standing is not Standing.PROVEN:
            continue
        if one.beside:
            seen = f"{what} went by {proof.lane}, not by {asked}"
            why = "this MPI moves these bytes otherwise, whatever the transport"
            found.append(Finding(Level.WARNING, "lane-beside", seen, why))
        if one.wire is Wire.UNCLEAR:
            seen = f"{what}: interfaces carried other traffic, or a part of the payload"
            mend = "prove it again on an idle host"
            found.append(Finding(Level.WARNING, "wire-unclear", seen, "", mend))
    if ended and not any(h.proof.standing is not Standing.NOT_EXERCISED for h in heard):
        seen = "no rank had another to send to, so nothing of the transport was exercised"
        level = Level.WARNING if alone else Level.ERROR
        found.append(Finding(level, "not-exercised", seen, "", "use two ranks or more"))
    return found


def _overridden(configuration: Configuration) -> list[Finding]:
    """Settings of the user that take the place of what forces the transport."""
    forced: dict[str, str | None] = {}
    found = []
    for row in configuration.transport.env if configuration.transport else ():
        if row.source != "user":
            forced[row.name] = row.value
        elif row.name in forced and forced[row.name] != row.value:
            seen = f"--set {row.name}={row.value} replaces {forced[row.name]}, which forces it"
            mend = "leave it out, or ask for the transport that it selects"
            found.append(Finding(Level.WARNING, "setting-overrides", seen, "", mend))
    return found


def _mismatches(asked: str, heard: Sequence[Heard], known: Sequence[KnownIssue]) -> list[Finding]:
    """One error for each lane that ran instead, naming every kind that took it."""
    kinds: dict[tuple[str, str, str, str], list[str]] = {}
    for one in heard:
        if one.proof.standing is Standing.CONTRADICTED:
            parts = (one.reason, one.proof.says and f"the library says that {one.proof.says}")
            told = (one.proof.lane, "; ".join(filter(None, parts)), one.proof.sign, one.mend)
            kinds.setdefault(told, []).append(f"{one.proof.kind} {one.proof.peer}")
    why, mend = _known(known)
    found = []
    for (lane, reason, line, of_wire), what in kinds.items():
        seen = redact(f"{', '.join(what)}: asked for {asked}, ran {lane}: {reason}")
        code = known[0].id if known else "transport-mismatch"
        advice = mend or "force the top layer (pml, netmod, fabrics), so that a mismatch aborts"
        if of_wire:
            code, advice = WIRE_CODE, of_wire
        shown = (redact(line),) if line else ()
        found.append(Finding(Level.ERROR, code, seen, why or MISLABELLED, advice, shown))
    return found


def _unreachable(transport: Transport | None, heard: Sequence[Heard]) -> list[Finding]:
    """Peers of a class that the transport is not made for."""
    able = transport.peers if transport else ()
    there = {h.proof.peer for h in heard if h.proof.standing is not Standing.NOT_EXERCISED}
    name = transport.name if transport else "no transport"
    return [
        Finding(
            Level.ERROR, "peer-class", f"{name} cannot reach {peer} peers", "", "another layout"
        )
        for peer in sorted(there - set(able))
    ]


def _of_phases(told: Sequence[Phase], ranks: Sequence[RankRecord], *, ended: bool) -> list[Finding]:
    """Findings about what MPI refused, and about a probe that says less than it should."""
    found = []
    for phase in told:
        if not phase.ok:
            level = Level.ERROR if phase.kind is Kind.P2P else Level.WARNING
            what = f"{phase.kind} {phase.peer}"
            seen = f"{what}: MPI refused it: {phase.error or 'no reason given'}"
            found.append(Finding(level, "kind-refused", seen, "", "leave its benchmarks out"))
    counts = Counter((phase.kind, phase.peer) for phase in told)
    if ended and counts != expected(exercised(ranks)):
        seen = "the probe ended well but did not report each kind of traffic once"
        why = "its output was cut short or mixed up on the way"
        found.append(Finding(Level.ERROR, "probe-incomplete", seen, why, "start it again"))
    return found


def _redacted(proof: Proof) -> Proof:
    lane, sign, says = redact(proof.lane), redact(proof.sign), redact(proof.says)
    return replace(proof, lane=lane, sign=sign, says=says)
