"""Commands of the documentation, typed one after the other in a folder that has a program of the
user's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.builders.code_blocks import commands_for, typed
from tests.native.native_world import compile_c

pytestmark = [pytest.mark.mpi, pytest.mark.long]


def test_documented_commands_end_well(
    mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    prefix = mpis[Family.OPENMPI]
    solver = compile_c(
        Path(__file__).with_name("phases.c"), tmp_path / "solver",
        "-isystem", prefix / "include", prefix / "lib/libmpi.so.40",
    )  # fmt: skip
    (tmp_path / "app").symlink_to(solver)
    failed = {}
    for line in commands_for(__file__):
        done = typed(line, cwd=tmp_path, timeout=120)
        if done.returncode or not done.stdout:
            failed[line] = done.stderr
    assert failed == {}
