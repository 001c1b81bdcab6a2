"""`mpigraft run` of programs that start other MPI programs: the world of a launch is what its own
launcher made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
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
RANKS = ["rank 0 of 2", "rank 1 of 2"]
SINGLE = "rank 0 of 1"


@pytest.fixture(scope="module")
def programs(
    mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[Family, Path]:
    return {f: compiled(mpis[f], tmp_path_factory.mktemp(f.value)) for f in OPTIONS}


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


def test_a_script_that_starts_its_own_launcher_has_no_world_of_the_job(
    programs: Mapping[Family, Path], mpis: Mapping[Family, Path], fresh_home: Path
) -> None:
    inner = f"{mpis[Family.MPICH]}/bin/mpiexec -n 2 {programs[Family.MPICH]}"
    ended = run(*MPICH, "--", "sh", "-c", inner)
    assert ended.returncode == 5
    assert "other worlds ran in the job: 2 x ranks (2 ranks)" in ended.stderr


@LONG
@pytest.mark.parametrize("family", OPTIONS)
def test_a_script_cut_off_from_its_launcher_leaves_each_rank_alone(
    programs: Mapping[Family, Path], fresh_home: Path, alone: Path, family: Family
) -> None:
    ended = run(*OPTIONS[family], "--", alone, programs[family])
    assert ended.returncode == 5
    assert "2 worlds of one rank instead of one world of 2" in ended.stderr


def test_two_programs_that_a_script_runs_one_after_the_other(
    programs: Mapping[Family, Path], fresh_home: Path, alone: Path
) -> None:
    """Open MPI 5 connects each; MPICH 5.0.2 ends the second one with SIGPIPE."""
    program = programs[Family.OPENMPI]
    ended = run(*OPENMPI, "--", "sh", "-c", f"{program} && {program}")
    assert (ended.returncode, ended.stderr) == (0, "")
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
