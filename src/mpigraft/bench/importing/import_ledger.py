"""What imported campaigns hold already, and the launches that a table adds to them.

An imported campaign grows: each import adds launches, the first configuration is its baseline,
and the same benchmark again is the next round. Keys are made from contents, so a file that is
given twice, even by two processes, is there once.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections import Counter
from dataclasses import replace
from typing import Any, NoReturn

from mpigraft import __version__
from mpigraft.bench.importing.reading import (
    UNKNOWN_LAYOUT,
    FileState,
    ImportedFile,
    ImportOptions,
    ImportTable,
)
from mpigraft.core.clock import utc_now
from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    ConfigurationRecord,
    Finding,
    LaunchRecord,
    LaunchState,
    Level,
    Measurement,
    Origin,
    layout_order,
)
from mpigraft.core.serialize import canonical, digest
from mpigraft.store import Store, Writer

SPACE = uuid.UUID("6f1d5c1e-3c55-5a0e-9a1c-6f7068b0a6c4")  # under which imported ids are made
SHOWN_LAYOUTS = 8
DAY = "{date}"  # in the name of a campaign: the day on which its tables were measured
LAST_WORDS = ("program-failed", "cut-short")  # findings of a run that died
ROW = re.compile(rb"(?m)^(?:\S+[ \t])?[ \t]*\d+[ \t]")  # of a table, with a label or without
MIDNIGHT = "T00:00:00+00:00"

Series = dict[int, list[Measurement]]  # round -> what was measured in it


def campaign_of(store: Store, table: ImportTable, options: ImportOptions) -> CampaignRecord:
    """Return the campaign that a table belongs to, there already or new. Raises UsageError where it
    does not belong there: another machine, other buffers, a campaign that was run."""
    name = campaign_name(table, options)
    known = [c for c in store.campaigns() if name in (c.id, c.name)]
    imported = [c for c in known if c.origin is Origin.IMPORT]
    if known and not imported:
        raise UsageError.of("campaign-was-run", name=name)
    if imported:
        about = json.loads(imported[-1].plan).get("about", "")
        if options.about not in ("", about):
            raise UsageError.of("campaign-about", name=name, about=about or "nothing")
        return imported[-1]
    plan = {"imported": True, "machine": table.machine, "buffers": table.buffers}
    return CampaignRecord(
        id=str(uuid.uuid5(SPACE, name)),
        name=name,
        created=table.started[:10] + MIDNIGHT if DAY in options.campaign else utc_now(),
        origin=Origin.IMPORT,
        seed=0,
        rounds=1,
        baseline=_key(table.configuration),
        plan=canonical(plan | ({"about": options.about} if options.about else {})),
        tool=__version__,
    )


def campaign_name(table: ImportTable, options: ImportOptions) -> str:
    """Return the campaign of a table: one for each day where --campaign has {date}. Raises
    UsageError for a table without a date there."""
    name = options.campaign or table.machine or "import"
    if DAY in name and not table.started:
        raise UsageError.of("campaign-date-unknown", name=name, file=table.name)
    return name.replace(DAY, table.started[:10])


def _key(configuration: str) -> str:
    return digest({"imported": configuration})


class Book:
    """One campaign: what is in it, and how it grows."""

    def __init__(self, store: Store, campaign: CampaignRecord) -> None:
        self.campaign = campaign
        self._plan = json.loads(campaign.plan)
        rows = store.launch_tables(campaign.id)
        self._launches = {row.launch for row in rows}
        self._layouts = {row.layout for row in rows}
        stored = store.configurations(campaign.id)
        self._labels = {c.key: c.id for c in stored}
        self._printed = {c.key: json.loads(c.provenance).get("printed", {}) for c in stored}
        self._holders = {row.table: row.configuration for row in rows if row.table}
        # (configuration, allocation, layout, benchmark) -> its next round
        self._next = {place: last + 1 for place, last in store.last_rounds(campaign.id).items()}
        self._written: set[str] = set()  # records of this campaign that this writer has

    def add(self, table: ImportTable, writer: Writer | None) -> ImportedFile:
        """Write a table's launches, unless they are there; without a writer only say what would
        be written. Raises UsageError where the table does not belong here."""
        self._check(table)
        key = _key(table.configuration)
        if self._holds(table, key):
            return self._taken(table, FileState.KNOWN, notes=self._notes(table, key))
        if stored := self._stored_start(table, key):
            if ROW.search(table.data, stored):
                raise UsageError.of("import-grown", name=table.name, added=stored + 1)
            return self._taken(table, FileState.KNOWN)  # a job's last words were added
        notes = self._notes(table, key)
        allocation = self._allocation(table)
        if writer:
            self._write_heads(table, key, allocation, writer)
        series = self._series(table, (key, allocation.id))
        rounds = tuple(sorted(series))
        if table.died:  # the run that did, without values
            series[max(series, default=-1) + 1] = []
        for part, number in reversed(list(enumerate(sorted(series)))):
            if (identity := self._identity(table, key, part)) not in self._launches:
                launch = _launch(table, identity, number, _findings(table, part, len(series)))
                launch = replace(
                    launch, campaign=self.campaign.id, allocation=allocation.id, configuration=key
                )
                if writer:
                    writer.add_launch(launch, series[number], _artefacts(table))
                self._launches.add(identity)
        self._layouts.add(table.layout)
        self._holders[table.digest] = key
        return self._taken(table, FileState.STORED, rounds=rounds, notes=notes)

    def _taken(self, table: ImportTable, state: FileState, **more: Any) -> ImportedFile:
        return ImportedFile(table.name, state, campaign=self.campaign.name, **more)

    def _check(self, table: ImportTable) -> None:
        machine, buffers = self._plan.get("machine", ""), self._plan.get("buffers", "host")
        if table.machine and machine != table.machine:
            self._refuse(f"machine {machine or 'without a name'} and {table.machine}")
        if buffers != table.buffers:
            self._refuse(f"{buffers} and {table.buffers} buffers")

    def _refuse(self, difference: str) -> NoReturn:
        raise UsageError.of("campaign-differs", name=self.campaign.name, difference=difference)

    def _write_heads(
        self, table: ImportTable, key: str, allocation: AllocationRecord, writer: Writer
    ) -> None:
        """Write what the launches refer to, once per file of the store."""
        if self.campaign.id not in self._written:
            writer.add_campaign(self.campaign)
        before = self._printed.get(key, {})
        printed = {name: _joined(before.get(name, ""), value) for name, value in table.printed}
        printed = before | printed
        if key not in self._written or printed != before:
            self._printed[key] = printed
            provenance = {"imported": True, "machine": self._plan.get("machine", "")}
            document = canonical(provenance | ({"printed": printed} if printed else {}))
            label = table.configuration
            writer.add_configuration(
                ConfigurationRecord(self.campaign.id, key, label, document, table.buffers)
            )
            self._labels.setdefault(key, label)
        if allocation.id not in self._written:
            writer.add_allocation(allocation)
        self._written |= {self.campaign.id, key, allocation.id}

    def _allocation(self, table: ImportTable) -> AllocationRecord:
        """Return one for all imports unless one is named: tables are paired within an
        allocation."""
        name = table.allocation or "import"
        machine = self._plan.get("machine", "")
        identity = str(uuid.uuid5(uuid.UUID(self.campaign.id), f"allocation {name}"))
        document = canonical({"imported": True, "name": name, "machine": machine})
        return AllocationRecord(
            identity, self.campaign.id, self.campaign.created, machine, document
        )

    def _identity(self, table: ImportTable, key: str, part: int) -> str:
        """Return the id of one launch that a table gives: the same for the same content. The
        allocation has no part in it: one run in two allocations would count as two."""
        name = f"{key} {table.layout} {table.digest} {part}"
        return str(uuid.uuid5(uuid.UUID(self.campaign.id), name))

    def _holds(self, table: ImportTable, key: str) -> bool:
        """Return whether the table is there already; one without a whole layout is, under any
        layout."""
        if is_partial(table.layout):
            layouts = {*self._layouts, table.layout, UNKNOWN_LAYOUT}
            alike = [self._identity(replace(table, layout=one), key, 0) for one in layouts]
            return not self._launches.isdisjoint(alike)
        return self._identity(table, key, 0) in self._launches

    def _stored_start(self, table: ImportTable, key: str) -> int:
        """Return how many bytes a table begins with that were imported before, as where a job
        appends to a file that was imported: those runs would count twice."""
        sha, place, most = hashlib.sha256(), 0, 0
        for line in table.data.splitlines(keepends=True) if self._holders else ():
            sha.update(line)
            place += len(line)
            if self._holders.get(sha.copy().hexdigest()) == key:
                most = place
        return most if most < len(table.data) else 0

    def _notes(self, table: ImportTable, key: str) -> tuple[str, ...]:
        """Compare the table with stored ones, and report what is odd."""
        notes = []
        other = self._holders.get(table.digest, key)
        if other != key:
            notes.append(f"the same table is stored as {self._labels.get(other, other)}")
        unlike = table.layout not in self._layouts and any(
            is_partial(layout) for layout in (table.layout, *self._layouts)
        )
        if self._layouts and unlike and not self._holds(table, key):
            others = ", ".join(sorted(self._layouts, key=layout_order)[:SHOWN_LAYOUTS])
            notes.append(f"layout {table.layout} is not compared with this campaign's {others}")
        return tuple(notes)

    def _series(self, table: ImportTable, owner: tuple[str, str]) -> Series:
        """Return the table's values by round: those of a benchmark come after what is there, or in
        the round that its name says, and a size that is there twice in one file is two rounds."""
        met: Counter[tuple[str, str, int]] = Counter()
        starts: dict[str, int] = {}
        series: Series = {}
        for m in table.parsed.measurements:
            benchmark = m.benchmark.key
            if benchmark not in starts:
                free = self._next.get((*owner, table.layout, benchmark), 0)
                starts[benchmark] = free if table.round is None else max(free, table.round)
            cell = (benchmark, m.metric, m.size)
            series.setdefault(starts[benchmark] + met[cell], []).append(m)
            met[cell] += 1
        for number, measurements in series.items():
            for benchmark in {m.benchmark.key for m in measurements}:
                place = (*owner, table.layout, benchmark)
                self._next[place] = max(self._next.get(place, 0), number + 1)
        return series


def _joined(before: str, value: str) -> str:
    """Join what several tables of a configuration print, each once."""
    return ", ".join(dict.fromkeys(filter(None, (*before.split(", "), *value.split(", ")))))


def is_partial(layout: str) -> bool:
    """Return whether a layout lacks the number of nodes or of ranks on each."""
    return layout_order(layout)[0]


def _artefacts(table: ImportTable) -> dict[str, bytes]:
    provenance = {"file": table.name, "suite": table.suite, "says": table.parsed.header}
    return {"table": table.data, "told": canonical(provenance).encode()}


def _findings(table: ImportTable, part: int, parts: int) -> tuple[Finding, ...]:
    """Return the findings of one launch of a table: the first has them, but for those of a run that
    died, which is the last."""
    findings = table.parsed.findings
    if not table.died:
        return findings if part == 0 else ()
    words = tuple(f for f in findings if f.code in LAST_WORDS)
    others = tuple(f for f in findings if f.code not in LAST_WORDS)
    return others * (part == 0) + words * (part == parts - 1)


def _launch(
    table: ImportTable, identity: str, number: int, findings: tuple[Finding, ...]
) -> LaunchRecord:
    """Return the record, without the ids of what it belongs to."""
    own = findings if table.died else table.parsed.findings
    failed = any(f.level is Level.ERROR for f in own)
    return LaunchRecord(
        id=identity,
        campaign="",
        allocation="",
        configuration="",
        layout=table.layout,
        round=number,
        slot=0,
        replica=0,
        started=table.started or utc_now(),
        wall_s=0.0,
        exit_code=None,
        state=LaunchState.FAILED if failed else LaunchState.OK,
        findings=findings,
    )
