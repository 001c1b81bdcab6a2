"""Read one file as tables. Its name, its content and the flags must agree."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from mpigraft.bench.importing import reframe
from mpigraft.bench.importing.content import read_content
from mpigraft.bench.importing.labels import unlabel
from mpigraft.bench.importing.pattern import Fields
from mpigraft.bench.importing.printed import Facts, printed_facts
from mpigraft.bench.importing.reports import mark_dead, take_reports
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.worlds import read_worlds
from mpigraft.core.env import refuse_secrets
from mpigraft.core.errors import MpigraftError, UsageError
from mpigraft.core.model import Benchmark, Finding, Layout, Measurement
from mpigraft.core.text import printable

UNKNOWN_LAYOUT = "unknown"
MARKS = {  # what only one suite prints
    "reframe": reframe.MARK,
    "native": re.compile(rb'\{"mpigraft":'),
    "imb": re.compile(rb"^# Benchmarking|Intel ?\(R\) MPI Benchmarks", re.MULTILINE),
    "osu": re.compile(rb"# OSU |^nprocs: |^# MPI [\w -]+ Test\r?$", re.MULTILINE),
}


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What the flags say about the files. Empty or 0: nothing."""

    configuration: str = ""
    campaign: str = ""
    machine: str = ""
    nodes: int = 0
    ranks_per_node: int = 0
    allocation: str = ""
    about: str = ""  # node type, network and software, for captions
    edited: bool = False  # take exports with changed cells


@dataclass(frozen=True, slots=True)
class ImportSource:
    """A file to import: where it is, what to call it, and what its name says."""

    path: Path
    name: str
    fields: Fields = field(default_factory=Fields)
    expected: bool = True  # to be a result: it was named, or matched a pattern

    @classmethod
    def of(
        cls, path: Path, below: Path | None = None, fields: Fields | None = None
    ) -> ImportSource:
        """Name a file by its path in the folder that was given, or by its last part."""
        name = path.relative_to(below).as_posix() if below else path.name
        expected = below is None or fields is not None
        return cls(path, printable(name), fields or Fields(), expected)


@dataclass(frozen=True, slots=True)
class ImportTable:
    """What one file measured of one configuration on one layout."""

    name: str
    data: bytes
    suite: str
    parsed: Parsed
    layout: str  # Layout.key, or what partial_layout makes
    buffers: str
    configuration: str
    machine: str = ""
    allocation: str = ""
    started: str = ""  # ISO 8601, UTC; empty: not known
    round: int | None = None  # None: the next one
    lost: int = 0  # values that were left out, since their run died
    printed: Facts = ()  # beside the tables: hosts, modules, iterations

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def died(self) -> bool:
        """Whether a run ended badly in it, be it before its first value. A program that only
        failed its own check did not."""
        codes = {finding.code for finding in self.parsed.findings}
        reported = "program-failed" in codes and "validation-failed" not in codes
        return bool(self.lost) or reported or any(span.died for span in self.parsed.tables)

    @property
    def benchmarks(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(m.benchmark.key for m in self.parsed.measurements))


class FileState(StrEnum):
    """What became of a file."""

    STORED = "stored"
    FAILED = "failed"  # a run in it died: its values are left out, the others are stored
    KNOWN = "known"  # it was there already
    REFUSED = "refused"
    SKIPPED = "skipped"  # of a folder, and no result


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """One file, and what was taken of it."""

    name: str
    state: FileState
    error: MpigraftError | None = None  # why it was refused or skipped
    campaign: str = ""
    configuration: str = ""
    layout: str = ""
    suite: str = ""
    rounds: tuple[int, ...] = ()
    values: int = 0
    benchmarks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()  # what a person should know of it
    findings: tuple[Finding, ...] = ()
    launches: int = 0  # new ones of an exported campaign
    lost: int = 0  # values that were left out, since their run died


@dataclass(frozen=True, slots=True)
class Exported:
    """A file that `mpigraft export` wrote; it is read a row at a time."""

    source: ImportSource
    form: str


