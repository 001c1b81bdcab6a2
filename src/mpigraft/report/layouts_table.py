"""One benchmark over its layouts, as a table for a terminal and for Markdown.

A column is a layout, a row a configuration at one size of each class, its ratio to the baseline.
The tables of every size, one for each layout, are what `--full` shows instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mpigraft.core import numbers
from mpigraft.core.model import CellGroup, Comparison, Verdict, common_sizes
from mpigraft.core.text import printable
from mpigraft.report.scaling import Card, View, cards
from mpigraft.report.table import STYLES, Column, Line, Signs, Table
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, sections

WIDTH = 80
GAP = 2  # spaces after a name
BETWEEN = 1  # columns of figures
SHORT = 12  # of the two names of a ratio
SINGLE = "*"
CURVE = "whole curve"


@dataclass(frozen=True, slots=True)
class Row:
    """A configuration at one size, or its whole curve, on every layout."""

    configuration: str
    what: str  # "small 64 B"
    texts: tuple[str, ...]
    verdicts: tuple[Verdict | None, ...]

    @property
    def single(self) -> bool:
        """Whether some value is of a single run."""
        return any(text.endswith(SINGLE) for text in self.texts)


@dataclass(frozen=True, slots=True)
class NodesTable:
    """One view of a benchmark."""

    title: str
    heads: tuple[str, ...]  # nodes, or ranks per node
    rows: tuple[Row, ...]
    common: tuple[int, ...] | None = None  # sizes of all columns; None: they have the same

    def table(self) -> Table:
        """Return all columns, of any width."""
        figures = (Column(head, right=True) for head in self.heads)
        columns = (Column("configuration"), Column("size"), *figures)
        rows = tuple((row.configuration, row.what, *row.texts) for row in self.rows)
        return Table(self.title, columns, rows)

    def blocks(self, width: int = WIDTH) -> Iterator[list[Line]]:
        """Yield lines that fit the width, in as many blocks as that takes, verdicts in their
        colours. A name that leaves no room is above its rows."""
        names = [printable(row.configuration) for row in self.rows]
        whats = max(len(row.what) for row in self.rows)
        cells = [max(len(t) for t in column) for column in self._columns()]
        total = sum(cells) + BETWEEN * len(cells)
        first = max(map(len, names)) + GAP + whats
        above = first + total > width
        first = GAP + whats if above else first
        for start, end in _fitting(cells, width - first):
            head = "".join(
                f"{t:>{w + BETWEEN}}" for t, w in self._cut(self.heads, cells, start, end)
            )
            lines: list[Line] = [[(f"{'':{first}}{head}", "dim")]]
            before = ""
            for name, row in zip(names, self.rows, strict=True):
                shown, before = ("" if name == before else name), name
                if above and shown:
                    lines.append([(shown, "")])
                label = " " * GAP if above else f"{shown:{first - whats - GAP}}{'':{GAP}}"
                parts = [(f"{label}{row.what:{whats}}", "")]
                for (text, cell), verdict in zip(
                    self._cut(row.texts, cells, start, end), row.verdicts[start:end], strict=True
                ):
                    style = STYLES[verdict] if verdict else ""
                    parts.append((f"{text:>{cell + BETWEEN}}", style))
                lines.append(parts)
            yield lines

    def _columns(self) -> Iterator[tuple[str, ...]]:
        return zip(self.heads, *(row.texts for row in self.rows), strict=True)

    @staticmethod
    def _cut(
        texts: tuple[str, ...], cells: list[int], start: int, end: int
    ) -> Iterator[tuple[str, int]]:
        return zip(texts[start:end], cells[start:end], strict=True)


def _fitting(cells: list[int], room: int) -> Iterator[tuple[int, int]]:
    """Cut columns into runs that fit, one column at least."""
    start, used = 0, 0
    for index, cell in enumerate(cells):
        if used + cell + BETWEEN > room and index > start:
            yield start, index
            start, used = index, 0
        used += cell + BETWEEN
    yield start, len(cells)


def split_layouts(
    comparison: Comparison, signs: Signs, *, full: bool = False
) -> tuple[tuple[NodesTable, ...], tuple[Section, ...]]:
    """Give what is shown over layouts, and the sections that are shown each by itself: those of
    a benchmark on one layout, and those through which no curve can go; in `full` all of them."""
    if full:
        return (), sections(comparison)
    tables: list[NodesTable] = []
    alone: list[Section] = []
    for card in cards(comparison):
        views = card.views
        tables += [_table(card, view, comparison.baseline, signs) for view in views]
        shown = {section.layout for view in views for _, section in view.points}
        alone += [section for section in card.sections if section.layout not in shown]
    return tuple(tables), tuple(alone)


def _table(card: Card, view: View, baseline: str, signs: Signs) -> NodesTable:
    what = (
        f"{printable(card.benchmark)}: {card.quantity} in {card.unit}, {words.better(card.better)}"
    )
    buffers = f", {card.buffers} buffers" if card.buffers != "host" else ""
    every = [section for _, section in view.points]
    common = common_sizes(group for section in every for group in section.groups)
    rows = [_baseline_row(name, size, every, baseline) for name, size in view.sizes]
    for configuration in dict.fromkeys(g.configuration for s in every for g in s.groups):
        groups = [
            next((g for g in s.groups if g.configuration == configuration), None) for s in every
        ]
        pair = f"{configuration}/{baseline}"
        pair = pair if len(pair) <= SHORT else f"{configuration} / baseline"
        rows += [_row(pair, name, size, groups, signs) for name, size in view.sizes]
        if len(view.sizes) > 1:
            rows += _curve_rows(pair, groups, common, signs)
    repeats = next((f"; {section.repeats}" for section in every if section.repeats), "")
    title = f"{what}{buffers}; over {view.axis}, {view.series}{repeats}"
    heads = tuple(str(number) for number, _ in view.points)
    alike = all(g.used_sizes == common for section in every for g in section.groups)
    return NodesTable(title, heads, tuple(rows), None if alike else common)


def over_notes(tables: Sequence[NodesTable]) -> Iterator[str]:
    """Describe what the rows of several tables mean."""
    rows = [row for table in tables for row in table.rows]
    if any(row.single for row in rows):
        yield f"{SINGLE} a single run"
    whole = any(table.common is None for table in tables)
    if any(row.what == CURVE for row in rows):
        yield f"{CURVE}: {'geometric mean' if whole else 'verdict'} over all sizes"
    spans = dict.fromkeys(t.common for t in tables if t.common is not None)
    for sizes in filter(None, spans):
        count = numbers.counted(len(sizes), "size")
        yield f"{numbers.size_span(sizes)}: geometric mean over the {count} that every column has"
    if () in spans:
        yield "no mean where the columns have no size in common"


def _label(name: str, size: int) -> str:
    return f"{name} {numbers.size(size)}" if name else ""


def _baseline_row(name: str, size: int, every: list[Section], baseline: str) -> Row:
    """Give the values that the ratios below rest on."""
    values = [section.baseline.get(size) for section in every]
    texts = tuple("-" if value is None else numbers.number(value) for value in values)
    return Row(baseline, _label(name, size), texts, (None,) * len(texts))


def _row(pair: str, name: str, size: int, groups: list[CellGroup | None], signs: Signs) -> Row:
    texts: list[str] = []
    verdicts: list[Verdict | None] = []
    for group in groups:
        cell = next((c for c in group.cells if c.size == size), None) if group else None
        if cell is None:
            texts.append("-")
        elif cell.rounds == 1:
            texts.append(f"{numbers.ratio(cell.ratio)}{SINGLE}")
        else:
            texts.append(f"{signs[cell.verdict]} {numbers.ratio(cell.ratio)}")
        verdicts.append(cell.verdict if cell else None)
    return Row(pair, _label(name, size), tuple(texts), tuple(verdicts))


def _curve_rows(
    pair: str, groups: list[CellGroup | None], common: tuple[int, ...], signs: Signs
) -> Iterator[Row]:
    """Give the pooled ratio of each curve, and its verdict: what claims rest on. Where columns
    have other sizes, their ratio is over those that all have, and the verdict, of all, is below."""
    verdicts = tuple(group.curve if group else None for group in groups)
    marks = tuple(signs[verdict] if verdict else "-" for verdict in verdicts)
    alike = all(group.used_sizes == common for group in groups if group)
    if common:
        what, shown = (CURVE, marks) if alike else (numbers.size_span(common), ("",) * len(marks))
        texts = (_curve_text(g, common, sign) for g, sign in zip(groups, shown, strict=True))
        yield Row(pair, what, tuple(texts), verdicts if alike else (None,) * len(groups))
    if not alike and {*verdicts} - {None, Verdict.INCONCLUSIVE}:
        yield Row(pair, CURVE, marks, verdicts)


def _curve_text(group: CellGroup | None, sizes: tuple[int, ...], sign: str) -> str:
    if group is None:
        return "-"
    ratio = numbers.ratio(group.ratio_over(sizes))
    single = all(cell.rounds == 1 for cell in group.cells)
    return f"{ratio}{SINGLE}" if single else f"{sign} {ratio}".strip()
