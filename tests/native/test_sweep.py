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
LAUNCHERS = {
    Family.OPENMPI: ("lib/libmpi.so.40", "bin/mpirun", "--allow-run-as-root", "--bind-to", "none",
                     "--oversubscribe", "-n", "2"),
    Family.MPICH: ("lib/libmpi.so.12", "bin/mpiexec.hydra", "-n", "2"),
}  # fmt: skip

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


def kill_whole(launch: subprocess.Popen[bytes]) -> None:
    """The launcher and its ranks first: they would end in order once their guard is gone."""
    for pid in (*descendants(launch.pid), launch.pid):
        os.kill(pid, signal.SIGKILL)
    launch.wait()
    time.sleep(0.5)  # until the kernel has unmapped what they had


@pytest.mark.mpi
@pytest.mark.parametrize("family", LAUNCHERS)
def test_what_a_killed_launch_left_is_removed_by_the_next(
    guard: Path, mpis: Mapping[Family, Path], folder: Path, tmp_path: Path, family: Family
) -> None:
    prefix, (library, launcher, *flags) = mpis[family], LAUNCHERS[family]
    (tmp_path / "sleeper.c").write_text(SLEEPER)
    program = compile_c(
        tmp_path / "sleeper.c", tmp_path / "sleeper",
        "-isystem", prefix / "include", prefix / library,
    )  # fmt: skip
    own = {**os.environ, "TMPDIR": str(folder), "LD_LIBRARY_PATH": str(prefix / "lib"),
           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # fmt: skip
    words: list[str | Path] = [guard, "--", prefix / launcher, *flags, program, tmp_path / "ran"]
    launch = subprocess.Popen(words, env=own)
    assert until((tmp_path / "ran").exists)
    kill_whole(launch)
    note = f"{NOTES}{launch.pid}"
    assert note in left(folder)
    assert any(folder.iterdir()) or family is Family.MPICH
    sweep(guard)
    assert note not in left(folder)
    assert not [name for name in left(folder) if name.startswith(("ompi.", "hydra_"))]
    mine = (f.name for f in SHM.iterdir() if f.name.startswith(("sm_segment.", "mpich_shm_")))
    began = (tmp_path / "sleeper").stat().st_mtime
    assert not [name for name in mine if began < (SHM / name).stat().st_mtime < time.time() - 2]


def a_launch(guard: Path, folder: Path, file: Path) -> subprocess.Popen[bytes]:
    """A launch that has made a file of an MPI's name, and goes on."""
    script = f"sleep 0.3; echo x > {file}; touch {folder}/ran; sleep 60"
    words: list[str | Path] = [guard, "--", "sh", "-c", script]
    launch = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(folder)})
    assert until((folder / "ran").exists)
    return launch


def a_killed_launch(guard: Path, folder: Path, name: str) -> tuple[subprocess.Popen[bytes], Path]:
    """One that was killed."""
    file = SHM / name
    launch = a_launch(guard, folder, file)
    time.sleep(0.3)  # for another tick
    kill_whole(launch)
    return launch, file


def test_what_is_in_use_stays_until_it_is_not(guard: Path, folder: Path) -> None:
    launch, file = a_killed_launch(guard, folder, f"sm_segment.test.{os.getpid()}")
    note = SHM / f"{NOTES}{launch.pid}"
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 2):
        sweep(guard)
        assert file.exists()
        assert note.exists()
    sweep(guard)
    assert not file.exists()
    assert not note.exists()


def test_what_is_of_others_stays(guard: Path, folder: Path) -> None:
    """Files of before the launch and of after it, and those with no name of an MPI's."""
    before, after, other = (SHM / f"{n}.test.{os.getpid()}" for n in
                            ("sm_segment.b", "sm_segment.a", "precious"))  # fmt: skip
    before.write_text("x")
    os.utime(before, (time.time() - 60,) * 2)
    try:
        _, file = a_killed_launch(guard, folder, f"mpich_shm_test{os.getpid()}")
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
    launch = a_launch(guard, folder, file)
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
