"""Whole images: the loaders of three releases of glibc, each asked about every program it has."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.loader import guest as guest_loader
from mpigraft.core.process import command
from testbed.images import Images
from tests.builders.elf import program
from tests.oracles.guest_loader import (
    CHROOT,
    agree,
    agree_in,
    found_in,
    loader_here,
    small_root,
    told_of_all,
)
from tests.oracles.loader import library
from tests.testbed.conftest import two_ranks

pytestmark = [pytest.mark.testbed, pytest.mark.root, pytest.mark.mpi]

GLIBC = {"bullseye": "2.31", "bookworm": "2.36", "trixie": "2.41"}


def programs(root: FolderRoot) -> Iterator[str]:
    """Those that may be started to be traced: not set-user-ID, dynamic."""
    for entry in root.files():
        try:
            facts = root.elf(entry.path)
        except ElfError:
            continue
        if facts.interpreter and facts.dynamic and entry.mode & 0o6111 in (0o111, 0o110, 0o100):
            yield entry.path


@pytest.mark.parametrize("name", [
    "trixie", "bullseye", pytest.param("bookworm", marks=pytest.mark.long),
    pytest.param("bookworm-bare", marks=pytest.mark.long),
    pytest.param("bookworm-mpich", marks=pytest.mark.long),
])  # fmt: skip
def test_every_program_of_an_image(name: str, images: Images) -> None:
    folder = images.folder(name)
    root = FolderRoot(folder)
    told = told_of_all(folder, list(programs(root)))
    assert len(told) > 200
    assert all(said.maps for said in told.values())
    for path, said in told.items():
        agree(root, path, said)


@pytest.mark.parametrize("name", GLIBC)
def test_the_version_of_glibc(name: str, images: Images) -> None:
    folder = images.folder(name)
    told = command.run_command([CHROOT, folder, "/usr/bin/getconf", "GNU_LIBC_VERSION"]).text()
    assert guest_loader.glibc_version(FolderRoot(folder)) == GLIBC[name]
    assert told.strip() == f"glibc {GLIBC[name]}"


@pytest.mark.parametrize("name", GLIBC)
def test_every_hwcaps_folder_in_its_turn(name: str, images: Images, tmp_path: Path) -> None:
    """glibc-hwcaps in 2.41, the older folders in 2.31, both in 2.36."""
    guest = small_root(tmp_path / "guest", images.folder(name))
    path = program(guest / "p", needs=[library(guest / "opt/a.so")])
    loader = loader_here(FolderRoot(guest), f"/{path.name}")
    kinds = {sub.partition("/")[0] for sub in loader.subfolders}
    assert ("glibc-hwcaps" in kinds) == (name != "bullseye")
    assert ("tls" in kinds) == (name != "trixie")
    for sub in reversed(("", *loader.subfolders)):
        library(guest / "opt" / sub / "a.so")
        agree_in(guest, "/p", {"LD_LIBRARY_PATH": "/opt"})


def test_an_image_of_another_architecture(images: Images) -> None:
    """Nothing of it can be asked here; a whole image lacks nothing."""
    root = FolderRoot(images.folder("arm64"))
    (path,) = (p for p in programs(root) if p.startswith("/opt/app/"))
    found = found_in(root, path)
    assert any(m.endswith("/libmpi.so.40") for m in found.maps)
    assert all(m.startswith("/") for m in found.maps)
    assert (found.symbols, found.nodes) == (set(), set())
    assert guest_loader.glibc_version(root) == "2.36"
    assert loader_here(root, path).lib == "lib/aarch64-linux-gnu"


def test_a_job_on_another_cpu_runs_on_the_graft_too(
    images: Images,
    need: Callable[..., None],
    outside: Mapping[str, str],
    tmp_path: Path,
) -> None:
    """The plan is made on this CPU; glibc.cpu.hwcaps makes ranks load what another CPU loads."""
    need("bwrap")
    glibc = ("libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1", "libutil.so.1")
    files = ("/opt/app/hello", *(f"/lib/x86_64-linux-gnu/{name}" for name in glibc))
    guest = small_root(tmp_path / "guest", images.folder("bookworm"), *files)
    folder = next(guest.rglob("libmpi.so.40")).parent
    for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4"):
        (folder / "glibc-hwcaps" / level).mkdir(parents=True)
        shutil.copy2(folder / "libmpi.so.40", folder / "glibc-hwcaps" / level)
    argv = [
        sys.executable, "-m", "mpigraft.cli.entry", "run", "--image", guest, "--engine", "bwrap",
        "-n", "2", "--mpi", "openmpi@5", "--env", "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2", "--",
        "/opt/app/hello",
    ]  # fmt: skip
    done = subprocess.run(
        [*map(str, argv)], env={**outside}, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    ranks = sorted(line.partition(",")[0] for line in done.stdout.splitlines())
    assert ranks == two_ranks("Open MPI v5.0.11")
