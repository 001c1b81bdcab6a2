"""Figures for a paper, drawn by matplotlib as SVG and PDF.

PDF embeds its font, as publishers demand. SVG keeps its text as text, so that it can be found,
translated, edited and read aloud; its font, DejaVu Sans, is wider than those that replace it
elsewhere, so that no name then runs into another. The same figure gives the same bytes: neither
file has a date, and the ids of SVG come from a fixed salt.
"""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterator, Mapping, Sequence
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
from mpigraft.report.paper.panels import Curve, Dot, Panel, PaperFigure, PaperLine

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LineStyles = Mapping[str, PaperLine]
POINT = 1 / 72  # inches
INK, SOFT, GRID = colours()["ink"], colours()["soft"], "#dfe2e6"
SIZE, TITLE = 6.5, 8.5  # of letters, in points
EDGE = 4  # of the figure, in points
LINE, SAMPLE = 9.5, 24  # of the key, in points: between two lines; what shows a curve
PLOT, LOW = 108.0, 64.0  # the height of a panel, in points; of one in a tall stack
FEW = 9  # marks that a curve of values has at most, or every third
FULL = {Verdict.FASTER: "full", Verdict.SLOWER: "full", Verdict.EQUIVALENT: "left", None: "full"}
LOOK: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": GRID, "axes.grid": True, "axes.grid.axis": "y",
    "axes.labelcolor": SOFT, "axes.labelpad": 2, "axes.labelsize": SIZE,
    "axes.spines.left": False, "axes.spines.right": False, "axes.spines.top": False,
    "axes.titlelocation": "left", "axes.titlepad": 4, "axes.titlesize": SIZE,
    "figure.dpi": 72, "font.family": "DejaVu Sans", "font.size": SIZE, "grid.color": GRID,
    "grid.linewidth": 0.5, "lines.linewidth": 1.1, "lines.markersize": 3,
    "lines.scale_dashes": False, "pdf.fonttype": 42, "savefig.dpi": 72,
    "svg.fonttype": "none", "svg.hashsalt": "mpigraft", "text.color": INK,
    "text.parse_math": False, "xtick.color": GRID, "xtick.labelcolor": SOFT,
    "xtick.labelsize": SIZE, "ytick.labelcolor": SOFT, "ytick.labelsize": SIZE,
    "ytick.left": False, "ytick.minor.left": False,
}  # fmt: skip


def draw(figure: PaperFigure, styles: LineStyles, width: float, columns: int) -> Iterator[bytes]:
    """SVG, then PDF, of one figure that is `width` inches wide, with `columns` panels beside
    each other."""
    with mpl.rc_context(), warnings.catch_warnings():
        mpl.rcdefaults()  # no matplotlibrc of the user's
        mpl.rcParams.update(LOOK)
        warnings.simplefilter("ignore")  # of letters that the font has not: they become boxes
        drawn = _figure(figure, styles, width, columns)
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


def _figure(figure: PaperFigure, styles: LineStyles, width: float, columns: int) -> Figure:
    panels = figure.panels
    rows = -(-len(panels) // columns)
    wide = width / POINT
    title, notes = (list(_folded(t, wide - 2 * EDGE, size)) for t, size in
                    ((figure.title, TITLE), (figure.notes, SIZE)))  # fmt: skip
    shown = {curve.name for panel in panels for curve in panel.curves}
    key = list(_key([look for name, look in styles.items() if name in shown], wide - 2 * EDGE))
    above = EDGE + (TITLE + 3) * len(title)
    below = EDGE + LINE * (len(notes) + key[-1][1] + 1) + EDGE if key else EDGE
    tall = above + rows * ((PLOT if rows < 3 else LOW) + 38) + below
    drawn = Figure(figsize=(width, tall * POINT))
    drawn.set_layout_engine(
        "constrained", w_pad=EDGE * POINT, h_pad=EDGE * POINT,
        rect=(0, below / tall, 1, 1 - (below + above) / tall),
    )  # fmt: skip

    def write(text: str, x: float, y: float, **how: Any) -> None:
        drawn.text(x / wide, y / tall, text, va="baseline", **how)

    for line, text in enumerate(title, 1):
        write(text, EDGE, tall - line * (TITLE + 3), size=TITLE)
    grid = drawn.subplots(rows, columns, squeeze=False)
    shared = [d.y for panel in panels if panel.ratio for c in panel.curves for d in c.dots]
    for place, panel in enumerate(panels):
        axes = grid[divmod(place, columns)]
        _panel(axes, panel, styles, [*shared, 0.8, 1.25] if panel.ratio else [])
    for line, text in enumerate(reversed(notes)):
        write(text, EDGE, EDGE + LINE * line, color=SOFT)
    for x, row, look in key:
        y = below - EDGE - LINE * (row + 1)
        ends = [(EDGE + x + part * SAMPLE) / wide for part in (0, 0.5, 1)]
        sample = Line2D(
            ends, [(y + 2.4) / tall] * 3, marker=look.mark, markevery=[1], **_line(look)
        )
        drawn.add_artist(sample)
        write(_fitted(look.name, wide - 3 * EDGE - SAMPLE), EDGE + x + SAMPLE + 4, y)
    return drawn


# ------------------------------------------------------------------ one panel


def _panel(axes: Axes, panel: Panel, styles: LineStyles, shared: Sequence[float]) -> None:
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x)
    axes.set_ylabel(panel.y)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.margins(x=0.03)
    for curve in panel.curves:
        _curve(axes, curve, styles[curve.name], list(styles).index(curve.name))
    values = list(shared) or [dot.y for curve in panel.curves for dot in curve.dots]
    if panel.peak:
        values.append(panel.peak[0])
    if not values:
        return
    low, high = min(values), max(values)
    pad = max((high / low) ** 0.06, 1.03)
    axes.set_ylim(low / pad, high * pad)
    span = high * pad * pad / low
    powers = panel.ratio and span > 4  # 0.5, 1, 2, 4
    steps = ticker.LogLocator(base=2) if powers else ticker.LogLocator(subs=_steps(span))
    axes.yaxis.set_major_locator(steps)
    axes.yaxis.set_minor_locator(ticker.NullLocator())
    axes.yaxis.set_major_formatter(lambda value, _: _named(value))
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


