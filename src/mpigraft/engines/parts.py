"""An engine's words: some are only for some machines, some have a syntax of their own."""

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


def fields(*values: str) -> str:
    """One record of comma-separated values (RFC 4180), as `--mount` of Apptainer and podman is
    read: by Go's encoding/csv, which takes any text in quotes but a carriage return before a
    newline. Raises UsageError for that."""
    if bad := next((v for v in values if "\r\n" in v), None):
        raise UsageError(f"{bad!r} cannot be bound", why="the engine drops its carriage return")
    odd = set(',"\r\n')
    quoted = (
        '"' + v.replace('"', '""') + '"' if odd.intersection(v) or v[:1].isspace() else v
        for v in values
    )
    return ",".join(quoted)


def plain(engine: str, value: str, forbidden: str) -> str:
    """`value`, unless it holds a character that the engine gives a meaning and cannot escape:
    then UsageError."""
    if bad := next((c for c in value if c in forbidden), ""):
        raise UsageError(
            f"{engine} cannot take {value!r}",
            why=f"it gives {bad!r} a meaning and has no way to write it otherwise",
            mend="go through a symbolic link without it, or choose another with --engine",
        )
    return value
