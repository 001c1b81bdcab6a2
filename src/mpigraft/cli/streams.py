"""stdout and stderr of the program, when what they lead to is full or gone.

A reader that leaves (`mpigraft compare | head -1`) and a full disk are noticed here and nowhere
else: typer and Rich each turn the first into exit code 1, which means "the answer is no".
SIGPIPE's default action was rejected as the only cure: it would end a campaign in the middle
when the terminal's end of stderr goes, or when a child does not read its input.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from typing import TextIO


class OutputLost(Exception):
    """What was to be printed cannot be. No OSError, so that nobody on the way takes it for one."""

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.reader_closed = error.errno == errno.EPIPE


class Results(io.TextIOWrapper):
    """stdout: raises OutputLost. Commands print when their work is done and stored."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise OutputLost(error) from error

    def flush(self) -> None:
        try:
            super().flush()
        except OSError as error:
            raise OutputLost(error) from error


class Talk(io.TextIOWrapper):
    """stderr: what nobody can read is dropped, and the work goes on. Each line goes out at once,
    into files and pipes too: a job that starts after it writes there itself."""

    def write(self, text: str) -> int:
        try:
            return super().write(text)
        except OSError:
            self._drop()
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            self._drop()

    def _drop(self) -> None:
        discard(self.fileno())


def guard() -> None:
    """Put both in place of Python's own, for a process that is mpigraft and nothing else."""
    while (spare := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # a stream that came closed: no file of ours may get its number
    os.close(spare)
    sys.stdout = _over(Results, sys.stdout, 1)
    sys.stderr = _over(Talk, sys.stderr, 2)


def _over(kind: type[io.TextIOWrapper], stream: TextIO | None, number: int) -> io.TextIOWrapper:
    """`kind` over a stream's file descriptor, with the stream's own encoding and buffering."""
    known = stream if isinstance(stream, io.TextIOWrapper) else None
    return kind(
        open(number, "wb", closefd=False),
        encoding=known.encoding if known else "utf-8",
        errors=known.errors if known else "backslashreplace",
        line_buffering=kind is Talk or bool(known and known.line_buffering),
    )


def discard(number: int) -> None:
    """Lead a file descriptor nowhere, so that what is still buffered for it does no harm."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)


def end_by_sigpipe() -> None:
    """End as every other program does whose reader left: shells show it as 141, or not at all."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGPIPE)
