"""A comparison's answer in one screen: at most 40 lines of 80 columns for a quick campaign.

The answer comes first, three lines at most; then one table of all curves, then the findings that
may change the answer, one line each. All else is what `compare --full` and the page have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from mpigraft.core import numbers
from mpigraft.core.model import Better, Comparison, Level
from mpigraft.core.text import printable
from mpigraft.report import precision
from mpigraft.report.contents import ReportData
from mpigraft.report.findings import left_out, report_findings
from mpigraft.report.headline import headline, records
from mpigraft.report.table import Signs
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, sections

ANSWER = 3  # lines
ROWS = 12  # configurations
LINES = 24  # of the table
CURVE = 15  # columns for a sign and a factor in words
LEAST = 8  # columns for ids that are all longer than there is room
COLUMNS = 3  # curves beside each other that have room at 80 columns
GAIN = 7  # columns for a sign and a factor
ROOM = 10  # columns that a line loses where it is folded
IN_THE_ANSWER = "verdict-withheld"  # the finding whose count the answer has


def answer_lines(comparison: Comparison) -> tuple[str, ...]:
    """Give the answer, whose end says what has no verdict and stays; without an answer what is
    known of each curve."""
    lines = headline(comparison)
    if len(lines) > ANSWER:
        lines = (lines[0], *lines[1 - ANSWER :])
    elif not lines and len(every := comparison.summary) > ANSWER:
        lines = (*every[: ANSWER - 1], f"{len(every) - ANSWER + 1} more lines: --full.")
    return tuple(map(words.single_line, lines or comparison.summary))


def curve_table(comparison: Comparison, width: int, signs: Signs) -> list[str]:
    """Tabulate every curve as a factor against the baseline; where that is longer than LINES, how
    many curves of each configuration are faster, slower, equivalent and open."""
    every = [one for one in sections(comparison) if not one.repeats]
    names = [record.configuration for record in records(comparison.groups)]
    shown = names[:ROWS]
    if not shown:
        return []
    room = width - 1 - CURVE * min(len(every), COLUMNS)
    widest = max((len(printable(name)) for name in shown if len(name) <= room), default=LEAST)
    fits = max((width - widest - 1) // CURVE, 1)
    parts = (every[start : start + fits] for start in range(0, len(every), fits))
    lines = [line for part in parts for line in _block(part, shown, widest, signs)]
    if len({one.place for one in every}) > COLUMNS or len(lines) > LINES:
        lines = _over_layouts(every, shown, width, signs)
    if len(lines) > LINES or any(len(line) > width for line in lines):
        lines = _counts(comparison, shown, widest)
    if len(names) > ROWS:
        lines.append(f"and {numbers.counted(len(names) - ROWS, 'more configuration')}: --full")
    return lines


def _over_layouts(
    every: Sequence[Section], names: Sequence[str], width: int, signs: Signs
) -> list[str]:
    """Write a row for each benchmark and configuration, a column for each layout."""
    places = list(dict.fromkeys(one.place for one in every))
    curves: dict[tuple[str, str], dict[str, Section]] = {}
    for one in every:
        curves.setdefault((one.benchmark, one.metric), {})[one.place] = one
    wide = {place: max(GAIN, len(place) + 1) for place in places}
    room = width - sum(wide.values())
    own = max(map(len, map(printable, names))) + 1 if len(names) > 1 else 0
    head = "above 1: faster" if own else _cut(f"{printable(names[0])}, above 1: faster", room)
    lines = [f"{head:{room}}" + "".join(f"{p:>{wide[p]}}" for p in places)]
    for at, name in ((at, name) for at in curves.values() for name in names):
        what = _subject(next(iter(at.values())), max(room - own, CURVE))
        title = f"{what} {printable(name)}" if own else what
        cells = (f"{_gain(at.get(p), name, signs):>{wide[p]}}" for p in places)
        lines.append(f"{title:{room}}{''.join(cells)}")
    return lines


def _gain(section: Section | None, name: str, signs: Signs) -> str:
    if section is None or (group := section.of(name)) is None:
        return "-"
    gain = group.pooled if section.better is Better.HIGHER else 1 / group.pooled
    return f"{signs[group.curve]}{numbers.ratio(gain)}"


def _block(part: Sequence[Section], names: Sequence[str], widest: int, signs: Signs) -> list[str]:
    """Write a few curves of all configurations, a column each; a layout that they share once."""
    places = [one.place for one in part]
    alike = len(set(places)) == 1
    lines = [_row(places[0] if alike else "", widest, [_subject(one, CURVE) for one in part])]
    if not alike:
        lines.append(_row("", widest, places))
    lines += [
        _row(printable(name), widest, [_cell(one, name, signs) for one in part]) for name in names
    ]
    return [line for row in lines for line in row]


def _row(name: str, widest: int, cells: Sequence[str]) -> list[str]:
    """Put a name that is too long on a line of its own: it is never cut."""
    text = "".join(f"{cell:<{CURVE}}" for cell in cells).rstrip()
    return [f"{name:<{widest}} {text}"] if len(name) <= widest else [name, f"{'':{widest}} {text}"]


def _subject(section: Section, width: int) -> str:
    """Name a curve's benchmark without its suite if that is ours, as far as there is room."""
    name = printable(section.benchmark).removeprefix("native:")
    return name if len(name) < width else f"{name[: width - 4]}..."


