"""The node-by-node matrix of `bench --pairs`: a picture for the terminal, a table for the page."""

from __future__ import annotations

from collections.abc import Iterator

from mpigraft.pairs import Matrix, Pair, matrices
from mpigraft.report import ReportData, words
from mpigraft.report.markup import Html, el, foreign, scrolling
from mpigraft.report.trouble import labels

SHADES = " ░▒▓█"  # up to each of STEPS times slower than the middle, and beyond
SHADES_ASCII = ".-+*#"
STEPS = (1.05, 1.2, 1.5, 2.0)
FIGURES = 8  # nodes up to which the terminal has numbers rather than shades
MOST = 64  # nodes that a line of shades has room for
NAME = 12
NOBODY = "no node and no link stands out time after time"
ONCE = "measured once, which names nobody: what is slow has to be slow again"
IN_CELLS = 24  # nodes up to which the page writes numbers into the cells


def found(data: ReportData) -> tuple[Matrix, ...]:
    return matrices(data.links, labels(data))


def title(matrix: Matrix) -> str:
    size = f" at {words.size(matrix.size)}" if matrix.size else ""
    count = len(matrix.nodes)
    return f"{matrix.configuration}: {matrix.metric} in {matrix.unit}{size} between {count} nodes"


def told(matrix: Matrix) -> Iterator[str]:
    """The middle, and the slow ones by name; the matrix itself stands in the picture."""
    middle = f"{words.number(matrix.middle)} {matrix.unit}"
    yield f"median link {middle}; all pairs of a round were measured at once"
    for node, times in matrix.slow_nodes:
        yield f"slow node: {node}, {words.ratio(times)} times slower than the median node"
    for (a, b), times in matrix.slow_links:
        yield f"slow link: {a} to {b}, {words.ratio(times)} times slower than the median link"
    if not matrix.slow_nodes and not matrix.slow_links and len(matrix.nodes) > 2:
        yield NOBODY if matrix.launches > 1 else ONCE


def picture(matrix: Matrix, shades: str = SHADES) -> list[str]:
    """At most 80 columns: numbers for a few nodes, shades for more, from row to column."""
    nodes, links = matrix.nodes[:MOST], dict(matrix.links)
    worse = matrix.worse
    names = [words.visible(node)[-NAME:] for node in nodes]
    if len(nodes) <= FIGURES:
        heads = "".join(f"{name[-7:]:>8}" for name in names)
        rows = ["".join(f"{_figure(links.get((a, b))):>8}" for b in nodes) for a in nodes]
    else:
        heads = "".join(str(k % 10) for k in range(len(nodes)))
        rows = ["".join(_shade(worse, (a, b), shades) for b in nodes) for a in nodes]
    lines = [f"{'':{NAME}} {heads}"]
    lines += [f"{name:<{NAME}} {row}".rstrip() for name, row in zip(names, rows, strict=True)]
    if len(nodes) > FIGURES:
        steps = ", ".join(f"'{s}' up to {x:g}" for s, x in zip(shades, STEPS, strict=False))
        lines += ["times slower than the median:", f"{steps}, '{shades[-1]}' beyond"]
    if more := len(matrix.nodes) - len(nodes):
        lines.append(f"and {more} more nodes; the page and --json have all")
    return lines


def _figure(value: float | None) -> str:
    return "-" if value is None else words.number(value)


def _shade(worse: dict[Pair, float], pair: Pair, shades: str) -> str:
    if pair not in worse:
        return "\\" if pair[0] == pair[1] else "?"
    return shades[sum(worse[pair] > step for step in STEPS)]


def html(data: ReportData) -> list[Html]:
    """A heat map for each matrix: each cell has its colour, and its figure to be read."""
    parts: list[Html] = []
    for matrix in found(data):
        parts.append(el("h3", foreign(title(matrix))))
        parts += [el("p", foreign(line), class_="sub") for line in told(matrix)]
        parts.append(_table(matrix))
    return parts


def _table(matrix: Matrix) -> Html:
    links, worse = dict(matrix.links), matrix.worse
    small = len(matrix.nodes) <= IN_CELLS
    rows = []
    for a in matrix.nodes:
        cells = [_cell((a, b), links.get((a, b)), worse, small=small) for b in matrix.nodes]
        rows.append(el("tr", el("th", foreign(a), scope="row"), *cells))
    head = el("tr", el("th", "from, to", scope="col"),
              *(el("th", foreign(node), scope="col") for node in matrix.nodes))  # fmt: skip
    caption = foreign(f"{title(matrix)}: the darker, the slower")
    return scrolling(
        el("table", el("caption", caption), el("thead", head), el("tbody", *rows), class_="heat")
    )


def _cell(pair: Pair, value: float | None, worse: dict[Pair, float], *, small: bool) -> Html:
    if value is None:
        return el("td", "" if pair[0] == pair[1] else "?")
    strength = min(max((worse[pair] - 1) / 1.5, 0.0), 1.0)  # full at 2.5 times the median
    told_of = f"{pair[0]} to {pair[1]}: {words.number(value)}, {worse[pair]:.2f} times the median"
    return el(
        "td",
        foreign(words.number(value)) if small else "",
        title=told_of,
        style=f"background:rgb(200 60 120 / {strength:.2f})",
    )