def read_results(
    source: ImportSource, options: ImportOptions
) -> tuple[ImportTable, ...] | Exported:
    """Read one file and fit it to its name and the flags: a table, or one for each case of a log.
    Raises UsageError, naming the file, when it cannot be opened, is not the output of a known
    suite, has no value, or contradicts its name or the flags."""
    path = printable(str(source.path))
    data = read_content(source.path, path)
    if isinstance(data, str):
        return Exported(source, data)
    data, firsts = unlabel(data, path)
    suite = next((name for name, mark in MARKS.items() if mark.search(data)), None)
    if suite is None:
        raise UsageError.of("import-unknown-suite", path=path, suites=", ".join(MARKS))
    if suite == "reframe":
        tables = tuple(_cases(source, path, data, options))
    else:
        tables = tuple(_worlds(source, path, data, suite, options))
        if firsts > 1:
            several = Finding.of("several-worlds", source=source.name, count=firsts)
            parsed = replace(tables[0].parsed, findings=(several, *tables[0].parsed.findings))
            tables = (replace(tables[0], parsed=parsed), *tables[1:])
    for table in tables:
        refuse_secrets(table.configuration, table.machine, table.allocation)
    return tables


def _worlds(
    source: ImportSource, path: str, data: bytes, suite: str, options: ImportOptions
) -> Iterator[ImportTable]:
    """Read a file as a table, or as one for each of its layouts. A part without a value is a
    finding of the file's first table."""
    text, deaths = take_reports(data)
    printed = printed_facts(data)  # above all of its tables
    worlds, findings = read_worlds(suite, text, source=source.name)
    outputs = mark_dead([world.parsed for world in worlds], deaths, source.name)
    measured = [m for world in worlds for m in world.parsed.measurements]
    every = [finding for parsed in outputs for finding in parsed.findings]
    whole = Parsed(tuple(measured), (*every, *findings))
    _check_values(path, suite, whole)
    _check_benchmark(path, whole, source.fields)
    for world, output in zip(worlds, outputs, strict=True):
        alone = len(worlds) == 1
        named = source if alone else replace(source, name=f"{source.name}:{world.line}")
        parsed = replace(output, findings=(*output.findings, *findings))
        own = data if alone else world.data
        table = _table(named, path, own, suite, parsed, options)
        yield replace(table, printed=printed_facts(own) or printed)
        findings = ()


def _check_values(path: str, suite: str, parsed: Parsed) -> None:
    if not parsed.measurements:
        problem = (
            "; ".join(f.message for f in parsed.findings) or f"its {suite} tables have no rows"
        )
        raise UsageError.of("import-no-value", path=path, problem=problem)


def _table(
    source: ImportSource, path: str, data: bytes, suite: str, parsed: Parsed, options: ImportOptions
) -> ImportTable:
    """Return a file, or the part of it with one layout, as a table."""
    fields = source.fields
    buffers, measurements = _buffers(path, parsed)
    parsed = replace(parsed, measurements=measurements)
    return ImportTable(
        name=source.name,
        data=data,
        suite=suite,
        parsed=parsed,
        layout=_layout(path, parsed.header, fields, options),
        buffers=buffers,
        configuration=configuration_of(path, fields, options),
        machine=_one(path, "machine", options.machine, fields.machine),
        allocation=_one(path, "allocation", options.allocation, fields.allocation),
        started=fields.started,
        round=fields.round,
    )


def _cases(
    source: ImportSource, path: str, data: bytes, options: ImportOptions
) -> Iterator[ImportTable]:
    """Yield the lines of ReFrame's log, each a table of its own: a log grows, and what it had is
    there already when it is imported again. What a line says gives way to flags and the name."""
    cases, findings = reframe.parse_log(data, source.name)
    measured = Parsed(tuple(m for case in cases for m in case.measurements), findings)
    _check_values(path, "reframe", measured)
    fields = source.fields
    for case in cases:
        named = (
            options.configuration
            or fields.configuration
            or fields.mpi
            or fields.transport
            or fields.labels
        )
        chosen = options if named else replace(options, configuration=case.configuration)
        yield ImportTable(
            name=f"{source.name}:{case.line}",
            data=case.text.encode("utf-8", "backslashreplace"),
            suite="reframe",
            parsed=Parsed(case.measurements, findings, case.header),
            layout=_layout(path, case.header, fields, options),
            buffers="host",
            configuration=configuration_of(path, fields, chosen),
            machine=_one(path, "machine", options.machine, fields.machine) or case.machine,
            allocation=_one(path, "allocation", options.allocation, fields.allocation),
            started=fields.started or case.started,
        )
        findings = ()  # of the file: once


