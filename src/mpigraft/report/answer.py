"""An answer in one screen: at most 40 lines of 80 columns for a quick campaign.

The answer comes first, three lines at most; then one table, of all curves for a comparison, then
the findings that may change the answer, one line each. All else is what `--full` and the page have.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mpigraft.analysis import speed_of
from mpigraft.core import numbers
from mpigraft.core.model import Comparison, Verdict
from mpigraft.core.text import printable
from mpigraft.report import precision
from mpigraft.report.contents import ReportData
from mpigraft.report.findings import left_out
from mpigraft.report.headline import headline, records
from mpigraft.report.screen import LINES, joined, shorten
from mpigraft.report.table import STYLES, Line, Part, Signs
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, sections

ANSWER = 3  # lines
IN_THE_ANSWER = "verdict-withheld"  # the finding whose count the answer has
ROWS = 12  # configurations
CURVE = 15  # columns for a sign and a factor in words
LEAST = 8  # columns for ids that are all longer than there is room
COLUMNS = 3  # curves beside each other that have room at 80 columns
COUNT = 8  # columns for a number of curves
GAIN = 7  # columns for a sign and a factor


def answer_lines(data: ReportData) -> tuple[str, ...]:
    """Give the answer, whose end says what has no verdict and stays; without an answer what is
    known of each curve."""
    lines, comparison = headline(data), data.comparison
    if len(lines) > ANSWER:
        lines = (lines[0], *lines[1 - ANSWER :])
    elif not lines and len(every := comparison.summary) > ANSWER:
        lines = (*every[: ANSWER - 1], f"{len(every) - ANSWER + 1} more lines: --full.")
    return tuple(map(words.single_line, lines or comparison.summary))


def curve_table(comparison: Comparison, width: int, signs: Signs) -> list[Line]:
    """Tabulate every curve as a factor against the baseline; where that is longer than LINES, how
    many curves of each configuration are faster, slower, equivalent and open."""
    every = [one for one in sections(comparison) if not one.repeats]
    names = [record.configuration for record in records(comparison.groups)]
    shown = names[:ROWS]
    if not shown:
        return []
    room = width - 1 - CURVE * min(len(every), COLUMNS)
    widest = _widest(shown, room)
    fits = max((width - widest - 1) // CURVE, 1)
    parts = (every[start : start + fits] for start in range(0, len(every), fits))
    lines = [line for part in parts for line in _block(part, shown, widest, signs)]
    if len({one.place for one in every}) > COLUMNS or len(lines) > LINES:
        lines = _over_layouts(every, shown, width, signs)
    if len(lines) > LINES or any(_length(line) > width for line in lines):
        lines = _counts(comparison, shown, _widest(shown, width - 1 - 4 * COUNT))
    if len(names) > ROWS:
        more = numbers.counted(len(names) - ROWS, "more configuration")
        lines.append([(f"and {more}: --full", "dim")])
    return lines


def _widest(names: Iterable[str], room: int) -> int:
    return max((len(printable(name)) for name in names if len(name) <= room), default=LEAST)


def _length(line: Line) -> int:
    return len("".join(text for text, _ in line).rstrip())


def _over_layouts(
    every: Sequence[Section], names: Sequence[str], width: int, signs: Signs
) -> list[Line]:
    """Write a row for each benchmark and configuration, a column for each layout."""
    places = list(dict.fromkeys(one.place for one in every))
    curves: dict[tuple[str, str], dict[str, Section]] = {}
    for one in every:
        curves.setdefault((one.benchmark, one.metric), {})[one.place] = one
    wide = {place: max(GAIN, len(place) + 1) for place in places}
    room = width - sum(wide.values())
    own = max(map(len, map(printable, names))) + 1 if len(names) > 1 else 0
    head = "above 1: faster" if own else shorten(f"{printable(names[0])}, above 1: faster", room)
    lines: list[Line] = [[(f"{head:{room}}" + "".join(f"{p:>{wide[p]}}" for p in places), "dim")]]
    for at, name in ((at, name) for at in curves.values() for name in names):
        what = _subject(next(iter(at.values())), max(room - own, CURVE))
        title = f"{what} {printable(name)}" if own else what
        cells = ((_gain(at.get(place), name, signs), wide[place]) for place in places)
        lines.append([(f"{title:{room}}", ""), *((f"{t:>{w}}", style) for (t, style), w in cells)])
    return lines


def _gain(section: Section | None, name: str, signs: Signs) -> Part:
    if section is None or (group := section.of(name)) is None:
        return "-", ""
    return f"{signs[group.curve]}{numbers.ratio(speed_of(group))}", STYLES[group.curve]


def _block(part: Sequence[Section], names: Sequence[str], widest: int, signs: Signs) -> list[Line]:
    """Write a few curves of all configurations, a column each; a layout that they share once."""
    places = [one.place for one in part]
    alike = len(set(places)) == 1
    lines = _row(places[0] if alike else "", widest, _heads(_subject(o, CURVE) for o in part))
    if not alike:
        lines += _row("", widest, _heads(places))
    for name in names:
        lines += _row(printable(name), widest, [_cell(one, name, signs) for one in part])
    return lines


def _heads(texts: Iterable[str]) -> list[Part]:
    return [(text, "dim") for text in texts]


def _row(name: str, widest: int, cells: Iterable[Part], wide: int = CURVE) -> list[Line]:
    """Put a name that is too long on a line of its own: it is never cut."""
    parts = [(f"{text:<{wide}}", style) for text, style in cells]
    if len(name) <= widest:
        return [[(f"{name:<{widest}} ", ""), *parts]]
    return [[(name, "")], [(f"{'':{widest}} ", ""), *parts]]


def _subject(section: Section, width: int) -> str:
    """Name a curve's benchmark without its suite if that is ours, as far as there is room."""
    name = printable(section.benchmark).removeprefix("native:")
    return name if len(name) < width else f"{name[: width - 4]}..."


