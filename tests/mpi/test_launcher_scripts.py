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
from tests.mpi.test_run import ENTRY, MPICH, compiled, ranks_of, run

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


def test_a_start_in_each_task_of_a_launcher_is_named_once(
    mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """As `srun -n 2 mpigraft run ...`: two whole jobs, of one rank each."""
    program = compiled(mpis[Family.MPICH], tmp_path)
    mpiexec = str(mpis[Family.MPICH] / "bin/mpiexec")
    argv = [mpiexec, "-n", "2", *ENTRY, *MPICH, "-n", "1", "--", str(program)]
    ended = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ranks_of(ended)) == (0, ["rank 0 of 1", "rank 0 of 1"])
    assert ended.stderr.count("started this command in one of 2 tasks") == 1
