"""An exported file, of whichever of the three formats."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from mpigraft.bench.exchange.columns import MARK, Row, refuse
from mpigraft.bench.exchange.parquet import read_parquet
from mpigraft.bench.exchange.rows import ExportedLaunch, launches_of
from mpigraft.bench.exchange.text import read_csv, read_json

HEAD = 4096  # bytes that show the format
LARGEST_JSON = 512 * 1024 * 1024  # it is read whole
CSV_HEAD = re.compile(rb'(?:\xef\xbb\xbf)?"?' + MARK.encode() + rb'"?[,\r\n]')
JSON_HEAD = re.compile(rb'\s*\{\s*"' + MARK.encode() + rb'"\s*:')
PARQUET_HEAD = re.compile(rb"PAR1")
FORMATS = {"csv": CSV_HEAD, "json": JSON_HEAD, "parquet": PARQUET_HEAD}


def export_format(head: bytes) -> str:
    """Return the format of an exported file by its first bytes; empty if it is no export."""
    return next((name for name, mark in FORMATS.items() if mark.match(head)), "")


def read_export(
    path: Path, form: str, source: str, *, edited: bool = False
) -> Iterator[ExportedLaunch]:
    """Read the launches of an exported campaign, which may be `edited`. Raises UsageError for a
    file that was damaged or, unless it is `edited`, changed; MissingError for Parquet without
    pyarrow, and OSError."""
    return launches_of(_rows(path, form, source), source, edited=edited)


def _rows(path: Path, form: str, source: str) -> Iterator[Row]:
    match form:
        case "csv":
            with path.open(encoding="utf-8-sig", newline="") as file:
                yield from read_csv(file, source)
        case "json":
            if path.stat().st_size > LARGEST_JSON:
                problem = f"over {LARGEST_JSON >> 20} MiB of JSON: export as CSV or Parquet"
                raise refuse(source, 0, problem)
            yield from read_json(path.read_bytes(), source)
        case _:
            yield from read_parquet(path, source)
