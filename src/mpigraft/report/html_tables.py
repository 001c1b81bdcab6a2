"""Tables of the HTML report: the overview, the verdict matrix and all figures."""

from __future__ import annotations

from mpigraft.model import Cell, CellGroup, Verdict
from mpigraft.report import ReportData, cost, stages, words
from mpigraft.report.alone import Alone
from mpigraft.report.markup import Html, el, hidden, join, scrolling, table
from mpigraft.report.sections import Section, tally
from mpigraft.summary import completed

CLASSES = {
    Verdict.FASTER: "f",
    Verdict.SLOWER: "s",
    Verdict.EQUIVALENT: "e",
    Verdict.INCONCLUSIVE: "i",
}


def verdict_class(verdict: Verdict, ratio: float) -> str:
    """A verdict's class; faster and slower come in three strengths, at 1.25 and 2."""
    if verdict in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE):
        return CLASSES[verdict]
    factor = max(ratio, 1 / ratio) if ratio > 0 else 1.0
    return CLASSES[verdict] + str(1 + (factor >= 1.25) + (factor >= 2))


def sign(verdict: Verdict) -> Html:
    """The sign for the eye, the word for a screen reader."""
    return join(el("span", words.VERDICTS[verdict], aria_hidden="true"), hidden(f"{verdict} "))


def glance(sections: tuple[Section, ...], baseline: str, absent: list[str]) -> Html:
    """Configurations by benchmarks: the verdict over the whole curve, and its ratio. Those in
    `absent` have no values: silence would hide them."""
    names = list(dict.fromkeys(g.configuration for s in sections for g in s.groups))
    at = {(s, g.configuration): g for s in sections for g in s.groups}
    rows = [_baseline_row(sections, baseline)]
    for name in names:
        cells = (_glance_cell(at.get((s, name))) for s in sections)
        rows.append(el("tr", el("th", name, scope="row"), *cells))
    for name in absent:
        none = el("td", "no values", colspan=max(len(sections), 1), class_="n")
        rows.append(el("tr", el("th", name, scope="row"), none))
    heads = ("configuration", *(_glance_head(s) for s in sections))
    caption = "Ratio to the baseline over all sizes, and its verdict"
    return table(caption, heads, rows, class_="glance")


def _glance_head(section: Section) -> Html:
    direction = words.better(section.better)
    small = el("small", f"{section.metric}, {section.place}", el("br"), direction)
    return join(el("a", section.benchmark, href=f"#{anchor(section)}"), small)


def _baseline_row(sections: tuple[Section, ...], baseline: str) -> Html:
    small = el("small", "baseline")
    cells = (el("td", "1", class_="b") for _ in sections)
    return el("tr", el("th", baseline, small, scope="row"), *cells)


def _glance_cell(group: CellGroup | None) -> Html:
    if group is None:
        return el("td", hidden("not measured"), class_="n")
    return el(
        "td",
        sign(group.curve),
        el("b", words.ratio(group.pooled)),
        el("small", _to(group)) if group.pooled_low is not None else None,
        el("small", note, class_="mixed") if (note := words.note(group)) else None,
        class_=verdict_class(group.curve, group.pooled),
    )


def _to(group: CellGroup) -> str:
    """`0.93 to 1.06`: the interval of the pooled ratio, in the width of a column."""
    return words.interval(group.pooled_low, group.pooled_high).strip("[]").replace(",", " to")


def matrix(section: Section, index: int) -> Html:
    """Configurations by sizes. Each cell has a sign, a colour and the ratio; `charts.js` adds
    the tooltip from the same figures as the charts."""
    sizes = section.sizes
    head = (
        el("th", "configuration", scope="col"),
        *(el("th", _size_head(s), scope="col") for s in sizes),
    )
    rows = []
    for place, group in enumerate(section.groups):
        at = {cell.size: cell for cell in group.cells}
        cells = (_matrix_cell(at.get(size)) for size in sizes)
        name = el("th", group.configuration, scope="row")
        rows.append(el("tr", name, *cells, data_group=place))
    caption = "Verdict and ratio at each size"
    return scrolling(
        el(
            "table",
            el("caption", caption),
            el("thead", el("tr", *head)),
            el("tbody", *rows),
            class_="matrix",
            data_section=index,
        )
    )


