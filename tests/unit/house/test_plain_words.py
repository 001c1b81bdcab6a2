"""Texts and names in src are plain English: words of a dialect that readers stumbled over."""

from __future__ import annotations

import re
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[3] / "src/mpigraft"
DIALECT = re.compile(r"\b(stands?|stood|lies|of which|whatever|told|says of|speaks?|for a person)\b")
KEPT = {  # stored or in data
    ("knowledge/transports/rows.py", "told"), ("evidence/traffic/lanes.py", "told"),  # a group
    ("bench/importing/book.py", "told"),  # an artefact
}  # fmt: skip


def test_no_dialect() -> None:
    used = {
        (str(path.relative_to(SOURCE)), match[1])
        for path in SOURCE.rglob("*")
        if path.suffix in {".py", ".toml"}
        for match in DIALECT.finditer(path.read_text())
    }
    assert used == KEPT
