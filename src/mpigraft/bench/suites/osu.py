"""Output of the OSU Micro-Benchmarks, versions 5 to 7.5, as people keep it.

A file may hold several tables, loader warnings, batch headers and the remains of a crash. Every
line is a title, a known remark, a header, a row, or is in a finding: nothing is lost in
silence. A row that cannot be read is left out, and the rows under a header that cannot be.

`value` is the column that the program is known by (the average), since that is what published
tables have; percentiles other than 90 and 99 and the parts of Overall stay in the file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from mpigraft.bench.suites import osu_columns, osu_python, osu_titles
from mpigraft.bench.suites.base import (
    VALIDATION,
    OpenTable,
    Parsed,
    Place,
    Reading,
    number,
    printed_step,
    whole,
)
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark, Finding, Measurement

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
BATCH = osu_python.BATCH
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
    """Return all values in one file, benchmark by benchmark in the file's order.

    Options that change what is measured are part of the benchmark's key: buffers other than the
    host's, datatype, window creation and synchronization, pairs and window, threads. `header`
    has version, and nodes and processes where the file says them. Damaged rows and headers are a
    finding. Raises UsageError for a file without a table and for one with several layouts.
    """
    if osu_python.TITLE.search(data) and not osu_titles.TITLE.search(data.decode("latin-1")):
        return osu_python.parse(data, source=source)
    state = _OsuState(source)
    state.read(data, _line, r"\s*\d")
    if not state.spans:
        Place(source, data.count(b"\n") + 1).refuse(
            "no table of the OSU Micro-Benchmarks in this file",
            "give the benchmark's whole stdout, with its title line (# OSU MPI ... Test v7.5)",
        )
    return state.parsed()


@dataclass(slots=True)
class _OsuState(Reading):
    threads: dict[str, str] = field(default_factory=dict)  # of no table yet
    windows: tuple[str, ...] = ()  # of a matrix (mbw_mr -V): one column each
    matrix: str = "bandwidth"  # what the matrix holds

    def take_title(self, title: osu_titles.Title, place: Place) -> None:
        table = self.open_table(title.program, place)
        self.windows, self.matrix = (), "bandwidth"
        if title.buffers != "host":
            table.options["buffers"] = title.buffers
        if title.managed:
            table.options["memory"] = "managed"
        self.take_threads()
        self.say("version", title.version, place)
        if not title.known:
            self.add(Finding.of("unknown-title", place=place))

    def close_table(self) -> None:
        if self.table and self.table.name == "hello":
            self.add(Finding.of("no-figures", place=self.table.place))
            self.table = None
        Reading.close_table(self)

    def take_threads(self) -> None:
        """Give the open table the threads that are above it, or between its title and header."""
        if self.table and self.table.name in THREADED:
            self.table.options |= self.threads
        self.threads = {}

    def parsed(self) -> Parsed:
        """Return the parsed output. The programs' own check of MPI_CHAR sums is known to be wrong:
        where no other failed, neither the launch nor the MPI did."""
        whole = Reading.parsed(self)
        failed = [m.benchmark for m in self.measurements if m.valid is False]
        if not failed or not all(map(_sums_characters, failed)):
            return whole
        self.crashes = [(n, text) for n, text in self.crashes if VALIDATION not in text]
        names = ", ".join(dict.fromkeys(benchmark.key for benchmark in failed))
        self.add(Finding.of("osu-char-sums", source=self.source, names=names))
        whole = Reading.parsed(self)
        others = tuple(f for f in whole.findings if f.code != "validation-failed")
        return replace(whole, findings=others)

    def say(self, key: str, value: str, place: Place) -> None:
        """Keep a fact of the file; two layouts in one file cannot be separated."""
        if self.header.setdefault(key, value) == value:
            return
        if key == "version":
            self.header[key] = "several"
        else:
            above = self.header[key]
            raise UsageError.of("output-layouts", place=place, key=key, value=value, above=above)


def _line(line: str, place: Place, state: _OsuState, *, last: bool) -> None:
    if title := osu_titles.read(line):
        before = line.split("# ", 1)[0]
        if before.strip() and not state.ends(before, place):
            if state.table and osu_columns.is_row(before.split(), state.table.columns):
                state.row(before, half=True)
            state.noise.append((place.line, before))
        state.take_title(title, place)
    elif state.ends(line, place):
        return
    elif not _remark(line, place, state) and not _table_line(line, place, state, last=last):
        state.other(line, place)


def _remark(line: str, place: Place, state: _OsuState) -> bool:
    """Return whether the line is one of the known remarks; what it says goes into the options."""
    if match := BATCH.fullmatch(line.strip()):
        state.say(match[1].lower(), str(whole(match[2], place, match[1])), place)
        return True
    if match := THREADS.fullmatch(line.strip()):
        state.threads[match[1].lower() + "s"] = str(whole(match[2], place, "the threads"))
        return True
    table = state.table
    if table is None:
        return False
    if match := DATATYPE.fullmatch(line):
        table.options["datatype"] = match[1]
        state.matrix = "bandwidth"
    elif match := WINDOW.match(line):
        table.options["window"] = match[1]
    elif match := SYNC.match(line):
        table.options["sync"] = match[1].replace("/", "-")
    elif match := PAIRS.match(line):
        _put(table.options, "pairs", match[1], "1")
        _put(table.options, "window", match[2], DEFAULT_WINDOW)
    elif match := SIDES.match(line):
        _sides(table.options, match[1].upper(), match[2].upper())
    elif match := MATRIX.match(line):
        state.matrix = "message_rate" if "Rate" in match[1] else "bandwidth"
    elif (match := WINDOWS.fullmatch(line)) and table.options.get("window") == "varied":
        state.windows = tuple(match[1].split())
    else:
        return line.startswith(REMARKS)
    return True


def _put(options: dict[str, str], key: str, value: str, default: str) -> None:
    if value != default:
        options[key] = value


def _sides(options: dict[str, str], first: str, second: str) -> None:
    """Buffers of both sides: a device build measures the host's with H H."""
    if first == second == "H":
        options.pop("buffers", None)
    elif (first, second) != ("D", "D"):
        options["sides"] = f"{first}-{second}"


