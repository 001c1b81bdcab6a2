"""The page of a history: a picture for each benchmark and layout, a line for each configuration.

The picture shows how many times better or worse each campaign was than the first one of its line;
up is better for bandwidth and latency alike. Changes are marked with numbers, and the list under
the picture says what changed. No script and no request: it is one file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

import mpigraft
from mpigraft.analysis import HistoryLine
from mpigraft.core import numbers
from mpigraft.core.homes import hide_homes
from mpigraft.core.model import Better, metric_name
from mpigraft.core.text import join_some
from mpigraft.report.markup import Html, el, foreign, join, scrolling, table_row
from mpigraft.report.overtime.history import History, lines_by_subject, place_of
from mpigraft.report.wording import labels, words

WIDE, HIGH, LEFT, RIGHT, TOP, BOTTOM = 720, 250, 52, 470, 14, 214
LEAST = math.log(1.1)  # half of the height at least, so that noise does not look like a change
HUES = ("#2f6fb5", "#b5542f", "#3d7a3d", "#7a3d8c", "#8a6d00", "#a3305f", "#2a7a80", "#5b5b5b")
HUES_DARK = ("#7fb2ec", "#f0a07c", "#8ccf8c", "#c79ad6", "#e0c050", "#ec90b5", "#74c7cd", "#c0c0c0")
LABEL = 15  # units between two labels
Styles = Mapping[str, tuple[int, int]]  # (hue, variant) of each configuration


class End(NamedTuple):
    """The last point of a line in a picture."""

    place: tuple[float, float]
    name: str
    hue: int
    dash: str


STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1b1b1b;--soft:#4d4d4d;--line:#c9c9c9;--bad:#9b1c1c}
@media screen and (prefers-color-scheme:dark){
:root{--bg:#161616;--fg:#ececec;--soft:#bdbdbd;--line:#4a4a4a;
--bad:#ff9a9a}}
body{background:var(--bg);color:var(--fg);font:16px/1.5 system-ui,sans-serif;max-width:60rem;
margin:0 auto;padding:1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}h3{font-size:1rem;margin-bottom:.2rem}
svg{width:100%;height:auto;min-width:34rem;max-width:720px;display:block}
.scroll:focus-visible{outline:2px solid var(--fg)}svg text{fill:var(--fg);font-size:11px}
.grid{stroke:var(--line)}.mark{stroke:var(--soft);stroke-dasharray:4 3}
table{border-collapse:collapse;font-size:.9rem}th,td{text-align:left;padding:.2rem .7rem .2rem 0;
border-bottom:1px solid var(--line);vertical-align:top}caption{text-align:left;font-weight:600}
.scroll{overflow-x:auto}.worse{color:var(--bad)}.end{text-anchor:end}.mid{text-anchor:middle}
@media print{:root{color-scheme:light}body{max-width:none}svg{min-width:0}
h2{break-before:page}h2:first-of-type{break-before:auto}}
"""


def render_page(data: History) -> str:
    """Write the whole file. The same data give the same text, byte for byte."""
    machines = sorted({line.key.machine for line in data.lines})
    colours = "".join(
        f".c{n}{{stroke:{light};fill:none}}.d{n}{{fill:{light}}}"
        "@media screen and (prefers-color-scheme:dark)"
        f"{{.c{n}{{stroke:{dark}}}.d{n}{{fill:{dark}}}}}"
        for n, (light, dark) in enumerate(zip(HUES, HUES_DARK, strict=True))
    )
    policy = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="generator", content=f"mpigraft {mpigraft.__version__}"),
        el("title", "MPI performance over time"),
        el("style", Html(STYLE + colours)),
    )
    first, last = data.campaigns[0].created[:10], data.campaigns[-1].created[:10]
    span = f"{numbers.counted(len(data.campaigns), 'campaign')}, {first} to {last}."
    main = el(
        "main",
        el("h1", "MPI performance over time"),
        el("p", span, " A line is a configuration, whatever its versions. Up is better."),
        *_verdicts(data),
        *(part for machine in machines for part in _machine(data, machine)),
    )
    body = Html(hide_homes(el("body", main)))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _verdicts(data: History) -> Iterator[Html]:
    if slower := data.worse():
        yield el("p", "Slower than before, and not accepted:", class_="worse")
        yield el("ul", *(el("li", foreign(text)) for text in slower))


def _machine(data: History, machine: str) -> Iterator[Html]:
    yield el("h2", foreign(machine))
    own = [line for line in data.lines if line.key.machine == machine]
    styles = labels.styles(sorted({line.key.configuration for line in own}))
    for lines in lines_by_subject(own):
        key, better = lines[0].key, words.better(lines[0].better)
        what = words.in_unit(metric_name(key.metric), lines[0].unit)
        title = f"{key.benchmark} on {place_of(lines[0])}: {what}"
        yield el("h3", foreign(f"{title}, {better}"))
        yield _picture(lines, styles)
        if changes := _changes(lines):
            yield changes
        yield _table(lines)


def _gain(line: HistoryLine) -> list[float]:
    """Logarithms of how many times better than the first campaign each one is."""
    sign = -1 if line.better is Better.LOWER else 1
    return [sign * (point.level - line.points[0].level) for point in line.points]


