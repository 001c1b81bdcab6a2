"""One process's file of a store, written a transaction at a time.

What a launch prints may hold anything that the user's environment holds: every foreign text
goes through `env.redact` on its way to the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from mpigraft.core import env
from mpigraft.core.errors import MissingError
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    ConfigurationRecord,
    EvidenceRecord,
    JobRecord,
    LaunchRecord,
    Measurement,
    SubmissionRecord,
)
from mpigraft.core.serialize import canonical, plain
from mpigraft.core.write import make_folder
from mpigraft.store import file
from mpigraft.store.evidence_columns import flatten_evidence

VALUE_COLUMNS = [
    f.name for f in fields(Measurement) if f.name not in ("benchmark", "samples")
]  # fmt: skip


class Writer:
    """One file of a store, written by one process. Each method is one transaction: what it
    wrote is on disk when it returns; else it raised MissingError and nothing of it is. Within a
    `batch` all of it is one transaction."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{uuid4()}{file.SUFFIX}"
        self._used = False
        self._in_batch = False
        try:
            with file.translate_errors(folder):
                make_folder(folder)
                self._db = file.create(self.path)
        except MissingError:
            self._drop()
            raise

    def close(self) -> None:
        """Close the file, and remove it if nothing was written."""
        self._db.close()
        if not self._used:
            self._drop()

    @contextlib.contextmanager
    def batch(self) -> Iterator[None]:
        """Make one transaction of all that is written inside: on disk as a whole, or not at all.
        Raises MissingError."""
        before = self._used
        try:
            with self._transaction(wrote=False):
                self._in_batch = True
                try:
                    yield
                finally:
                    self._in_batch = False
        except BaseException:
            self._used = before
            raise

    def add_campaign(self, record: CampaignRecord) -> None:
        """Write it, in place of what this file has: it may get more rounds. One that is resumed or
        extended is written into a file of its own."""
        with self._transaction():
            self._insert("campaign", plain(record), "OR REPLACE")

    def add_allocation(self, record: AllocationRecord) -> None:
        """Its end, when it is known, takes the place of what was written at its begin."""
        machine = file.redacted_json(record.machine)
        row = {**plain(record), "machine": machine, "hosts": canonical(record.hosts)}
        with self._transaction():
            self._insert("allocation", row, "OR REPLACE")

    def add_submission(self, record: SubmissionRecord) -> None:
        with self._transaction():
            self._insert("submission", plain(record))

    def add_job(self, record: JobRecord) -> None:
        with self._transaction():
            self._insert("job", {**plain(record), "script": env.redact(record.script)})

    def add_configuration(self, record: ConfigurationRecord) -> None:
        provenance = file.redacted_json(record.provenance)
        row = {**plain(record), "provenance": provenance}
        with self._transaction():
            self._insert("configuration", row, "OR REPLACE")

    def add_evidence(self, record: EvidenceRecord) -> None:
        """Later evidence of the same configuration, layout and allocation takes its place."""
        row = {
            "campaign": record.campaign,
            "configuration": record.configuration,
            "layout": record.layout,
            "allocation": record.allocation,
            "written": datetime.now(UTC).isoformat(),
            "evidence": canonical(file.redacted(flatten_evidence(record.evidence))),
        }
        with self._transaction():
            self._insert("evidence", row, "OR REPLACE")

    def add_launch(
        self,
        record: LaunchRecord,
        measurements: Sequence[Measurement],
        artefacts: Mapping[str, bytes],
    ) -> LaunchRecord:
        """Write a launch with all that it measured and left behind; `artefacts` maps what
        (stdout, stderr, argv) to bytes. Returns the record as stored: artefacts by digest."""
        contents = {what: file.redacted_bytes(data) for what, data in artefacts.items()}
        digests = {what: hashlib.sha256(data).hexdigest() for what, data in contents.items()}
        stored = replace(record, artefacts=(*record.artefacts, *digests.items()))
        row = plain(stored)
        row["findings"] = canonical(file.redacted(row["findings"]))
        row["artefacts"] = canonical(row["artefacts"])
        row["conditions"] = row["conditions"] and canonical(row["conditions"])
        packed = [(digests[what], zlib.compress(data)) for what, data in contents.items()]
        with self._transaction():
            launch = self._insert("launch", row)
            for m in measurements:
                columns = {name: getattr(m, name) for name in VALUE_COLUMNS}
                columns |= {"launch": launch, "benchmark": m.benchmark.key}
                value = self._insert("value", columns)
                if m.samples:
                    data = file.pack(m.samples)
                    self._insert("samples", {"value": value, "data": data})
            for sha, data in packed:
                self._insert("artefact", {"sha": sha, "data": data}, "OR IGNORE")
        return stored

    def _insert(self, table: str, row: Mapping[str, Any], conflict: str = "") -> int | None:
        columns, marks = ",".join(row), ",".join("?" * len(row))
        statement = f"INSERT {conflict} INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608
        return self._db.execute(statement, tuple(row.values())).lastrowid

    @contextlib.contextmanager
    def _transaction(self, *, wrote: bool = True) -> Iterator[None]:
        within = (
            contextlib.nullcontext() if self._in_batch else file.transaction(self._db, self.path)
        )
        with file.translate_errors(self.path.parent), within:
            yield
        self._used = self._used or wrote

    def _drop(self) -> None:
        for path in (self.path, self.path.with_name(f"{self.path.name}-journal")):
            with contextlib.suppress(OSError):
                path.unlink()
