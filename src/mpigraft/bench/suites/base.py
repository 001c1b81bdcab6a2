"""What every suite shares: the result of a parse, and the ways to read a foreign number."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import NoReturn, Protocol

from mpigraft.core.errors import UsageError
from mpigraft.core.model import CpuUse, Finding, Measurement
from mpigraft.core.process import clean
from mpigraft.core.text import join_some
from mpigraft.knowledge import ends_run

SHOWN_LINES = 3  # foreign lines quoted in a finding; the rest is counted
LISTED_LINES = 100  # whose numbers a finding lists
VALIDATION = "DATA VALIDATION ERROR"  # what OSU's programs print when a check fails
MAX_SIZE = 2**63 - 1  # the largest integer that the store can keep


@dataclass(slots=True)
class Span:
    """A table of an output: its measurements, and how it ended."""

    place: Place
    start: int  # its first measurement
    stop: int = 0  # after its last
    died: bool = False  # the run ended in it: it said so, or half a row is its last
    followed: bool = False  # by lines that are no part of any table
    explained: bool = False  # the program says why it has no more values
    half: str = ""  # its last row, if that may be cut
    width: int = 0  # of its last row
    rows: int = 0
    short: bool = True  # all rows look like halves: the table has numbers of its own form


@dataclass(frozen=True, slots=True)
class Parsed:
    """One output, read. `measurements` are in the order of the output; a benchmark that ran
    twice is there twice. `header` has its own facts (version, library, ranks).
    """

    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...] = ()
    header: dict[str, str] = field(default_factory=dict)
    nodes: tuple[CpuUse, ...] = ()  # who used the CPUs meanwhile; empty: the output does not say
    tables: tuple[Span, ...] = ()  # where one ends and the next begins; empty: not known


class Suite(Protocol):
    """A reader of one suite's output."""

    def parse(self, data: bytes, *, source: str) -> Parsed:
        """Parse what a program printed: `data` is its stdout, `source` names it in messages. Raises
        UsageError with the file and line where it is not the suite's output at all."""


@dataclass(frozen=True, slots=True)
class Place:
    """A line of an output, for messages."""

    source: str
    line: int  # from 1

    def __str__(self) -> str:
        return f"{self.source}:{self.line}"

    def refuse(self, problem: str, fix: str = "") -> NoReturn:
        advice = fix or "give the program's own output, unedited, or remove the damaged part"
        raise UsageError.of("output-invalid", place=self, problem=problem, advice=advice)


def number(word: str, place: Place, what: str) -> float:
    """Return a finite, non-negative decimal number. Python's own extras (1_0, nan, digits of other
    scripts) are refused."""
    try:
        value = float(word)
    except ValueError:
        value = math.nan
    odd = "_" in word or not word.isascii() or ("e" in word.lower() and value == 0)  # 0e999
    if not math.isfinite(value) or value < 0 or odd:
        place.refuse(f"{what} is {word[:40]!r}, not a finite number of 0 or more")
    return value


def printed_step(word: str) -> float:
    """Return the smallest difference that a finite number's digits can show: 0.01 of `0.63`."""
    return float(f"1e{Decimal(word).as_tuple().exponent}")


def whole(word: str, place: Place, what: str) -> int:
    """Return a whole number of 0 or more that the store can keep."""
    if not (word.isascii() and word.isdigit() and len(word) <= 19 and int(word) <= MAX_SIZE):
        place.refuse(f"{what} is {word[:40]!r}, not a whole number of 0 or more")
    return int(word)


def count(number: int, thing: str) -> str:
    """`1 line is`, `2 lines are`."""
    return f"1 {thing} is" if number == 1 else f"{number} {thing}s are"


def crashed(lines: list[tuple[int, str]], source: str) -> tuple[Finding, ...]:
    """Return one finding for all the lines in which a program, a library or a launcher gives up: a
    crash of a thousand ranks says it a thousand times."""
    if not lines:
        return ()
    return (Finding.of("program-failed", source=source, lines=_quoted(lines)),)


def _quoted(lines: list[tuple[int, str]]) -> str:
    return join_some([f"line {n}: {text.strip()[:120]}" for n, text in lines], SHOWN_LINES)


def foreign(lines: list[tuple[int, str]], source: str) -> tuple[Finding, ...]:
    """Return one finding for all the lines that are no part of the suite's output."""
    if not lines:
        return ()
    return (
        Finding.of(
            "foreign-output", source=source, count=count(len(lines), "line"), quoted=_quoted(lines)
        ),
    )


def invalid(measurements: list[Measurement], source: str) -> tuple[Finding, ...]:
    """Return one finding for all the values whose buffers did not hold what they should."""
    wrong = [m for m in measurements if m.valid is False]
    if not wrong:
        return ()
    first = ", ".join(dict.fromkeys(f"{m.benchmark.key} at {m.size} B" for m in wrong[:5]))
    return (
        Finding.of(
            "validation-failed", source=source, values=count(len(wrong), "value"), first=first
        ),
    )


