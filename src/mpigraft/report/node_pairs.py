"""The node-by-node matrix of `bench --pairs`: a picture for the terminal, a table for the page."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from mpigraft.analysis import Pair, PairMatrix, direction_phrase, pair_matrices
from mpigraft.core import numbers
from mpigraft.core.text import printable
from mpigraft.report import heat
from mpigraft.report.contents import ReportData
from mpigraft.report.findings import labels
from mpigraft.report.heat import STEPS
from mpigraft.report.markup import Html, el, foreign, join
from mpigraft.report.table import Figure

SHADES = " ░▒▓█"  # up to each of STEPS times slower than the middle, and beyond
SHADES_ASCII = ".-+*#"
FIGURES = 8  # nodes up to which the terminal has numbers rather than shades; parts shown
MOST = 64  # nodes that a line of shades has room for
NAME, COLUMNS = 12, 80
NOBODY = "no node and no link is slow again and again"
APART = (
    "nodes of different jobs never met: each is compared with those of its own job alone, and none "
    "is slow again and again"
)
TWO = "two nodes have one link, so nothing says which of them is slow: name three or more"
ONCE = "measured once: a node or a link is named only where it is slow in several rounds"


def matrices(data: ReportData) -> tuple[PairMatrix, ...]:
    return pair_matrices(data.links, labels(data))


def title(matrix: PairMatrix) -> str:
    size = f" at {numbers.size(matrix.size)}" if matrix.size else ""
    count = len(matrix.nodes)
    return f"{matrix.configuration}: {matrix.metric} in {matrix.unit}{size} between {count} nodes"


def sentences(matrix: PairMatrix) -> Iterator[str]:
    """Give the middle, and the slow ones by name; the matrix itself is in the picture."""
    middle = f"{numbers.number(matrix.middle)} {matrix.unit}"
    others = " of the other nodes" if matrix.slow_nodes else ""
    yield f"median link{others} {middle}; all pairs of a round were measured at once"
    if len(matrix.nodes) == 2:
        yield TWO
    for node, times, way in matrix.slow_nodes:
        yield (
            f"slow node: {node}, {numbers.ratio(times)} times slower{direction_phrase(way)} than "
            "the median link of the others"
        )
    median = "the median link within its part" if matrix.parts else "the median link"
    for (a, b), times in matrix.slow_links:
        yield f"slow link: {a} to {b}, {numbers.ratio(times)} times slower than {median}"
    if matrix.parts:
        sizes = " and ".join(str(len(part)) for part in matrix.parts[:FIGURES])
        more = f" and {len(matrix.parts) - FIGURES} more" if matrix.parts[FIGURES:] else ""
        one, other = matrix.parts[0][0], matrix.parts[1][0]
        yield (
            f"parts of {sizes}{more} nodes: {numbers.ratio(matrix.between)} times slower between "
            f"them than within, which is a switch or a cable: {one} is in one, {other} in another"
        )
    elif not matrix.slow_nodes and not matrix.slow_links and len(matrix.nodes) > 2:
        met = len(matrix.links) == len(matrix.nodes) * (len(matrix.nodes) - 1)
        yield ONCE if matrix.launches == 1 else NOBODY if met else APART


def picture(matrix: PairMatrix, shades: str = SHADES) -> list[str]:
    """At most 80 columns: numbers for a few nodes, shades for more, from row to column."""
    nodes, links = matrix.nodes[:MOST], dict(matrix.links)
    worse = matrix.worse
    names = [printable(node)[-NAME:] for node in nodes]
    if len(nodes) <= FIGURES:
        wide = min((COLUMNS - NAME - 1) // len(nodes), max(8, 2 + max(map(len, names))))
        heads = "".join(f"{name[1 - wide :]:>{wide}}" for name in names)
        rows = ["".join(f"{_figure(links.get((a, b))):>{wide}}" for b in nodes) for a in nodes]
    else:  # a column has the last digit of its row's number
        digits = [str(k % 10) for k in range(1, len(nodes) + 1)]
        heads = "  " + "".join(digits)
        rows = ["".join(_shade(worse, (a, b), shades) for b in nodes) for a in nodes]
        rows = [f"{digit} {row}" for digit, row in zip(digits, rows, strict=True)]
    lines = [f"{'':{NAME}} {heads}"]
    lines += [f"{name:<{NAME}} {row}".rstrip() for name, row in zip(names, rows, strict=True)]
    if len(nodes) > FIGURES:
        steps = ", ".join(f"'{s}' up to {x:g}" for s, x in zip(shades, STEPS, strict=False))
        lines += ["times slower than the median:", f"{steps}, '{shades[-1]}' beyond"]
    if more := len(matrix.nodes) - len(nodes):
        lines.append(f"and {more} more nodes; the page and --json have all")
    return lines


def _figure(value: float | None) -> str:
    return "-" if value is None else numbers.number(value)


def _shade(worse: dict[Pair, float], pair: Pair, shades: str) -> str:
    if pair not in worse:
        return "\\" if pair[0] == pair[1] else "?"
    return shades[heat.step(worse[pair])]


def figures(data: ReportData) -> tuple[Figure, ...]:
    """Give the outliers of each matrix, and a picture of it."""
    return tuple(
        Figure(
            title(one),
            tuple(sentences(one)),
            partial(_html, one, index),
            partial(_text, one),
        )
        for index, one in enumerate(matrices(data))
    )


def _text(matrix: PairMatrix, in_ascii: bool) -> list[str]:
    return picture(matrix, SHADES_ASCII if in_ascii else SHADES)


def _html(matrix: PairMatrix, index: int) -> Html:
    """Render a heat map, below its outliers."""
    lines = (el("p", foreign(line), class_="sub") for line in sentences(matrix))
    return join(*lines, heat.html(matrix, title(matrix), index))


def values(data: ReportData) -> list[dict[str, Any] | None]:
    """Describe what the page's script shows for a link that is pointed at; tables show it by
    themselves."""
    return [heat.values(one) if heat.pictured(one) else None for one in matrices(data)]
