"""Output of the Intel MPI Benchmarks, parts MPI1, P2P, NBC, RMA, EXT and MT.

A block starts at `# Benchmarking NAME`, says how many processes took part, and ends at the next.
Its header has no `#` of its own but columns that start with one: `#bytes #repetitions t[usec]`.
Sources: the output function of IMB 2018 to 2021 and recorded files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mpigraft.bench.suites.base import (
    OpenTable,
    Parsed,
    Place,
    Reading,
    number,
    printed_step,
    whole,
)
from mpigraft.bench.suites.imb_options import key_options
from mpigraft.core.model import Benchmark, Finding, Measurement

BANNER = re.compile(
    r"#\s+Intel ?\(R\) MPI Benchmarks? (?P<version>\S+?)(?: Update \d+)?,"
    r" (?:IMB-)?(?P<part>[\w-]+) part(?P<gpu> \(GPU\))?"
)
SEQUENCE = "# Calling sequence was:"  # the words of the command line follow, up to a heading
HEADING = re.compile(r"#\s+(?:(?:Minimum|Maximum) message|Message lengths|List of |MPI_\w+ )")
BLOCK = re.compile(r"# Benchmarking:? (?P<name>[\w-]+)\s*$")
PROCESSES = re.compile(r"# #processes = (\d+)(?:; .*)?")
GROUPS = re.compile(r"# \( (\d+) groups of (\d+) processes each running simultaneous \)")
WAITING = re.compile(r"# \( (\d+) additional process(?:es)? waiting in MPI_Barrier\)")
MODE = re.compile(r"#\s+MODE: ([\w-]+)")
DATATYPE = re.compile(r"# MPI_Datatype( for reductions)?\s+:\s+(MPI_\w+)")
NO_VALUE = re.compile(r"\b(out-of-mem|time-out|int-overflow)\.;(.*)")
ROW_START = r"\s*\d+\s"
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
INTEGRAL = (*WHOLE, "rate")  # columns whose numbers may have no decimals
RESULTS = (
    ("latency", "latency"),
    ("pure", "latency"),
    ("overall", "latency"),
    ("bandwidth", "bandwidth"),
    ("rate", "message_rate"),
    ("overlap", "overlap"),
)


def parse(data: bytes, *, source: str) -> Parsed:
    """Return all values in one file. `value` of a collective is t_avg, as OSU has it, with t_min
    and t_max beside it. Rows that ran out of memory or time are findings, and so are damaged rows
    and blocks. Options of the calling sequence that change what is measured are in the key.
    `header` has version, part and the world's size as processes. Raises UsageError for a file
    without a block."""
    state = _ImbState(source)
    state.read(data, _line, ROW_START, "#-")
    if not state.spans:
        Place(source, data.count(b"\n") + 1).refuse(
            "no block of the Intel MPI Benchmarks in this file",
            "give the program's whole stdout, with its lines '# Benchmarking NAME'",
        )
    return state.parsed()


@dataclass(slots=True)
class _ImbState(Reading):
    processes: int = 0  # of the open block
    preamble: bool = True
    options: dict[str, str] = field(default_factory=dict)  # of the whole run
    words: list[str] | None = None  # of the calling sequence, while it is read

    def close_sequence(self, place: Place) -> None:
        """Take the calling sequence's facts about all that this run measures."""
        chosen, unknown = key_options((self.words or [])[1:])
        self.words = None
        if self.options.get("buffers"):  # of a program for GPUs
            memory = chosen.pop("mem_alloc_type", "device")
            if memory in ("host", "cpu"):
                self.options.pop("buffers")
            elif memory != "device":
                self.options["memory"] = memory
        self.options |= chosen
        if unknown:
            listed = ", ".join(f"-{name}" for name in unknown)
            self.add(Finding.of("imb-option-unknown", place=place, options=listed))

    def world(self, size: int) -> None:
        """Keep the size of the world, which is as large as the largest set of processes that a
        block names."""
        self.header["processes"] = str(max(size, int(self.header.get("processes", "0"))))


def _line(line: str, place: Place, state: _ImbState, *, last: bool) -> None:
    if state.ends(line, place):
        return
    if state.words and (HEADING.match(line) or BLOCK.match(line)):
        state.close_sequence(place)
    if match := BANNER.match(line):
        state.close_table()
        state.header |= {"version": match["version"], "part": match["part"]}
        state.preamble, state.options = True, {}
        if match["part"].removesuffix("-GPU") in METHODS_OF_THEIR_OWN:
            state.options["part"] = match["part"].removesuffix("-GPU")
        if match["gpu"] or match["part"].endswith("-GPU"):
            state.options["buffers"] = "gpu"
    elif line.startswith(SEQUENCE):
        state.words = []
    elif state.words is not None and not HEADING.match(line) and not BLOCK.match(line):
        state.words += line.lstrip("# ").split()
    elif match := BLOCK.match(line):
        state.preamble, state.processes = False, 0
        state.open_table(match["name"], place).options |= state.options
    elif match := DATATYPE.match(line):
        if match[2] != DEFAULTS[match[1] or ""]:
            state.options["reduction" if match[1] else "datatype"] = match[2]
    elif state.table is not None:
        _block_line(line, place, state.table, state, last=last)
    elif not (state.preamble and line.startswith("#")):
        state.other(line, place)


