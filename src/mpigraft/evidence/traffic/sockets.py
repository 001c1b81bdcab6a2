"""What the ranks' own TCP connections carried in a part of the probe.

Counters of an interface add up what all programs of a host send, so another job's traffic can be
taken for the payload. Each rank therefore asks the kernel for the bytes of its own connections
(TCP_INFO, native/probe/sockets.c). A connection counts if a rank holds its other end as well;
daemons of the launcher do not. Both ends are asked, which makes two readings that have to agree.

Where a `gap` is named the sums are what was carried at least, and more may have been.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

from mpigraft.core.model import Kind, Peer

QUIET = 0.1  # of the payload: up to here they only carried what is always about
SLACK = 2048  # bytes that are always about, however small the payload
MAX_BYTES = 1 << 62


@dataclass(frozen=True, slots=True)
class Sockets:
    """Bytes of one part, over all ranks, between peers of the part's class."""

    sent: int
    received: int
    strangers: int = 0  # to or from a peer that is no rank, or cannot be matched with one
    each: int = 0  # that every rank with a peer had to send; 0: shares differ
    least: int = 0  # sent by the rank that sent least of those
    most: int = 0
    through: tuple[tuple[str, int], ...] = ()  # (interface, bytes sent), by the kernel's routes
    lacking: tuple[tuple[str, int], ...] = ()  # by how much an interface's counter shows less
    gap: str = ""  # why these are not all; empty: they are

    @property
    def agree(self) -> bool:
        """Whether both ends of the connections count alike."""
        more = max(self.sent, self.received)
        return abs(self.sent - self.received) <= max(QUIET * more, SLACK)

    @property
    def unplaced(self) -> int:
        """Bytes that left through an unknown interface."""
        return max(0, self.sent - sum(count for _, count in self.through))


def read_sockets(value: Any, kind: Kind, peer: Peer) -> Sockets | None:
    """Return a part's object of the probe's output; None for one that is absent or damaged. A
    collective moves bytes between peers of both classes."""
    classes = (Peer.ON_NODE, Peer.OFF_NODE) if kind is Kind.COLLECTIVE else (peer,)
    with contextlib.suppress(AttributeError, KeyError, TypeError, ValueError):
        pairs = [_pair(value[name]) for name in classes]
        if not isinstance(value["gap"], str):
            return None
        return Sockets(
            sent=sum(sent for sent, _ in pairs),
            received=sum(received for _, received in pairs),
            strangers=max(_pair(value["no-rank"])),
            each=_bytes(value["each"]),
            least=_bytes(value["least"]),
            most=_bytes(value["most"]),
            through=_by_name(value["through"]),
            lacking=_by_name(value["lacking"]),
            gap=value["gap"],
        )
    return None


def _bytes(value: Any) -> int:
    if type(value) is int and 0 <= value <= MAX_BYTES:
        return value
    raise ValueError(f"{value!r} is no number of bytes")


def _pair(value: Any) -> tuple[int, int]:
    sent, received = value
    return _bytes(sent), _bytes(received)


def _by_name(value: Any) -> tuple[tuple[str, int], ...]:
    return tuple((name, _bytes(count)) for name, count in value.items())
