"""Which configuration files the parts of an MPI read: the rows of config_files.toml as values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from mpigraft.knowledge.table import Document, Table, document
from mpigraft.model import Family

FACTS = ("dir", "built-in", "prefix", "home", "cwd")  # beside variables, which are upper-case
FIELD = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class ConfigRow:
    """What one library or program reads."""

    id: str
    reads: str
    by: re.Pattern[str] | None
    families: tuple[Family, ...]  # empty: all
    files: tuple[str, ...]  # templates over FACTS and variables
    sources: tuple[str, ...]


def read(data: Document, file: str = "config_files.toml") -> tuple[ConfigRow, ...]:
    """The rows of a document. Raises UsageError for a wrong one."""
    whole = Table(file, dict(data))
    found: dict[str, ConfigRow] = {}
    for table in whole.tables("config"):
        table.where = f"{file}, row {table.text('id')}"
        row = _row(table)
        if row.id in found:
            raise table.wrong("id", "another row has it")
        found[row.id] = row
    whole.done()
    return tuple(found.values())


def _row(table: Table) -> ConfigRow:
    families = table.texts("family", [])
    for word in families:
        if word not in set(Family):
            raise table.wrong("family", f"{word} is no family")
    by = re.compile(table.pattern("by")) if "by" in table.data else None
    row = ConfigRow(
        id=table.text("id"),
        reads=table.text("reads"),
        by=by,
        families=tuple(Family(word) for word in families),
        files=table.texts("files"),
        sources=table.texts("sources"),
    )
    for template in row.files:
        _refuse_wrong(table, template, has_by=by is not None)
    table.done()
    return row


def _refuse_wrong(table: Table, template: str, *, has_by: bool) -> None:
    if not template.startswith(("/", "{")) or "*" in template[:-1]:
        raise table.wrong("files", f"{template!r} is no path, or has a * before its end")
    for name in FIELD.findall(template):
        if name not in FACTS and not name.isupper():
            raise table.wrong("files", f"no fact is called {name!r}")
        if name in ("dir", "built-in") and not has_by:
            raise table.wrong("files", f"{{{name}}} without `by`")


@cache
def rows() -> tuple[ConfigRow, ...]:
    """All rows, read once."""
    return read(document("config_files.toml"))
