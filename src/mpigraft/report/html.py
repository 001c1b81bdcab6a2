"""The report as one HTML file that opens offline and can be published as it is.

Everything is inside: style, figures and the charts' library, once. The page's own policy lets
no request out and no other script run: each script is allowed by its hash. Tables stand without
scripts; charts are drawn from the figures by `charts.js`.
"""

from __future__ import annotations

import base64
import hashlib
from importlib import resources

import mpigraft
from mpigraft.launchers.hostlist import folded
from mpigraft.model import Origin
from mpigraft.report import (
    ReportData,
    cost,
    growth,
    html_evidence,
    html_provenance,
    html_tables,
    matrix,
    words,
)
from mpigraft.report.alone import alone
from mpigraft.report.curves import curves, has_curve
from mpigraft.report.headline import headline
from mpigraft.report.markup import Html, el, foreign, join
from mpigraft.report.method import method
from mpigraft.report.sections import Section, sections
from mpigraft.report.trouble import trouble
from mpigraft.summary import mixed

NAMED = 6  # nodes, or runs of nodes, that the header names


def render(data: ReportData) -> str:
    """The whole file. The same data give the same text, byte for byte."""
    from plotly.offline import get_plotlyjs

    library = _inline(get_plotlyjs())
    charts = _inline(_resource("charts.js"))
    figures = el("script", Html(curves(data)), type="application/json", id="curves")
    parts = (_header(data), _nav(data), el("main", *_main(data)), _footer(data), figures)
    told = (Html(words.homeless(part)) for part in parts)  # of escaped text: it only takes away
    body = el("body", *told, el("script", Html(library)), el("script", Html(charts)))
    page = el("html", _head(data, library, charts), body, lang="en")
    return f"<!doctype html>\n{page}\n"


def _resource(name: str) -> str:
    return resources.files("mpigraft.report").joinpath(name).read_text(encoding="utf-8")


def _inline(script: str) -> str:
    """A script that cannot end its own element. `<\\/` means `</` in a string and in a pattern,
    the only places where JavaScript can have it."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(script: str) -> str:
    """Its name in a Content-Security-Policy (W3C CSP Level 3, 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _head(data: ReportData, library: str, charts: str) -> Html:
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
        f"script-src {_hash(library)} {_hash(charts)}; base-uri 'none'; form-action 'none'"
    )
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="generator", content=f"mpigraft {mpigraft.__version__}"),
        el("title", foreign(words.homeless(f"{_title(data)} ({_name(data)})"))),
        el("style", Html(_resource("page.css"))),
    )


def _name(data: ReportData) -> str:
    return data.campaign.name if data.campaign else data.comparison.campaign[:8]


def _nodes(data: ReportData) -> list[str]:
    """Every node that was measured, once, in the order of the allocations."""
    named = (node for a in data.allocations for node in a.hosts or (a.host,) if node)
    return list(dict.fromkeys(named))


def _title(data: ReportData) -> str:
    match _nodes(data):
        case []:
            return "MPI configurations compared"
        case [node]:
            return f"MPI configurations on {node}"
        case nodes:
            return f"MPI configurations on {len(nodes)} nodes"


def _header(data: ReportData) -> Html:
    comparison, campaign = data.comparison, data.campaign
    rounds, nodes, spans = cost.rounds(comparison.rounds), _nodes(data), len(data.allocations)
    when = "imported on" if comparison.origin is Origin.IMPORT else "date"
    facts = [
        ("baseline", comparison.baseline),
        ("configurations", len({g.configuration for g in comparison.groups}) + 1),
        ("rounds", rounds),
        (words.plural(len(nodes), "node"), folded(nodes, NAMED)),
        ("allocations", spans if spans > 1 else 0),
        (when, campaign.created[:10] if campaign else ""),
    ]
    terms = (el("div", el("dt", k), el("dd", foreign(v))) for k, v in facts if v)
    said = headline(comparison) or comparison.summary or ("Nothing was compared.",)
    first, *others = said
    return el(
        "header",
        el("a", "Skip to the results", href="#glance", class_="skip"),
        el("p", foreign(f"mpigraft report, campaign {_name(data)}"), class_="kicker"),
        el("h1", foreign(_title(data))),
        el("p", foreign(words.unbroken(first)), class_="answer"),
        el("ul", *(el("li", foreign(words.unbroken(line))) for line in others)) if others else None,
        el("dl", *terms, class_="facts"),
    )


def _nav(data: ReportData) -> Html:
    links = [("glance", "At a glance")]
    links += [("pairs", "Node by node")] if data.links else []
    links += [(html_tables.anchor(s), _label(s, data)) for s in sections(data.comparison)]
    links += [("growth", "Growth")] if growth.shown(data) else []
    links += [
        ("noise", "Noise"),
        ("evidence", "Evidence"),
        ("machine", "Machine"),
        ("method", "Method"),
    ]
    return el("nav", *(el("a", text, href=f"#{to}") for to, text in links), aria_label="Sections")


def _label(section: Section, data: ReportData) -> str:
    """A benchmark's name without its suite, with its layout and its metric where there are more
    than one."""
    found = sections(data.comparison)
    name = section.benchmark.partition(":")[2] or section.benchmark
    if len({s.metric for s in found if s.benchmark == section.benchmark}) > 1:
        name += f" {section.metric}"
    return name if len({s.place for s in found}) == 1 else f"{name} {section.place}"


