"""What errors and findings say, by code: the rows of `knowledge/findings/*.toml`.

A row has a message, why it matters and what to do, as templates of `str.format`. Values are put in
as they are: braces in other people's text mean nothing.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[1] / "knowledge" / "findings"


class Message(NamedTuple):
    """One row: templates, and the level of a finding ("" for an error that ends the command)."""

    message: str
    why: str = ""
    fix: str = ""
    level: str = ""

    def fill(self, values: dict[str, object]) -> Message:
        """Put values into the templates. Raises KeyError for one that is missing."""
        message, why, fix = (text.format_map(values) for text in self[:3])
        return Message(message, why, fix, self.level)


def message_of(code: str) -> Message:
    """Read the row of a code; where no file can be opened any more, its code has to do.

    Raises KeyError for an unknown code."""
    try:
        return _row(code)
    except OSError as error:
        return Message(f"{code} (its text cannot be read: {error.strerror})", level="error")


@cache
def _row(code: str) -> Message:
    # The row alone is parsed: all files take 100 ms, which every error would cost.
    import tomllib

    head = f"\n[{code}]\n"
    for name in sorted(os.listdir(FOLDER)):  # noqa: PTH208  glob hides errors
        text = (FOLDER / name).read_text(encoding="utf-8")
        start = text.find(head)
        if start >= 0:
            end = text.find("\n[", start + len(head))
            row = tomllib.loads(text[start : end if end >= 0 else None])[code]
            return Message(**row)
    raise KeyError(code)
