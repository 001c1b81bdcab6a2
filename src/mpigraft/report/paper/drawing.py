"""Figures for a paper, drawn by matplotlib as SVG and PDF.

PDF embeds its font, as publishers demand. SVG keeps its text as text, so that it can be found,
translated, edited and read aloud; its font, DejaVu Sans, is wider than those that replace it
elsewhere, so that no name then runs into another. The same figure gives the same bytes: neither
file has a date, and the ids of SVG come from a fixed salt.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib import ticker
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import text_to_path

from mpigraft.core import numbers
from mpigraft.core.model import Verdict
from mpigraft.report.html.document import colours
from mpigraft.report.paper.panels import Curve, Dot, Panel, PaperFigure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Text

Names = list[tuple["Text", Curve]]
POINT = 1 / 72  # inches
INK, SOFT, GRID = colours()["ink"], colours()["soft"], "#dfe2e6"
SIZE, TITLE = 6.5, 8.5  # of letters, in points
NAME_GAP = 8.5  # between two names, in points
LEADER = (0, (0.4, 3.0))  # dots
PLOT, LOW = 108.0, 64.0  # the least height of a panel, in points; of one in a tall stack
HEADS = {Verdict.FASTER: "^", Verdict.SLOWER: "v", Verdict.EQUIVALENT: "s"}
LOOK: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": GRID, "axes.grid": True, "axes.grid.axis": "y", "axes.labelsize": SIZE,
    "axes.spines.left": False, "axes.spines.right": False, "axes.spines.top": False,
    "axes.titlelocation": "left", "axes.titlepad": 4, "axes.titlesize": SIZE,
    "figure.dpi": 72, "font.family": "DejaVu Sans", "font.size": SIZE, "grid.color": GRID,
    "grid.linewidth": 0.5, "legend.fontsize": SIZE, "legend.frameon": False,
    "legend.handlelength": 3.4, "lines.linewidth": 1.1, "lines.markersize": 3,
    "lines.scale_dashes": False, "pdf.fonttype": 42, "savefig.dpi": 72,
    "svg.fonttype": "none", "svg.hashsalt": "mpigraft", "text.color": INK,
    "text.parse_math": False, "xtick.color": GRID, "xtick.labelcolor": SOFT,
    "xtick.labelsize": SIZE, "ytick.labelcolor": SOFT, "ytick.labelsize": SIZE,
    "ytick.left": False, "ytick.minor.left": False,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Style:
    """How configurations are named and drawn; dashes as in SVG."""

    names: dict[str, str]
    inks: dict[str, str]
    dashes: dict[str, str]


def draw(figure: PaperFigure, style: Style, width: float, columns: int) -> Iterator[bytes]:
    """SVG, then PDF, of one figure that is `width` inches wide, with `columns` panels beside
    each other."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # no matplotlibrc of the user's
        mpl.rcParams.update(LOOK)
        warnings.simplefilter("ignore")  # of letters that the font has not: they become boxes
        drawn = _figure(figure, style, width, columns)
        for kind, metadata in (
            ("svg", {"Date": None, "Title": figure.title, "Creator": "mpigraft"}),
            ("pdf", {
                "CreationDate": None, "Title": figure.title, "Subject": figure.notes,
                "Creator": "mpigraft", "Producer": f"matplotlib {mpl.__version__}",
            }),
        ):  # fmt: skip
            out = io.BytesIO()
            drawn.savefig(out, format=kind, metadata=metadata)
            yield out.getvalue()


