"""Pictures of a profile: bars in tables, ranks side by side, who sends to whom.

Who sends to whom has one path for each step of a colour, so that 128 ranks make six elements and
not 16 384; of more ranks, neighbours share a cell.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from mpigraft.report.markup import Html, el, foreign, scrolling
from mpigraft.report.profile.text import seconds, size
from mpigraft.trace import PeerTraffic, RankUse

BAR, BAR_HIGH = 150, 11
MOST_CELLS = 128  # of a side of the matrix
STEPS = 4  # of colour, each a factor of LESS
LESS = 8
SIDE, LARGEST, MARGIN = 640.0, 26.0, 44.0
WIDE, HIGH, LEFT, TOP, BOTTOM = 720, 190, 46, 10, 160
LABELS = 16  # ranks that are named along an axis


def bar(share: float | None, part: float | None = None) -> Html:
    """Render a bar of a share between 0 and 1; `part` of it, which is waiting, in another
    colour."""
    if share is None:
        return el("td", "")
    wide = BAR * min(max(share, 0.0), 1.0)
    first = 0.0 if part is None else min(BAR * max(part, 0.0), wide)
    return el(
        "td",
        el(
            "svg",
            el("rect", width=f"{wide:.1f}", height=BAR_HIGH, class_="moving"),
            el("rect", width=f"{first:.1f}", height=BAR_HIGH, class_="waiting") if first else None,
            viewBox=f"0 0 {BAR} {BAR_HIGH}", width=BAR, height=BAR_HIGH, aria_hidden="true",
        ),
        class_="bar",
    )  # fmt: skip


# ------------------------------------------------------------------ ranks


def ranks_picture(ranks: Sequence[RankUse]) -> Html:
    """Render a bar for each rank: its time in MPI, within its run time."""
    known = [one for one in ranks if one.run_s is not None and one.mpi_s is not None]
    top = max((one.run_s or 0.0 for one in known), default=0.0)
    if not known or top <= 0:
        return Html("")
    step = (WIDE - LEFT) / len(known)
    gap = step * 0.15 if step > 4 else 0.0
    high = BOTTOM - TOP

    def path(values: Iterable[float]) -> str:
        return "".join(
            f"M{LEFT + k * step + gap:.1f} {BOTTOM}v-{high * min(value / top, 1):.1f}"
            f"h{step - 2 * gap:.1f}V{BOTTOM}z"
            for k, value in enumerate(values)
        )

    every = math.ceil(len(known) / LABELS)
    names = [
        el("text", one.rank, x=f"{LEFT + (k + 0.5) * step:.1f}", y=BOTTOM + 15, class_="mid")
        for k, one in enumerate(known)
        if k % every == 0
    ]
    levels = [
        part
        for share in (0.0, 0.5, 1.0)
        for part in (
            el("path", d=f"M{LEFT} {BOTTOM - high * share:.1f}H{WIDE}", class_="level"),
            el("text", seconds(top * share), x=LEFT - 5, y=f"{BOTTOM - high * share:.1f}",
               dy=".35em", class_="end"),
        )
    ]  # fmt: skip
    used = [(one.mpi_s or 0.0) / one.threads for one in known]
    low, most = min(used), max(used)
    alt = f"Time in MPI of each of {len(known)} ranks: {seconds(low)} to {seconds(most)}."
    drawing = el(
        "svg", *levels,
        el("path", d=path(one.run_s or 0.0 for one in known), class_="run"),
        el("path", d=path(used), class_="moving"),
        *names, el("text", "rank", x=WIDE, y=HIGH - 2, class_="end"),
        viewBox=f"0 0 {WIDE} {HIGH}", role="img", aria_label=alt, class_="ranks", width="100%",
        style=f"max-width:{WIDE}px;min-width:420px",
    )  # fmt: skip
    legend = el("p", _key("moving", "in MPI"), _key("run", "outside of MPI"), class_="legend")
    return el("figure", scrolling(drawing, alt), legend)


def _key(name: str, text: str) -> Html:
    return el("span", el("i", class_=name), f" {text}")


# ------------------------------------------------------------------ who sends to whom


def matrix_picture(peers: Iterable[PeerTraffic], ranks: int, title: str) -> Html:
    """Return rows send, columns receive; the colour is the logarithm of the bytes, or of the
    messages where none has bytes."""
    every = math.ceil(ranks / MOST_CELLS)
    cells: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for one in peers:
        cell = cells[one.source // every, one.target // every]
        cell[0] += one.bytes
        cell[1] += one.messages
    sized = any(own[0] for own in cells.values())
    values = {at: own[0 if sized else 1] for at, own in cells.items()}
    most = max(values.values(), default=0)
    if not most:
        return Html("")
    count = math.ceil(ranks / every)
    side = min(SIDE / count, LARGEST)  # of a cell
    paths: dict[int, list[str]] = defaultdict(list)
    for (source, target), value in sorted(values.items()):
        if value and source < count and target < count:
            paths[_step(value, most)].append(f"M{target} {source}h1v1h-1z")
    ground = el("rect", width=count, height=count, class_="none")
    grid = el(
        "g", ground, *(el("path", d="".join(d), class_=f"m{k}") for k, d in sorted(paths.items())),
        transform=f"translate({MARGIN} {MARGIN}) scale({side:.4g})",
    )  # fmt: skip
    named = math.ceil(count / LABELS)
    labels = [
        text
        for k in range(0, count, named)
        for text in _labels(k * every, MARGIN + (k + 0.5) * side)
    ]
    whole = MARGIN + count * side + 2
    alt = (
        f"{title}: {len(values)} of {count * count} cells have data, at most {_value(most, sized)}"
    )
    drawing = el(
        "svg", *labels, grid, viewBox=f"0 0 {whole:.0f} {whole:.0f}", role="img", aria_label=alt,
        class_="heat", width="100%",
        style=f"max-width:{whole:.0f}px;min-width:{min(whole, 320):.0f}px",
    )  # fmt: skip
    together = f" Each cell is {every} by {every} ranks." if every > 1 else ""
    caption = el("figcaption", f"Rows send, columns receive.{together}")
    return el("figure", scrolling(drawing, alt), _legend(most, sized), caption)


def _step(value: int, most: int) -> int:
    """3 for the most, one less for each factor of LESS."""
    return max(0, STEPS - 1 - int(math.log(most / value, LESS) + 1e-9))


def _value(value: float, sized: bool) -> str:
    return f"{size(value)} bytes" if sized else f"{value:.0f} messages"


def _labels(rank: int, at: float) -> tuple[Html, Html]:
    edge = MARGIN - 5
    row = el("text", rank, x=f"{edge:.0f}", y=f"{at:.1f}", dy=".35em")
    column = el("text", rank, x=f"{at:.1f}", y=f"{edge:.0f}", class_="above")
    return row, column


def _legend(most: int, sized: bool) -> Html:
    bounds = [most / LESS**k for k in range(STEPS)]
    keys = [
        el("span", el("i", class_=f"m{STEPS - 1 - k}"),
           foreign(f" up to {_value(bound, sized)}"))
        for k, bound in enumerate(bounds)
    ]  # fmt: skip
    nothing = el("span", el("i", class_="none"), " nothing")
    return el("p", *keys, nothing, class_="legend heat")
