"""Node by node: which nodes and which links of an allocation are slow.

A node is slow when the median over its links, those from it or those to it, stands out of those
of all nodes, a link when it stands out of the links between the other nodes: by more than MADS
times the median absolute deviation (times 1.4826, which makes it a standard deviation of normal
values) and by more than a fraction LEAST. Medians, because one bad node spoils a mean for all; the
MAD as Iglewicz and Hoaglin have it (How to Detect and Handle Outliers, 1993), with 5 in place of
their 3.5, since 512 nodes have 130 816 links; LEAST, because where all are alike the MAD is next
to nothing.

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
from statistics import median, median_low
from typing import TypeVar

from mpigraft.errors import UsageError
from mpigraft.model import METRICS, Benchmark, Better, Finding, Level, ValueRow
from mpigraft.wish import Wish

BENCHMARK = "native:pairs"
MADS = 5.0
NORMAL = 1.4826  # a normal distribution's deviation over its MAD
LEAST = 0.1  # slower than the median, a fraction
CHANCE = 0.01  # of a false name in a matrix where all are alike
SIX = 6  # nodes, whose links are hardly ever on the right sides by chance
BOTH = {True, False}  # links within parts, and between them
LEAST_LAUNCHES = 3  # that nodes fall into parts takes
SHOWN = 8  # nodes and links that findings name

T = TypeVar("T")
Pair = tuple[str, str]  # from, to; of a latency each both ways
Launch = tuple[str, int, int]  # allocation, round, replica


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
    middle: float  # the median over all links
    launches: int
    slow_nodes: tuple[tuple[str, float], ...] = ()  # times as slow as the median node, worst first
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
    """A warning for each slow node and link, the worst of them by name, and for parts."""
    who = f"{matrix.configuration}: {matrix.metric}"
    middle = "within its part" if matrix.parts else f"of {matrix.middle:.3g} {matrix.unit}"
    what = f"times as slow as the median {middle}"
    rest = "run it again without: --hosts names the others; then have it looked at"
    nodes = [
        Finding(Level.WARNING, "slow-node", f"{who}: {node} is {times:.2f} {what}",
                "every pair with it is slow, so it is the node and not a link", rest)
        for node, times in matrix.slow_nodes[:SHOWN]
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
    slow: dict[str, float] = {}
    links_out: dict[Pair, float] = {}
    parts: tuple[tuple[str, ...], ...] = ()
    between = 1.0
    if len(nodes) > 2:
        logs = [_logs(metric, launch) for launch in (once, *launches.values())]
        parts, between = _parts(nodes, logs)
        logs = [_within(parts, values) for values in logs]
        whole, *each = [_nodes(values, both=links is not once) for values in logs]
        slow = _outliers(whole, each)
        rest, *each_rest = [_without(values, slow) for values in logs]
        links_out = _outliers(rest, each_rest)
    return Matrix(
        label, layout, metric, METRICS[metric].unit, size, nodes,
        tuple(sorted(links.items())), median(links.values()), len(launches),
        tuple(sorted(slow.items(), key=lambda item: -item[1])),
        tuple(sorted(links_out.items(), key=lambda item: (-item[1], item[0]))), parts, between,
    )  # fmt: skip


def _logs(metric: str, links: Mapping[Pair, float]) -> dict[Pair, float]:
    """How slow each link is, as a logarithm."""
    return {pair: math.log(_times(metric, value, 1.0)) for pair, value in links.items()}


def _nodes(links: Mapping[Pair, float], *, both: bool) -> dict[str, float]:
    """Of each node the median of what it sends, or of what it receives: one of both may be slow
    alone. `both`: a link stands for the way back too. The lower of two middle ones, since with
    three nodes half the links of each good one are the slow one's. A node with one partner is left
    out: it is not told from their link."""
    sends, receives = defaultdict[str, list[float]](list), defaultdict[str, list[float]](list)
    for (a, b), x in links.items():
        sends[a].append(x)
        receives[b].append(x)
        if both:
            sends[b].append(x)
    ways = (sends,) if both else (sends, receives)
    return {
        node: max(median_low(way[node]) for way in ways if len(way.get(node, ())) > 1)
        for node in dict.fromkeys(node for way in ways for node in way if len(way[node]) > 1)
    }


def _parts(
    nodes: Sequence[str], logs: Sequence[Mapping[Pair, float]]
) -> tuple[tuple[tuple[str, ...], ...], float]:
    """Parts of two nodes or more each, and how many times slower it is between them. By the
    medians, `logs`' first, no link may be on the wrong side; in each launch, in which any link may
    be slow, half of them. Of fewer than SIX nodes chance does that too, so what parts them has to
    be wider than either side. None of fewer than LEAST_LAUNCHES."""
    links, *launches = logs
    ordered = sorted(links.values())
    gap, place = max(((b - a, k) for k, (a, b) in enumerate(pairwise(ordered), 1)), default=(0, 0))
    sides = max(ordered[place - 1] - ordered[0], ordered[-1] - ordered[place]) if place else 0.0
    wide = max(math.log(1 + LEAST), sides if len(nodes) < SIX else 0.0)
    if len(launches) < LEAST_LAUNCHES or gap <= wide:
        return (), 1.0
    part = _joined(nodes, [pair for pair, x in links.items() if x < ordered[place]])
    whole = {(a, b): part[a] is part[b] for a, b in links}
    parts = tuple(tuple(n for n in nodes if n in own) for own in _distinct(part.values()))
    clean = all(inside == (links[pair] < ordered[place]) for pair, inside in whole.items())
    if len(parts) < 2 or min(map(len, parts)) < 2 or not clean:
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


def _without(links: Mapping[Pair, float], nodes: Mapping[str, float]) -> dict[Pair, float]:
    return {(a, b): x for (a, b), x in links.items() if a not in nodes and b not in nodes}


def _outliers(logs: Mapping[T, float], launches: Sequence[Mapping[T, float]]) -> dict[T, float]:
    """What stands out above, in `logs`, the medians over `launches`, and time after time; and how
    many times the median it is."""
    if len(logs) < 3:
        return {}
    middle = median(logs.values())
    mad = median(abs(x - middle) for x in logs.values())
    limit = max(MADS * NORMAL * mad, math.log(1 + LEAST))
    far = {who: x - middle for who, x in logs.items() if x - middle > limit}
    seen: Counter[T] = Counter()
    beyond: Counter[T] = Counter()
    for launch in filter(None, launches) if far else ():  # of one nothing may be left
        centre = median(launch.values())
        seen.update(launch.keys())
        beyond.update(who for who, x in launch.items() if x - centre > limit)
    often, all_seen = beyond.total(), seen.total()
    return {
        who: math.exp(x)
        for who, x in far.items()
        if len(logs)
        * _tail(seen[who], beyond[who], (often - beyond[who] + 1) / (all_seen - seen[who] + 1))
        < CHANCE
    }


def _tail(times: int, least: int, chance: float) -> float:
    """The binomial distribution's chance of `least` or more in `times`."""
    p = min(chance, 1.0)
    return sum(math.comb(times, k) * p**k * (1 - p) ** (times - k) for k in range(least, times + 1))


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
