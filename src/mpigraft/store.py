"""Results on disk; no other module writes them.

A store is a folder. Every process that writes makes one SQLite file of its own in it, named by
a UUID, and readers merge what they find: two people on one store never write one file, so no
row is lost to the other. Each launch is one transaction: a killed campaign loses at most the
launch in flight.

What a launch prints may hold anything that the user's environment holds: every foreign text
goes through `env.redact` on its way to the disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from mpigraft import env, evidence_json, store_file
from mpigraft.errors import MissingError, UsageError
from mpigraft.jsonout import canonical, plain, revive
from mpigraft.model import (
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    ConfigurationRecord,
    EvidenceRecord,
    Finding,
    JobRecord,
    LaunchRecord,
    Level,
    Measurement,
    SubmissionRecord,
    ValueRow,
)

T = TypeVar("T")
DAMAGE = (ValueError, TypeError, KeyError, RecursionError)  # of a text that was JSON
READ_ERRORS = (sqlite3.Error, zlib.error, OSError, *DAMAGE)

VALUE_COLUMNS = [
    f.name for f in fields(Measurement) if f.name not in ("benchmark", "samples")
]  # fmt: skip
LAUNCH_IDS = "SELECT number, id, started FROM launch WHERE campaign = ? ORDER BY number"
# A value that was printed whole and passed its check counts, even if the launch failed later:
# one crashing benchmark must not void the others. A mismatch measured something else.
VALUES = (
    "SELECT l.configuration, l.layout, l.allocation, l.round, l.replica, v.benchmark, v.metric,"
    " v.size, v.value, v.resolution FROM launch l JOIN value v ON v.launch = l.number"
    " WHERE l.campaign = ? AND l.state <> 'mismatch' AND v.valid IS NOT 0 AND v.value IS NOT NULL"
    " AND l.number NOT IN (SELECT value FROM json_each(?)) ORDER BY l.number, v.number"
)
MEASUREMENTS = (
    "SELECT v.*, s.data FROM launch l JOIN value v ON v.launch = l.number"
    " LEFT JOIN samples s ON s.value = v.number WHERE l.id = ? ORDER BY v.number"
)


class Store:
    """A folder of results. Reading does not fail as a whole because one file is damaged: that
    file becomes one of `findings` and the others are read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unread: dict[Path, Finding] = {}

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What reading noticed so far: files that are damaged or from a newer mpigraft."""
        return tuple(self._unread[path] for path in sorted(self._unread))

    @contextlib.contextmanager
    def writer(self) -> Iterator[Writer]:
        """A file of this process's own to write into; raises MissingError where that cannot be
        made. A writer that wrote nothing leaves no file."""
        writer = Writer(self.folder)
        try:
            yield writer
        finally:
            writer.close()

    def campaigns(self) -> tuple[CampaignRecord, ...]:
        """All campaigns, oldest first. Of one that was extended, the plan with most rounds."""
        every = self._records(CampaignRecord, "SELECT * FROM campaign")
        longest = {c.id: c for c in sorted(every, key=lambda c: c.rounds)}
        return tuple(sorted(longest.values(), key=lambda c: (c.created, c.id)))

    def campaign(self, wish: str | None = None) -> CampaignRecord:
        """The campaign of that id, name (the latest so named) or unique prefix of an id; without
        a wish the latest. Raises MissingError for an empty store, UsageError for no such."""
        known = self.campaigns()
        if not known:
            unread = "; ".join(f.seen for f in self.findings)
            raise MissingError(
                f"no results in {self.folder}" + (f": {unread}" if unread else ""),
                mend="run `mpigraft bench`, or say where results are: mpigraft --store FOLDER",
            )
        if not wish:
            return known[-1]
        same = [c for c in known if c.id == wish] or [c for c in known if c.name == wish]
        if same:
            return same[-1]
        near = [c for c in known if c.id.startswith(wish)]
        if len(near) == 1:
            return near[0]
        told = ", ".join(f"{c.id[:8]} ({c.name}, {c.created})" for c in (near or known)[-8:])
        problem = "begins the id of several campaigns" if near else "names no campaign"
        raise UsageError(f"{wish!r} {problem} in {self.folder}", mend=f"take one of: {told}")

    def configurations(self, campaign: str) -> tuple[ConfigurationRecord, ...]:
        """In the order in which they were written first."""
        query = "SELECT * FROM configuration WHERE campaign = ? ORDER BY rowid"
        records = self._records(ConfigurationRecord, query, campaign)
        return tuple({record.key: record for record in records}.values())

    def allocations(self, campaign: str) -> tuple[AllocationRecord, ...]:
        """In the order in which they started."""
        query = "SELECT * FROM allocation WHERE campaign = ?"
        found = {a.id: a for a in self._records(AllocationRecord, query, campaign)}
        return tuple(sorted(found.values(), key=lambda a: (a.started, a.id)))

    def launches(self, campaign: str) -> tuple[LaunchRecord, ...]:
        """Every launch that ended, well or not, in the order in which they started."""
        query = "SELECT * FROM launch WHERE campaign = ?"
        found = {x.id: x for x in self._records(LaunchRecord, query, campaign)}
        return tuple(sorted(found.values(), key=lambda x: (x.started, x.round, x.slot)))

    def values(self, campaign: str) -> list[ValueRow]:
        """What may be compared: every value that did not fail its check, of every launch that
        ran what was asked, file by file in the order in which their launches started."""
        buffers = {c.key: c.buffers for c in self.configurations(campaign)}
        seen: set[str] = set()  # a copy of a file in the same folder must not count twice

        def read(db: sqlite3.Connection) -> tuple[str, list[tuple[Any, ...]]]:
            db.row_factory = None  # plain tuples: 100,000 rows are common
            ids = db.execute(LAUNCH_IDS, (campaign,)).fetchall()
            double = [number for number, launch, _ in ids if launch in seen]
            rows = db.execute(VALUES, (campaign, json.dumps(double))).fetchall() if ids else []
            seen.update(launch for _, launch, _ in ids)
            return (ids[0][2] if ids else "", rows)

        blocks = sorted(self._each_file(read), key=lambda block: block[0])
        make = ValueRow._make
        return [
            make((*row[:-1], buffers.get(row[0], "host"), row[-1]))
            for _, rows in blocks
            for row in rows
        ]

    def measurements(self, launch: str) -> tuple[Measurement, ...]:
        """All that one launch measured, failed checks and samples included."""

        def read(db: sqlite3.Connection) -> list[Measurement]:
            return [_measurement(row) for row in db.execute(MEASUREMENTS, (launch,))]

        return next((tuple(found) for found in self._each_file(read) if found), ())

    def submissions(self) -> tuple[SubmissionRecord, ...]:
        """What was handed to a scheduler, oldest first; some have no campaign yet."""
        found = {s.campaign: s for s in self._records(SubmissionRecord, "SELECT * FROM submission")}
        return tuple(sorted(found.values(), key=lambda s: (s.created, s.campaign)))

    def jobs(self, campaign: str) -> tuple[JobRecord, ...]:
        """The jobs of a submission, oldest first."""
        query = "SELECT * FROM job WHERE campaign = ?"
        found = {j.job: j for j in self._records(JobRecord, query, campaign)}
        return tuple(sorted(found.values(), key=lambda j: (j.submitted, j.share)))

    def settled(self, campaign: str) -> CampaignRecord | None:
        """The record that jobs of one campaign agreed on; None before the first has started."""
        try:
            text = self._agreed(campaign).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return _settled(text)

    def settle(self, record: CampaignRecord) -> CampaignRecord:
        """Offer a campaign as it was planned; returns the one that was offered first, by
        whichever job. Raises MissingError when the folder cannot be written."""
        with store_file.mended(self.folder):
            return _settled(store_file.settle(self._agreed(record.id), canonical(record)))

    def logs(self) -> Path:
        """The folder for what jobs print. Raises MissingError when it cannot be made."""
        with store_file.mended(self.folder):
            (self.folder / "logs").mkdir(parents=True, exist_ok=True)
        return self.folder.absolute() / "logs"

    def _agreed(self, campaign: str) -> Path:
        return self.folder / f"{campaign}.campaign"

    def evidence(self, campaign: str, *, every: bool = False) -> tuple[EvidenceRecord, ...]:
        """The latest evidence of each configuration and layout on each allocation with `every`;
        else one of each configuration and layout: the latest, but none that is well hides one of
        other nodes that is not."""

        def read(db: sqlite3.Connection) -> list[tuple[str, EvidenceRecord]]:
            rows = db.execute("SELECT * FROM evidence WHERE campaign = ?", (campaign,))
            return [(row["written"], _evidence(row)) for row in rows]

        dated = [pair for pairs in self._each_file(read) for pair in pairs]
        dated.sort(key=lambda pair: pair[0])
        latest = {(r.configuration, r.layout, r.allocation): r for _, r in dated}.values()
        if every:
            return tuple(latest)
        # Files of version 1 and resumed campaigns on the same nodes: the last word counts.
        nodes = {a.id: a.nodes for a in self.allocations(campaign)}
        by_nodes = {
            (r.configuration, r.layout, nodes.get(r.allocation, "")): r for r in latest
        }.values()
        worst_last = sorted(by_nodes, key=lambda r: not r.evidence.ok)
        return tuple({(r.configuration, r.layout): r for r in worst_last}.values())

    def artefact(self, sha: str) -> bytes:
        """What a launch left behind, by the SHA-256 of its content. Raises MissingError."""

        def read(db: sqlite3.Connection) -> bytes | None:
            row = db.execute("SELECT data FROM artefact WHERE sha = ?", (sha,)).fetchone()
            return None if row is None else zlib.decompress(row["data"])

        for data in self._each_file(read):
            if data is not None:
                return data
        raise MissingError(f"no artefact {sha} in {self.folder}")

    def _records(self, kind: type[T], query: str, *values: str) -> list[T]:
        def read(db: sqlite3.Connection) -> list[T]:
            return [_record(kind, row) for row in db.execute(query, values)]

        return [record for records in self._each_file(read) for record in records]

    def _each_file(self, read: Callable[[sqlite3.Connection], T]) -> list[T]:
        """What `read` says of each file; a file that cannot be read becomes a finding."""
        answers = []
        for path in store_file.names(self.folder):
            try:
                with store_file.reading(path) as db:
                    if db is not None:
                        answers.append(read(db))
            except READ_ERRORS as error:
                if not path.exists():  # an unused writer has just taken its file away
                    continue
                self._unread[path] = Finding(
                    Level.WARNING,
                    "store-file-unreadable",
                    f"{path} cannot be read: {error}",
                    "what it holds is missing here; the other files of the store were read",
                    "restore it from a copy or move it out of the folder",
                )
        return answers


class Writer:
    """One file of a store, written by one process. Each method is one transaction: what it
    wrote is on disk when it returns; else it raised MissingError and nothing of it is."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{uuid4()}{store_file.SUFFIX}"
        self._used = False
        try:
            with store_file.mended(folder):
                folder.mkdir(parents=True, exist_ok=True)
                self._db = store_file.create(self.path)
        except MissingError:
            self._drop()
            raise

    def close(self) -> None:
        """Close the file, and remove it if nothing was written."""
        self._db.close()
        if not self._used:
            self._drop()

    def add_campaign(self, record: CampaignRecord) -> None:
        """Write it once: a resumed or extended campaign writes it into a file of its own."""
        with self._transaction():
            self._insert("campaign", plain(record), "OR IGNORE")

    def add_allocation(self, record: AllocationRecord) -> None:
        """Its end, when it is known, takes the place of what was written at its begin."""
        machine = store_file.redacted_json(record.machine)
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
        provenance = store_file.redacted_json(record.provenance)
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
            "evidence": canonical(store_file.redacted(evidence_json.flat(record.evidence))),
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
        contents = {what: store_file.redacted_bytes(data) for what, data in artefacts.items()}
        digests = {what: hashlib.sha256(data).hexdigest() for what, data in contents.items()}
        stored = replace(record, artefacts=(*record.artefacts, *digests.items()))
        row = plain(stored)
        row["findings"] = canonical(store_file.redacted(row["findings"]))
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
                    data = store_file.pack(m.samples)
                    self._insert("samples", {"value": value, "data": data})
            for sha, data in packed:
                self._insert("artefact", {"sha": sha, "data": data}, "OR IGNORE")
        return stored

    def _insert(self, table: str, row: Mapping[str, Any], conflict: str = "") -> int | None:
        columns, marks = ",".join(row), ",".join("?" * len(row))
        statement = f"INSERT {conflict} INTO {table} ({columns}) VALUES ({marks})"  # noqa: S608
        return self._db.execute(statement, tuple(row.values())).lastrowid

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[None]:
        with store_file.mended(self.path.parent), store_file.transaction(self._db):
            yield
        self._used = True

    def _drop(self) -> None:
        for path in (self.path, self.path.with_name(f"{self.path.name}-journal")):
            with contextlib.suppress(OSError):
                path.unlink()


