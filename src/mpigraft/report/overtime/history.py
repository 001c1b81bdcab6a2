"""The history of a machine: lines of results over campaigns, as text, JSON and JUnit."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Self, TypedDict

from mpigraft.analysis import HistoryLine, Shift, sort_history
from mpigraft.core import numbers
from mpigraft.core.errors import CheckFailed, MissingError, NotJudged
from mpigraft.core.messages import Lines
from mpigraft.core.model import Better, CampaignRecord, Finding, metric_name
from mpigraft.core.serialize import document, plain, row_of
from mpigraft.core.text import fold, join_some, printable
from mpigraft.report.contents import load_measured
from mpigraft.report.overtime.junit import Case, junit
from mpigraft.report.screen import print_screen, signs_of
from mpigraft.report.wording import words
from mpigraft.store import Store

if TYPE_CHECKING:
    from rich.console import Console

    from mpigraft.analysis import HistoryPoint
    from mpigraft.core.model import SeriesKey
    from mpigraft.core.serialize import Keys

    PointKeys = Annotated[dict[str, Any], HistoryPoint, Keys(value=float)]
    LineKeyKeys = Annotated[
        dict[str, Any], Keys(machine=str), SeriesKey, Keys(configuration=str)
    ]  # the configuration has no versions
    LineKeys = Annotated[dict[str, Any], HistoryLine, Keys(key=LineKeyKeys, points=list[PointKeys])]

BARS, ASCII_BARS = "▁▂▃▄▅▆▇█", "_.-=oO#@"
WIDEST = 40  # campaigns of a strip; of more, the last ones
SHOWN = 8
LEAST_P = 1e-9  # what is less likely is not known so well
MARGIN = math.log1p(0.03)  # a line that is slower by less has not changed
ALONE = "one campaign: a second shows whether it changed"
HALF = math.log(1.5)  # of a strip: half of its height, up and down from the first campaign


class HistoryCampaign(TypedDict):
    """A campaign that has values."""

    id: str
    name: str
    created: str
    accepted: bool  # as a good state


class HistoryDocument(TypedDict):
    """Campaigns of a store as lines of results over time."""

    campaigns: list[HistoryCampaign]  # oldest first
    lines: list[LineKeys]
    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class History:
    """Campaigns as lines, and which of them were accepted as a good state."""

    lines: tuple[HistoryLine, ...]
    campaigns: tuple[CampaignRecord, ...]
    accepted: tuple[str, ...]  # ids, the latest last
    findings: tuple[Finding, ...] = ()

    @classmethod
    def load(cls, store: Store, *, last: int = 0, machine: str = "", layout: str = "") -> Self:
        """Read the `last` campaigns of a store (0: all) of machines and layouts whose names
        contain these words. Raises MissingError where none has values."""
        if not (records := store.campaigns()):
            store.campaign(None)  # raises MissingError: no results are there
        latest = (side for c in reversed(records) if (side := load_measured(store, c.id)).values)
        sides = list(islice(latest, min(last or len(records), len(records))))[::-1]
        lines = tuple(
            line
            for line in sort_history(sides)
            if machine.lower() in line.key.machine.lower()
            and layout in ("", line.key.series.layout)
        )
        if not lines:
            asked = {"machine": machine, "layout": layout}
            of = "".join(f" of {name} {word!r}" for name, word in asked.items() if word)
            raise MissingError.of("history-empty", folder=store.folder, of=of)
        used = {point.campaign for line in lines for point in line.points}
        accepted = tuple(name for _, name in store.accepted() if name in used)
        kept = tuple(side.campaign for side in sides if side.campaign.id in used)
        return cls(lines, kept, accepted, store.findings)

    def show(self, console: Console, *, full: bool) -> None:
        """Print a line for each configuration with its changes, or one screen."""
        from mpigraft.report.overtime.history_screen import history_screen

        signs = signs_of(console)
        bars = ASCII_BARS if signs is words.ASCII_SIGNS else BARS
        if not full:
            print_screen(history_screen(self, console.width, signs, bars), console)
            return
        for text in history_lines(self, bars):
            console.print(printable(text), soft_wrap=True)

    def json(self) -> str:
        """Write the document of schemas/history.json."""
        keys = HistoryDocument(
            campaigns=[
                row_of(HistoryCampaign, c, accepted=c.id in self.accepted) for c in self.campaigns
            ],
            lines=[_document(line) for line in self.lines],
            findings=self.findings,
        )
        return document(**keys)

    def junit(self) -> bytes:
        """Give a test case for each line: it fails while it is slower than the good state
        before."""
        return junit("mpigraft history", [self._case(line) for line in self.lines])

    def worse(self) -> list[str]:
        """Describe each line that is slower now than before a change that nobody accepted."""
        cases = [self._case(line) for line in self.lines]
        return [f"{c.name} at {c.suite}: {c.text}" for c in cases if c.kind == "failure"]

    def refuse_worse(self) -> None:
        """Raise CheckFailed where a line is, NotJudged where each has too few campaigns."""
        if lines := self.worse():
            more = [f"and {len(lines) - SHOWN} more"] if len(lines) > SHOWN else []
            raise CheckFailed.of("history-slower", lines=Lines.below([*lines[:SHOWN], *more]))
        if not any(line.judged for line in self.lines):
            most = max(len(line.points) for line in self.lines)
            raise NotJudged.of("history-unjudged", campaigns=numbers.counted(most, "campaign"))

    def slower_since(self, line: HistoryLine) -> tuple[Shift, float] | None:
        """Give the change since which a line is slower than its good state, and how much slower it
        is now; None where it is not."""
        shifts = [s for s in line.shifts if not self._accepted_since(line, s.index)]
        return _slower_since(line, shifts)

    def _case(self, line: HistoryLine) -> Case:
        key = line.key
        several = sum(other.key == key for other in self.lines) > 1
        over = f" over {numbers.size_span(line.sizes)}" if several else ""
        suite = f"{' '.join(key.series[:3])}{over} on {key.machine}"
        if since := self.slower_since(line):
            first, ratio = since
            point = line.points[first.index]
            changed = join_some(first.what, 6) or "nothing that was recorded"
            text = f"slower since {point.created[:10]} ({point.campaign[:8]}), ratio "
            text += f"{numbers.ratio(ratio)}; changed then: {changed}"
            return Case(suite, key.configuration, "failure", text)
        if not line.judged:
            text = f"{numbers.counted(len(line.points), 'campaign')}: four are needed"
            return Case(suite, key.configuration, "skipped", text)
        return Case(suite, key.configuration)

    def _accepted_since(self, line: HistoryLine, index: int) -> bool:
        return any(point.campaign in self.accepted for point in line.points[index:])


def _slower_since(line: HistoryLine, shifts: Sequence[Shift]) -> tuple[Shift, float] | None:
    """Give the change from which on a line has been slower than before all of `shifts`, and how
    much slower it is now; None where it is not."""
    sign = 1 if line.better is Better.LOWER else -1
    level, levels = 0.0, []
    for shift in shifts:
        level += math.log(shift.ratio)
        levels.append(sign * level > MARGIN)
    if not levels or not levels[-1]:
        return None
    first = max((n + 1 for n, slower in enumerate(levels) if not slower), default=0)
    return shifts[first], math.exp(level)


def history_lines(data: History, bars: str = BARS) -> Iterator[str]:
    """Lay the lines out, at most 80 columns."""
    machine = None
    for lines in lines_by_subject(data.lines):
        key = lines[0].key
        if key.machine != machine:
            machine = key.machine
            yield from fold(machine)
        yield ""
        yield from fold(
            f"{key.series.benchmark}: "
            f"{words.in_unit(metric_name(key.series.metric), lines[0].unit)}, "
            f"{words.better(lines[0].better)}, {place_of(lines[0])}"
        )
        for line in lines:
            yield from _line(line, bars)
    yield ""
    first, last = data.campaigns[0].created[:10], data.campaigns[-1].created[:10]
    shifts = sum(len(line.shifts) for line in data.lines)
    yield from fold(
        f"{numbers.counted(len(data.campaigns), 'campaign')}, {first} to {last}, "
        f"{numbers.counted(len(data.lines), 'line')}, {numbers.counted(shifts, 'change')}"
    )
    for finding in data.findings:
        yield from fold(f"{finding.level} {finding.code}: {words.single_line(finding.message)}")
    for text in data.worse():
        yield from fold(f"slower: {text}")


def _line(line: HistoryLine, bars: str) -> Iterator[str]:
    first, last = line.points[0].level, line.points[-1].level
    one = len(line.points) == 1  # nothing to hold it against
    ratio = f", now {numbers.ratio(math.exp(last - first))}x the first"
    ends = [numbers.number(line.points[place].value) for place in ((0,) if one else (0, -1))]
    values = f"{' to '.join(ends)} {line.unit}"
    yield from fold(line.key.configuration, "  ", 4)
    count = numbers.counted(len(line.points), "campaign")
    text = f"{values}, {ALONE}" if one else f"{count}, {values}{ratio}"
    yield from fold(f"{strip(line, bars)}  {text}", "    ", 4)
    for shift in line.shifts:
        point = line.points[shift.index]
        word = "slower" if shift.slower else "faster"
        changed = join_some(shift.what, 4) or "nothing that was recorded"
        yield from fold(
            f"{point.created[:10]} {point.campaign[:8]} {word}, ratio "
            f"{numbers.ratio(shift.ratio)}, {_p(shift.p)}; changed: {changed}",
            "    ",
            6,
        )


def _p(p: float) -> str:
    return f"p {p:.2g}" if p >= LEAST_P else f"p below {LEAST_P:.0e}"


def strip(line: HistoryLine, bars: str) -> str:
    """Write a sign for each of the last campaigns: the middle one is the first campaign's level,
    the ends 1.5 times off."""
    levels = [point.level for point in line.points]
    return "".join(_bar(level - levels[0], bars) for level in levels[-WIDEST:])


def _bar(log: float, bars: str) -> str:
    place = (log + HALF) / (2 * HALF) * len(bars)
    return bars[min(max(int(place), 0), len(bars) - 1)]


def _document(line: HistoryLine) -> LineKeys:
    row: dict[str, Any] = plain(line)
    machine, series, configuration = line.key
    row["key"] = {"machine": machine, **series._asdict(), "configuration": configuration}
    row["points"] = [{**plain(point), "value": point.value} for point in line.points]
    return row


def place_of(line: HistoryLine) -> str:
    """`2x64, cuda buffers, over 1 B to 1 KiB (11 sizes; 12 that not all campaigns have are left
    out)`: buffers and sizes where they are not the usual ones."""
    key, out = line.key.series, len(line.left_out)
    buffers = f", {key.buffers} buffers" if key.buffers != "host" else ""
    if not out:
        return f"{key.layout}{buffers}"
    sizes = f"{numbers.counted(len(line.sizes), 'size')}; {out} that not all campaigns have"
    verb = "is" if out == 1 else "are"
    over = f"over {numbers.size_span(line.sizes)} ({sizes} {verb} left out)"
    return f"{key.layout}{buffers}, {over}"


def lines_by_subject(lines: Sequence[HistoryLine]) -> list[list[HistoryLine]]:
    """Return lines that share all but the configuration, their sizes too, in their order."""
    groups: dict[tuple[object, ...], list[HistoryLine]] = defaultdict(list)
    for line in lines:
        groups[line.key[:-1], line.sizes].append(line)
    return list(groups.values())
