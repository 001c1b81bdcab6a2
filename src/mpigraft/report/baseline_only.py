"""A campaign in which only the baseline has values: nothing is compared, but it was measured."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from statistics import median

from mpigraft.core.model import METRICS, layout_order
from mpigraft.report.contents import ReportData
from mpigraft.report.curves import median_interval
from mpigraft.report.findings import labels
from mpigraft.report.wording.counts import Subject


@dataclass(frozen=True, slots=True)
class Point:
    """One size: the median over launches, and its 95 % interval from 6 launches on."""

    size: int  # bytes; 0 where the benchmark has none
    value: float
    interval: tuple[float, float] | None
    launches: int


@dataclass(frozen=True, slots=True)
class BaselineSeries(Subject):
    """The baseline's own values on one benchmark, layout and kind of buffers."""

    figures: tuple[Point, ...]


def baseline_series(data: ReportData) -> tuple[BaselineSeries, ...]:
    """The baseline's values where nothing was held against them; empty where something was."""
    if data.comparison.groups:
        return ()
    names = labels(data)
    series: dict[tuple[str, str, str, str], dict[int, list[float]]] = {}
    for row in data.values:
        if names.get(row.configuration, row.configuration) != data.comparison.baseline:
            continue
        if row.metric in METRICS:
            place = (row.benchmark, row.metric, row.layout, row.buffers)
            series.setdefault(place, defaultdict(list))[row.size].append(row.value)
    return tuple(
        BaselineSeries(
            benchmark,
            metric,
            METRICS[metric].unit,
            METRICS[metric].better,
            layout,
            buffers,
            tuple(
                Point(size, median(values), median_interval(values), len(values))
                for size, values in sorted(sizes.items())
            ),
        )
        for (benchmark, metric, layout, buffers), sizes in sorted(
            series.items(), key=lambda item: (*item[0][:2], layout_order(item[0][2]), item[0][3])
        )
    )
