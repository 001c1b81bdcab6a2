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

from mpigraft.attribution import LOOPBACK, NETDEV
from mpigraft.model import Finding, Kind, Level, Peer, Proof, Standing, Transport
from mpigraft.phases import BURST, IDLE, LONG, WHOLE, Part, Phase, records

COUNTERS = (NETDEV, "infiniband", "cxi telemetry")  # as the probe calls them (native/wires.h)
WORD = re.compile(r"[^,|;+/()\s]+")


def counters(stdout: str) -> tuple[tuple[str, str], ...]:
    """(interface, who counted its bytes) as the probe tells it; empty: it did not."""
    for idle in records(stdout, IDLE):
        told = idle.get("counters")
        if isinstance(told, dict):
            return tuple((name, by) for name, by in told.items() if by in COUNTERS)
    return ()


def named(transport: Transport | None, wire: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """The interfaces among those of `wire` that the transport's settings name; the last setting
    of a name is the one that holds. Those that a setting leaves out are none of them."""
    rows = {row.name: row.value or "" for row in (transport.env if transport else ())}
    taken = (v for n, v in rows.items() if "exclude" not in n.lower() and v[:1] != "^")
    said = {word for value in taken for word in _words(value)}
    return tuple(name for name, _ in wire if name in said and name != LOOPBACK)


def in_lane(lane: str, wire: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Those that the library names: e0 in `ucx (tcp/e0)`."""
    said = _words(lane)
    return tuple(name for name, _ in wire if name in said and name != LOOPBACK)


def _words(value: str) -> set[str]:
    """`shm+cxi:cxi0` -> cxi:cxi0, cxi, cxi0: ports of InfiniBand have a colon in their names."""
    whole = set(WORD.findall(value))
    return whole | {part for word in whole for part in word.split(":")}


def held(phase: Phase, names: Sequence[str], hosts: int = 1) -> Phase:
    """The phase with those of its counters alone that its payload had to cross: between nodes the
    interfaces that are named, else any but the loopback's. Of other phases it is all of them,
    since on a node TCP takes the loopback for an address of any interface. Of `hosts` each sends
    as much between pairs."""
    if phase.kind is not Kind.COLLECTIVE:
        phase = replace(phase, parts=tuple(replace(p, hosts=hosts) for p in phase.parts))
    if phase.peer is not Peer.OFF_NODE:
        return phase
    due = set(names) or {name for name, _ in phase.wire} - {LOOPBACK}
    return replace(
        phase,
        wire=tuple(w for w in phase.wire if w[0] in due),
        aside=tuple(w for w in phase.wire if w[0] not in due),
        parts=tuple(_held(part, due, phase.kind) for part in phase.parts),
    )


def _held(part: Part, due: set[str], kind: Kind) -> Part:
    """A long message between nodes of one's own is on the wire as a whole: less of it says that a
    part took another way. Among other programs' bytes so close a look is not to be had."""
    wire = tuple(w for w in part.wire if w[0] in due)
    if own := part.own:
        if sum(sent for _, sent in part.wire) > sum(sent for _, sent in wire):
            own = replace(own, each=0)  # what a rank sent is of all interfaces together
        return replace(part, wire=wire, own=own)
    quiet = part.noise * BURST <= (1 - WHOLE) * part.bytes
    if kind is Kind.P2P and part.bytes >= LONG and quiet:
        return replace(part, wire=wire, least=WHOLE)
    return replace(part, wire=wire)


def unseen(
    proofs: Iterable[Proof], phases: Iterable[Phase], who: Sequence[tuple[str, str]]
) -> list[Finding]:
    """Interfaces and devices that a proven lane names and that did not see its bytes. A warning:
    drivers may refresh their counters late, a lane may have another port, and one rank may speak
    for nodes where the interface has another name. Collectives have bytes that stay on a node."""
    devices = {name.partition(":")[0]: by for name, by in who if name != LOOPBACK}
    found = []
    for proof in proofs:
        if proof.standing is not Standing.PROVEN or proof.peer is not Peer.OFF_NODE:
            continue
        if proof.kind is Kind.COLLECTIVE:
            continue
        mine = [device for device in devices if device in _words(proof.lane)]
        for phase in phases:
            if not mine or (phase.kind, phase.peer) != (proof.kind, proof.peer):
                continue
            sent = sum(n for name, n in phase.wire if name.partition(":")[0] in mine)
            if sent < WHOLE * phase.bytes:
                names = ", ".join(mine)
                seen = (
                    f"{proof.kind} {proof.peer}: the library names {names}, whose counter "
                    f"({devices[mine[0]]}) saw {sent} of {phase.bytes} B"
                )
                why = "its driver may refresh it late, or some of the bytes took another way"
                found.append(Finding(Level.WARNING, "wire-unseen", seen, why, ""))
    return found
