"""Which MPI at which message size: for each benchmark the configuration whose value is best.

It is read from the medians. The table says by how much it is better than the baseline, whether
that has a verdict at each of these sizes, and which others lie within the margin of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mpigraft.core import numbers
from mpigraft.core.model import Better, Cell, Verdict
from mpigraft.core.text import join_some
from mpigraft.report.contents import ReportData
from mpigraft.report.markup import Html, el, foreign, table
from mpigraft.report.scaling import Card
from mpigraft.report.wording.counts import Section

SHOWN = 3  # others as good that are named


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring sizes at which one configuration has the best value."""

    best: str
    sizes: tuple[int, ...]
    gains: tuple[float, ...]  # over the baseline; above 1 is better
    called: bool  # faster than the baseline at each of these sizes, by its verdict
    others: tuple[str, ...]  # within the margin of the best at each of these sizes


def runs(section: Section, baseline: str, margin: float) -> Iterator[Run]:
    """Cut the sizes of a section where the best configuration changes."""
    at: dict[int, dict[str, Cell]] = {}
    for group in section.groups:
        for cell in group.cells:
            at.setdefault(cell.size, {})[group.configuration] = cell
    run: Run | None = None
    for size in section.sizes:
        one = _best(size, at[size], section, baseline, margin)
        if run is not None and run.best == one.best:
            others = tuple(name for name in run.others if name in one.others)
            called = run.called and one.called
            run = Run(run.best, run.sizes + one.sizes, run.gains + one.gains, called, others)
            continue
        if run is not None:
            yield run
        run = one
    if run is not None:
        yield run


def _best(size: int, cells: dict[str, Cell], section: Section, baseline: str, margin: float) -> Run:
    higher = section.better is Better.HIGHER
    gains = {baseline: 1.0}
    gains |= {n: c.ratio if higher else 1 / c.ratio for n, c in cells.items() if c.ratio > 0}
    best = max(gains, key=lambda name: (gains[name], name == baseline))
    near = tuple(n for n, g in gains.items() if n != best and g * (1 + margin) >= gains[best])
    called = best in cells and cells[best].verdict is Verdict.FASTER
    return Run(best, (size,), (gains[best],), called, near)


def table_of_winners(cards: tuple[Card, ...], data: ReportData) -> Html | None:
    """Give the whole table, folded; None where nothing was compared."""
    if not cards:
        return None
    rows = [
        row for card in cards for section in card.sections for row in _rows(card, section, data)
    ]
    heads = ("benchmark", "layout", "sizes", "best value", "against the baseline", "as good")
    note = "From medians. ▲ marks what is called faster than the baseline at each of these sizes."
    body = table("Best configuration by message size", heads, rows, class_="plain")
    summary = el("summary", "Which MPI at which message size")
    return el("details", summary, el("p", note, class_="sub"), body, class_="winners")


def _rows(card: Card, section: Section, data: ReportData) -> Iterator[Html]:
    baseline = data.comparison.baseline
    for run in runs(section, baseline, data.margin):
        low, high = min(run.gains), max(run.gains)
        gain = f"{numbers.ratio(low)}x to {numbers.ratio(high)}x faster"
        if numbers.ratio(low) == numbers.ratio(high):
            gain = f"{numbers.ratio(low)}x faster"
        if run.best == baseline:
            gain = "is the baseline"
        yield el(
            "tr",
            el("th", f"{card.benchmark}, {card.quantity}", scope="row"),
            el("td", section.place),
            el("td", numbers.size_span(run.sizes)),
            el("td", foreign(run.best)),
            el("td", f"{'▲ ' if run.called else ''}{gain}"),
            el("td", foreign(join_some(run.others, SHOWN, ", ")) if run.others else "-"),
            data_find=f"{card.benchmark} {card.metric} {card.buffers}",
        )
