"""Check an MPI that programs of a stack would find in its place: by a module that sets
LD_LIBRARY_PATH, or by Spack, which puts its folder first in their search paths.

What is beside the MPI is found there too, so every library that changes counts.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mpigraft.core.errors import CheckFailed
from mpigraft.core.model import Finding, Machine, MpiAbi, MpiInstall
from mpigraft.core.text import join_some
from mpigraft.graft.stack import differences
from mpigraft.graft.stack.overrides import fits_abi
from mpigraft.graft.stack.simulation import PlannedOverride
from mpigraft.graft.stack.stack_check import Checked, check_overrides
from mpigraft.graft.stack.values import Fate, Slot, Stack, StackCheck
from mpigraft.knowledge import binding_of

SEARCH, PRELOAD = "LD_LIBRARY_PATH", "LD_PRELOAD"
LIBC = "libc.so.6"


def search_folders(mpi: MpiInstall) -> tuple[str, ...]:
    """List the folders that programs have to search for an MPI and what it needs.

    Raises CheckFailed where one has the C library of the host: every program of the stack would
    take that from there, and one with a loader of its own cannot start with it."""
    folders = [str(mpi.libmpi.parent)] if mpi.libmpi else []
    folders += [f for row in mpi.environment if row.name == SEARCH for f in _split(row.value)]
    for folder in folders:
        if (Path(folder) / LIBC).exists():
            raise CheckFailed.of("module-system-folder", mpi=mpi.id, folder=folder)
    return tuple(dict.fromkeys(folders))


def _split(value: str | None) -> list[str]:
    return [folder for folder in (value or "").split(":") if folder]


def check_module(stack: Stack, abi: MpiAbi, machine: Machine, checked: Checked) -> StackCheck:
    """Check an MPI that a module puts into LD_LIBRARY_PATH. Raises as `search_folders`."""
    return _check(stack, abi, {SEARCH: ":".join(search_folders(abi.mpi))}, machine, checked)


def check_splice(stack: Stack, abi: MpiAbi, machine: Machine, checked: Checked) -> StackCheck:
    """Check an MPI that takes the place of the stack's own in every search path."""
    needed = {name for p in stack.programs for name in p.mpi}
    own = [o.path for o in abi.objects if o.soname in needed and binding_of(o.soname)]
    return _check(stack, abi, {PRELOAD: ":".join(own or [abi.objects[0].path])}, machine, checked)


def _check(
    stack: Stack, abi: MpiAbi, environment: dict[str, str], machine: Machine, checked: Checked
) -> StackCheck:
    folder = str(Path(abi.objects[0].path).parent)
    slot = Slot(folder, (folder,), None)
    programs = tuple(replace(program, slots=(folder,)) for program in stack.programs)
    reached = replace(stack, programs=programs, slots=(slot,))
    override = PlannedOverride(slot, abi, {}, environment)
    users = [program for program in programs if fits_abi(program, abi)]
    noticed = differences.of_stack(reached, abi, ())
    check = check_overrides(reached, abi, [(override, users)], noticed, machine, checked)
    findings = []
    if check.count(Fate.KEPT) == len(stack.programs):
        needed = sorted({name for p in stack.programs for name in p.mpi})
        findings = [
            Finding.of("stack-other-abi", mpi=abi.mpi.id, needed=join_some(needed, 3, ", "))
        ]
    return replace(check, stack=stack, slots=(), findings=tuple(findings))
