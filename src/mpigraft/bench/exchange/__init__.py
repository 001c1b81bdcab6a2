"""Campaigns as tables for other programs: CSV, JSON, Parquet.

Takes a campaign of a store and writes it as a file, a row for each value; reads such a file back as
the records that it was made of.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.bench.exchange.reading import HEAD as HEAD
    from mpigraft.bench.exchange.reading import export_format as export_format
    from mpigraft.bench.exchange.reading import read_export as read_export
    from mpigraft.bench.exchange.rows import Launched as Launched
    from mpigraft.bench.exchange.writing import write_export as write_export
else:
    __getattr__ = exports(__name__)
