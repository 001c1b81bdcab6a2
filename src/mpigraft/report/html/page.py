"""The page of a campaign: its parts in the shell of `document.py`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import mpigraft
from mpigraft.analysis import reason_of
from mpigraft.core import numbers
from mpigraft.core.homes import hide_homes
from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.model import Cause, Origin
from mpigraft.core.serialize import parse_object
from mpigraft.report import node_pairs, precision, rank_scaling
from mpigraft.report.baseline_only import baseline_series
from mpigraft.report.contents import ReportData
from mpigraft.report.curves import curves
from mpigraft.report.findings import report_findings
from mpigraft.report.headline import headline
from mpigraft.report.html import (
    benchmarks,
    controls,
    evidence,
    forest,
    overview,
    provenance,
    winners,
)
from mpigraft.report.html.document import header, main, nav, render_document, section
from mpigraft.report.markup import Html, el, foreign, join
from mpigraft.report.method import method
from mpigraft.report.redaction import hide_folders, hosts_of, redactor, users_of
from mpigraft.report.scaling import Card, card_label, cards
from mpigraft.report.software import (
    GuestRole,
    caption,
    guest_lines,
    guest_name,
    guest_words,
    node_type,
)
from mpigraft.report.table import Figure
from mpigraft.report.tables import baseline_table
from mpigraft.report.wording import words

NO_SCRIPTS = (
    "Scripts are off: charts and the tables of all figures are not drawn. Verdicts and ratios "
    "are below, and mpigraft compare --markdown --full prints every figure."
)
NAMED = 6  # nodes, or runs of nodes, that the header names


def render_html(data: ReportData, *, public: bool = False) -> str:
    """Write the whole file. The same data give the same text, byte for byte. `public`: without
    folders and names of hosts and users, which say nothing outside of the site."""
    own = public and data.comparison.origin is not Origin.IMPORT
    place = next(node_type(data), "") if own else ""
    title = _title(data, place)
    parts = (_header(data, title), _nav(data), main(_sections(data)), _footer(data))
    hide = _hide_all if public else hide_homes
    text = render_document(f"{title} ({data.campaign.name})", parts, curves(data), hide)
    return _struck(data, text) if public else text


def _hide_all(text: str) -> str:
    return hide_folders(hide_homes(text))


def _struck(data: ReportData, text: str) -> str:
    """Give a page without the names of its hosts and users. The machine of an import is no host:
    its user named it for readers."""
    hosts = hosts_of(data)
    if data.comparison.origin is Origin.IMPORT:
        hosts -= {str(parse_object(data.campaign.plan).get("machine"))}
    return redactor(hosts, users_of(data, [text.encode()]))(text.encode()).decode()


def _nodes(data: ReportData) -> list[str]:
    """Return every node that was measured, once, in the order of the allocations."""
    named = (node for a in data.allocations for node in a.hosts or (a.host,) if node)
    return list(dict.fromkeys(named))


def _title(data: ReportData, place: str = "") -> str:
    """Write what was compared and where: `place`, or the nodes."""
    nodes = _nodes(data)
    place = place or (nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes" if nodes else "")
    what = "MPI configurations"
    if called := sorted({*guest_words(data).values()}, key=[*GuestRole].index):
        listed = " and ".join(filter(None, (", ".join(called[:-1]), called[-1])))
        what = f"{listed[:1].upper()}{listed[1:]} MPI"
    return f"{what} on {place}" if place else f"{what} compared"


def _header(data: ReportData, title: str) -> Html:
    comparison, campaign = data.comparison, data.campaign
    base, called = comparison.baseline, guest_words(data)
    nodes, spans = _nodes(data), len(data.allocations)
    imported = comparison.origin is Origin.IMPORT
    when, what = ("imported on", "machine") if imported else ("date", "node")
    facts = [
        ("baseline", ", ".join(filter(None, (base, called.get(base))))),
        ("configurations", len(_measured(data)) + len(_absent(data))),
        guest_name(data),
        ("rounds", comparison.rounds),
        (numbers.plural(len(nodes), what), fold_hosts(nodes, NAMED)),
        ("allocations", spans if spans > 1 else 0),
        (when, campaign.created[:10]),
    ]
    answer = headline(data) or comparison.summary or ("Nothing was compared.",)
    return header(
        f"mpigraft report, campaign {campaign.name}",
        title,
        [words.unbroken(line) for line in answer],
        facts,
        NO_SCRIPTS if comparison.groups else None,
        _next(data),
    )


def _next(data: ReportData) -> Html | None:
    """Say in one line what to do: more rounds, or the same again after an update."""
    if step := precision.next_step(data):
        return el("p", f"{step[0]}: ", el("code", step[1]), class_="next")
    if data.campaign.origin is not Origin.RUN:
        return None
    again = f"mpigraft bench --again {data.campaign.id[:8]}"
    return el("p", "After an update, measure the same again: ", el("code", again), class_="next")


def _nav(data: ReportData) -> Html:
    every = cards(data.comparison)
    links = [("pairs", "Node by node")] if data.links else []
    links += [("nodes", "Over nodes")] if any(card.views for card in every) else []
    links += [("glance", "At a glance")]
    links += [(overview.card_anchor(card), card_label(card, every)) for card in every]
    links += [("growth", "Growth")] if rank_scaling.growths_to_show(data) else []
    links += [
        ("noise", "Noise"),
        ("evidence", "Evidence"),
        ("machine", "Machine"),
        ("method", "Method"),
    ]
    return nav(links)


def _sections(data: ReportData) -> list[Html]:
    every = cards(data.comparison)
    numbers_of = {
        id(one): number for number, one in enumerate(one for card in every for one in card.sections)
    }
    first_views = [0, *itertools.accumulate(len(card.views) for card in every)]
    known = words.unbroken(precision.precision(data).line) + "."
    sure = el("p", known, class_="sub")
    parts = []
    if pairs := _figures(node_pairs.figures(data)):  # first, since who has one wanted it
        parts.append(section("pairs", "Node by node", *pairs))
    if over := _over_nodes(data, every, first_views):
        parts.append(section("nodes", "Over nodes", *over))
    parts.append(section("glance", "At a glance", *_glance(data, every), sure, _curves(data)))
    if problems := report_findings(data):
        parts.append(section("findings", "Findings", evidence.findings(problems)))
    parts += [benchmarks.benchmark(card, data, numbers_of) for card in every]
    if grown := _figures(rank_scaling.figures(data)):
        parts.append(section("growth", "Growth with ranks", *grown))
    parts += [
        section("noise", "How sure this is", overview.noise(data)),
        section("evidence", "Evidence and provenance", evidence.evidence(data)),
        section("machine", "Machine", provenance.machine(data)),
        section("method", "Method", *(el("p", text) for text in method(data))),
    ]
    return parts


def _over_nodes(
    data: ReportData, every: tuple[Card, ...], first_views: Sequence[int]
) -> list[Html]:
    """Return all scaling views one below the other; one alone is with its benchmark."""
    placed = [
        (card, view, first + place)
        for card, first in zip(every, first_views, strict=False)
        for place, view in enumerate(card.views)
    ]
    if not placed:
        return []
    return [
        *(benchmarks.scaling(card, view, number, data) for card, view, number in placed),
        el("p", foreign(caption(data)), class_="sub"),
        overview.over_nodes(every),
    ]


def _glance(data: ReportData, every: tuple[Card, ...]) -> list[Html]:
    """Render the overview; of a single configuration its own values, since there is no ratio."""
    baseline = data.comparison.baseline
    absent = _absent(data)
    whole = overview.glance(every, baseline, absent, guest_lines(data))
    own = [baseline_table(series, baseline).html("figures") for series in baseline_series(data)]
    if not every and own:
        return [*own, *([whole] if absent else [])]
    parts = (
        forest.forest(every, baseline),
        _legend(data),
        whole,
        controls.controls(data, every),
        winners.table_of_winners(every, data),
    )
    return [part for part in parts if part is not None]


def _absent(data: ReportData) -> list[str]:
    """List configurations that were to run and have no value anywhere."""
    return sorted({c.id for c in data.configurations} - _measured(data))


def _measured(data: ReportData) -> set[str]:
    return {group.configuration for group in data.comparison.groups} | {data.comparison.baseline}


def _figures(figures: Sequence[Figure]) -> list[Html]:
    named = (": ".join(filter(None, (one.title, one.subject))) for one in figures)
    pairs = zip(named, figures, strict=True)
    return [join(el("h3", foreign(name)), figure.html()) for name, figure in pairs]


def _curves(data: ReportData) -> Html | None:
    """Give the summary's lines, folded where a headline is above."""
    lines = data.comparison.summary
    if not lines or not headline(data):
        return None
    items = (el("li", foreign(words.unbroken(line))) for line in lines)
    return el("details", el("summary", "Curve by curve"), el("ul", *items))


def _legend(data: ReportData) -> Html:
    keys = (
        el("span", el("i", words.VERDICT_SIGNS[v], class_=overview.verdict_class(v, 2.0)), f" {v}")
        for v in words.VERDICT_SIGNS
    )
    both = "mixed: faster at some sizes and slower at others, so the curve has no verdict"
    reasons = map(reason_of, data.comparison.groups)
    there = any(reason and reason.cause is Cause.MIXED for reason in reasons)
    return el("p", *keys, el("span", both) if there else None, class_="legend")


def _footer(data: ReportData) -> Html:
    campaign = data.campaign
    made = f"mpigraft {mpigraft.__version__}; measured by mpigraft {campaign.tool}"
    made += f"; campaign {campaign.id}; seed {campaign.seed}"
    return el("footer", el("p", foreign(made)))
