"""Find the slow nodes and the slow links of an allocation.

A node is slow if the median over its links, those from it or those to it, is an outlier among the
links between the other nodes; a link, if it is one among the links of the nodes that are not slow.
An outlier is higher by more than five deviations, of links or of launches, whichever is greater,
and by more than a fraction LEAST. Medians, because one bad node spoils a mean for all;
five rather than the 3.5 of Iglewicz and Hoaglin (How to Detect and Handle Outliers, 1993), because
512 nodes have 130 816 links; deviations of launches, because three nodes have too few links to
estimate those of links; LEAST, because both are next to nothing on equal nodes. `outliers` has the
arithmetic.

It must be slow again and again as well: any link is slow at times, and among many some are so
twice. The number of launches in which it was an outlier is compared with that of the others, by
the binomial distribution; the chance times the number of tests must be below CHANCE. So one launch
names nothing, and three of four nodes do.

If nodes fall into parts, with fast links within each and slow ones between them, the cause is what
joins the parts: switches and their cables. Then the parts are reported, and slow nodes and links
are searched within them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median
from typing import NamedTuple

from mpigraft.analysis.pairs.outliers import (
    CHANCE,
    LEAST,
    Way,
    deviation,
    launch_noise,
    least_above,
    slow_nodes,
    tail,
)
from mpigraft.core.arrays import Floats, np
from mpigraft.core.model import METRICS, Benchmark, Better, Finding, ValueRow, layout_order
from mpigraft.core.numbers import from_log

PAIRS_BENCHMARK = "native:pairs"
SIX = 6  # nodes: their links are hardly ever on the right sides by chance
BOTH = {True, False}  # links within parts, and between them
LEAST_LAUNCHES = 3  # to part nodes
SHOWN = 8  # nodes and links in findings

Pair = tuple[str, str]  # from, to; a latency belongs to both ways
Launch = tuple[str, int, int]  # allocation, round, replica


class SlowNode(NamedTuple):
    """`times` as slow as the median link between the other nodes."""

    node: str
    times: float
    way: Way


@dataclass(frozen=True, slots=True)
class PairMatrix:
    """One metric of one configuration between each two nodes, each link at its value."""

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
        """Compute how many times slower than the middle each link is; below 1: faster."""
        return {pair: _times(self.metric, value, self.middle) for pair, value in self.links}


def is_link(row: ValueRow) -> bool:
    """Test whether a value is of one link, so that configurations are not compared by it."""
    return row.benchmark.startswith(f"{PAIRS_BENCHMARK},")


def pair_matrices(links: Iterable[ValueRow], labels: Mapping[str, str]) -> tuple[PairMatrix, ...]:
    """Make the matrices of a campaign's links; `labels` has ids by configuration key."""
    matrices: dict[tuple[str, str, str, int], dict[Launch, dict[Pair, float]]] = {}
    for row in links:
        ends = dict(Benchmark.parse(row.benchmark).options)
        pair = (ends.get("from", ""), ends.get("to", ""))
        if row.metric not in METRICS or "" in pair or not 0 < row.value < math.inf:
            continue
        key = (row.configuration, row.layout, row.metric, row.size)
        launch = (row.allocation, row.round, row.replica)
        matrices.setdefault(key, defaultdict(dict))[launch].setdefault(pair, row.value)
    return tuple(
        _matrix(labels.get(key, key), layout, metric, size, values)
        for (key, layout, metric, size), values in sorted(
            matrices.items(), key=lambda item: (item[0][0], layout_order(item[0][1]), *item[0][2:])
        )
    )


def pair_findings(matrix: PairMatrix) -> tuple[Finding, ...]:
    """Warn of slow nodes and links, the worst by name, and of parts. If there are only two nodes,
    note that either may be slow."""
    if len(matrix.nodes) == 2:
        return (Finding.of("two-nodes", nodes=" and ".join(matrix.nodes)),)
    head = f"{matrix.configuration}: {matrix.metric}"
    inside = " within its part" if matrix.parts else ""
    middle = "within its part" if matrix.parts else f"of {matrix.middle:.3g} {matrix.unit}"
    compared = f"times as slow as the median {middle}"
    nodes = [
        Finding.of(
            "slow-node",
            head=head,
            node=slow.node,
            times=slow.times,
            direction=direction_phrase(slow.way),
            inside=inside,
        )
        for slow in matrix.slow_nodes[:SHOWN]
    ]
    links = [
        Finding.of("slow-link", head=head, a=a, b=b, times=times, compared=compared)
        for (a, b), times in matrix.slow_links[:SHOWN]
    ]  # fmt: skip
    more = max(len(matrix.slow_nodes) - SHOWN, 0) + max(len(matrix.slow_links) - SHOWN, 0)
    rest = Finding.of("slow-link-more", head=head, more=more)
    return (
        *nodes,
        *links,
        *((rest,) if more else ()),
        *((_parts_finding(matrix, head),) if matrix.parts else ()),
    )


