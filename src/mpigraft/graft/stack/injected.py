"""Check what is injected into a stack now, whoever put it there, by the files that programs find.

`check`, `inject --verify` and `run --stack` share this. The copies in an override are read as an
MPI of this machine is, so a generation that lacks a library, or that programs have outgrown, fails
the same parts of the check as a host MPI would.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath

from mpigraft.binary import FolderRoot, Root, read_elf
from mpigraft.core.model import Family, Finding, Level, Machine, MpiAbi, MpiInstall, Role
from mpigraft.core.text import join_some
from mpigraft.graft.abi.libraries import read_abi
from mpigraft.graft.guest.own_mpi import GuestMpi
from mpigraft.graft.injection.in_place import InstalledFiles
from mpigraft.graft.stack import differences
from mpigraft.graft.stack.generations.reading import GenerationRecord, read_override
from mpigraft.graft.stack.guest import StackGuest
from mpigraft.graft.stack.overrides import family_of_abi, fits_abi, override_with_mpi
from mpigraft.graft.stack.places import below
from mpigraft.graft.stack.simulation import PlannedOverride
from mpigraft.graft.stack.stack_check import Checked, check_overrides
from mpigraft.graft.stack.values import Fate, Slot, Stack, StackCheck, StackProgram
from mpigraft.knowledge import LIBRARIES, binding_of, is_network_library

NAMED = 3
COPIES = "mpi"  # their prefix in a generation
UCP = "libucp.so.0"


class FilledOverride(PlannedOverride):
    """An override as it is. What is the MPI's of the files that programs map, its own facts say."""

    def __init__(self, slot: Slot, abi: MpiAbi) -> None:
        self._installed = InstalledFiles(abi)
        own = (os.path.realpath(o.path) for o in abi.objects if o.role is not Role.LIBC)
        super().__init__(slot, abi, {path: read_elf(path) for path in dict.fromkeys(own)})
        self.public = [path for path in _files(slot) if os.path.realpath(path) in self.files]

    @property
    def plugins(self) -> list[str]:
        return [o.path for o in self.abi.objects if o.opened and o.place]

    def over(self, base: Root) -> Root:
        return base

    def grafted(self, path: PurePath | str) -> bool:
        return below(str(path), (self.slot.path,)) or self._installed.grafted(path)


def check_injected(
    stack: Stack, machine: Machine, checked: Checked = lambda _, __: None, *, whole: bool = True
) -> tuple[StackCheck, ...]:
    """Check each MPI that is injected, for the programs that find it first, and each libfabric or
    UCX alone; nothing where none is. `whole` False: no MPI, for programs on the stack's own.

    Raises MissingError for what is in an override and cannot be read.
    """
    checks = []
    for slot, programs in _by_slot(stack) if whole else ():
        guest = next(filter(_injected, (StackGuest(stack, p) for p in programs)), None)
        if guest is None or guest.injected is None:  # of another family: they pass over it
            continue
        record = guest.generation[0] if guest.generation else None
        abi = read_abi(_install(guest.injected, guest.generation, machine))
        own = [p for p in programs if fits_abi(p, abi)]
        findings = [*differences.of_stack(stack, abi, (slot,), filled=True)]
        filled = [(FilledOverride(slot, abi), own)]
        check = check_overrides(stack, abi, filled, findings, machine, checked)
        if record:
            check = _with_accepted(check, record.accepted)
        lacking = [*differences.incomplete(slot)]
        if record:
            lacking += [*_lacking(check, own, record), *differences.launcher_changes(record)]
        checks.append(replace(check, findings=(*lacking, *check.findings), injected=True))
    checks += _check_network(stack, machine, checked)
    return (*checks, *_unread(stack, {slot for v in checks for slot in v.slots}))


def _unread(stack: Stack, checked: Collection[Slot]) -> Iterator[StackCheck]:
    """Give a check of each override in which programs find no MPI any more, since files of the
    generation that is on are gone."""
    for slot in stack.slots:
        findings = () if slot in checked else tuple(differences.incomplete(slot))
        if findings:
            override = read_override(slot)
            mpi = override.active.mpi if override.active else "what is injected"
            name = f"{mpi} (generation {override.current})"
            yield StackCheck(stack, name, (slot,), "", (), findings, injected=True)


