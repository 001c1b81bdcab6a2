"""This machine with the fetched MPIs alone, and a scratch folder for each test's campaigns."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import Machine
from mpigraft.discovery import inventory


@pytest.fixture(autouse=True)
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the campaigns of this test keep witness records, here and in children."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


@pytest.fixture
def machine(fresh_home: Path) -> Machine:
    """This machine with the fetched MPIs alone: others are here by chance."""
    here = inventory.discover_machine()
    return replace(here, mpis=tuple(m for m in here.mpis if m.source == "wheel"))
