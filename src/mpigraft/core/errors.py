"""Every error that a user can meet, one class per exit code.

A message has three parts: what was seen, why it matters, what to do. `knowledge/findings/*.toml`
has them by code. `cli` prints them and exits with the class's exit code; no other module does.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from mpigraft.core.messages import message_of
from mpigraft.core.text import did_you_mean


class MpigraftError(Exception):
    """Base of all errors that end a command. `code` is that of its row, "" without one."""

    exit_code = 2

    def __init__(self, message: str, *, why: str = "", fix: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.why = why
        self.fix = fix
        self.code = code

    @classmethod
    def of(cls, code: str, /, **values: object) -> Self:
        """Make the error of a row. Raises KeyError for an unknown code or a missing value."""
        row = message_of(code).fill(values)
        return cls(row.message, why=row.why, fix=row.fix, code=code)

    @classmethod
    def unknown(cls, code: str, word: str, names: Iterable[str], /, **values: object) -> Self:
        """Make the error of a word that is none of `names`. Its row has {word}, {near}, those that
        it may be a misspelling of, and {known}, all of them."""
        known = [*names]
        near = did_you_mean(word, (name for name in known if name != word))
        return cls.of(code, **{"word": word, "near": near, "known": ", ".join(known)} | values)

    def amended(self, **parts: str) -> Self:
        """Copy the error with another `message`, `why` or `fix`."""
        own = {"message": self.message, "why": self.why, "fix": self.fix, "code": self.code}
        return type(self)(**(own | parts))

    def __str__(self) -> str:
        parts = [self.message]
        if self.why:
            parts.append(f"why it matters: {self.why}")
        if self.fix:
            parts.append(f"what to do: {self.fix}")
        return "\n".join(parts)


class CheckFailed(MpigraftError):
    """The question was answered, and the answer is no (a regression found with --fail-on)."""

    exit_code = 1


class UsageError(MpigraftError):
    """A flag, a file or a value that cannot be used; the message names file and line."""

    exit_code = 2


class MissingError(MpigraftError):
    """Something that the command needs is not on this machine, or cannot be written."""

    exit_code = 3


class LaunchFailed(MpigraftError):
    """A launch that was asked for by name did not run to its end."""

    exit_code = 4


class TransportMismatch(MpigraftError):
    """The transport or the world that ran is not the one that was asked for."""

    exit_code = 5


class NotJudged(MpigraftError):
    """Nothing could be judged: no curve has a verdict, or there is no evidence of what ran."""

    exit_code = 6
