"""Real applications of science under `mpigraft run` compute what is known of them.

HPCC, which is small, runs every day; the others are tens of megabytes each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mpigraft.knowledge.cases import load_case
from tests.testbed import rootfs, science
from tests.testbed.science import APPLICATIONS, OPENMPI, Job, Science

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

DAILY = "hpcc"
PROFILED = ("hpcc", "gromacs", "espresso", "lammps")  # of which routines of a case were seen
LIMIT_S = 120.0
ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
PAIRS = [
    pytest.param(
        name,
        mpi,
        marks=[] if name == DAILY else [pytest.mark.long],
        id=f"{name}-{mpi}",
    )
    for name, application in APPLICATIONS.items()
    for mpi in application.mpis
]


@pytest.fixture(scope="module")
def sciences(cache_folder: Path) -> Science:
    if rootfs.own_suite() != science.SUITE:
        pytest.skip(f"these packages are of Debian {science.SUITE}")
    return Science(cache_folder)


def run(job: Job, *words: str, command: str = "run") -> subprocess.CompletedProcess[str]:
    """A job under `mpigraft run`, with these options of it."""
    words = (*words, *job.options, "--", *job.argv)
    argv = [sys.executable, "-m", "mpigraft.cli.main", command, *words]
    return subprocess.run(
        argv, env={**os.environ, **ROOT, **job.env}, cwd=job.folder, stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=LIMIT_S, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(("name", "mpi"), PAIRS)
@pytest.mark.usefixtures("fresh_home")
def test_an_application_computes_what_is_known_of_it(
    name: str, mpi: str, sciences: Science, tmp_path: Path
) -> None:
    job = sciences.job(name, tmp_path / "a case")
    done = run(job, "--mpi", mpi, "-n", "2")
    assert done.returncode == 0, done.stderr
    assert sciences.computed(name, job, done.stdout), done.stdout


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name == DAILY else [pytest.mark.long]) for name in PROFILED],
)
@pytest.mark.usefixtures("fresh_home")
def test_a_profile_has_the_routines_of_the_case(
    name: str, sciences: Science, tmp_path: Path
) -> None:
    job, file = sciences.job(name, tmp_path / "a case"), tmp_path / "profile.json"
    done = run(job, "--mpi", OPENMPI[0], "-n", "2", "-o", str(file), command="profile")
    assert done.returncode == 0, done.stderr
    assert sciences.computed(name, job, done.stdout), done.stdout
    profile = json.loads(file.read_text(encoding="utf-8"))["profile"]
    calls = {row["name"]: row["calls"] for row in profile["routines"]}
    assert profile["ranks"] == 2
    assert [one for one in load_case(name).routines if not calls.get(one)] == []


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_run_without_its_result_is_noticed(name: str, cache_folder: Path, tmp_path: Path) -> None:
    """What the test above rests on."""
    job = Job((), tmp_path, {})
    errors = "MPIRandomAccess_Errors=7\nSuccess=1\n Total SCF energy = -75.938341\n"
    if output := APPLICATIONS[name].output:
        (tmp_path / output).write_text(errors, encoding="utf-8")
    assert not Science(cache_folder).computed(name, job, errors)
