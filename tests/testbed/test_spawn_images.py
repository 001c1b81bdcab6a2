"""MPI_Comm_spawn from ranks in an image: what they start is in it too."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from mpigraft.native.programs import PREBUILT, SPAWN
from testbed.images import Images
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]
INSIDE = "/media"  # empty on this machine, and in images
RANKS = 1 if (os.cpu_count() or 1) > 2 else 3  # of Open MPI: two slots are free, or none is counted
INTEL = ("--transport", "shm-ofi-tcp")
EVERY_MPI = [
    (engine, *row)
    for engine in ("podman", "bwrap", "apptainer", "charliecloud")
    for row in (
        ("openmpi@4.1.8", "ompi", ()), ("openmpi@5", "ompi", ()), ("mpich@5", "mpich", ()),
        ("intel", "mpich", INTEL),
    )
    if (engine, row[0]) != ("podman", "intel")  # which a check refuses
]  # fmt: skip
Done = subprocess.CompletedProcess[str]
Spawn = Callable[..., Done]


@pytest.fixture
def spawn(
    outside: Mapping[str, str], images: Images, tmp_path_factory: pytest.TempPathFactory
) -> Spawn:
    """Start mpigraft-spawn, at a path that only ranks have, with `words` behind it."""
    work = tmp_path_factory.mktemp("work")

    def start(engine: str, mpi: str, abi: str, *words: str, options: tuple[str, ...] = ()) -> Done:
        shutil.copy(PREBUILT / platform.machine() / abi / SPAWN, work)
        argv = [
            sys.executable, "-m", "mpigraft.cli.entry", "run", "--image",
            str(images.folder("bookworm-bare")), "--engine", engine, "--mpi", mpi, "-n",
            str(RANKS), "--stdin", "none", "--bind", f"{work}:{INSIDE}", *options, "--",
            f"{INSIDE}/{SPAWN}", *words,
        ]  # fmt: skip
        return subprocess.run(
            argv, capture_output=True, text=True, timeout=120, env=dict(outside), cwd=work
        )

    return start


def children(done: Done) -> dict[str, object]:
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, object] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("engine", "mpi", "abi", "libmpi", "option"),
    [
        ("podman", "openmpi@5", "ompi", "libmpi.so.40", "--env"),
        ("bwrap", "mpich@5", "mpich", "libmpi.so.12", "--engine-option"),
    ],
)
def test_children_are_in_the_image_with_the_variables_of_ranks(
    spawn: Spawn, need: Need, engine: str, mpi: str, abi: str, libmpi: str, option: str
) -> None:
    """Their engine has the options of the ranks' engine, --nv for instance."""
    need(engine)
    words = ("MPIGRAFT_MARK=1",) if option == "--env" else ("--setenv", "MPIGRAFT_MARK", "1")
    mark = tuple(f"{option}={word}" for word in words)
    found = children(spawn(engine, mpi, abi, options=mark))
    assert (found["parents"], found["children"], found["marked"]) == (RANKS, 2, 2)
    assert str(found["libmpi"]).endswith(f"/lib/{libmpi}")
    assert not Path(str(found["libmpi"])).exists(), "it is the graft's, at its place in the image"


@pytest.mark.long
@pytest.mark.parametrize("words", [(), ("multiple",)], ids=["one", "multiple"])
@pytest.mark.parametrize(("engine", "mpi", "abi", "options"), EVERY_MPI)
def test_children_of_every_mpi_are_in_the_image(
    spawn: Spawn,
    need: Need,
    engine: str,
    mpi: str,
    abi: str,
    options: tuple[str, ...],
    words: tuple[str, ...],
) -> None:
    need(engine)
    found = children(spawn(engine, mpi, abi, *words, options=options))
    assert found["children"] == 2
    assert not Path(str(found["libmpi"])).exists()


@pytest.mark.parametrize(
    ("engine", "mpi", "abi"),
    [
        pytest.param("bwrap", "openmpi@5", "ompi", marks=pytest.mark.long),
        ("bwrap", "mpich@5", "mpich"),
        ("podman", "mpich@5", "mpich"),
    ],
)
def test_a_program_that_the_image_lacks_ends_the_job(
    spawn: Spawn, need: Need, engine: str, mpi: str, abi: str
) -> None:
    """This machine has it; both launchers would wait forever for a child that does not start, and
    hydra for the other ranks of podman where their first one only exits."""
    need(engine)
    done = spawn(engine, mpi, abi, sys.executable)
    assert done.returncode == 4, done.stdout + done.stderr
    assert f"MPI_Comm_spawn names the program {sys.executable}" in done.stderr


def test_a_missing_program_of_the_working_folder_ends_the_job(spawn: Spawn, need: Need) -> None:
    need("bwrap")
    done = spawn("bwrap", "mpich@5", "mpich", "./nothere")
    assert done.returncode == 4, done.stdout + done.stderr


def test_a_program_that_env_would_take_for_a_variable_ends_the_job(
    spawn: Spawn, need: Need
) -> None:
    need("bwrap")
    done = spawn("bwrap", "mpich@5", "mpich", "/a=b")
    assert done.returncode == 4, done.stdout + done.stderr
    assert "MPI_Comm_spawn names the program /a=b" in done.stderr
