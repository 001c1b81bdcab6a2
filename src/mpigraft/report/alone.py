"""A campaign in which only the baseline has values: nothing is compared, but it was measured."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from mpigraft.model import METRICS, Better
from mpigraft.report import ReportData
from mpigraft.report.curves import median_interval
from mpigraft.report.trouble import labels


@dataclass(frozen=True, slots=True)
class Figure:
    """One size: the median over launches, and its 95 % interval from 6 launches on."""

    size: int  # bytes; 0 where the benchmark has none
    value: float
    interval: tuple[float, float] | None
    launches: int


@dataclass(frozen=True, slots=True)
class Alone:
    """The baseline's own values on one benchmark, layout and kind of buffers."""

    benchmark: str
    metric: str
    unit: str
    better: Better
    layout: str
    buffers: str
    figures: tuple[Figure, ...]

    @property
    def place(self) -> str:
        return self.layout if self.buffers == "host" else f"{self.layout}, {self.buffers} buffers"


def alone(data: ReportData) -> tuple[Alone, ...]:
    """The baseline's values where nothing was held against them; empty where something was."""
    if data.comparison.groups:
        return ()
    names = labels(data)
    found: dict[tuple[str, str, str, str], dict[int, list[float]]] = {}
    for row in data.values:
        if names.get(row.configuration, row.configuration) != data.comparison.baseline:
            continue
        if row.metric in METRICS:
            place = (row.benchmark, row.metric, row.layout, row.buffers)
            found.setdefault(place, defaultdict(list))[row.size].append(row.value)
    return tuple(
        Alone(
            benchmark,
            metric,
            METRICS[metric].unit,
            METRICS[metric].better,
            layout,
            buffers,
            tuple(
                Figure(size, median(values), median_interval(values), len(values))
                for size, values in sorted(sizes.items())
            ),
        )
        for (benchmark, metric, layout, buffers), sizes in sorted(found.items())
    )
