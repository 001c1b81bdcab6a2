"""The controls above the figures. They stay hidden without scripts, since they need them."""

from __future__ import annotations

from mpigraft.report.contents import ReportData
from mpigraft.report.markup import Html, el, foreign
from mpigraft.report.scaling import Card
from mpigraft.report.wording import labels


def controls(data: ReportData, cards: tuple[Card, ...]) -> Html | None:
    """Baseline, configurations with their key, filter, order, CSV; nothing to compare has none."""
    if not cards:
        return None
    baseline = data.comparison.baseline
    names = sorted({g.configuration for g in data.comparison.groups} | {baseline})
    styles = labels.styles(names)
    bases = (
        el("option", foreign(name), value=name, selected=name == baseline or None) for name in names
    )
    orders = [el("option", "as measured", value="")]
    orders += [
        el("option", foreign(f"best at {card.benchmark}, {card.quantity}"), value=place)
        for place, card in enumerate(cards)
    ]
    rows = (
        _choice(name, place, styles[name], base=name == baseline)
        for place, name in enumerate(names)
    )
    return el(
        "div",
        el("p", el("label", "Baseline ", el("select", *bases, id="baseline"))),
        el("p", el("label", "Find benchmarks ", el("input", type="search", id="filter")),
           " ", el("span", id="filtered", role="status")),
        el("p", el("label", "Order of configurations ", el("select", *orders, id="order"))),
        el("p", el("button", "Download CSV", type="button", id="csv")),
        el("fieldset", el("legend", "Configurations: colour by MPI and guest, dashes by transport"),
           *rows),
        el("p", el("span"), el("code", id="against-command"), class_="note", id="against",
           hidden=True, role="status"),
        id="controls", class_="controls", role="group", aria_label="Figures", hidden=True,
    )  # fmt: skip


def _choice(name: str, place: int, style: tuple[int, int], *, base: bool) -> Html:
    """Render a box to show it, its line in the charts, and a button that fades all others."""
    hue, variant = style
    line = el("path", d="M1 6h30", class_="line", stroke_dasharray=labels.dash(variant) or None)
    key = el(
        "svg", el("g", line, class_=f"curve {'base' if base else f'hue{hue}'}"),
        width=32, height=12, viewBox="0 0 32 12", aria_hidden="true",
    )  # fmt: skip
    box = el("input", type="checkbox", checked=True, data_shown=place, autocomplete="off")
    only = el(
        "button", "Isolate", el("span", foreign(f" {name}"), class_="vh"), type="button",
        aria_pressed="false", data_only=place,
    )  # fmt: skip
    return el("span", el("label", box, key, foreign(f" {name}")), only, class_="choice")
