"""The MPIs that were found last, for what cannot wait until the machine is examined again."""

from __future__ import annotations

from collections.abc import Sequence

from mpigraft.core import cache

KIND = "mpis"


def remember_mpis(hostname: str, ids: Sequence[str]) -> None:
    """Keep the ids of the MPIs that work on a host."""
    cache.put(KIND, hostname, list(ids))


def known_mpis(hostname: str) -> tuple[str, ...]:
    """Give the ids that were kept of a host; empty without any."""
    known = cache.get(KIND, hostname)
    return tuple(map(str, known)) if isinstance(known, list) else ()
