"""Output of the OSU Micro-Benchmarks, versions 5 to 7.5, as people keep it.

A file may hold several tables, loader warnings, batch headers and the remains of a crash. Every
line is a title, a known remark, a header, a row, or it is told of in a finding: nothing is lost
in silence, and a row that cannot be read is refused with its line.

`value` is the column that the program is known by (the average), since that is what published
tables have; percentiles other than 90 and 99 and the parts of Overall stay in the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mpigraft.model import Benchmark, Finding, Level, Measurement
from mpigraft.run import clean
from mpigraft.suites import osu_columns, osu_titles
from mpigraft.suites.base import (
    CRASH,
    Parsed,
    Place,
    crashed,
    foreign,
    invalid,
    number,
    printed_step,
    whole,
)

DATATYPE = re.compile(r"# Datatype: (MPI_\w+)\.?")
WINDOW = re.compile(r"# Window creation: MPI_Win_(\w+)")
SYNC = re.compile(r"# Synchronization: MPI_Win_([\w/]+)")
PAIRS = re.compile(r"# \[ pairs: (\d+) \] \[ window size: (\d+|varied) \]")
SIDES = re.compile(
    r"# (?:Send Buffer on|Rank 0 Memory on) \w+ \((\w+)\) and "
    r"(?:Receive Buffer on|Rank 1 Memory on) \w+ \((\w+)\)"
)
THREADS = re.compile(
    r"# Number of (?:forked processes in )?(sender|receiver)(?: threads)?: (\d+)", re.I
)
MATRIX = re.compile(r"# (Uni-directional Bandwidth \(MB/sec\)|Message Rate Profile)")
WINDOWS = re.compile(r"#((?:\s+\d+)+)\s*")
INIT = re.compile(r"nprocs: (\d+), min: (\d+) ms, max: (\d+) ms, avg: (\d+) ms")
BATCH = re.compile(r"== (Nodes|Processes) = (\d+)")
REMARKS = ("# Overall = Coll. Init", "This is a test with ")
RESULTS = (  # column, metric, columns of minimum and maximum, whether percentiles are its own
    ("latency", "latency", "minimum", "maximum", True),
    ("bandwidth", "bandwidth", "", "", True),
    ("rate", "message_rate", "", "", False),
    ("pure", "latency", "pure_min", "pure_max", False),
    ("overall", "latency", "", "", True),
    ("overlap", "overlap", "", "", False),
)
DEFAULT_WINDOW = "64"
THREADED = ("latency_mt", "latency_mp")  # print their threads above the title, mp of 5 below it
OLD_REDUCTION = "MPI_FLOAT"  # what reductions used before -T came, with no line to say so


def parse(data: bytes, *, source: str) -> Parsed:
    """All values in one file, benchmark by benchmark in the file's order.

    Options that change what is measured are part of the benchmark's key: buffers other than the
    host's, datatype, window creation and synchronization, pairs and window, threads. `header`
    has version, and nodes and processes where the file says them. Raises UsageError for a file
    without a table and for a row or header that is damaged.
    """
    state = _State(source)
    lines = data.split(b"\n")
    for index, raw in enumerate(lines):
        place = Place(source, index + 1)
        line = clean(raw).rstrip("\r ")
        if line.strip():
            _line(line, place, state, last=index == len(lines) - 1)
    state.close_table()
    if not state.tables:
        Place(source, len(lines)).refuse(
            "no table of the OSU Micro-Benchmarks in this file",
            "give the benchmark's whole stdout, with its title line (# OSU MPI ... Test v7.5)",
        )
    return Parsed(
        tuple(state.measurements),
        (
            *crashed(state.crashes, source),
            *state.findings,
            *invalid(state.measurements, source),
            *foreign(state.noise, source),
        ),
        state.header,
    )


@dataclass(slots=True)
class _Table:
    title: osu_titles.Title
    place: Place
    options: dict[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()  # of a matrix (mbw_mr -V): one column each
    matrix: str = "bandwidth"  # what the matrix holds
    rows: int = 0


@dataclass(slots=True)
class _State:
    source: str
    tables: int = 0
    table: _Table | None = None
    measurements: list[Measurement] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    crashes: list[tuple[int, str]] = field(default_factory=list)
    noise: list[tuple[int, str]] = field(default_factory=list)
    header: dict[str, str] = field(default_factory=dict)
    threads: dict[str, str] = field(default_factory=dict)  # of no table yet

    def open_table(self, title: osu_titles.Title, place: Place) -> None:
        self.close_table()
        self.tables += 1
        self.table = _Table(title, place)
        if title.buffers != "host":
            self.table.options["buffers"] = title.buffers
        if title.managed:
            self.table.options["memory"] = "managed"
        self.take_threads()
        self.say("version", title.version, place)
        if not title.known:
            self.find(Level.INFO, "unknown-title", f"{place}: benchmark named by its title",
                      "it is compared only with results of the same title")  # fmt: skip

    def close_table(self) -> None:
        table = self.table
        if table and table.title.program == "hello":
            self.find(Level.INFO, "no-figures", f"{table.place}: hello prints no figures")
        elif table and not table.rows:
            self.find(Level.ERROR, "empty-table", f"{table.place}: a table without a row",
                      "the program ended before its first value")  # fmt: skip
        self.table = None

    def take_threads(self) -> None:
        """Give the open table the threads that stand above it, or between its title and header."""
        if self.table and self.table.title.program in THREADED:
            self.table.options |= self.threads
        self.threads = {}

    def say(self, key: str, value: str, place: Place) -> None:
        """Keep what the file says of itself; two layouts in one file cannot be told apart."""
        if self.header.setdefault(key, value) == value:
            return
        if key == "version":
            self.header[key] = "several"
        else:
            place.refuse(f"{key} is {value} here and {self.header[key]} above",
                         "split the file: one layout each")  # fmt: skip

    def find(self, level: Level, code: str, seen: str, why: str = "") -> None:
        if not any(f.code == code and f.seen == seen for f in self.findings):
            self.findings.append(Finding(level, code, seen, why))


def _line(line: str, place: Place, state: _State, *, last: bool) -> None:
    if title := osu_titles.read(line):
        before = line.split("# ", 1)[0]
        if before.strip():
            state.noise.append((place.line, before))
        state.open_table(title, place)
    elif CRASH.search(line):
        state.crashes.append((place.line, line))
    elif not _remark(line, place, state) and not _table_line(line, place, state, last=last):
        state.noise.append((place.line, line))


def _remark(line: str, place: Place, state: _State) -> bool:
    """Whether the line is one of the known remarks; what it says goes into the options."""
    if found := BATCH.fullmatch(line.strip()):
        state.say(found[1].lower(), str(whole(found[2], place, found[1])), place)
        return True
    if found := THREADS.fullmatch(line.strip()):
        state.threads[found[1].lower() + "s"] = str(whole(found[2], place, "the threads"))
        return True
    table = state.table
    if table is None:
        return False
    if found := DATATYPE.fullmatch(line):
        table.options["datatype"] = found[1]
        table.matrix = "bandwidth"
    elif found := WINDOW.match(line):
        table.options["window"] = found[1]
    elif found := SYNC.match(line):
        table.options["sync"] = found[1].replace("/", "-")
    elif found := PAIRS.match(line):
        _put(table.options, "pairs", found[1], "1")
        _put(table.options, "window", found[2], DEFAULT_WINDOW)
    elif found := SIDES.match(line):
        _sides(table.options, found[1].upper(), found[2].upper())
    elif found := MATRIX.match(line):
        table.matrix = "message_rate" if "Rate" in found[1] else "bandwidth"
    elif (found := WINDOWS.fullmatch(line)) and table.options.get("window") == "varied":
        table.windows = tuple(found[1].split())
    else:
        return line.startswith(REMARKS)
    return True


def _put(options: dict[str, str], key: str, value: str, default: str) -> None:
    if value != default:
        options[key] = value


def _sides(options: dict[str, str], left: str, right: str) -> None:
    """Buffers of both sides: a device build measures the host's with H H."""
    if left == right == "H":
        options.pop("buffers", None)
    elif (left, right) != ("D", "D"):
        options["sides"] = f"{left}-{right}"


