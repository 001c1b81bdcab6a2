"""Node by node: which nodes and which links of an allocation are slow.

A node is slow when the median over its links, those from it or those to it, stands out of the
links between the other nodes, a link when it stands out of those of the nodes that are not slow:
by more than five deviations of what links differ by or of what launches do, whichever is more, and
by more than a fraction LEAST. Medians, because one bad node spoils a mean for all; five rather than
the 3.5 of Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993), since 512 nodes have
130 816 links; what launches vary by, because three nodes have too few links to tell what these do;
LEAST, because where all are alike both are next to nothing. `node_outliers` has the arithmetic.

It has to be slow again and again as well: any link is slow at times, and of many some are so
twice. In how many of its launches it stood out is held against how often the others did, by the
binomial distribution; the chance times the number of all has to be below CHANCE. So one launch
names nobody, and three of four nodes do.

Where nodes fall into parts, every link within one of which is fast and every one between two slow,
it is neither nodes nor links but what lies between: switches, and the cables that join them. Then
the parts are told, and what stands out is looked for within them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from mpigraft.errors import UsageError
from mpigraft.model import METRICS, Benchmark, Better, Finding, Level, ValueRow
from mpigraft.node_outliers import (
    CHANCE,
    LEAST,
    Way,
    deviation,
    launch_noise,
    least_above,
    slow_nodes,
    tail,
)
from mpigraft.wish import Wish

if TYPE_CHECKING:
    from mpigraft.node_outliers import Floats

BENCHMARK = "native:pairs"
SIX = 6  # nodes, whose links are hardly ever on the right sides by chance
BOTH = {True, False}  # links within parts, and between them
LEAST_LAUNCHES = 3  # that nodes fall into parts takes
SHOWN = 8  # nodes and links that findings name

Pair = tuple[str, str]  # from, to; of a latency each both ways
Launch = tuple[str, int, int]  # allocation, round, replica


class SlowNode(NamedTuple):
    """`times` as slow as the median link between the other nodes."""

    node: str
    times: float
    way: Way


@dataclass(frozen=True, slots=True)
class Matrix:
    """One metric of one configuration between each two nodes: medians over launches."""

    configuration: str  # id
    layout: str
    metric: str
    unit: str
    size: int
    nodes: tuple[str, ...]  # in the order of their names
    links: tuple[tuple[Pair, float], ...]
    middle: float  # the median over the links of nodes that are not slow
    launches: int
    slow_nodes: tuple[SlowNode, ...] = ()  # the worst first
    slow_links: tuple[tuple[Pair, float], ...] = ()  # those of slow nodes left out
    parts: tuple[tuple[str, ...], ...] = ()  # of nodes, with slower links between than within
    between: float = 1.0  # times as slow the median link between parts is as that within them

    @property
    def worse(self) -> dict[Pair, float]:
        """How many times slower than the middle each link is; below 1: faster."""
        return {pair: _times(self.metric, value, self.middle) for pair, value in self.links}


def is_link(row: ValueRow) -> bool:
    """Whether a value is of one link: none that configurations are compared by."""
    return row.benchmark.startswith(f"{BENCHMARK},")


def matrices(links: Iterable[ValueRow], labels: Mapping[str, str]) -> tuple[Matrix, ...]:
    """The matrices of a campaign's links; `labels` has ids by configuration key."""
    found: dict[tuple[str, str, str, int], dict[Launch, dict[Pair, float]]] = {}
    for row in links:
        ends = dict(Benchmark.parse(row.benchmark).options)
        pair = (ends.get("from", ""), ends.get("to", ""))
        if row.metric not in METRICS or "" in pair or not 0 < row.value < math.inf:
            continue
        what = (row.configuration, row.layout, row.metric, row.size)
        launch = (row.allocation, row.round, row.replica)
        found.setdefault(what, defaultdict(dict))[launch].setdefault(pair, row.value)
    return tuple(
        _matrix(labels.get(key, key), layout, metric, size, values)
        for (key, layout, metric, size), values in sorted(found.items(), key=lambda item: item[0])
    )