def _cell(section: Section, name: str, signs: Signs) -> str:
    if (group := section.of(name)) is None:
        return "-"
    return f"{signs[group.curve]} {words.factor(group.pooled, section.better, section.unit)}"


def _counts(comparison: Comparison, names: Sequence[str], widest: int) -> list[str]:
    every = {record.configuration: record for record in records(comparison.groups)}
    lines = _row("curves", widest, ("faster", "slower", "of", "mean gain"))
    for name in names:
        one = every[name]
        cells = (one.faster, one.slower, one.curves, numbers.ratio(one.gain))
        lines += _row(printable(name), widest, tuple(map(str, cells)))
    return lines


def finding_lines(data: ReportData, width: int) -> Iterator[tuple[Level, str]]:
    """Give a line, of two screen widths at most, for each kind of finding that may change the
    answer, worst first."""
    notable = [
        f for f in report_findings(data) if f.level is not Level.INFO and f.code != IN_THE_ANSWER
    ]
    for (level, code), alike in groupby(notable, key=lambda f: (f.level, f.code)):
        first, *more = alike
        line = f"{level} {printable(code)}: {_shortest(words.single_line(first.message))}"
        rest = f" (and {len(more)} more)" if more else ""
        yield level, _cut(line, 2 * width - len(rest) - ROOM) + rest


def _shortest(message: str) -> str:
    """Leave out a list of configurations that follows what was seen."""
    what, _, named = message.partition(": ")
    return what if " " in what and "@" in named and "@" not in what else message


def _cut(text: str, width: int) -> str:
    if len(text) <= width:
        return text
    cut = text[: width - 3]
    return (whole if len(whole := cut.rsplit(" ", 1)[0]) > width // 2 else cut).rstrip(
        ",;:"
    ) + "..."


def next_lines(data: ReportData) -> Iterator[str]:
    """Say what would decide more, what was left out, and where all the rest is."""
    if (deciding := precision.deciding(data)) and (command := precision.extension(data)):
        yield f"{deciding.partition(',')[0]}:"
        yield f"  {command}"
    if out := left_out(data):
        count = numbers.counted(len(out), "configuration")
        yield f"left out: {count} that cannot run here (`mpigraft discover` says why)"
    one = data.campaign.id[:8]  # a later campaign may have the same name
    yield f"all figures: mpigraft compare {one} --full; page: mpigraft report {one}"
