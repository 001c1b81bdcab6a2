"""The history of a machine in one screen: what is slower now, a row for each line, and a line for
each campaign since which some differ."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from mpigraft.core import numbers
from mpigraft.core.model import Level, Verdict, metric_name
from mpigraft.core.text import join_some, printable
from mpigraft.report.overtime.history import History, lines_by_subject, place_of, strip
from mpigraft.report.screen import LINES, ROOM, Screen, finding_lines, joined, shorten
from mpigraft.report.table import STYLES, Line, Signs
from mpigraft.report.wording import words

if TYPE_CHECKING:
    from mpigraft.analysis import HistoryLine

VALUE, FACTOR, LEAST = 9, 15, 8  # columns of a value, a factor in words, a strip
ONE = "  one campaign"
CHANGES = 5  # campaigns with changes that have a line
NAMED = 3  # configurations, and facts, that such a line names


def history_screen(data: History, width: int, signs: Signs, bars: str) -> Screen:
    """Lay the history out; `bars` are the signs of a strip, the lowest first."""
    every = numbers.counted(len(data.lines), "line")
    slower = [line for line in data.lines if data.slower_since(line)]
    if slower:
        answer = f"Slower now: {len(slower)} of {every}."
    elif any(line.judged for line in data.lines):
        answer = f"No line is slower now ({every})."
    else:
        most = max(len(line.points) for line in data.lines)
        answer = f"Too few campaigns to judge: a line needs 4, the longest of {every} has {most}."
    days = list(dict.fromkeys(one.created[:10] for one in data.campaigns))
    dates = " to ".join(dict.fromkeys((days[0], days[-1])))
    changes = numbers.counted(sum(len(line.shifts) for line in data.lines), "change")
    count = numbers.counted(len(data.campaigns), "campaign")
    full = ["every change of every line: mpigraft history --full"]
    good = ["call a campaign good: mpigraft history --accept CAMPAIGN"] if slower else []
    return Screen(
        [answer, f"{count}, {dates}; {changes}."],
        _rows(data, width, signs, bars),
        [*finding_lines(data.findings, width), *_changes(data, width)],
        joined(*full, *good, width=width),
    )


def _rows(data: History, width: int, signs: Signs, bars: str) -> list[Line]:
    """Write a row for each line below what it measures; of too many the most changed."""
    several = any(len(line.points) > 1 for line in data.lines)
    room = width - 2 * VALUE - (FACTOR + LEAST + 4 if several else len(ONE))
    shown = _chosen(data, room)
    some = [line for line in data.lines if id(line) in shown]
    names = [printable(line.key.configuration) for line in some]
    wide = max((len(name) for name in names if len(name) <= room), default=LEAST)
    heads = f"{'':{wide}}{'first':>{VALUE}}{'now':>{VALUE}}"
    rows: list[Line] = [[(heads, "dim")]]
    machine = ""
    for lines in lines_by_subject(some):
        key = lines[0].key
        if key.machine != machine:
            machine = key.machine
            rows.append([(shorten(printable(machine), width), "")])
        rows.append([(shorten(printable(_subject(lines[0])), width), "dim")])
        for line in lines:
            rows += _row(data, line, wide, signs, bars, width)
    if more := len(data.lines) - len(some):
        rows.append([(f"and {numbers.counted(more, 'more line')}: --full", "dim")])
    return rows


def _chosen(data: History, room: int) -> set[int]:
    """Choose lines that fit in a table, the slowest now first, then others that changed most. A
    name of more columns than there is `room` has a row of its own."""

    def rank(line: HistoryLine) -> tuple[bool, float]:
        slower = data.slower_since(line)
        ratios = [slower[1]] if slower else [shift.ratio for shift in line.shifts]
        return slower is None, -max((abs(math.log(ratio)) for ratio in ratios), default=0.0)

    heads: set[object] = set()
    chosen: set[int] = set()
    rows = 0
    for line in sorted(data.lines, key=rank):
        more = heads | {line.key.machine, (line.key[:-1], line.sizes)}
        own = 1 + (len(printable(line.key.configuration)) > room)
        if len(more) + rows + own > LINES - 2:
            continue
        heads, rows = more, rows + own
        chosen.add(id(line))
    return chosen


def _subject(line: HistoryLine) -> str:
    key = line.key.series
    unit = words.in_unit(metric_name(key.metric), line.unit)
    return f"{key.benchmark} {place_of(line)}: {unit}, {words.better(line.better)}"


def _row(
    data: History, line: HistoryLine, wide: int, signs: Signs, bars: str, width: int
) -> Iterator[Line]:
    """Write the first value and the last, how they differ, and a sign for each campaign. A name
    that is too long has a line of its own."""
    name, points = printable(line.key.configuration), line.points
    if len(name) > wide:
        yield [(name, "")]
        name = ""
    first, last = (numbers.number(point.value) for point in (points[0], points[-1]))
    if len(points) == 1:
        yield [(f"{name:{wide}}{last:>{2 * VALUE}}{ONE}", "")]
        return
    change = words.factor(math.exp(points[-1].level - points[0].level), line.better, line.unit)
    better = bool(line.shifts) and not line.shifts[-1].slower
    verdict = Verdict.SLOWER if data.slower_since(line) else Verdict.FASTER if better else None
    sign = signs[verdict] if verdict else " "
    style = STYLES[verdict] if verdict else ""
    yield [
        (f"{name:{wide}}{first:>{VALUE}}{last:>{VALUE}}  ", ""),
        (f"{sign} {change:{FACTOR - 2}}  ", style),
        (strip(line, bars)[-(width - wide - 2 * VALUE - FACTOR - 4) :], ""),
    ]


def _changes(data: History, width: int) -> Iterator[tuple[Level, str]]:
    """Say with which campaigns lines changed, the latest first, and what else changed then."""
    since: dict[tuple[str, str, tuple[str, ...]], list[tuple[bool, float, str]]]
    since = defaultdict(list)
    for line in data.lines:
        slower = data.slower_since(line)
        for shift in line.shifts:
            point = line.points[shift.index]
            factor = words.factor(shift.ratio, line.better, line.unit)
            text = f"{line.key.configuration} {factor}"
            bad = slower is not None and slower[0] is shift
            since[point.created[:10], point.campaign[:8], shift.what].append(
                (bad, abs(math.log(shift.ratio)), text)
            )
    order = sorted(since, reverse=True)
    for day, campaign, what in order[:CHANGES]:
        lines = sorted(since[day, campaign, what], reverse=True)
        bad, _, first = lines[0]
        changed = join_some(what, NAMED, ", ") or "nothing that was recorded"
        more = f" (and {numbers.counted(len(lines) - 1, 'more line')})" if lines[1:] else ""
        text = f"since {day} ({campaign}): {first}{more}; changed: {changed}"
        yield Level.WARNING if bad else Level.INFO, shorten(printable(text), 2 * width - ROOM)
    if rest := order[CHANGES:]:
        yield Level.INFO, f"and {numbers.counted(len(rest), 'earlier change')}: --full"
