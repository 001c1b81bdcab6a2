"""Why a job waits, in words: reasons.toml."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache

from mpigraft.knowledge.reader import load_rows


@dataclass(frozen=True, slots=True)
class Reason:
    """What a scheduler's code means for the job that has it."""

    code: str  # `*` matches any letters
    text: str


@cache
def _rows() -> tuple[Reason, ...]:
    return load_rows(Reason, "reason", "reasons.toml")


def waiting_reason(code: str) -> str:
    """Say in words why a job waits; empty for a code without a row, and for words."""
    code = code.strip("() ")
    return next((row.text for row in _rows() if fnmatchcase(code, row.code)), "")
