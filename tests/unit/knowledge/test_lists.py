"""Each list of each table of the package is read: a misspelt one is noticed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mpigraft import knowledge
from mpigraft.core.errors import UsageError
from mpigraft.knowledge.reader import load_document, read_rows
from mpigraft.knowledge.spawn import Spawn

SOURCES = Path(knowledge.__file__).parents[1]
LOADED = re.compile(r'load_rows\(\s*\w+,\s*"([\w-]+)",\s*"([\w/.]+)"')


def test_every_list_is_loaded_by_name() -> None:
    lists: dict[str, set[str]] = {}
    for path in SOURCES.rglob("*.py"):
        for key, name in LOADED.findall(path.read_text()):
            lists.setdefault(name, set()).add(key)
    assert len(lists) > 8
    for name, keys in lists.items():
        document = load_document(name)
        rows = {key for key, value in document.items() if isinstance(value, list) and value}
        assert {key for key in rows if isinstance(document[key][0], dict)} == keys, name


def test_a_file_with_another_list_is_refused() -> None:
    with pytest.raises(UsageError) as caught:
        read_rows(Spawn, "spawn", {"spawns": []}, "spawn.toml")
    assert caught.value.code == "table-value-invalid"
