"""Files that ranks in a container write by relative paths: they are in the user's folder and the
user's, or it was refused, or the rank was told. None is lost with exit code 0."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from testbed import someone
from testbed.engines import USER, Engines
from testbed.images import Images
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

ENGINES = ["bwrap", "podman", "apptainer"]
APP = "/opt/app/hello"
ENTRY = (sys.executable, "-m", "mpigraft.cli.entry", "run")
WRITE = f'{APP} && echo "$OMPI_COMM_WORLD_RANK" >"out $OMPI_COMM_WORLD_RANK.dat"'
FILES = {"out 0.dat": "0\n", "out 1.dat": "1\n"}


@pytest.fixture
def far() -> Iterator[Path]:
    """A folder that no image has, and that is not below /tmp, which every engine binds."""
    folder = Path(tempfile.mkdtemp(prefix="mpigraft-data-", dir="/"))
    folder.chmod(0o777)
    cwd = folder / "run 1, é"
    cwd.mkdir()
    yield cwd
    shutil.rmtree(folder)


def of(image: Path, engine: str, ranks: int, script: str) -> list[str]:
    return [
        *ENTRY, "--image", str(image), "--engine", engine, "--mpi", "openmpi@4.1.8",
        "--program", APP, "-n", str(ranks), "--", "sh", "-c", script,
    ]  # fmt: skip


def run(argv: list[str], cwd: Path, environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, cwd=cwd, env=environ, capture_output=True, text=True, timeout=200, check=False
    )


def written(cwd: Path, owner: int) -> dict[str, str]:
    """Content of each file, which is then removed."""
    found = {}
    for file in cwd.iterdir():
        assert (file.stat().st_uid, file.stat().st_gid) == (owner, owner)
        found[file.name] = file.read_text(encoding="utf-8")
        file.unlink()
    return found


@pytest.mark.parametrize("engine", ENGINES)
def test_they_are_in_a_working_folder_that_the_guest_lacks(
    outside: Mapping[str, str], images: Images, need: Need, engine: str, far: Path
) -> None:
    """`../lost` and `/lost` were in a layer that ended with the job, and the code was 0."""
    need(engine)
    script = f'{WRITE}; for f in ../lost /lost; do (echo >"$f") || echo "told of $f"; done'
    for _ in range(2):
        done = run(of(images.folder("bookworm"), engine, 2, script), far, outside)
        assert done.returncode == 0, done.stderr
        assert written(far, 0) == FILES
        told = sorted(line for line in done.stdout.splitlines() if line.startswith("told"))
        assert told == ["told of ../lost"] * 2 + ["told of /lost"] * 2, done.stderr
    assert not Path("/lost").exists()
    assert [*far.parent.iterdir()] == [far]


@pytest.mark.covering
def test_what_an_engine_cannot_bind_is_refused_before_the_launch(
    outside: Mapping[str, str], images: Images, need: Need, far: Path
) -> None:
    need("charliecloud")
    for _ in range(2):
        done = run(of(images.folder("bookworm"), "charliecloud", 1, WRITE), far, outside)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"bookworm has no {far}" in done.stderr
        assert "what to do: make it in the image, start from below /tmp" in done.stderr
        assert written(far, 0) == {}


@pytest.mark.parametrize("engine", ["bwrap", "podman", "apptainer", "charliecloud"])
def test_an_ordinary_user_owns_them(
    engines: Engines,
    outside: Mapping[str, str],
    cache_folder: Path,
    need: Need,
    engine: str,
    far: Path,
) -> None:
    need(engine, as_user=True)
    older = Path(outside["MPIGRAFT_HOME"], "mpi/openmpi-4.1.8")
    home = someone.new_home(engines, [older], f"home-{engine}")
    cwd = far if engine != "charliecloud" else home / "work"
    cwd.mkdir(exist_ok=True)
    who = pwd.getpwnam(USER).pw_uid
    os.chown(cwd, who, who)
    image = engines.image("bookworm", engine, as_user=True)
    for _ in range(2):
        argv = someone.words(
            engines, home, cache_folder, *of(image, engine, 2, f"{WRITE}; id -u >who")
        )
        done = run(argv, cwd, outside)
        assert done.returncode == 0, done.stderr
        assert written(cwd, who) == {**FILES, "who": f"{who}\n"}
