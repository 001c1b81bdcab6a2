"""The columns of an exported campaign, and their types.

The columns up to `state` say where a value comes from, those from `benchmark` on are the value.
`records` has, in the first row that belongs to each, the campaign, configuration, allocation,
evidence and launch as the store has them: reading takes these, so an export imports unchanged.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from mpigraft.core.errors import UsageError
from mpigraft.core.serialize import digest

VERSION = 1
MARK = "mpigraft_export"  # the first column: what kind of file this is
Cell = Any  # of a column's type, or None
Row = dict[str, Cell]


@dataclass(frozen=True, slots=True)
class ExportColumn:
    name: str
    kind: Literal["text", "whole", "number", "truth", "document"] = "text"
    unit: str = ""


COLUMNS = (
    ExportColumn(MARK, "whole"),
    ExportColumn("campaign"),
    ExportColumn("campaign_id"),
    ExportColumn("origin"),
    ExportColumn("tool"),
    ExportColumn("configuration"),
    ExportColumn("configuration_key"),
    ExportColumn("baseline", "truth"),
    ExportColumn("buffers"),
    ExportColumn("allocation"),
    ExportColumn("job"),
    ExportColumn("hosts"),
    ExportColumn("layout"),
    ExportColumn("nodes", "whole"),
    ExportColumn("ranks_per_node", "whole"),
    ExportColumn("launch"),
    ExportColumn("round", "whole"),
    ExportColumn("replica", "whole"),
    ExportColumn("started"),
    ExportColumn("state"),
    ExportColumn("benchmark"),
    ExportColumn("metric"),
    ExportColumn("unit"),
    ExportColumn("better"),
    ExportColumn("size_bytes", "whole", "B"),
    ExportColumn("value", "number"),
    ExportColumn("mean", "number"),
    ExportColumn("minimum", "number"),
    ExportColumn("maximum", "number"),
    ExportColumn("p90", "number"),
    ExportColumn("p99", "number"),
    ExportColumn("iterations", "whole"),
    ExportColumn("valid", "truth"),
    ExportColumn("resolution", "number"),
    ExportColumn("samples", "document"),
    ExportColumn("records", "document"),
)
NAMES = tuple(column.name for column in COLUMNS)
KINDS = {column.name: column.kind for column in COLUMNS}


CASTS: dict[str, Callable[[Any], Any]] = {"number": float, "whole": int, "text": str}


def row_digest(row: Row) -> str:
    """Return a digest of all cells of a row but `records`, whichever format it was read of."""
    cells = {
        name: CASTS.get(kind, lambda cell: cell)(row[name])
        for name, kind in KINDS.items()
        if name != "records" and row.get(name) not in (None, "")
    }
    return digest(cells)[:16]


def refuse(source: str, row: int, problem: str) -> UsageError:
    """Return the error of a row (from 1) that is not what was exported."""
    return UsageError.of("export-invalid", place=f"{source}: row {row}", problem=problem)
