"""Devices, sockets and folders that ranks need of the host: devices.toml as binds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, BindKind
from mpigraft.knowledge.reader import Document, RowError, load_document, read_rows, toml

KINDS = (BindKind.DEVICE, BindKind.FOLDER, BindKind.SOCKET)
MAX_COUNT = 64  # paths of one pattern


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """One path, or `count` of them with their number for {n}."""

    id: str
    path: str
    why: str
    source: str
    kind: BindKind = field(metadata=toml(words=KINDS))
    count: int | None = None
    required: bool = False
    writable: bool = False

    def __post_init__(self) -> None:
        if not self.path.startswith("/") or ".." in self.path.split("/"):
            raise RowError("path", f"{self.path!r} is not an absolute path without '..'")
        numbered, count = "{n}" in self.path, 1 if self.count is None else self.count
        if numbered is (self.count is None) or not 1 <= count <= MAX_COUNT:
            raise RowError("count", f"give 1 to {MAX_COUNT} where the path has {{n}} in it")

    @property
    def binds(self) -> Iterator[Bind]:
        for n in range(1 if self.count is None else self.count):
            path = self.path.replace("{n}", str(n))
            yield Bind(path, path, self.kind, self.writable, self.required, self.why)


@cache
def device_binds() -> tuple[Bind, ...]:
    """Return every bind that some machine needs, the same on every machine; the optional ones are
    bound where their source exists."""
    return read(load_document("devices.toml"))


def read(data: Document, file: str = "devices.toml") -> tuple[Bind, ...]:
    """Binds in the order of the rows. Raises UsageError for a wrong row, and for two rows of one
    id or one path."""
    binds: dict[str, Bind] = {}
    for row in read_rows(DeviceRow, "device", data, file):
        for bind in row.binds:
            if bind.source in binds:
                raise UsageError.of("devices-twice", file=file, id=row.id, source=bind.source)
            binds[bind.source] = bind
    return tuple(binds.values())