def processes_in(line: str) -> int:
    """Return how many processes a line says that there are at least; 0 if it says nothing of
    them."""
    if match := PROCESSES.match(line) or WAITING.match(line):
        return int(match[1][:18])
    if match := GROUPS.match(line):
        return int(match[1][:9]) * int(match[2][:9])
    return 0


def _block_line(line: str, place: Place, block: OpenTable, state: _ImbState, *, last: bool) -> None:
    if match := PROCESSES.match(line):
        state.processes = whole(match[1], place, "the number of processes")
        state.world(state.processes)
    elif match := GROUPS.match(line):
        groups, size = (whole(match[i], place, "the number of groups") for i in (1, 2))
        state.processes = groups * size
        block.options["groups"] = f"{match[1]}x{match[2]}"
        state.world(state.processes)
    elif match := WAITING.match(line):
        # the idle ones are a part of the world; how many took part is a part of the benchmark
        block.options["processes"] = str(state.processes)
        state.world(state.processes + whole(match[1], place, "the number of processes"))
    elif match := MODE.match(line):
        block.options["mode"] = match[1].lower()
    elif "#repetitions" in line:
        block.columns = () if block.lost else _header(line, place)
    elif match := NO_VALUE.search(line):
        state.add(
            Finding.of(
                match[1],  # out-of-mem. or time-out.: what IMB calls it
                place=place,
                name=block.name,
                size=line.split(maxsplit=1)[0],
                text=f"{match[1]}{match[2]}",
            )
        )
        block.rows += 1
        state.spans[-1].explained = True
    elif block.lost and re.match(ROW_START, line + " "):
        place.refuse(f"a row of a block that was not read: {line.strip()[:60]}")
    elif block.columns and re.match(ROW_START, line + " "):
        _row(line, place, block, state, last=last)
    elif "All processes entering MPI_Finalize" in line:
        state.close_table()
        state.preamble = True
    elif not line.startswith("#"):
        state.other(line, place)


def _header(line: str, place: Place) -> tuple[str, ...]:
    words = line.split()
    unknown = [w for w in words if w not in COLUMNS]
    if unknown:
        place.refuse(f"an unknown column in the header: {unknown[0]!r}")
    columns = tuple(COLUMNS[w] for w in words)
    if len(set(columns)) != len(columns):
        place.refuse("the header names a column twice")
    return columns


def _row(line: str, place: Place, block: OpenTable, state: _ImbState, *, last: bool) -> None:
    words = line.split()
    integral = block.columns[-1] in INTEGRAL
    ending = r"\.\d\d$|^\d+$" if integral else r"\.\d\d$"
    whole_row = re.search(ending, words[-1]) and len(words) == len(block.columns)
    numeric = re.fullmatch(r"[\d.]+", words[-1], re.ASCII)
    half = numeric is not None and len(words) <= len(block.columns) and not whole_row
    if last and (half or (integral and state.narrower(line))):
        state.cut(place, line)
        return
    state.row(line, half=half)
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
    read: dict[str, float], cells: dict[str, str], block: OpenTable, place: Place, state: _ImbState
) -> list[Measurement]:
    size = int(read.get("size", 0))
    options = block.options | ({"group": str(int(read["group"]))} if "group" in read else {})
    measurements = []
    for column, metric in RESULTS:
        if column not in read or (column in ("bandwidth", "rate") and size == 0):
            continue  # nothing moves in an empty message
        if column == "bandwidth" and not _decimal(state.header.get("version", "")):
            version = state.header.get("version", "of no version")
            state.add(Finding.of("unit-unknown", source=state.source, version=version))
            continue
        chosen = options | ({"time": "overall"} if column == "overall" else {})
        extremes = column == "latency"
        measurements.append(
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
    if not measurements and size:
        state.add(Finding.of("no-result", place=place))
    return measurements


def _decimal(version: str) -> bool:
    year = version.split(".", maxsplit=1)[0]
    return year.isascii() and year.isdigit() and len(year) == 4 and int(year) >= DECIMAL_MEGABYTES