def _figure(figure: PaperFigure, style: Style, width: float, columns: int) -> Figure:
    panels = figure.panels
    rows = -(-len(panels) // columns)
    most = max(len(panel.curves) for panel in panels)
    notes = list(_folded(figure.notes, width / POINT - 8))
    key = _key(panels, style, width)
    below = (len(notes) * 8.5 + 6) + (len(key) * 10 + 4)
    plot = max(PLOT if rows < 3 else LOW, most * NAME_GAP + 6)
    tall = TITLE + 8 + rows * (plot + 26) + below
    drawn = Figure(figsize=(width, tall * POINT))
    drawn.set_layout_engine(
        "constrained", w_pad=3 * POINT, h_pad=3 * POINT,
        rect=(0, below / tall, 1, 1 - (below + TITLE + 6) / tall),
    )  # fmt: skip
    drawn.text(4 * POINT / width, 1 - 2 / tall, figure.title, size=TITLE, va="top")
    grid = drawn.subplots(rows, columns, squeeze=False)
    named: list[tuple[Axes, Names]] = []
    shared = [d.y for panel in panels if panel.ratio for c in panel.curves for d in c.dots]
    for place, panel in enumerate(panels):
        axes = grid[divmod(place, columns)]
        _panel(axes, panel, style, [*shared, 0.8, 1.25] if panel.ratio else [])
        named.append((axes, _names(axes, panel, style)))
    drawn.draw_without_rendering()  # places the panels
    drawn.set_layout_engine("none")
    for axes, names in named:
        _spread(axes, names)
    for line, text in enumerate(reversed(notes)):
        drawn.text(4 * POINT / width, (4 + 8.5 * line) / tall, text, color=SOFT)
    for line, entries in enumerate(reversed(key)):
        corner = (0, (len(notes) * 8.5 + 4 + 10 * line) / tall)
        drawn.legend(handles=entries, loc="lower left", bbox_to_anchor=corner, ncols=len(entries),
                     borderpad=0.2, borderaxespad=0.1, columnspacing=1.4)  # fmt: skip
    return drawn


# ------------------------------------------------------------------ one panel


def _panel(axes: Axes, panel: Panel, style: Style, shared: Sequence[float]) -> None:
    axes.set_title(panel.title)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.margins(x=0.03)
    for curve in panel.curves:
        _curve(axes, curve, style)
    values = list(shared) or [dot.y for curve in panel.curves for dot in curve.dots]
    if panel.peak:
        values.append(panel.peak[0])
    if not values:
        return
    low, high = min(values), max(values)
    pad = max((high / low) ** 0.06, 1.03)
    axes.set_ylim(low / pad, high * pad)
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=_steps(high * pad * pad / low)))
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(
        lambda value, _: f"{value:g}" if value < 1e4 else numbers.number(value)
    )
    axes.xaxis.set_major_locator(ticker.FixedLocator(panel.marks, nbins=9))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.xaxis.set_major_formatter(
        lambda x, _: numbers.short_size(int(x)) if panel.bytes else f"{x:g}"
    )
    if panel.ratio:
        axes.axhline(1, color=INK, linewidth=0.6, zorder=1.5)
    if panel.peak:
        axes.axhline(panel.peak[0], color=SOFT, linewidth=0.7, linestyle=(0, (1.5, 1.5)))
        axes.annotate(
            f"100 % of {panel.peak[1]}", (0, panel.peak[0]), (2, 2), color=SOFT,
            xycoords=("axes fraction", "data"), textcoords="offset points",
        )  # fmt: skip


def _steps(span: float) -> tuple[float, ...]:
    """Return which numbers of a decade are named on an axis that goes over so many times its
    start."""
    if span > 60:
        return (1,)
    if span > 8:
        return (1, 2, 5)
    return (1, 1.5, 2, 3, 5, 7) if span > 2 else (1, 1.1, 1.2, 1.4, 1.6, 1.8, 8, 9)


def _curve(axes: Axes, curve: Curve, style: Style) -> None:
    """Draw a line, its interval as a band, and a mark for each verdict."""
    ink = style.inks[curve.name]
    for piece in curve.pieces:
        _band(axes, piece, ink)
        axes.plot([d.x for d in piece], [d.y for d in piece], color=ink,
                  linestyle=_dashes(style, curve.name))  # fmt: skip
    for verdict in dict.fromkeys(dot.verdict for dot in curve.dots):
        own = [dot for dot in curve.dots if dot.verdict is verdict]
        axes.plot(
            [d.x for d in own], [d.y for d in own], linestyle="none", color=ink,
            marker=HEADS.get(verdict, "o") if verdict else "o", markersize=3 if verdict else 2,
            markerfacecolor="white" if verdict is Verdict.INCONCLUSIVE else ink,
            markeredgewidth=0.6, zorder=3,
        )  # fmt: skip


