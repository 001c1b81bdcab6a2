"""What unit tests of several rooms share."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.core.process import command


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """MPIGRAFT_HOME of this test alone; not made yet."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "mpigraft-home"))
    return tmp_path / "mpigraft-home"


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let --verbose hold for one test alone: a command ends its process, a test does not."""
    monkeypatch.setattr(command, "_echo", None)
