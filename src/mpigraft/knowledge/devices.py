"""Devices, sockets and folders that ranks need of the host: devices.toml as binds."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from mpigraft.errors import UsageError
from mpigraft.knowledge.table import Document, Table, document
from mpigraft.model import Bind, BindKind

KINDS = (BindKind.DEVICE, BindKind.FOLDER, BindKind.SOCKET)
MOST = 64  # of one pattern


@cache
def binds() -> tuple[Bind, ...]:
    """Every one that some machine has, the same on every machine; the optional ones are bound
    where their source is there."""
    return read(document("devices.toml"))


def read(data: Document, file: str = "devices.toml") -> tuple[Bind, ...]:
    """Binds in the order of the rows. Raises UsageError for a wrong row, and for two rows of one
    id or one path."""
    top = Table(file, dict(data))
    found: dict[str, Bind] = {}
    known: set[str] = set()
    for table in top.tables("device"):
        name = table.text("id")
        table.where = f"{file}, row {name}"
        if name in known:
            raise UsageError(f"{file}: two rows are called {name}")
        known.add(name)
        for bind in _binds(table):
            if bind.source in found:
                raise table.wrong("path", f"another row has {bind.source}")
            found[bind.source] = bind
    top.done()
    return tuple(found.values())


def _binds(table: Table) -> Iterator[Bind]:
    path = table.text("path")
    count = table.number("count", 1)
    if not path.startswith("/") or ".." in path.split("/"):
        raise table.wrong("path", f"{path!r} is not an absolute path without '..'")
    if not 1 <= count <= MOST or ("{n}" in path) != ("count" in table.data):
        raise table.wrong("count", f"it goes with {{n}} in the path, from 1 to {MOST}")
    kind = BindKind(table.choice("kind", KINDS))
    required, writable = bool(table.flag("required")), bool(table.flag("writable"))
    why = table.text("why")
    table.text("source")
    table.done()
    for n in range(count):
        here = path.replace("{n}", str(n))
        yield Bind(here, here, kind, writable, required, why)
