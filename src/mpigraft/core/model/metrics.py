"""Metrics: what a figure measures, in which unit, and whether more of it is better."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum


class Better(StrEnum):
    LOWER = "lower"
    HIGHER = "higher"


@dataclass(frozen=True, slots=True)
class Metric:
    name: str
    unit: str
    better: Better


class MetricTable(Mapping[str, Metric]):
    """Metrics by key: the rows, and every key that says its own unit and direction, as
    `performance [ns/day] higher`. The figure of merit of an application is one of those, so it is
    stored, compared and reported like the others."""

    def __init__(self, rows: Iterable[Metric]) -> None:
        self._rows = {row.name: row for row in rows}
        self._read: dict[str, Metric | None] = {}

    def __getitem__(self, key: str) -> Metric:
        metric = self._rows.get(key) or self._spelled(key)
        if metric is None:
            raise KeyError(key)
        return metric

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def _spelled(self, key: str) -> Metric | None:
        if key not in self._read:
            match = SPELLED.fullmatch(key)
            self._read[key] = match and Metric(match[1], match[2], Better(match[3]))
        return self._read[key]


SPELLED = re.compile(r"([a-z][a-z0-9_]{0,39}) \[([^\[\]\x00-\x1f\x7f]{0,24})\] (lower|higher)")


def metric_key(name: str, unit: str, better: Better) -> str:
    """Return the key of a metric that is no row of METRICS. Raises ValueError for a name or a
    unit that no key can have."""
    key = f"{name} [{unit}] {better}"
    if not SPELLED.fullmatch(key):
        raise ValueError(key)
    return key


METRICS = MetricTable(
    (
        Metric("latency", "us", Better.LOWER),
        Metric("bandwidth", "MB/s", Better.HIGHER),
        Metric("message_rate", "messages/s", Better.HIGHER),
        Metric("init_time", "ms", Better.LOWER),
        Metric("launch_time", "ms", Better.LOWER),
        Metric("memory", "MiB", Better.LOWER),
        Metric("overlap", "%", Better.HIGHER),
    )
)


def metric_name(key: str) -> str:
    """Return a metric's readable name, without the unit and direction that its key may have."""
    metric = METRICS.get(key)
    return metric.name if metric else key
