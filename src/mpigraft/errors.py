"""Every error that a user can meet, one class per exit code.

A message has three parts: what was seen, why it matters, what to do. `cli` prints them and
exits with the class's code; no other module prints or exits.
"""

from __future__ import annotations


class MpigraftError(Exception):
    """Base of all errors that end a command. `code` is the process's exit code."""

    code = 2

    def __init__(self, seen: str, *, why: str = "", mend: str = "") -> None:
        super().__init__(seen)
        self.seen = seen
        self.why = why
        self.mend = mend

    def __str__(self) -> str:
        parts = [self.seen]
        if self.why:
            parts.append(f"why it matters: {self.why}")
        if self.mend:
            parts.append(f"what to do: {self.mend}")
        return "\n".join(parts)


class AnswerIsNo(MpigraftError):
    """The question was answered, and the answer is no (a regression found with --fail-on)."""

    code = 1


class UsageError(MpigraftError):
    """A flag, a file or a value that cannot be used; the message names file and line."""

    code = 2


class MissingError(MpigraftError):
    """Something that the command needs is not on this machine, or cannot be written."""

    code = 3


class LaunchFailed(MpigraftError):
    """A launch that was asked for by name did not run to its end."""

    code = 4


class TransportMismatch(MpigraftError):
    """The transport or the world that ran is not the one that was asked for."""

    code = 5
