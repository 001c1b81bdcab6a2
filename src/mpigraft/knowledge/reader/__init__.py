"""Read knowledge: TOML tables as typed rows.

Takes a document and the class of its rows; makes rows, or one error that names file, row and key.
Reads package data alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.reader.tables import NEVER as NEVER
    from mpigraft.knowledge.reader.tables import Document as Document
    from mpigraft.knowledge.reader.tables import Given as Given
    from mpigraft.knowledge.reader.tables import RowError as RowError
    from mpigraft.knowledge.reader.tables import Rules as Rules
    from mpigraft.knowledge.reader.tables import as_written as as_written
    from mpigraft.knowledge.reader.tables import described as described
    from mpigraft.knowledge.reader.tables import load_document as load_document
    from mpigraft.knowledge.reader.tables import load_table as load_table
    from mpigraft.knowledge.reader.tables import read_table as read_table
    from mpigraft.knowledge.reader.tables import rules_of as rules_of
    from mpigraft.knowledge.reader.tables import toml as toml
else:
    __getattr__ = exports(__name__)
