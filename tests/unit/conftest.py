"""What unit tests of several rooms share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """MPIGRAFT_HOME of this test alone; not made yet."""
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "mpigraft-home"))
    return tmp_path / "mpigraft-home"
