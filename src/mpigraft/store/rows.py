"""Rows of a store's file as records of the model."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TypeVar

from mpigraft.core.model import Benchmark, EvidenceRecord, Measurement
from mpigraft.core.serialize import plain, revive
from mpigraft.evidence import revive_evidence
from mpigraft.store import bounds, file

T = TypeVar("T")


def record_of(kind: type[T], row: sqlite3.Row) -> T:
    """Make a row a record of the model; what the model nests is JSON in its column."""
    values = dict(row)
    for column in ("findings", "artefacts", "hosts", "conditions"):
        if values.get(column) is not None:
            values[column] = bounds.parse_json(values[column])
    for column in ("plan", "machine", "provenance", "wish"):  # read as objects by those who ask
        if column in values and not isinstance(bounds.parse_json(values[column]), dict):
            raise ValueError(f"its {column} is no JSON object")
    record: T = revive(kind, values)
    return record


def evidence_of(row: sqlite3.Row) -> EvidenceRecord:
    places = (row["campaign"], row["configuration"], row["layout"])
    evidence = revive_evidence(bounds.parse_json(row["evidence"]))
    return EvidenceRecord(*places, evidence, row["allocation"])


def measurements_of(rows: Iterable[sqlite3.Row]) -> tuple[Measurement, ...]:
    """Make rows of a launch its measurements. Raises ValueError for more samples than fit."""
    left, measurements = bounds.MOST_SAMPLES, []
    for row in rows:
        values = dict(row)
        values["samples"] = file.unpack(values.pop("data"), left)
        left -= 8 * len(values["samples"])
        values["valid"] = None if values["valid"] is None else bool(values["valid"])
        values["benchmark"] = plain(Benchmark.parse(values["benchmark"]))
        measurements.append(revive(Measurement, values))
    return tuple(measurements)
