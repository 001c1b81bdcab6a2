"""Column headers of the OSU Micro-Benchmarks and the rows below them.

A header is read by known names rather than by gaps: bandwidth percentiles are one space
apart, so splitting at two would glue them. Sources: the header functions of OMB 5.9, 7.4, 7.5.
"""

from __future__ import annotations

import re

from mpigraft.bench.suites.base import Place

NAMES = {
    "size": r"Size",
    "minimum": r"Min Latency ?\(us\)",
    "maximum": r"Max Latency ?\(us\)",
    "latency": r"(?:Avg )?Latency ?\(us\)",
    "bandwidth": r"Bandwidth ?\(MB/s\)|MB/s",
    "rate": r"Messages/s",
    "iterations": r"Iterations",
    "validation": r"Validation",
    "p": r"P(?P<percent>\d+) Tail (?:Lat\(us\)|BW\(MB/s\))",
    "overall": r"Overall\(us\)",
    "compute": r"Compute\(us\)",
    "init": r"Coll\. Init\(us\)",
    "test": r"MPI_Test\(us\)",
    "wait": r"MPI_Wait\(us\)",
    "pure": r"Pure Comm\.\(us\)",
    "pure_min": r"Min Comm\.\(us\)",
    "pure_max": r"Max Comm\.\(us\)",
    "overlap": r"Overlap\(%\)",
    "transmit": r"Transmit Size",
}
COLUMN = re.compile(
    r"\s*(?:" + "|".join(f"(?P<{k}>{v})" for k, v in NAMES.items()) + r")(?=\s|#|$)"
)
NUMERIC = re.compile(
    r"[-+]?(?:\d+(?:\.\d*)?(?:e[-+]?\d+)?|nan|inf(?:inity)?)", re.IGNORECASE | re.ASCII
)
WHOLE = ("size", "iterations", "transmit")
VALIDATIONS = {"Pass": True, "Fail": False}


def read_header(line: str, place: Place) -> tuple[tuple[str, ...], str] | None:
    """Return the columns in a line, and what was injected into it after them; None where the line
    is no header. Raises UsageError for a
    line that starts like one and goes on with a column that is not known."""
    text = line.strip()
    rest = text.lstrip("#").lstrip()
    columns: list[str] = []
    while rest and not rest.startswith("#"):
        match = COLUMN.match(rest)
        if not match:
            if not columns or not text.startswith("#"):
                return None
            place.refuse(f"an unknown column in the header: {rest[:60]!r}")
        columns.append("p" + match["percent"] if match["percent"] else match.lastgroup or "")
        rest = rest[match.end() :].lstrip()
    if len(set(columns)) != len(columns):
        place.refuse("the header names a column twice")
    return (tuple(columns), rest) if columns else None


def is_row(words: list[str], columns: tuple[str, ...]) -> bool:
    """Return whether a line could be a row: every word a number or an outcome of the validation."""
    return bool(columns) and all(NUMERIC.fullmatch(w) or w in VALIDATIONS for w in words)


def assign(words: list[str], columns: tuple[str, ...]) -> dict[str, str] | None:
    """Return each column's word, or None where words and columns do not match.

    Two defects of the programs are known, and their numbers are still certain: osu_multi_lat -z
    announces percentiles and prints none (7.4); osu_reduce -f of 7.3 prints minimum, maximum and
    iterations without announcing them (open-mpi/ompi#12318).
    """
    bare = tuple(c for c in columns if not re.fullmatch(r"p\d+", c))
    full = (*columns, "minimum", "maximum", "iterations")
    for names in (columns, bare, full if columns == ("size", "latency") else columns):
        if len(words) == len(names):
            return dict(zip(names, words, strict=True))
    return None


def is_half(words: list[str], columns: tuple[str, ...]) -> bool:
    """Return whether a whole line looks like the half of a row: `16`, `16   1.`, `16   1.0`."""
    digits = re.fullmatch(r"\d+(?:\.\d?)?", words[-1], re.ASCII) is not None
    return digits and len(words) <= len(columns) and is_cut(words, columns)


def is_cut(words: list[str], columns: tuple[str, ...]) -> bool:
    """Return whether a last line without a newline lost its end: columns are missing, or the last
    number has not the two decimals that the programs print."""
    if len(words) < len(columns):
        return assign(words, columns) is None or words[-1][-3:-2] != "."
    last = words[-1]
    return columns[-1] not in WHOLE and last not in VALIDATIONS and last[-3:-2] != "."
