"""A profile as one HTML file that opens offline and needs no script."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources

import mpigraft
from mpigraft.core.homes import hide_homes
from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.numbers import counted
from mpigraft.report.markup import Html, el, foreign, table, table_row
from mpigraft.report.profile.pictures import bar, matrix_picture, ranks_picture
from mpigraft.report.profile.text import (
    SHOWN,
    count,
    headline,
    percent,
    seconds,
    size,
    size_range,
    unfinished_lines,
)
from mpigraft.trace import Profile, Routine

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
SIZED, PAIRS, SITES = 12, 20, 50  # routines with sizes; rows of tables
KINDS = {"p2p": "point to point", "collective": "collectives", "one-sided": "one-sided"}
# After the report's own style, whose colours these are.
STYLE = """
td.bar{min-width:160px;padding-right:.8rem}.moving{fill:var(--hue0);background:var(--hue0)}
.waiting{fill:var(--hue1);background:var(--hue1)}.run{fill:var(--e);background:var(--e)}
svg.ranks{display:block;height:auto}svg.ranks text{font-size:11px;fill:var(--soft)}
svg.ranks .end{text-anchor:end}svg.ranks .mid{text-anchor:middle}
svg.ranks .level{stroke:var(--rule)}
.legend i{display:inline-block;width:1.2em;height:.8em;border-radius:2px}
svg.heat text.above{text-anchor:middle}
.m0{fill:var(--s1);background:var(--s1)}.m1{fill:var(--s2);background:var(--s2)}
.m2{fill:var(--s3);background:var(--s3)}.m3{fill:var(--s4);background:var(--s4)}
.none{fill:var(--wash);background:var(--wash)}
table.profile th,table.profile td{padding:.25rem .9rem .25rem 0;text-align:right;white-space:nowrap}
table.profile th[scope=row],table.profile thead th:first-child{text-align:left}
table.profile tbody td,table.profile th[scope=row]{border-top:1px solid var(--rule)}
table.profile td.bar{text-align:left}
table.sites td{white-space:normal;text-align:left;vertical-align:top}
"""


def render_profile_page(profile: Profile) -> str:
    """Write the whole file. The same profile gives the same text, byte for byte."""
    style = resources.files("mpigraft.report").joinpath("page.css").read_text(encoding="utf-8")
    sections = list(_sections(profile))
    head = el(
        "head",
        el("meta", charset="utf-8"),
        el("meta", http_equiv="Content-Security-Policy", content=POLICY),
        el("meta", name="viewport", content="width=device-width, initial-scale=1"),
        el("meta", name="color-scheme", content="light dark"),
        el("meta", name="generator", content=f"mpigraft {mpigraft.__version__}"),
        el("title", foreign(hide_homes(f"MPI time of {profile.program}"))),
        el("style", Html(style + STYLE)),
    )
    nav = el(
        "nav", *(el("a", title, href=f"#{name}") for name, title, _ in sections),
        aria_label="Sections",
    )  # fmt: skip
    main = el(
        "main",
        *(el("section", el("h2", title), body, id=name) for name, title, body in sections),
    )
    body = el("body", Html(hide_homes(_header(profile))), nav, Html(hide_homes(main)))
    return f"<!doctype html>\n{el('html', head, body, lang='en')}\n"


def _header(profile: Profile) -> Html:
    share = profile.share(profile.mpi_s)
    facts = [
        ("run time", seconds(profile.run_s)),
        ("in MPI", percent(share)),
        ("before that in MPI_Init", "" if profile.entry_s is None else seconds(profile.entry_s)),
        ("ranks", profile.ranks),
        ("nodes", fold_hosts(list(profile.hosts), SHOWN)),
        *profile.labels,
        ("profile of", profile.source),
        ("began", profile.began),
    ]
    terms = (el("div", el("dt", k), el("dd", foreign(v))) for k, v in facts if v)
    lines = [*unfinished_lines(profile.unfinished), *(f"Note: {note}" for note in profile.notes)]
    lines += [f"World {k}: {headline(one)}" for k, one in enumerate(profile.others, 1)]
    if profile.exit_code:
        lines.insert(0, f"The program ended with exit code {profile.exit_code}.")
    return el(
        "header",
        el("a", "Skip to the routines", href="#routines", class_="skip"),
        el("p", "mpigraft profile", class_="kicker"),
        el("h1", foreign(profile.program or "program")),
        el("p", foreign(headline(profile)), class_="answer"),
        el("ul", *(el("li", foreign(line)) for line in lines)) if lines else None,
        el("dl", *terms, class_="facts"),
    )


def _sections(profile: Profile) -> Iterator[tuple[str, str, Html]]:
    """Yield (anchor, title, content) of what the profile has figures for."""
    yield "routines", "Routines", _routines(profile)
    ranks = ranks_picture(profile.each)
    if ranks:
        yield "ranks", "Ranks", ranks
    maps = list(_matrices(profile))
    if maps:
        yield "peers", "Who sends to whom", el("div", *maps, _pairs(profile))
    sized = [one for one in profile.routines if one.sizes][:SIZED]
    if sized:
        yield "sizes", "Sizes of messages", el("div", *map(_sizes, sized))
    if profile.sites:
        yield "sites", "Call sites", _sites(profile)


def _routines(profile: Profile) -> Html:
    """Render a bar for each routine, its share of the run time, and its figures."""
    used = [one for one in profile.routines if one.calls or one.time_s]
    if not used:
        return el("p", "No routine was counted.")
    shares = [profile.routine_share(one.name, one.time_s) for one in used]
    largest = max(share or 0.0 for share in shares) or 1.0
    rows = []
    for one, share in zip(used, shares, strict=True):
        waited = profile.share(one.waited_s)
        spread = one.spread
        figures = (spread.low, spread.mean, spread.high) if spread else (None, None, None)
        uneven = spread.imbalance if spread else None
        mean = one.bytes / one.calls if one.bytes is not None and one.calls else None
        length = None if share is None else share / largest
        part = None if waited is None else waited / largest
        rows.append(table_row(
            foreign(one.name), bar(length, part), percent(share),
            *((percent(waited),) if profile.waits else ()),
            *map(seconds, figures), "-" if uneven is None else f"{100 * uneven:.0f} %",
            count(one.calls), size(one.bytes), size(mean),
        ))  # fmt: skip
    waits = ("waiting",) if profile.waits else ()
    heads = ("routine", "", "of run time", *waits, "min", "avg", "max", "imbalance", "calls",
             "bytes", "mean")  # fmt: skip
    legend = None
    if profile.waits:
        keys = (("waiting", " waiting for others"), ("moving", " moving data"))
        legend = el("p", *(el("span", el("i", class_=k), t) for k, t in keys), class_="legend")
    caption = "Share of the run time of all ranks; times of a rank; imbalance is max over avg."
    return el("div", legend, table(caption, heads, rows, class_="profile"))


def _matrices(profile: Profile) -> Iterator[Html]:
    for kind, title in KINDS.items():
        own = [one for one in profile.peers if one.kind.value == kind]
        picture = matrix_picture(own, profile.ranks, title)
        if picture:
            yield el("h3", title)
            yield picture


def _pairs(profile: Profile) -> Html:
    others = [one for one in profile.peers if one.source != one.target] or profile.peers
    rows = [
        table_row(
            f"{one.source} to {one.target}", KINDS[one.kind.value], count(one.messages),
            size(one.bytes),
        )
        for one in others[:PAIRS]
    ]  # fmt: skip
    caption = f"The {len(rows)} of {len(others)} pairs that exchange most"
    return table(caption, ("ranks", "kind", "messages", "bytes"), rows, class_="profile")


def _sizes(routine: Routine) -> Html:
    """Messages of one routine by size: bars of time, or of bytes where times are not known."""
    timed = any(part.time_s for part in routine.sizes)
    weights = [(part.time_s if timed else part.bytes or part.calls) or 0 for part in routine.sizes]
    most = max(weights) or 1
    rows = [
        table_row(
            size_range(part.least, part.most, part.mixed), bar(weight / most), count(part.calls),
            size(part.bytes), seconds(part.time_s) + (" (estimated)" if part.estimated else ""),
        )
        for part, weight in zip(routine.sizes, weights, strict=True)
    ]  # fmt: skip
    heads = ("bytes of a message", "time" if timed else "bytes", "messages", "bytes", "time")
    total = counted(sum(part.calls for part in routine.sizes), "message")
    return el("div", el("h3", foreign(routine.name)), table(total, heads, rows, class_="profile"))


def _sites(profile: Profile) -> Html:
    rows = [
        table_row(
            foreign(one.routine), percent(profile.routine_share(one.routine, one.time_s)),
            count(one.calls),
            size(one.bytes), el("td", *(el("div", foreign(frame)) for frame in one.frames)),
        )
        for one in profile.sites[:SITES]
    ]  # fmt: skip
    heads = ("routine", "of run time", "calls", "bytes", "called from")
    caption = f"{len(rows)} of {len(profile.sites)} call sites, the innermost frame first"
    return table(caption, heads, rows, class_="profile sites")
