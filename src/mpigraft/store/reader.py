"""Results on disk: what all processes wrote, merged.

A store is a folder. Every process that writes makes one SQLite file of its own in it, named by
a UUID, and readers merge what they find: two people on one store never write one file, so no
row is lost to the other. Each launch is one transaction: a killed campaign loses at most the
launch in flight.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import sqlite3
import zlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from mpigraft.core.clock import utc_now
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    ConfigurationRecord,
    EvidenceRecord,
    Finding,
    JobRecord,
    LaunchRecord,
    Measurement,
    SubmissionRecord,
    ValueRow,
)
from mpigraft.core.serialize import canonical
from mpigraft.core.write import make_folder, write_whole
from mpigraft.store import bounds, file, rows
from mpigraft.store.contents import Contents, ContentsIndex
from mpigraft.store.rows import evidence_of, measurements_of, record_of, values_of
from mpigraft.store.writer import Writer

T = TypeVar("T")
READ_ERRORS = (sqlite3.Error, zlib.error, OSError, *rows.DAMAGE)

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


LAUNCH_TABLES = (
    "SELECT l.id, l.configuration, l.layout, (SELECT json_extract(a.value, '$[1]')"
    " FROM json_each(l.artefacts) a WHERE json_extract(a.value, '$[0]') = 'table')"
    " FROM launch l WHERE l.campaign = ?"
)
LAST_ROUNDS = (
    "SELECT l.configuration, l.allocation, l.layout, v.benchmark, max(l.round) FROM launch l"
    " JOIN value v ON v.launch = l.number WHERE l.campaign = ? GROUP BY 1, 2, 3, 4"
)


class LaunchTable(NamedTuple):
    """Where a launch belongs, and the digest of the table that it was imported from."""

    launch: str
    configuration: str
    layout: str
    table: str | None


class Store:
    """A folder of results. Reading does not fail as a whole because one file is damaged: that
    file becomes one of `findings` and the others are read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._unread: dict[Path, Finding] = {}
        self._contents = ContentsIndex()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """List the files that could not be read so far: files that are damaged or from a newer
        mpigraft."""
        return tuple(self._unread[path] for path in sorted(self._unread))

    @contextlib.contextmanager
    def writer(self) -> Iterator[Writer]:
        """Open a file of this process's own to write into; raises MissingError where that cannot be
        made. A writer that wrote nothing leaves no file."""
        writer = Writer(self.folder)
        try:
            yield writer
        finally:
            writer.close()

    def campaigns(self) -> tuple[CampaignRecord, ...]:
        """Read all campaigns, oldest first. Of one that was extended, the plan with most rounds."""
        every = [
            record
            for path in file.store_files(self.folder)
            if (contents := self._contents_of(path))
            for record in contents.records
        ]
        longest = {c.id: c for c in sorted(every, key=lambda c: c.rounds)}
        return tuple(sorted(longest.values(), key=lambda c: (c.created, c.id)))

    def campaign(self, name: str | None = None, *, planned: bool = False) -> CampaignRecord:
        """Find the campaign of that id, name (the latest so named), unique prefix of an id or file
        of the store; without a name the latest. One that stopped before its first launch counts
        only where no other fits, or with `planned`. Raises MissingError for an empty store,
        UsageError for no such."""
        known = self.campaigns()
        if not known:
            unread = "; ".join(f.message for f in self.findings)
            raise MissingError.of(
                "store-empty", folder=self.folder, unread=f": {unread}" if unread else ""
            )
        if not name:
            return known[-1] if planned else self._latest(known)
        same = [c for c in known if c.id == name] or [c for c in known if c.name == name]
        if same:
            return same[-1] if planned else self._latest(same)
        near = [c for c in known if c.id.startswith(name)]
        problem = "begins the id of several campaigns" if near else "names no campaign"
        if not near and (ids := self._files_of(name)):
            near = [c for c in known if c.id in ids]
            problem = "is the file of several campaigns"
        if len(near) == 1:
            return near[0]
        listed = (f"{c.id[:8]} ({c.name}, {c.created[:10]})" for c in (near or known)[-8:])
        names = {word for c in known for word in (c.name, c.id[:8]) if not near}
        raise UsageError.unknown(
            "campaign-not-one",
            name,
            sorted(names),
            problem=problem,
            folder=self.folder,
            known=", ".join(listed),
        )

    def _files_of(self, name: str) -> set[str]:
        """Read the ids of campaigns in the file of that name or path, whole or begun."""
        stem = Path(name).name.removesuffix(".sqlite")
        paths = (p for p in file.store_files(self.folder) if stem and p.stem.startswith(stem))
        found = (self._contents_of(path) for path in paths)
        return {record.id for contents in found if contents for record in contents.records}

    def _latest(self, known: Sequence[CampaignRecord]) -> CampaignRecord:
        """Return the last of `known` that has a launch, or came to its end without one; the last if
        there is none. A refusal of the baseline ends a campaign at once."""
        return next((c for c in reversed(known) if self._counts(c)), known[-1])

    def _counts(self, campaign: CampaignRecord) -> bool:
        launch = "SELECT 1 FROM launch WHERE campaign = ? LIMIT 1", (campaign.id,)
        if any(self._each_file(lambda db: [*db.execute(*launch)], self._holding(campaign.id))):
            return True
        proofs = [e for e in self.evidence(campaign.id) if e.configuration == campaign.baseline]
        ended = any(one.ended for one in self.allocations(campaign.id))
        return ended or not all(one.evidence.ok for one in proofs)

    def configurations(self, campaign: str) -> tuple[ConfigurationRecord, ...]:
        """Read them in the order in which they were written first."""
        query = "SELECT * FROM configuration WHERE campaign = ? ORDER BY rowid"
        records = self._records(ConfigurationRecord, query, campaign)
        return tuple({record.key: record for record in records}.values())

    def allocations(self, campaign: str) -> tuple[AllocationRecord, ...]:
        """Read them in the order in which they started."""
        query = "SELECT * FROM allocation WHERE campaign = ?"
        records = {a.id: a for a in self._records(AllocationRecord, query, campaign)}
        return tuple(sorted(records.values(), key=lambda a: (a.started, a.id)))

    def launches(self, campaign: str) -> tuple[LaunchRecord, ...]:
        """Read every launch that ended, well or not, in the order in which they started."""
        query = "SELECT * FROM launch WHERE campaign = ?"
        records = {x.id: x for x in self._records(LaunchRecord, query, campaign)}
        return tuple(sorted(records.values(), key=lambda x: (x.started, x.round, x.slot)))

    def launch_tables(self, campaign: str) -> list[LaunchTable]:
        """Read of every launch what an import must know: no more, since there may be many."""

        def read(db: sqlite3.Connection) -> list[LaunchTable]:
            return [LaunchTable(*row) for row in db.execute(LAUNCH_TABLES, (campaign,))]

        return [row for rows in self._each_file(read, self._holding(campaign)) for row in rows]

    def last_rounds(self, campaign: str) -> dict[tuple[str, str, str, str], int]:
        """Read the last round of each (configuration, allocation, layout, benchmark)."""

        def read(db: sqlite3.Connection) -> list[tuple[str, str, str, str, int]]:
            return [tuple(row) for row in db.execute(LAST_ROUNDS, (campaign,))]

        last: dict[tuple[str, str, str, str], int] = {}
        answers = self._each_file(read, self._holding(campaign))
        for *place, number in (row for answer in answers for row in answer):
            key = (place[0], place[1], place[2], place[3])
            last[key] = max(last.get(key, 0), number)
        return last

    def values(self, campaign: str) -> list[ValueRow]:
        """Read what may be compared: every value that did not fail its check, of every launch that
        ran what was asked, file by file in the order in which their launches started."""
        buffers = {c.key: c.buffers for c in self.configurations(campaign)}
        read_launches: set[str] = set()  # a copy of a file in the same folder must not count twice

        def read(db: sqlite3.Connection) -> tuple[str, list[tuple[Any, ...]]]:
            db.row_factory = None  # plain tuples: 100,000 rows are common
            ids = db.execute(LAUNCH_IDS, (campaign,)).fetchall()
            double = [number for number, launch, _ in ids if launch in read_launches]
            rows = db.execute(VALUES, (campaign, json.dumps(double))).fetchall() if ids else []
            read_launches.update(launch for _, launch, _ in ids)
            return (ids[0][2] if ids else "", rows)

        answers = self._each_file(read, self._holding(campaign))
        blocks = sorted(answers, key=lambda block: block[0])
        return [one for _, rows in blocks for one in values_of(rows, buffers)]

    def measurements(self, launch: str) -> tuple[Measurement, ...]:
        """Read all that one launch measured, failed checks and samples included."""

        def read(db: sqlite3.Connection) -> tuple[Measurement, ...]:
            return measurements_of(db.execute(MEASUREMENTS, (launch,)))

        return next(filter(None, self._each_file(read)), ())

    def measured(self, campaign: str) -> Iterator[tuple[LaunchRecord, tuple[Measurement, ...]]]:
        """Read each launch with all that it measured, in one order for the same launches however
        they are spread over files; a launch at a time, since there may be many."""
        launches = sorted(self.launches(campaign), key=lambda x: (x.started, x.round, x.slot, x.id))

        def read(db: sqlite3.Connection) -> list[str]:
            return [
                row[0]
                for row in db.execute("SELECT id FROM launch WHERE campaign = ?", (campaign,))
            ]

        holders: dict[str, Path] = {}
        for path in self._holding(campaign):
            for ids in self._each_file(read, [path]):
                holders |= {one: path for one in ids if one not in holders}
        known = (launch for launch in launches if launch.id in holders)
        for path, group in itertools.groupby(known, lambda launch: holders[launch.id]):
            yield from self._measured(path, list(group))

    def _measured(
        self, path: Path, launches: Sequence[LaunchRecord]
    ) -> Iterator[tuple[LaunchRecord, tuple[Measurement, ...]]]:
        with self._unread_kept(path), file.reading(path) as db:
            for launch in launches:
                rows = db.execute(MEASUREMENTS, (launch.id,)).fetchall() if db else ()
                kept = (row for row in rows if row["value"] is not None)
                yield launch, measurements_of(kept)

    def submissions(self) -> tuple[SubmissionRecord, ...]:
        """Read what was submitted, oldest first; some have no campaign yet."""
        records = {
            s.campaign: s for s in self._records(SubmissionRecord, "SELECT * FROM submission")
        }
        return tuple(sorted(records.values(), key=lambda s: (s.created, s.campaign)))

    def jobs(self, campaign: str) -> tuple[JobRecord, ...]:
        """Read the jobs of a submission, oldest first."""
        query = "SELECT * FROM job WHERE campaign = ?"
        records = {j.job: j for j in self._records(JobRecord, query, campaign)}
        return tuple(sorted(records.values(), key=lambda j: (j.submitted, j.share)))

    def accept(self, campaign: str) -> None:
        """Mark a campaign as a good state, from now on. Raises MissingError when the folder cannot
        be written."""
        with file.translate_errors(self.folder):
            text = canonical({"campaign": campaign, "accepted": utc_now()})
            write_whole(self.folder / f"{campaign}{file.ACCEPTED}", text.encode(), links=False)

    def accepted(self) -> tuple[tuple[str, str], ...]:
        """List (when, id) of the campaigns that were accepted as good, the latest last. A damaged
        mark counts for nothing, and becomes one of `findings`."""
        marks = []
        for path in file.store_files(self.folder, file.ACCEPTED):
            with self._unread_kept(path):
                mark = bounds.parse_json(bounds.read_text(path))
                marks.append((str(mark["accepted"]), str(mark["campaign"])))
        return tuple(sorted(marks))

    def logs(self) -> Path:
        """Make the folder for what jobs print. Raises MissingError when it cannot be made."""
        with file.translate_errors(self.folder):
            make_folder(self.folder / "logs")
        return self.folder.absolute() / "logs"

    def evidence(self, campaign: str, *, every: bool = False) -> tuple[EvidenceRecord, ...]:
        """Return the latest evidence of each configuration and layout on each allocation with
        `every`; else one of each configuration and layout: the latest, but none that is well hides
        one of other nodes that is not."""

        def read(db: sqlite3.Connection) -> list[tuple[str, EvidenceRecord]]:
            rows = db.execute("SELECT * FROM evidence WHERE campaign = ?", (campaign,))
            return [(row["written"], evidence_of(row)) for row in rows]

        answers = self._each_file(read, self._holding(campaign))
        dated = [pair for pairs in answers for pair in pairs]
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

    def artefact(self, sha: str, campaign: str | None = None) -> bytes:
        """Read what a launch, of any campaign or this one, left behind, by the SHA-256 of its
        content. Raises MissingError."""

        def read(db: sqlite3.Connection) -> bytes | None:
            row = db.execute("SELECT data FROM artefact WHERE sha = ?", (sha,)).fetchone()
            return None if row is None else bounds.decompress(row["data"])

        paths = None if campaign is None else self._holding(campaign)
        for data in self._each_file(read, paths):
            if data is not None:
                return data
        raise MissingError.of("artefact-missing", sha=sha, folder=self.folder)

    def _records(self, kind: type[T], query: str, campaign: str | None = None) -> list[T]:
        """Read rows as records: those of a campaign, which is the query's only value, or all."""
        values = () if campaign is None else (campaign,)

        def read(db: sqlite3.Connection) -> list[T]:
            return [record_of(kind, row) for row in db.execute(query, values)]

        paths = None if campaign is None else self._holding(campaign)
        return [record for records in self._each_file(read, paths) for record in records]

    def _holding(self, campaign: str) -> list[Path]:
        """List the files that have something of a campaign."""
        return [
            path
            for path in file.store_files(self.folder)
            if (contents := self._contents_of(path)) and campaign in contents.owners
        ]

    def _contents_of(self, path: Path) -> Contents | None:
        """Read what a file has; None for one that cannot be read."""
        with self._unread_kept(path):
            return self._contents.read(path)
        return None

    def _each_file(
        self, read: Callable[[sqlite3.Connection], T], paths: Sequence[Path] | None = None
    ) -> list[T]:
        """Collect what `read` returns of each file."""
        answers = []
        for path in file.store_files(self.folder) if paths is None else paths:
            with self._unread_kept(path), file.reading(path) as db:
                if db is not None:
                    answers.append(read(db))
        return answers

    @contextlib.contextmanager
    def _unread_kept(self, path: Path) -> Iterator[None]:
        """Make a finding of a file that cannot be read."""
        try:
            yield
        except READ_ERRORS as error:
            if path.exists():  # else an unused writer has just taken its file away
                self._unread[path] = Finding.of("store-file-unreadable", path=path, error=error)
