"""A campaign in which only the baseline has values: nothing is compared, but it was measured."""

from __future__ import annotations

from dataclasses import dataclass

from mpigraft.analysis import labels_of, values_by_size
from mpigraft.core.model import METRICS
from mpigraft.report.contents import ReportData
from mpigraft.report.curves import median_interval
from mpigraft.report.wording.counts import Subject


@dataclass(frozen=True, slots=True)
class Point:
    """One size: its value, and the 95 % interval of that from 6 rounds on."""

    size: int  # bytes; 0 where the benchmark has none
    value: float
    interval: tuple[float, float] | None
    launches: int


@dataclass(frozen=True, slots=True)
class BaselineSeries(Subject):
    """The baseline's own values on one benchmark, layout and kind of buffers."""

    figures: tuple[Point, ...]


def baseline_series(data: ReportData) -> tuple[BaselineSeries, ...]:
    """Give the baseline's values where nothing was held against them; empty where something was."""
    if data.comparison.groups:
        return ()
    labels = labels_of(data.configurations, data.values)
    return tuple(
        BaselineSeries(
            **key._asdict(),
            unit=METRICS[key.metric].unit,
            better=METRICS[key.metric].better,
            figures=tuple(
                Point(size, one.value, median_interval(one.rounds), len(one.launches))
                for size, one in values.items()
            ),
        )
        for key, name, values in values_by_size(data.values, data.allocations, labels)
        if labels[name] == data.comparison.baseline
    )
