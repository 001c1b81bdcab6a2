"""Tables and figures as values: their content, for any form of rendering."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mpigraft.core.model import Verdict
from mpigraft.core.text import WIDTH, columns, printable
from mpigraft.report.markup import Html, foreign, table, table_row
from mpigraft.report.wording import words


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict in a cell, and what follows it."""

    verdict: Verdict
    text: str = ""


Cell = str | int | Judged
Signs = Mapping[Verdict, str]
BELOW = 4  # spaces before the columns for which a line has no room
Part = tuple[str, str]  # of a line on a terminal, and its style
Line = list[Part]
STYLES = {  # green and magenta differ for every kind of colour blindness; red and green do not
    Verdict.FASTER: "bold green",
    Verdict.SLOWER: "bold magenta",
    Verdict.EQUIVALENT: "cyan",
    Verdict.INCONCLUSIVE: "dim",
}


@dataclass(frozen=True, slots=True)
class Column:
    head: str
    right: bool = False  # numbers are set to the right
    width: int = 0  # on a terminal, at least


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text, numbers and verdicts. The first column names its row."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    gap: int = 1  # spaces before a column that is set to the right
    before: int = 2  # and before others

    def padded(self, signs: Signs = words.VERDICT_SIGNS) -> Iterator[tuple[str, ...]]:
        """Lay the heads and the rows out for a terminal: texts that joined make a line, each as
        wide as its column, with the space before it."""
        rows = [tuple(column.head for column in self.columns)]
        rows += [tuple(printable(cell_text(cell, signs)) for cell in row) for row in self.rows]
        gaps = [
            "",
            *(" " * (self.gap if column.right else self.before) for column in self.columns[1:]),
        ]
        texts_of = zip(*rows, strict=True)
        layout = [
            (gap, ">" if column.right else "<", max(column.width, *map(len, texts)))
            for gap, column, texts in zip(gaps, self.columns, texts_of, strict=True)
        ]
        for row in rows:
            yield tuple(
                f"{gap}{text:{side}{width}}"
                for (gap, side, width), text in zip(layout, row, strict=True)
            )

    def styled(self, signs: Signs = words.VERDICT_SIGNS) -> Iterator[Line]:
        """Lay the table out for a terminal, a verdict in its colour. The caption is the caller's
        to say."""
        heads, *rows = self.padded(signs)
        parts = _parts(heads)
        for start, end in parts:
            yield _line([(text, "dim") for text in heads], start, end)
        for cells, texts in zip(self.rows, rows, strict=True):
            styles = (STYLES[cell.verdict] if isinstance(cell, Judged) else "" for cell in cells)
            line = [*zip(texts, styles, strict=True)]
            for start, end in parts:
                yield _line(line, start, end)

    def html(self, class_: str) -> Html:
        """Lay the table out for a page."""
        rows = (table_row(*map(foreign, map(cell_text, row))) for row in self.rows)
        heads = [column.head for column in self.columns]
        return table(foreign(self.caption), heads, rows, class_=class_)

    def lines(self) -> list[str]:
        """Lay the table out as plain text, heads first."""
        return ["".join(text for text, _ in line).rstrip() for line in self.styled()]


def _parts(heads: Sequence[str]) -> list[tuple[int, int]]:
    """Cut a row into lines, all columns in one where they fit or nobody said how many do."""
    width, starts, used = columns(), [0], 0
    for place, head in enumerate(heads):
        if width < WIDTH and place > starts[-1] and used + len(head) > width:
            starts.append(place)
            used = BELOW
        used += len(head)
    return [*itertools.pairwise([*starts, len(heads)])]


def _line(parts: Line, start: int, end: int) -> Line:
    return [*([(" " * BELOW, "")] if start else ()), *parts[start:end]]


def list_rows(
    heads: Iterable[str], rows: Iterable[tuple[Cell, ...]], right: Collection[str] = ()
) -> list[str]:
    """Lay rows out as plain text below their heads; columns of `right` are set to the right."""
    columns = tuple(Column(head, right=head in right) for head in heads)
    return Table("", columns, tuple(rows), gap=2).lines()


@dataclass(frozen=True, slots=True)
class Figure:
    """What is drawn: by characters on a terminal, by SVG or a coloured table on the page."""

    title: str
    sentences: tuple[str, ...]
    html: Callable[[], Html]  # with its sentences, as far as they are not in it
    text: Callable[[bool], list[str]] = lambda _: []  # of at most 80 columns; True: in ASCII
    subject: str = ""  # whose it is, where several figures have one title


def by_title(figures: Iterable[Figure]) -> Mapping[str, list[Figure]]:
    """Figures that share a title, in the order in which each title is first met."""
    groups: dict[str, list[Figure]] = {}
    for figure in figures:
        groups.setdefault(figure.title, []).append(figure)
    return groups


def cell_text(cell: Cell, signs: Signs = words.VERDICT_SIGNS) -> str:
    """`▲ faster, needs 12 rounds`; other cells as they are."""
    if isinstance(cell, Judged):
        return f"{signs[cell.verdict]} {cell.verdict}{cell.text}"
    return str(cell)
