"""Ranks in the HTML report: where each was, and what it had mapped.

Thousands of ranks are shown by the nodes that are alike: a row for each would be a page that no
browser opens and nobody reads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from mpigraft.core.cpuset import format_cpus
from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.model import MappedLibrary, RankRecord
from mpigraft.report.markup import Html, el, foreign, join
from mpigraft.report.table import Column, Table

EACH = 64  # ranks that have a row each
KINDS = 4  # of nodes that are shown
HOSTS = 40  # words of a list of hosts
SHOWN = ("libmpi", "libpmpi", "libopen-", "libfabric", "libuc", "libpmi", "libprrte", "libmpigraft")
Place = tuple[str, ...]  # texts of a rank's PLACES
PLACES: tuple[tuple[str, Callable[[RankRecord], str]], ...] = (
    ("CPUs", lambda rank: format_cpus(rank.cores)),
    ("NUMA", lambda rank: format_cpus(rank.numa)),
    ("GPUs that it sees", lambda rank: " ".join(rank.gpus)),
    ("network devices", lambda rank: " ".join(rank.devices)),
)


def ranks(records: Sequence[RankRecord]) -> Html:
    """Return where ranks were, and the libraries that they had mapped: once where ranks agree."""
    return join(_each(records) if len(records) <= EACH else _nodes(records), *_mapped(records))


def _each(records: Sequence[RankRecord]) -> Html:
    columns = _columns([_place(rank) for rank in records])
    rows = (
        (f"{rank.rank} of {rank.size}", rank.host, *_cells(_place(rank), columns))
        for rank in records
    )
    return _table("Ranks", ("rank", "host"), columns, rows)


def _nodes(records: Sequence[RankRecord]) -> Html:
    """Render a table for each kind of node, those of most nodes first."""
    ordered = sorted(records, key=lambda rank: rank.host)  # stable: ranks stay in their order
    of_host = {host: tuple(own) for host, own in groupby(ordered, key=lambda rank: rank.host)}
    hosts = sorted(of_host, key=lambda host: of_host[host][0].rank)
    kinds: dict[tuple[Place, ...], list[str]] = {}
    for host in hosts:
        kinds.setdefault(tuple(map(_place, of_host[host])), []).append(host)
    most_first = sorted(kinds.items(), key=lambda kind: -len(kind[1]))
    parts = [_kind(places, alike, of_host[alike[0]]) for places, alike in most_first[:KINDS]]
    if others := [host for _, alike in most_first[KINDS:] for host in alike]:
        text = f"Other CPUs or devices, on {len(others)} more nodes: {fold_hosts(others, HOSTS)}"
        parts.append(el("p", foreign(text), class_="key"))
    return join(*parts)


def _kind(places: Sequence[Place], hosts: Sequence[str], first: Sequence[RankRecord]) -> Html:
    """Render the ranks of one node, and which nodes are like it."""
    columns = _columns(places)
    rows = ((str(seat), *_cells(place, columns)) for seat, place in enumerate(places))
    numbers = format_cpus(rank.rank for rank in first)
    world = f"of {first[0].size}"
    if len(hosts) == 1:
        caption = f"Ranks on {hosts[0]}: {numbers} {world}"
    else:
        caption = f"Ranks on each of {len(hosts)} nodes, {fold_hosts(hosts, HOSTS)}; " + (
            f"those on {hosts[0]} are {numbers} {world}"
        )
    return _table(caption, ("its number there",), columns, rows)


def _place(rank: RankRecord) -> Place:
    return tuple(text(rank) for _, text in PLACES)


def _columns(places: Sequence[Place]) -> list[int]:
    """Give the PLACES to show: CPUs, and of the others those that some rank has."""
    return [n for n in range(len(PLACES)) if not n or any(place[n] for place in places)]


def _cells(place: Place, columns: Sequence[int]) -> list[str]:
    return [place[n] for n in columns]


def _table(
    caption: str, heads: Sequence[str], columns: Sequence[int], rows: Iterable[tuple[str, ...]]
) -> Html:
    names = (*heads, *(PLACES[n][0] for n in columns))
    return Table(caption, tuple(map(Column, names)), tuple(rows)).html("plain")


def _mapped(records: Sequence[RankRecord]) -> list[Html]:
    shown: dict[int, tuple[str, ...]] = {}  # by the list, which ranks share
    ranks_of: dict[tuple[str, ...], list[int]] = {}
    for rank in records:
        if id(rank.libraries) not in shown:
            shown[id(rank.libraries)] = _shown(rank.libraries)
        ranks_of.setdefault(shown[id(rank.libraries)], []).append(rank.rank)
    parts = []
    for mapped, numbers in ranks_of.items():
        every = "every rank" if len(ranks_of) == 1 else f"rank {format_cpus(numbers)}"
        parts.append(el("p", f"Mapped by {every}:", class_="key"))
        parts.append(el("div", *(el("code", foreign(path)) for path in mapped), class_="mapped"))
    return parts


def _shown(libraries: Sequence[MappedLibrary]) -> tuple[str, ...]:
    paths = {one.path for one in libraries}
    return tuple(sorted(path for path in paths if path.rpartition("/")[2].startswith(SHOWN)))
