"""What the curves of single configurations do that known issues explain.

Each value becomes the time of a message: a larger one takes longer, so a size that takes longer
than a larger one, or much longer than its double part of the one before, is a shape.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from mpigraft.core.model import METRICS, Benchmark, Better, Family, SeriesKey, Value, layout_order
from mpigraft.core.numbers import counted, number, size, size_span
from mpigraft.knowledge import (
    CurveFilter,
    CurveRatio,
    CurveShape,
    IssueMatch,
    KnownIssue,
    Reference,
    Shape,
    known_issues,
)

FEWEST = 5  # sizes of a curve whose shape means something
FEWEST_RATIOS = 2  # common sizes of two curves
FLAT = 1.3  # most by which a flat part varies
LEVEL = 1.02  # most by which a plateau varies
LAST = 4  # sizes of a plateau
HOST = "host"
NAMED = re.compile(f"({'|'.join(sorted(Family, key=len, reverse=True))})@")  # in a label


@dataclass(frozen=True, slots=True)
class MeasuredCurve:
    """One metric of one configuration over sizes: the value of each, and its best round. What
    disturbs a machine makes rounds slower, so a fault of an MPI is in the best ones too."""

    key: SeriesKey
    label: str  # of the configuration
    sizes: tuple[int, ...]
    values: tuple[float, ...]
    best: tuple[float, ...]

    @property
    def at_best(self) -> MeasuredCurve:
        return replace(self, values=self.best)

    @property
    def times(self) -> tuple[float, ...]:
        """Give what a message takes, in any unit."""
        if METRICS[self.key.metric].better is Better.LOWER:
            return self.values
        return tuple(s / v for s, v in zip(self.sizes, self.values, strict=True))

    def at(self, place: int) -> str:
        unit = METRICS[self.key.metric].unit
        return f"{number(self.values[place])} {unit} at {size(self.sizes[place])}"

    def over(self, first: int, last: int) -> str:
        """Write `11.7 to 12.4 us at 1 B to 128 B`."""
        part = self.values[first : last + 1]
        low, high = number(min(part)), number(max(part))
        values = low if low == high else f"{low} to {high}"
        span = size_span(self.sizes[first : last + 1])
        return f"{values} {METRICS[self.key.metric].unit} at {span}"

    @property
    def name(self) -> str:
        where = f" on {self.key.layout}" if self.key.layout[:1].isdigit() else ""
        return f"{self.label}, {self.key.benchmark}{where}"


def curve_of(key: SeriesKey, label: str, values: Mapping[int, Value]) -> MeasuredCurve:
    """Order the values of a curve; those without a size or of 0 are no part of it."""
    sizes = sorted(s for s, v in values.items() if s > 0 and v.value > 0 and min(v.rounds) > 0)
    pick = min if METRICS[key.metric].better is Better.LOWER else max
    best = (pick(values[size].rounds) for size in sizes)
    return MeasuredCurve(
        key, label, tuple(sizes), tuple(values[size].value for size in sizes), tuple(best)
    )


def issues_of_curves(curves: Sequence[MeasuredCurve], baseline: str = "") -> tuple[IssueMatch, ...]:
    """Find the issues that curves show by their shape, and by their ratio to those of the
    baseline's label, or to those with fewer ranks. A size is explained once: by the row that is
    for fewer benchmarks. Of several places in a curve the worst is described."""
    found: list[IssueMatch] = []
    rows = sorted(known_issues(), key=_is_general)
    for curve in curves:
        taken: set[int] = set()
        for issue in (row for row in rows if _may_affect(row, curve.label)):
            hits = [h for h in _hits(issue, curve, curves, baseline) if taken.isdisjoint(h.sizes)]
            taken.update(size for hit in hits for size in hit.sizes)
            if hits:
                worst, more = max(hits, key=lambda hit: hit.level), len(hits) - 1
                text = worst.message + (f"; likewise at {counted(more, 'other size')}" * bool(more))
                named = curve.key.benchmark.partition(",")[0]
                match = IssueMatch(issue, worst.kind, text, curve.name, worst.level, named)
                found.append(match)
    return tuple(found)


def _is_general(issue: KnownIssue) -> bool:
    shape = issue.detect.curve
    return shape is not None and not shape.benchmarks and not shape.metric


def _may_affect(issue: KnownIssue, label: str) -> bool:
    """Return whether an issue is known of the MPI that a label names, or it names none."""
    families = issue.detect.version.families if issue.detect.version else ()
    named = NAMED.search(label)
    return not (families and named) or Family(named[1]) in families


@dataclass(frozen=True, slots=True)
class Hit:
    """Where a curve has a shape."""

    kind: str
    message: str
    level: float
    sizes: tuple[int, ...]


def _hits(
    issue: KnownIssue, curve: MeasuredCurve, curves: Sequence[MeasuredCurve], baseline: str
) -> Iterator[Hit]:
    shape, ratio = issue.detect.curve, issue.detect.ratio
    if shape and len(curve.sizes) >= FEWEST and _concerns(shape, curve.key):
        lasting = {s for hit in SHAPES[shape.shape](curve.at_best, shape) for s in hit.sizes}
        hits = SHAPES[shape.shape](curve, shape)
        yield from (hit for hit in hits if not lasting.isdisjoint(hit.sizes))
    if ratio and _concerns(ratio, curve.key):
        for other in _references(ratio, curve, curves, baseline):
            hit = _ratio(ratio, curve, other)
            if hit and _ratio(ratio, curve.at_best, other.at_best):
                yield hit
                return


def _concerns(rule: CurveFilter, key: SeriesKey) -> bool:
    name = Benchmark.parse(key.benchmark).name.lower()
    unknown, nodes, *_ = layout_order(key.layout)
    return (
        (not rule.benchmarks or name in rule.benchmarks)
        and rule.metric in ("", key.metric)
        and key.metric in ("latency", "bandwidth")
        and not (rule.device and key.buffers == HOST)
        and (not rule.nodes or (not unknown and nodes == rule.nodes))
    )


def _drops(curve: MeasuredCurve, rule: CurveShape) -> Iterator[Hit]:
    """Find a curve that is flat from the first size on, and then takes less time."""
    times = curve.times
    for place in range(2, len(times) - 1):
        before, after = times[:place], times[place : place + 2]
        if max(before) > FLAT * min(before):
            return
        level = min(before) / max(after)
        if level >= rule.factor and curve.sizes[place] in rule.sizes:
            text = f"{curve.over(0, place - 1)}, and then {curve.at(place)}"
            yield Hit("curve", text, level, curve.sizes[:place])
            return


def _odd(curve: MeasuredCurve, rule: CurveShape) -> Iterator[Hit]:
    times = curve.times
    for place in range(1, len(times) - 1):
        level = times[place] / max(times[place - 1], times[place + 1])
        if level >= rule.factor and curve.sizes[place] in rule.sizes:
            text = f"{curve.at(place)}, between {curve.at(place - 1)} and {curve.at(place + 1)}"
            yield Hit("curve", text, level, (curve.sizes[place],))


def _humps(curve: MeasuredCurve, rule: CurveShape) -> Iterator[Hit]:
    """Find several sizes that take longer than the one before them and the one after them."""
    times = curve.times
    first = 1
    while first < len(times) - 2:
        last = first
        limit = rule.factor * times[first - 1]
        while last + 1 < len(times) and times[last + 1] >= limit:
            last += 1
        rises = times[first] >= limit
        if rises and first < last < len(times) - 1 and curve.sizes[first] in rule.sizes:
            part = times[first : last + 1]
            level = min(part) / max(times[first - 1], times[last + 1])
            if level >= rule.factor:
                ends = f"{curve.at(first - 1)} and {curve.at(last + 1)}"
                text = f"{curve.over(first, last)}, between {ends}"
                yield Hit("curve", text, level, curve.sizes[first : last + 1])
                first = last
        first += 1


def _cliffs(curve: MeasuredCurve, rule: CurveShape) -> Iterator[Hit]:
    """Find a size that takes much longer than its part of the one before; none after is faster."""
    times, sizes = curve.times, curve.sizes
    for place in range(1, len(times) - 2):
        expected = times[place - 1] * sizes[place] / sizes[place - 1]
        level = times[place] / expected
        lasts = min(times[place + 1 :]) * FLAT >= times[place]
        if level >= rule.factor and lasts and sizes[place] in rule.sizes:
            text = f"{curve.at(place)}, after {curve.at(place - 1)}"
            yield Hit("curve", text, level, (sizes[place],))


def _plateaus(curve: MeasuredCurve, rule: CurveShape) -> Iterator[Hit]:
    part = curve.values[-LAST:]
    if rule.rate and max(part) <= LEVEL * min(part) and all(v in rule.rate for v in part):
        first = len(curve.values) - LAST
        yield Hit("curve", curve.over(first, len(curve.values) - 1), 0.0, curve.sizes[-LAST:])


SHAPES: Mapping[Shape, Callable[[MeasuredCurve, CurveShape], Iterator[Hit]]] = {
    Shape.DROP: _drops,
    Shape.ODD: _odd,
    Shape.HUMP: _humps,
    Shape.CLIFF: _cliffs,
    Shape.PLATEAU: _plateaus,
}


def _references(
    rule: CurveRatio, curve: MeasuredCurve, curves: Iterable[MeasuredCurve], baseline: str
) -> Iterator[MeasuredCurve]:
    """Yield the curves that this one may be held against."""
    for other in curves:
        same = other.key._replace(layout="") == curve.key._replace(layout="")
        if not same or other is curve:
            continue
        if rule.to is Reference.BASELINE:
            alike = other.key.layout == curve.key.layout
            if baseline and other.label == baseline != curve.label and alike:
                yield other
        elif other.label == curve.label:
            own, fewer = layout_order(curve.key.layout), layout_order(other.key.layout)
            if not own[0] and not fewer[0] and own[1] == fewer[1] and own[2] > fewer[2]:
                yield other


def _ratio(rule: CurveRatio, curve: MeasuredCurve, other: MeasuredCurve) -> Hit | None:
    times = dict(zip(other.sizes, other.times, strict=True))
    ratios = {s: t / times[s] for s, t in zip(curve.sizes, curve.times, strict=True) if s in times}
    inside = {s: r for s, r in ratios.items() if s in rule.sizes}
    outside = [r for s, r in ratios.items() if s not in rule.sizes]
    if len(inside) < FEWEST_RATIOS or min(inside.values()) < rule.factor:
        return None
    if rule.elsewhere and (not outside or median(outside) > rule.elsewhere):
        return None
    level, worst = median(inside.values()), max(inside, key=lambda s: inside[s])
    place = curve.sizes.index(worst)
    against = other.at(other.sizes.index(worst))
    what = f"of {other.label}" if rule.to is Reference.BASELINE else f"on {other.key.layout}"
    span = size_span(sorted(inside))
    text = f"{number(level)} times as slow at {span}: {curve.at(place)}, {against} {what}"
    return Hit("ratio", text, level, tuple(inside))
