"""Pictures of a profile: bars in tables, the time of each rank, who sends to whom."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from mpigraft.report.heat import grid_picture, legend
from mpigraft.report.html.document import chart
from mpigraft.report.markup import Html, el, join, table, table_row
from mpigraft.report.profile.text import seconds, size
from mpigraft.trace import PeerTraffic, RankUse

MOST_CELLS = 128  # of a side of the matrix; of more ranks, neighbours share a cell
STEPS = 4  # of colour, each a factor of LESS
LESS = 8


def bar(share: float | None, part: float = 0.0) -> Html:
    """Render a bar of a share between 0 and 1; `part` of it, which is waiting, in another
    colour."""
    if share is None:
        return el("td", "")
    widths = (("waiting", min(part, share)), ("moving", share - min(part, share)))
    bars = (el("i", class_=k, style=f"width:{100 * w:.1f}%") for k, w in widths if w > 0)
    return el("td", el("span", *bars), class_="bar")


def ranks_plot(ranks: Sequence[RankUse]) -> dict[str, Any] | None:
    """Return what the page's script draws: (rank, run time, time in MPI, words) of each rank."""
    known = [(one.rank, one.run_s, one.mpi_s / one.threads)
             for one in ranks if one.run_s is not None and one.mpi_s is not None]  # fmt: skip
    top = max((run for _, run, _ in known), default=0.0)
    if top <= 0:
        return None
    return {
        "levels": [(top * share, seconds(top * share)) for share in (0.0, 0.5, 1.0)],
        "bars": [
            (rank, run, min(used, top), f"rank {rank}: {seconds(used)} in MPI of {seconds(run)}")
            for rank, run, used in known
        ],
    }


def ranks_picture(plot: dict[str, Any]) -> Html:
    """Render the place of these bars, what their colours mean, and a table of all."""
    used = [used for _, _, used, _ in plot["bars"]]
    span = f"{seconds(min(used))} to {seconds(max(used))}"
    alt = f"Time in MPI of each of {len(used)} ranks: {span}."
    keys = (("moving", " in MPI"), ("run", " outside of MPI"))
    picture = chart("ranks", alt, f"Time in MPI by rank, {span}, within its run time.", data_plot=0)
    rows = [table_row(rank, seconds(run), seconds(own)) for rank, run, own, _ in plot["bars"]]
    every = table("Times of ranks", ("rank", "run time", "in MPI"), rows, class_="profile")
    return join(picture, color_keys(keys), el("details", el("summary", "Every rank"), every))


def color_keys(keys: Iterable[tuple[str, str]]) -> Html:
    """Render what colours mean, by their classes."""
    return el("p", *(el("span", el("i", class_=k), text) for k, text in keys), class_="legend")


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
    kinds = ((_kind(values.get((a, b), 0), most) for b in range(count)) for a in range(count))
    alt = (
        f"{title}: {len(values)} of {count * count} cells have data, at most {_value(most, sized)}"
    )
    picture = grid_picture([str(k * every) for k in range(count)], kinds, alt)
    bounds = (f"up to {_value(most / LESS**k, sized)}" for k in reversed(range(STEPS)))
    together = f" Each cell is {every} by {every} ranks." if every > 1 else ""
    caption = el("figcaption", f"Rows send, columns receive.{together}")
    return el("figure", picture, legend(["nothing", *bounds]), caption)


def _kind(value: int, most: int) -> str:
    """0 for nothing; STEPS for the most, one less for each factor of LESS."""
    return str(max(1, STEPS - int(math.log(most / value, LESS) + 1e-9))) if value else "0"


def _value(value: float, sized: bool) -> str:
    return f"{size(value)} bytes" if sized else f"{value:.0f} messages"
