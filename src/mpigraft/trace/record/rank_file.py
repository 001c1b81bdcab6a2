"""A rank's record as bytes (native/calls/record_file.h), read and written."""

from __future__ import annotations

import struct
from typing import NamedTuple

from mpigraft.trace.record.coding import Bytes, Damage, unsigned
from mpigraft.trace.record.values import Leaf, Loop, Node, RankCalls, RecordedRoutine

MAGIC = b"mpigraft-record\0"
VERSION = 2
HEAD = struct.Struct("<16sIIiiIId8Q")


class Head(NamedTuple):
    """The first bytes of a record, in their order."""

    magic: bytes
    version: int
    routines: int
    rank: int
    size: int
    lacks: int
    unused: int
    ticks_per_s: float
    began_ns: int
    run_ticks: int
    events: int
    signatures: int
    signature_bytes: int
    node_bytes: int
    polls: int
    world_collectives: int


TEXT = 32  # bytes of a routine's name, and of its fields
DEEPEST = 60  # loops in loops
SIZES = range(1, 1 << 24)


def read_rank(data: bytes) -> RankCalls:
    """Read what a rank wrote. Raises Damage."""
    if len(data) < HEAD.size:
        raise Damage(f"it has {len(data)} bytes, fewer than its head")
    head = Head._make(HEAD.unpack_from(data))
    if head.magic != MAGIC:
        raise Damage("it does not begin as a record does")
    if head.version != VERSION:
        raise Damage(f"it is of version {head.version}; this mpigraft reads version {VERSION}")
    start = HEAD.size + 2 * TEXT * head.routines
    middle, end = start + head.signature_bytes, start + head.signature_bytes + head.node_bytes
    if len(data) != end:
        raise Damage(f"it has {len(data)} bytes, and its head says {end}")
    rank, size, rate = head.rank, head.size, head.ticks_per_s
    if size not in SIZES or not 0 <= rank < size or not 0 < rate < 1e12:
        raise Damage(f"its head says rank {rank} of {size} and {rate} ticks a second")
    routines = _routines(data[HEAD.size : start])
    texts = _signatures(Bytes(data, start, middle), head.signatures)
    nodes = _nodes(Bytes(data, middle, end), len(texts))
    return RankCalls(
        rank=rank, size=size, routines=routines, signatures=texts, nodes=nodes, ticks_per_s=rate,
        lacks=head.lacks, began_ns=head.began_ns, run_ticks=head.run_ticks, events=head.events,
        polls=head.polls, world_collectives=head.world_collectives,
    )  # fmt: skip


def _routines(data: bytes) -> tuple[RecordedRoutine, ...]:
    try:
        words = [
            data[at : at + TEXT].split(b"\0")[0].decode("ascii") for at in range(0, len(data), TEXT)
        ]
    except UnicodeDecodeError as error:
        raise Damage("a routine has no name") from error
    return tuple(RecordedRoutine(*pair) for pair in zip(words[::2], words[1::2], strict=True))


def _signatures(source: Bytes, count: int) -> tuple[bytes, ...]:
    if count > source.end - source.at:
        raise Damage(f"its head says {count} signatures in {source.end - source.at} bytes")
    texts = tuple(source.take(source.unsigned()) for _ in range(count))
    if source.at != source.end:
        raise Damage("there are bytes after the last signature")
    return texts


def _nodes(source: Bytes, signatures: int) -> tuple[Node, ...]:
    nodes = []
    while source.at < source.end:
        nodes.append(_node(source, signatures, 0))
    return tuple(nodes)


def _node(source: Bytes, signatures: int, depth: int) -> Node:
    kind = source.unsigned()
    if kind == 0:
        number, times, gap, took, count = (source.unsigned() for _ in range(5))
        if number >= signatures or count > MOST_GAPS:
            raise Damage(f"a call has signature {number} of {signatures} at byte {source.at}")
        gaps = tuple(_bucket(source) for _ in range(count))
        return Leaf(number, times, gap, took, gaps)
    if kind != 1 or depth == DEEPEST:
        raise Damage(f"there is no call and no loop at byte {source.at}")
    count, items = source.unsigned(), source.unsigned()
    if not count or not 0 < items <= source.end - source.at:
        raise Damage(f"a loop runs {count} times over {items} items at byte {source.at}")
    return Loop(count, tuple(_node(source, signatures, depth + 1) for _ in range(items)))


def _bucket(source: Bytes) -> tuple[int, int, int, int]:
    return source.unsigned(), source.unsigned(), source.unsigned(), source.unsigned()


MOST_GAPS = 64


def write_rank(record: RankCalls) -> bytes:
    """Write a rank's record as the rank itself would."""
    routines = b"".join(
        text.encode("ascii").ljust(TEXT, b"\0")
        for routine in record.routines
        for text in (routine.name, routine.fields)
    )
    signatures = b"".join(unsigned(len(text)) + text for text in record.signatures)
    nodes = b"".join(map(_written, record.nodes))
    head = Head(
        magic=MAGIC, version=VERSION, routines=len(record.routines), rank=record.rank,
        size=record.size, lacks=record.lacks, unused=0, ticks_per_s=record.ticks_per_s,
        began_ns=record.began_ns, run_ticks=record.run_ticks, events=record.events,
        signatures=len(record.signatures), signature_bytes=len(signatures),
        node_bytes=len(nodes), polls=record.polls, world_collectives=record.world_collectives,
    )  # fmt: skip
    return HEAD.pack(*head) + routines + signatures + nodes


def _written(node: Node) -> bytes:
    if isinstance(node, Loop):
        inside = b"".join(map(_written, node.items))
        return b"".join(map(unsigned, (1, node.count, len(node.items)))) + inside
    numbers = (0, node.signature, node.times, node.gap, node.took, len(node.gaps))
    flat = (number for gap in node.gaps for number in gap)
    return b"".join(map(unsigned, (*numbers, *flat)))