def _band(axes: Axes, piece: Sequence[Dot], ink: str) -> None:
    for banded, dots in groupby(piece, key=lambda dot: dot.interval is not None):
        rows = [(d.x, *d.interval) for d in dots if d.interval] if banded else []
        if len(rows) > 1:
            x, low, high = zip(*rows, strict=True)
            axes.fill_between(x, low, high, color=ink, alpha=0.16, linewidth=0)
        elif rows:
            axes.vlines([rows[0][0]], [rows[0][1]], [rows[0][2]], color=ink, linewidth=0.6)


def _dashes(style: Style, name: str) -> Any:
    lengths = tuple(float(length) * 0.55 for length in style.dashes[name].split())
    return (0, lengths) if lengths else "solid"


# ------------------------------------------------------------------ names and key


def _names(axes: Axes, panel: Panel, style: Style) -> Names:
    """Write each curve's name beside its end, where the layout leaves room for it."""
    how: dict[str, Any] = {
        "xycoords": ("axes fraction", "data"), "textcoords": "offset points", "va": "center",
        "annotation_clip": False,
    }  # fmt: skip
    names: Names = []
    for curve in panel.curves:
        end, name, ink = (1, curve.dots[-1].y), style.names[curve.name], style.inks[curve.name]
        names.append((axes.annotate(name, end, (5, 0), color=ink, **how), curve))
    return names


def _spread(axes: Axes, names: Names) -> None:
    """Move names apart, and tie each to the end of its curve, by what is unlike any curve."""
    if not names:
        return
    box = axes.get_window_extent()
    at = [axes.transData.transform((c.dots[-1].x, c.dots[-1].y)) for _, c in names]
    order = sorted(range(len(names)), key=lambda one: at[one][1])
    places: list[float] = []
    for one in order:
        wanted = min(max(at[one][1], box.y0), box.y1)
        places.append(max(wanted, places[-1] + NAME_GAP) if places else wanted)
    limit = box.y1
    for number in reversed(range(len(places))):
        places[number] = min(places[number], limit)
        limit = places[number] - NAME_GAP
    for one, place in zip(order, places, strict=True):
        text, curve = names[one]
        text.set_y(place - at[one][1])
        end = axes.transData.inverted().transform((box.x1 + 4, place))
        axes.plot([curve.dots[-1].x, end[0]], [curve.dots[-1].y, end[1]], color=SOFT,
                  linewidth=0.4, linestyle=LEADER, clip_on=False, scalex=False,
                  scaley=False)  # fmt: skip


def _key(panels: Sequence[Panel], style: Style, width: float) -> list[list[Line2D]]:
    """Return lines of entries that fit the width."""
    lines: list[list[Line2D]] = [[]]
    used = 0.0
    for name in sorted({curve.name for panel in panels for curve in panel.curves}):
        wide = text_width(style.names[name]) + SIZE * 6
        if lines[-1] and used + wide > width / POINT:
            lines.append([])
            used = 0.0
        label = style.names[name]
        lines[-1].append(
            Line2D([], [], color=style.inks[name], linestyle=_dashes(style, name), label=label)
        )
        used += wide
    return lines


def text_width(words: str) -> float:
    """Measure the length of words in points."""
    font = FontProperties(family="DejaVu Sans", size=SIZE)
    return text_to_path.get_text_width_height_descent(words, font, ismath=False)[0]


def _folded(text: str, width: float) -> Iterator[str]:
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and text_width(longer) > width:
            yield line
            longer = word
        line = longer
    if line:
        yield line
