"""Which programs an MPI gets: the prebuilt ones of its ABI, or a build by its own wrapper."""

from __future__ import annotations

import os
import platform
import stat
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.binary.elf import reader
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import Abi, EnvRow, Family, MpiInstall, Scope
from mpigraft.native import programs as natives
from mpigraft.native.programs import BENCH, GUARD, PREBUILT, REPLAY, SPAWN, TRACE, VARS, WITNESS
from tests.builders.configuration import an_mpi
from tests.native.native_world import World, values

HERE = platform.machine()
GLIBC = (2, 17)
STATIC = [program.name for program in natives.unlinked() if program.static]
OF_ABI = [name for name, program in natives.programs().items() if program.links != "none"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def wheel(mpis: Mapping[Family, Path], family: Family) -> MpiInstall:
    """A fetched MPI with its wrapper and what it needs to run."""
    prefix = mpis[family]
    abi, soname = {
        Family.OPENMPI: (Abi.OMPI, "libmpi.so.40"),
    }.get(family, (Abi.MPICH, "libmpi.so.12"))
    row = EnvRow("LD_LIBRARY_PATH", str(prefix / "lib"), Scope.LAUNCHER, "mpi")
    return replace(
        an_mpi(family), family=family, abi=abi, prefix=prefix, environment=(row,),
        libmpi=prefix / "lib" / soname, wrappers=(("c", prefix / "bin/mpicc"),),
    )  # fmt: skip


# ------------------------------------------------------------------ prebuilt


def test_prebuilt_by_architecture_and_abi(programs: Path) -> None:
    for abi in Abi:
        found = natives.choose_natives(replace(an_mpi(), abi=abi), HERE)
        assert found.bench == programs / abi / BENCH
        assert (found.witness, found.guard) == (programs / WITNESS, programs / GUARD)
        assert len(found.digest) == 64
    digests = {natives.choose_natives(replace(an_mpi(), abi=abi), HERE).digest for abi in Abi}
    assert len(digests) == len(Abi)


@pytest.mark.parametrize("name", [VARS, SPAWN])
def test_tools_by_architecture_and_abi(programs: Path, name: str) -> None:
    for abi in Abi:
        assert natives.choose_tool(name, replace(an_mpi(), abi=abi), HERE) == programs / abi / name
    with pytest.raises(MissingError, match=f"{name} is not built for ompi on riscv64"):
        natives.choose_tool(name, replace(an_mpi(), abi=Abi.OMPI), "riscv64")


def test_no_binary_says_what_to_do() -> None:
    with pytest.raises(
        MissingError, match="mpigraft-bench is not built for ompi on riscv64"
    ) as caught:
        natives.choose_natives(replace(an_mpi(), abi=Abi.OMPI), "riscv64")
    assert "--native-build mpicc" in caught.value.fix


def test_other_builds_are_no_builds() -> None:
    with pytest.raises(UsageError, match="--native-build 'gcc' is unknown"):
        natives.choose_natives(an_mpi(), HERE, "gcc")


def every_binary() -> list[Path]:
    return sorted(p for p in PREBUILT.glob("*/**/*") if p.is_file())


def test_all_binaries_are_there() -> None:
    names = {str(p.relative_to(PREBUILT)) for p in every_binary()}
    wanted = [f"{abi}/{name}" for abi in Abi for name in OF_ABI]
    wanted += [program.name for program in natives.unlinked()]
    assert names == {f"{arch}/{name}" for arch in ("x86_64", "aarch64") for name in wanted}


@pytest.mark.parametrize("path", every_binary(), ids=lambda p: str(p.relative_to(PREBUILT)))
def test_a_binary_loads_on_old_systems(path: Path) -> None:
    """No glibc symbol newer than 2.17, one MPI or none, and nothing of the machine that built."""
    facts = reader.read_elf(path)
    assert facts.machine == path.relative_to(PREBUILT).parts[0]
    nodes = [node for found in facts.version_needs.values() for node in found]
    assert bool(nodes) == (path.name not in STATIC)
    for node in nodes:
        assert tuple(map(int, node.removeprefix("GLIBC_").split("."))) <= GLIBC
    soname = {"ompi": "libmpi.so.40", "mpich": "libmpi.so.12", "mpi-abi": "libmpi_abi.so.1"}
    mpi = [name for name in facts.needed if name.startswith("libmpi")]
    assert mpi == (
        [soname[path.parent.name]] if natives.programs()[path.name].links == "mpi" else []
    )
    threads = {"libpthread.so.0"} if path.name in (BENCH, REPLAY, TRACE) else set()  # of glibc too
    assert set(facts.needed) - set(mpi) <= {"libc.so.6", "libdl.so.2"} | threads
    assert (facts.rpath, facts.runpath) == (None, None)
    assert str(Path.home()).encode() not in path.read_bytes()
    assert str(PREBUILT).encode() not in path.read_bytes()


# ------------------------------------------------------------------ built here


@pytest.mark.mpi
@pytest.mark.parametrize(
    "family", [pytest.param(Family.OPENMPI, marks=pytest.mark.long), Family.MPICH]
)
def test_a_build_by_the_wrapper_runs(
    mpis: Mapping[Family, Path], world: World, home: Path, family: Family
) -> None:
    made = natives.choose_natives(wheel(mpis, family), HERE, "mpicc")
    assert made.bench.is_relative_to(home)
    assert made.digest in str(made.bench)
    done = world.launch(family, made.bench, "--max", "8", "--budget", "1")
    assert done.code == 0, done.text()
    assert len(values(done)) == 4
    (mini,) = natives.Natives.mini_of(wheel(mpis, family), HERE, "mpicc")
    assert mini.parent == made.bench.parent
    halo = world.launch(family, mini, "--app", "halo", "--size", "8", "--budget", "1")
    assert halo.code == 0, halo.text()
    before = made.bench.stat().st_mtime_ns
    assert natives.choose_natives(wheel(mpis, family), HERE, "mpicc") == made
    assert made.bench.stat().st_mtime_ns == before
    assert [p.name for p in made.bench.parent.parent.iterdir()] == [made.digest]


@pytest.mark.mpi
def test_no_umask_opens_a_build_to_all(mpis: Mapping[Family, Path], home: Path) -> None:
    before = os.umask(0)
    try:
        made = natives.choose_natives(wheel(mpis, Family.MPICH), HERE, "mpicc")
    finally:
        os.umask(before)
    folder = made.bench.parent
    assert [path for path in (folder, *folder.iterdir()) if path.stat().st_mode & 0o002] == []
    assert made.bench.is_relative_to(home)


@pytest.mark.mpi
def test_without_prebuilt_ones_a_compiler_makes_them(
    mpis: Mapping[Family, Path], home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The wrapper must not: the witness would then bring its MPI into every process."""
    monkeypatch.setattr(natives, "PREBUILT", tmp_path / "none")
    made = natives.choose_natives(wheel(mpis, Family.MPICH), HERE, "mpicc")
    for path in (made.witness, made.guard):
        assert not [n for n in reader.read_elf(path).needed if "mpi" in n]
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    with pytest.raises(MissingError, match="no C compiler"):
        natives.choose_natives(wheel(mpis, Family.MPICH), HERE, "mpicc")


def fake_wrapper(tmp_path: Path, script: str) -> MpiInstall:
    wrapper = tmp_path / "mpicc"
    wrapper.write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
    wrapper.chmod(stat.S_IRWXU)
    return replace(an_mpi(), wrappers=(("c", wrapper),), libmpi=None, environment=())


def test_no_wrapper(home: Path) -> None:
    with pytest.raises(MissingError, match="has no C wrapper"):
        natives.choose_natives(replace(an_mpi(), wrappers=()), HERE, "mpicc")


def test_a_build_that_fails_says_why_and_leaves_nothing(
    home: Path, programs: Path, tmp_path: Path
) -> None:
    mpi = fake_wrapper(tmp_path, 'echo "bench.c:1: no mpi.h here" >&2; exit 1')
    with pytest.raises(MissingError, match=r"could not build mpigraft-bench") as caught:
        natives.choose_natives(mpi, HERE, "mpicc")
    assert "no mpi.h here" in caught.value.why
    assert not list((home / "native").iterdir())


def test_another_wrapper_is_another_build(home: Path, programs: Path, tmp_path: Path) -> None:
    script = 'while [ "$1" != -o ]; do [ "$1" ] || exit 0; shift; done; echo built > "$2"'
    first = natives.choose_natives(fake_wrapper(tmp_path, script), HERE, "mpicc")
    again = natives.choose_natives(fake_wrapper(tmp_path, script), HERE, "mpicc")
    other = natives.choose_natives(fake_wrapper(tmp_path, script + "; : 2"), HERE, "mpicc")
    assert first == again
    assert first.digest != other.digest


def test_a_program_without_its_generated_table_is_left_out(
    home: Path, programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a checkout in which `make natives` did not run: all others are built."""
    script = 'while [ "$1" != -o ]; do [ "$1" ] || exit 0; shift; done; echo built > "$2"'
    mpi = fake_wrapper(tmp_path, script)
    known = natives.programs()
    lacks = {**known, REPLAY: replace(known[REPLAY], generated=("calls/none.h",))}
    monkeypatch.setattr(natives, "programs", lambda: lacks)
    assert natives.choose_natives(mpi, HERE, "mpicc").bench.is_file()
    assert natives.choose_tool(VARS, mpi, HERE, "mpicc").is_file()
    with pytest.raises(MissingError, match=f"{REPLAY} is not built"):
        natives.choose_tool(REPLAY, mpi, HERE, "mpicc")


def test_a_home_that_cannot_be_written_is_said(home: Path, programs: Path, tmp_path: Path) -> None:
    mpi = fake_wrapper(tmp_path, "exit 0")
    home.write_text("a file where a folder should be", encoding="ascii")
    with pytest.raises(MissingError, match="cannot write"):
        natives.choose_natives(mpi, HERE, "mpicc")
