"""Texts and names in src are plain English, without a dialect that readers stumbled over."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src/mpigraft"
WORDS = "stands?|stood|lies|of which|whatever|told|says of|speaks?|for a person"
DIALECT = re.compile(rf"\b({WORDS})\b")
KEPT = {  # by file: a group of patterns, and an artefact of stores
    ("rows.py", "told"), ("lanes.py", "told"), ("import_ledger.py", "told"),
}  # fmt: skip


def test_no_dialect() -> None:
    used = {
        (path.name, match[1])
        for path in SOURCE.rglob("*")
        if path.suffix in {".py", ".toml"}
        for match in DIALECT.finditer(path.read_text())
    }
    assert used == KEPT
