"""What errors and findings say, by code: the rows of `knowledge/findings/*.toml`.

A row has a message, why it matters and what to do, as templates of `str.format`. Values are other
people's text: braces in them mean nothing, and what moves a cursor or ends a line is escaped, so
that no name of a file can forge a line of ours. Only a `Lines` keeps its line breaks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

from mpigraft.core.text import printable

FOLDER = Path(__file__).parents[1] / "knowledge" / "findings"


class Lines(str):
    """A value of several lines that mpigraft made itself, each of them printable."""

    __slots__ = ()

    @classmethod
    def below(cls, lines: Iterable[str]) -> Lines:
        """Put each text on a line of its own under a message."""
        return cls("".join(f"\n  {printable(line)}" for line in lines))


def _as_text(value: object) -> object:
    if isinstance(value, str | Path | BaseException):
        return printable(str(value), "\t\n" if isinstance(value, Lines) else "\t")
    return value


class Message(NamedTuple):
    """One row: templates, the level of a finding ("" for an error that ends the command), and the
    code of the row that has its advice where the guest is a stack."""

    message: str
    why: str = ""
    fix: str = ""
    level: str = ""
    stack: str = ""

    def fill(self, values: dict[str, object]) -> Message:
        """Put values into the templates. Raises KeyError for one that is missing."""
        safe = {name: _as_text(value) for name, value in values.items()}
        message, why, fix = (text.format_map(safe) for text in self[:3])
        return Message(message, why, fix, self.level, self.stack)


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
        if name.startswith(".") or not name.endswith(".toml"):  # an editor's
            continue
        text = (FOLDER / name).read_text(encoding="utf-8")
        start = text.find(head)
        if start >= 0:
            end = text.find("\n[", start + len(head))
            row = tomllib.loads(text[start : end if end >= 0 else None])[code]
            return Message(**row)
    raise KeyError(code)
