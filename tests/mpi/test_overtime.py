"""A campaign over time for real: measured, repeated, compared, rechecked, and bundled for somebody
who has no mpigraft."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
from pathlib import Path

import pytest

from mpigraft.native.programs import PREBUILT
from tests.mpi.campaigns import mpigraft
from tests.mpi.test_suites import program

pytestmark = [pytest.mark.mpi, pytest.mark.long]
BENCH = PREBUILT / os.uname().machine / "ompi" / "mpigraft-bench"
OSU = f"""#!/bin/sh
# understands "+:hvm:x:i:c::z::T:f"
exec {BENCH} --format osu --benchmark latency --min 1 --max 64 --budget 1
"""
SOLVER = """
#include <mpi.h>
#include <stdio.h>
int main(int count, char **words)
{
    int rank, ranks;
    MPI_Init(&count, &words);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    double start = MPI_Wtime();
    for (int i = 0; i < 2000; i++)
        MPI_Barrier(MPI_COMM_WORLD);
    FILE *file = rank ? NULL : fopen("figure.txt", "w");
    if (file && fprintf(file, "of %s ranks: rate: %g\\n", words[1], 2000 / (MPI_Wtime() - start)))
        fclose(file);
    MPI_Finalize();
    return 0;
}
"""
CAMPAIGN = """
mpi = ["openmpi@5"]
transport = ["ob1-sm", "ucx"]
benchmark = ["latency", "osu:latency", "app:solver"]
layout = ["1x2"]
rounds = 6
max = 64
ms_per_size = 1
name = "before"
osu = ["{folder}"]
[app.solver]
command = ["./solver", "{{ranks}}"]
folder = "{folder}"
output = "figure.txt"
figure = "rate: ([0-9.e+]+)"
unit = "1/s"
better = "higher"
"""


@pytest.fixture(scope="module")
def prefix() -> Path:
    return next((Path(os.environ["MPIGRAFT_HOME"]) / "mpi").glob("openmpi-5*"))


@pytest.fixture
def suites(tmp_path: Path, prefix: Path) -> Path:
    """A campaign file, an application, and what stands for a program of OSU."""
    folder = tmp_path / "suites"
    folder.mkdir()
    program(folder, "osu_latency", OSU)
    (folder / "solver.c").write_text(SOLVER)
    subprocess.run([prefix / "bin/mpicc", "solver.c", "-o", "solver"], cwd=folder, check=True)
    (folder / "campaign.toml").write_text(CAMPAIGN.format(folder=folder))
    return folder


@pytest.mark.usefixtures("fresh_home")
def test_a_machine_over_time(
    suites: Path, store_folder: Path, tmp_path: Path, prefix: Path
) -> None:
    columns = {"env": {**os.environ, "COLUMNS": "80"}}

    def start(*words: object, code: int = 0) -> str:
        ended = mpigraft("--store", store_folder, *words, **columns)
        assert ended.returncode == code, ended.stdout + ended.stderr
        narrow = all(len(line) <= 80 for line in ended.stdout.splitlines())
        assert narrow or "--json" in words, ended.stdout
        return ended.stdout

    start("bench", suites / "campaign.toml", "--here")
    assert "what changed since: mpigraft compare" in start(
        "bench", "--again", "before", "--name", "after", "--here"
    )
    compared = json.loads(start("compare", "before", "after", "--json"))
    assert {row["benchmark"] for row in compared["comparisons"]} == {
        "native:latency", "osu:latency", "app:solver",
    }  # fmt: skip
    assert not [row for row in compared["changes"] if row["status"] == "changed"]
    start("compare", "before", "after")
    start("history", "--accept", "before")
    text = start("history", "-o", tmp_path / "history.html", "--junit", tmp_path / "history.xml")
    assert "2 campaigns" in text
    good = mpigraft("--store", store_folder, "recheck", "--minutes", "1", "--here", **columns)
    assert good.returncode in (0, 1, 6), good.stdout + good.stderr  # nobody else may be still
    assert "against before" in good.stdout
    start("bundle", "after", "--with", "before", "-o", tmp_path / "b.tar.gz", "--no-hosts")
    _run_without_mpigraft(tmp_path / "b.tar.gz", tmp_path / "elsewhere", prefix)


def _run_without_mpigraft(archive: Path, folder: Path, prefix: Path) -> None:
    """Unpack a bundle, check it, and measure by its scripts with nothing of ours in reach."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (bundle,) = folder.iterdir()
    subprocess.run(["sha256sum", "-c", "--strict", "--quiet", "SHA256SUMS"], cwd=bundle, check=True)
    own = {"PATH": "/usr/bin:/bin", "HOME": str(folder), "MPI_PREFIX": str(prefix)}
    gone = subprocess.run(["/usr/bin/python3", "-c", "import mpigraft"], env=own, cwd=folder)
    assert gone.returncode != 0
    scripts = sorted((bundle / "scripts").iterdir())
    assert len(scripts) == 2
    for script in scripts:
        ran = subprocess.run(
            ["sh", script], cwd=folder, env=own, capture_output=True, text=True, timeout=120
        )
        assert ran.returncode == 0, ran.stderr
        assert len(re.findall(r"^64\s+[\d.]+", ran.stdout, re.MULTILINE)) == 1, ran.stdout
        assert len(re.findall(r'"mpigraft":"value".*"size":64\b', ran.stdout)) == 1, ran.stdout
        assert re.search(r"of 2 ranks: rate: [\d.e+]+$", ran.stdout, re.MULTILINE), ran.stdout
    assert {path.name for path in folder.iterdir()} == {bundle.name}, "what was built is removed"


def test_intels_benchmarks_run_from_a_bundle(
    fresh_home: Path, store_folder: Path, tmp_path: Path
) -> None:
    del fresh_home
    bench = mpigraft(
        "--store", store_folder, "bench", "--mpi", "intel", "--transport", "shm", "--benchmark",
        "imb:PingPong", "--layout", "1x2", "--rounds", "1", "--max", "64", "--quick", "--here",
    )  # fmt: skip
    assert bench.returncode == 0, bench.stderr
    made = mpigraft("--store", store_folder, "bundle", "-o", tmp_path / "b.tar.gz")
    assert made.returncode == 0, made.stderr
    with tarfile.open(tmp_path / "b.tar.gz") as tar:
        tar.extractall(tmp_path / "x", filter="data")
    (script,) = (tmp_path / "x").glob("*/scripts/*.sh")
    intel = next((Path(os.environ["MPIGRAFT_HOME"]) / "mpi").glob("intel-*"))
    own = {"PATH": "/usr/bin:/bin", "MPI_PREFIX": str(intel), "PROGRAMS": str(intel)}
    ran = subprocess.run(["sh", script], cwd=tmp_path, env=own, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "Benchmarking PingPong" in ran.stdout
    assert not list(tmp_path.glob("mpigraft-bench*"))
