"""Output of mpi4py's own `osu_*.py`, which are OSU's benchmarks written in Python.

Their titles have no `OSU` and no version, and every one of them has the header `Latency [us]`, also
those that print MB/s below it: what a value is follows from the title. The option `binding` of a
benchmark keeps them apart from OSU's programs in C. Source: `demo/` of mpi4py 4.1.
"""

from __future__ import annotations

import re

from mpigraft.bench.suites import osu_titles
from mpigraft.bench.suites.base import Parsed, Place, Reading, number, printed_step, whole
from mpigraft.core.model import Benchmark, Measurement

TITLE = re.compile(rb"^# MPI [\w -]+ Test\r?$", re.MULTILINE)
HEADER = re.compile(r"# Size \[B\]\s+\w+ \[[\w/]+\]")
BATCH = re.compile(r"== (Nodes|Processes) = (\d+)")
ROW = re.compile(r"\s*(\d+)\s+(\d+\.\d+)")
BANDWIDTHS = ("bw", "bibw")


def parse(data: bytes, *, source: str) -> Parsed:
    """Return all values, in the file's order. A last row that was cut in its number is a
    finding."""
    state = Reading(source)
    state.read(data, _line, "")
    return state.parsed()


def _line(line: str, place: Place, state: Reading, *, last: bool) -> None:
    title = osu_titles.read(f"# OSU {line[2:]} v0") if TITLE.fullmatch(line.encode()) else None
    if title:
        state.open_table(title.program, place)
    elif state.ends(line, place):
        return
    elif (match := ROW.fullmatch(line)) and state.table:
        half = not re.search(r"\.\d\d$", line)
        if last and half:
            state.cut(place, line)
            return
        state.row(line, half=half)
        state.table.rows += 1
        state.measurements.append(_measurement(state.table.name, match[1], match[2], place))
    elif match := BATCH.fullmatch(line.strip()):
        state.header[match[1].lower()] = match[2][:18]
    elif not HEADER.fullmatch(line):
        state.other(line, place)


def _measurement(program: str, size: str, value: str, place: Place) -> Measurement:
    read = number(value, place, "the value")
    return Measurement(
        Benchmark("osu", program, (("binding", "mpi4py"),)),
        "bandwidth" if program in BANDWIDTHS else "latency",
        whole(size, place, "the size"),
        read,
        mean=read,
        resolution=printed_step(value),
    )
