"""Tables of the documentation that the tests make of what they saw."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path


def hold(document: Path, begin: str, lines: Iterable[str], end: str) -> None:
    """Fail where the table between two marks says otherwise; MPIGRAFT_WRITE_DOCS writes it."""
    table = "".join(f"{line}\n" for line in lines)
    text = document.read_text(encoding="utf-8")
    before, _, rest = text.partition(begin)
    kept, _, after = rest.partition(end)
    if "MPIGRAFT_WRITE_DOCS" in os.environ:
        document.write_text(f"{before}{begin}{table}{end}{after}", encoding="utf-8")
        return
    again = f"{document.name} says otherwise: MPIGRAFT_WRITE_DOCS=1 writes it anew"
    assert kept == table, again
