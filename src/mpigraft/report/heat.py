"""Heat maps: of the links between nodes figures in a table for a few, a picture for more.

The picture has one path for each step of slowness, in which neighbours in a row are one piece, so
that 512 nodes make five elements and not 262 144. Steps rather than a scale: every eye separates
five shades of one colour, and the terminal has the same five.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any

from mpigraft.analysis import Pair, PairMatrix
from mpigraft.core import numbers
from mpigraft.core.env import redact
from mpigraft.core.model import METRICS, Better
from mpigraft.core.text import printable
from mpigraft.report.markup import Html, el, foreign, scrolling, table

STEPS = (1.05, 1.2, 1.5, 2.0)  # times slower than the median link
ROUNDING = 1e-9  # of a quotient
FIGURED = 12  # nodes up to which each link has room for its figure
SLOWEST = 12  # links that are in words below a picture
SIDE, LARGEST = 768.0, 22.0  # of the cells together, and of one, in CSS pixels
NARROWEST = 480.0  # below that the picture scrolls rather than shrinks
LABEL = 9.0  # what a name takes across
SHORT = 4  # letters that names have in common and that are worth leaving out
ITSELF, UNKNOWN = "d", "u"  # classes of what is no link, and of one without a value


def step(times: float) -> int:
    """0 for a link like the median or faster, up to 4 for the slowest."""
    return sum(times > one * (1 + ROUNDING) for one in STEPS)


def pictured(matrix: PairMatrix) -> bool:
    return len(matrix.nodes) > FIGURED


def html(matrix: PairMatrix, title: str, index: int) -> Html:
    """`index` is that of `values` in the page's figures, for the tooltip."""
    note = "Rows send, columns receive." if _one_way(matrix) else "The same both ways."
    if not pictured(matrix):
        return el("div", _table(matrix, f"{note} The stronger the colour, the slower."), _legend())
    short, begin = _short(matrix.nodes)
    begins = f" Names begin with {begin}." if begin else ""
    caption = el("figcaption", foreign(f"{note}{begins}"))
    alt = f"{title}. The table that follows has the slowest links."
    worse, nodes = matrix.worse, matrix.nodes
    kinds = ((_kind((a, b), worse) for b in nodes) for a in nodes)
    picture = grid_picture(short, kinds, alt, index)
    return el("figure", picture, _legend(), caption, _slowest(matrix))


def values(matrix: PairMatrix) -> dict[str, Any]:
    """Describe what the tooltip of a picture says: four digits of each link, row by row."""
    links, worse = dict(matrix.links), matrix.worse
    pairs = [[(a, b) for b in matrix.nodes] for a in matrix.nodes]
    return {
        "nodes": [redact(printable(node)) for node in matrix.nodes],
        "unit": matrix.unit,
        "values": [[_four(links.get(pair)) for pair in row] for row in pairs],
        "worse": [[_four(worse.get(pair)) for pair in row] for row in pairs],
    }


def _one_way(matrix: PairMatrix) -> bool:
    """Return whether a link has a value of its own each way; a round trip has not."""
    return METRICS[matrix.metric].better is Better.HIGHER