def _table_line(line: str, place: Place, state: _OsuState, *, last: bool) -> bool:
    """Return whether the line is a header or a row of the open table."""
    table = state.table
    if table is None:
        return False
    if match := INIT.fullmatch(line.strip()):
        state.say("processes", str(whole(match[1], place, "nprocs")), place)
        low, high, mean = (number(match[i], place, "a time") for i in (2, 3, 4))
        benchmark = _benchmark(table, table.options)
        step = printed_step(match[4])
        state.measurements.append(
            Measurement(benchmark, "init_time", 0, mean, mean, low, high, resolution=step)
        )
        table.rows += 1
        return True
    if header := osu_columns.read_header(line, place):
        columns, injected = header
        _take_header(columns, place, table, state)
        if injected:
            state.other(injected, place)
        return True
    words = line.split()
    if table.lost and words[0].isdigit():
        place.refuse(f"a row under a header that was not read: {line.strip()[:60]}")
    if state.windows:
        return _matrix_row(words, place, table, state)
    if not osu_columns.is_row(words, table.columns):
        if table.columns and (words[0].isdigit() or _is_glued(words, table)):
            state.add(Finding.of("unread-row", place=place, line=line.strip()[:120]))
            return True
        return False
    short = table.columns[-1] in osu_columns.WHOLE and state.narrower(line)
    if last and (short or osu_columns.is_cut(words, table.columns)):
        state.cut(place, line)
        return True
    state.row(line, half=osu_columns.is_half(words, table.columns))
    cells = osu_columns.assign(words, table.columns)
    if cells is None:
        place.refuse(f"{len(words)} values in a row of {len(table.columns)} columns")
    if len(cells) != len(table.columns):
        state.add(Finding.of("header-differs", place=table.place))
    state.measurements.extend(_measurements(cells, place, table))
    table.rows += 1
    return True


def _take_header(
    columns: tuple[str, ...], place: Place, table: OpenTable, state: _OsuState
) -> None:
    table.lost = False
    broken = table.columns == ("size",) and not table.rows  # something was injected into it
    table.columns = (*table.columns, *columns) if broken else columns
    if table.rows:
        state.begin(place)
    else:
        state.take_threads()


def _sums_characters(benchmark: Benchmark) -> bool:
    return "reduce" in benchmark.name and "datatype" not in dict(benchmark.options)


def _is_glued(words: list[str], table: OpenTable) -> bool:
    """Return whether this is a row with something glued to its size: `8x`, `[1]8`."""
    return (
        table.rows > 0
        and len(words) == len(table.columns)
        and any(character.isdigit() for character in words[0])
        and osu_columns.is_row(["8", *words[1:]], table.columns)
    )


def _matrix_row(words: list[str], place: Place, table: OpenTable, state: _OsuState) -> bool:
    if not osu_columns.is_row(words, ("size",)):
        return False
    if len(words) != len(state.windows) + 1:
        place.refuse(f"{len(words)} values in a row of {len(state.windows) + 1} columns")
    size = whole(words[0], place, "the size")
    for window, word in zip(state.windows, words[1:], strict=True):
        options = {k: v for k, v in table.options.items() if k != "window"}
        _put(options, "window", window, DEFAULT_WINDOW)
        value = number(word, place, "the value")
        benchmark = _benchmark(table, options)
        state.measurements.append(
            Measurement(benchmark, state.matrix, size, value, value, resolution=printed_step(word))
        )
    table.rows += 1
    return True


def _benchmark(table: OpenTable, options: dict[str, str]) -> Benchmark:
    chosen = dict(options)
    reduction = "reduce" in table.name
    datatype = chosen.pop("datatype", OLD_REDUCTION if reduction else "MPI_CHAR")
    _put(chosen, "datatype", datatype, "MPI_CHAR")
    return Benchmark("osu", table.name, tuple(sorted(chosen.items())))


def _measurements(cells: dict[str, str], place: Place, table: OpenTable) -> list[Measurement]:
    """Return the values of one row: one for each column that is a result of its own."""
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
    measurements = [
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
    if not measurements:
        place.refuse("a row without a latency or a bandwidth")
    return measurements