def damaged(lines: Sequence[tuple[str, int]], source: str) -> tuple[Finding, ...]:
    """Return one finding for all the lines that cannot be what the suite prints: (problem, its
    line)."""
    if not lines:
        return ()
    problems = join_some([problem for problem, _ in lines], SHOWN_LINES)
    numbers = join_some([str(number) for _, number in lines], LISTED_LINES, ", ")
    return (
        Finding.of(
            "damaged-lines",
            source=source,
            count=count(len(lines), "line"),
            problems=problems,
            evidence=(f"lines {numbers}",),
        ),
    )


@dataclass(slots=True)
class OpenTable:
    """The table whose lines are read. `rows` that gave no value do not count."""

    name: str  # of what it measures
    place: Place
    options: dict[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: int = 0
    lost: bool = False  # what it measures, or its header, was not read: no row can be


@dataclass(slots=True)
class Reading:
    """What has been read of an output that consists of tables."""

    source: str
    table: OpenTable | None = None
    header: dict[str, str] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    crashes: list[tuple[int, str]] = field(default_factory=list)
    noise: list[tuple[int, str]] = field(default_factory=list)
    damage: list[tuple[str, int]] = field(default_factory=list)  # (problem, its line)
    spans: list[Span] = field(default_factory=list)

    def read(self, data: bytes, take: Callable[..., None], row: str, rule: str = "") -> None:
        """Read an output line by line. Where `take` refuses a line that does not begin as a `row`,
        it may be a header: what is below it is lost."""
        for line, place, last in text_lines(data, self.source, rule):
            try:
                take(line, place, self, last=last)
            except UsageError as error:
                self.spoil(place, error)
                if self.table and not re.match(row, line):
                    self.table.columns, self.table.lost = (), True
        self.close_table()

    def open_table(self, name: str, place: Place) -> OpenTable:
        self.close_table()
        self.begin(place)
        self.table = OpenTable(name, place)
        return self.table

    def close_table(self) -> None:
        if self.table and not self.table.rows:
            self.add(Finding.of("empty-table", place=self.table.place))
        self.table = None

    def begin(self, place: Place) -> None:
        """Begin a table; what the last one has is all that it will have."""
        self.end()
        self.spans.append(Span(place, len(self.measurements)))

    def end(self) -> None:
        """End the last table: the run is dead if half a row is its last line."""
        if self.spans:
            span = self.spans[-1]
            span.stop = len(self.measurements)
            if span.half:
                self.cut(span.place, span.half)
            span.half = ""

    def cut(self, place: Place, row: str) -> None:
        """Say that a table ends in the middle of a row."""
        problem = f"the last row is not whole: {row.strip()[:120]}"
        self.add(Finding.of("cut-short", place=place, problem=problem))
        self.spans[-1].died = True

    def row(self, line: str, *, half: bool = False) -> None:
        """Keep in mind whether the last row of a table may be cut: it looks so, and not every row
        above it does."""
        span = self.spans[-1]
        span.half = "" if not half or (span.rows and span.short) else line
        span.rows, span.short = span.rows + 1, span.short and half
        span.width, span.followed = len(line), False

    def narrower(self, line: str) -> bool:
        """Return whether a line is shorter than the row above it: of a whole number that may be
        cut, as all rows of a table end in one column, nothing else shows it."""
        return bool(self.spans) and len(line) < self.spans[-1].width

    def ends(self, line: str, place: Place) -> bool:
        """Take a line in which a program, a library or a launcher gives up. Its table is dead,
        unless the program only failed its own check."""
        failed = VALIDATION in line
        if not failed and not ends_run(line):
            return False
        self.crashes.append((place.line, line))
        if self.spans and not failed:
            self.spans[-1].died = True
        return True

    def other(self, line: str, place: Place) -> None:
        """Take a line that is no part of the suite's output."""
        self.noise.append((place.line, line))
        if self.spans:
            self.spans[-1].followed = True

    def spoil(self, place: Place, error: UsageError) -> None:
        """Leave a damaged line out, and say why: what is whole around it still counts. Raises
        what refuses the whole file."""
        if error.code != "output-invalid":
            raise error
        self.damage.append((error.message, place.line))

    def add(self, finding: Finding) -> None:
        if finding not in self.findings:
            self.findings.append(finding)

    def parsed(self) -> Parsed:
        self.end()
        findings = (
            *crashed(self.crashes, self.source),
            *self.findings,
            *damaged(self.damage, self.source),
            *invalid(self.measurements, self.source),
            *foreign(self.noise, self.source),
        )
        measurements, spans = tuple(self.measurements), tuple(self.spans)
        return Parsed(measurements, findings, self.header, tables=spans)


def text_lines(data: bytes, source: str, rule: str = "") -> Iterator[tuple[str, Place, bool]]:
    """Yield lines that consist of more than white space and characters of `rule`, their places, and
    whether each is the last of the file, which may be cut short."""
    lines = data.split(b"\n")
    for index, raw in enumerate(lines):
        line = clean(raw.rstrip(b"\r")).rstrip()  # the end of a line as Windows has it
        if line.strip().strip(f"{rule} "):
            yield line, Place(source, index + 1), index == len(lines) - 1
