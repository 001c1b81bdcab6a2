"""The output of mpigraft-bench: JSON lines of rank 0, amid all else that reached stdout.

A record starts with `{"mpigraft":` anywhere in a line, because a library that prints without a
newline is glued to the record after it. `begin`, any number of `value`, a `node` for each node,
`end` make one run; a run without its `end` was cut short.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from mpigraft.bench.suites.base import (
    MAX_SIZE,
    Parsed,
    Place,
    Reading,
    Span,
    damaged,
    foreign,
    invalid,
)
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    METRICS,
    Benchmark,
    Better,
    CpuUse,
    Finding,
    Measurement,
    Metric,
    metric_key,
)
from mpigraft.core.process import clean
from mpigraft.core.text import printable

MARK = b'{"mpigraft":'
BENCHMARK = re.compile(r"[a-z][a-z0-9_]*(,[a-z_]+=[A-Za-z0-9._-]+)*")
BUFFERS = ("host", "cuda", "rocm")
OTHER_KINDS = ("phase", "idle")  # records of mpigraft-probe, which `prove` reads
SCATTERED = 5.0  # times its best sample: a value beyond that was disturbed
SHOWN = 5  # sizes that a finding lists


def parse(
    data: bytes, *, source: str, suite: str = "native", metrics: Mapping[str, Metric] | None = None
) -> Parsed:
    """Parse one run of mpigraft-bench, or of another of our programs with the same output.

    A missing end, an empty output and several worlds are findings of level error. Raises
    UsageError for a record that is not JSON, lacks a key, has a number that is not finite, or
    names a metric that is not in `metrics` (model.METRICS): such a line was not written by this
    program.
    """
    return _parse(data, _NativeState(source, suite=suite, metrics=metrics))


def salvage(data: bytes, *, source: str) -> Parsed:
    """Return the same of an output that has been kept: a record that `parse` refuses is left out,
    and reported by its line."""
    return _parse(data, _NativeState(source, whole=False))


def _parse(data: bytes, state: _NativeState) -> Parsed:
    source = state.source
    lines = data.split(b"\n")
    for index, line in enumerate(lines):
        _line(line, Place(source, index + 1), state, last=index == len(lines) - 1)
    return Parsed(
        tuple(state.measurements),
        (
            *state.worries(),
            *damaged(state.damage, source),
            *invalid(state.measurements, source),
            *scattered(state.measurements),
            *foreign(state.noise, source),
        ),
        state.header,
        tuple(state.nodes),
        state.runs(),
    )


@dataclass(slots=True)
class _NativeState(Reading):
    nodes: list[CpuUse] = field(default_factory=list)
    begins: int = 0
    counted: list[int] = field(default_factory=list)  # how many values each end counted
    whole: bool = True  # a damaged record is refused, not left out
    suite: str = "native"
    metrics: Mapping[str, Metric] | None = None  # by the name that a record gives; None: METRICS

    def spoil(self, place: Place, error: UsageError) -> None:
        """Leave a record out. Raises the error where records are refused."""
        if self.whole:
            raise error
        self.damage.append((error.message, place.line))

    def worries(self) -> tuple[Finding, ...]:
        """Report begins, ends and values whose numbers do not match."""
        if not self.begins and not self.measurements:
            return (Finding.of("no-output", source=self.source),)
        findings: list[Finding] = []
        if self.begins > 1:
            findings.append(Finding.of("several-worlds", source=self.source, count=self.begins))
        if not self.begins:
            findings.append(self.cut_short("the start of the output is missing"))
        if len(self.counted) < max(1, self.begins):
            findings.append(self.cut_short("the output has no end record"))
        elif sum(self.counted) != len(self.measurements):
            arrived, due = len(self.measurements), sum(self.counted)
            lost = Finding.of("values-lost", source=self.source, arrived=arrived, due=due)
            findings.append(lost)
        return tuple(findings)

    def runs(self) -> tuple[Span, ...]:
        """Return each run that was begun, if one of them has no end."""
        starts = [span.start for span in self.spans]
        for span, stop in zip(self.spans, [*starts[1:], len(self.measurements)], strict=False):
            span.stop = stop
        return tuple(self.spans) if len(self.counted) < self.begins else ()

    def cut_short(self, problem: str) -> Finding:
        return Finding.of("cut-short", place=self.source, problem=problem)


def _line(line: bytes, place: Place, state: _NativeState, *, last: bool) -> None:
    start = line.find(MARK)
    while start >= 0:
        if line[:start].strip():
            state.noise.append((place.line, clean(line[:start])))
        # ASCII only, by the program's own rule: other bytes become characters JSON refuses
        text = line[start:].decode("ascii", "replace")
        try:
            record, stop = json.JSONDecoder(parse_constant=_no_constant).raw_decode(text)
        except (ValueError, RecursionError) as error:
            if last:
                return  # torn in the middle of a record: the missing end says so
            problem, stop = str(error), text.find(MARK.decode(), 1)
            stop = stop if stop > 0 else len(text)
        else:
            problem = ""
        try:
            if problem:
                place.refuse(f"a damaged record ({problem}): {printable(text[:80])}")
            _record(record, place, state)
        except UsageError as error:
            state.spoil(place, error)
        line = line[start + stop :]
        start = line.find(MARK)
    if line.strip():
        state.noise.append((place.line, clean(line)))


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a finite number")


def _record(record: dict[str, Any], place: Place, state: _NativeState) -> None:
    kind = record["mpigraft"]
    if kind == "begin":
        state.begins += 1
        state.spans.append(Span(place, len(state.measurements), died=True))
        for key, value in _header(record, place).items():
            state.header.setdefault(key, value)
    elif kind == "value":
        state.measurements.append(_measurement(record, place, state))
    elif kind == "node":
        state.nodes.append(_node(record, place, state))
    elif kind == "end":
        state.counted.append(_whole(record, "values", place))
        if state.spans:
            state.spans[-1].died = False
    elif kind not in OTHER_KINDS:
        place.refuse(f"a record of the unknown kind {str(kind)[:40]!r}", _UPDATE)


def _header(record: dict[str, Any], place: Place) -> dict[str, str]:
    header = {}
    if "ranks" in record:
        header["ranks"] = str(_whole(record, "ranks", place))
    if "buffers" in record:
        header["buffers"] = str(record["buffers"])
        if header["buffers"] not in BUFFERS:
            place.refuse(f"buffers are {header['buffers'][:40]!r}, not one of {', '.join(BUFFERS)}")
    if isinstance(library := record.get("library"), str):
        header["library"] = clean(library.encode("utf-8", "backslashreplace"))
    return header


def _node(record: dict[str, Any], place: Place, state: _NativeState) -> CpuUse:
    return CpuUse(
        host=clean(str(record.get("host")).encode("utf-8", "backslashreplace")),
        ranks=_whole(record, "ranks", place),
        cpus=_whole(record, "cpus", place),
        wall_s=_finite(record.get("wall_s"), "wall_s", place),
        busy_s=_finite(record.get("busy_s"), "busy_s", place),
        steal_s=_finite(record.get("steal_s"), "steal_s", place),
        own_s=_finite(record.get("own_s"), "own_s", place),
        others=_finite(record.get("others"), "others", place),
        switches=_whole(record, "switches", place),
        benchmark=_named(record, place, state).key if "benchmark" in record else "",
    )


_UPDATE = "use the mpigraft-bench that belongs to this version of mpigraft"


def _named(record: dict[str, Any], place: Place, state: _NativeState) -> Benchmark:
    name = record.get("benchmark")
    if not isinstance(name, str) or not BENCHMARK.fullmatch(name):
        place.refuse(f"the benchmark is {str(name)[:40]!r}, not a name")
    return Benchmark.parse(f"{state.suite}:{name}")


def _measurement(record: dict[str, Any], place: Place, state: _NativeState) -> Measurement:
    metrics = METRICS if state.metrics is None else state.metrics
    metric = metrics.get(str(record.get("metric")))
    if metric is None or record.get("unit") != metric.unit:
        unit = f"{str(record.get('metric'))[:40]!r} in {str(record.get('unit'))[:20]!r}"
        known = ", ".join(f"{m.name} in {m.unit}" for m in metrics.values())
        place.refuse(f"the metric is {unit}; known are {known}", _UPDATE)
    valid = record.get("valid")
    if valid is not None and not isinstance(valid, bool):
        place.refuse(f"valid is {str(valid)[:40]!r}, not true, false or null")
    samples = record.get("samples") or []
    if not isinstance(samples, list):
        place.refuse("samples is not a list")
    return Measurement(
        benchmark=_named(record, place, state),
        metric=metric.name
        if metrics is METRICS
        else metric_key(metric.name, metric.unit, metric.better),
        size=_whole(record, "size", place),
        value=_finite(record.get("value"), "value", place),
        mean=_maybe(record, "mean", place),
        minimum=_maybe(record, "min", place),
        maximum=_maybe(record, "max", place),
        p90=_maybe(record, "p90", place),
        p99=_maybe(record, "p99", place),
        iterations=_whole(record, "iterations", place) if "iterations" in record else None,
        valid=valid,
        samples=tuple(_finite(s, "a sample", place) for s in samples),
        resolution=_maybe(record, "resolution", place),
    )


def scattered(measurements: Iterable[Measurement]) -> tuple[Finding, ...]:
    """Return one finding for each benchmark with values that are more than SCATTERED times worse
    than their own best sample, shares in percent aside. Its text is the same for every launch, so
    that launches can be counted; `evidence` has the sizes."""
    sizes: dict[str, list[str]] = {}
    for m in measurements:
        metric = METRICS[m.metric]
        if metric.unit == "%":
            continue  # how much is hidden may be nothing in one sample and half in the next
        lower = metric.better is Better.LOWER
        best = m.minimum if lower else m.maximum
        slow, quick = (m.value, best) if lower else (best, m.value)
        if slow is not None and quick is not None and slow > SCATTERED * quick:
            line = f"{m.size} B: {m.value:g} {metric.unit}, the best sample {best:g}"
            sizes.setdefault(m.benchmark.key, []).append(line)
    return tuple(
        Finding.of("samples-scattered", key=key, scattered=SCATTERED, evidence=tuple(lines[:SHOWN]))
        for key, lines in sizes.items()
    )


def _finite(value: Any, what: str, place: Place) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        place.refuse(f"{what} is {str(value)[:40]!r}, not a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number < 0:
        place.refuse(f"{what} is {number}, not a finite number of 0 or more")
    return number


def _maybe(record: dict[str, Any], key: str, place: Place) -> float | None:
    value = record.get(key)
    return None if value is None else _finite(value, key, place)


def _whole(record: dict[str, Any], key: str, place: Place) -> int:
    value = record.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
        place.refuse(f"{key} is {str(value)[:40]!r}, not a whole number of 0 or more")
    return value
