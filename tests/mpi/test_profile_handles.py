"""`mpigraft profile` of programs that take MPI from a library's handle, such as ctypes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family

pytestmark = pytest.mark.mpi

PROGRAM = """
import ctypes, sys
library = ctypes.CDLL(sys.argv[1])
world = sys.argv[2] if sys.argv[2:] else ""
if world:
    world = ctypes.c_void_p(ctypes.addressof(ctypes.c_char.in_dll(library, world)))
else:
    world = ctypes.c_int(0x44000000)
library.MPI_Init(None, None)
for _ in range(10):
    library.MPI_Barrier(world)
library.MPI_Finalize()
"""
CASES = {
    "openmpi@5": (Family.OPENMPI, "libmpi.so.40", ["ompi_mpi_comm_world"]),
    "mpich@5": (Family.MPICH, "libmpi.so.12", []),
}


@pytest.mark.parametrize("mpi", CASES)
def test_what_is_called_by_a_handle_counts_once(
    mpi: str, mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """And nothing else: what mpigraft itself asks of MPI is no call of the program."""
    family, library, world = CASES[mpi]
    kept = tmp_path / "profile.json"
    command = [sys.executable, "-m", "mpigraft.cli.entry", "profile", "-n", "2", "--mpi", mpi]
    program = [sys.executable, "-c", PROGRAM, str(mpis[family] / "lib" / library), *world]
    done = subprocess.run(
        [*command, "-o", str(kept), "--", *program], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    routines = json.loads(kept.read_text(encoding="utf-8"))["profile"]["routines"]
    calls = {one["name"]: one["calls"] for one in routines}
    assert calls == {"Init": 2, "Barrier": 20, "Finalize": 2}
