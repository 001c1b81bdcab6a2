"""mpigraft's own work for a launch does not grow with the number of ranks: counted, not timed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.native.native_world import compile_c

pytestmark = pytest.mark.mpi

SCRIPT = Path(__file__).parents[2] / "evaluation/launch_work.py"
PER_RANK = 200  # bytes of a rank's own line: its number, its CPUs, a digest


def test_from_one_to_sixty_four_ranks_the_work_of_a_launch_is_the_same(
    mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    mpich = mpis[Family.MPICH]
    program = compile_c(
        "enter.c", tmp_path / "enter", "-isystem", mpich / "include", mpich / "lib/libmpi.so.12",
        "-Wl,--allow-shlib-undefined",
    )  # fmt: skip
    words = [sys.executable, str(SCRIPT), "--ranks", "1", "64", "--json"]
    words += ["--program", str(program)]
    parts = counted(words)
    # Ranks that come at once may each write what they have in common, which they else write once.
    for _ in range(2):
        if not all(grown(rows) < 64 * PER_RANK for rows in parts.values()):
            parts = counted(words)
    assert {"launch of a campaign", "second mpigraft run"} <= parts.keys()
    for part, rows in parts.items():
        one, many = rows["1"], rows["64"]
        assert one["processes"] == many["processes"] == 1, part
        # A process that is looked at once more, since it was ending, is a file or two.
        assert abs(one["files"] - many["files"]) <= 4, part
        assert many["files"] < 16, part
        assert grown(rows) < 64 * PER_RANK, part
    assert parts["second mpigraft run"]["64"]["judged in full"] == 0


def counted(words: list[str]) -> dict[str, dict[str, dict[str, int]]]:
    """{part: {ranks: what mpigraft did for it}}."""
    done = subprocess.run(words, capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    parts: dict[str, dict[str, dict[str, int]]] = json.loads(done.stdout)
    return parts


def grown(rows: dict[str, dict[str, int]]) -> int:
    """Bytes that are read for sixty-four ranks and not for one."""
    return rows["64"]["bytes"] - rows["1"]["bytes"]