def _table_line(line: str, place: Place, state: _State, *, last: bool) -> bool:
    """Whether the line is a header or a row of the open table."""
    table = state.table
    if table is None:
        return False
    if found := INIT.fullmatch(line.strip()):
        state.say("processes", str(whole(found[1], place, "nprocs")), place)
        low, high, mean = (number(found[i], place, "a time") for i in (2, 3, 4))
        benchmark = _benchmark(table, table.options)
        step = printed_step(found[4])
        state.measurements.append(
            Measurement(benchmark, "init_time", 0, mean, mean, low, high, resolution=step)
        )
        table.rows += 1
        return True
    if header := osu_columns.read_header(line, place):
        broken = table.columns == ("size",) and not table.rows  # something was injected into it
        table.columns = (*table.columns, *header.columns) if broken else header.columns
        if not table.rows:
            state.take_threads()
        if header.injected:
            state.noise.append((place.line, header.injected))
        return True
    words = line.split()
    if table.windows:
        return _matrix_row(words, place, table, state)
    if not osu_columns.is_row(words, table.columns):
        if table.columns and words[0].isdigit():
            state.find(Level.WARNING, "unread-row", f"{place}: not read: {line.strip()[:120]}",
                       "something was printed into a row; its value is missing")  # fmt: skip
            return True
        return False
    if last and osu_columns.is_cut(words, table.columns):
        seen = f"{place}: the last row is not whole: {line.strip()}"
        state.find(Level.WARNING, "cut-short", seen, "the file was cut off; the row is left out")
        return True
    cells = osu_columns.assign(words, table.columns)
    if cells is None:
        place.refuse(f"{len(words)} values in a row of {len(table.columns)} columns")
    if len(cells) != len(table.columns):
        state.find(Level.INFO, "header-differs", f"{table.place}: rows have other columns than "
                   "the header; a known defect of this program")  # fmt: skip
    state.measurements.extend(_measurements(cells, place, table))
    table.rows += 1
    return True


