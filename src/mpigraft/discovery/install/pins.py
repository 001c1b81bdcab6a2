"""The wheels of MPIs that mpigraft was tested with, by their content: wheels.toml."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from mpigraft.knowledge import Document, RowError, load_document, read_rows

# NAME-VERSION-TAGS.whl; a name has no hyphen (PyPA, "Binary distribution format", file names).
NAME = re.compile(r"(?P<stem>[A-Za-z0-9_.]+-[A-Za-z0-9_.]+)-[A-Za-z0-9_.-]+\.whl")
SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class WheelRow:
    file: str
    sha256: str

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.file):
            raise RowError("file", "not the name of a wheel")
        if not SHA256.fullmatch(self.sha256):
            raise RowError("sha256", "not 64 hexadecimal digits")


def read(data: Document, file: str = "wheels.toml") -> dict[str, frozenset[str]]:
    """Return the SHA-256 of each NAME-VERSION. Raises UsageError for a wrong row."""
    pins: dict[str, frozenset[str]] = {}
    for row in read_rows(WheelRow, "wheel", data, file):
        if named := NAME.fullmatch(row.file):
            pins[named["stem"]] = pins.get(named["stem"], frozenset()) | {row.sha256}
    return pins


@cache
def _pins() -> dict[str, frozenset[str]]:
    return read(load_document("wheels.toml"))


def pinned_digests(distribution: str, version: str) -> frozenset[str]:
    """Return the SHA-256 of the wheels of a version, one for each architecture; empty for a version
    that mpigraft was not tested with."""
    return _pins().get(f"{distribution.replace('-', '_')}-{version}", frozenset())
