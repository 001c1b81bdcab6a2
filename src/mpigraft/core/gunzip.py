"""Unpack gzip, member by member; each member takes one item of the caller's budget."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from mpigraft.core.budget import Budget

GZIP = b"\x1f\x8b"
STEP = 1 << 18  # bytes unpacked at once
MEMBER_BYTES = 1 << 10  # of a member of several, for a budget: an empty one has 20


def gunzip(chunks: Iterable[bytes], budget: Budget) -> Iterator[bytes]:
    """Unpack gzip in pieces. Zeros may follow, to the end of a tape's block.

    What is left of a chunk is copied after each member, so the members are bounded. Raises
    UsageError beyond the budget, zlib.error for damage, EOFError where the end is missing.
    """
    engine = zlib.decompressobj(wbits=31)
    for chunk in chunks:
        rest = chunk
        while rest:
            if engine.eof:
                if not rest.strip(b"\0"):
                    break
                budget.take(items=1)
                engine = zlib.decompressobj(wbits=31)
            yield engine.decompress(rest, STEP)
            rest = engine.unused_data if engine.eof else engine.unconsumed_tail
    if not engine.eof:
        raise EOFError("it ends early")


def pieces(data: bytes, size: int = 1 << 12) -> Iterator[bytes]:
    """Cut what is in memory into chunks, small ones: they are copied after each member."""
    return (data[at : at + size] for at in range(0, len(data), size))
