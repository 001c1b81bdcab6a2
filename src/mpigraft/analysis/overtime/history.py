"""The campaigns of a machine as lines of results over time, with the changes in them.

A line is one configuration without its versions (`openmpi/ofi-cxi`) at one benchmark, metric,
layout and kind of buffers. Its points are campaigns; the software of a point is what its
configuration's id and provenance say.
"""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from mpigraft.analysis.between_campaigns.curve_levels import curve_levels
from mpigraft.analysis.overtime.chains import name_chains
from mpigraft.analysis.overtime.changes import MACHINE, FactChange, list_changes, what_changed
from mpigraft.analysis.overtime.matching import labels_with_values
from mpigraft.analysis.overtime.segments import MIN_CAMPAIGNS, steps
from mpigraft.core.model import METRICS, Better, CurveLevel, Measured, Origin, SeriesKey
from mpigraft.core.numbers import from_log
from mpigraft.core.serialize import parse_object

DIGITS = re.compile(r"\d+")


class LineKey(NamedTuple):
    """What points of a line share."""

    machine: str
    series: SeriesKey
    configuration: str  # without versions


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One campaign on a line."""

    campaign: str
    name: str
    created: str
    configuration: str  # id, with versions
    level: float  # logarithm of the geometric mean over the sizes
    error: float  # of it, by the launches
    rounds: int

    @property
    def value(self) -> float:
        """Return its level in the metric's unit."""
        return from_log(self.level)


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of a line's level."""

    index: int  # of the first point with the new level
    ratio: float  # new over old
    p: float
    slower: bool
    what: tuple[str, ...]  # changed between that campaign and the one before it


@dataclass(frozen=True, slots=True)
class HistoryLine:
    key: LineKey
    unit: str
    better: Better
    sizes: tuple[int, ...]  # that all points have
    left_out: tuple[int, ...]  # that some points have, or other configurations
    points: tuple[HistoryPoint, ...]
    shifts: tuple[Shift, ...]

    @property
    def judged(self) -> bool:
        """Whether it has as many campaigns as a change of level needs."""
        return len(self.points) >= MIN_CAMPAIGNS


def machine_name(side: Measured) -> str:
    """`nid, AMD EPYC 7763, 128 cores`: the hosts without their numbers, and the CPU. Campaigns on
    other nodes of one cluster belong together. Of an import, what the import called it."""
    hosts = {host for a in side.allocations for host in (a.hosts or (a.host,)) if host}
    if side.campaign.origin is Origin.IMPORT:  # a name that a person gave: archer2
        names = sorted(hosts)
    else:
        names = sorted({DIGITS.sub("", host.partition(".")[0]) for host in hosts})
    cpus = set()
    for allocation in side.allocations:
        cpu = parse_object(allocation.machine).get("cpu") or {}
        if cpu.get("model"):
            cpus.add(f"{cpu['model']}, {cpu.get('cores', '?')} cores")
    return "; ".join([", ".join(names) or "machine not recorded", *sorted(cpus)])


def sort_history(campaigns: Iterable[Measured]) -> tuple[HistoryLine, ...]:
    """Sort campaigns into lines, each in the order of their dates, and find the changes."""
    ordered = sorted(campaigns, key=lambda side: (side.campaign.created, side.campaign.id))
    by_id = {side.campaign.id: side for side in ordered}
    curves: dict[LineKey, list[tuple[HistoryPoint, CurveLevel]]] = defaultdict(list)
    for machine, sides in _by_machine(ordered).items():
        labels = [labels_with_values(side) for side in sides]
        names = name_chains(labels)
        for number, side in enumerate(sides):
            for curve in curve_levels(side):
                own = names[number, curve.configuration]
                label, campaign = labels[number][curve.configuration], side.campaign
                point = HistoryPoint(campaign.id, campaign.name, campaign.created, label, 0,
                                     curve.error, curve.rounds)  # fmt: skip
                curves[LineKey(machine, curve.key, own)].append((point, curve))
    every: dict[tuple[object, ...], set[int]] = defaultdict(set)
    for key, rows in curves.items():
        every[key[:-1]].update(*(curve.logs for _, curve in rows))
    order = sorted(curves, key=lambda key: (key.machine, key.series.order, key.configuration))
    parts = [(key, part) for key in order for part in _parts(curves[key])]
    counts = Counter(key.machine for key, _ in parts)
    what = _cached(by_id)
    return tuple(
        _line(key, part, every[key[:-1]], counts[key.machine], what) for key, part in parts
    )


Row = tuple[HistoryPoint, CurveLevel]


def _parts(rows: Sequence[Row]) -> Iterator[list[Row]]:
    """Cut a line where no size is in all of its points: a mean over other sizes is another one."""
    rest = list(rows)
    while rest:
        counts = Counter(size for _, curve in rest for size in curve.logs)
        (most, _), *_ = counts.most_common(1)
        yield [row for row in rest if most in row[1].logs]
        rest = [row for row in rest if most not in row[1].logs]


def _by_machine(campaigns: Iterable[Measured]) -> dict[str, list[Measured]]:
    machines: dict[str, list[Measured]] = defaultdict(list)
    for side in campaigns:
        machines[machine_name(side)].append(side)
    return machines


What = Callable[[HistoryPoint, HistoryPoint], tuple[str, ...]]


def _cached(campaigns: dict[str, Measured]) -> What:
    """Return what changed between two points: of the machine, and of their configuration."""
    known: dict[tuple[str, str], tuple[FactChange, ...]] = {}

    def what(old: HistoryPoint, new: HistoryPoint) -> tuple[str, ...]:
        place = (old.campaign, new.campaign)
        if place not in known:
            known[place] = list_changes(campaigns[place[0]], campaigns[place[1]])
        scopes = (MACHINE, new.configuration)
        return what_changed(row for row in known[place] if row.scope in scopes)

    return what


def _line(
    key: LineKey, rows: Sequence[Row], every: set[int], lines: int, what: What
) -> HistoryLine:
    sizes = sorted(set.intersection(*(set(curve.logs) for _, curve in rows)))
    points = []
    for point, curve in rows:
        level = sum(curve.logs[size] for size in sizes) / len(sizes)
        points.append(replace(point, level=level))
    metric = METRICS[key.series.metric]
    shifts = []
    for step in steps([p.level for p in points], [p.error for p in points], lines):
        slower = (step.shift > 0) is (metric.better is Better.LOWER)
        changed = what(points[step.place - 1], points[step.place])
        shifts.append(Shift(step.place, math.exp(step.shift), step.p, slower, changed))
    left_out = tuple(sorted(every.difference(sizes)))
    return HistoryLine(
        key, metric.unit, metric.better, tuple(sizes), left_out, tuple(points), tuple(shifts)
    )
