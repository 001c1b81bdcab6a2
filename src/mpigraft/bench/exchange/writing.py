"""A campaign as a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import IO

from mpigraft.bench.exchange.columns import Row
from mpigraft.bench.exchange.parquet import write_parquet
from mpigraft.bench.exchange.rows import rows_of
from mpigraft.bench.exchange.text import write_csv, write_json
from mpigraft.core.model import CampaignRecord
from mpigraft.store import Store

WRITERS: dict[str, Callable[[Iterable[Row], IO[bytes]], None]] = {
    "csv": write_csv,
    "json": write_json,
    "parquet": write_parquet,
}


@dataclass(slots=True)
class Exports:
    """What was written, and what was not."""

    values: int = 0
    launches: int = 0
    outputs: int = 0  # outputs and imported files, which stay in the store


def write_export(store: Store, campaign: CampaignRecord, form: str, file: IO[bytes]) -> Exports:
    """Write a campaign in one of the formats of WRITERS. Raises MissingError for Parquet without
    pyarrow, and OSError."""
    written = Exports()
    WRITERS[form](_counted(rows_of(store, campaign), written), file)
    return written


def _counted(rows: Iterable[Row], written: Exports) -> Iterator[Row]:
    for row in rows:
        written.values += "benchmark" in row
        if launch := (row["records"] or {}).get("launch"):
            written.launches += 1
            written.outputs += len(launch["artefacts"])
        yield row