def _buffers(path: str, parsed: Parsed) -> tuple[str, tuple[Measurement, ...]]:
    """Buffers are the configuration's; an output says them at its head or per benchmark."""
    usual = parsed.header.get("buffers", "host")
    kinds: dict[str, None] = {}
    moved: dict[Benchmark, Benchmark] = {}
    for benchmark in dict.fromkeys(m.benchmark for m in parsed.measurements):
        options = dict(benchmark.options)
        kinds[options.pop("buffers", usual)] = None
        moved[benchmark] = Benchmark(benchmark.suite, benchmark.name, tuple(options.items()))
    if len(kinds) > 1:
        raise UsageError.of("import-mixed-buffers", path=path, kinds=" and ".join(kinds))
    if all(before == after for before, after in moved.items()):
        return next(iter(kinds)), parsed.measurements
    measurements = (replace(m, benchmark=moved[m.benchmark]) for m in parsed.measurements)
    return next(iter(kinds)), tuple(measurements)


def _check_benchmark(path: str, parsed: Parsed, fields: Fields) -> None:
    """Hold the benchmark in the name against those in the file."""
    programs = {m.benchmark.name.lower() for m in parsed.measurements}
    named = fields.benchmark.lower().removeprefix("osu_").removeprefix("imb_")
    if named and named not in programs:
        conflict = f"its name says {fields.benchmark}, and it holds {', '.join(sorted(programs))}"
        raise UsageError.of("import-conflict", path=path, conflict=conflict)


def _one(path: str, what: str, flag: str, name: str) -> str:
    """Return the one answer of a flag and a name."""
    if flag and name and flag != name:
        conflict = f"--{what} is {flag}, and its name says {name}"
        raise UsageError.of("import-conflict", path=path, conflict=conflict)
    return flag or name


def configuration_of(path: str, fields: Fields, options: ImportOptions) -> str:
    """Return the configuration's name; fields of a name that nothing else uses are a part of it, so
    that a file of another compiler, say, is no next round of this one. Raises UsageError."""
    built = "/".join(filter(None, (fields.mpi, fields.transport)))
    if fields.configuration and built:
        conflict = "{configuration} is {mpi} and {transport}, and its name has both"
        raise UsageError.of("import-conflict", path=path, conflict=conflict)
    named = fields.configuration or built
    name = _one(path, "configuration", options.configuration, named)
    labels = [f"{label}={value}" for label, value in fields.labels]
    if not name and not labels:
        raise UsageError.of("import-no-configuration", path=path)
    return "+".join([name, *labels] if name else labels)


def _layout(path: str, header: dict[str, str], fields: Fields, options: ImportOptions) -> str:
    """Return the layout's key, from all that says something of it; they must agree."""
    nodes = _agreed(path, "nodes", {
        "--nodes": options.nodes, "its name": fields.nodes,
        "the file": int(header.get("nodes", "0")),
    })  # fmt: skip
    per_node = _agreed(path, "ranks per node", {
        "--ranks-per-node": options.ranks_per_node, "its name": fields.ranks_per_node,
    })  # fmt: skip
    ranks = _agreed(path, "ranks", {
        "nodes times ranks per node": nodes * per_node, "its name": fields.ranks,
        "the file": int(header.get("processes") or header.get("ranks", "0")),
    })  # fmt: skip
    if not per_node and nodes and ranks % nodes == 0:
        per_node = ranks // nodes
    if not nodes and per_node and ranks % per_node == 0:
        nodes = ranks // per_node
    if nodes and per_node:
        return Layout(nodes, per_node).key
    if (options.nodes or options.ranks_per_node) and not ranks:
        raise UsageError.of("import-half-a-layout", path=path)
    return partial_layout(nodes, ranks, per_node)


def partial_layout(nodes: int, ranks: int, per_node: int) -> str:
    """Name a partly known layout, so that it differs from all with other known parts."""
    known = ((nodes, "nodes"), (ranks, "ranks"), (per_node, "per-node"))
    return "-".join(f"{count}{what}" for count, what in known if count) or UNKNOWN_LAYOUT


def _agreed(path: str, what: str, sources: dict[str, int]) -> int:
    """Return the number that all agree on who say one, or 0."""
    known = {source: number for source, number in sources.items() if number}
    if len(set(known.values())) > 1:
        (first, one), (second, other) = _differing(known)
        conflict = f"{what}: {first} says {one}, and {second} says {other}"
        raise UsageError.of("import-conflict", path=path, conflict=conflict)
    return next(iter(known.values()), 0)


def _differing(known: dict[str, int]) -> tuple[tuple[str, int], tuple[str, int]]:
    first = next(iter(known.items()))
    return first, next(item for item in known.items() if item[1] != first[1])
