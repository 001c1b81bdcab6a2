"""Output of the Intel MPI Benchmarks, parts MPI1, P2P, NBC, RMA, EXT and MT.

A block starts at `# Benchmarking NAME`, says how many processes took part, and ends at the next.
Its header has no `#` of its own but columns that start with one: `#bytes #repetitions t[usec]`.
Sources: the output function of IMB 2018 to 2021 and recorded files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mpigraft.model import Benchmark, Finding, Level, Measurement
from mpigraft.run import clean
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

BANNER = re.compile(
    r"#\s+Intel ?\(R\) MPI Benchmarks? (?P<version>\S+?)(?: Update \d+)?,"
    r" (?:IMB-)?(?P<part>[\w-]+) part"
)
BLOCK = re.compile(r"# Benchmarking:? (?P<name>[\w-]+)\s*$")
PROCESSES = re.compile(r"# #processes = (\d+)(?:; .*)?")
GROUPS = re.compile(r"# \( (\d+) groups of (\d+) processes each running simultaneous \)")
WAITING = re.compile(r"# \( (\d+) additional process(?:es)? waiting in MPI_Barrier\)")
MODE = re.compile(r"#\s+MODE: ([\w-]+)")
DATATYPE = re.compile(r"# MPI_Datatype( for reductions)?\s+:\s+(MPI_\w+)")
NO_VALUE = re.compile(r"\b(out-of-mem|time-out|int-overflow)\.;(.*)")
ROW_START = re.compile(r"\s*\d+\s")
DEFAULTS = {"": "MPI_BYTE", " for reductions": "MPI_FLOAT"}
METHODS_OF_THEIR_OWN = ("P2P", "MT")  # their PingPong is not MPI-1's
DECIMAL_MEGABYTES = 2018  # the first version known to print MB of 1e6 bytes; 4.1 had 2^20

COLUMNS = {
    "#bytes": "size",
    "#repetitions": "iterations",
    "t[usec]": "latency",
    "t_min[usec]": "minimum",
    "t_max[usec]": "maximum",
    "t_avg[usec]": "latency",
    "Mbytes/sec": "bandwidth",
    "Msg/sec": "rate",
    "t_ovrl[usec]": "overall",
    "t_pure[usec]": "pure",
    "t_CPU[usec]": "compute",
    "overlap[%]": "overlap",
    "defects": "defects",
    "Group": "group",
}
WHOLE = ("size", "iterations", "group")
RESULTS = (
    ("latency", "latency"),
    ("pure", "latency"),
    ("overall", "latency"),
    ("bandwidth", "bandwidth"),
    ("rate", "message_rate"),
    ("overlap", "overlap"),
)


def parse(data: bytes, *, source: str) -> Parsed:
    """All values in one file. `value` of a collective is t_avg, as OSU has it, with t_min and
    t_max beside it. Rows that ran out of memory or time are findings. `header` has version, part
    and the world's size as processes. Raises UsageError for a file without a block and for a
    header or row that is damaged."""
    state = _State(source)
    lines = data.split(b"\n")
    for index, raw in enumerate(lines):
        line = clean(raw).rstrip("\r ")
        if line.strip(" #-"):
            last = index == len(lines) - 1
            _line(line, Place(source, index + 1), state, last=last)
    state.close_block()
    if not state.blocks:
        Place(source, len(lines)).refuse(
            "no block of the Intel MPI Benchmarks in this file",
            "give the program's whole stdout, with its lines '# Benchmarking NAME'",
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
class _Block:
    name: str
    place: Place
    processes: int = 0
    options: dict[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] = ()
    rows: int = 0


@dataclass(slots=True)
class _State:
    source: str
    blocks: int = 0
    block: _Block | None = None
    preamble: bool = True
    options: dict[str, str] = field(default_factory=dict)  # of the whole run
    header: dict[str, str] = field(default_factory=dict)
    measurements: list[Measurement] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    crashes: list[tuple[int, str]] = field(default_factory=list)
    noise: list[tuple[int, str]] = field(default_factory=list)

    def close_block(self) -> None:
        if self.block and not self.block.rows:
            self.find(Level.ERROR, "empty-table", f"{self.block.place}: a block without a row")
        self.block = None

    def find(self, level: Level, code: str, seen: str, why: str = "", mend: str = "") -> None:
        finding = Finding(level, code, seen, why, mend)
        if finding not in self.findings:
            self.findings.append(finding)

    def world(self, size: int) -> None:
        """The world is as large as the largest set of processes that a block speaks of."""
        self.header["processes"] = str(max(size, int(self.header.get("processes", "0"))))


def _line(line: str, place: Place, state: _State, *, last: bool) -> None:
    if CRASH.search(line):
        state.crashes.append((place.line, line))
    elif found := BANNER.match(line):
        state.close_block()
        state.header |= {"version": found["version"], "part": found["part"]}
        state.preamble, state.options = True, {}
        if found["part"] in METHODS_OF_THEIR_OWN:
            state.options["part"] = found["part"]
    elif found := BLOCK.match(line):
        state.close_block()
        state.blocks += 1
        state.preamble = False
        state.block = _Block(found["name"], place, options=dict(state.options))
    elif found := DATATYPE.match(line):
        if found[2] != DEFAULTS[found[1] or ""]:
            state.options["reduction" if found[1] else "datatype"] = found[2]
    elif state.block is not None:
        _block_line(line, place, state.block, state, last=last)
    elif not (state.preamble and line.startswith("#")):
        state.noise.append((place.line, line))


def _block_line(line: str, place: Place, block: _Block, state: _State, *, last: bool) -> None:
    if found := PROCESSES.match(line):
        block.processes = whole(found[1], place, "the number of processes")
        state.world(block.processes)
    elif found := GROUPS.match(line):
        groups, size = (whole(found[i], place, "the number of groups") for i in (1, 2))
        block.processes = groups * size
        block.options["groups"] = f"{found[1]}x{found[2]}"
        state.world(block.processes)
    elif found := WAITING.match(line):
        # the idle ones are a part of the world; how many took part is a part of the benchmark
        block.options["processes"] = str(block.processes)
        state.world(block.processes + whole(found[1], place, "the number of processes"))
    elif found := MODE.match(line):
        block.options["mode"] = found[1].lower()
    elif "#repetitions" in line:
        block.columns = _header(line, place)
    elif found := NO_VALUE.search(line):
        seen = f"{place}: {block.name} at {line.split(maxsplit=1)[0]} B: {found[1]}{found[2]}"
        state.find(Level.WARNING, found[1], seen, "this size has no value",
                   "give IMB more with -mem or -time")  # fmt: skip
        block.rows += 1
    elif block.columns and ROW_START.match(line + " "):
        _row(line.split(), place, block, state, last=last)
    elif "All processes entering MPI_Finalize" in line:
        state.close_block()
        state.preamble = True
    elif not line.startswith("#"):
        state.noise.append((place.line, line))


def _header(line: str, place: Place) -> tuple[str, ...]:
    words = line.split()
    unknown = [w for w in words if w not in COLUMNS]
    if unknown:
        place.refuse(f"an unknown column in the header: {unknown[0]!r}")
    columns = tuple(COLUMNS[w] for w in words)
    if len(set(columns)) != len(columns):
        place.refuse("the header names a column twice")
    return columns


def _row(words: list[str], place: Place, block: _Block, state: _State, *, last: bool) -> None:
    if last and len(words) <= len(block.columns) and not re.search(r"\.\d\d$|^\d+$", words[-1]):
        words = words[:-1]  # cut in the middle of a number
    if last and len(words) < len(block.columns):
        state.find(Level.WARNING, "cut-short", f"{place}: the last row is not whole",
                   "the file was cut off; the row is left out")  # fmt: skip
        return
    if len(words) != len(block.columns):
        place.refuse(f"{len(words)} values in a row of {len(block.columns)} columns")
    cells = dict(zip(block.columns, words, strict=True))
    read = {
        name: whole(word, place, name) if name in WHOLE else number(word, place, name)
        for name, word in cells.items()
    }
    state.measurements.extend(_measurements(read, cells, block, place, state))
    block.rows += 1


def _measurements(
    read: dict[str, float], cells: dict[str, str], block: _Block, place: Place, state: _State
) -> list[Measurement]:
    size = int(read.get("size", 0))
    options = block.options | ({"group": str(int(read["group"]))} if "group" in read else {})
    found = []
    for column, metric in RESULTS:
        if column not in read or (column in ("bandwidth", "rate") and size == 0):
            continue  # nothing moves in an empty message
        if column == "bandwidth" and not _decimal(state.header.get("version", "")):
            state.find(
                Level.WARNING, "unit-unknown",
                f"{state.source}: bandwidths of IMB {state.header.get('version', 'of no version')}",
                "versions before 2018 counted a megabyte as 2^20 bytes; only times are kept",
            )  # fmt: skip
            continue
        chosen = options | ({"time": "overall"} if column == "overall" else {})
        extremes = column == "latency"
        found.append(
            Measurement(
                Benchmark("imb", block.name, tuple(sorted(chosen.items()))),
                metric,
                size,
                read[column],
                mean=read[column],
                minimum=read.get("minimum") if extremes else None,
                maximum=read.get("maximum") if extremes else None,
                iterations=int(read["iterations"]),
                valid=None if "defects" not in read else read["defects"] == 0,
                resolution=printed_step(cells[column]),
            )
        )
    if not found and size:
        state.find(Level.WARNING, "no-result", f"{place}: a row without a result")
    return found


def _decimal(version: str) -> bool:
    year = version.split(".", maxsplit=1)[0]
    return year.isascii() and year.isdigit() and len(year) == 4 and int(year) >= DECIMAL_MEGABYTES
