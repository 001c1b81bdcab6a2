"""Tables of the page: the overview, the verdicts by size, all figures, the noise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from mpigraft.core import numbers
from mpigraft.core.model import Cell, CellGroup, Verdict, common_sizes, shared_reason
from mpigraft.report import looks, precision
from mpigraft.report.contents import ReportData
from mpigraft.report.markup import Html, el, hidden, join, table, table_row
from mpigraft.report.scaling import Card
from mpigraft.report.tables import launches_table, noise_table
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section, tally

CLASSES = {
    Verdict.FASTER: "f",
    Verdict.SLOWER: "s",
    Verdict.EQUIVALENT: "e",
    Verdict.INCONCLUSIVE: "i",
}


def verdict_class(verdict: Verdict, ratio: float) -> str:
    """Write a verdict's class; faster and slower come in three strengths, at 1.25 and 2."""
    if verdict in (Verdict.EQUIVALENT, Verdict.INCONCLUSIVE):
        return CLASSES[verdict]
    factor = max(ratio, 1 / ratio) if ratio > 0 else 1.0
    return CLASSES[verdict] + str(1 + (factor >= 1.25) + (factor >= 2))


def sign(verdict: Verdict) -> Html:
    """Render the sign for the eye, the word for a screen reader."""
    return join(el("i", words.VERDICT_SIGNS[verdict], aria_hidden="true"), hidden(f"{verdict} "))


def glance(
    cards: tuple[Card, ...], baseline: str, absent: list[str], roles: Mapping[str, str]
) -> Html:
    """Render configurations by benchmarks: the verdict over the whole curve, and its ratio; of
    several layouts how many have which. Those in `absent` have no values: silence would hide
    them. `roles` say what of a guest a configuration measures."""
    every = [group for card in cards for section in card.sections for group in section.groups]
    names = list(dict.fromkeys(group.configuration for group in every))
    alike = bool(shared_reason(every))  # then the page's first sentence has it
    at: dict[tuple[int, str], list[CellGroup]] = {}
    for place, card in enumerate(cards):
        for group in (group for section in card.sections for group in section.groups):
            at.setdefault((place, group.configuration), []).append(group)
    notes = {name: el("small", el("br"), role) for name, role in roles.items()}
    first = join(el("small", "baseline"), notes.get(baseline))
    rows = [_row(baseline, first, (el("td", "1", class_="b") for _ in cards))]
    for name in names:
        cells = (
            _glance_cell(at.get((n, name), []), card, alike=alike) for n, card in enumerate(cards)
        )
        rows.append(_row(name, notes.get(name), cells))
    for name in absent:
        none = el("td", "no values", colspan=max(len(cards), 1), class_="n")
        rows.append(table_row(name, none))
    heads = ("configuration", *map(_glance_head, cards))
    caption = "Against the baseline over all sizes, its verdict, and the ratio"
    return table(caption, heads, rows, class_="glance")


def _row(name: str, note: Html | None, cells: Iterable[Html]) -> Html:
    return el("tr", el("th", name, note, scope="row"), *cells, data_name=name)


def _glance_head(card: Card) -> Html:
    layouts = card.place if len(card.sections) == 1 else f"{len(card.sections)} layouts"
    small = el("small", f"{card.quantity}, {layouts}", el("br"), words.better(card.better))
    return join(el("a", card.benchmark, href=f"#{card_anchor(card)}"), small)


def _glance_cell(groups: list[CellGroup], card: Card, *, alike: bool) -> Html:
    if not groups:
        return el("td", hidden("not measured"), class_="n")
    if len(groups) > 1:
        return _layouts_cell(groups, card)
    (group,) = groups
    note, brief = ("", "") if alike else (words.curve_note(group), words.brief_note(group))
    ratio = f"{numbers.ratio(group.pooled)}"
    ratio += f" [{_to(group)}]" if group.pooled_low is not None else ""
    factor = words.factor(group.pooled, card.better, card.unit)
    return el(
        "td",
        sign(group.curve),
        factor if group.curve is Verdict.INCONCLUSIVE else el("b", factor),
        el("small", ratio),
        _over(group.used_sizes, card),
        el("small", brief, class_="mixed", title=note) if note else None,
        class_=verdict_class(group.curve, group.pooled),
    )


