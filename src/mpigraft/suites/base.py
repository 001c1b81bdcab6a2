"""What every suite shares: the result of a parse, and the ways to read a foreign number."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NoReturn, Protocol

from mpigraft.errors import UsageError
from mpigraft.model import CpuUse, Finding, Level, Measurement

SHOWN_LINES = 3  # foreign lines quoted in a finding; the rest is counted
CRASH = re.compile(
    r"DATA VALIDATION ERROR|Segmentation fault|Process received signal|BAD TERMINATION"
    r"|exited on signal|MPI_Abort|MPI_ABORT|Fatal error in|srun: error"
)
MAX_SIZE = 2**63 - 1  # the largest integer that the store can keep


@dataclass(frozen=True, slots=True)
class Parsed:
    """One output, read. `measurements` are in the order of the output; a benchmark that ran
    twice is there twice. `header` is what the output says of itself (version, library, ranks).
    """

    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...] = ()
    header: dict[str, str] = field(default_factory=dict)
    nodes: tuple[CpuUse, ...] = ()  # who used the CPUs meanwhile; empty: the output does not say


class Suite(Protocol):
    """A reader of one suite's output."""

    def parse(self, data: bytes, *, source: str) -> Parsed:
        """`data` is the program's stdout, `source` names it in messages. Raises UsageError with
        the file and line of whatever cannot be what the suite prints."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of an output, for messages."""

    source: str
    line: int  # from 1

    def __str__(self) -> str:
        return f"{self.source}:{self.line}"

    def refuse(self, seen: str, mend: str = "") -> NoReturn:
        raise UsageError(
            f"{self}: {seen}",
            why="a table that was read wrongly would be compared as if it were right",
            mend=mend or "give the program's own output, unedited, or remove the damaged part",
        )


def number(word: str, place: Place, what: str) -> float:
    """A finite, non-negative decimal number. Python's own extras (1_0, nan) are refused."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or "_" in word:
        place.refuse(f"{what} is {word[:40]!r}, not a finite number of 0 or more")
    return value


def printed_step(word: str) -> float:
    """The smallest difference that a finite number's digits can show: 0.01 of `0.63`."""
    return float(f"1e{Decimal(word).as_tuple().exponent}")


def whole(word: str, place: Place, what: str) -> int:
    """A whole number of 0 or more that the store can keep."""
    if not (word.isascii() and word.isdigit() and len(word) <= 19 and int(word) <= MAX_SIZE):
        place.refuse(f"{what} is {word[:40]!r}, not a whole number of 0 or more")
    return int(word)


def count(number: int, thing: str) -> str:
    """`1 line is`, `2 lines are`."""
    return f"1 {thing} is" if number == 1 else f"{number} {thing}s are"


def crashed(lines: list[tuple[int, str]], source: str) -> tuple[Finding, ...]:
    """One finding for all the lines in which a program, a library or a launcher gives up: a
    crash of a thousand ranks says it a thousand times."""
    if not lines:
        return ()
    return (
        Finding(
            Level.ERROR,
            "program-failed",
            f"{source}: {_quoted(lines)}",
            "values before these lines were measured, those after them are missing",
        ),
    )


def _quoted(lines: list[tuple[int, str]]) -> str:
    shown = "; ".join(f"line {n}: {text.strip()[:120]}" for n, text in lines[:SHOWN_LINES])
    more = len(lines) - SHOWN_LINES
    return f"{shown}; and {more} more" if more > 0 else shown


def foreign(lines: list[tuple[int, str]], source: str) -> tuple[Finding, ...]:
    """One finding for all the lines that are no part of the suite's output."""
    if not lines:
        return ()
    return (
        Finding(
            Level.INFO,
            "foreign-output",
            f"{source}: {count(len(lines), 'line')} not the benchmark's: {_quoted(lines)}",
            why="libraries and launchers print to stdout too, and it may explain a result",
        ),
    )


def invalid(measurements: list[Measurement], source: str) -> tuple[Finding, ...]:
    """One finding for all the values whose buffers did not hold what they should."""
    wrong = [m for m in measurements if m.valid is False]
    if not wrong:
        return ()
    first = ", ".join(dict.fromkeys(f"{m.benchmark.key} at {m.size} B" for m in wrong[:5]))
    return (
        Finding(
            Level.ERROR,
            "validation-failed",
            f"{source}: {count(len(wrong), 'value')} measured on wrong data: {first}",
            why="the MPI delivered bytes that are not those that were sent",
            mend="do not use this configuration until its maker has mended it; report it with "
            "the benchmark and size named here",
        ),
    )