def direction_phrase(way: Way) -> str:
    """Write ` in sending`, ` in sending and in receiving`; nothing for a value of both ways."""
    if way is Way.EITHER:
        return ""
    return " in sending and in receiving" if way is Way.BOTH else f" in {way}"


def _parts_finding(matrix: PairMatrix, head: str) -> Finding:
    names = [", ".join(part[:SHOWN]) + (" ..." if part[SHOWN:] else "") for part in matrix.parts]
    return Finding.of(
        "slow-between",
        head=head,
        groups=" and ".join(f"({name})" for name in names[:SHOWN]),
        between=matrix.between,
    )


def _matrix(
    label: str, layout: str, metric: str, size: int, launches: Mapping[Launch, dict[Pair, float]]
) -> PairMatrix:
    medians = _values(launches)
    links = medians
    if METRICS[metric].better is Better.LOWER:  # a round trip belongs to both
        links = {**{(b, a): value for (a, b), value in medians.items()}, **medians}
    nodes = tuple(sorted({node for pair in links for node in pair}, key=_natural))
    logs = [_logs(metric, launch) for launch in (medians, *launches.values())]
    parts, between = _parts(nodes, logs)
    logs = [_within(parts, values) for values in logs]
    slow = _slow_nodes(nodes, logs[1:], symmetric=links is not medians)
    good, *good_launches = [_without(values, slow) for values in logs]
    slow_links = _outliers(good, good_launches, launch_noise(_array(nodes, good_launches)))
    return PairMatrix(
        configuration=label, layout=layout, metric=metric, unit=METRICS[metric].unit, size=size,
        nodes=nodes, links=tuple(sorted(links.items())),
        middle=median(_without(links, slow).values()), launches=len(launches), slow_nodes=slow,
        slow_links=tuple(sorted(slow_links.items(), key=lambda item: (-item[1], item[0]))),
        parts=parts, between=between,
    )  # fmt: skip


def _values(launches: Mapping[Launch, dict[Pair, float]]) -> dict[Pair, float]:
    """Compute each link's value over all rounds, as `analysis.values` does."""
    rounds: dict[Pair, dict[tuple[str, int], list[float]]] = defaultdict(lambda: defaultdict(list))
    for (allocation, number, _), launch in launches.items():
        for pair, value in launch.items():
            rounds[pair][allocation, number].append(math.log(value))
    return {
        pair: from_log(median(fmean(logs) for logs in own.values())) for pair, own in rounds.items()
    }


def _slow_nodes(
    nodes: Sequence[str], launches: Sequence[Mapping[Pair, float]], *, symmetric: bool
) -> tuple[SlowNode, ...]:
    if symmetric:
        launches = [{(b, a): x for (a, b), x in links.items()} | dict(links) for links in launches]
    rows = slow_nodes(_array(nodes, launches), symmetric=symmetric)
    return tuple(SlowNode(nodes[index], times, way) for index, times, way in rows)


def _array(nodes: Sequence[str], launches: Sequence[Mapping[Pair, float]]) -> Floats:
    """Make an array (launches, from, to), NaN where there is no value."""
    index_of = {node: index for index, node in enumerate(nodes)}
    logs: Floats = np.full((len(launches), len(nodes), len(nodes)), np.nan)
    for launch, links in enumerate(launches):
        for (a, b), x in links.items():
            logs[launch, index_of[a], index_of[b]] = x
    return logs


def _logs(metric: str, links: Mapping[Pair, float]) -> dict[Pair, float]:
    """Compute how slow each link is, as a logarithm."""
    return {pair: math.log(_times(metric, value, 1.0)) for pair, value in links.items()}


