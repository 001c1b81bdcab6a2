"""A build that is killed at any step leaves the old state or the new one, and the next completes
it."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from mpigraft.build import easybuild
from mpigraft.build.folders import BuildFolders
from mpigraft.build.records import read_record
from tests.builders.easybuilds import STEPS, a_plan, runs, stand_in, tree

ENDS = [*STEPS, "half installing"]


@pytest.fixture
def folders(tmp_path: Path) -> BuildFolders:
    return BuildFolders(tmp_path / "prefix")


def run_build(folders: BuildFolders, home: Path, ends: str = "") -> int:
    """Build in a process of its own, which can be killed; at `ends` the stand-in ends itself or
    others."""
    environ = {**stand_in(home), "TZ": ends}
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.geteuid = lambda: 1000
            environ["HOSTNAME"] = str(os.getpid())
            easybuild.build(a_plan(), folders, environ, lambda _: None)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@pytest.mark.parametrize("who", ["mpigraft", "all"])
@pytest.mark.parametrize("step", ENDS)
def test_the_next_build_completes_one_that_was_killed(
    step: str, who: str, folders: BuildFolders, tmp_path: Path
) -> None:
    code = run_build(folders, tmp_path / "home", f"{step}/{who}/OpenMPI")
    assert code == -signal.SIGKILL
    first = tree(folders.prefix / "software/libfabric")
    assert first["2.1.0-gnu/lib/lib.so"] == "libfabric"
    assert run_build(folders, tmp_path / "home") == 0
    assert tree(folders.prefix / "software/libfabric") == first, "what was whole stays"
    mpi = tree(folders.prefix / "software/OpenMPI")
    assert mpi["5.0.8-gnu/bin/first"] == mpi["5.0.8-gnu/lib/lib.so"] == "OpenMPI"
    assert read_record(folders.records / "OpenMPI-5.0.8-gnu.json")["state"] == "built"
    modules = {path.name for path in (folders.modules / "OpenMPI").iterdir()}
    assert modules == {"5.0.8-gnu", "5.0.8-gnu.lua"}
    assert not any(folders.temporary.iterdir())
    assert {path.name for path in tmp_path.iterdir()} == {"home", "prefix"}
    again = "OpenMPI again" if step == "creating module" else "OpenMPI"
    expected = ["libfabric", "OpenMPI", again]
    assert runs(folders) == (expected[:2] if step == "copying logs" else expected)
