"""Rows of a store's file as records of the model."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cache
from typing import Any, TypeVar

from mpigraft.core.model import (
    Benchmark,
    ConfigurationRecord,
    EvidenceRecord,
    Measurement,
    ValueRow,
)
from mpigraft.core.serialize import plain, revive
from mpigraft.core.text import printable
from mpigraft.store import bounds, file
from mpigraft.store.evidence_columns import revive_evidence

T = TypeVar("T")
NESTED = ("findings", "artefacts", "hosts", "conditions")  # JSON that the model nests
OBJECTS = ("plan", "machine", "provenance", "wish")  # JSON that is read by those who ask
SCRIPT = "script"  # several lines
JOB = re.compile(r"(?!-)[\w.:@+\[\]-]*")  # goes to the scheduler's commands, and is no option


def record_of(kind: type[T], row: sqlite3.Row) -> T:
    """Make a row a record of the model. Names are one line, without commands to a terminal."""
    values = dict(row)
    for column, value in values.items():
        if column in NESTED:
            values[column] = None if value is None else _safe(bounds.parse_json(value))
        elif column in OBJECTS:
            if not isinstance(bounds.parse_json(value), dict):
                raise ValueError(f"its {column} is no JSON object")
        elif column != SCRIPT:
            values[column] = _safe(value)
    asked = ("campaign",) if kind is ConfigurationRecord else ("campaign", "id")  # by queries
    if strange := [c for c in asked if c in values and values[c] != row[c]]:
        raise ValueError(f"it has the {strange[0]} {row[strange[0]]!r}")
    if not JOB.fullmatch(values.get("job", "")):
        raise ValueError(f"it has the job {values['job']!r}")
    if "created" in values:
        datetime.fromisoformat(values["created"])
    record: T = revive(kind, values)
    return record


def _safe(value: Any, keep: str = "") -> Any:
    """Escape what a terminal obeys, and line breaks outside of messages."""
    match value:
        case str():
            return printable(value, keep)
        case list():
            return [_safe(item) for item in value]
        case dict():
            return {
                n: _safe(v, "\t\n" if n in ("message", "fix", "why") else "")
                for n, v in value.items()
            }
    return value


def evidence_of(row: sqlite3.Row) -> EvidenceRecord:
    campaign, configuration, layout, allocation = (
        _safe(row[name]) for name in ("campaign", "configuration", "layout", "allocation")
    )
    evidence = revive_evidence(_safe(bounds.parse_json(row["evidence"])))
    return EvidenceRecord(campaign, configuration, layout, evidence, allocation)


def values_of(rows: Iterable[tuple[Any, ...]], buffers: Mapping[str, str]) -> Iterator[ValueRow]:
    """Make rows values that may be compared; `buffers` by the key of a configuration. A hundred
    thousand rows are common, with a few names."""
    name = cache(printable)
    for key, layout, place, turn, replica, benchmark, metric, size, value, resolution in rows:
        yield ValueRow(
            name(key), name(layout), name(place), turn, replica, name(benchmark), name(metric),
            size, value, buffers.get(name(key), "host"), resolution,
        )  # fmt: skip


def measurements_of(rows: Iterable[sqlite3.Row]) -> tuple[Measurement, ...]:
    """Make rows of a launch its measurements. Raises ValueError for more samples than fit."""
    left, measurements = bounds.MOST_SAMPLES, []
    for row in rows:
        values = dict(row)
        values["samples"] = file.unpack(values.pop("data"), left)
        left -= 8 * len(values["samples"])
        values["valid"] = None if values["valid"] is None else bool(values["valid"])
        values["metric"] = _safe(values["metric"])
        values["benchmark"] = plain(Benchmark.parse(_safe(values["benchmark"])))
        measurements.append(revive(Measurement, values))
    return tuple(measurements)
