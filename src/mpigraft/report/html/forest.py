"""The picture below the headline: each configuration's speed against the baseline's, over all
sizes, with its interval, one column for each benchmark. To the right is faster, for latencies and
bandwidths alike."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mpigraft.analysis import speed_of
from mpigraft.core.model import CellGroup, Verdict
from mpigraft.report.markup import Html, el, hidden, scrolling
from mpigraft.report.scaling import Card, card_label
from mpigraft.report.wording import words

WIDTH, HEIGHT, EDGE = 190, 20, 8  # of a cell and its free ends, in pixels
LETTER, GAP = 5.6, 5  # of a label, and beside it, in pixels
LONG = 40  # letters: a longer name is folded
ROWS = 24  # more are a wall, which the table below shows as well
COLUMNS = 6
LEAST = 1.25  # factor that an axis shows at both sides, where nothing differs more
STEPS = (1.1, 1.25, 1.5, 2, 3, 5, 10, 20, 50, 100, 1e3, 1e4, 1e6, 1e9)  # of its ticks
INTERVALS = " Lines are 95 % intervals; a filled dot has a verdict, as in the table below."
CLASSES = {
    Verdict.FASTER: "v-faster",
    Verdict.SLOWER: "v-slower",
    Verdict.EQUIVALENT: "v-equal",
    Verdict.INCONCLUSIVE: "v-open",
}


def forest(cards: tuple[Card, ...], baseline: str) -> Html | None:
    """Draw the curves of a campaign with one layout that are speeds, each measurement once; None
    where it would not be one picture: several layouts, more rows or columns than fit."""
    cards = tuple(c for c in cards if words.is_speed(c.unit) and not c.sections[0].repeats)
    rows = _rows(cards)
    several = any(len(card.sections) > 1 for card in cards)
    if several or not 0 < len(rows) <= ROWS or len(cards) > COLUMNS:
        return None
    ends = [end for row in rows.values() for group, _ in row for end in _speeds(group)]
    axis = Axis(min(1 / LEAST, *ends), max(LEAST, *ends))
    lines = (
        el(
            "tr",
            el("th", name, scope="row", class_="long" if len(name) > LONG else None),
            *(_cell(row, card, axis) for card in cards),
            data_name=name,
        )
        for name, row in rows.items()
    )
    known = any(group.pooled_low is not None for row in rows.values() for group, _ in row)
    caption = (
        f"Speed against {baseline} over all sizes; to the right is faster." + INTERVALS * known
    )
    heads = (_head(card_label(card, cards), axis) for card in cards)
    head = el("tr", el("th", hidden("configuration"), scope="col"), *heads)
    parts = (el("caption", caption), el("thead", head), el("tbody", *lines))
    table = el("table", *parts, class_="forest", style=f"--columns:{len(cards)}")
    return el("figure", scrolling(table))


@dataclass(frozen=True, slots=True)
class Axis:
    """From the slowest speed to the fastest, as ratios to the baseline's, on a log scale."""

    low: float
    high: float

    def x(self, speed: float) -> float:
        part = math.log(speed / self.low) / math.log(self.high / self.low)
        return EDGE + (WIDTH - 2 * EDGE) * part

    @property
    def ticks(self) -> list[tuple[float, str, float]]:
        """1, and the last round number at each side whose label has room beside it, with the
        middles of the labels, which are within their column."""
        ticks = [(1.0, "1", self.x(1))]
        for end, way, power in ((1 / self.low, "slower", -1), (self.high, "faster", 1)):
            for step in (step for step in reversed(STEPS) if step <= end):
                text = f"{step:,.0f}x {way}" if step > 2 else f"{step:g}x {way}"
                half = LETTER * len(text) / 2 + GAP
                middle = min(max(self.x(step**power), half), WIDTH - half)
                if abs(middle - self.x(1)) >= half:
                    ticks.append((step**power, text, middle))
                    break
        return ticks


Row = list[tuple[CellGroup, Card]]


def _rows(cards: tuple[Card, ...]) -> dict[str, Row]:
    """Give the curves of each configuration, fastest first by their mean speed."""
    rows: dict[str, Row] = {}
    for card in cards:
        for group in card.sections[0].groups:
            if 0 < group.pooled < math.inf:
                rows.setdefault(group.configuration, []).append((group, card))

    def speed(row: Row) -> float:
        return sum(math.log(speed_of(group)) for group, _ in row) / len(row)

    return dict(sorted(rows.items(), key=lambda item: (-speed(item[1]), item[0])))


def _speeds(group: CellGroup) -> list[float]:
    """Return how fast it is against the baseline, and the ends of that interval if there is one."""
    ends = (group.pooled, group.pooled_low, group.pooled_high)
    return [speed_of(group, end) for end in ends if end is not None and 0 < end < math.inf]


def _svg(*children: object) -> Html:
    size = {"width": WIDTH, "height": HEIGHT, "viewBox": f"0 0 {WIDTH} {HEIGHT}"}
    return el("svg", *children, **size, aria_hidden="true")


def _head(name: str, axis: Axis) -> Html:
    texts = (el("text", text, x=f"{middle:.1f}", y=12) for _, text, middle in axis.ticks)
    return el("th", name, _svg(*texts), scope="col")


def _cell(row: Row, card: Card, axis: Axis) -> Html:
    marks = [_svg(*_mark(group, axis)) for group, own in row if own is card]
    return el("td", *marks)


def _mark(group: CellGroup, axis: Axis) -> Iterator[Html]:
    """Draw the ticks' lines, the interval, and the dot on them."""
    for speed, _, _ in axis.ticks:
        kind = "one" if speed == 1 else "grid"
        yield _line(kind, axis.x(speed), axis.x(speed), 0, HEIGHT)
    speed, *ends = _speeds(group)
    middle = HEIGHT / 2
    if len(ends) == 2:
        yield _line("whisker", axis.x(min(ends)), axis.x(max(ends)), middle, middle)
    kind = f"curve {CLASSES[group.curve]}"
    yield el("circle", cx=f"{axis.x(speed):.1f}", cy=middle, r=4, class_=kind)


def _line(kind: str, one: float, two: float, top: float, bottom: float) -> Html:
    return el("line", x1=f"{one:.1f}", x2=f"{two:.1f}", y1=top, y2=bottom, class_=kind)