def _four(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def slower(times: float) -> str:
    """`2.50 times slower than the median link`."""
    if times > STEPS[0]:
        return f"{numbers.ratio(times)} times slower than the median link"
    if times < 1 / STEPS[0]:
        return f"{numbers.ratio(1 / times)} times faster than the median link"
    return "like the median link"


def _kind(pair: Pair, worse: dict[Pair, float]) -> str:
    if pair not in worse:
        return ITSELF if pair[0] == pair[1] else UNKNOWN
    return str(step(worse[pair]))


def _table(matrix: PairMatrix, caption: str) -> Html:
    links, worse = dict(matrix.links), matrix.worse
    rows = []
    for a in matrix.nodes:
        cells = [_cell((a, b), links, worse, matrix.unit) for b in matrix.nodes]
        rows.append(el("tr", el("th", foreign(a), scope="row"), *cells))
    heads = ("from, to", *(foreign(node) for node in matrix.nodes))
    return table(caption, heads, rows, class_="heat")


def _cell(pair: Pair, links: dict[Pair, float], worse: dict[Pair, float], unit: str) -> Html:
    kind = f"h{_kind(pair, worse)}"
    if pair not in links:
        return el("td", "" if pair[0] == pair[1] else "?", class_=kind)
    figure = numbers.number(links[pair])
    tooltip = f"{pair[0]} to {pair[1]}: {figure} {unit}, {slower(worse[pair])}"
    return el("td", figure, title=redact(printable(tooltip)), class_=kind)


def _legend() -> Html:
    bounds = ["as the median or faster", *(f"up to {x:g}" for x in STEPS[1:]), "more"]
    bounds[1] += " times slower"
    return legend(bounds)


def legend(bounds: Iterable[str]) -> Html:
    """Render what each step of colour means, from none on."""
    keys = (el("span", el("i", class_=f"h{k}"), f" {text}") for k, text in enumerate(bounds))
    return el("p", *keys, class_="legend heat")


# ------------------------------------------------------------------ picture


def _short(nodes: tuple[str, ...]) -> tuple[list[str], str]:
    """Return names without what all begin with, where that is worth it; and what that is."""
    first, last = min(nodes), max(nodes)  # what these share, all between them do
    same = (k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b)
    begin = first[: next(same, len(first))]
    if begin in nodes:
        begin = begin[:-1]
    if len(begin) < SHORT:
        begin = ""
    return [node[len(begin) :] for node in nodes], begin


def grid_picture(
    names: Sequence[str], kinds: Iterable[Iterable[str]], alt: str, index: int | None = None
) -> Html:
    """Render a square of cells, `names` at its left and above it. `kinds` has the kind of each
    cell, row by row; `index` is that of its figures in the page, for the tooltip."""
    count = len(names)
    cell = min(SIDE / count, LARGEST)
    margin = 10 + 0.62 * LABEL * max(map(len, names))
    side = count * cell
    every = math.ceil(LABEL / cell)
    texts = [
        text
        for place, name in enumerate(names)
        if place % every == 0
        for text in _names(name, margin, margin + (place + 0.5) * cell)
    ]
    whole = f"{margin + side + 2:.0f}"
    place_of = f"translate({margin:.1f} {margin:.1f}) scale({cell:.4g})"
    grid = el("g", *_pieces(kinds, count), transform=place_of)
    return scrolling(el(
        "svg", *texts, grid, viewBox=f"0 0 {whole} {whole}", role="img", aria_label=alt,
        class_="heat", data_map=index, width="100%",
        style=f"max-width:{whole}px;min-width:{min(margin + side, NARROWEST):.0f}px",
    ))  # fmt: skip


def _names(name: str, margin: float, at: float) -> tuple[Html, Html]:
    """At the row's left and, turned, above the column."""
    edge = margin - 4
    row = el("text", foreign(name), x=f"{edge:.1f}", y=f"{at:.1f}", dy=".35em")
    turned = f"translate({at:.1f} {edge:.1f}) rotate(-90)"
    return row, el("text", foreign(name), transform=turned, dy=".35em", class_="up")


def _pieces(kinds: Iterable[Iterable[str]], count: int) -> list[Html]:
    """Render the ground, then a path for each kind of cell; one unit is one cell."""
    paths: dict[str, list[str]] = defaultdict(list)
    for row, own in enumerate(kinds):
        column = 0
        for kind, run in groupby(own):
            wide = sum(1 for _ in run)
            paths[kind].append(f"M{column} {row}h{wide}v1h-{wide}z")
            column += wide
    paths.pop("0", None)  # as the ground
    ground = el("rect", width=count, height=count, class_="h0")
    return [ground, *(el("path", d="".join(d), class_=f"h{k}") for k, d in sorted(paths.items()))]


def _slowest(matrix: PairMatrix) -> Html:
    worse, links = matrix.worse, dict(matrix.links)
    once = {pair: x for pair, x in worse.items() if _one_way(matrix) or pair[0] < pair[1]}
    few = sorted(once, key=lambda pair: (-once[pair], pair))[:SLOWEST]
    rows = [
        el("tr", *(el("td", foreign(node)) for node in pair), el("td", numbers.number(links[pair])),
           el("td", numbers.ratio(once[pair])))
        for pair in few
    ]  # fmt: skip
    heads = ("from", "to", matrix.unit, "times slower")
    return table(f"The {len(few)} slowest of {len(once)} links", heads, rows, class_="plain")