def findings(matrix: Matrix) -> tuple[Finding, ...]:
    """A warning for each slow node and link, the worst of them by name, and for parts; of two
    nodes a note that nothing tells them apart."""
    if len(matrix.nodes) == 2:
        return (_unattributed(matrix.nodes),)
    who = f"{matrix.configuration}: {matrix.metric}"
    middle = "within its part" if matrix.parts else f"of {matrix.middle:.3g} {matrix.unit}"
    what = f"times as slow as the median {middle}"
    rest = "run it again without: --hosts names the others; then have it looked at"
    nodes = [
        Finding(Level.WARNING, "slow-node",
                f"{who}: {one.node} is {one.times:.2f} times as slow{in_way(one.way)} as the "
                f"median link of the others{' within its part' if matrix.parts else ''}",
                "most pairs with it are slow, so it is the node and not a link", rest)
        for one in matrix.slow_nodes[:SHOWN]
    ]  # fmt: skip
    links = [
        Finding(Level.WARNING, "slow-link", f"{who}: {a} to {b} is {times:.2f} {what}",
                "other links of both nodes are not: a cable, a switch, or two that share a core")
        for (a, b), times in matrix.slow_links[:SHOWN]
    ]  # fmt: skip
    left = max(len(matrix.slow_nodes) - SHOWN, 0) + max(len(matrix.slow_links) - SHOWN, 0)
    more = Finding(Level.WARNING, "slow-link", f"{who}: and {left} more nodes and links")
    return (
        *nodes,
        *links,
        *((more,) if left else ()),
        *((_apart(matrix, who),) if matrix.parts else ()),
    )


def in_way(way: Way) -> str:
    """` in sending`, ` in sending and in receiving`; nothing where a value is of both."""
    if way is Way.EITHER:
        return ""
    return " in sending and in receiving" if way is Way.BOTH else f" in {way}"


def _unattributed(nodes: Sequence[str]) -> Finding:
    return Finding(
        Level.INFO, "two-nodes",
        f"{' and '.join(nodes)} have one link: nothing says which of them is slow, if one is",
        "a slow node is known by its links to all the others",
        "name three nodes or more with --hosts",
    )  # fmt: skip


def _apart(matrix: Matrix, who: str) -> Finding:
    names = [", ".join(part[:SHOWN]) + (" ..." if part[SHOWN:] else "") for part in matrix.parts]
    return Finding(
        Level.WARNING, "slow-between",
        f"{who}: between {' and '.join(f'({name})' for name in names[:SHOWN])} it is "
        f"{matrix.between:.2f} times as slow as within",
        "each link within them is fast and each between them slow, so it is neither a node nor a "
        "link but what joins them: switches, or cables that many share",
        "ask for nodes of one switch (Slurm: --switches=1) where it matters",
    )  # fmt: skip


def _matrix(
    label: str, layout: str, metric: str, size: int, launches: Mapping[Launch, dict[Pair, float]]
) -> Matrix:
    every: dict[Pair, list[float]] = defaultdict(list)
    for launch in launches.values():
        for pair, value in launch.items():
            every[pair].append(value)
    once = {pair: median(own) for pair, own in every.items()}
    links = once
    if METRICS[metric].better is Better.LOWER:  # a round trip belongs to both
        links = {**{(b, a): value for (a, b), value in once.items()}, **once}
    nodes = tuple(sorted({node for pair in links for node in pair}, key=_natural))
    logs = [_logs(metric, launch) for launch in (once, *launches.values())]
    parts, between = _parts(nodes, logs)
    logs = [_within(parts, values) for values in logs]
    slow = _slow_nodes(nodes, logs[1:], symmetric=links is not once)
    rest, *each_rest = [_without(values, slow) for values in logs]
    links_out = _outliers(rest, each_rest, launch_noise(_array(nodes, each_rest)))
    return Matrix(
        label, layout, metric, METRICS[metric].unit, size, nodes,
        tuple(sorted(links.items())),
        median(_without(links, slow).values()), len(launches), slow,
        tuple(sorted(links_out.items(), key=lambda item: (-item[1], item[0]))), parts, between,
    )  # fmt: skip


def _slow_nodes(
    nodes: Sequence[str], launches: Sequence[Mapping[Pair, float]], *, symmetric: bool
) -> tuple[SlowNode, ...]:
    if symmetric:
        launches = [{(b, a): x for (a, b), x in one.items()} | dict(one) for one in launches]
    rows = slow_nodes(_array(nodes, launches), symmetric=symmetric)
    return tuple(SlowNode(nodes[index], times, way) for index, times, way in rows)


def _array(nodes: Sequence[str], launches: Sequence[Mapping[Pair, float]]) -> Floats:
    """(launches, from, to), NaN where there is no value."""
    import numpy as np

    place = {node: index for index, node in enumerate(nodes)}
    logs: Floats = np.full((len(launches), len(nodes), len(nodes)), np.nan)
    for launch, links in enumerate(launches):
        for (a, b), x in links.items():
            logs[launch, place[a], place[b]] = x
    return logs


def _logs(metric: str, links: Mapping[Pair, float]) -> dict[Pair, float]:
    """How slow each link is, as a logarithm."""
    return {pair: math.log(_times(metric, value, 1.0)) for pair, value in links.items()}