def _picture(lines: Sequence[HistoryLine], styles: Styles) -> Html:
    times = [_time(point.created) for line in lines for point in line.points]
    begin, wide = min(times), (max(times) - min(times)) or 1.0
    gains = [gain for line in lines for gain in _gain(line)]
    half = max(LEAST, *(abs(gain) for gain in gains)) * 1.08
    middle = (TOP + BOTTOM) / 2

    def at(created: str, gain: float) -> tuple[float, float]:
        x = LEFT + (_time(created) - begin) / wide * (RIGHT - LEFT)
        return x, middle - gain / half * (BOTTOM - TOP) / 2

    parts: list[Html] = []
    for ratio in _ratios(half):
        y = at(lines[0].points[0].created, math.log(ratio))[1]
        parts.append(el("path", d=f"M{LEFT} {y:.1f}H{RIGHT}", class_="grid"))
        parts.append(
            el("text", f"{numbers.ratio(ratio)}x", x=LEFT - 6, y=f"{y + 4:.1f}", class_="end")
        )
    for number, (line, index) in enumerate(_marks(lines), 1):
        x, _ = at(line.points[index].created, 0)
        parts.append(el("path", d=f"M{x:.1f} {TOP}V{BOTTOM}", class_="mark"))
        parts.append(el("text", number, x=f"{x:.1f}", y=TOP - 3, class_="mid"))
    ends: list[End] = []
    for line in lines:
        gain = _gain(line)
        places = [at(p.created, g) for p, g in zip(line.points, gain, strict=True)]
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        hue, variant = styles[line.key.configuration]
        dash = words.DASHES[variant % len(words.DASHES)]
        parts.append(el("polyline", points=points, class_=f"c{hue}", stroke_width=2,
                        stroke_dasharray=dash or None))  # fmt: skip
        parts += [_dot(line, n, place, gain[n], hue) for n, place in enumerate(places)]
        ends.append(End(places[-1], line.key.configuration, hue, dash))
    parts += _labels(ends)
    days = [(begin, LEFT, ""), (begin + wide, RIGHT, "end")]
    parts += [
        el("text", _day(day), x=x, y=BOTTOM + 18, class_=class_ or None) for day, x, class_ in days
    ]
    names = join_some([line.key.configuration for line in lines], 6, ", ")
    alt = f"Times better than the first campaign, over time: {names}"
    drawn = el("svg", *parts, viewBox=f"0 0 {WIDE} {HIGH}", role="img", aria_label=alt)
    return scrolling(drawn, "Picture, may scroll")


def _dot(line: HistoryLine, index: int, place: tuple[float, float], gain: float, hue: int) -> Html:
    point = line.points[index]
    text = (
        f"{point.created[:10]} {point.configuration}: "
        f"{numbers.number(point.value)} {line.unit}, {numbers.ratio(math.exp(gain))}x"
    )
    x, y = place
    title = el("title", foreign(text))
    return el("circle", title, cx=f"{x:.1f}", cy=f"{y:.1f}", r=3, class_=f"d{hue}")


def _labels(ends: Sequence[End]) -> Iterator[Html]:
    """Yield names beside the ends of the lines, moved apart where they would run into each other;
    each with a piece of its line and of its dots. Nothing leads from one to the other: it would
    look like a line that goes on."""
    lowest = -math.inf
    for (_, y), name, hue, dash in sorted(ends, key=lambda end: (end.place[1], end.name)):
        place = max(y + 4, lowest + LABEL)
        lowest = place
        yield el("circle", cx=RIGHT + 32, cy=f"{place - 4:.1f}", r=3, class_=f"d{hue}")
        yield el("path", d=f"M{RIGHT + 20} {place - 4:.1f}h24", class_=f"c{hue}", stroke_width=2,
                 stroke_dasharray=dash or None)  # fmt: skip
        yield el("text", foreign(name), x=RIGHT + 50, y=f"{place:.1f}")


def _ratios(half: float) -> list[float]:
    steps = (1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 5.0, 10.0, 100.0, 1000.0)
    reach = [step for step in steps if math.log(step) <= half][-2:]
    return [*(1 / step for step in reach), 1.0, *reach]


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


def _table(lines: Sequence[HistoryLine]) -> Html:
    heads = ("configuration", "campaigns", "first", "last", "last over first", "changes")
    rows = [
        table_row(
            foreign(line.key.configuration),
            len(line.points),
            numbers.number(line.points[0].value),
            numbers.number(line.points[-1].value),
            numbers.ratio(math.exp(line.points[-1].level - line.points[0].level)),
            len(line.shifts),
        )
        for line in lines
    ]
    head = el("tr", *(el("th", text, scope="col") for text in heads))
    whole = el("table", el("caption", "Values"), el("thead", head), el("tbody", *rows))
    return scrolling(whole, "Values, may scroll")


def _time(created: str) -> float:
    return datetime.fromisoformat(created).timestamp()


def _day(seconds: float) -> Html:
    return join(datetime.fromtimestamp(seconds, UTC).date().isoformat())
