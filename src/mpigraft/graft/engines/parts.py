"""Words of an engine's command line, some conditional or with their own syntax."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mpigraft.core.errors import UsageError


@dataclass(frozen=True, slots=True)
class OptionGroup:
    """Words that belong together. `source`: they apply only where the host has this path."""

    words: tuple[str, ...]
    source: str = ""


def flat(parts: Iterable[OptionGroup]) -> tuple[str, ...]:
    return tuple(word for part in parts for word in part.words)


def fields(*values: str) -> str:
    """Join values to a comma-separated record (RFC 4180), for `--mount` of Apptainer and podman.

    They read it with Go's encoding/csv, which takes any text in quotes but a carriage return before
    a newline. Raises UsageError for that.
    """
    if bad := next((v for v in values if "\r\n" in v), None):
        raise UsageError.of("bind-carriage-return", path=bad)
    odd = set(',"\r\n')
    quoted = (
        '"' + v.replace('"', '""') + '"' if odd.intersection(v) or v[:1].isspace() else v
        for v in values
    )
    return ",".join(quoted)


def plain(engine: str, value: str, forbidden: str) -> str:
    """Give `value`. Raises UsageError for a character with a meaning that the engine cannot
    escape."""
    if bad := next((c for c in value if c in forbidden), ""):
        raise UsageError.of("bind-character", engine=engine, value=value, character=bad)
    return value
