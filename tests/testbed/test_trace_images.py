"""`mpigraft record` and `profile` of programs in images, under each engine, for root and for an
ordinary user: what ranks write is whole, and nothing of it stays behind."""

from __future__ import annotations

import json
import os
import pwd
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from testbed import someone
from testbed.engines import USER, Engines
from testbed.images import Images
from tests.testbed.conftest import Need

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root]

LONG = pytest.mark.long
APP = "/opt/app/hello"
OF = ("--mpi", "openmpi@5", "-n", "2")
ENGINE = pytest.mark.parametrize(
    "engine",
    ["bwrap", *(pytest.param(one, marks=LONG) for one in ("podman", "apptainer", "charliecloud"))],
)
Ended = subprocess.CompletedProcess[str]


def command(name: str, image: Path, engine: str, output: str, *words: str) -> list[str]:
    entry = (sys.executable, "-m", "mpigraft.cli.entry", name)
    return [*entry, "-o", output, "--image", str(image), "--engine", engine, *OF, *words]


def start(argv: list[str], cwd: Path, environ: Mapping[str, str]) -> Ended:
    return subprocess.run(
        argv, cwd=cwd, env=environ, capture_output=True, text=True, timeout=200, check=False
    )


def check_documents(cwd: Path, owner: int) -> None:
    """The record and the profile of both ranks, each the user's own."""
    found = json.loads((cwd / "hello.json").read_text())["profile"]
    assert found["ranks"] == 2
    assert all(one["finalized"] for one in found["each"])
    assert {one["name"]: one["calls"] for one in found["routines"]}["Comm_rank"] == 2
    for name in ("hello.json", "hello.record"):
        assert (cwd / name).stat().st_uid == owner


def left(home: Path) -> set[Path]:
    """Folders of records that are still in a graft."""
    return {path for path in home.glob("grafts/*/ranks/*") if path.is_dir()}


def names(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*")}


@ENGINE
def test_what_ranks_in_an_image_write_is_whole(
    outside: Mapping[str, str], images: Images, need: Need, engine: str, tmp_path: Path
) -> None:
    need(engine)
    image, home = images.folder("bookworm"), Path(outside["MPIGRAFT_HOME"])
    before, others = names(image), left(home)  # of other tests, which share the grafts
    for name, output in (("record", "hello.record"), ("profile", "hello.json")):
        done = start(command(name, image, engine, output, "--", APP), tmp_path, outside)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("of SIZE 2") == 2
    check_documents(tmp_path, os.getuid())
    assert names(image) == before
    assert left(home) == others


@ENGINE
def test_an_ordinary_user_has_them_too(
    engines: Engines, outside: Mapping[str, str], mpis: Mapping[object, Path], cache_folder: Path,
    need: Need, engine: str,
) -> None:  # fmt: skip
    need(engine, as_user=True)
    image = engines.image("bookworm", engine, as_user=True)
    check_user(engines, outside, mpis, cache_folder, engine, image)


def check_user(
    engines: Engines, outside: Mapping[str, str], mpis: Mapping[object, Path], cache_folder: Path,
    engine: str, image: Path,
) -> None:  # fmt: skip
    """The user records and profiles a program of an image, and replays it without the image."""
    home = someone.new_home(engines, mpis.values(), f"home-{engine}-{image.name}")
    who = pwd.getpwnam(USER).pw_uid
    cwd = home / "work"
    cwd.mkdir()
    os.chown(cwd, who, who)
    for name, output in (("record", "hello.record"), ("profile", "hello.json")):
        words = command(name, image, engine, output, "--", APP)
        done = start(someone.words(engines, home, cache_folder, *words), cwd, outside)
        assert done.returncode == 0, done.stderr
    check_documents(cwd, who)
    assert not left(home)
    entry = (sys.executable, "-m", "mpigraft.cli.entry", "replay", "hello.record")
    again = start(someone.words(engines, home, cache_folder, *entry), cwd, outside)
    assert again.returncode == 0, again.stderr
    assert "Sendrecv" in again.stdout


@LONG
def test_a_sif_is_recorded_by_an_ordinary_user(
    engines: Engines, outside: Mapping[str, str], mpis: Mapping[object, Path], cache_folder: Path,
    images: Images, need: Need,
) -> None:  # fmt: skip
    need("apptainer", as_user=True)
    if reason := engines.fuse_for_users():
        pytest.skip(reason)
    image = images.sif("bookworm", engines.apptainer)
    check_user(engines, outside, mpis, cache_folder, "apptainer", image)
