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
from mpigraft.core.text import printable, printable_document
from mpigraft.store import bounds, file
from mpigraft.store.evidence_columns import revive_evidence

T = TypeVar("T")
DAMAGE = (ValueError, TypeError, KeyError, RecursionError)  # of a text that was JSON
NESTED = ("findings", "artefacts", "hosts", "conditions")  # JSON that the model nests
OBJECTS = ("plan", "machine", "provenance", "wish")  # JSON that is read by those who ask
SCRIPT = "script"  # several lines
MESSAGE = ("message", "why", "fix")  # of a finding, which may quote an output
JOB = re.compile(r"(?!-)[\w.:@+\[\]-]*")  # goes to the scheduler's commands, and is no option


def record_of(kind: type[T], row: sqlite3.Row) -> T:
    """Make a row a record of the model. Names are one line, without commands to a terminal."""
    values = dict(row)
    for column, value in values.items():
        if column in NESTED:
            values[column] = (
                None if value is None else printable_document(bounds.parse_json(value), MESSAGE)
            )
        elif column in OBJECTS:
            if not isinstance(bounds.parse_json(value), dict):
                raise ValueError(f"its {column} is no JSON object")
        elif column != SCRIPT:
            values[column] = printable_document(value)
    asked = ("campaign",) if kind is ConfigurationRecord else ("campaign", "id")  # by queries
    if strange := [c for c in asked if c in values and values[c] != row[c]]:
        raise ValueError(f"it has the {strange[0]} {row[strange[0]]!r}")
    if not JOB.fullmatch(values.get("job", "")):
        raise ValueError(f"it has the job {values['job']!r}")
    if "created" in values:
        datetime.fromisoformat(values["created"])
    record: T = revive(kind, values)
    return record


def evidence_of(row: sqlite3.Row) -> EvidenceRecord:
    campaign, configuration, layout, allocation = (
        printable_document(row[name])
        for name in ("campaign", "configuration", "layout", "allocation")
    )
    evidence = revive_evidence(printable_document(bounds.parse_json(row["evidence"]), MESSAGE))
    return EvidenceRecord(campaign, configuration, layout, evidence, allocation)


def values_of(rows: Iterable[tuple[Any, ...]], buffers: Mapping[str, str]) -> Iterator[ValueRow]:
    """Make rows values that may be compared; `buffers` by the key of a configuration. A hundred
    thousand rows are common, with a few names."""
    name = cache(printable)
    for key, layout, place, turn, replica, benchmark, metric, size, value, resolution in rows:
        yield ValueRow(
            configuration=name(key), layout=name(layout), allocation=name(place), round=turn,
            replica=replica, benchmark=name(benchmark), metric=name(metric), size=size,
            value=value, buffers=buffers.get(name(key), "host"), resolution=resolution,
        )  # fmt: skip


def measurements_of(rows: Iterable[sqlite3.Row]) -> tuple[Measurement, ...]:
    """Make rows of a launch its measurements. Raises ValueError for more samples than fit."""
    left, measurements = bounds.MOST_SAMPLES, []
    for row in rows:
        values = dict(row)
        values["samples"] = file.unpack(values.pop("data"), left)
        left -= 8 * len(values["samples"])
        values["valid"] = None if values["valid"] is None else bool(values["valid"])
        values["metric"] = printable_document(values["metric"])
        values["benchmark"] = plain(Benchmark.parse(printable_document(values["benchmark"])))
        measurements.append(revive(Measurement, values))
    return tuple(measurements)