def _matrix_row(words: list[str], place: Place, table: _Table, state: _State) -> bool:
    if not osu_columns.is_row(words, ("size",)):
        return False
    if len(words) != len(table.windows) + 1:
        place.refuse(f"{len(words)} values in a row of {len(table.windows) + 1} columns")
    size = whole(words[0], place, "the size")
    for window, word in zip(table.windows, words[1:], strict=True):
        options = {k: v for k, v in table.options.items() if k != "window"}
        _put(options, "window", window, DEFAULT_WINDOW)
        value = number(word, place, "the value")
        benchmark = _benchmark(table, options)
        state.measurements.append(
            Measurement(benchmark, table.matrix, size, value, value, resolution=printed_step(word))
        )
    table.rows += 1
    return True


def _benchmark(table: _Table, options: dict[str, str]) -> Benchmark:
    chosen = dict(options)
    reduction = "reduce" in table.title.program
    datatype = chosen.pop("datatype", OLD_REDUCTION if reduction else "MPI_CHAR")
    _put(chosen, "datatype", datatype, "MPI_CHAR")
    return Benchmark("osu", table.title.program, tuple(sorted(chosen.items())))


def _measurements(cells: dict[str, str], place: Place, table: _Table) -> list[Measurement]:
    """The values of one row: one for each column that is a result of its own."""
    read = {
        name: whole(word, place, name) if name in osu_columns.WHOLE else number(word, place, name)
        for name, word in cells.items()
        if name != "validation"
    }
    outcome = cells.get("validation")
    if outcome is not None and outcome not in osu_columns.VALIDATIONS:
        place.refuse(f"the validation is {outcome!r}, not Pass or Fail")
    valid = None if outcome is None else osu_columns.VALIDATIONS[outcome]
    # -D measures a layout with gaps; the column is the only sign of it
    options = table.options | ({"ddt": "yes"} if "transmit" in read else {})
    # Overall contains a computation as long as the communication: not a latency like the others
    overall = options | {"time": "overall"}
    found = [
        Measurement(
            benchmark=_benchmark(table, overall if column == "overall" else options),
            metric=metric,
            size=int(read.get("size", 0)),
            value=read[column],
            mean=read[column],
            minimum=read.get(low),
            maximum=read.get(high),
            p90=read.get("p90") if tails else None,
            p99=read.get("p99") if tails else None,
            iterations=int(read["iterations"]) if "iterations" in read else None,
            valid=valid,
            resolution=printed_step(cells[column]),
        )
        for column, metric, low, high, tails in RESULTS
        if column in read
    ]
    if not found:
        place.refuse("a row without a latency or a bandwidth")
    return found
