"""The page of a profile. The script draws the time of each rank, which a table has too."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.numbers import counted
from mpigraft.report.html.document import header, main, nav, render_document, section
from mpigraft.report.markup import Html, el, foreign, table, table_row
from mpigraft.report.profile.pictures import (
    bar,
    color_keys,
    matrix_picture,
    ranks_picture,
    ranks_plot,
)
from mpigraft.report.profile.text import (
    SHOWN,
    count,
    headline,
    percent,
    routine_figures,
    seconds,
    size,
    size_range,
    unfinished_lines,
)
from mpigraft.trace import Profile, Routine

NO_SCRIPTS = "Scripts are off: the chart of ranks is not drawn. Its table has the figures."
SIZED, PAIRS, SITES = 12, 20, 50  # routines with sizes; rows of tables
KINDS = {"p2p": "point to point", "collective": "collectives", "one-sided": "one-sided"}


def render_profile_page(profile: Profile) -> str:
    """Write the whole file. The same profile gives the same text, byte for byte."""
    ranks = ranks_plot(profile.each)
    sections = list(_sections(profile, ranks))
    parts = (
        _header(profile),
        nav((name, title) for name, title, _ in sections),
        main(section(*one) for one in sections),
    )
    plots = [ranks] if ranks else []
    return render_document(f"MPI time of {profile.program}", parts, {"plots": plots})


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
    lines = [*unfinished_lines(profile.unfinished), *(f"Note: {note}" for note in profile.notes)]
    lines += [f"World {k}: {headline(one)}" for k, one in enumerate(profile.others, 1)]
    if profile.exit_code:
        lines.insert(0, f"The program ended with exit code {profile.exit_code}.")
    answer = [headline(profile), *lines]
    return header("mpigraft profile", profile.program or "program", answer, facts, NO_SCRIPTS)


def _sections(profile: Profile, ranks: dict[str, Any] | None) -> Iterator[tuple[str, str, Html]]:
    """Yield (anchor, title, content) of what the profile has figures for."""
    yield "routines", "Routines", _routines(profile)
    if ranks:
        yield "ranks", "Ranks", ranks_picture(ranks)
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
        length = None if share is None else share / largest
        part = 0.0 if waited is None else waited / largest
        rows.append(table_row(
            foreign(one.name), bar(length, part), percent(share),
            *((percent(waited),) if profile.waits else ()),
            *routine_figures(one),
        ))  # fmt: skip
    waits = ("waiting",) if profile.waits else ()
    heads = ("routine", "", "of run time", *waits, "min", "avg", "max", "imbalance", "calls",
             "bytes", "mean")  # fmt: skip
    legend = None
    if profile.waits:
        legend = color_keys((("waiting", " waiting for others"), ("moving", " moving data")))
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
