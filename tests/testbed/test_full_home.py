"""A home folder in which nothing can be written: what needs none of it runs, the rest is refused
before it starts, and once there is room all is as if it had never been."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed.images import Images
from tests.native.native_world import compile_c

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

ENTRY = (sys.executable, "-m", "mpigraft.cli.entry", "run")
RANKS = ["rank 0 of 2", "rank 1 of 2"]
KEPT = ("job", "run", "evidence")  # kinds of documents that a second start rests on


class Home:
    """A small disk for HOME and MPIGRAFT_HOME; jobs of a host program and of a guest."""

    def __init__(
        self, folder: Path, outside: Mapping[str, str], image: Path, program: Path
    ) -> None:
        self.disk, self.cwd = folder / "disk", folder / "work"
        self.image, self.program = image, program
        self.disk.mkdir()
        self.cwd.mkdir()
        self._do("mount", "-t", "tmpfs", "-o", "size=64m", "none", self.disk)
        self.home = self.disk / "mpigraft"
        self.home.mkdir()
        (self.home / "mpi").symlink_to(Path(outside["MPIGRAFT_HOME"], "mpi"))
        self.environ = {**outside, "HOME": str(self.disk), "MPIGRAFT_HOME": str(self.home)}

    def fill(self) -> None:
        with (self.disk / "filler").open("wb", buffering=0) as file:
            for size in (1 << 20, 1 << 12):
                try:
                    while file.write(bytes(size)) == size:
                        pass
                except OSError:
                    continue

    def shut(self) -> None:
        self._do("mount", "-o", "remount,ro", self.disk)

    def open(self) -> None:
        self._do("mount", "-o", "remount,rw", self.disk)
        (self.disk / "filler").unlink(missing_ok=True)

    def close(self) -> None:
        self._do("umount", "--lazy", self.disk)

    def host(self, *words: str) -> None:
        """A program of this machine runs."""
        done = self._run("--mpi", "openmpi@5", *words, "-n", "2", "--", self.program)
        assert (done.returncode, done.stderr) == (0, "")
        assert sorted(done.stdout.split("\n")[:2]) == RANKS

    def guest(self) -> subprocess.CompletedProcess[str]:
        of = ("--image", self.image, "--engine", "bwrap", "--mpi", "openmpi@4.1.8")
        return self._run(*of, "-n", "2", "--", "/opt/app/hello")

    def guest_runs(self) -> None:
        for _ in range(2):
            done = self.guest()
            assert (done.returncode, done.stderr) == (0, "")
            assert done.stdout.count("of SIZE 2 LIBRARY Open MPI v4.1.8") == 2

    def guest_is_refused(self, seen: str) -> None:
        done = self.guest()
        assert (done.returncode, done.stdout) == (3, ""), done.stderr
        assert seen in done.stderr
        assert "what to do: free some space, or set MPIGRAFT_HOME" in done.stderr

    def halves(self) -> list[Path]:
        """What was begun and not ended, and what is kept and empty."""
        cache = self.home / "cache"
        begun = [*cache.glob("*/.*"), *(self.home / "grafts").glob(".*")]
        begun += [*(self.home / "libraries").glob(".*"), *self.home.glob("grafts/*/ranks/*")]
        return begun + [f for kind in KEPT for f in (cache / kind).glob("*") if not _size(f)]

    def _run(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*ENTRY, *map(str, words)], env=self.environ, cwd=self.cwd,
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip

    def _do(self, *argv: str | Path) -> None:
        subprocess.run([*map(str, argv)], check=True)


def _size(file: Path) -> int:
    return file.stat().st_size


@pytest.fixture
def home(
    tmp_path: Path, outside: Mapping[str, str], images: Images, mpis: Mapping[Family, Path]
) -> Iterator[Home]:
    prefix = mpis[Family.OPENMPI]
    source = Path(__file__).parents[1] / "mpi" / "ranks.c"
    library = prefix / "lib" / "libmpi.so.40"
    program = compile_c(source, tmp_path / "ranks", "-isystem", prefix / "include", library)
    home = Home(tmp_path, outside, images.folder("bookworm"), program)
    try:
        yield home
    finally:
        home.close()


@pytest.mark.covering
def test_a_cold_start_without_room(home: Home) -> None:
    home.fill()
    for _ in range(2):
        home.host("--transport", "ob1-sm")
    home.guest_is_refused("No space left on device")
    assert home.halves() == []
    home.open()
    home.shut()
    home.host()
    home.guest_is_refused("Read-only file system")
    home.open()
    home.host("--transport", "ob1-sm")
    home.guest_runs()


def test_a_warm_start_without_room(home: Home) -> None:
    """A full job was run before it was told that no rank had written a record: code 5."""
    home.host("--transport", "ob1-sm")
    home.guest_runs()
    for stop in (home.fill, home.shut):
        stop()
        home.host("--transport", "ob1-sm")
        home.guest_is_refused("cannot write into ")
        home.open()
        assert home.halves() == []
        home.host("--transport", "ob1-sm")
        home.guest_runs()
