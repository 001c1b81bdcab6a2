"""An OpenSHMEM program of a stack: its liboshmem is of the MPI below it, and has to go with it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from tests.testbed.stacks import Stack

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]

LIBRARY = """
#include <mpi.h>
int shmem_version(void) { return MPI_Initialized(&(int){0}) ? -1 : VERSION; }
"""
PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int shmem_version(void);
int main(int argc, char **argv) {
    MPI_Init(&argc, &argv);
    printf("shmem of %d\\n", shmem_version());
    return MPI_Finalize();
}
"""


def mpigraft(*words: object) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "mpigraft.cli.main", *map(str, words)]
    return subprocess.run(argv, capture_output=True, text=True, timeout=120)


def liboshmem(prefix: Path, include: Path, version: int) -> Path:
    """A library that stands for an Open MPI's: wheels have none."""
    path = prefix / "lib/liboshmem.so.40"
    words = ["gcc", "-shared", "-fPIC", f"-DVERSION={version}", f"-I{include}", "-xc", "-"]
    words += ["-xnone", str(prefix / "lib/libmpi.so.40"), "-Wl,-soname,liboshmem.so.40"]
    words += ["-Wl,-rpath,$ORIGIN,--allow-shlib-undefined", "-o", str(path)]
    subprocess.run(words, input=LIBRARY, text=True, check=True)
    return path


@pytest.fixture
def program(stack: Stack, mpis: Mapping[Family, Path], tmp_path: Path) -> Iterator[Path]:
    include = mpis[Family.OPENMPI] / "include"
    library = liboshmem(stack.mpi, include, 4)
    made = stack.prefix("Shmem/1.0-gompi-2022b") / "bin/shmem"
    made.parent.mkdir(parents=True)
    lib = stack.mpi / "lib"
    search = ":".join(map(str, (*stack.overrides(), lib)))
    link = f"-Wl,--disable-new-dtags,-rpath,{search},--dynamic-linker={stack.loader}"
    words = ["gcc", f"-I{include}", "-xc", "-", "-xnone", str(library), str(lib / "libmpi.so.40")]
    words += [link, "-Wl,--allow-shlib-undefined", "-o", str(made)]
    subprocess.run(words, input=PROGRAM, text=True, check=True)
    yield made
    shutil.rmtree(made.parents[2])
    library.unlink()


def test_a_build_for_the_stack_has_what_the_check_will_want(stack: Stack, program: Path) -> None:
    done = mpigraft("build", "openmpi", "--on", stack.root, "--json")
    assert done.returncode == 0, done.stderr
    (plan,) = json.loads(done.stdout)["partitions"]
    needed = {row["soname"]: row["programs"] for row in plan["stack"]["needed"]}
    assert needed["liboshmem.so.40"] == 1
    assert needed["libmpi.so.40"] > 1
    options = plan["packages"][-1]["configure"]
    assert "--enable-oshmem" in options
    assert "--disable-oshmem" not in options


def test_a_program_of_shmem_needs_the_host_s_liboshmem(
    stack: Stack, program: Path, mpis: Mapping[Family, Path], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Over another libmpi the stack's own crashes. So an MPI without one is refused, and of one
    that has it, it goes in."""
    host = mpis[Family.OPENMPI]
    refused = mpigraft("check", program, "--mpi", "openmpi@5.0.11")
    assert refused.returncode == 1, refused.stdout
    assert "shmem needs liboshmem.so.40, and openmpi@5.0.11 has no" in " ".join(
        refused.stdout.split()
    )
    own = tmp_path / "home/mpi" / host.name
    shutil.copytree(host, own, symlinks=True)
    liboshmem(own, host / "include", 5)
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    ended = mpigraft("inject", stack.software, "--mpi", "openmpi@5.0.11")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    words = [str(host / "bin/mpirun"), "--allow-run-as-root", "-n", "1", str(program)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.stdout == "shmem of 5\n", done.stderr
