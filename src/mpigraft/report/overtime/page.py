"""The page of a history: a chart for each benchmark and layout, a line for each configuration.

The chart shows how many times better or worse each campaign was than the first one of its line;
up is better for bandwidth and latency alike. Changes are marked with numbers, and the list under
the chart says what changed. The script draws the charts; without it the tables under them have
each campaign's value.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any

from mpigraft.analysis import HistoryLine
from mpigraft.core import numbers
from mpigraft.core.env import redact
from mpigraft.core.model import Better, metric_name
from mpigraft.core.text import join_some
from mpigraft.report.html.document import chart, header, main, nav, render_document, section
from mpigraft.report.markup import Html, el, foreign
from mpigraft.report.overtime.history import History, lines_by_subject, place_of
from mpigraft.report.table import Column, Table
from mpigraft.report.wording import labels, words

TITLE = "MPI performance over time"
NO_SCRIPTS = "Scripts are off: charts are not drawn. Tables have the value of each campaign."


def render_history(data: History) -> str:
    """Write the whole file. The same data give the same text, byte for byte."""
    subjects = sorted(lines_by_subject(data.lines), key=_machine)
    sections, links = [], []
    if slower := data.worse():
        rows = el("ul", *(el("li", foreign(text)) for text in slower))
        sections.append(section("slower", "Slower than before, and not accepted", rows))
        links.append(("slower", "Slower"))
    places = groupby(enumerate(subjects), key=lambda one: _machine(one[1]))
    for number, (machine, own) in enumerate(places, 1):
        parts = (part for index, lines in own for part in _subject(lines, index))
        sections.append(section(f"machine-{number}", machine, *parts))
        links.append((f"machine-{number}", machine))
    names = sorted({line.key.configuration for line in data.lines})
    figures = {
        "order": names,
        "names": labels.looks({name: name for name in names}),
        "plots": [_plot(lines) for lines in subjects],
    }
    return render_document(TITLE, (_header(data), nav(links), main(sections)), figures)


def _machine(lines: Sequence[HistoryLine]) -> str:
    return lines[0].key.machine


def _header(data: History) -> Html:
    first, last = data.campaigns[0].created[:10], data.campaigns[-1].created[:10]
    span = f"{numbers.counted(len(data.campaigns), 'campaign')}, {first} to {last}."
    about = f"{span} A line is a configuration of any versions. Up is better."
    shifts = sum(len(line.shifts) for line in data.lines)
    facts = (("lines", len(data.lines)), ("changes", shifts), ("accepted", len(data.accepted)))
    return header("mpigraft history", TITLE, [about], facts, NO_SCRIPTS)


def _subject(lines: Sequence[HistoryLine], index: int) -> Iterator[Html]:
    """Yield what one benchmark on one layout has; `index` is that of its plot."""
    key, better = lines[0].key.series, words.better(lines[0].better)
    what = words.in_unit(metric_name(key.metric), lines[0].unit)
    title = f"{key.benchmark} on {place_of(lines[0])}: {what}"
    yield el("h3", foreign(f"{title}, {better}"))
    if any(len(line.points) > 1 for line in lines):
        names = join_some([line.key.configuration for line in lines], 6, ", ")
        alt = f"Times better than the first campaign, over time: {names}."
        yield chart(
            "history", alt, "Times better than the first campaign of the line.", data_plot=index
        )
    if changes := _changes(lines):
        yield changes
    yield _ends(lines)
    yield el("details", el("summary", "Every campaign"), _campaigns(lines))


def _plot(lines: Sequence[HistoryLine]) -> dict[str, Any]:
    """Return what the page's script draws: points as (ms, times better, words)."""
    return {
        "lines": [{"name": line.key.configuration, "points": [*_points(line)]} for line in lines],
        "changes": [
            (_ms(line.points[index].created), number)
            for number, (line, index) in enumerate(_marks(lines), 1)
        ],
    }


def _points(line: HistoryLine) -> Iterator[tuple[int, float, list[str]]]:
    sign = -1 if line.better is Better.LOWER else 1
    for point in line.points:
        gain = math.exp(sign * (point.level - line.points[0].level))
        value = f"{numbers.number(point.value)} {line.unit}, {numbers.ratio(gain)}x"
        text = [redact(f"{point.created[:10]} {point.configuration}"), value]
        yield _ms(point.created), float(f"{gain:.5g}"), text


def _ms(created: str) -> int:
    return round(1000 * datetime.fromisoformat(created).timestamp())


def _marks(lines: Sequence[HistoryLine]) -> list[tuple[HistoryLine, int]]:
    """List a mark for each campaign at which any line changed."""
    marks: dict[str, tuple[HistoryLine, int]] = {}
    for line in lines:
        for shift in line.shifts:
            marks.setdefault(line.points[shift.index].campaign, (line, shift.index))
    return sorted(marks.values(), key=lambda mark: mark[0].points[mark[1]].created)


def _changes(lines: Sequence[HistoryLine]) -> Html | None:
    """Give what the numbers of the marks mean."""
    rows = []
    for line, index in _marks(lines):
        campaign = line.points[index]
        changed = [
            (other.key.configuration, shift)
            for other in lines
            for shift in other.shifts
            if other.points[shift.index].campaign == campaign.campaign
        ]
        names = ", ".join(
            f"{name} {'slower' if s.slower else 'faster'} ({numbers.ratio(s.ratio)}x)"
            for name, s in changed
        )
        what = dict.fromkeys(text for _, s in changed for text in s.what)
        text = "; ".join(what) or "nothing that was recorded"
        head = f"{campaign.created[:10]}, campaign {campaign.campaign[:8]}: {names}. Changed: "
        rows.append(el("li", foreign(head + text)))
    return el("ol", *rows) if rows else None


def _ends(lines: Sequence[HistoryLine]) -> Html:
    heads = ("configuration", "campaigns", "first", "last", "last over first", "changes")
    rows = tuple(
        (
            line.key.configuration,
            len(line.points),
            numbers.number(line.points[0].value),
            numbers.number(line.points[-1].value),
            numbers.ratio(math.exp(line.points[-1].level - line.points[0].level)),
            len(line.shifts),
        )
        for line in lines
    )
    return Table("Values", tuple(map(Column, heads)), rows).html("plain")


def _campaigns(lines: Sequence[HistoryLine]) -> Html:
    """Tabulate the value of each configuration in each campaign."""
    values: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    for line in lines:
        for point in line.points:
            own = values[point.created[:10], point.campaign[:8]]
            own[line.key.configuration] = numbers.number(point.value)
    names = [line.key.configuration for line in lines]
    rows = tuple(
        (*who, *(own.get(name, "-") for name in names)) for who, own in sorted(values.items())
    )
    heads = ("date", "campaign", *names)
    return Table(f"Values in {lines[0].unit}", tuple(map(Column, heads)), rows).html("plain")
