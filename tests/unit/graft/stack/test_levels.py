"""Programs of a stack on CPUs of other levels, for which its libraries have copies."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mpigraft.binary.architecture.levels import V2, V3
from mpigraft.core.model import Machine, MpiAbi
from mpigraft.graft.stack.reading import read_stack
from mpigraft.graft.stack.stack_check import check_stack
from tests.builders.configuration import a_machine
from tests.builders.elf import compiled, program
from tests.builders.stacks import CALLS, StackFiles, codes, files_of, host, libmpi


@pytest.fixture
def stack(tmp_path: Path) -> StackFiles:
    files = StackFiles(tmp_path / "stack", [tmp_path / "site/lib"])
    files.program("One/1")
    return files


@pytest.fixture
def openmpi(tmp_path: Path) -> MpiAbi:
    return host(libmpi(tmp_path / "host"))


def test_a_program_that_fits_on_this_cpu_alone_is_noted(stack: StackFiles, openmpi: MpiAbi) -> None:
    """A library of the stack has a copy for newer CPUs, which calls more of MPI than it has."""
    more = "int MPI_Later(void);\nint helped(void) { return MPI_Later(); }\n"
    place = stack.root / "software/Help/1/lib"
    plain = compiled(place / "libhelp.so", "int helped(void) { return 1; }\n", soname="libhelp.so")
    newer = place / "glibc-hwcaps/x86-64-v3/libhelp.so"
    compiled(newer, more, soname="libhelp.so", flags=["-Wl,--allow-shlib-undefined"])
    path = stack.path(*stack.overrides, place)
    needs = (stack.mpi, plain)
    program(stack.root / "software/Three/1/bin/three", CALLS, flags=path, needs=needs)
    found = read_stack(stack.root)
    files: Any = files_of(openmpi)
    on = {flags: check_stack(found, openmpi, files, machine=machine(flags)) for flags in (V2, V3)}
    assert on[V2].ok
    assert "levels-differ" in codes(on[V2])
    assert not on[V3].ok
    assert "mpi-symbols" in codes(on[V3])


def machine(flags: frozenset[str]) -> Machine:
    here = a_machine()
    return replace(here, cpu=replace(here.cpu, flags=tuple(flags)))
