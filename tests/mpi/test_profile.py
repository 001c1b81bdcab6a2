"""`mpigraft profile` with real MPIs: what was called is counted, however the program ended."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from mpigraft.core.model import Family
from tests.native.native_world import compile_c

pytestmark = pytest.mark.mpi
LONG = pytest.mark.long

ENTRY = (sys.executable, "-m", "mpigraft.cli.entry", "profile")
FAMILIES = {"openmpi@5": Family.OPENMPI, "mpich@5": Family.MPICH}
Words = tuple[object, ...]


@pytest.fixture(scope="module")
def programs(
    mpis: Mapping[Family, Path], tmp_path_factory: pytest.TempPathFactory
) -> Mapping[str, Path]:
    made = {}
    for name, family in FAMILIES.items():
        prefix = mpis[family]
        library = next(p for p in (prefix / "lib").glob("libmpi.so.*") if p.name.count(".") == 2)
        made[name] = compile_c(
            Path(__file__).with_name("phases.c"),
            tmp_path_factory.mktemp("a program") / "phases",
            "-isystem", prefix / "include", library,
        )  # fmt: skip
    return made


def profile(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    argv = [*ENTRY, *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120, cwd=cwd)


def document(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))["profile"]


@pytest.mark.parametrize(
    ("name", "ranks"),
    [
        ("openmpi@5", 3),
        ("mpich@5", 2),
        pytest.param("openmpi@5", 1, marks=LONG),
        pytest.param("mpich@5", 1, marks=LONG),
    ],
)
def test_counts_are_those_of_the_program(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path, name: str, ranks: int
) -> None:
    kept = tmp_path / "my profile.json"
    ran = profile("--mpi", name, "-n", ranks, "-o", kept, "--", programs[name], "fine")
    assert ran.returncode == 0, ran.stderr
    assert "".join(ran.stdout.split()) == "done" * ranks  # nothing of ours; lines may be mixed
    assert ran.stderr.startswith("phases: ")
    found = document(kept)
    assert found["ranks"] == ranks
    routines = {one["name"]: one for one in found["routines"]}
    assert routines["Alltoallv"]["calls"] == 10 * ranks
    assert routines["Allreduce"]["calls"] == 20 * ranks
    assert routines["Allreduce"]["bytes"] == 20 * ranks * 8
    assert all(one["finalized"] for one in found["each"])
    again = profile("--show", kept)
    assert again.returncode == 0
    assert again.stdout == ran.stderr


def test_a_call_that_fails_moves_nothing(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path
) -> None:
    kept = tmp_path / "a.json"
    words = ("--mpi", "mpich@5", "-n", 1, "-o", kept, "--", programs["mpich@5"], "refused")
    assert profile(*words).returncode == 0
    (bcast,) = (one for one in document(kept)["routines"] if one["name"] == "Bcast")
    assert (bcast["calls"], bcast["bytes"]) == (1, 0)


def test_waits_and_sites_and_the_page(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path
) -> None:
    kept, page = tmp_path / "a.json", tmp_path / "a.html"
    options = ("--waits", "--sites", "-o", kept, "--html", page)
    ran = profile("--mpi", "openmpi@5", "-n", 2, *options, "--", programs["openmpi@5"], "fine")
    assert ran.returncode == 0, ran.stderr
    found = document(kept)
    allreduce = next(one for one in found["routines"] if one["name"] == "Allreduce")
    assert allreduce["waited_s"] > 0
    sites = [one for one in found["sites"] if one["routine"] == "Alltoallv"]
    assert [frame.split()[0] for frame in sites[0]["frames"]] == ["exchange", "main"]
    assert {(one["source"], one["target"]) for one in found["peers"]} >= {(0, 1), (1, 0)}
    assert page.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("name", ["mpich@5", pytest.param("openmpi@5", marks=LONG)])
def test_a_program_says_what_is_not_profiled(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path, name: str
) -> None:
    kept = tmp_path / "a.json"
    ran = profile("--mpi", name, "-n", 2, "-o", kept, "--", programs[name], "pcontrol")
    assert ran.returncode == 0, ran.stderr
    found = document(kept)
    calls = {one["name"]: one["calls"] for one in found["routines"]}
    assert calls["Alltoallv"] == 2 * 11
    assert not {"Comm_dup", "Barrier", "Comm_free"} & set(calls)
    assert all(one["finalized"] for one in found["each"])
    assert any("MPI_Pcontrol left out" in note for note in found["notes"])
    inside = sum(one["time_s"] for one in found["routines"])
    assert found["total_s"] - inside < 2 * 0.2  # the pause is no part of the run


@pytest.mark.parametrize(
    ("name", "how", "code"),
    [
        ("openmpi@5", "abort", 7),
        ("mpich@5", "segv", None),
        pytest.param("openmpi@5", "exit", 3, marks=LONG),
        pytest.param("openmpi@5", "segv", None, marks=LONG),
        pytest.param("mpich@5", "exit", 3, marks=LONG),
        pytest.param("mpich@5", "abort", 7, marks=LONG),
    ],
)
def test_a_program_that_ends_badly_leaves_its_numbers(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path, name: str, how: str,
    code: int | None,
) -> None:  # fmt: skip
    kept = tmp_path / "a.json"
    ran = profile("--mpi", name, "-n", 2, "-o", kept, "--", programs[name], how)
    assert ran.returncode == code or (code is None and ran.returncode), ran.stderr
    found = document(kept)
    assert found["exit_code"] == ran.returncode
    assert {one["name"]: one["calls"] for one in found["routines"]}["Alltoallv"] == 20
    assert any(one["finalized"] is False for one in found["each"])
    assert "not finalized: rank" in ran.stderr


@pytest.fixture
def hanging(programs: Mapping[str, Path]) -> Iterator[Callable[[Path], subprocess.Popen[str]]]:
    """A job whose ranks have come to where they hang: rank 0 outside of MPI, the other in Recv."""
    started: list[subprocess.Popen[str]] = []

    def start(kept: Path) -> subprocess.Popen[str]:
        words = ("--mpi", "openmpi@5", "-n", 2, "-o", kept, "--", programs["openmpi@5"], "hang")
        job = subprocess.Popen(
            [*ENTRY, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        started.append(job)
        assert job.stdout is not None
        assert [job.stdout.readline() for _ in range(2)] == ["done\n"] * 2
        return job

    yield start
    for job in started:
        job.kill()
        job.wait()


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=LONG)])
def test_a_hang_that_is_interrupted_is_shown_with_its_routine(
    hanging: Callable[[Path], subprocess.Popen[str]], fresh_home: Path, tmp_path: Path,
    number: signal.Signals,
) -> None:  # fmt: skip
    kept = tmp_path / "a.json"
    job = hanging(kept)
    os.kill(job.pid, number)
    _, errors = job.communicate(timeout=60)
    assert job.returncode
    found = document(kept)
    inside = {one["rank"]: one["inside"] for one in found["each"]}
    assert inside == {0: "", 1: "Recv"}
    assert "not finalized: rank 1, in Recv for" in errors
    assert not [*(tmp_path / "scratch").glob("mpigraft-*")]


def test_a_program_without_mpi_says_why_there_is_nothing(fresh_home: Path, tmp_path: Path) -> None:
    kept = tmp_path / "a.json"
    words = ("--mpi", "openmpi@5", "-n", 1, "--no-proof", "-o", kept, "--", "/bin/echo", "hello")
    ran = profile(*words)
    assert (ran.returncode, ran.stdout) == (0, "hello\n")
    assert "entered MPI_Init" in ran.stderr
    assert not kept.exists()


def test_a_place_that_cannot_be_written_is_refused_before_the_start(
    programs: Mapping[str, Path], fresh_home: Path, tmp_path: Path
) -> None:
    for option, place in (("-o", tmp_path), ("--html", tmp_path / "no folder/a.html")):
        ran = profile("-n", 2, option, place, "--", programs["openmpi@5"], "fine")
        assert (ran.returncode, ran.stdout) == (2, "")
        assert "is a folder" in ran.stderr or "no folder" in ran.stderr
