"""Rows as Parquet, and back, with pyarrow: an extra, since it is larger than all the rest."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from mpigraft.bench.exchange.columns import COLUMNS, KINDS, NAMES, Row, refuse
from mpigraft.bench.exchange.text import check_version
from mpigraft.core.errors import MissingError
from mpigraft.core.serialize import canonical

GROUP = 5000  # rows that are in memory at once


def _arrow() -> tuple[Any, Any]:
    """Return the two modules of pyarrow. Raises MissingError where it is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingError.of("parquet-missing") from error
    return pyarrow, pyarrow.parquet


def write_parquet(rows: Iterable[Row], file: IO[bytes]) -> None:
    """Write rows in groups; documents are JSON, and a column's unit is in its metadata. Raises
    MissingError without pyarrow."""
    arrow, parquet = _arrow()
    types = {
        "text": arrow.string(), "document": arrow.string(), "whole": arrow.int64(),
        "number": arrow.float64(), "truth": arrow.bool_(),
    }  # fmt: skip
    schema = arrow.schema(
        [arrow.field(c.name, types[c.kind], metadata={"unit": c.unit}) for c in COLUMNS]
    )
    remaining = iter(rows)
    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        while group := list(itertools.islice(remaining, GROUP)):
            columns = {name: [_cell(row.get(name), name) for row in group] for name in NAMES}
            writer.write_table(arrow.table(columns, schema=schema))


def _cell(value: Any, name: str) -> Any:
    return canonical(value) if value is not None and KINDS[name] == "document" else value


def read_parquet(path: Path, source: str) -> Iterator[Row]:
    """Read rows back, a group at a time. Raises UsageError for a damaged file, MissingError
    without pyarrow."""
    arrow, parquet = _arrow()
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            names = [name for name in file.schema_arrow.names if name in KINDS]
            for batch in file.iter_batches(batch_size=GROUP, columns=names):
                for cells in batch.to_pylist():
                    number += 1
                    row = {n: _document(v, n) for n, v in cells.items() if v is not None}
                    check_version(row, source, number)
                    yield row
    except (arrow.ArrowException, OSError, ValueError, TypeError, RecursionError) as error:
        problem = "".join(c if c.isprintable() else " " for c in str(error))[:200]
        raise refuse(source, number, problem) from error


def _document(value: Any, name: str) -> Any:
    return json.loads(value) if KINDS[name] == "document" else value
