"""The picture of one growth curve: what was measured, its law, and what that foretells.

Nobody may take the one for the other: what was not measured lies on a ground of its own that says
so, its line is dashed and its marks are hollow.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable

from mpigraft.analysis import Growth
from mpigraft.core import numbers
from mpigraft.report.markup import Html, el, foreign, join

WIDE, HIGH = 560, 280  # of the picture, in its own units
LEFT, RIGHT, TOP, BOTTOM = 58, 548, 22, 236  # of what is inside of the axes
STEPS = 48  # pieces of the curve
APART = 24  # two numbers below the axis that are nearer would run into each other
LINES = 5  # across, at the most
PREDICTED = "predicted, not measured"

Place = tuple[float, float]


def picture(one: Growth, alt: str) -> Html:
    """Return ranks on a logarithmic axis, values from 0. The series has a law."""
    assert one.law is not None
    law, first, last = one.law, one.points[0].ranks, one.points[-1].ranks
    reach = max([last, *(p.ranks for p in one.predictions)])
    highs = [*(p.highest for p in one.points), *(p.high for p in one.predictions)]
    values = _round_values(max(highs) * 1.02)
    at = _scale(first, reach, values[-1])
    steps = [first * (reach / first) ** (k / STEPS) for k in range(STEPS + 1)]
    known = [at(p, law.at(p)) for p in (*(s for s in steps if s < last), last)]
    ahead = [at(p, law.at(p)) for p in (last, *(s for s in steps if s > last))]
    measured = [_mark(at, p.ranks, p.value, (p.lowest, p.highest), "m") for p in one.points]
    predicted = [_mark(at, p.ranks, p.value, (p.low, p.high), "p") for p in one.predictions]
    ranks = [p.ranks for p in one.points] + [p.ranks for p in one.predictions]
    return el(
        "svg",
        _beyond(at(last, 0)[0]) if reach > last else None,
        *(_level(at(first, value)[1], value) for value in values),
        *_numbers(at, ranks),
        el("text", f"{one.metric}, {one.unit}", x=0, y=10),
        el("text", "ranks", x=RIGHT, y=HIGH - 8, class_="end"),
        _line(known),
        _line(ahead, dashes="6 5"),
        *measured,
        *predicted,
        viewBox=f"0 0 {WIDE} {HIGH}", role="img", aria_label=alt, width="100%", class_="grown",
        style=f"max-width:{WIDE}px",
    )  # fmt: skip


def _scale(first: int, reach: int, top: float) -> Callable[[float, float], Place]:
    wide = math.log(reach / first) or 1.0

    def at(ranks: float, value: float) -> Place:
        along = math.log(ranks / first) / wide
        up = min(max(value / top, 0.0), 1.0)
        return LEFT + along * (RIGHT - 8 - LEFT), BOTTOM - up * (BOTTOM - TOP)

    return at


def _round_values(top: float) -> list[float]:
    """0 and round steps of 1, 2 or 5 times a power of ten, the last one not below `top`."""
    least = (top or 1.0) / LINES
    power = 10.0 ** math.floor(math.log10(least))
    step = next(k * power for k in (1, 2, 5, 10) if k * power >= least * (1 - 1e-9))
    return [k * step for k in range(math.ceil(top / step - 1e-9) + 1)] if top else [0.0, 1.0]


def _beyond(edge: float) -> Html:
    ground = el("rect", x=f"{edge:.1f}", y=TOP, width=f"{RIGHT - edge:.1f}", height=BOTTOM - TOP,
                class_="beyond")  # fmt: skip
    return join(ground, el("text", PREDICTED, x=RIGHT - 4, y=TOP + 13, class_="end"))


def _level(y: float, value: float) -> Html:
    line = el("path", d=f"M{LEFT} {y:.1f}H{RIGHT}", class_="level")
    figure = el("text", numbers.number(value), x=LEFT - 6, y=f"{y:.1f}", dy=".35em", class_="end")
    return join(line, figure)


def _numbers(at: Callable[[float, float], Place], ranks: Iterable[int]) -> list[Html]:
    """Return ranks below the axis, from the last one on as many as have room: it is what was
    asked."""
    texts: list[Html] = []
    leftmost = math.inf
    for number in sorted(set(ranks), reverse=True):
        x, y = at(number, 0)
        if x <= leftmost - APART:
            texts.append(el("text", number, x=f"{x:.1f}", y=f"{y + 16:.1f}", class_="mid"))
            leftmost = x
    return texts


def _line(places: Iterable[Place], dashes: str = "") -> Html:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    return el("polyline", points=points, stroke_dasharray=dashes or None, class_="law")


def _mark(
    at: Callable[[float, float], Place],
    ranks: int,
    value: float,
    bounds: tuple[float, float],
    kind: str,
) -> Html:
    """Render a dot with its range, and in words what it is for who points at it."""
    (x, y), low, high = at(ranks, value), at(ranks, bounds[0])[1], at(ranks, bounds[1])[1]
    tooltip = f"{ranks} ranks: {numbers.number(value)} {numbers.span(bounds)}"
    tooltip += f", {PREDICTED}" if kind == "p" else ", measured"
    return el(
        "g", el("title", foreign(tooltip)), el("path", d=f"M{x:.1f} {low:.1f}V{high:.1f}"),
        el("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=4), class_=kind,
    )  # fmt: skip
