"""What a command ends with, in one screen of 80 columns: the answer, three lines at most; a table;
the findings that may change the answer, one line each; what to type for the rest."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpigraft.core.model import Finding, Level
from mpigraft.core.text import NO_BREAK, printable
from mpigraft.report.table import Line, Signs
from mpigraft.report.wording import words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

LINES = 24  # of the table
ROOM = 10  # columns that a line loses where it is folded
LEVELS = {Level.INFO: "dim", Level.WARNING: "yellow", Level.ERROR: "bold red"}
WORST = (Level.ERROR, Level.WARNING, Level.INFO)


@dataclass(frozen=True, slots=True)
class Screen:
    """What a command ends with; `print_screen` prints it."""

    answer: Sequence[str]
    table: Sequence[Line] = ()
    findings: Iterable[tuple[Level, str]] = ()
    rest: Iterable[str] = ()  # what to type for more
    title: Sequence[str] = ()  # what the answer is of


def finding_lines(findings: Iterable[Finding], width: int) -> Iterator[tuple[Level, str]]:
    """Give a line, of two screen widths at most, for each kind of finding that may change the
    answer, worst first."""
    for level, code, (first, *more) in by_kind(f for f in findings if f.level is not Level.INFO):
        line = f"{level} {printable(code)}: {without_names(words.single_line(first.message))}"
        rest = f" (and {len(more)} more)" if more else ""
        yield level, shorten(line, 2 * width - len(rest) - ROOM) + rest


def by_kind(findings: Iterable[Finding]) -> Iterator[tuple[Level, str, list[Finding]]]:
    """Yield each level and code with its findings, the worst level first."""
    kinds: dict[tuple[Level, str], list[Finding]] = {}
    for finding in findings:
        kinds.setdefault((finding.level, finding.code), []).append(finding)
    for level, code in sorted(kinds, key=lambda kind: WORST.index(kind[0])):
        yield level, code, kinds[level, code]


def without_names(message: str) -> str:
    """Leave out a list of configurations that follows what was seen."""
    what, _, named = message.partition(": ")
    return what if " " in what and "@" in named and "@" not in what else message


def shorten(text: str, width: int) -> str:
    """Cut a text between words, if it is wider; three dots say so."""
    if len(text) <= width:
        return text
    cut = text[: width - 3]
    return (whole if len(whole := cut.rsplit(" ", 1)[0]) > width // 2 else cut).rstrip(
        ",;:"
    ) + "..."


def joined(*texts: str, width: int) -> tuple[str, ...]:
    """Put commands to type on one line, if there is room, or each on its own: none is folded."""
    return (line,) if len(line := "; ".join(texts)) <= width else texts


def print_screen(screen: Screen, console: Console) -> None:
    """Print an answer, its table, what may change it, and what to type for the rest."""
    for line in screen.title:
        say(console, line)
    if screen.title:
        console.print()
    for place, line in enumerate(screen.answer):
        say(console, line, "" if place else "bold", indent=2 if place else 0)
    if screen.table and screen.table[0]:
        console.print()
    for row in screen.table:
        print_line(console, *row)
    below = [*((line, LEVELS[level]) for level, line in screen.findings)]
    below += [(line, "dim") for line in screen.rest]
    if below:
        console.print()
    for line, style in below:
        say(console, line, style)


def signs_of(console: Console) -> Signs:
    """Give the signs of verdicts that a stream can write."""
    try:
        "".join(words.VERDICT_SIGNS.values()).encode(console.encoding or "utf-8")
    except (UnicodeEncodeError, LookupError):
        return words.ASCII_SIGNS
    return words.VERDICT_SIGNS


def print_line(console: Console, *parts: str | tuple[str, str] | Text) -> None:
    """One row: each part is a string, (string, style) or Text. It stays one line in a pipe."""
    from rich.text import Text

    text = Text.assemble(*parts)
    text.rstrip()
    console.print(text, soft_wrap=True)


def say(console: Console, text: str, style: str = "", indent: int = 2) -> None:
    """Fold a sentence at the console's width; further lines are indented."""
    for line in folded(text, console.width, style, indent):
        print_line(console, *line)


def folded(text: str, width: int, style: str = "", indent: int = 2) -> list[Line]:
    """Fold a sentence at a width; further lines are indented."""
    lines = textwrap.wrap(
        words.unbroken(text),
        width=width,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [[(line.replace(NO_BREAK, " "), style)] for line in lines]
