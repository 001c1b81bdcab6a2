"""Where the files that configure an MPI are looked for."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A prefix with a folder for each kind of configuration file, and a home in it."""
    for name in ("home", "cwd", "lib/ucx", "etc", "data"):
        (tmp_path / name).mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "data"))
    (tmp_path / "lib/ucx/libucs.so.0").touch()
    return tmp_path
