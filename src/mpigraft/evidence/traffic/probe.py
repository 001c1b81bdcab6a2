"""Read the probe's records: phases of traffic, and what the wires saw of their parts.

A host that sent by another way than the others is a small part of what many hosts sent together.
So each part also has the bytes of the one host that sent least through a wire.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mpigraft.core.model import Kind, Peer
from mpigraft.evidence.traffic.sockets import QUIET, Sockets, read_sockets

PHASE = '{"mpigraft":"phase"'  # how each of the probe's lines begins
IDLE = '{"mpigraft":"idle"'  # what crossed while the probe slept
WHOLE = 0.95  # of a payload that has to cross as a whole
CARRIED = 0.5  # of the payload: from here on the kernel's interfaces carried it
LONG = 1 << 18  # bytes of payload in a part that other programs' traffic is not taken for
BURST = 10  # times as much as they sent on average others may send in a part


@dataclass(frozen=True, slots=True)
class Transfer:
    """Messages of one size, or one collective at one size: these may have lanes of their own.
    `noise`: bytes of other programs that are to be expected in `wire`, infinite where the probe
    timed the part and did not tell what is always about."""

    what: str  # 8 B, allreduce 64 KiB
    bytes: int
    wire: tuple[tuple[str, int], ...]
    noise: float = 0.0
    least: float = CARRIED  # of the payload, from which on it counts as carried
    weakest: tuple[tuple[str, int], ...] = ()  # of the host that sent least; empty: unknown
    hosts: int = 1  # that have alike shares in it
    sockets: Sockets | None = None  # what the ranks' own connections carried; None: unknown
    own: Sockets | None = None  # the same, where `wire` is of these alone and nobody else's

    @property
    def sent(self) -> int:
        return sum(count for _, count in self.wire)

    @property
    def carried(self) -> bool:
        return self.sent >= self.least * self.bytes and not self.left_out

    @property
    def left_out(self) -> bool:
        """Whether a host sent less than half of its share through the one wire that it had to
        take. Of many hosts that is less than the headers of all add to the payload. Of its own
        connections each rank knows what it sent."""
        if self.own:
            short = self.own.least < self.least * self.own.each
            return short and self.own.sent >= CARRIED * self.bytes
        least = dict(self.weakest)
        (name,) = dict(self.wire) if len(self.wire) == 1 else ("",)
        most_did = self.sent >= CARRIED * self.bytes
        share = self.bytes / self.hosts
        return self._shared and most_did and least.get(name, share) < CARRIED * share

    @property
    def of_one(self) -> bool:
        """Whether as much crossed as one of several hosts has to send: it may have a way of its
        own."""
        if self.own and self.own.each:
            return self.bytes >= LONG and self.own.most >= CARRIED * self.own.each
        crossed = self.sent - BURST * self.noise
        return self._shared and crossed >= CARRIED * self.bytes / self.hosts

    @property
    def by_own(self) -> bool:
        """Whether the ranks' own connections carried some of a long part: nobody else did."""
        if self.own is None:
            return False
        return self.bytes >= LONG and self.own.sent > QUIET * self.bytes

    @property
    def _shared(self) -> bool:
        return self.hosts > 1 and self.bytes / self.hosts >= LONG

    @property
    def drowned(self) -> bool:
        """Whether other programs may have sent what counts as the payload."""
        return self.carried and self.sent - BURST * self.noise < CARRIED * self.bytes


@dataclass(frozen=True, slots=True)
class ProbePhase:
    """One phase of the probe, between peers of one class (a collective over several nodes is
    between both, and called off-node). `bytes`: payload that all ranks sent; `wire`: (interface,
    bytes sent) over all hosts, empty where the counters could not be read; `parts` add up to
    these."""

    kind: Kind
    peer: Peer
    bytes: int
    wire: tuple[tuple[str, int], ...]
    ok: bool
    error: str = ""
    parts: tuple[Transfer, ...] = ()
    aside: tuple[tuple[str, int], ...] = ()  # of interfaces that the payload had not to cross


def phases(stdout: str) -> tuple[ProbePhase, ...]:
    """Return the probe's phases in order; a line that is cut short or malformed is not one.

    Libraries print without a newline before ours and launchers glue lines together, so a phase
    is looked for anywhere in a line.
    """
    rate = _idle_rate(stdout)
    read = (_phase(value, rate) for value in records(stdout, PHASE))
    return tuple(phase for phase in read if phase is not None)


def records(stdout: str, start: str) -> Iterator[dict[str, Any]]:
    """Yield the probe's lines that begin so."""
    decoder = json.JSONDecoder()
    for match in re.finditer(re.escape(start), stdout):
        with contextlib.suppress(ValueError, RecursionError):
            yield decoder.raw_decode(stdout, match.start())[0]


def _idle_rate(stdout: str) -> float | None:
    """Return bytes per second that other programs send, None where the probe has none."""
    rates = [
        sum(count for _, count in _counts(idle["wire"])) / seconds
        for idle in records(stdout, IDLE)
        if isinstance(idle.get("wire"), dict) and (seconds := _seconds(idle.get("seconds")))
    ]
    return max(rates, default=None)


def _seconds(value: Any) -> float | None:
    """Return a time that can be, or None; JSON of Python knows NaN and infinity."""
    return value if type(value) in (int, float) and 0 <= value < math.inf else None


def _phase(value: Mapping[str, Any], rate: float | None) -> ProbePhase | None:
    kind, peer = value.get("kind"), value.get("peer")
    size, ok, wire = value.get("bytes"), value.get("ok"), value.get("wire")
    listed = value.get("parts", [])
    if kind not in list(Kind) or peer not in list(Peer):  # no set: a list has no hash
        return None
    if type(size) is not int or size < 0 or not isinstance(ok, bool):
        return None
    if not isinstance(listed, list):
        return None
    made = (_part(part, rate, Kind(kind), Peer(peer)) for part in listed)
    parts = tuple(filter(None, made))
    if len(parts) < len(listed):
        return None
    error = str(value.get("error", ""))
    return ProbePhase(Kind(kind), Peer(peer), size, _counts(wire), ok, error, parts)


def _part(value: Any, rate: float | None, kind: Kind, peer: Peer) -> Transfer | None:
    if not isinstance(value, dict) or type(value.get("bytes")) is not int:
        return None
    noise = 0.0
    if "seconds" in value:
        if (seconds := _seconds(value["seconds"])) is None:
            return None
        noise = math.inf if rate is None else rate * seconds
    wire, weakest = _counts(value.get("wire")), _counts(value.get("least"))
    own = read_sockets(value.get("sockets"), kind, peer)
    what = str(value.get("what", ""))
    return Transfer(what, value["bytes"], wire, noise, weakest=weakest, sockets=own)


def _counts(wire: Any) -> tuple[tuple[str, int], ...]:
    counts = wire.items() if isinstance(wire, dict) else ()
    return tuple((name, n) for name, n in counts if type(n) is int and n >= 0)
