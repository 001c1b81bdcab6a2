"""A phase with the bytes of the ranks' own connections instead of the interfaces'.

What the kernel counts for a rank's own TCP connections is nobody else's, so no foreign traffic
hides it or passes for it. Where a rank may have sent by others too (a gap, a peer that cannot be
matched), they still prove what they carried. They do not prove that nothing was carried: then only
the counters of the interfaces count, as they do for a part with no record of sockets.

Devices that send by themselves (RDMA) keep their own counters. They are no witness of TCP.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from mpigraft.core.model import Peer
from mpigraft.evidence.traffic.probe import CARRIED, WHOLE, ProbePhase, Transfer
from mpigraft.evidence.traffic.sockets import QUIET, SLACK, Sockets

LOOPBACK = "lo"
NETDEV = "netdev"


def attributed(
    phase: ProbePhase | None, counted_by: Sequence[tuple[str, str]], claims: Collection[str]
) -> ProbePhase | None:
    """Count a phase by the ranks' own connections, part by part where they decide. `counted_by`
    says which interfaces the kernel counts; `claims` is what the lane's signs require of it."""
    netdevs = tuple(name for name, by in counted_by if by == NETDEV)
    if phase is None or not netdevs:
        return phase
    parts = tuple(_attributed(part, phase.peer, netdevs, claims) for part in phase.parts)
    if not any(part.own for part in parts):
        return phase
    total: dict[str, int] = {}
    for part in parts:
        for name, sent in part.wire:
            total[name] = total.get(name, 0) + sent
    return replace(phase, parts=parts, wire=tuple(total.items()))


def _attributed(
    part: Transfer, peer: Peer, netdevs: Sequence[str], claims: Collection[str]
) -> Transfer:
    own = part.sockets
    if own is None or not own.agree or _unplaced(own, part, peer):
        return part
    through = dict.fromkeys(netdevs, 0) | dict(own.through)
    # An address of any interface of a node leads its own ranks through the loopback.
    through[LOOPBACK] = through.get(LOOPBACK, 0) + own.unplaced
    least = WHOLE if "bytes" in claims else CARRIED
    wire = tuple(through.items())
    made = replace(part, wire=wire, noise=0.0, least=least, weakest=(), own=own)
    if _complete(own, part) or _enough(made, claims):
        return _with_devices(made, part, netdevs, claims)
    return part


def _unplaced(own: Sockets, part: Transfer, peer: Peer) -> bool:
    """Return whether it is not known by which interface enough of it went to other nodes."""
    return peer is Peer.OFF_NODE and own.unplaced > max((1 - WHOLE) * part.bytes, SLACK)


def _complete(own: Sockets, part: Transfer) -> bool:
    return not own.gap and own.strangers <= max(QUIET * part.bytes, SLACK)


def _enough(made: Transfer, claims: Collection[str]) -> bool:
    """Return whether what connections are sure of decides: more than that changes nothing."""
    if "none" in claims:
        return made.sent > max(QUIET * made.bytes, SLACK)
    return made.carried


def _with_devices(
    made: Transfer, part: Transfer, netdevs: Sequence[str], claims: Collection[str]
) -> Transfer:
    """Return the part with what devices count by themselves, unless TCP is what has to be proven.
    What is about anyway is not known of each device, and matters where these decide."""
    devices = tuple(w for w in part.wire if w[0] not in netdevs)
    if "bytes" in claims:
        return made
    noise = part.noise if devices and not made.carried else 0.0
    return replace(made, wire=(*made.wire, *devices), noise=noise)


def why_undecided(phase: ProbePhase) -> str:
    """Say why the ranks' own connections do not decide a part of the phase; empty where they do,
    and where they were not read."""
    for part in phase.parts:
        own = part.sockets
        if own is None or part.own:
            continue
        if own.gap:
            return own.gap
        if not own.agree:
            return "the two ends of connections count differently"
        if not _complete(own, part):
            return "some of their peers cannot be found among the ranks"
        return "the kernel does not say through which interface they send"
    return ""


def disagreement(phase: ProbePhase) -> str:
    """Return where the interface of the ranks' connections is not proven, why; else empty. It
    matters between nodes that have several: the route says one, and the counter of that one has to
    have grown by as much on every node."""
    for part in phase.parts:
        several = [name for name, _ in (*part.wire, *phase.aside) if name != LOOPBACK]
        if phase.peer is not Peer.OFF_NODE or part.own is None or len(several) < 2:
            continue
        through = dict(part.wire)
        for name, bytes_ in part.own.lacking:
            if name in through and bytes_ > (1 - WHOLE) * through[name] + SLACK:
                return (
                    f"{part.what}: the ranks' connections sent {through[name]} B by routes through "
                    f"{name}, and on one node its counter lacks {bytes_} B of them"
                )
    return ""


def own_bytes(phase: ProbePhase) -> tuple[tuple[str, int], ...] | None:
    """(interface, bytes) that the ranks' own connections sent in a phase; None where a part of it
    is not known."""
    total: dict[str, int] = {}
    for part in phase.parts:
        if part.sockets is None or part.sockets.gap or not part.sockets.agree:
            return None
        for name, sent in part.sockets.through:
            total[name] = total.get(name, 0) + sent
    return tuple(total.items()) if phase.parts else None
