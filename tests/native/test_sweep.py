"""What a launch leaves in /dev/shm and in TMPDIR when SIGKILL ends all of it is removed by the
next guard, and nothing else is."""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process import descendants
from mpigraft.discovery.install import fetch
from mpigraft.native.programs import GUARD, SOURCES
from tests.native.native_world import compile_c
from tests.native.test_guard import SANITIZED, until

SHM = Path("/dev/shm")
NOTES = f"mpigraft-launch.{os.geteuid()}."
INITIAL = "pid:[4026531836]"
SLEEPER = """
#include <mpi.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char **argv)
{
    MPI_Init(&argc, &argv);
    MPI_Barrier(MPI_COMM_WORLD);
    fclose(fopen(argv[1], "w"));
    sleep(60);
    MPI_Finalize();
    return 0;
}
"""
MPIRUN = ("lib/libmpi.so.40", "bin/mpirun", "--allow-run-as-root", "--bind-to", "none",
          "--oversubscribe", "-n", "2")  # fmt: skip
HYDRA = ("lib/libmpi.so.12", "bin/mpiexec.hydra", "-n", "2")
LAUNCHERS = {  # and how names of what a killed one leaves begin: Intel MPI unlinks its files early
    "openmpi": (MPIRUN, {"ompi.", "sm_segment."}),
    "openmpi-4": (MPIRUN, {"ompi.", "vader_segment."}),
    "mpich": (HYDRA, {"mpich_shm_"}),
    "intel": (HYDRA, set[str]()),
}

pytestmark = pytest.mark.skipif(
    str(Path("/proc/self/ns/pid").readlink()) != INITIAL,
    reason="a guard in a container removes nothing",
)


@pytest.fixture(scope="module", params=["prebuilt", "sanitized"])
def guard(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if request.param == "prebuilt":
        programs: Path = request.getfixturevalue("programs")
        return programs / GUARD
    place = tmp_path_factory.mktemp("guard") / "guard"
    return compile_c(SOURCES / "start/guard.c", place, SOURCES / "start/sweep.c", *SANITIZED)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A TMPDIR with a short path, as PMIx's sockets need."""
    place = Path(f"/tmp/mpigraft-sweep-{os.getpid()}")
    place.mkdir()
    yield place
    shutil.rmtree(place)


def left(folder: Path) -> set[str]:
    return {path.name for place in (SHM, folder) for path in place.iterdir()}


def sweep(guard: Path) -> None:
    subprocess.run([guard, "--", "true"], check=True, timeout=60)


def swept(guard: Path, folder: Path) -> set[str]:
    """What is left after a sweep; what other tests' launches have in use is, until they end."""
    sweep(guard)
    return left(folder)


def kill_whole(launch: subprocess.Popen[bytes]) -> None:
    """All of it is stopped first: what still runs would end in order once others are gone."""
    whole = (*descendants(launch.pid), launch.pid)
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in whole:
            os.kill(pid, number)
    launch.wait()
    time.sleep(0.5)  # until the kernel has unmapped what they had


@pytest.fixture
def prefix(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The prefix of an MPI of LAUNCHERS."""
    if request.param != "openmpi-4":
        mpis: Mapping[Family, Path] = request.getfixturevalue("mpis")
        return mpis[Family(request.param)]
    cache_folder: Path = request.getfixturevalue("cache_folder")
    monkeypatch.setenv("MPIGRAFT_HOME", str(cache_folder / "home-openmpi-4"))
    return fetch.fetch_mpi(Family.OPENMPI, "4.1.8")


@pytest.mark.mpi
@pytest.mark.parametrize(("prefix", "name"), [(n, n) for n in LAUNCHERS], indirect=["prefix"])
def test_what_a_killed_launch_left_is_removed_by_the_next(
    guard: Path, prefix: Path, folder: Path, tmp_path: Path, name: str
) -> None:
    (library, launcher, *flags), begin = LAUNCHERS[name]
    (tmp_path / "sleeper.c").write_text(SLEEPER)
    program = compile_c(
        tmp_path / "sleeper.c", tmp_path / "sleeper",
        "-isystem", prefix / "include", prefix / library, "-Wl,--allow-shlib-undefined",
    )  # fmt: skip
    own = {**os.environ, "TMPDIR": str(folder), "LD_LIBRARY_PATH": str(prefix / "lib"),
           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # fmt: skip
    words: list[str | Path] = [guard, "--", prefix / launcher, *flags, program, tmp_path / "ran"]
    launch = subprocess.Popen(words, env=own)
    assert until((tmp_path / "ran").exists)
    maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in descendants(launch.pid))
    made = {file.name for file in SHM.iterdir() if file.name in maps} | {f"{NOTES}{launch.pid}"}
    made |= {file.name for file in folder.iterdir()}
    assert begin == {one for one in begin if any(name.startswith(one) for name in made)}
    kill_whole(launch)
    assert until(lambda: not made & swept(guard, folder))
    assert not [*folder.iterdir()]


def a_launch(
    guard: Path, folder: Path, file: Path, after_s: float = 0.3
) -> subprocess.Popen[bytes]:
    """A launch that has made a file of an MPI's name, and goes on."""
    script = f"sleep {after_s}; echo x > {file}; touch {folder}/ran; sleep 60"
    words: list[str | Path] = [guard, "--", "sh", "-c", script]
    launch = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(folder)})
    assert until((folder / "ran").exists)
    return launch


