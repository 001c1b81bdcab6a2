"""Resolution of real programs and MPIs, and what is made of it: contents and ABI facts."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from mpigraft.binary.elf import reader
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.loader import dependencies, host
from mpigraft.core import cache
from mpigraft.core.model import Family
from mpigraft.core.process import command
from tests.builders.elf import compiled
from tests.builders.messages import shows
from tests.oracles.loader import LOADER, agree, library, resolved, runpath, traced

pytestmark = pytest.mark.skipif(not Path(LOADER).exists(), reason="needs glibc's loader")


def test_the_systems_programs_resolve_as_the_loader_does() -> None:
    files = [path for path in sorted(Path("/usr/bin").iterdir())[::12] if path.is_file()]
    plain = [path for path in files if not path.stat().st_mode & 0o6000]  # no set-user-ID
    programs = []
    for path in plain:
        with contextlib.suppress(ElfError):
            if reader.read_elf(path).interpreter:
                programs.append(path)
    assert len(programs) >= 5
    for path in programs:
        assert resolved(path, {}) == traced(path, {}), path


@pytest.mark.mpi
def test_real_mpis_resolve_as_the_loader_does(mpis: Mapping[Family, Path]) -> None:
    for prefix in mpis.values():
        for environment in ({}, {"LD_LIBRARY_PATH": f"{prefix}/lib"}):
            agree(next(prefix.glob("lib/libmpi.so.[0-9]*")), environment)


@pytest.mark.mpi
def test_contents_are_those_of_libmpi_and_its_closure(mpis: Mapping[Family, Path]) -> None:
    prefix = mpis[Family.OPENMPI]
    libmpi = next(prefix.glob("lib/libmpi.so.[0-9]*"))
    found = dependencies.closure_digests(libmpi, {})
    assert found == tuple(sorted(found))
    digests = dict(found)
    assert digests["libmpi.so.40"] == cache.file_digest(libmpi)
    assert digests.keys() >= {"libmpi.so.40", "libopen-pal.so.80", "libc.so.6"}
    assert all(len(digest) == 64 for digest in digests.values())
    assert set(digests) == {
        libmpi.name,
        *(r.soname for r in dependencies.closure(libmpi, environment={})),
    }


def test_contents_change_with_a_library_and_show_what_is_missing(tmp_path: Path) -> None:
    b = library(tmp_path / "lib/b.so")
    a = library(tmp_path / "lib/a.so", b, flags=runpath("$ORIGIN"))
    first = dict(dependencies.closure_digests(a, {}))
    assert first.keys() == {"a.so", "b.so"}
    compiled(b, "int more;", soname="b.so")
    second = dict(dependencies.closure_digests(a, {}))
    assert second["a.so"] == first["a.so"]
    assert second["b.so"] != first["b.so"]
    b.unlink()
    assert dict(dependencies.closure_digests(a, {}))["b.so"] == ""


def test_a_file_that_is_no_elf_file_is_an_elf_error(tmp_path: Path) -> None:
    path = tmp_path / "libmpi.so"
    path.write_text("INPUT(libmpi.so.40)")
    with pytest.raises(ElfError, match="not an ELF file"):
        dependencies.closure_digests(path, {})


# ------------------------------------------------------------------ the loader itself


def test_the_facts_of_a_loader_are_those_of_its_diagnostics() -> None:
    loader = host.loader_of(reader.read_elf(sys.executable), {})
    assert Path(loader.path).samefile(LOADER)
    assert loader.cache == "/etc/ld.so.cache"
    said = command.run_command([LOADER, "--list-diagnostics"])
    if not said.ok:
        pytest.skip("needs glibc 2.33")
    values = re.findall(r'^([a-z_.]+)(?:\[\w+\])?="?(.*?)"?$', said.text(), re.MULTILINE)
    folders = [value.rstrip("/") for name, value in values if name == "path.system_dirs"]
    assert [f for f in loader.defaults if f in folders] == folders
    settings = dict(values)
    assert loader.platform == settings["dl_platform"] or not settings["dl_platform"]
    active = int(settings["dl_hwcaps_subdirs_active"], 16).bit_count()
    names = settings["dl_hwcaps_subdirs"].split(":")
    expected = [f"glibc-hwcaps/{name}" for name in names][len(names) - active :]
    assert [sub for sub in loader.subfolders if sub.startswith("glibc-hwcaps/")] == expected


def test_usual_folders_when_the_loader_cannot_be_asked(tmp_path: Path) -> None:
    zig = (sys.executable, "-m", "ziglang", "cc", "-target", "s390x-linux-gnu")
    needed = compiled(tmp_path / "c.so", soname="libc.so.6", compiler=zig)
    path = compiled(tmp_path / "a.so", needs=[needed], compiler=zig)
    (found,) = dependencies.closure(path, environment={})
    assert found.path is None
    assert "/lib/s390x-linux-gnu" in found.tried[-1]
    (near,) = dependencies.closure(path, environment={"LD_LIBRARY_PATH": str(tmp_path / "none")})
    assert shows(near.tried[0], f"LD_LIBRARY_PATH {tmp_path}/none")
