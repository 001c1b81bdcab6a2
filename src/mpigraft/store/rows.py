"""Rows of a store's file as records of the model."""

from __future__ import annotations

import sqlite3
from typing import TypeVar

from mpigraft.core.model import Benchmark, EvidenceRecord, Measurement
from mpigraft.core.serialize import plain, revive
from mpigraft.evidence import revive_evidence
from mpigraft.store import file

T = TypeVar("T")


def record_of(kind: type[T], row: sqlite3.Row) -> T:
    """Make a row a record of the model; what the model nests is JSON in its column."""
    values = dict(row)
    for column in ("findings", "artefacts", "hosts", "conditions"):
        if values.get(column) is not None:
            values[column] = file.parse_json(values[column])
    record: T = revive(kind, values)
    return record


def evidence_of(row: sqlite3.Row) -> EvidenceRecord:
    places = (row["campaign"], row["configuration"], row["layout"])
    evidence = revive_evidence(file.parse_json(row["evidence"]))
    return EvidenceRecord(*places, evidence, row["allocation"])


def measurement_of(row: sqlite3.Row) -> Measurement:
    values = dict(row)
    values["samples"] = file.unpack(values.pop("data"))
    values["valid"] = None if values["valid"] is None else bool(values["valid"])
    values["benchmark"] = plain(Benchmark.parse(values["benchmark"]))
    measurement: Measurement = revive(Measurement, values)
    return measurement