def kill_later(launch: subprocess.Popen[bytes]) -> None:
    time.sleep(0.3)  # for another tick
    kill_whole(launch)


def test_what_is_in_use_stays_until_it_is_not(guard: Path, folder: Path) -> None:
    file = SHM / f"sm_segment.test.{os.getpid()}"
    launch = a_launch(guard, folder, file)
    note = SHM / f"{NOTES}{launch.pid}"
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 2):
        kill_later(launch)
        sweep(guard)
        assert file.exists()
        assert note.exists()
    assert until(lambda: not {file.name, note.name} & swept(guard, folder))


def test_what_is_of_others_stays(guard: Path, folder: Path) -> None:
    """Files of before the launch and of after it, and those with no name of an MPI's."""
    before, after, other = (SHM / f"{n}.test.{os.getpid()}" for n in
                            ("sm_segment.b", "sm_segment.a", "precious"))  # fmt: skip
    before.write_text("x")
    os.utime(before, (time.time() - 60,) * 2)
    try:
        file = SHM / f"mpich_shm_test{os.getpid()}"
        kill_later(a_launch(guard, folder, file))
        after.write_text("x")
        os.utime(after, (time.time() + 60,) * 2)
        other.write_text("x")
        sweep(guard)
        assert not file.exists()
        assert before.exists()
        assert after.exists()
        assert other.exists()
    finally:
        for path in (before, after, other):
            path.unlink()


def test_a_launch_that_runs_keeps_what_it_has(guard: Path, folder: Path) -> None:
    file = SHM / f"sm_segment.test.{os.getpid()}"
    launch = a_launch(guard, folder, file, 2.5)  # in no time that a note of a killed one covers
    sweep(guard)
    assert file.exists()
    assert (SHM / f"{NOTES}{launch.pid}").exists()
    launch.terminate()
    assert launch.wait(30) != 0
    assert not file.exists(), "it ended with a failure, and took its own along"
    assert not (SHM / f"{NOTES}{launch.pid}").exists()


@pytest.mark.parametrize("text", ["", "x", "1 2", "nan 1 1 /nothere"])
def test_a_note_of_nonsense_removes_nothing(guard: Path, text: str) -> None:
    note = SHM / f"{NOTES}999999"
    note.write_text(text)
    try:
        sweep(guard)
    finally:
        note.unlink(missing_ok=True)


def test_a_failed_launch_leaves_the_records_of_its_command(guard: Path, folder: Path) -> None:
    """They have that one's id in their name, and it reads them: here it is this process."""
    records = folder / f"mpigraft-{os.getpid()}-run0"
    words: list[str | Path] = [
        guard,
        "--",
        "sh",
        "-c",
        f"sleep 0.3; mkdir {records}; touch {records}/0; exit 7",
    ]
    ended = subprocess.run(words, env={**os.environ, "TMPDIR": str(folder)}, check=False)
    assert ended.returncode == 7
    assert (records / "0").exists()
