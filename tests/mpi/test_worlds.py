"""`mpigraft run` of programs that start other MPI programs: the world of a launch is what its own
launcher made."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.native.programs import PREBUILT, SPAWN
from mpigraft.trace import read_record_file
from tests.builders.messages import shows
from tests.mpi.test_run import LONG, MPICH, OPENMPI, compiled, kept, ranks_of, run

pytestmark = pytest.mark.mpi

ALONE = """#!/bin/sh
# Run a program without what the launcher of its rank set: a singleton.
for name in $(env | sed -n 's/^\\(PMI[^=]*\\|OMPI_[^=]*\\|PRTE_[^=]*\\|HYD[^=]*\\)=.*/\\1/p'); do
    unset "$name"
done
exec "$@"
"""
OPTIONS = {Family.OPENMPI: OPENMPI, Family.MPICH: MPICH}
ABIS = {Family.OPENMPI: "ompi", Family.MPICH: "mpich"}
NAMES = {Family.OPENMPI: "libmpi.so.40", Family.MPICH: "libmpi.so.12"}
OPENS = """#!{python}
import ctypes, time
ctypes.CDLL("{library}").MPI_Init(None, None)
time.sleep(300)
"""
RANKS = ["rank 0 of 2", "rank 1 of 2"]
SINGLE = "rank 0 of 1"


@pytest.fixture(scope="module")
def programs(
    mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Family, Path]:
    return {f: compiled(mpis[f], tmp_path_factory.mktemp(f.value)) for f in OPTIONS}


def command(*words: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mpigraft.cli.entry", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def alone(tmp_path: Path) -> Path:
    script = tmp_path / "alone"
    script.write_text(ALONE)
    script.chmod(0o755)
    return script


@pytest.mark.parametrize(
    ("family", "when", "count"),
    [
        (Family.OPENMPI, "before", 2),
        (Family.MPICH, "after", 1),
        pytest.param(Family.OPENMPI, "after", 1, marks=LONG),
        pytest.param(Family.MPICH, "before", 2, marks=LONG),
    ],
)
def test_singletons_that_ranks_start_are_no_ranks(
    programs: Mapping[Family, Path], fresh_home: Path, alone: Path,
    family: Family, when: str, count: int,
) -> None:  # fmt: skip
    program = programs[family]
    ended = run(*OPTIONS[family], "--", program, when, f"{alone} {program}")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ranks_of(ended) == sorted([*RANKS, *[SINGLE] * count])


def test_a_second_program_that_cannot_join_is_named(
    programs: Mapping[Family, Path], fresh_home: Path
) -> None:
    """It ended with 141 without a word, and with 0 where the script went on."""
    program = programs[Family.MPICH]
    for words, code in ((f"{program} && {program}", 141), (f"{program}; {program}; true", 5)):
        ended = run(*MPICH, "--", "sh", "-c", words)
        assert (ended.returncode, ranks_of(ended)) == (code, RANKS)
        assert (
            "after another program of the same rank had called it, and did not return"
            in ended.stderr
        )
        assert "the script starts 2 MPI programs one after the other" in ended.stderr
    assert run(*MPICH, "--", "sh", "-c", f"{program}; exit 3").stderr == ""


@pytest.mark.parametrize("family", [pytest.param(Family.OPENMPI, marks=LONG), Family.MPICH])
def test_an_mpiexec_that_a_rank_starts_makes_a_world_of_its_own(
    programs: Mapping[Family, Path], mpis: Mapping[Family, Path], fresh_home: Path, family: Family
) -> None:
    program = programs[family]
    inner = f"{mpis[family]}/bin/mpiexec -n 2 {program}"
    ended = run(*OPTIONS[family], "--", program, "after", inner)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert ranks_of(ended) == sorted(RANKS * 2)
    assert len(kept(fresh_home)) == 1


def test_a_driver_that_starts_its_own_launcher_has_no_world_of_the_job(
    programs: Mapping[Family, Path], mpis: Mapping[Family, Path], fresh_home: Path
) -> None:
    """A script would be refused before the start; what a program starts nobody can read."""
    program = programs[Family.MPICH]
    inner = f"{mpis[Family.MPICH]}/bin/mpiexec -n 2 {program}"
    ended = run(*MPICH, "--", program, "instead", inner)
    assert ended.returncode == 5
    assert "other worlds ran in the job: 2 x ranks (2 ranks)" in ended.stderr


def test_a_profile_keeps_other_worlds_apart(
    programs: Mapping[Family, Path], mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    """The inner world is larger than that of the launch, and has the same program and ranks."""
    program = programs[Family.MPICH]
    inner = f"{mpis[Family.MPICH]}/bin/mpiexec -n 3 {program}"
    ended = command("profile", *MPICH, "-o", tmp_path / "made", "--", program, "after", inner)
    assert ended.returncode == 0, ended.stderr
    made = json.loads((tmp_path / "made").read_text())["profile"]
    worlds = [made, *made["others"]]
    assert [one["ranks"] for one in worlds] == [2, 3]
    for one in worlds:
        calls = {row["name"]: row["calls"] for row in one["routines"]}
        assert (calls["Init"], calls["Finalize"]) == (one["ranks"], one["ranks"])
    assert "not counted here: ranks (3 ranks)" in " ".join(ended.stderr.split())
    shown = command("profile", "--show", tmp_path / "made", "--world", 1)
    assert shows(shown.stdout, f"3 ranks on {made['hosts'][0]}")


def test_children_of_spawn_are_a_world_of_their_own(fresh_home: Path, tmp_path: Path) -> None:
    program = PREBUILT / platform.machine() / "mpich" / SPAWN
    ended = command("profile", *MPICH, "-o", tmp_path / "made", "--", program)
    assert ended.returncode == 0, ended.stderr
    made = json.loads((tmp_path / "made").read_text())["profile"]
    assert [one["ranks"] for one in (made, *made["others"])] == [2, 2]
    of_parents, of_children = (
        {r["name"] for r in one["routines"]} for one in (made, *made["others"])
    )
    assert "Comm_spawn" in of_parents - of_children
    assert "mpigraft-spawn (2 ranks, spawned)" in " ".join(ended.stderr.split())


@pytest.mark.parametrize(
    ("family", "other", "text"),
    [
        (Family.MPICH, Family.OPENMPI, OPENS),
        (Family.MPICH, Family.OPENMPI, "#!/bin/sh\nexec {program}\n"),
        pytest.param(Family.OPENMPI, Family.MPICH, OPENS, marks=LONG),
    ],
    ids=["python", "shell", "openmpi"],
)
def test_a_child_that_enters_another_mpi_ends_the_job(
    mpis: Mapping[Family, Path], programs: Mapping[Family, Path], fresh_home: Path,
    tmp_path: Path, family: Family, other: Family, text: str,
) -> None:  # fmt: skip
    """Its parents would wait forever."""
    library = next(p for p in (mpis[other] / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
    child = tmp_path / "child"
    python = sys.executable
    child.write_text(text.format(python=python, library=library, program=programs[other]))
    child.chmod(0o755)
    spawning = PREBUILT / platform.machine() / ABIS[family] / SPAWN
    ended = run(*OPTIONS[family][:2], "-n", 3, "--bind-to", "none", "--", spawning, child)
    assert ended.returncode == 4, ended.stderr
    assert f"enters another one than {NAMES[family]}" in " ".join(ended.stderr.split())


@LONG
def test_a_record_has_the_ranks_of_the_launch_alone(
    programs: Mapping[Family, Path], mpis: Mapping[Family, Path], fresh_home: Path, tmp_path: Path
) -> None:
    program = programs[Family.MPICH]
    inner = f"{mpis[Family.MPICH]}/bin/mpiexec -n 3 {program}"
    ended = command("record", *MPICH, "-o", tmp_path / "kept", "--", program, "after", inner)
    assert ended.returncode == 0, ended.stderr
    file = read_record_file(tmp_path / "kept")
    assert len(file.parts) == 2
    assert file.provenance.notes == ("other worlds of the job are not recorded: ranks (3 ranks)",)


@LONG
@pytest.mark.parametrize("family", OPTIONS)
def test_a_script_cut_off_from_its_launcher_leaves_each_rank_alone(
    programs: Mapping[Family, Path], fresh_home: Path, alone: Path, family: Family
) -> None:
    ended = run(*OPTIONS[family], "--", alone, programs[family])
    assert ended.returncode == 5
    assert "2 worlds of one rank instead of one world of 2" in ended.stderr


def test_two_programs_that_a_script_runs_one_after_the_other(
    programs: Mapping[Family, Path], fresh_home: Path
) -> None:
    """Open MPI 5 connects each, and may warn of the shared memory that the first one removes;
    MPICH 5.0.2 ends the second one with SIGPIPE."""
    program = programs[Family.OPENMPI]
    ended = run(*OPENMPI, "--", "sh", "-c", f"{program} && {program}")
    assert (ended.returncode, "mpigraft" in ended.stderr) == (0, False), ended.stderr
    assert ranks_of(ended) == sorted(RANKS * 2)


@LONG
def test_a_program_that_does_not_join_the_world_of_its_script_is_told(
    programs: Mapping[Family, Path], mpis: Mapping[Family, Path], fresh_home: Path
) -> None:
    """One of another MPI in every rank is an error; in one rank it may be a tool, and is named."""
    program, other = programs[Family.MPICH], programs[Family.OPENMPI]
    library = mpis[Family.OPENMPI] / "lib"
    for test, code, text in (
        ("true", 5, "requested 2 ranks, worlds of 1, 2 ran"),
        ("[ $PMI_RANK = 0 ]", 0, "some ranks also ran programs that did not join"),
    ):
        script = f"{program}; if {test}; then LD_LIBRARY_PATH={library} {other}; fi"
        ended = run(*MPICH, "--program", program, "--", "sh", "-c", script)
        assert ended.returncode == code, ended.stderr
        assert text in ended.stderr
