"""A scheduler of a few lines."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is first in PATH, with a Slurm of a few lines in it."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for name, script in (
        ("sbatch", f"cat >> {tmp_path}/scripts; echo x >> {tmp_path}/n; wc -l < {tmp_path}/n"),
        ("squeue", "echo '1|TIMEOUT|None'; echo '2|PENDING|Priority'; echo '3|RUNNING|None'"),
        ("sacct", "exit 1"),
        ("scontrol", "echo 'SwitchType              = switch/hpe_slingshot'"),
    ):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "night.toml").write_text('name = "night"\nrounds = 6\n')
    return tmp_path
