"""An OpenSHMEM program of a stack: its liboshmem is of the MPI below it, and has to go with it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from mpigraft.core.model import Family
from testbed import rootfs, science
from testbed.language_stacks import OMPI, LanguageStack, language_stack, mpigraft

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]


@pytest.fixture(scope="module")
def stack(mpis: Mapping[Family, Path]) -> Iterator[LanguageStack]:
    """Programs on copies of Debian's Open MPI, whose liboshmem wheels lack."""
    if rootfs.own_suite() != science.SUITE:
        pytest.skip(f"these MPIs are of Debian {science.SUITE}")
    with language_stack(OMPI, mpis[Family.OPENMPI] / "include", ["c", "shmem"]) as made:
        yield made


def test_a_build_for_the_stack_has_what_the_check_will_want(stack: LanguageStack) -> None:
    code, page, errors = mpigraft("build", "openmpi", "--on", stack.root, "--json")
    assert code == 0, errors
    (plan,) = json.loads(page)["partitions"]
    needed = {row["soname"]: row["programs"] for row in plan["stack"]["needed"]}
    assert (needed["liboshmem.so.40"], needed["libmpi.so.40"]) == (1, 2)
    options = plan["packages"][-1]["configure"]
    assert "--enable-oshmem" in options
    assert "--disable-oshmem" not in options


def test_a_program_of_shmem_needs_the_host_s_liboshmem(stack: LanguageStack) -> None:
    """Over another libmpi the stack's own crashes. So an MPI without one is refused, and of one
    that has it, it goes in."""
    words = ("--mpi", "openmpi@5.0.11", "--full")
    code, page, _ = mpigraft("check", stack.program("shmem"), *words)
    assert code == 1, page
    assert "shmem needs liboshmem.so.40, and openmpi@5.0.11 has no" in " ".join(page.split())
    code, _, errors = mpigraft("inject", stack.root, "--mpi", "openmpi@4.1.4")
    assert code == 0, errors
    done = subprocess.run(stack.words("shmem"), capture_output=True, text=True, timeout=60)
    assert "RANK 0 of SIZE 1 LIBRARY Open MPI v4.1.4" in done.stdout  # which crashes at its end
    maps = subprocess.run(
        ["/lib64/ld-linux-x86-64.so.2", "--list", *stack.words("shmem")],
        capture_output=True,
        text=True,
    ).stdout
    assert f"liboshmem.so.40 => {stack.slot}/lib/liboshmem.so.40" in maps
