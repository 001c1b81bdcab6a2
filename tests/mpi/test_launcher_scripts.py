"""Scripts that start mpirun themselves: the command that a refusal offers runs the same job."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.mpi.test_run import compiled, ranks_of, run

pytestmark = pytest.mark.mpi


@pytest.mark.parametrize("family", [Family.OPENMPI, Family.MPICH])
def test_the_command_of_a_refusal_runs_what_the_script_would(
    family: Family, mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    program = compiled(mpis[family], tmp_path)
    script = tmp_path / "job.sh"
    script.write_text(f'#!/bin/bash\nNP=${{1:-1}}\nexec mpirun -np "$NP" {program.parent}/ranks\n')
    script.chmod(0o755)
    words = ("--mpi", family.value, "--", script, "2")
    refused = run(*words)
    assert refused.returncode == 1
    assert "[script-starts-launcher]" in refused.stderr
    command = re.search(r"`mpigraft (run .*?)`", refused.stderr)
    assert command is not None
    argv = [sys.executable, "-m", "mpigraft.cli.entry", *shlex.split(command[1])]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ranks_of(ended)) == (0, ["rank 0 of 2", "rank 1 of 2"])
