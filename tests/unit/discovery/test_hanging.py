"""Launchers that never answer: each costs its own short limit and says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpigraft.discovery.sources import schedulers
from mpigraft.discovery.sources.candidate import Host
from tests.builders.messages import shows


@pytest.mark.parametrize("name", ["mpirun", "srun"])
def test_a_launcher_that_hangs_is_shown_with_its_reason(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(schedulers, "LAUNCHER_LIMIT_S", 1.0)
    tool = tmp_path / "bin" / name
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho 'connecting to 10.0.0.1'\nexec /bin/sleep 600\n")
    tool.chmod(0o755)
    (found,) = schedulers.launchers(Host({"PATH": str(tool.parent)}, tmp_path))
    assert (found.name, found.version, found.pmi_offered) == (name, "", ())
    assert shows(found.reason, "no answer", "1 s")
