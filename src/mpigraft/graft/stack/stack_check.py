"""Check a host MPI for a whole stack: for each program, would it load that MPI, and nothing else.

The parts of `graft.check` do as for a single guest, over the same simulation. They run once
for the programs of a module, and for each program where something is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from mpigraft.binary import Elf, ElfError
from mpigraft.core.model import (
    Finding,
    Level,
    Machine,
    MpiAbi,
)
from mpigraft.graft.check.check_input import CheckInput
from mpigraft.graft.check.fit import check_fit
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.guest.own_mpi import GuestMpi, find_own_mpi
from mpigraft.graft.injection.contents import GraftContents
from mpigraft.graft.injection.in_place import contents_in_place
from mpigraft.graft.stack import differences
from mpigraft.graft.stack.overrides import chosen_slots, fits_abi, override_with_mpi
from mpigraft.graft.stack.places import below
from mpigraft.graft.stack.simulation import PlannedOverride, Simulator, StackSimulation
from mpigraft.graft.stack.values import (
    OTHER,
    Fate,
    ModuleCheck,
    ProgramCheck,
    Slot,
    Stack,
    StackCheck,
    StackProgram,
)
from mpigraft.knowledge import binding_of

if TYPE_CHECKING:
    pass

OF_LAUNCHER = frozenset(["launcher-none", "pmi-unknown", "world-of-one"])
BATCH = 48  # programs that are checked together, and in memory at once

Files = Callable[[Slot, frozenset[str]], Mapping[str, Elf]]  # of an override for these sonames
Filled = Sequence[tuple[PlannedOverride, Sequence[StackProgram]]]  # what is searched, and by whom
Checked = Callable[[int, int], None]  # programs so far, of how many


def check_stack(
    stack: Stack,
    abi: MpiAbi,
    files: Files,
    *,
    slots: Sequence[Slot] | None = None,
    machine: Machine | None = None,
    checked: Checked = lambda _, __: None,
) -> StackCheck:
    """Check `abi` for all programs of a stack, each with the override that it searches in place.

    `files` gives what an override would have. `slots`: the overrides that are filled; without them
    as few as reach all programs. `machine`: where ranks will run. Raises as `files` does; a program
    that cannot be read is a finding.
    """
    slots = _free(chosen_slots(stack, abi)) if slots is None else tuple(slots)
    filled: list[tuple[PlannedOverride, list[StackProgram]]] = []
    rest = list(stack.programs)
    for slot in slots:
        programs = [p for p in rest if slot.path in p.slots and fits_abi(p, abi)]
        paths = {p.path for p in programs}
        rest = [p for p in rest if p.path not in paths]
        needed = frozenset(name for p in programs for name in p.mpi)
        filled.append((PlannedOverride(slot, abi, files(slot, needed)), programs))
    findings = differences.of_stack(stack, abi, slots)
    return check_overrides(stack, abi, filled, findings, machine, checked)


def check_overrides(
    stack: Stack,
    abi: MpiAbi,
    filled: Filled,
    findings: Iterable[Finding],
    machine: Machine | None,
    checked: Checked = lambda _, __: None,
) -> StackCheck:
    """Check overrides that have `abi`, each under its programs; all others stay as they are.
    `findings` are those of the stack as a whole."""
    done = 0
    modules: list[ModuleCheck] = []
    glibc = ""
    reached: set[str] = set()
    for override, programs in filled:
        checker = _Checker(stack, override, machine)
        reached |= {p.path for p in programs}
        for module, group in groupby(sorted(programs, key=lambda p: (p.module, p.path)), _module):
            members = list(group)
            for at in range(0, len(members), BATCH):
                modules.append(checker.module(module, members[at : at + BATCH]))
                done += len(members[at : at + BATCH])
                checked(done, len(stack.programs))
        glibc = glibc or checker.glibc
    rest = [program for program in stack.programs if program.path not in reached]
    elsewhere = {
        p.slots: override_with_mpi(p, stack.slots) for p in {q.slots: q for q in rest}.values()
    }
    modules += [_kept(abi, program, elsewhere[program.slots]) for program in rest]
    checked(len(stack.programs), len(stack.programs))
    return StackCheck(
        stack=stack,
        mpi=abi.mpi.id,
        slots=tuple(override.slot for override, _ in filled),
        glibc=glibc,
        modules=tuple(_joined(modules)),
        findings=(*findings, *_unused(filled, modules)),
    )


def _unused(filled: Filled, modules: Sequence[ModuleCheck]) -> Iterator[Finding]:
    """Report libfabric or UCX alone that no program would take from its override."""
    taken = any(m.count(Fate.FITS) or m.count(Fate.REFUSED) for m in modules)
    for override, _ in () if taken else filled:
        if override.part:
            path = override.slot.path
            yield Finding.of("stack-not-used", library=override.part, path=path)


def _free(slots: Sequence[Slot]) -> tuple[Slot, ...]:
    """Leave out overrides that a site filled itself, such as an accelerator's. The one that most
    programs search stays: it has to be filled, or refused."""
    most = max((slot.programs for slot in slots), default=0)
    return tuple(s for s in slots if s.programs == most or not any(differences.occupied(s)))


def _module(program: StackProgram) -> str:
    return program.module


def _kept(abi: MpiAbi, program: StackProgram, elsewhere: str) -> ModuleCheck:
    """Give the check of a program that the override does not reach: it stays as it is, on the MPI
    of an override `elsewhere`, if there is one."""
    why = (
        "other-abi"
        if not fits_abi(program, abi)
        else "runpath"
        if program.runpath
        else OTHER
        if elsewhere
        else "no-override"
    )
    if program.machine != abi.objects[0].machine:
        why = "other-machine"
    slot = elsewhere if why == OTHER else ""
    one = ProgramCheck(program.path, program.module, Fate.KEPT, slot, (), why)
    return ModuleCheck(program.module, (one,), ())


def _joined(parts: Sequence[ModuleCheck]) -> Iterator[ModuleCheck]:
    """Join the batches of each module."""
    for name, group in groupby(sorted(parts, key=lambda part: part.name), lambda part: part.name):
        members = list(group)
        programs = sorted((p for m in members for p in m.programs), key=lambda p: p.path)
        findings = dict.fromkeys(f for m in members for f in m.findings)
        yield ModuleCheck(name, tuple(programs), tuple(findings))


# ------------------------------------------------------------------ one override


class _Checker:
    """Checks programs that search one override."""

    def __init__(self, stack: Stack, override: PlannedOverride, machine: Machine | None) -> None:
        self.stack, self.override, self.machine = stack, override, machine
        flags = machine.cpu.flags if machine else None
        meant = None if flags is None else frozenset(flags)
        self.simulator = Simulator(stack.slots, override, flags=meant)
        self.glibc = ""
        self._own: dict[str, GuestMpi | None] = {}
        self._libc: dict[str, str] = {}
        self._duplicates = differences.Duplicates(override)
        self._closed: tuple[tuple[str, str], ...] | None = None

    def module(self, name: str, programs: Sequence[StackProgram]) -> ModuleCheck:
        """Check the programs of a module: together, and each for itself where they do not fit."""
        simulated, findings = [], []
        checks: list[ProgramCheck] = []
        for program in programs:
            try:
                simulated.append(self.simulator.simulate(program))
            except ElfError as error:
                findings.append(Finding.of("stack-program-unread", error=error))
                refused = ProgramCheck(program.path, name, Fate.REFUSED, "", (), "unread")
                checks.append(refused)
        for one in [one for one in simulated if self._stays(one)]:
            simulated.remove(one)
            slot = next(s.path for s in self.stack.slots if below(one.libmpi, [s.path]))
            kept = ProgramCheck(one.program.path, name, Fate.KEPT, slot, (), OTHER)
            checks.append(kept)
        for one in [one for one in simulated if self.override.part and not one.injected]:
            simulated.remove(one)
            checks.append(ProgramCheck(one.program.path, name, Fate.KEPT, "", (), "not-used"))
        findings += differences.of_others(checks, self.override)
        together = self.check(simulated)
        findings += together
        for one in simulated:
            ok = _fits(together) or _fits(self.check([one]))
            fate = Fate.FITS if ok else Fate.REFUSED
            path, slot = one.program.path, self.override.slot.path
            checks.append(ProgramCheck(path, name, fate, slot, one.changes, ""))
        return ModuleCheck(name, tuple(checks), tuple(findings))

    def _stays(self, one: StackSimulation) -> bool:
        """Return whether a program takes its MPI from another override, and nothing from this
        one."""
        other = [slot.path for slot in self.stack.slots if slot != self.override.slot]
        mixed = (self.override.grafted(str(r.path)) for r in one.loading.after if r.path)
        whole = not self.override.part  # whose MPI a network library serves does not matter
        return whole and below(one.libmpi, other) and not any(mixed)

    def check(self, simulated: Sequence[StackSimulation]) -> tuple[Finding, ...]:
        """Check some programs together. One MPI of the stack's own represents all of them, so
        programs of several are checked apart."""
        findings: dict[Finding, None] = {}
        by_mpi: dict[str, list[StackSimulation]] = {}
        for one in simulated:
            by_mpi.setdefault(self._own_path(one), []).append(one)
        for group in by_mpi.values():
            guest = self._guest(group)
            own = self._own_mpi(group[0])
            fit = check_fit(
                CheckInput(guest, self.override.abi, self._contents(group), own, self.machine)
            )
            # The stack's own launcher starts its MPI, on any libfabric and UCX.
            below = OF_LAUNCHER if self.override.part else ()
            problems = [
                f for f in fit.findings if f.level is not Level.INFO and f.code not in below
            ]
            problems += differences.of_programs(group, self.override, self._duplicates)
            advised = (differences.advise_stack(f, self.override) for f in problems)
            findings |= dict.fromkeys(advised)
        return tuple(findings)

    def _contents(self, group: Sequence[StackSimulation]) -> GraftContents:
        """Describe what programs find in the override. What it opens is the same for all."""
        if self._closed is None and any(one.injected for one in group):
            self._closed = self.simulator.closed(group[0].program)
        return contents_in_place(
            self.override.abi,
            [each for one in group for each in (one.loading, *one.elsewhere)],
            self.override,
            place=self.override.slot.path,
            libmpi=next((one.libmpi for one in group if one.injected), ""),
            closed=self._closed or (),
        )

    def _guest(self, group: Sequence[StackSimulation]) -> Guest:
        """Describe the stack as a guest whose programs are these."""
        libc = next((str(r.path) for r in group[0].loading.before if r.name == "libc.so.6"), "")
        if libc not in self._libc:
            self._libc[libc] = differences.glibc_of(self.simulator.bare, libc)
        self.glibc = self.glibc or self._libc[libc]
        programs, machine = [one.program.path for one in group], group[0].program.machine
        label = self.stack.label(self.stack.root, programs, machine, glibc=self._libc[libc])
        return Guest(label, self.simulator.bare)

    @staticmethod
    def _own_path(one: StackSimulation) -> str:
        rows = (r for r in one.loading.before if r.path and binding_of(r.soname))
        return next((str(r.path) for r in rows), "")

    def _own_mpi(self, one: StackSimulation) -> GuestMpi | None:
        """Describe the MPI of the stack that a program runs on. Of each this is read once."""
        path = self._own_path(one)
        if path not in self._own:
            programs = (one.program.path,)
            self._own[path] = find_own_mpi(self.simulator.bare, programs, {}) if path else None
        return self._own[path]


def _fits(findings: Iterable[Finding]) -> bool:
    return all(finding.level is not Level.ERROR for finding in findings)
