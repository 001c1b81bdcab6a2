"""Every command that reads a store says which of its files it could not read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mpigraft.store import Store
from tests.builders.commands import Run
from tests.builders.overtime import campaign, keep


@pytest.mark.parametrize(
    "words",
    [
        ("history",),
        ("compare",),
        ("results", "list"),
        ("results", "show"),
        ("export",),
        ("status",),
        ("recheck", "--dry-run"),
        ("bench", "--resume", "--dry-run"),
    ],
    ids=" ".join,
)
def test_a_file_that_cannot_be_read_is_named(
    run: Run, tmp_path: Path, words: tuple[str, ...]
) -> None:
    keep(Store(tmp_path / "store"), campaign(1, rounds=6))
    bad = tmp_path / "store/x.sqlite"
    os.mkfifo(bad)
    ended = run(*words)
    text = "".join(f"{ended.out}{ended.err}".split())
    assert f"{bad}cannotberead" in text
