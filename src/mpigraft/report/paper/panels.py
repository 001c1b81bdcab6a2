"""What figures for a paper show, as values: each benchmark over message size and, of several
layouts, over nodes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Self

from mpigraft.core import numbers
from mpigraft.core.env import redact
from mpigraft.core.model import Origin, Verdict
from mpigraft.core.text import printable
from mpigraft.report import hardware_peaks
from mpigraft.report.contents import ReportData
from mpigraft.report.curves import (
    Bands,
    Sizes,
    has_curve,
    launch_bands,
    layouts_of,
    missing_sizes,
    sizes_of,
)
from mpigraft.report.scaling import Card, View, cards, missing_places
from mpigraft.report.software import caption
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, Subject

RATIO = "ratio to the baseline"
NEAR = 5  # a peak so many times above the highest value would flatten all curves


@dataclass(frozen=True, slots=True)
class Dot:
    x: float
    y: float
    interval: tuple[float, float] | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True)
class Curve:
    name: str
    pieces: tuple[tuple[Dot, ...], ...]  # between two of them a point is missing

    @classmethod
    def of(cls, name: str, dots: Sequence[Dot], places: Sequence[float]) -> Self:
        """Cut the dots at each of `places` that has none."""
        at = {dot.x: dot for dot in dots}
        known = groupby((at.get(x) for x in places), key=lambda dot: dot is not None)
        return cls(name, tuple(tuple(filter(None, piece)) for there, piece in known if there))

    @property
    def dots(self) -> tuple[Dot, ...]:
        """All of them."""
        return tuple(chain.from_iterable(self.pieces))


@dataclass(frozen=True, slots=True)
class Panel:
    title: str  # the size of messages, where it is one
    x: str  # titles of the axes, with units
    y: str
    curves: tuple[Curve, ...]
    marks: tuple[float, ...]  # numbers on the x axis that may be named
    bytes: bool  # the x axis is message size, not nodes or ranks
    ratio: bool = False
    peak: tuple[float, str] | None = None


@dataclass(frozen=True, slots=True)
class PaperLine:
    """How a configuration is named and drawn: apart from others without its colour, too."""

    name: str
    ink: str
    dash: str  # as in SVG
    mark: str  # of matplotlib
    base: bool = False


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """Panels: first those of values, then as many of ratios."""

    name: str  # of its file, without the ending
    title: str
    panels: tuple[Panel, ...]
    notes: str  # what was measured where


def paper_figures(data: ReportData) -> Iterator[PaperFigure]:
    """List a figure of each benchmark's views and, over message size, of each of its layouts."""
    used: set[str] = set()
    bands, known, notes = launch_bands(data), hardware_peaks.known(data), _notes(data)
    measured = sizes_of(data.values)
    for card in cards(data.comparison):
        for view in card.views:
            name = _slug(f"{card.benchmark}-{card.buffers}-{card.metric}-over-{view.axis}", used)
            title = _text(f"{card.benchmark}, {view.series}; {words.better(card.better)}")
            panels = _view_panels(card, view, data, bands, measured)
            yield PaperFigure(name, title, tuple(panels), notes)
        for section in card.sections:
            if has_curve(section):
                text = f"{section.benchmark}-{section.layout}-{section.buffers}-{section.metric}"
                values, ratios = _size_panels(section, data, bands, measured)
                values = replace(values, peak=_near(values, hardware_peaks.of(section, known)))
                title = f"{section.benchmark}, {section.place}; {words.better(section.better)}"
                yield PaperFigure(_slug(text, used), _text(title), (values, ratios), notes)


def _text(words: str) -> str:
    """Return text of other programs: one line, and no secret."""
    return redact(printable(words))


