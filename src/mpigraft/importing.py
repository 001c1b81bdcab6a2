"""Other people's tables as launches of a campaign, so that they are compared like one's own.

An imported campaign grows: each import adds launches, the first configuration is its baseline,
and the same benchmark again is the next round. Keys are made from contents, so a file that is
given twice, even by two processes, is there once.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import hashlib
import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NoReturn

from mpigraft import __version__
from mpigraft.campaign import now
from mpigraft.env import refuse_secrets
from mpigraft.errors import UsageError
from mpigraft.jsonout import canonical, digest
from mpigraft.model import (
    AllocationRecord,
    Benchmark,
    CampaignRecord,
    ConfigurationRecord,
    LaunchRecord,
    LaunchState,
    Layout,
    Level,
    Measurement,
    Origin,
)
from mpigraft.store import Store, Writer
from mpigraft.suites import SUITES, Parsed

MAX_FILE = 64 * 1024 * 1024  # bytes; a table has kilobytes
UNKNOWN_LAYOUT = "unknown"
SPACE = uuid.UUID("6f1d5c1e-3c55-5a0e-9a1c-6f7068b0a6c4")  # under which imported ids are made
MARKS = {  # what only one suite prints
    "native": re.compile(rb'\{"mpigraft":'),
    "imb": re.compile(rb"^# Benchmarking|Intel ?\(R\) MPI Benchmarks", re.MULTILINE),
    "osu": re.compile(rb"# OSU |^nprocs: ", re.MULTILINE),
}

Series = dict[int, list[Measurement]]  # round -> what was measured in it


@dataclass(frozen=True, slots=True)
class Told:
    """What a person says of the files. Empty or 0: not said."""

    configuration: str
    campaign: str = ""
    machine: str = ""
    nodes: int = 0
    ranks_per_node: int = 0
    allocation: str = ""


@dataclass(frozen=True, slots=True)
class Table:
    """One file, read."""

    name: str
    data: bytes
    suite: str
    parsed: Parsed
    layout: str  # Layout.key, or UNKNOWN_LAYOUT
    buffers: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def benchmarks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.benchmark.key for m in self.parsed.measurements))


@dataclass(frozen=True, slots=True)
class Added:
    """What became of one file."""

    table: Table
    rounds: tuple[int, ...]  # empty: it was there already
    notes: tuple[str, ...] = ()  # what a person should know of it


def read(path: Path, told: Told) -> Table:
    """Read one file and fit it to what was told. Raises UsageError, naming the file, when it
    cannot be opened, is no output of a known suite, has no value, or contradicts the flags."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE + 1)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", mend="name a benchmark's output") from error
    if len(data) > MAX_FILE:
        raise UsageError(f"{path} is over {MAX_FILE >> 20} MiB", mend="give the tables alone")
    suite = next((name for name, mark in MARKS.items() if mark.search(data)), None)
    if suite is None:
        raise UsageError(
            f"{path}:1: no output of a known suite",
            why=f"known are {', '.join(sorted(SUITES))}",
            mend="give the whole stdout, with the lines that name benchmark and version",
        )
    parsed = SUITES[suite].parse(data, source=path.name)
    if not parsed.measurements:
        seen = "; ".join(f.seen for f in parsed.findings) or f"its {suite} tables have no rows"
        raise UsageError(f"{path}: no value in it: {seen}", mend="leave this file out")
    buffers, measurements = _buffers(path, parsed)
    parsed = replace(parsed, measurements=measurements)
    return Table(path.name, data, suite, parsed, _layout(path, parsed.header, told), buffers)


def _buffers(path: Path, parsed: Parsed) -> tuple[str, tuple[Measurement, ...]]:
    """Buffers are the configuration's; an output says them at its head or per benchmark."""
    usual = parsed.header.get("buffers", "host")
    found: dict[str, None] = {}
    moved = []
    for m in parsed.measurements:
        options = dict(m.benchmark.options)
        found[options.pop("buffers", usual)] = None
        benchmark = Benchmark(m.benchmark.suite, m.benchmark.name, tuple(options.items()))
        moved.append(replace(m, benchmark=benchmark))
    if len(found) > 1:
        raise UsageError(
            f"{path}: tables with {' and '.join(found)} buffers in one file",
            why="a configuration has one kind of buffers",
            mend="split the file, and import each part with its own --configuration",
        )
    return next(iter(found)), tuple(moved)


