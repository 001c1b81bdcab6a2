"""The shell of every page: of a campaign, of a machine's history, of a profile.

A page is one file that opens offline and can be published as it is. Everything is inside: style,
figures and one script. The page's own policy lets no request out and no other script run: the
script is allowed by its hash. Each figure is in the file once. `charts.js`, `scaling.js` and
`plots.js` draw charts with Observable Plot when they come into view, `tables.js` makes tables of
all figures when they are opened or printed, and `page.js` and `controls.js` answer the reader.
Nothing depends on scripts alone: a chart has a table beside it, or `mpigraft` prints its figures.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import mpigraft
from mpigraft.core.homes import hide_homes
from mpigraft.report.markup import Html, el, foreign

LIBRARY = "vendor/plot.min.js"  # Observable Plot, which draws the charts
SCRIPTS = ("charts.js", "scaling.js", "plots.js", "tables.js", "controls.js", "page.js")  # in order
NO_FIGURES: Mapping[str, Any] = {
    "baseline": None, "order": (), "names": {}, "margin": 0, "sections": (), "cards": (),
    "views": (), "maps": (), "plots": (),
}  # fmt: skip


def render_document(
    title: str,
    parts: Iterable[Html],
    figures: Mapping[str, Any],
    hide: Callable[[str], str] = hide_homes,
) -> str:
    """Write the whole file. The same parts give the same text, byte for byte. `hide` takes away
    what a reader elsewhere must not see; it is given escaped text."""
    script = _inline("".join(_resource(name) for name in (LIBRARY, *SCRIPTS)))
    data = el("script", _json({**NO_FIGURES, **figures}), type="application/json", id="curves")
    shown = (Html(hide(part)) for part in (*parts, data))
    body = el("body", *shown, el("script", Html(script)))
    page = el("html", _head(hide(title), script), body, lang="en")
    return f"<!doctype html>\n{page}\n"


def _resource(name: str) -> str:
    return resources.files("mpigraft.report").joinpath(name).read_text(encoding="utf-8")


def colours() -> dict[str, str]:
    """Read the colours of a page on paper, by name: ink, soft, hue0."""
    return dict(re.findall(r"--(\w+): (#\w+);", _resource("page.css").partition("}")[0]))


def _json(figures: Mapping[str, Any]) -> Html:
    """Write JSON that is safe inside a script element: every `<` is written as an escape."""
    text = json.dumps(figures, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Html(text.replace("<", "\\u003c"))


def _inline(script: str) -> str:
    """Write a script that cannot end itself. `<\\/` means `</` in a string and in a pattern,
    the only places where JavaScript can have it."""
    return script.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _hash(script: str) -> str:
    """Return its name in a Content-Security-Policy (W3C CSP Level 3, 2.3.1)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _head(title: str, script: str) -> Html:
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; img-src data: blob:; "
        f"script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    )
    return el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=policy),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="generator", content=f"mpigraft {mpigraft.__version__}"),
        el("title", foreign(title)),
        el("style", Html(_resource("page.css"))),
    )


# ------------------------------------------------------------------ parts


def header(
    kicker: str,
    title: str,
    answer: Sequence[str],
    facts: Iterable[tuple[str, object]],
    no_scripts: str | None = None,
    then: Html | None = None,
) -> Html:
    """Render the head of a page: what it is about, the answer in its first line, what to do next
    (`then`), and facts; those without a value are left out. `no_scripts` is for readers without
    them."""
    first, *others = answer
    terms = (el("div", el("dt", name), el("dd", foreign(value))) for name, value in facts if value)
    return el(
        "header",
        el("a", "Skip to the results", href="#results", class_="skip"),
        el("p", foreign(kicker), class_="kicker"),
        el("h1", foreign(title)),
        el("p", foreign(first), class_="answer"),
        el("ul", *(el("li", foreign(line)) for line in others)) if others else None,
        then,
        el("dl", *terms, class_="facts"),
        el("noscript", el("p", no_scripts)) if no_scripts else None,
    )


def nav(links: Iterable[tuple[str, str]]) -> Html:
    """Render the bar of sections: (anchor, label) of each."""
    anchors = (el("a", foreign(label), href=f"#{name}") for name, label in links)
    return el("nav", *anchors, aria_label="Sections")


def main(sections: Iterable[Html]) -> Html:
    """Render the sections of a page."""
    return el("main", *sections, id="results")


def section(name: str, title: str, *content: object) -> Html:
    """Render a section, to which `#name` leads."""
    head = el("h2", foreign(title), id=f"{name}-title")
    return el("section", head, *content, id=name, aria_labelledby=f"{name}-title")


def chart(kind: str, alt: str, caption: str, **numbers: int) -> Html:
    """Render the place of a chart, which the script draws: `numbers` is that of its figures."""
    label = f"{alt} The tables that follow have the same figures."
    box = el("div", class_="chart", data_kind=kind, role="img", aria_label=label, **numbers)
    return el("figure", box, el("figcaption", foreign(caption)))
