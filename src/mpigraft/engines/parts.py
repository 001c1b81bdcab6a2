"""An engine's words, some of which stand for something that a machine may not have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mpigraft.errors import UsageError


@dataclass(frozen=True, slots=True)
class Part:
    """Words that belong together. `source`: they stand only where this path of the host is."""

    words: tuple[str, ...]
    source: str = ""


def flat(parts: Iterable[Part]) -> tuple[str, ...]:
    return tuple(word for part in parts for word in part.words)


def plain(engine: str, path: str, forbidden: str) -> str:
    """`path`, unless it holds a character that the engine's syntax gives a meaning and cannot
    escape. Raises UsageError."""
    if bad := next((c for c in path if c in forbidden), ""):
        raise UsageError(
            f"{engine} cannot bind {path!r}",
            why=f"it takes {bad!r} for a separator and has no way to write it otherwise",
            mend="go through a symbolic link without it, or use --engine bwrap",
        )
    return path
