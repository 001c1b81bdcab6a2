"""One part of the page for each benchmark: charts, verdicts by size, all figures.

With several layouts the scaling view is above, and the layouts are folded inside.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mpigraft.bench import benchmark_command
from mpigraft.core.env import redact
from mpigraft.core.model import Origin
from mpigraft.report.contents import ReportData
from mpigraft.report.curves import has_curve
from mpigraft.report.html import overview
from mpigraft.report.html.document import chart
from mpigraft.report.markup import Html, el, foreign, join
from mpigraft.report.scaling import Card, View
from mpigraft.report.software import caption
from mpigraft.report.wording import words
from mpigraft.report.wording.counts import Section

Numbers = Mapping[int, int]  # of a section or view in the page's figures, by its identity


def benchmark(card: Card, data: ReportData, sections: Numbers) -> Html:
    """Render the whole part."""
    single = len(card.sections) == 1
    name = overview.card_anchor(card)
    subtitle = f"{words.in_unit(card.quantity, card.unit)}, {words.better(card.better)}"
    subtitle += f"; {card.place}" if single else f"; {len(card.sections)} layouts"
    subtitle += f", {card.buffers} buffers" if card.buffers != "host" and not single else ""
    repeats = card.sections[0].repeats
    subtitle += f"; {repeats}" if repeats else ""
    if single:
        (section,) = card.sections
        inside = list(_section(section, sections[id(section)], data))
    else:
        inside = [el("p", el("a", "Over nodes", href="#nodes"))] if card.views else []
        inside.append(_layouts(card, sections, data))
    layouts = [section.layout for section in card.sections]
    if again := benchmark_command(data.campaign, card.benchmark, layouts):
        inside.append(_command(redact(again), f"again-{name}"))
    return el(
        "section",
        el("h2", card.benchmark, id=f"{name}-title"),
        el("p", subtitle, id=f"{name}-what", class_="sub"),
        *inside,
        class_="benchmark",
        id=name,
        data_benchmark=f"{card.benchmark} {card.metric} {card.buffers}",
        aria_labelledby=f"{name}-title {name}-what",  # one benchmark may have two metrics
    )


def _command(text: str, name: str) -> Html:
    """Render the command that measures it again; its button needs scripts and is hidden without."""
    button = el(
        "button", "Copy", el("span", " the command that measures this again", class_="vh"),
        type="button", data_copy=name, hidden=True,
    )  # fmt: skip
    return el("p", "Measure again: ", el("code", foreign(text), id=name), " ", button)


def _layouts(card: Card, sections: Numbers, data: ReportData) -> Html:
    """Fold all layouts into one line, and each of them inside of it."""
    first, last = card.sections[0].place, card.sections[-1].place
    label = f"Each of {len(card.sections)} layouts, {first} to {last}: charts and verdicts by size"
    each = (_layout(section, sections[id(section)], data) for section in card.sections)
    over = " over" if card.views else ""  # which show the same values in another order
    return el("details", el("summary", label), *each, class_=f"layouts{over}")


def _layout(section: Section, index: int, data: ReportData) -> Html:
    """Return one layout, folded: its charts are drawn when it is opened."""
    return el(
        "details",
        el("summary", f"Layout {section.place}"),
        *_section(section, index, data),
        el("ul", *(el("li", foreign(note)) for note in words.curve_notes(section.groups))),
        id=overview.anchor(section),
        class_="layout",
    )


def _section(section: Section, index: int, data: ReportData) -> Iterator[Html]:
    baseline = data.comparison.baseline
    yield from _charts(section, index, data)
    if unlike := words.unlike_sizes(section.groups):
        yield el("p", foreign(unlike + "."), class_="sub")
    yield overview.verdicts_by_size(section, index)
    crossovers = [
        f"{group.configuration}: {words.crossing_steps(crossed, baseline, len(crossed))}"
        for group in section.groups
        if (crossed := words.crossings(group, baseline, section.better))
    ]
    if crossovers:
        yield join(
            el("p", "Crossovers", class_="head"), el("ul", *(el("li", c) for c in crossovers))
        )
    yield overview.all_figures(index)


def scaling(card: Card, view: View, number: int, data: ReportData) -> Html:
    """Render the chart of one view under its title; where all cells have one round it says that
    runs are single. `number` is that of the view in the page's figures."""
    cells = [cell for _, section in view.points for group in section.groups for cell in group.cells]
    single = all(cell.low is None for cell in cells)
    named = f"{card.benchmark}, {view.series}: "
    text = f"{named}{card.quantity} and ratio to {data.comparison.baseline} over {view.axis}."
    if single and data.comparison.origin is Origin.IMPORT:
        text += " Single runs: no interval, no verdict."
    elif single:
        text += " No interval is known."
    else:
        text += " Bands: 95 % intervals."
    head = el("p", el("b", card.benchmark), foreign(f", {view.series}"), class_="head")
    below = text.removeprefix(named)
    below = below[:1].upper() + below[1:]
    return join(head, chart("scaling", text, below, data_view=number))


def _charts(section: Section, index: int, data: ReportData) -> list[Html]:
    count = len(section.groups)
    known = any(cell.low is not None for group in section.groups for cell in group.cells)
    intervals = (
        " Bands and bars: 95 % intervals, cut at the edge where very wide."
        if known
        else " One run has no interval."
    )
    facts = caption(data)
    if not has_curve(section):
        return [
            chart(
                "ratio",
                f"Ratio of {count} configurations to {data.comparison.baseline} with intervals.",
                f"Ratio to the baseline.{intervals} Grey stripe: the margin around 1. {facts}",
                data_section=index,
            )
        ]
    bars = " Bands: 95 % interval of the launches' median." if known else ""
    figures = words.in_unit(section.quantity.capitalize(), section.unit)
    return [
        chart(
            "absolute",
            f"{section.quantity} of {count + 1} configurations over message size.",
            f"{figures} over message size.{bars} {facts}",
            data_section=index,
        ),
        chart(
            "ratio",
            f"Ratio of each of {count} configurations to {data.comparison.baseline} over size.",
            f"Ratio to the baseline over message size, one panel each.{intervals} "
            "Grey stripe: the margin around 1.",
            data_section=index,
        ),
    ]
