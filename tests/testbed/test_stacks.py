"""The small stack is what it stands for: a loader, an MPI and search paths of its own."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from mpigraft.binary import FolderRoot, closure, read_elf
from testbed.stacks import Stack

pytestmark = [pytest.mark.testbed, pytest.mark.mpi]


def mapped(program: Path) -> list[str]:
    """What the stack's own loader maps, resolved: the oracle."""
    done = subprocess.run(
        [program], env={"LD_TRACE_LOADED_OBJECTS": "1"}, capture_output=True, text=True, check=True
    )
    paths = re.findall(r"(/\S+) \(0x", done.stdout)
    return sorted(str(Path(path).resolve()) for path in paths)


def test_search_paths_begin_with_the_override_folders(stack: Stack) -> None:
    for program in stack.programs:
        facts = read_elf(program)
        assert facts.interpreter == str(stack.loader)
        assert not facts.runpath
        system = stack.overrides()
        entries = [Path(one) for one in (facts.rpath or "").split(":")]
        assert tuple(entries[entries.index(system[0]) :][:2]) == system
    accelerated = [Path(one) for one in (read_elf(stack.heat_accelerated).rpath or "").split(":")]
    assert tuple(accelerated[:2]) == stack.overrides("accel/nvidia/cc80")


def test_nothing_of_the_host_is_loaded(stack: Stack) -> None:
    """And the simulation of the stack's loader gives what that loader gives."""
    for program in (*stack.programs, stack.hello):
        real = mapped(program)
        assert all(path.startswith(f"{stack.root}/") for path in real)
        rows = closure(str(program), environment={}, root=FolderRoot(Path("/")))
        assert sorted(str(Path(r.path).resolve()) for r in rows if r.path) == real


def test_programs_run_on_the_stack_s_own_mpi(stack: Stack) -> None:
    mpirun = stack.mpi / "bin/mpirun"
    words: list[str | Path] = [
        mpirun,
        "--allow-run-as-root",
        "--oversubscribe",
        "-n",
        "2",
        stack.heat,
        "64",
        "20",
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=60)
    assert "ranks 2" in done.stdout
    assert "library Open MPI v4.1.8" in done.stdout


def test_modules_load(stack: Stack) -> None:
    lua = stack.modules / "Heat/1.0-gompi-2022b.lua"
    script = f". /usr/share/lmod/lmod/init/bash; module use {stack.modules}; module load Heat; "
    done = subprocess.run(
        ["bash", "-c", f"{script} command -v heat mpirun"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert lua.is_file()
    assert done.stdout.split() == [str(stack.heat), str(stack.mpi / "bin/mpirun")]