def _settled(text: str) -> CampaignRecord:
    try:
        found: CampaignRecord = revive(CampaignRecord, json.loads(text))
    except DAMAGE as error:
        raise MissingError(
            f"the plan that jobs of this campaign agreed on cannot be read: {error}",
            mend="restore the .campaign file in the store, or submit the campaign anew",
        ) from error
    return found


def _record(kind: type[T], row: sqlite3.Row) -> T:
    """A row as a record of the model; what the model nests is JSON in its column."""
    values = dict(row)
    for column in ("findings", "artefacts", "hosts", "conditions"):
        if values.get(column) is not None:
            values[column] = json.loads(values[column])
    record: T = revive(kind, values)
    return record


def _evidence(row: sqlite3.Row) -> EvidenceRecord:
    places = (row["campaign"], row["configuration"], row["layout"])
    evidence = evidence_json.revived(json.loads(row["evidence"]))
    return EvidenceRecord(*places, evidence, row["allocation"])


def _measurement(row: sqlite3.Row) -> Measurement:
    values = dict(row)
    values["samples"] = store_file.unpack(values.pop("data"))
    values["valid"] = None if values["valid"] is None else bool(values["valid"])
    values["benchmark"] = plain(Benchmark.parse(values["benchmark"]))
    measurement: Measurement = revive(Measurement, values)
    return measurement