def _main(data: ReportData) -> list[Html]:
    found = sections(data.comparison)
    known = words.unbroken(cost.honesty(data).line) + "."
    sure = el("p", known, class_="sub")
    parts = [_part("glance", "At a glance", *_glance(data), sure, _curves(data))]
    problems = trouble(data)
    if problems:
        parts.append(_part("findings", "Findings", html_evidence.findings(problems)))
    if mapped := matrix.html(data):  # first, since who has one asked for it
        parts.append(_part("pairs", "Node by node", *mapped))
    parts += [_benchmark(section, index, data) for index, section in enumerate(found)]
    if grown := growth.html(data):
        parts.append(_part("growth", "Growth with ranks", *grown))
    parts += [
        _part("noise", "How sure this is", html_tables.noise(data)),
        _part("evidence", "Evidence and provenance", html_evidence.evidence(data)),
        _part("machine", "Machine", html_provenance.machine(data)),
        _part("method", "Method", *(el("p", text) for text in method(data))),
    ]
    return parts


def _glance(data: ReportData) -> list[Html]:
    """The overview; of a single configuration its own values, since there is no ratio."""
    baseline = data.comparison.baseline
    found = sections(data.comparison)
    overview = [_legend(data), html_tables.glance(found, baseline, _absent(data))]
    own = [html_tables.alone(one, baseline) for one in alone(data)]
    if found or not own:
        return overview
    return [*own, *(overview[1:] if _absent(data) else [])]


def _absent(data: ReportData) -> list[str]:
    """Configurations that were to run and have no value anywhere."""
    measured = {g.configuration for g in data.comparison.groups} | {data.comparison.baseline}
    return sorted({c.id for c in data.configurations} - measured)


def _curves(data: ReportData) -> Html | None:
    """The summary's lines, folded where a headline stands above."""
    lines = data.comparison.summary
    if not lines or not headline(data.comparison):
        return None
    items = (el("li", foreign(words.unbroken(line))) for line in lines)
    return el("details", el("summary", "Curve by curve"), el("ul", *items))


def _part(name: str, title: str, *content: object, class_: str | None = None) -> Html:
    return el(
        "section",
        el("h2", title, id=f"{name}-title"),
        *content,
        class_=class_,
        id=name,
        aria_labelledby=f"{name}-title",
    )


def _legend(data: ReportData) -> Html:
    keys = (
        el("span", el("i", words.VERDICTS[v], class_=html_tables.verdict_class(v, 2.0)), f" {v}")
        for v in words.VERDICTS
    )
    both = "mixed: faster at some sizes and slower at others, so the curve has no verdict"
    there = any(mixed(group) for group in data.comparison.groups)
    return el("p", *keys, el("span", both) if there else None, class_="legend")


def _benchmark(section: Section, index: int, data: ReportData) -> Html:
    baseline = data.comparison.baseline
    name = html_tables.anchor(section)
    subtitle = (
        f"{section.metric} in {section.unit}, {words.better(section.better)}; {section.place}"
    )
    subtitle += f"; {section.repeats}" if section.repeats else ""
    crossovers = [
        f"{group.configuration}: {_steps(crossed, baseline)}"
        for group in section.groups
        if (crossed := words.crossings(group, baseline, section.better))
    ]
    listed = None
    if crossovers:
        listed = join(el("h3", "Crossovers"), el("ul", *(el("li", c) for c in crossovers)))
    return _part(
        name,
        section.benchmark,
        el("p", subtitle, class_="sub"),
        *_charts(section, index, data),
        html_tables.matrix(section, index),
        listed,
        html_tables.figures(section),
        class_="benchmark",
    )


def _steps(crossed: tuple[words.Crossing, ...], baseline: str) -> str:
    return ", ".join(
        f"{'the baseline' if c.ahead == baseline else 'it'} is ahead from {words.size(c.size)}"
        for c in crossed
    )


def _charts(section: Section, index: int, data: ReportData) -> list[Html]:
    count = len(section.groups)
    known = any(cell.low is not None for group in section.groups for cell in group.cells)
    intervals = (
        " Bands and bars: 95 % intervals, cut at the edge where very wide."
        if known
        else " One run has no interval."
    )
    if not has_curve(section):
        return [
            _chart(
                "ratio",
                index,
                f"Ratio of {count} configurations to {data.comparison.baseline} with intervals.",
                f"Ratio to the baseline.{intervals} Grey stripe: the margin around 1.",
            )
        ]
    bars = " Bands: 95 % interval of the launches' median." if known else ""
    return [
        _chart(
            "absolute",
            index,
            f"{section.metric} of {count + 1} configurations over message size.",
            f"{section.metric.capitalize()} in {section.unit} over message size.{bars}",
        ),
        _chart(
            "ratio",
            index,
            f"Ratio of each of {count} configurations to {data.comparison.baseline} over size.",
            f"Ratio to the baseline over message size, one panel each.{intervals} "
            "Grey stripe: the margin around 1.",
        ),
    ]


def _chart(kind: str, index: int, alt: str, caption: str) -> Html:
    label = f"{alt} The table that follows has the same figures."
    box = el(
        "div", class_="chart", data_kind=kind, data_section=index, role="img", aria_label=label
    )
    return el("figure", box, el("figcaption", caption))


def _footer(data: ReportData) -> Html:
    campaign = data.campaign
    made = f"mpigraft {mpigraft.__version__}"
    if campaign:
        made += (
            f"; measured by mpigraft {campaign.tool}; campaign {campaign.id}; seed {campaign.seed}"
        )
    return el("footer", el("p", foreign(made)))