def _parts(
    nodes: Sequence[str], logs: Sequence[Mapping[Pair, float]]
) -> tuple[tuple[tuple[str, ...], ...], float]:
    """Parts of two nodes or more each, and how many times slower it is between them. By the
    medians, `logs`' first, no link may be on the wrong side; in each launch, in which any link may
    be slow, half of them. Of fewer than SIX nodes chance does that too, so what parts them has to
    be wider than either side. None of fewer than LEAST_LAUNCHES."""
    if len(nodes) < 4:
        return (), 1.0
    links, *launches = logs
    ordered = sorted(links.values())
    gap, place = max((b - a, k) for k, (a, b) in enumerate(pairwise(ordered), 1))
    sides = max(ordered[place - 1] - ordered[0], ordered[-1] - ordered[place])
    if gap <= max(math.log(1 + LEAST), sides if len(nodes) < SIX else 0.0):
        return (), 1.0
    part = _joined(nodes, [pair for pair, x in links.items() if x < ordered[place]])
    whole = {(a, b): part[a] is part[b] for a, b in links}
    parts = tuple(tuple(n for n in nodes if n in own) for own in _distinct(part.values()))
    clean = all(inside == (links[pair] < ordered[place]) for pair, inside in whole.items())
    if min(map(len, parts)) < 2 or not clean:
        return (), 1.0
    often = [_between(one, whole) for one in launches if {whole[pair] for pair in one} == BOTH]
    if len(often) < LEAST_LAUNCHES or min(often) <= math.log(1 + LEAST):
        return (), 1.0
    return parts, math.exp(_between(links, whole))


def _between(links: Mapping[Pair, float], whole: Mapping[Pair, bool]) -> float:
    """How much slower the median link between parts is than that within them, of BOTH some."""
    within = [x for pair, x in links.items() if whole[pair]]
    across = [x for pair, x in links.items() if not whole[pair]]
    return median(across) - median(within)


def _joined(nodes: Sequence[str], links: Iterable[Pair]) -> dict[str, set[str]]:
    """Of each node, which ones `links` join it to: one set for all of them."""
    part = {node: {node} for node in nodes}
    for a, b in links:
        if part[a] is not part[b]:
            part[a] |= part[b]
            part.update(dict.fromkeys(part[b], part[a]))
    return part


def _distinct(sets: Iterable[set[str]]) -> list[set[str]]:
    return list({id(one): one for one in sets}.values())


def _within(parts: Sequence[Sequence[str]], links: Mapping[Pair, float]) -> dict[Pair, float]:
    """Without links between parts."""
    part = {node: number for number, own in enumerate(parts) for node in own}
    return {(a, b): x for (a, b), x in links.items() if part.get(a) == part.get(b)}


def _without(links: Mapping[Pair, float], slow: Iterable[SlowNode]) -> dict[Pair, float]:
    nodes = {one.node for one in slow}
    return {pair: x for pair, x in links.items() if nodes.isdisjoint(pair)}


def _outliers(
    logs: Mapping[Pair, float], launches: Sequence[Mapping[Pair, float]], noise: float
) -> dict[Pair, float]:
    """What stands out above, in `logs`, the medians over `launches`, and time after time; and how
    many times the median it is. `noise` is the standard deviation of one of `logs`."""
    if len(logs) < 3:
        return {}
    import numpy as np

    middle = median(logs.values())
    off = np.abs(np.array(list(logs.values())) - middle)
    limit = least_above(deviation(off, 1), noise)
    far = {who: x - middle for who, x in logs.items() if x - middle > limit}
    seen: Counter[Pair] = Counter()
    beyond: Counter[Pair] = Counter()
    for launch in filter(None, launches):  # of one nothing may be left
        centre = median(launch.values())
        seen.update(launch.keys())
        beyond.update(who for who, x in launch.items() if x - centre > limit)
    often, all_seen = beyond.total(), seen.total()
    return {
        who: math.exp(x)
        for who, x in far.items()
        if len(logs)
        * tail(seen[who], beyond[who], (often - beyond[who] + 1) / (all_seen - seen[who] + 1))
        < CHANCE
    }


def _times(metric: str, value: float, middle: float) -> float:
    return value / middle if METRICS[metric].better is Better.LOWER else middle / value


def _natural(name: str) -> tuple[str, int, str, str]:
    """n2 before n10, of any length."""
    head = name.rstrip("0123456789")
    number = name[len(head) :].lstrip("0")
    return head, len(number), number, name


def between_all(asked: Wish, hosts: Sequence[str]) -> Wish:
    """The wish for one rank on each of `hosts` and the benchmark that pairs them. Raises
    UsageError for a single host, and for a wish that has benchmarks or layouts of its own."""
    if len(hosts) < 2:
        raise UsageError(
            f"--pairs needs two nodes or more, and there is {hosts[0]} alone",
            mend="run it inside an allocation, or name nodes with --hosts",
        )
    if asked.benchmark or asked.layout or asked.axes:
        raise UsageError("--pairs chooses benchmark and layout: one rank on each node")
    name = BENCHMARK.partition(":")[2]
    return replace(asked, benchmark=(name,), layout=(f"{len(hosts)}x1",), name=asked.name or name)
