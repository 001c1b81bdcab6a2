"""Growth: what starting, memory and collectives cost against the number of ranks.

Layouts of one campaign that differ in their number of nodes alone, or of ranks per node alone,
make a series. `laws` fits each, and a prediction says what its law makes of more ranks.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mpigraft.errors import UsageError
from mpigraft.laws import REACH, Law, choose, resampled
from mpigraft.layouts import parse
from mpigraft.model import METRICS, Layout, ValueRow
from mpigraft.natives import STARTUP

LEAST_POINTS = 4  # numbers of ranks under a law of three parameters
LEAST_LAUNCHES = 2  # at each number of ranks on the average: one says nothing of how they vary
COLLECTIVES = re.compile(r"native:(barrier|bcast|reduce|allreduce|gather|allgather|alltoall)v?\b")


@dataclass(frozen=True, slots=True)
class Point:
    """All launches of one layout. `value` is their median, in the metric's unit."""

    layout: str
    ranks: int
    value: float
    lowest: float
    highest: float
    launches: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was not measured. `low` and `high` enclose 95 % of the resampled laws' values."""

    ranks: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Growth:
    """One configuration's series of one metric. Without a law, `refused` says why."""

    configuration: str  # id
    benchmark: str
    metric: str
    unit: str
    size: int
    series: str  # for a person: "1 rank per node", "on 1 node"
    points: tuple[Point, ...]
    law: Law | None = None
    why: str = ""  # this law and none of the others
    predictions: tuple[Prediction, ...] = ()
    refused: str = ""
    left_out: tuple[tuple[str, str], ...] = ()  # (layout, why its values count for nothing)


Launches = dict[Layout, list[float]]


def growth(
    values: Iterable[ValueRow],
    labels: Mapping[str, str],
    crowded: Mapping[tuple[str, str], str],
    seed: int = 0,
) -> tuple[Growth, ...]:
    """Every series of a campaign, fitted or with the reason why not.

    `labels` has ids by configuration key; `crowded` says of (configuration key, layout key) why
    its ranks did not have a core each, or that it is not known. One number of ranks is no series.
    """
    found: dict[tuple[str, str, str, int], Launches] = {}
    for row in _wanted(list(values)):
        layout = _layout(row.layout)
        if layout is None or row.metric not in METRICS or not 0 < row.value < math.inf:
            continue
        what = (row.configuration, row.benchmark, row.metric, row.size)
        found.setdefault(what, defaultdict(list))[layout].append(row.value)
    series = [
        _series(what, labels.get(what[0], what[0]), name, launches, crowded, seed)
        for what, every in found.items()
        for name, launches in _cut(every)
    ]
    return tuple(sorted(series, key=lambda g: (g.benchmark, g.size, g.series, g.configuration)))


def predicted(growth: Growth, ranks: int, boots: Sequence[Law] = ()) -> Prediction:
    """What the law says of `ranks`, with `boots`, the resampled laws, for the interval. Raises
    UsageError for more than REACH times what was measured, or where there is no law."""
    most = max((point.ranks for point in growth.points), default=0)
    if growth.law is None or not 1 <= ranks <= REACH * most:
        raise UsageError(
            f"{growth.benchmark} at {ranks} ranks cannot be predicted",
            why=growth.refused or f"{most} ranks were measured, and laws break further on",
            mend=f"measure with {math.ceil(ranks / REACH)} ranks or more",
        )
    said = sorted(law.at(ranks) for law in boots) or [growth.law.at(ranks)]
    low, high = said[int(0.025 * (len(said) - 1))], said[math.ceil(0.975 * (len(said) - 1))]
    value = growth.law.at(ranks)
    return Prediction(ranks, value, min(low, value), max(high, value))


# ------------------------------------------------------------------ series


def _wanted(values: Sequence[ValueRow]) -> list[ValueRow]:
    """Start-up costs, and of each collective its smallest and its largest message."""
    ends: dict[str, tuple[int, int]] = {}
    for row in values:
        low, high = ends.get(row.benchmark, (row.size, row.size))
        ends[row.benchmark] = (min(low, row.size), max(high, row.size))
    costs = {f"native:{name}" for name in STARTUP}
    return [
        row
        for row in values
        if row.benchmark in costs
        or (COLLECTIVES.match(row.benchmark) and row.size in ends[row.benchmark])
    ]


def _layout(key: str) -> Layout | None:
    """None for a name that an import made up."""
    try:
        return parse(key, 1 << 30)
    except UsageError:
        return None


def _cut(every: Launches) -> list[tuple[str, Launches]]:
    """Series of layouts that differ in one thing: the longest first, none within another."""
    together: dict[tuple[str, Layout], Launches] = defaultdict(dict)
    for layout, launches in every.items():
        together["nodes", replace(layout, nodes=1)][layout] = launches
        together["ranks", replace(layout, ranks_per_node=1)][layout] = launches
    found: list[tuple[str, Launches]] = []
    for (grows, layout), part in sorted(together.items(), key=lambda item: -len(item[1])):
        if len(part) > 1 and not any(part.keys() <= other.keys() for _, other in found):
            each, nodes = layout.ranks_per_node, layout.nodes
            by_node = f"{each} {'rank' if each == 1 else 'ranks'} per node"
            on = f"on {nodes} {'node' if nodes == 1 else 'nodes'}"
            rest = replace(layout, nodes=1, ranks_per_node=1).key.removeprefix("1x1")
            other = f" ({rest})" if rest else ""  # x7, :l3cache: what sets it apart from others
            found.append((f"{by_node if grows == 'nodes' else on}{other}", part))
    return found


def _series(
    what: tuple[str, str, str, int],
    label: str,
    name: str,
    every: Launches,
    crowded: Mapping[tuple[str, str], str],
    seed: int,
) -> Growth:
    key, benchmark, metric, size = what
    ordered = sorted(every.items(), key=lambda item: item[0].ranks)
    out = tuple((x.key, crowded[key, x.key]) for x, _ in ordered if (key, x.key) in crowded)
    good = [(x.ranks, values) for x, values in ordered if (key, x.key) not in crowded]
    points = tuple(_point(x, values) for x, values in ordered if (key, x.key) not in crowded)
    unit = METRICS[metric].unit
    plain = Growth(label, benchmark, metric, unit, size, name, points, left_out=out)
    if len(points) < LEAST_POINTS:
        told = "; ".join(f"{reason}: {', '.join(who)}" for reason, who in _by_reason(out))
        reason = f"a law takes {LEAST_POINTS} numbers of ranks, and there are {len(points)}"
        return replace(plain, refused=reason + (f" ({told})" if told else ""))
    if sum(point.launches for point in points) < LEAST_LAUNCHES * len(points):
        return replace(plain, refused="most numbers of ranks were launched once, and a law takes "
                       f"{LEAST_LAUNCHES} launches of each on the average")  # fmt: skip
    law, why = choose(good)
    fitted = replace(plain, law=law, why=why)
    boots = resampled(good, law, seed)
    most = points[-1].ranks
    told_for = [2 * most, REACH * most]
    return replace(fitted, predictions=tuple(predicted(fitted, p, boots) for p in told_for))


def _by_reason(out: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for layout, reason in out:
        found.setdefault(reason, []).append(layout)
    return list(found.items())


def _point(layout: Layout, values: Sequence[float]) -> Point:
    import numpy as np

    middle = float(np.median(values))
    return Point(layout.key, layout.ranks, middle, min(values), max(values), len(values))
