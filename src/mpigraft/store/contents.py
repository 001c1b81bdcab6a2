"""Which file of a store has which campaigns, remembered while a process reads the store.

A history of 90 campaigns asks for each of them, and each of them is in one file of 90. What a file
has is read once and remembered with the file's mark; the file alone is the truth. Nothing of it is
written anywhere, so there is nothing that a killed process could leave wrong.
"""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.model import CampaignRecord
from mpigraft.store import bounds, file
from mpigraft.store.rows import record_of

CHANGES = slice(24, 28)  # the change counter in a file's header (sqlite.org/fileformat2.html)
TABLES = (
    """SELECT '"' || replace(m.name, '"', '""') || '"'"""
    " FROM sqlite_master m JOIN pragma_table_info(m.name) c"
    " WHERE m.type = 'table' AND c.name = 'campaign'"
)

MOST = 10_000  # campaigns of a file

Mark = tuple[int, int, int, int, bytes]


@dataclass(frozen=True, slots=True)
class Contents:
    """What a file has: its own campaigns, and the ids of all that any row of it belongs to."""

    records: tuple[CampaignRecord, ...] = ()
    owners: frozenset[str] = frozenset()


class ContentsIndex:
    """The contents of each file that was read, as long as its mark stays the same."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[Mark, Contents]] = {}

    def read(self, path: Path) -> Contents:
        """Read what a file has, unless that is known. Raises what `file.reading` raises."""
        before = mark_of(path)
        known = self._known.get(path)
        if before is not None and known is not None and known[0] == before:
            return known[1]
        contents = Contents()
        with file.reading(path) as db:
            if db is not None:
                contents = _contents(db)
        if before is None:
            self._known.pop(path, None)
        else:
            self._known[path] = (before, contents)
        return contents


def mark_of(path: Path) -> Mark | None:
    """Return what changes whenever the file does; None while its writer is in a transaction, or was
    killed in one. Every transaction counts the change counter up, so two of one size within a tick
    of the file system's clock differ too. Taken before the file is read: what is written meanwhile
    changes the mark. Opened rather than asked for its status alone: on NFS that makes it the
    server's answer (nfs(5), close-to-open). Raises OSError."""
    with bounds.open_regular(path) as opened:
        status = os.fstat(opened.fileno())
        head = opened.read(CHANGES.stop)
    if os.path.lexists(f"{path}-journal"):
        return None
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, head[CHANGES])


def _contents(db: sqlite3.Connection) -> Contents:
    rows = db.execute("SELECT * FROM campaign LIMIT ?", (MOST + 1,)).fetchall()
    if len(rows) > MOST:
        raise ValueError(f"it has more than {MOST} campaigns")
    owners = {row["id"] for row in rows}
    for (table,) in db.execute(TABLES).fetchall():
        owners |= {row[0] for row in db.execute(f"SELECT DISTINCT campaign FROM {table}")}  # noqa: S608
    return Contents(tuple(record_of(CampaignRecord, row) for row in rows), frozenset(owners))