def _named(value: float) -> str:
    """Write a number of an axis as the page does: 0.5, 300, 10k, 3M."""
    for unit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= max(unit, 1e4):
            return f"{value / unit:g}{letter}"
    return f"{value:g}"


def _steps(span: float) -> tuple[float, ...]:
    """Return which numbers of a decade are named on an axis that goes over so many times its
    start."""
    if span > 60:
        return (1,)
    if span > 8:
        return (1, 2, 5)
    return (1, 1.5, 2, 3, 5, 7) if span > 2 else (1, 1.1, 1.2, 1.4, 1.6, 1.8, 8, 9)


def _curve(axes: Axes, curve: Curve, look: PaperLine, place: int) -> None:
    """Draw a line, its interval as a band, and its marks: of ratios one for each verdict; of
    values so many that it is known by them, and those of other curves are not on them."""
    for piece in curve.pieces:
        _band(axes, piece, look.ink)
        axes.plot([d.x for d in piece], [d.y for d in piece], **_line(look))
    dots = curve.dots
    if len(dots) > FEW and not any(dot.verdict for dot in dots):
        alone = [piece[0] for piece in curve.pieces if len(piece) == 1]
        dots = (*dots[place % 3 :: 3], *alone)
    for verdict in dict.fromkeys(dot.verdict for dot in dots):
        own = [dot for dot in dots if dot.verdict is verdict]
        axes.plot(
            [d.x for d in own], [d.y for d in own], linestyle="none", color=look.ink,
            marker=look.mark, fillstyle=FULL.get(verdict, "full"), markerfacecoloralt="white",
            markerfacecolor="white" if verdict is Verdict.INCONCLUSIVE else look.ink,
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


def _line(look: PaperLine) -> dict[str, Any]:
    lengths = tuple(float(length) * 0.55 for length in look.dash.split())
    return {
        "color": look.ink, "linestyle": (0, lengths) if lengths else "solid",
        "linewidth": 1.6 if look.base else 1.0,
    }  # fmt: skip


# ------------------------------------------------------------------ text


def _key(looks: Sequence[PaperLine], width: float) -> Iterator[tuple[float, int, PaperLine]]:
    """Yield the place of each entry: points from the left, and its row. All have one width."""
    wide = SAMPLE + 14 + max((text_width(look.name) for look in looks), default=0)
    columns = max(1, int(width // wide))
    for place, look in enumerate(looks):
        row, column = divmod(place, columns)
        yield column * wide, row, look


def text_width(words: str, size: float = SIZE) -> float:
    """Measure the length of words in points."""
    font = FontProperties(family="DejaVu Sans", size=size)
    return text_to_path.get_text_width_height_descent(words, font, ismath=False)[0]


def _fitted(words: str, width: float) -> str:
    """Cut the middle out of words that are wider: both ends tell names apart."""
    kept, cut = len(words), words
    while kept > 6 and text_width(cut) > width:
        kept -= 1
        cut = f"{words[: -(-kept // 2)]}…{words[len(words) - kept // 2 :]}"
    return cut


def _folded(text: str, width: float, size: float) -> Iterator[str]:
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and text_width(longer, size) > width:
            yield line
            longer = word
        line = longer
    if line:
        yield line
