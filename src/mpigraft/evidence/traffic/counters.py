"""Which counters saw a probe's bytes, and which of them had to.

Between nodes the payload has to cross the interface that the transport names, all of it where the
network is otherwise quiet: a job that went over a service network did not run as asked. Who
counted is part of the evidence. The kernel's interfaces see what the kernel sends; a device that
sends by itself (RDMA) is seen by its own counter alone, if its driver has one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from mpigraft.core.model import EnvRow, Finding, Kind, Peer, Proof, ProofStatus
from mpigraft.evidence.traffic.attribution import LOOPBACK, NETDEV
from mpigraft.evidence.traffic.probe import BURST, IDLE, LONG, WHOLE, ProbePhase, Transfer, records

COUNTERS = (
    NETDEV,
    "infiniband",
    "cxi telemetry",
)  # as the probe calls them (native/probe/network_counters.c)
WORD = re.compile(r"[^,|;+/()\s]+")


def counters(stdout: str) -> tuple[tuple[str, str], ...]:
    """(interface, who counted its bytes) by the probe's record; empty: unknown."""
    for idle in records(stdout, IDLE):
        counted_by = idle.get("counters")
        if isinstance(counted_by, dict):
            return tuple((name, by) for name, by in counted_by.items() if by in COUNTERS)
    return ()


def named_interfaces(rows: Iterable[EnvRow], wire: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Return the interfaces among those of `wire` that a configuration's rows name; the last row of
    a name is the one that holds. Those that a row leaves out are none of them."""
    values = {row.name: row.value or "" for row in rows}
    taken = (v for n, v in values.items() if "exclude" not in n.lower() and v[:1] != "^")
    words = {word for value in taken for word in _words(value)}
    return tuple(name for name, _ in wire if name in words and name != LOOPBACK)


def lane_interfaces(lane: str, wire: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Return those that the library names: e0 in `ucx (tcp/e0)`."""
    words = _words(lane)
    return tuple(name for name, _ in wire if name in words and name != LOOPBACK)


def _words(value: str) -> set[str]:
    """`shm+cxi:cxi0` -> cxi:cxi0, cxi, cxi0: ports of InfiniBand have a colon in their names."""
    whole = set(WORD.findall(value))
    return whole | {part for word in whole for part in word.split(":")}


def due_counters(phase: ProbePhase, names: Sequence[str], hosts: int = 1) -> ProbePhase:
    """Return the phase with those of its counters alone that its payload had to cross: between
    nodes the interfaces that are named, else any but the loopback's. Of other phases it is all of
    them, since on a node TCP takes the loopback for an address of any interface. Of `hosts` each
    sends as much between pairs."""
    if phase.kind is not Kind.COLLECTIVE:
        phase = replace(phase, parts=tuple(replace(p, hosts=hosts) for p in phase.parts))
    if phase.peer is not Peer.OFF_NODE:
        return phase
    due = set(names) or {name for name, _ in phase.wire} - {LOOPBACK}
    return replace(
        phase,
        wire=tuple(w for w in phase.wire if w[0] in due),
        aside=tuple(w for w in phase.wire if w[0] not in due),
        parts=tuple(_due_part(part, due, phase.kind) for part in phase.parts),
    )


def _due_part(part: Transfer, due: set[str], kind: Kind) -> Transfer:
    """Return the part with what its wires must carry. Between a user's own nodes that is all of a
    long message: less shows that a part took another way. Among other programs' bytes it is not."""
    wire = tuple(w for w in part.wire if w[0] in due)
    if own := part.own:
        if sum(sent for _, sent in part.wire) > sum(sent for _, sent in wire):
            own = replace(own, each=0)  # what a rank sent is of all interfaces together
        return replace(part, wire=wire, own=own)
    quiet = part.noise * BURST <= (1 - WHOLE) * part.bytes
    if kind is Kind.P2P and part.bytes >= LONG and quiet:
        return replace(part, wire=wire, least=WHOLE)
    return replace(part, wire=wire)


def uncounted(
    proofs: Iterable[Proof], phases: Iterable[ProbePhase], counted_by: Sequence[tuple[str, str]]
) -> list[Finding]:
    """Report interfaces and devices that a proven lane names and that did not see its bytes. A
    warning: drivers may refresh their counters late, a lane may have another port, and one rank may
    report for nodes where the interface has another name. Some bytes of collectives stay on a
    node."""
    devices = {name.partition(":")[0]: by for name, by in counted_by if name != LOOPBACK}
    findings = []
    for proof in proofs:
        if proof.standing is not ProofStatus.PROVEN or proof.peer is not Peer.OFF_NODE:
            continue
        if proof.kind is Kind.COLLECTIVE:
            continue
        named = [device for device in devices if device in _words(proof.lane)]
        for phase in phases:
            if not named or (phase.kind, phase.peer) != (proof.kind, proof.peer):
                continue
            sent = sum(n for name, n in phase.wire if name.partition(":")[0] in named)
            if sent < WHOLE * phase.bytes:
                findings.append(
                    Finding.of(
                        "wire-unseen",
                        kind=proof.kind,
                        peer=proof.peer,
                        names=", ".join(named),
                        counter=devices[named[0]],
                        sent=sent,
                        due=phase.bytes,
                    )
                )
    return findings
