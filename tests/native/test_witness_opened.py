"""The witness where MPI comes by a library's handle, and where MPI_Init does not end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from mpigraft.core.process.command import run_command
from mpigraft.evidence.world.records import read_entered
from mpigraft.native.programs import WITNESS
from tests.native.native_world import World, compile_c
from tests.native.test_witness import check, read, start

pytestmark = pytest.mark.mpi

SONAMES = {Family.OPENMPI: "libmpi.so.40", Family.MPICH: "libmpi.so.12"}


@pytest.fixture(scope="module")
def handle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compile_c("handle.c", tmp_path_factory.mktemp("handle") / "handle")


@pytest.mark.parametrize("way", ["MPI_Init", "MPI_Init_thread"])
@pytest.mark.parametrize("family", list(SONAMES))
def test_an_entry_of_a_handle(
    world: World, handle: Path, tmp_path: Path, family: Family, way: str
) -> None:
    """It went past what is preloaded, and a job that ran well ended with code 5."""
    library = world.mpis[family] / "lib" / SONAMES[family]
    done = start(world, family, tmp_path, handle, library, way)
    assert done.code == 0, done.text()
    check(read(tmp_path), SONAMES[family])


def test_ctypes_of_python(world: World, tmp_path: Path) -> None:
    code = (
        "import ctypes; m = ctypes.CDLL('libmpi.so.12'); m.MPI_Init(None, None); m.MPI_Finalize()"
    )
    done = start(world, Family.MPICH, tmp_path, sys.executable, "-c", code)
    assert done.code == 0, done.text()
    check(read(tmp_path), "libmpi.so.12")


def test_dlsym_does_what_it_does_without_it(world: World, tmp_path: Path) -> None:
    """RTLD_NEXT means what comes after the caller, which glibc tells by the return address."""
    program = compile_c("nexts.c", tmp_path / "nexts")
    chain = compile_c("chain.c", tmp_path / "chain.so", "-shared", "-fPIC")
    witness = world.programs / WITNESS
    for preload, out in (([witness], "told"), ([witness, chain], "[told"), ([chain], "[told")):
        env = {**os.environ, "LD_PRELOAD": ":".join(map(str, preload))}
        done = run_command([program], env=env)
        assert (done.code, done.stdout.decode().split()) == (0, [out]), done.text()
        assert ("chain: called" in done.text()) == (chain in preload)


def test_a_sanitized_program_with_it_preloaded(world: World, tmp_path: Path) -> None:
    program = compile_c("nexts.c", tmp_path / "nexts", "-fsanitize=address")
    env = {**os.environ, "LD_PRELOAD": str(world.programs / WITNESS)}
    done = run_command([program], env=env | {"ASAN_OPTIONS": "verify_asan_link_order=0"})
    assert (done.code, done.stdout) == (0, b"told\n"), done.text()


def test_what_is_mapped_is_noted_before_mpi_is_there(world: World, tmp_path: Path) -> None:
    """A libmpi whose MPI_Init ends the process, as one does that no launcher fits."""
    source = tmp_path / "bad.c"
    source.write_text(
        "#include <unistd.h>\nint MPI_Init(int *c, char ***v) { (void)c; (void)v; _exit(7); }\n"
        "int MPI_Finalize(void) { return 0; }\n"
    )
    library = compile_c(source, tmp_path / "libmpi.so.40", "-shared", "-fPIC")
    program = compile_c("handle.c", tmp_path / "handle")
    folder = tmp_path / "records"
    folder.mkdir()
    env = {"LD_PRELOAD": str(world.programs / WITNESS), "MPIGRAFT_WITNESS": str(folder)}
    done = run_command(
        [program, library, "MPI_Init"], env={**os.environ, **env, "LD_LIBRARY_PATH": "/some/where"}
    )
    assert done.code == 7, done.text()
    (one,) = read_entered(folder)
    seen = library.stat()
    assert one.program == str(program)
    assert one.search == "/some/where"
    assert [(m.path, m.device, m.inode) for m in one.libraries] == [
        (str(library), seen.st_dev, seen.st_ino)
    ]
    assert not [f for f in folder.iterdir() if f.suffix == ".ranks"]
