"""What really ran, and whether it is what was asked for.

The probe moves a known number of bytes of each kind while the library is made to say what it
uses. `judge` holds that against the wish: the exit code, the witness, the signs and the wire all
have to agree. Asked for LNX and got ob1 is an error with the mend; silence is never a pass.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpigraft.env import redact
from mpigraft.jsonout import digest
from mpigraft.knowledge.loader import matching_issues
from mpigraft.lanes import Heard, Phase, Wire, exercised, hear, lines, phases, wire_says
from mpigraft.model import (
    Configuration,
    Evidence,
    Finding,
    Kind,
    KnownIssue,
    Layout,
    Level,
    Peer,
    Proof,
    RankRecord,
    Standing,
    Transport,
)
from mpigraft.run import Completed, clean
from mpigraft.witness import UNREAD, check_witness, read_witness

if TYPE_CHECKING:
    from mpigraft.natives import Natives

__all__ = ["check_witness", "evidence_key", "judge", "probe_program", "read_witness"]

BOOT = Path("/proc/sys/kernel/random/boot_id")
TIMED_OUT = 124  # the guard's exit code when the time limit passed
TAIL_LINES = 6  # of a failed probe's output, in the finding


def probe_program(natives: Natives) -> tuple[str, ...]:
    """The program of a probe launch."""
    return (str(natives.bench), "--probe")


def evidence_key(
    configuration: Configuration, layout: Layout, natives: Natives, boot: Path = BOOT
) -> str:
    """Key under which evidence may be kept: the same contents, signs and programs on this boot of
    this host. After a boot, drivers and NICs may not be what they were."""
    transport = configuration.transport
    return digest(
        {
            "configuration": configuration.key,
            "layout": layout.key,
            "environment": transport.env if transport else (),
            "probe": transport.probe_env if transport else (),
            "signs": transport.signs if transport else (),
            "programs": natives.digest,
            "boot": boot.read_text(encoding="ascii").strip() if boot.exists() else "",
        }
    )


def judge(
    configuration: Configuration,
    layout: Layout,
    completed: Completed,
    ranks: Sequence[RankRecord],
) -> Evidence:
    """What a probe launch proves of its configuration.

    `ok` needs all of it: the launch ended well, the witness saw the world and the libmpi that were
    asked for, and every kind of traffic that moved bytes is proven. A kind that MPI refused (no
    windows over some providers) is a warning: nothing of it can be measured either.
    """
    transport = configuration.transport
    asked = transport.name if transport else ""
    good = [rank for rank in ranks if rank.rank != UNREAD]
    told = phases(clean(completed.stdout))
    heard = _hear_all(transport, good, completed, told)
    output = _context(configuration, completed)
    known = matching_issues(output, transport, configuration.mpi)
    findings = [
        *_ending(completed, known),
        *check_witness(configuration, layout, ranks),
        *_of_lanes(asked, transport, heard, known, ended=completed.ok),
        *_of_phases(told, completed),
    ]
    p2p = next((phase for phase in told if phase.kind is Kind.P2P), None)
    return Evidence(
        asked=asked,
        ran=ran(heard) or ("not known" if completed.ok else ""),
        proof=tuple(_redacted(h.proof) for h in heard),
        findings=tuple(findings),
        ranks=tuple(good),
        wire=p2p.wire if p2p else (),
        ok=not any(finding.level is Level.ERROR for finding in findings),
    )


def _hear_all(
    transport: Transport | None,
    ranks: Sequence[RankRecord],
    completed: Completed,
    told: Sequence[Phase],
) -> tuple[Heard, ...]:
    """Every kind between every class of peers; what nothing used is not exercised."""
    output = lines(clean(completed.stdout), clean(completed.stderr))
    there = exercised(ranks)
    hosts = len({rank.host for rank in ranks})
    found = []
    for kind in Kind:
        phase = next((p for p in told if p.kind is kind), None)
        # With two classes of peers at once the counters cannot tell whose bytes they saw.
        wire = wire_says(phase, hosts) if phase and len(there) == 1 else None
        for peer in Peer:
            if peer not in there:
                found.append(Heard(Proof(peer, kind, Standing.NOT_EXERCISED, "", "")))
                continue
            signs = transport.signs if transport else ()
            found.append(hear(kind, peer, signs, output, phase, ranks=len(ranks), wire=wire))
    return tuple(found)


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
    elif (number := _signal(completed.code)) is not None:
        code, seen = "probe-crash", f"the probe died by {number.name}"
    else:
        code, seen = "probe-failed", f"the probe ended with exit code {completed.code}"
    text = redact(clean(completed.stderr) or clean(completed.stdout))
    tail = [line.strip() for line in text.splitlines() if line.strip()][-TAIL_LINES:]
    why, mend = _known(known)
    said = "\n".join([seen, *tail])
    return [Finding(Level.ERROR, known[0].id if known else code, said, why, mend)]


def _signal(code: int) -> signal.Signals | None:
    """The signal that ended a program: minus its number, or 128 and its number from a launcher."""
    number = -code if code < 0 else code - 128
    return signal.Signals(number) if number in set(signal.Signals) else None


def _known(known: Sequence[KnownIssue]) -> tuple[str, str]:
    """Why and mend in the words of the best known issue; empty without one."""
    if not known:
        return "", ""
    issue = known[0]
    return f"{issue.id}: {issue.symptom}; {issue.cause}", issue.fix


def _of_lanes(
    asked: str,
    transport: Transport | None,
    heard: Sequence[Heard],
    known: Sequence[KnownIssue],
    *,
    ended: bool,
) -> list[Finding]:
    """Findings about what ran instead, what is not proven, and what took a lane of its own.
    `ended`: the probe ended well; of one that did not, its end is said and not what it lacks."""
    found = []
    for one in heard:
        proof = one.proof
        what = f"{proof.kind} {proof.peer}"
        if proof.standing is Standing.CONTRADICTED:
            found.append(_mismatch(asked, what, one, known))
        elif proof.standing is Standing.NO_EVIDENCE and ended and not one.refused:
            why = "silence is no evidence: another lane may have carried the bytes"
            seen = f"{what}: no evidence that {asked or 'anything'} ran: {one.reason}"
            found.append(Finding(Level.ERROR, "no-evidence", seen, why, _known(known)[1]))
        elif proof.standing is Standing.PROVEN and one.beside:
            seen = f"{what} went by {proof.lane}, not by {asked}"
            why = "this MPI moves these bytes otherwise, whatever the transport"
            found.append(Finding(Level.WARNING, "lane-beside", seen, why))
        if proof.standing is Standing.PROVEN and one.wire is Wire.UNCLEAR:
            seen = f"{what}: the interfaces carried a part of the payload or other traffic"
            found.append(
                Finding(Level.WARNING, "wire-unclear", seen, "", "repeat it on an idle host")
            )
        unable = transport is not None and proof.peer not in transport.peers
        if unable and proof.standing is not Standing.NOT_EXERCISED:
            seen = f"{asked} cannot reach {proof.peer} peers"
            found.append(Finding(Level.ERROR, "peer-class", seen, "", "use another layout"))
    return found


def _mismatch(asked: str, what: str, one: Heard, known: Sequence[KnownIssue]) -> Finding:
    seen = f"{what}: asked for {asked}, ran {one.proof.lane or 'something else'}: "
    seen += f"{one.reason or 'the library says'} {one.proof.sign!r}"
    why, mend = _known(known)
    return Finding(
        Level.ERROR,
        known[0].id if known else "transport-mismatch",
        redact(seen),
        why or "values would carry the name of a transport that did not run",
        mend or "force the top layer (pml, netmod, fabrics), so that a mismatch aborts",
    )


def _of_phases(told: Sequence[Phase], completed: Completed) -> list[Finding]:
    """Findings about what MPI refused, and about a probe that says less than it should."""
    found = []
    for phase in told:
        if not phase.ok:
            level = Level.ERROR if phase.kind is Kind.P2P else Level.WARNING
            seen = f"{phase.kind}: MPI refused it: {phase.error or 'no reason given'}"
            found.append(Finding(level, "kind-refused", seen, "", "leave its benchmarks out"))
    counts = [sum(p.kind is kind for p in told) for kind in Kind]
    if completed.ok and counts != [1] * len(Kind):
        seen = "the probe ended well but did not report each kind of traffic once"
        why = "its output was cut short or mixed up on the way"
        found.append(Finding(Level.ERROR, "probe-incomplete", seen, why, "start it again"))
    return found


def _redacted(proof: Proof) -> Proof:
    return Proof(proof.peer, proof.kind, proof.standing, redact(proof.lane), redact(proof.sign))