def _layout(path: Path, header: dict[str, str], told: Told) -> str:
    """The layout's key, from the flags and from what the file says; they must agree."""
    nodes = told.nodes or int(header.get("nodes", "0"))
    processes = header.get("processes") or header.get("ranks", "0")
    ranks = int(processes)
    per_node = told.ranks_per_node
    if not per_node and nodes and ranks % nodes == 0:
        per_node = ranks // nodes
    said = [
        f"{name} {ours}, and the file says {theirs}"
        for name, ours, theirs in (
            ("--nodes", told.nodes, header.get("nodes")),
            ("nodes x ranks per node is", nodes * per_node, processes),
        )
        if ours and theirs and ours != int(theirs) != 0
    ]
    if said:
        raise UsageError(f"{path}: {said[0]}", mend="leave the flag out, or import it on its own")
    if nodes and per_node:
        return Layout(nodes, per_node).key
    if told.nodes or told.ranks_per_node:
        raise UsageError(
            f"{path}: only one of --nodes and --ranks-per-node is known",
            mend="give both, or neither",
        )
    return UNKNOWN_LAYOUT


def add(store: Store, tables: Sequence[Table], told: Told) -> tuple[CampaignRecord, list[Added]]:
    """Store the tables as launches of the campaign that was told, or a new one.

    Raises UsageError where they do not belong there (another machine, other buffers, a campaign
    that was run), MissingError where the store cannot be written.
    """
    refuse_secrets(*(value for value in dataclasses.astuple(told) if isinstance(value, str)))
    with store.writer() as writer, _turn(store.folder):
        campaign = _campaign(store, tables, told)
        configuration = _configuration(campaign, tables[0].buffers, told)
        allocation = _allocation(campaign, told)
        book = _Book(store, campaign, configuration.key, allocation.id)
        added: list[Added] = []
        for table in tables:
            new = not book.holds(table)
            if new and not any(a.rounds for a in added):
                writer.add_campaign(campaign)
                writer.add_configuration(configuration)
                writer.add_allocation(allocation)
            notes = book.notes(table)
            added.append(Added(table, book.enter(table, writer) if new else (), notes))
        return campaign, added


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """One import at a time: rounds are counted from what is there. Where the file system knows
    no locks the import goes on; ids made from contents still keep a file from counting twice."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _campaign(store: Store, tables: Sequence[Table], told: Told) -> CampaignRecord:
    name = told.campaign or told.machine or "import"
    buffers = list(dict.fromkeys(t.buffers for t in tables))
    if len(buffers) > 1:
        _unlike(name, f"{' and '.join(buffers)} buffers")
    known = [c for c in store.campaigns() if name in (c.id, c.name)]
    imported = [c for c in known if c.origin is Origin.IMPORT]
    if known and not imported:
        raise UsageError(
            f"the campaign {name!r} was run here",
            why="values that were measured and values that were told are kept apart",
            mend="choose another name: --campaign NAME",
        )
    if not imported:
        plan = canonical({"imported": True, "machine": told.machine, "buffers": buffers[0]})
        return CampaignRecord(
            id=str(uuid.uuid5(SPACE, name)),
            name=name,
            created=now(),
            origin=Origin.IMPORT,
            seed=0,
            rounds=1,
            baseline=_key(told.configuration),
            plan=plan,
            tool=__version__,
        )
    plan = json.loads(imported[-1].plan)
    if told.machine and plan["machine"] != told.machine:
        _unlike(name, f"machine {plan['machine'] or 'without a name'} and {told.machine}")
    if plan["buffers"] != buffers[0]:
        _unlike(name, f"{plan['buffers']} and {buffers[0]} buffers")
    return imported[-1]


def _unlike(name: str, what: str) -> NoReturn:
    raise UsageError(
        f"the campaign {name!r} would hold {what}",
        why="unlike things are not compared",
        mend="import them into a campaign of their own: --campaign NAME",
    )


def _key(configuration: str) -> str:
    return digest({"imported": configuration})


def _configuration(campaign: CampaignRecord, buffers: str, told: Told) -> ConfigurationRecord:
    provenance = {"imported": True, "machine": json.loads(campaign.plan)["machine"]}
    return ConfigurationRecord(
        campaign.id, _key(told.configuration), told.configuration, canonical(provenance), buffers
    )


def _allocation(campaign: CampaignRecord, told: Told) -> AllocationRecord:
    """One for all imports unless told otherwise: tables are paired within an allocation."""
    name = told.allocation or "import"
    machine = json.loads(campaign.plan)["machine"]
    identity = str(uuid.uuid5(uuid.UUID(campaign.id), f"allocation {name}"))
    document = canonical({"imported": True, "name": name, "machine": machine})
    return AllocationRecord(identity, campaign.id, campaign.created, machine, document)


class _Book:
    """What a campaign holds already, for one configuration and allocation."""

    def __init__(
        self, store: Store, campaign: CampaignRecord, configuration: str, allocation: str
    ) -> None:
        self.campaign = campaign.id
        self.configuration = configuration
        self.allocation = allocation
        launches = store.launches(campaign.id)
        self.launches = {launch.id for launch in launches}
        self._layouts = {launch.layout for launch in launches}
        labels = {c.key: c.id for c in store.configurations(campaign.id)}
        self._others = {
            sha: labels.get(launch.configuration, launch.configuration)
            for launch in launches
            for what, sha in launch.artefacts
            if what == "table" and launch.configuration != configuration
        }
        self._next: dict[tuple[str, str], int] = {}  # (layout, benchmark) -> its next round
        for row in store.values(campaign.id):
            if (row.configuration, row.allocation) == (configuration, allocation):
                place = (row.layout, row.benchmark)
                self._next[place] = max(self._next.get(place, 0), row.round + 1)

    def identity(self, table: Table, part: int) -> str:
        """The id of one launch that a table gives: the same for the same content. The
        allocation has no part in it: one run in two allocations would count as two."""
        name = f"{self.configuration} {table.layout} {table.digest} {part}"
        return str(uuid.uuid5(uuid.UUID(self.campaign), name))

    def holds(self, table: Table) -> bool:
        """Whether the table is there already; one without a layout is, under any layout."""
        if table.layout == UNKNOWN_LAYOUT:
            layouts = {*self._layouts, UNKNOWN_LAYOUT}
            alike = [self.identity(replace(table, layout=key), 0) for key in layouts]
            return not self.launches.isdisjoint(alike)
        return self.identity(table, 0) in self.launches

    def notes(self, table: Table) -> tuple[str, ...]:
        """What is odd about the table beside what is there already."""
        found = []
        if other := self._others.get(table.digest):
            found.append(f"the same table is stored as {other}")
        if self._layouts and table.layout not in self._layouts and not self.holds(table):
            others = ", ".join(sorted(self._layouts))
            found.append(f"layout {table.layout} is not compared with this campaign's {others}")
        return tuple(found)

    def series(self, table: Table) -> Series:
        """The table's values by round: those of a benchmark come after what is there, and a
        size that is there twice in one file is two rounds."""
        met: Counter[tuple[str, str, int]] = Counter()
        series: Series = {}
        for m in table.parsed.measurements:
            cell = (m.benchmark.key, m.metric, m.size)
            before = self._next.get((table.layout, m.benchmark.key), 0)
            series.setdefault(before + met[cell], []).append(m)
            met[cell] += 1
        for number, measurements in series.items():
            for m in measurements:
                place = (table.layout, m.benchmark.key)
                self._next[place] = max(self._next.get(place, 0), number + 1)
        return series

    def enter(self, table: Table, writer: Writer) -> tuple[int, ...]:
        """Write the table's launches and return their rounds. The first is written last: only
        when it is there is the whole file there, so an import that was killed can be repeated."""
        series = self.series(table)
        for part, number in reversed(list(enumerate(sorted(series)))):
            if (identity := self.identity(table, part)) not in self.launches:
                record = self._record(table, identity, number, first=part == 0)
                told = {"file": table.name, "suite": table.suite, "says": table.parsed.header}
                artefacts = {"table": table.data, "told": canonical(told).encode()}
                writer.add_launch(record, series[number], artefacts)
                self.launches.add(identity)
        return tuple(sorted(series))

    def _record(self, table: Table, identity: str, number: int, *, first: bool) -> LaunchRecord:
        failed = any(f.level is Level.ERROR for f in table.parsed.findings)
        return LaunchRecord(
            id=identity,
            campaign=self.campaign,
            allocation=self.allocation,
            configuration=self.configuration,
            layout=table.layout,
            round=number,
            slot=0,
            replica=0,
            started=now(),
            wall_s=0.0,
            exit_code=None,
            state=LaunchState.FAILED if failed else LaunchState.OK,
            findings=table.parsed.findings if first else (),
        )