def _check_network(stack: Stack, machine: Machine, checked: Checked) -> Iterator[StackCheck]:
    """Check each libfabric or UCX that is injected alone, where a program takes it."""
    for slot in stack.slots:
        files = _files(slot)
        whole = any(binding_of(PurePosixPath(path).name) for path in files)
        for part in () if whole else LIBRARIES:
            own = [path for path in files if is_network_library(PurePosixPath(path).name, part)]
            if own:
                abi = read_abi(_network(slot, own))
                findings = differences.of_stack(stack, abi, (slot,), filled=True)
                users = [p for p in stack.searching(slot) if fits_abi(p, abi)]
                filled = [(FilledOverride(slot, abi), users)]
                check = check_overrides(stack, abi, filled, findings, machine, checked)
                if record := read_override(slot).active:
                    check = _with_accepted(check, record.accepted)
                if check.count(Fate.KEPT) < len(stack.programs):
                    check = replace(check, injected=True)
                    yield replace(check, findings=(*differences.incomplete(slot), *check.findings))


def _files(slot: Slot) -> list[str]:
    """List the files that programs find in an override by their names."""
    return [f"{f}/{name}" for f in slot.folders for name in FolderRoot(Path("/")).names(f)]


def _network(slot: Slot, files: Sequence[str]) -> MpiInstall:
    """Describe libfabric or UCX in an override as `read_abi` reads an MPI. Of UCX's libraries
    libucp needs all others."""
    first = next((path for path in files if path.endswith(f"/{UCP}")), files[0])
    soname, record = PurePosixPath(first).name, read_override(slot).active
    name = f"{soname} of {f'{record.mpi} (generation {record.number})' if record else slot.path}"
    family = slot.family or Family.OPENMPI
    folder = Path(os.path.realpath(first)).parent.parent
    prefix = folder / COPIES if record else folder
    return MpiInstall(name, family, "", family.abi(""), soname, prefix, Path(first))


def _by_slot(stack: Stack) -> Iterator[tuple[Slot, list[StackProgram]]]:
    """Yield each override that programs find an MPI in, with those that do."""
    first: dict[tuple[str, ...], str] = {}
    for program in stack.programs:
        if program.slots not in first:
            first[program.slots] = override_with_mpi(program, stack.slots)
    for slot in stack.slots:
        own = [p for p in stack.programs if first[p.slots] == slot.path]
        if own:
            yield slot, own


def _injected(guest: StackGuest) -> bool:
    return guest.injected is not None


def _install(
    there: GuestMpi, generation: tuple[GenerationRecord, str] | None, machine: Machine
) -> MpiInstall:
    """Describe the MPI in an override as an install of this machine. That of a generation keeps
    nothing of what it was made of: the host may have another by now."""
    real = os.path.realpath(there.libmpi)
    known = next((m for m in machine.mpis if m.libmpi and os.path.realpath(m.libmpi) == real), None)
    family = there.family or family_of_abi(there.soname)
    name = f"{family}@{there.version or 'unknown'}"
    prefix, launcher = Path(real).parent.parent, known.launcher if known else None
    if generation:
        record, store = generation
        name = f"{record.mpi} (generation {record.number})"
        prefix, launcher = Path(store, "generations", str(record.number), COPIES), None
    libmpi = Path(there.libmpi)
    return there.install(family, id=name, prefix=prefix, libmpi=libmpi, launcher=launcher)


def _with_accepted(check: StackCheck, paths: Sequence[str]) -> StackCheck:
    """Give the check in which programs that need not fit are no fault of the injection. Others,
    which came into the stack later, are."""
    excepted = {p.path for p in check.excepted(paths)}
    modules = []
    for module in check.modules if excepted else ():
        programs = tuple(
            replace(p, fate=Fate.ACCEPTED) if p.path in excepted else p for p in module.programs
        )
        one = replace(module, programs=programs)
        if programs != module.programs and not one.count(Fate.REFUSED):
            one = replace(one, findings=tuple(map(_as_warning, module.findings)))
        modules.append(one)
    return replace(check, modules=tuple(modules)) if excepted else check


def _as_warning(finding: Finding) -> Finding:
    return replace(finding, level=Level.WARNING) if finding.level is Level.ERROR else finding


def _lacking(
    check: StackCheck, programs: Sequence[StackProgram], record: GenerationRecord
) -> Iterator[Finding]:
    """Report refused programs that need libraries which a generation lacks: they came into the
    stack, or were built with more, after it was made."""
    refused = {p.path for m in check.modules for p in m.programs if p.fate is Fate.REFUSED}
    absent = {
        p.path: names
        for p in programs
        if p.path in refused and (names := sorted({*p.mpi} - {*record.bindings}))
    }
    if absent:
        programs_of = dict.fromkeys(PurePosixPath(path).name for path in absent)
        lacks = sorted({name for own in absent.values() for name in own})
        yield Finding.of(
            "generation-lacks",
            programs=join_some([*programs_of], NAMED, ", "),
            number=record.number,
            mpi=record.mpi,
            lacks=join_some(lacks, NAMED, ", "),
            stack=check.stack.root,
            evidence=tuple(f"{path} needs {', '.join(own)}" for path, own in absent.items()),
        )