def _notes(data: ReportData) -> str:
    """Write the caption of every figure; empty parts are left out."""
    single = all(cell.low is None for group in data.comparison.groups for cell in group.cells)
    parts = [f"The baseline is {_text(data.comparison.baseline)}.", caption(data)]
    if not single:
        parts.append("Bands: 95 % intervals, cut at the edge. Ratios with a full mark are faster")
        parts.append("or slower, with a half one equivalent, with an empty one undecided.")
    elif data.comparison.origin is Origin.IMPORT:
        parts.append("Single runs: no interval, no verdict.")
    return " ".join(filter(None, map(_text, parts)))


def _slug(text: str, used: set[str]) -> str:
    """Write a file name of letters, digits and hyphens, unlike those before it."""
    plain = "".join(c if c.isascii() and c.isalnum() else "-" for c in text).strip("-")[:120]
    name, number = plain or "figure", 2
    while name.lower() in used:
        name, number = f"{plain}-{number}", number + 1
    used.add(name.lower())
    return name


def _near(panel: Panel, peak: tuple[float, str] | None) -> tuple[float, str] | None:
    values = [dot.y for curve in panel.curves for dot in curve.dots]
    return peak if peak and values and max(values) > peak[0] / NEAR else None


def _view_panels(
    card: Card, view: View, data: ReportData, bands: Bands, measured: Sizes
) -> Iterator[Panel]:
    missing = missing_places(view, layouts_of(card, measured))
    marks = tuple(map(float, sorted([*(x for x, _ in view.points), *missing])))
    for ratio in (False, True):
        for _, size in view.sizes:
            dots: dict[str, list[Dot]] = {}
            for x, section in view.points:
                for name, dot in _dots(section, size, float(x), data, bands, ratio=ratio):
                    dots.setdefault(name, []).append(dot)
            curves = tuple(Curve.of(name, own, marks) for name, own in sorted(dots.items()))
            title = f"{numbers.size(size)} messages" if size else ""
            y = RATIO if ratio else _quantity(card)
            yield Panel(title, view.axis, y, curves, marks, bytes=False, ratio=ratio)


def _size_panels(
    section: Section, data: ReportData, bands: Bands, measured: Sizes
) -> tuple[Panel, Panel]:
    marks = tuple(float(4**n) for n in range(20) if 4**n <= max(section.sizes))
    places = sorted({*section.sizes, *missing_sizes(section, measured)})

    def panel(y: str, *, ratio: bool) -> Panel:
        dots: dict[str, list[Dot]] = {}
        for size in section.sizes:
            for name, dot in _dots(section, size, float(size), data, bands, ratio=ratio):
                dots.setdefault(name, []).append(dot)
        curves = tuple(Curve.of(name, own, places) for name, own in sorted(dots.items()))
        return Panel("", "message size (bytes)", y, curves, marks, bytes=True, ratio=ratio)

    return panel(_quantity(section), ratio=False), panel(RATIO, ratio=True)


def _quantity(subject: Subject) -> str:
    unit = f" ({subject.unit})" if subject.unit else ""
    return _text(subject.quantity + unit)


def _dots(
    section: Section, size: int, x: float, data: ReportData, bands: Bands, *, ratio: bool
) -> Iterator[tuple[str, Dot]]:
    """Yield each configuration's dot at one size: of values with the interval of the launches'
    median, of ratios with that of the comparison."""
    if x <= 0:
        return
    where = section.series
    baseline = data.comparison.baseline
    if not ratio and (base := section.baseline.get(size)):
        yield baseline, Dot(x, base, bands.get((where, baseline), {}).get(size))
    for group in section.groups:
        band = bands.get((where, group.configuration), {})
        for cell in group.cells:
            value = cell.ratio if ratio else cell.value
            if cell.size != size or not 0 < value < math.inf:
                continue
            if not ratio:
                yield group.configuration, Dot(x, value, band.get(size))
            else:
                known = cell.low is not None and cell.high is not None and cell.low > 0
                interval = (cell.low or value, cell.high or value) if known else None
                yield group.configuration, Dot(x, value, interval, cell.verdict)
