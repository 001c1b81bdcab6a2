"""Fit what starting, memory and collectives cost against the number of ranks.

Layouts of one campaign that differ only in their number of nodes, or only in ranks per node, make
a series. `laws` fits each, and a prediction applies its law to more ranks.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from mpigraft.analysis.rank_scaling.laws import LAW_REACH, Law, choose, resampled
from mpigraft.analysis.values import values_by_size
from mpigraft.core.errors import UsageError
from mpigraft.core.model import METRICS, AllocationRecord, Layout, Value, ValueRow, parse_layout
from mpigraft.native import STARTUP

LEAST_POINTS = 4  # numbers of ranks for a law of three parameters
LEAST_LAUNCHES = 2  # at each number of ranks on average: one does not show how they vary
COLLECTIVES = re.compile(r"native:(barrier|bcast|reduce|allreduce|gather|allgather|alltoall)v?\b")


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """All launches of one layout. `value` is that of every table, in the metric's unit."""

    layout: str
    ranks: int
    value: float
    lowest: float
    highest: float
    launches: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """A value that was not measured. `low` and `high` enclose 95 % of the resampled values."""

    ranks: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Growth:
    """One configuration's series of one metric. Without a law, `refused` has the reason."""

    configuration: str  # id
    benchmark: str
    metric: str
    unit: str
    size: int
    series: str  # as text: "1 rank per node", "on 1 node"
    points: tuple[ScalingPoint, ...]
    law: Law | None = None
    why: str = ""  # the law was preferred to the others
    predictions: tuple[Prediction, ...] = ()
    refused: str = ""
    left_out: tuple[tuple[str, str], ...] = ()  # (layout, why its values do not count)


Launches = dict[Layout, Value]


def fit_growth(
    values: Iterable[ValueRow],
    labels: Mapping[str, str],
    crowded: Mapping[tuple[str, str], str],
    seed: int = 0,
    allocations: Sequence[AllocationRecord] = (),
) -> tuple[Growth, ...]:
    """Fit every series of a campaign, or give the reason why not.

    `labels` has ids by configuration key; `crowded` says for (configuration key, layout key) why
    its ranks did not have a core each, or that it is unknown. One number of ranks is no series.
    """
    by_key: dict[tuple[str, str, str, int], Launches] = {}
    rows = _growing(list(values))
    names = {row.configuration: row.configuration for row in rows} | dict(labels)
    for place, configuration, sizes in values_by_size(rows, allocations, names):
        if layout := _layout(place.layout):
            for size, value in sizes.items():
                key = (configuration, place.benchmark, place.metric, size)
                by_key.setdefault(key, {})[layout] = value
    series = [
        _series(key, labels.get(key[0], key[0]), name, launches, crowded, seed)
        for key, layouts in by_key.items()
        for name, launches in _split(layouts)
    ]
    return tuple(sorted(series, key=_place))


def _place(growth: Growth) -> tuple[str, int, list[tuple[int, str]], str]:
    """Sort series by this: 2 ranks per node before 16."""
    words = [(int(word), "") if word.isdecimal() else (0, word) for word in growth.series.split()]
    return (growth.benchmark, growth.size, words, growth.configuration)


def predict(growth: Growth, ranks: int, boots: Sequence[Law] = ()) -> Prediction:
    """Apply the law to `ranks`, with `boots`, the resampled laws, for the interval. Raises
    UsageError for more than LAW_REACH times the measured ranks, or where there is no law."""
    most = max((point.ranks for point in growth.points), default=0)
    if growth.law is None or not 1 <= ranks <= LAW_REACH * most:
        raise UsageError.of(
            "scaling-unpredictable",
            benchmark=growth.benchmark,
            ranks=ranks,
            why=growth.refused or f"{most} ranks were measured, and laws fail far beyond them",
            enough=math.ceil(ranks / LAW_REACH),
        )
    values = sorted(law.at(ranks) for law in boots) or [growth.law.at(ranks)]
    last = len(values) - 1
    low, high = values[int(0.025 * last)], values[math.ceil(0.975 * last)]
    value = growth.law.at(ranks)
    return Prediction(ranks, value, min(low, value), max(high, value))


# ------------------------------------------------------------------ series


def _growing(values: Sequence[ValueRow]) -> list[ValueRow]:
    """Select start-up costs, and of each collective its smallest and its largest message."""
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
    """Parse a layout; None for a name that an import made up."""
    try:
        return parse_layout(key, 1 << 30)
    except UsageError:
        return None


def _split(every: Launches) -> list[tuple[str, Launches]]:
    """Make series of layouts that differ in one thing: the longest first, none within another."""
    groups: dict[tuple[str, Layout], Launches] = defaultdict(dict)
    for layout, launches in every.items():
        groups["nodes", replace(layout, nodes=1)][layout] = launches
        groups["ranks", replace(layout, ranks_per_node=1)][layout] = launches
    series: list[tuple[str, Launches]] = []
    for (grows, layout), part in sorted(groups.items(), key=lambda item: -len(item[1])):
        if len(part) > 1 and not any(part.keys() <= other.keys() for _, other in series):
            each, nodes = layout.ranks_per_node, layout.nodes
            by_node = f"{each} {'rank' if each == 1 else 'ranks'} per node"
            on = f"on {nodes} {'node' if nodes == 1 else 'nodes'}"
            options = replace(layout, nodes=1, ranks_per_node=1).key.removeprefix("1x1")
            suffix = f" ({options})" if options else ""  # x7, :l3cache
            series.append((f"{by_node if grows == 'nodes' else on}{suffix}", part))
    return series


def _series(
    series_key: tuple[str, str, str, int],
    label: str,
    name: str,
    every: Launches,
    crowded: Mapping[tuple[str, str], str],
    seed: int,
) -> Growth:
    key, benchmark, metric, size = series_key
    ordered = sorted(every.items(), key=lambda item: item[0].ranks)
    out = tuple((x.key, crowded[key, x.key]) for x, _ in ordered if (key, x.key) in crowded)
    good = [(x.ranks, one.launches) for x, one in ordered if (key, x.key) not in crowded]
    points = tuple(_point(x, one) for x, one in ordered if (key, x.key) not in crowded)
    unit = METRICS[metric].unit
    plain = Growth(label, benchmark, metric, unit, size, name, points, left_out=out)
    if len(points) < LEAST_POINTS:
        reasons = "; ".join(f"{why}: {', '.join(layouts)}" for why, layouts in _by_reason(out))
        refused = f"a law takes {LEAST_POINTS} numbers of ranks, and there are {len(points)}"
        return replace(plain, refused=refused + (f" ({reasons})" if reasons else ""))
    if sum(point.launches for point in points) < LEAST_LAUNCHES * len(points):
        return replace(plain, refused="most numbers of ranks were launched once, and a law takes "
                       f"{LEAST_LAUNCHES} launches of each on average")  # fmt: skip
    law, why = choose(good)
    fitted = replace(plain, law=law, why=why)
    boots = resampled(good, law, seed)
    most = points[-1].ranks
    ahead = (2 * most, LAW_REACH * most)
    return replace(fitted, predictions=tuple(predict(fitted, p, boots) for p in ahead))


def _by_reason(out: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    layouts: dict[str, list[str]] = {}
    for layout, reason in out:
        layouts.setdefault(reason, []).append(layout)
    return list(layouts.items())


def _point(layout: Layout, one: Value) -> ScalingPoint:
    low, high = min(one.launches), max(one.launches)
    return ScalingPoint(layout.key, layout.ranks, one.value, low, high, len(one.launches))
