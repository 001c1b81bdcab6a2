"""A site with an override, and a plan of small libraries for it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpigraft.core.cache import file_digest
from mpigraft.core.model import Copy, Family
from mpigraft.graft import Slot
from mpigraft.graft.stack.override import content
from mpigraft.graft.stack.override.content import GENERATION, OverridePlan

LIBMPI = "lib/libmpi.so.40"


@pytest.fixture(name="libraries", scope="session")
def libraries_fixture(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A libmpi.so.40 and a library that it needs."""
    folder = tmp_path_factory.mktemp("host")
    for name, words in (
        ("libnet.so.1", ()),
        ("libmpi.so.40", ("-Wl,--no-as-needed", "libnet.so.1")),
    ):
        code = f"int {name[3:6]}(void) {{ return 1; }}"
        subprocess.run(
            ["gcc", "-shared", "-o", name, f"-Wl,-soname,{name}", "-xc", "-", "-xnone", *words],
            input=code, text=True, check=True, cwd=folder,
        )  # fmt: skip
    return folder / "libmpi.so.40", folder / "libnet.so.1"


@pytest.fixture(name="site")
def site_fixture(tmp_path: Path) -> Iterator[Path]:
    """What a site's host_injections leads to; programs know the link alone."""
    folder = tmp_path / "a site"
    folder.mkdir()
    (tmp_path / "host_injections").symlink_to(folder)
    yield folder
    for path in (folder, *folder.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def a_slot(site: Path) -> Slot:
    top = str(site.parent / "host_injections/rpath_overrides/OpenMPI/system")
    return Slot(top, (f"{top}/lib", f"{top}/lib64"), Family.OPENMPI)


def a_plan(site: Path, libraries: tuple[Path, Path], *, key: str = "one") -> OverridePlan:
    libmpi, libnet = libraries
    rpath = f"{GENERATION}/lib:{GENERATION}/{content.LIB}"
    renamed = (("libnet.so.1", "mpigraft-libnet.so.1"),)
    return OverridePlan(
        key=key,
        mpi="openmpi@5.0.11",
        slot=a_slot(site),
        public="lib",
        copies=(
            Copy(str(libmpi), LIBMPI, file_digest(libmpi), True, rpath, "", renamed),
            Copy(str(libnet), f"{content.LIB}/mpigraft-libnet.so.1", file_digest(libnet), True,
                 rpath, "mpigraft-libnet.so.1"),
        ),
        links=(("lib64", "lib"),),
        environment=(("OPAL_PREFIX", f"{GENERATION}/mpi"), ("LD_PRELOAD", None)),
    )  # fmt: skip


def injected(site: Path) -> Path:
    """The libmpi that programs find."""
    return Path(a_slot(site).folders[0]) / "libmpi.so.40"


def store(site: Path) -> Path:
    return site / "rpath_overrides/OpenMPI/.mpigraft-system"
