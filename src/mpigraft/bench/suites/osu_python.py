"""Output of mpi4py's own `osu_*.py`, which are OSU's benchmarks written in Python.

Their titles have no `OSU` and no version, and every one of them has the header `Latency [us]`, also
those that print MB/s below it: what a value is follows from the title. The option `binding` of a
benchmark keeps them apart from OSU's programs in C. Source: `demo/` of mpi4py 4.1.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from mpigraft.bench.suites import osu_titles
from mpigraft.bench.suites.base import (
    Parsed,
    Place,
    Reading,
    number,
    printed_step,
    text_lines,
    whole,
)
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Benchmark, Finding, Measurement

TITLE = re.compile(rb"^# MPI [\w -]+ Test\r?$", re.MULTILINE)
HEADER = re.compile(r"# Size \[B\]\s+\w+ \[[\w/]+\]")
BATCH = re.compile(r"== (Nodes|Processes) = (\d+)")
ROW = re.compile(r"\s*(\d+)\s+(\d+\.\d+)")
BANDWIDTHS = ("bw", "bibw")


@dataclass(slots=True)
class _State(Reading):
    program: str = ""
    place: Place | None = None
    rows: int = 0

    def close_table(self) -> None:
        if self.place and not self.rows:
            self.add(Finding.of("empty-table", place=self.place))


def parse(data: bytes, *, source: str) -> Parsed:
    """Return all values, in the file's order. A last row that was cut in its number is a
    finding."""
    state = _State(source)
    for line, place, last in text_lines(data, source):
        title = osu_titles.read(f"# OSU {line[2:]} v0") if TITLE.fullmatch(line.encode()) else None
        if title:
            state.close_table()
            state.program, state.place, state.rows = title.program, place, 0
            state.begin(place)
        elif state.ends(line, place):
            continue
        elif (match := ROW.fullmatch(line)) and state.program:
            half = not re.search(r"\.\d\d$", line)
            if last and half:
                state.cut(place, line)
                continue
            state.row(line, half=half)
            try:
                state.measurements.append(_measurement(state.program, match[1], match[2], place))
            except UsageError as error:
                state.spoil(place, error)
            state.rows += 1
        elif match := BATCH.fullmatch(line.strip()):
            state.header[match[1].lower()] = match[2][:18]
        elif not HEADER.fullmatch(line):
            state.other(line, place)
    state.close_table()
    return state.parsed()


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