def _parts(
    nodes: Sequence[str], logs: Sequence[Mapping[Pair, float]]
) -> tuple[tuple[tuple[str, ...], ...], float]:
    """Part the nodes: parts of two nodes or more each, and how many times slower the links between
    them are. By the medians, the first of `logs`, no link may be on the wrong side; in a launch,
    where any link may be slow, half of them may. Chance does that too with fewer than SIX nodes,
    so the gap that parts them must be wider than either side. No parts of fewer than
    LEAST_LAUNCHES."""
    if len(nodes) < 4:
        return (), 1.0
    links, *launches = logs
    ordered = sorted(links.values())
    gap, border = max((b - a, k) for k, (a, b) in enumerate(pairwise(ordered), 1))
    sides = max(ordered[border - 1] - ordered[0], ordered[-1] - ordered[border])
    if gap <= max(math.log(1 + LEAST), sides if len(nodes) < SIX else 0.0):
        return (), 1.0
    part = _joined(nodes, [pair for pair, x in links.items() if x < ordered[border]])
    within = {(a, b): part[a] is part[b] for a, b in links}
    parts = tuple(tuple(n for n in nodes if n in own) for own in _distinct(part.values()))
    clean = all(inside == (links[pair] < ordered[border]) for pair, inside in within.items())
    if min(map(len, parts)) < 2 or not clean:
        return (), 1.0
    differences = [
        _between(launch, within) for launch in launches if {within[pair] for pair in launch} == BOTH
    ]
    if len(differences) < LEAST_LAUNCHES or min(differences) <= math.log(1 + LEAST):
        return (), 1.0
    return parts, math.exp(_between(links, within))


def _between(links: Mapping[Pair, float], within: Mapping[Pair, bool]) -> float:
    """Measure how much slower the median link between parts is than that within them."""
    inner = [x for pair, x in links.items() if within[pair]]
    outer = [x for pair, x in links.items() if not within[pair]]
    return median(outer) - median(inner)


def _joined(nodes: Sequence[str], links: Iterable[Pair]) -> dict[str, set[str]]:
    """Find which nodes `links` join each node to: one set for all of them."""
    part = {node: {node} for node in nodes}
    for a, b in links:
        if part[a] is not part[b]:
            part[a] |= part[b]
            part.update(dict.fromkeys(part[b], part[a]))
    return part


def _distinct(sets: Iterable[set[str]]) -> list[set[str]]:
    return list({id(members): members for members in sets}.values())


def _within(parts: Sequence[Sequence[str]], links: Mapping[Pair, float]) -> dict[Pair, float]:
    """Leave out the links between parts."""
    part = {node: number for number, own in enumerate(parts) for node in own}
    return {(a, b): x for (a, b), x in links.items() if part.get(a) == part.get(b)}


def _without(links: Mapping[Pair, float], slow: Iterable[SlowNode]) -> dict[Pair, float]:
    nodes = {slow_node.node for slow_node in slow}
    return {pair: x for pair, x in links.items() if nodes.isdisjoint(pair)}


def _outliers(
    logs: Mapping[Pair, float], launches: Sequence[Mapping[Pair, float]], noise: float
) -> dict[Pair, float]:
    """Find the outliers among the links in `logs`, the medians over `launches`, and launch after
    launch; and how many times the median each is. `noise` is the deviation of one of `logs`."""
    if len(logs) < 3:
        return {}
    middle = median(logs.values())
    off = np.abs(np.array(list(logs.values())) - middle)
    limit = least_above(deviation(off, 1), noise)
    far = {pair: x - middle for pair, x in logs.items() if x - middle > limit}
    measured: Counter[Pair] = Counter()
    beyond: Counter[Pair] = Counter()
    for launch in filter(None, launches):  # slow nodes may have all links of one
        centre = median(launch.values())
        measured.update(launch.keys())
        beyond.update(pair for pair, x in launch.items() if x - centre > limit)
    all_beyond, all_measured = beyond.total(), measured.total()
    return {
        pair: math.exp(x)
        for pair, x in far.items()
        if len(logs)
        * tail(
            measured[pair],
            beyond[pair],
            (all_beyond - beyond[pair] + 1) / (all_measured - measured[pair] + 1),
        )
        < CHANCE
    }


def _times(metric: str, value: float, middle: float) -> float:
    return value / middle if METRICS[metric].better is Better.LOWER else middle / value


def _natural(name: str) -> tuple[str, int, str, str]:
    """Make a sort key that puts n2 before n10, of any length."""
    head = name.rstrip("0123456789")
    number = name[len(head) :].lstrip("0")
    return head, len(number), number, name