def _size_head(size: int) -> Html:
    return join(
        el("span", words.short_size(size), aria_hidden="true"),
        hidden(words.size(size) if size > 0 else "no size"),
    )


def _matrix_cell(cell: Cell | None) -> Html:
    if cell is None:
        return el("td", hidden("not measured"), class_="n")
    ratio = words.ratio(cell.ratio).removeprefix("0") if cell.ratio < 1 else words.ratio(cell.ratio)
    return el("td", sign(cell.verdict), ratio, class_=verdict_class(cell.verdict, cell.ratio))


def figures(section: Section) -> Html:
    """Every figure of a section, folded away: the charts' data for those who cannot see them."""
    heads = ("size", "baseline", "value", "ratio", "95 % interval", "rounds", "verdict")
    tables = []
    for group in section.groups:
        rows = [_figures_row(cell) for cell in group.cells]
        caption = f"{group.configuration}, {section.metric} in {section.unit}"
        tables.append(table(caption, heads, rows, class_="figures"))
    return el("details", el("summary", "All figures"), *tables)


def _figures_row(cell: Cell) -> Html:
    needs = "" if cell.rounds_needed is None else f", needs {cell.rounds_needed} rounds"
    columns = (
        words.number(cell.baseline),
        words.number(cell.value),
        words.ratio(cell.ratio),
        words.interval(cell.low, cell.high),
        cell.rounds,
        f"{words.VERDICTS[cell.verdict]} {cell.verdict}{needs}",
    )
    return el("tr", el("th", words.size(cell.size), scope="row"), *(el("td", c) for c in columns))


def alone(one: Alone, baseline: str) -> Html:
    """The baseline's own values on one benchmark, where there is nothing to compare."""
    caption = (
        f"{baseline} at {one.benchmark} on {one.place}: {one.metric} in {one.unit}, "
        f"{words.better(one.better)}"
    )
    rows = []
    for f in one.figures:
        columns = (words.number(f.value), words.span(f.interval), f.launches)
        head = el("th", words.size(f.size), scope="row")
        rows.append(el("tr", head, *(el("td", c) for c in columns)))
    return table(caption, ("size", "value", "95 % interval", "launches"), rows, class_="figures")


def noise(data: ReportData) -> Html:
    """What the baseline against itself says of this machine, and what more rounds would cost."""
    known = cost.honesty(data)
    lines = [el("p", words.unbroken(known.line) + ".", class_="lead")]
    if data.comparison.groups:
        lines.append(el("p", words.unbroken(tally(data.comparison)) + "."))
    lines += [el("p", words.unbroken(line) + ".") for line in stages.lines(data.comparison)]
    if deciding := cost.deciding(data):
        lines.append(el("p", words.unbroken(deciding) + "."))
    if command := cost.extension(data):
        lines.append(el("p", el("code", command)))
    if known.round_s is not None:
        lines.append(el("p", f"One round took {words.duration(known.round_s)}."))
    rows = [
        el(
            "tr",
            el("th", f"{n.benchmark}, {n.layout}", scope="row"),
            el("td", words.percent(n.margin)),
            el("td", words.spread(n.spread)),
            el("td", f"{n.false_verdicts} of {n.cells}"),
        )
        for n in data.comparison.noise
    ]
    if rows:
        heads = ("benchmark", "margin", "typical interval", "false verdicts, A/A")
        lines.append(table("Noise of each benchmark", heads, rows, class_="plain"))
    counts = [
        el("tr", el("th", who, scope="row"), el("td", layout), el("td", share))
        for who, layout, share in completed(data.comparison)
    ]
    if counts:
        columns = ("configuration", "layout", "launches that completed")
        lines.append(table("Launches that completed", columns, counts, class_="plain"))
    return join(*lines)


def anchor(section: Section) -> str:
    """A stable id for a link: letters, digits and hyphens only."""
    text = f"{section.benchmark}-{section.layout}-{section.buffers}-{section.metric}"
    return "b-" + "".join(c if c.isascii() and c.isalnum() else "-" for c in text)
