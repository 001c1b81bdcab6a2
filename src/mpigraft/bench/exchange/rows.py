"""A campaign of a store as rows, and rows as the records that they were made of."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar

from mpigraft.bench.exchange.columns import MARK, VERSION, Row, refuse, row_digest
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    METRICS,
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    ConfigurationRecord,
    EvidenceRecord,
    LaunchRecord,
    Measurement,
    layout_order,
)
from mpigraft.core.serialize import digest, plain, revive
from mpigraft.core.text import printable
from mpigraft.store import Store, flatten_evidence, revive_evidence

T = TypeVar("T")
MAX_SIZE = 2**63 - 1  # the largest integer that the store can keep
FIGURES = ("mean", "minimum", "maximum", "p90", "p99", "resolution")
Kept = LaunchRecord | ConfigurationRecord | AllocationRecord | EvidenceRecord | CampaignRecord


def rows_of(store: Store, campaign: CampaignRecord) -> Iterator[Row]:
    """Yield the rows of a campaign: launches as they started, values as they were measured. What
    has no value has a row without one."""
    configurations = {c.key: c for c in store.configurations(campaign.id)}
    allocations = {a.id: a for a in store.allocations(campaign.id)}
    evidence = sorted(
        store.evidence(campaign.id, every=True),
        key=lambda e: (e.configuration, e.layout, e.allocation),
    )
    pending: list[Kept] = [campaign, *configurations.values(), *allocations.values(), *evidence]
    for launch, measurements in store.measured(campaign.id):
        configuration = configurations.get(launch.configuration)
        allocation = allocations.get(launch.allocation)
        belongs = [one for one in pending if _belongs(one, launch)]
        pending = [one for one in pending if one not in belongs]
        head = _head(campaign, configuration, allocation, launch)
        rows = [{**head, **(_cells(m) if m else {})} for m in measurements or (None,)]
        yield from _sealed(rows, _records([*belongs, launch]))
    if pending:
        yield from _sealed([_head(campaign, None, None, None)], _records(pending))


def _sealed(rows: list[Row], records: dict[str, Any]) -> Iterator[Row]:
    """Yield the rows; the first has the records, a digest of these and one of each row."""
    seals = {"digest": digest(plain(records)), "digests": [row_digest(row) for row in rows]}
    for index, row in enumerate(rows):
        yield {**row, "records": {**records, **seals} if index == 0 else None}


def _belongs(record: Kept, launch: LaunchRecord) -> bool:
    match record:
        case CampaignRecord():
            return True
        case ConfigurationRecord():
            return record.key == launch.configuration
        case AllocationRecord():
            return record.id == launch.allocation
        case EvidenceRecord():
            return (record.configuration, record.layout) == (launch.configuration, launch.layout)
    return False


def _records(records: Iterable[Kept]) -> dict[str, Any]:
    """Return the records as one document: `launch` and `campaign` once, the others in lists."""
    document: dict[str, Any] = {}
    for record in records:
        match record:
            case CampaignRecord():
                document["campaign"] = plain(record)
            case LaunchRecord():
                document["launch"] = plain(record)
            case ConfigurationRecord():
                document.setdefault("configurations", []).append(plain(record))
            case AllocationRecord():
                document.setdefault("allocations", []).append(plain(record))
            case EvidenceRecord():
                flat = flatten_evidence(record.evidence)
                place = (record.campaign, record.configuration, record.layout, record.allocation)
                document.setdefault("evidence", []).append([*place, flat])
    return document


def _head(
    campaign: CampaignRecord,
    configuration: ConfigurationRecord | None,
    allocation: AllocationRecord | None,
    launch: LaunchRecord | None,
) -> Row:
    row: Row = {
        MARK: VERSION, "campaign": campaign.name, "campaign_id": campaign.id,
        "origin": campaign.origin.value, "tool": campaign.tool,
    }  # fmt: skip
    if configuration:
        row |= {
            "configuration": configuration.id, "configuration_key": configuration.key,
            "baseline": configuration.key == campaign.baseline, "buffers": configuration.buffers,
        }  # fmt: skip
    if allocation:
        row |= {"allocation": allocation.id, "job": allocation.job, "hosts": allocation.nodes}
    if launch:
        no_layout, nodes, ranks, *_ = layout_order(launch.layout)
        row |= {} if no_layout else {"nodes": nodes, "ranks_per_node": ranks}
        row |= {
            "layout": launch.layout, "launch": launch.id, "round": launch.round + 1,
            "replica": launch.replica, "started": launch.started, "state": launch.state.value,
        }  # fmt: skip
    return row


def _cells(m: Measurement) -> Row:
    metric = METRICS.get(m.metric)
    return {
        "benchmark": m.benchmark.key, "metric": m.metric,
        "unit": metric and metric.unit, "better": metric and metric.better.value,
        "size_bytes": m.size, "value": m.value, "mean": m.mean, "minimum": m.minimum,
        "maximum": m.maximum, "p90": m.p90, "p99": m.p99, "iterations": m.iterations,
        "valid": m.valid, "resolution": m.resolution, "samples": list(m.samples) or None,
    }  # fmt: skip


class Seals:
    """The digests of a launch, with which its rows are compared as they are read."""

    def __init__(self, document: Any) -> None:
        self.known = isinstance(document, dict) and "digests" in document
        self.rows: Counter[str] = Counter()
        self.whole = True
        if self.known:
            body = {k: v for k, v in document.items() if k not in ("digest", "digests")}
            self.whole = digest(body) == document.get("digest")
            self.rows.update(str(one) for one in document["digests"])

    def break_at(self, row: Row) -> str:
        """Describe changes in a row; empty: nothing, or an export of before has no
        digests."""
        if not self.known:
            return ""
        if not self.whole:
            return "its records were changed"
        key = row_digest(row)
        self.rows[key] -= 1
        return "a cell of it was changed, or it is there twice" if self.rows[key] < 0 else ""


@dataclass(slots=True)
class ExportedLaunch:
    """One launch of an exported campaign, and what was met before it."""

    launch: LaunchRecord | None
    measurements: list[Measurement] = field(default_factory=list)
    heads: list[Kept] = field(default_factory=list)  # the campaign first


def launches_of(
    rows: Iterable[Row], source: str, *, edited: bool = False
) -> Iterator[ExportedLaunch]:
    """Put rows together again, a launch at a time.

    Raises UsageError for a row that is not what was exported; with `edited` only for one that
    cannot be read.
    """
    current: ExportedLaunch | None = None
    seals = Seals(None)
    for number, row in enumerate(rows, 1):
        try:
            heads, launch = _revived(row.get("records"))
            if launch or heads:
                if current:
                    yield current
                current, seals = ExportedLaunch(launch, [], heads), Seals(row["records"])
            owner = current.launch if current else None
            if row.get("benchmark") is None:
                _refuse_edited("" if edited else seals.break_at(row), source, number)
                continue
            if current is None or owner is None or owner.id != row.get("launch"):
                raise ValueError(
                    "the first row of its launch, which has its records, is not before it"
                )
            current.measurements.append(_measurement(row))
            _refuse_edited("" if edited else seals.break_at(row), source, number)
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError) as error:
            raise refuse(source, number, _reason(error)) from error
    if current:
        yield current


def _refuse_edited(problem: str, source: str, number: int) -> None:
    if problem:
        raise UsageError.of("export-edited", place=f"{source}: row {number}", problem=problem)


def _reason(error: Exception) -> str:
    text = f"no {error}" if isinstance(error, KeyError) else str(error)
    return printable(text)[:200]


def _revived(document: Any) -> tuple[list[Kept], LaunchRecord | None]:
    if document is None:
        return [], None
    if not isinstance(document, dict):
        raise ValueError("its records are no object")
    _check_text(document)
    heads: list[Kept] = []
    if "campaign" in document:
        heads.append(_record(CampaignRecord, document["campaign"]))
    heads += [_record(ConfigurationRecord, one) for one in document.get("configurations", ())]
    heads += [_record(AllocationRecord, one) for one in document.get("allocations", ())]
    heads += [_evidence(*one) for one in document.get("evidence", ())]
    launch = _record(LaunchRecord, document["launch"]) if "launch" in document else None
    if launch and not (0 <= launch.round <= MAX_SIZE and math.isfinite(launch.wall_s)):
        raise ValueError("a launch with an impossible round or time")
    return heads, launch


def _record(kind: type[T], value: Any) -> T:
    record: T = revive(kind, value)
    return record


def _evidence(
    campaign: Any, configuration: Any, layout: Any, allocation: Any, flat: Any
) -> EvidenceRecord:
    if not all(isinstance(text, str) for text in (campaign, configuration, layout, allocation)):
        raise ValueError("evidence of no place")
    return EvidenceRecord(campaign, configuration, layout, revive_evidence(flat), allocation)


def _check_text(value: Any) -> None:
    """Raise ValueError for text that could move a cursor: what mpigraft stores has none."""
    if isinstance(value, str):
        if not value.replace("\n", "").replace("\t", "").isprintable():
            raise ValueError("its records hold control characters")
    elif isinstance(value, dict):
        for key, inner in value.items():
            _check_text(key)
            _check_text(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_text(inner)


def _measurement(row: Row) -> Measurement:
    key = _text(row, "benchmark")
    benchmark = Benchmark.parse(key)
    if benchmark.key != key or not key.isprintable() or len(key) > 300:
        raise ValueError(f"its benchmark is {key[:60]!r}")
    metric = _text(row, "metric")
    if metric not in METRICS:
        raise ValueError(f"its metric is {metric[:60]!r}")
    size = _whole(row, "size_bytes")
    value = _figure(row, "value")
    if value is None or size is None:
        raise ValueError("it has no value or no size")
    valid = row.get("valid")
    if not (valid is None or isinstance(valid, bool)):
        raise ValueError("valid is neither true nor false")
    samples = row.get("samples") or []
    if not isinstance(samples, list):
        raise ValueError("its samples are no list")
    return Measurement(
        benchmark, metric, size, value, iterations=_whole(row, "iterations"), valid=valid,
        samples=tuple(_finite(sample, "a sample") for sample in samples),
        **{name: _figure(row, name) for name in FIGURES},
    )  # fmt: skip


def _text(row: Row, name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise ValueError(f"{name} is no text")
    return value


def _whole(row: Row, name: str) -> int | None:
    value = row.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SIZE:
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a whole number of 0 or more")
    return value


def _figure(row: Row, name: str) -> float | None:
    value = row.get(name)
    return None if value is None else _finite(value, name)


def _finite(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name} is {str(value)[:40]!r}, not a number")
    if not math.isfinite(value) or value < 0:
        raise ValueError(f"{name} is {value}, not a finite number of 0 or more")
    return float(value)
