"""Rows as CSV and as JSON, and back.

A spreadsheet runs a cell that begins with = + - or @ as a formula, and the names in a campaign are
other people's text. So a text that begins like that, or with an apostrophe, has an apostrophe
before it in CSV, which reading takes away.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any

from mpigraft.bench.exchange.columns import COLUMNS, KINDS, MARK, NAMES, VERSION, Row, refuse
from mpigraft.core.serialize import canonical

LONGEST_CELL = 256 * 1024 * 1024  # evidence of thousands of ranks
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "'", "|")
QUOTED = (*FORMULA, "%")  # exports of before have it before a percent sign too
TRUTH = {"true": True, "false": False}


def write_csv(rows: Iterable[Row], file: IO[bytes]) -> None:
    """Write rows with a header, in the order of COLUMNS, as RFC 4180 has it."""
    writer = csv.writer(_Encoded(file), lineterminator="\r\n")
    writer.writerow(NAMES)
    for row in rows:
        writer.writerow([_written(row.get(name), KINDS[name]) for name in NAMES])


class _Encoded:
    """A file of bytes that takes text, without TextIOWrapper's closing."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(text.encode())


def _written(value: Any, kind: str) -> str:
    if value is None:
        return ""
    if kind == "document":
        return canonical(value)
    if kind == "truth":
        return "true" if value else "false"
    if kind in ("whole", "number"):
        return repr(value)
    text = str(value)
    return f"'{text}" if text.startswith(FORMULA) else text


def read_csv(lines: Iterable[str], source: str) -> Iterator[Row]:
    """Read rows back. Columns of other names are passed over: a spreadsheet may have added some.
    Raises UsageError for a file of another version, and for a cell that is not of its column."""
    csv.field_size_limit(LONGEST_CELL)
    reader = csv.reader(lines, strict=True)
    try:
        names = next(reader, [])
        for number, cells in enumerate(reader, 1):
            if not cells:
                continue
            if len(cells) != len(names):
                raise refuse(source, number, f"it has {len(cells)} of {len(names)} cells")
            pairs = zip(names, cells, strict=True)
            row = {n: _read(t, n, source, number) for n, t in pairs if t and n in KINDS}
            check_version(row, source, number)
            yield row
    except csv.Error as error:
        raise refuse(source, reader.line_num, str(error)) from error
    except UnicodeDecodeError as error:
        raise refuse(source, reader.line_num, "it is not UTF-8") from error


def check_version(row: Row, source: str, number: int) -> None:
    """Raise UsageError for a row of another version of this format, or of none."""
    if row.get(MARK) != VERSION:
        problem = f"it is of version {str(row.get(MARK))[:20]}; this mpigraft reads {VERSION}"
        raise refuse(source, number, problem)


READERS: dict[str, Callable[[str], Any]] = {
    "whole": int,
    "number": float,
    "truth": lambda text: TRUTH[text.lower()],  # a spreadsheet writes TRUE
    "document": json.loads,
    "text": lambda text: text[1:] if text[0] == "'" and text[1:].startswith(QUOTED) else text,
}


def _read(text: str, name: str, source: str, number: int) -> Any:
    try:
        return READERS[KINDS[name]](text)
    except (ValueError, KeyError, RecursionError) as error:
        problem = f"{name} is {text[:40]!r}, which is no {KINDS[name]}"
        raise refuse(source, number, problem) from error


def write_json(rows: Iterable[Row], file: IO[bytes]) -> None:
    """Write an object with the columns and their units, and the rows, one a line; cells that have
    nothing are left out."""
    columns = [{"name": c.name, "kind": c.kind, "unit": c.unit} for c in COLUMNS]
    file.write(f'{{"{MARK}":{VERSION},"columns":{json.dumps(columns)},"rows":[\n'.encode())
    between = b""
    for row in rows:
        cells = {name: row[name] for name in NAMES if row.get(name) is not None}
        file.write(between + json.dumps(cells, allow_nan=False, separators=(",", ":")).encode())
        between = b",\n"
    file.write(b"\n]}\n")


def read_json(data: bytes, source: str) -> Iterator[Row]:
    """Read rows back. Raises UsageError."""
    try:
        document = json.loads(data)
        rows = document["rows"]
        if document[MARK] != VERSION or not isinstance(rows, list):
            raise ValueError(f"it is of version {str(document[MARK])[:20]}")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise refuse(source, 0, f"it is no export: {str(error)[:100]}") from error
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            raise refuse(source, number, "it is no object")
        check_version(row, source, number)
        yield {name: cell for name, cell in row.items() if name in KINDS}
