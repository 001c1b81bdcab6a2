"""The tables that every form of a report has."""

from __future__ import annotations

from mpigraft.core import numbers
from mpigraft.core.model import Cell, CellGroup
from mpigraft.report.baseline_only import BaselineSeries
from mpigraft.report.contents import ReportData
from mpigraft.report.table import Column, Judged, Table
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, completed_counts

INTERVAL = "95 % interval"


def size_table(section: Section, group: CellGroup, *, narrow: bool = False) -> Table:
    """Tabulate every size of one configuration on one benchmark; `narrow` has the rounds that
    would decide in brackets after the rounds rather than after the verdict."""
    columns = (
        Column("size", right=True, width=8),
        Column("baseline", right=True, width=9),
        Column("value", right=True, width=9),
        Column("ratio", right=True, width=6),
        Column(INTERVAL, width=14),
        Column("rounds", right=True, width=10),
        Column("verdict"),
    )
    rows = tuple(
        (
            numbers.size(cell.size),
            numbers.number(cell.baseline),
            numbers.number(cell.value),
            numbers.ratio(cell.ratio),
            numbers.interval(cell.low, cell.high),
            *_rounds_and_verdict(cell, narrow=narrow),
        )
        for cell in group.cells
    )
    caption = f"{group.configuration}, {words.in_unit(section.quantity, section.unit)}"
    return Table(caption, columns, rows)


def _rounds_and_verdict(cell: Cell, *, narrow: bool) -> tuple[str, Judged]:
    needed = cell.rounds_needed
    if needed is None:
        return str(cell.rounds), Judged(cell.verdict)
    if narrow:
        most = needed if needed < 10_000 else ">9999"
        return f"{cell.rounds} ({most})", Judged(cell.verdict)
    return str(cell.rounds), Judged(cell.verdict, f", needs {needed} rounds")


def baseline_table(series: BaselineSeries, baseline: str) -> Table:
    """Tabulate the baseline's own values on one benchmark, where there is nothing to compare."""
    columns = (
        Column("size", right=True, width=8),
        Column("value", right=True, width=9),
        Column(INTERVAL, width=18),
        Column("launches", right=True, width=8),
    )
    rows = tuple(
        (numbers.size(p.size), numbers.number(p.value), numbers.span(p.interval), p.launches)
        for p in series.figures
    )
    caption = (
        f"{baseline} at {series.benchmark} on {series.place}: "
        f"{words.in_unit(series.quantity, series.unit)}, {words.better(series.better)}"
    )
    return Table(caption, columns, rows)


def noise_table(data: ReportData) -> Table:
    """Tabulate how much the baseline differs from itself on each benchmark."""
    heads = ("benchmark", "margin", "typical interval", "false verdicts, control")
    rows = tuple(
        (f"{n.benchmark}, {n.layout}", numbers.percent(n.margin), numbers.spread(n.spread),
         f"{n.false_verdicts} of {n.cells}")
        for n in data.comparison.noise
    )  # fmt: skip
    return Table("Noise of each benchmark", tuple(map(Column, heads)), rows)


def launches_table(data: ReportData) -> Table | None:
    """Tabulate how many launches completed; None where all did."""
    counts = completed_counts(data.comparison)
    columns = (Column("configuration"), Column("layout"), Column("launches that completed"))
    return Table("Launches that completed", columns, tuple(counts)) if counts else None
