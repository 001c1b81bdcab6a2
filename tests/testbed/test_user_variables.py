"""A user's variables in ranks of a container, whichever engine and launcher start them: byte for
byte, or named by --explain with the flag that brings them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed.images import Images
from tests.testbed.conftest import IN_EACH_ENGINE, Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

ODD = "a\nb \"c\" 'd' $(touch /tmp/mpigraft-evil) `id` \\n \\\\ %s ${HOME}  "
MINE = {
    "EBEAM": "5", "EBUS": "1", "CONDAX": "1", "MODULES_N": "4", "BASHFOO": "1", "SPACK_X": "1",
    "ODD": ODD, "LONG": "x" * 100_000, "EMPTY": "", "EQUALS": "a=b=c",
}  # fmt: skip
THEIRS = {
    "EBROOTGCC": "/apps/gcc", "CONDA_PREFIX": "/conda", "LMOD_CMD": "/lmod", "MY.VAR": "1",
    "BASH_FUNC_f%%": "() {  :\n}", "PYTHONPATH": "/tmp", "FAR_PATH": "/nowhere/at/all",
}  # fmt: skip
# What a rank has, a name and a value between NULs. The image has neither python nor MPI's own env.
TELL = ("sh", "-c", "env -0")


def started(outside: Mapping[str, str], cwd: Path, *words: object) -> tuple[dict[str, str], str]:
    """(what a rank sees, stderr) of a job with all of these variables."""
    environ = {**outside, **MINE, **THEIRS, "NEAR_PATH": str(cwd)}
    argv = [sys.executable, "-m", "mpigraft.cli.entry", "run", *map(str, words), "--", *TELL]
    done = subprocess.run(argv, capture_output=True, timeout=300, env=environ, cwd=cwd)
    assert done.returncode == 0, done.stderr
    rows = (row.partition("=") for row in done.stdout.decode().split("\0"))
    return {name: value for name, _, value in rows}, done.stderr.decode()


@IN_EACH_ENGINE
def test_they_arrive_or_are_named(
    outside: Mapping[str, str], images: Images, need: Need, engine: str, tmp_path: Path
) -> None:
    need(engine)
    of = ("--image", images.folder("bookworm"), "--engine", engine, "--mpi", "openmpi@4.1.8")
    inside, told = started(outside, tmp_path, *of, "-n", 1, "--no-proof", "--explain")
    assert {name: inside.get(name) for name in MINE} == MINE
    assert inside["NEAR_PATH"] == str(tmp_path)
    assert not THEIRS.keys() & inside.keys()
    assert str(tmp_path) not in inside["PATH"]
    dropped = [line for line in told.splitlines() if line.startswith("mpigraft: dropped:")]
    for name in (*THEIRS, "PATH"):
        (line,) = [line for line in dropped if name in line.partition("  [")[0].split()]
        assert "brings it in" in line or name in ("MY.VAR", "BASH_FUNC_f%%"), line
    assert not Path("/tmp/mpigraft-evil").exists()


@pytest.mark.long
@pytest.mark.parametrize("mpi", ["openmpi@5", "intel"])
def test_they_arrive_under_other_launchers(
    outside: Mapping[str, str], images: Images, mpi: str, tmp_path: Path
) -> None:
    image, program = ("bookworm-mpich", "hello_mpi") if mpi == "intel" else ("bookworm", "hello")
    of = ("--image", images.folder(image), "--program", f"/opt/app/{program}", "--mpi", mpi)
    inside, _ = started(outside, tmp_path, *of, "--engine", "bwrap", "-n", 1, "--no-proof")
    assert {name: inside.get(name) for name in MINE} == MINE


def test_what_was_dropped_comes_with_the_flag_that_is_named(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    far = tmp_path / "far"
    far.mkdir()
    cwd = tmp_path / "here"
    cwd.mkdir()
    environ = {**outside, "TMPDIR": "/tmp", "FAR_PATH": "/opt/far", "EBROOTGCC": "/x"}
    of = ("--image", images.folder("bookworm"), "--engine", "bwrap", "--mpi", "openmpi@4.1.8")
    bring = ("--bind", f"{far}:/opt/far", "--env", "FAR_PATH=/opt/far", "--env", "EBROOTGCC=/y")
    argv = [sys.executable, "-m", "mpigraft.cli.entry", "run", *map(str, of), *bring]
    done = subprocess.run(
        [*argv, "-n", "1", "--no-proof", "--", "sh", "-c", "echo $FAR_PATH $EBROOTGCC"],
        capture_output=True, text=True, timeout=300, env=environ, cwd=cwd,
    )  # fmt: skip
    assert done.stdout.split() == ["/opt/far", "/y"], done.stderr


def test_a_folder_that_is_made_later_brings_its_variable(
    outside: Mapping[str, str], images: Images, tmp_path: Path
) -> None:
    """What was decided is kept; that a folder was not there is part of it."""
    due = tmp_path / "due"
    environ = {**outside, "DUE_PATH": str(due)}
    of = ("--image", images.folder("bookworm"), "--engine", "bwrap", "--mpi", "openmpi@4.1.8")
    argv = [sys.executable, "-m", "mpigraft.cli.entry", "run", *map(str, of), "-n", "1"]
    seen = []
    for _ in range(2):
        done = subprocess.run(
            [*argv, "--no-proof", "--", "sh", "-c", 'echo "<$DUE_PATH>"'],
            capture_output=True, text=True, timeout=300, env=environ, cwd=tmp_path,
        )  # fmt: skip
        seen.append(done.stdout.strip())
        due.mkdir(exist_ok=True)
    assert seen == ["<>", f"<{due}>"], json.dumps(seen)