def _cell(section: Section, name: str, signs: Signs) -> Part:
    if (group := section.of(name)) is None:
        return "-", ""
    factor = words.factor(group.pooled, section.better, section.unit)
    return f"{signs[group.curve]} {factor}", STYLES[group.curve]


def legend(signs: Signs, width: int) -> list[Line]:
    """Name the verdict of each sign, in its colour."""
    parts = [(f"{signs[verdict]} {verdict}", STYLES[verdict]) for verdict in Verdict]
    if sum(len(text) + 2 for text, _ in parts) > width:
        return [[part] for part in parts]
    return [[part for one in parts for part in (one, (", ", ""))][:-1]]


def _counts(comparison: Comparison, names: Sequence[str], widest: int) -> list[Line]:
    every = {record.configuration: record for record in records(comparison.groups)}
    lines = _row("curves", widest, _heads(("faster", "slower", "of", "gain")), COUNT)
    for name in names:
        one = every[name]
        faster = (str(one.faster), STYLES[Verdict.FASTER] if one.faster else "")
        slower = (str(one.slower), STYLES[Verdict.SLOWER] if one.slower else "")
        others = ((str(one.curves), ""), (numbers.ratio(one.gain), ""))
        lines += _row(printable(name), widest, (faster, slower, *others), COUNT)
    return lines


def next_lines(data: ReportData, width: int) -> Iterator[str]:
    """Say what would decide more, what was left out, and where all the rest is."""
    if step := precision.next_step(data):
        yield f"{step[0]}:"
        yield f"  {step[1]}"
    if out := left_out(data):
        count = numbers.counted(len(out), "configuration")
        yield f"left out: {count} that cannot run here; why: mpigraft discover --full"
    one = data.campaign.id[:8]  # a later campaign may have the same name
    yield from joined(
        f"all figures: mpigraft compare {one} --full", f"page: mpigraft report {one}", width=width
    )