def _layouts_cell(groups: list[CellGroup], card: Card) -> Html:
    """Render the ends over the layouts, at the sizes that all have, and how many have which
    verdict; its colour is theirs where all agree."""
    verdicts = Counter(group.curve for group in groups)
    common = common_sizes(group for section in card.sections for group in section.groups)
    ordered = sorted(group.ratio_over(common) for group in groups) if common else []
    ends = [words.factor(ratio, card.better, card.unit) for ratio in ordered[:1] + ordered[-1:]]
    span = " to ".join(dict.fromkeys(ends))
    counted = ", ".join(
        f"{words.VERDICT_SIGNS[v]} {verdicts[v]} {v}" for v in Verdict if verdicts[v]
    )
    one = groups[0].curve if len(verdicts) == 1 else Verdict.INCONCLUSIVE
    return el(
        "td",
        span if one is Verdict.INCONCLUSIVE else el("b", span),
        el("small", " to ".join(map(numbers.ratio, ordered[:1] + ordered[-1:]))),
        _over(common, card),
        el("small", counted, class_="mixed"),
        class_=verdict_class(one, ordered[len(ordered) // 2] if ordered else 1.0),
    )


def _over(sizes: tuple[int, ...], card: Card) -> Html | None:
    """Return how many of the card's sizes a ratio is over, if not all."""
    every = {size for section in card.sections for size in section.sizes}
    few = len(sizes) < len(every)
    return el("small", f"over {len(sizes)} of {len(every)} sizes") if few else None


def over_nodes(cards: tuple[Card, ...]) -> Html:
    """Render what the scaling charts draw, as tables: for each view, configurations by layouts."""
    tables = []
    for card in cards:
        for view in card.views:
            heads = ("configuration", "size", *(f"{x} {view.axis}" for x, _ in view.points))
            names = dict.fromkeys(g.configuration for _, s in view.points for g in s.groups)
            rows = [
                el(
                    "tr",
                    el("th", name, scope="row"),
                    el("td", numbers.size(size)),
                    *(_view_cell(section, name, size) for _, section in view.points),
                )
                for name in names
                for _, size in view.sizes
            ]
            figures = words.in_unit(card.quantity, card.unit)
            caption = f"{card.benchmark}, {view.series}: {figures}, and ratio"
            tables.append(table(caption, heads, rows, class_="figures"))
    return el("details", el("summary", "Figures over nodes"), *tables)


def _view_cell(section: Section, name: str, size: int) -> Html:
    for group in section.groups:
        for cell in group.cells:
            if group.configuration == name and cell.size == size:
                text = f"{numbers.number(cell.value)} ({numbers.ratio(cell.ratio)})"
                return el("td", words.VERDICT_SIGNS[cell.verdict], " ", text)
    return el("td", "-")


def _to(group: CellGroup) -> str:
    """`0.93 to 1.06`: the interval of the pooled ratio, in the width of a column."""
    return numbers.interval(group.pooled_low, group.pooled_high).strip("[]").replace(",", " to")


def verdicts_by_size(section: Section, index: int) -> Html:
    """Render configurations by sizes. Each cell has a sign, a colour and the ratio; `charts.js`
    adds the tooltip from the same figures as the charts."""
    sizes = section.sizes
    rows = []
    for group in section.groups:
        at = {cell.size: cell for cell in group.cells}
        rows.append(
            table_row(group.configuration, *(_verdict_cell(at.get(size)) for size in sizes))
        )
    heads = ("configuration", *map(_size_head, sizes))
    caption = "Verdict and ratio at each size"
    return table(caption, heads, rows, class_="matrix", data_section=index)


def _size_head(size: int) -> Html:
    return join(
        el("span", numbers.short_size(size), aria_hidden="true"),
        hidden(numbers.size(size) if size > 0 else "no size"),
    )


def _verdict_cell(cell: Cell | None) -> Html:
    if cell is None:
        return el("td", hidden("not measured"), class_="n")
    ratio = (
        numbers.ratio(cell.ratio).removeprefix("0") if cell.ratio < 1 else numbers.ratio(cell.ratio)
    )
    word = el("b", f"{cell.verdict} ")  # the sign is the style's: a page may have 12 000 cells
    return el("td", word, ratio, class_=verdict_class(cell.verdict, cell.ratio))


def all_figures(section: int) -> Html:
    """Return where `tables.js` puts every figure of a section when it is opened or printed."""
    summary = el("summary", "All figures")
    return el("details", summary, el("div"), class_="all", data_section=section, hidden=True)


def noise(data: ReportData) -> Html:
    """Render the noise of this machine, by the baseline against itself, and the cost of more
    rounds."""
    known = precision.precision(data)
    lines = [el("p", words.unbroken(known.line) + ".", class_="lead")]
    if data.comparison.groups:
        lines.append(el("p", words.unbroken(tally(data.comparison)) + "."))
    lines += [el("p", words.unbroken(line) + ".") for line in looks.look_lines(data.comparison)]
    if deciding := precision.deciding(data):
        lines.append(el("p", words.unbroken(deciding) + "."))
    if command := precision.extension(data):
        lines.append(el("p", el("code", command)))
    if known.round_s is not None:
        lines.append(el("p", f"One round took {numbers.duration(known.round_s)}."))
    if data.comparison.noise:
        lines.append(noise_table(data).html("plain"))
    if launches := launches_table(data):
        lines.append(launches.html("plain"))
    return join(*lines)


def card_anchor(card: Card) -> str:
    """Write a stable id for a link; of a single layout that of its section."""
    if len(card.sections) == 1:
        return anchor(card.sections[0])
    return _anchor(f"{card.benchmark}-{card.buffers}-{card.metric}")


def anchor(section: Section) -> str:
    """Write a stable id for a link: letters, digits and hyphens only."""
    return _anchor(f"{section.benchmark}-{section.layout}-{section.buffers}-{section.metric}")


def _anchor(text: str) -> str:
    return "b-" + "".join(c if c.isascii() and c.isalnum() else "-" for c in text)
