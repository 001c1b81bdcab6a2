"""Check whether a host MPI fits under a guest: in parts, each with its evidence.

The injection simulated the loader. The parts here add what a loader does not know: whether one
name stands for two ABIs, which compiler built a Fortran binding, which launcher starts the ranks,
whether a network is reached. `check` and `plan` share them and cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpigraft.binary import HERE
from mpigraft.core.model import CheckResult, Finding, Fit, Level, Machine, MpiAbi
from mpigraft.graft.check import environment, interface, languages, linkage
from mpigraft.graft.check import shared_libraries as neighbours
from mpigraft.graft.check.check_input import CheckInput, Judge, not_checked, part, some

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest
    from mpigraft.graft.guest.own_mpi import GuestMpi
    from mpigraft.graft.injection.contents import GraftContents
    from mpigraft.graft.injection.simulation import SimulatedProgram

FEW = 3  # files that are named to a person
# In this order. Programs that fail in FIRST are left out of REST, which would repeat it.
FIRST: dict[str, Judge] = {"architecture": interface.architecture, "abi": interface.abi}
REST: dict[str, Judge] = {
    "sonames": interface.sonames,
    "symbols": linkage.symbols,
    "versions": linkage.versions,
    "fortran": languages.fortran,
    "cxx": languages.cxx,
    "collisions": neighbours.collisions,
    "pmi": environment.pmi,
    "plugins": neighbours.plugins,
    "devices": environment.devices,
    "gpu": environment.gpu,
    "folders": environment.folders,
}


def check_fit(
    guest: Guest,
    abi: MpiAbi,
    contents: GraftContents,
    *,
    own: GuestMpi | None = None,
    machine: Machine | None = None,
) -> Fit:
    """Judge `abi` under `guest`, from what `injection` simulated.

    `own`: the guest's own MPI, where it has one. `machine`: where ranks will run; without it
    its devices are not checked. Raises ElfError for a file of the guest whose symbols cannot
    be read.
    """
    # Programs of our own go in too; they are judged only where the guest has no program.
    place = f"{contents.place}/"
    programs = [p for p in contents.programs if not p.program.startswith(place)]
    programs, elsewhere = _on_levels(programs or list(contents.programs))
    pair = CheckInput(guest, own, abi, _restricted(contents, programs), machine)
    parts = [judge(pair) for judge in FIRST.values()]
    comparable = [simulated for simulated in programs if interface.comparable(pair, simulated)]
    if comparable:
        pair = CheckInput(guest, own, abi, _restricted(contents, comparable), machine)
        parts += [judge(pair) for judge in REST.values()]
    else:
        bad = [row.name for row in parts if row.level is Level.ERROR] or ["program"]
        parts += [not_checked(name, f"see {bad[0]}") for name in REST]
    if elsewhere:
        other = _restricted(contents, elsewhere)
        parts.append(_levels(check_fit(guest, abi, other, own=own, machine=machine), elsewhere))
    return Fit(guest.label, abi.mpi.id, contents.replace, tuple(parts))


def has_no_interface(guest: Guest, abi: MpiAbi, contents: GraftContents) -> bool:
    """Whether no program of a guest has the architecture and an ABI of this MPI: then it does not
    matter what would go in."""
    pair = CheckInput(guest, None, abi, contents, None)
    programs = contents.programs
    return bool(programs) and not any(interface.comparable(pair, one) for one in programs)


def fitting_programs(
    guest: Guest,
    abi: MpiAbi,
    contents: GraftContents,
    *,
    own: GuestMpi | None = None,
    machine: Machine | None = None,
) -> tuple[str, ...]:
    """List the programs that fit on their own. Arguments and errors are those of `check_fit`."""
    programs: dict[str, list[SimulatedProgram]] = {}  # of each, what it loads on each CPU
    for simulated in contents.programs:
        if simulated.program in guest.label.programs:
            programs.setdefault(simulated.program, []).append(simulated)
    return tuple(
        program
        for program, levels in programs.items()
        if check_fit(guest, abi, _restricted(contents, levels), own=own, machine=machine).ok
    )


def soften_fit(
    guest: Guest,
    abi: MpiAbi,
    contents: GraftContents,
    fit: Fit,
    *,
    own: GuestMpi | None = None,
    machine: Machine | None = None,
) -> Fit:
    """Soften a refusal where it is unknown what will be started or opened.

    What may never be loaded refuses nothing: its errors become warnings. A guest of which any
    program may be started is refused when not one of them fits; where all fit, a warning says that
    it may start none of them.
    """
    if guest.loose and fit.ok:
        count, name = len(guest.label.programs), guest.label.name
        note = Finding.of("started-not-known", programs=count, name=name)
    elif guest.loose:
        good = fitting_programs(guest, abi, contents, own=own, machine=machine)
        if not good:
            return fit
        bad = [p for p in guest.label.programs if p not in good]
        note = Finding.of(
            "programs-not-known",
            bad=len(bad),
            programs=len(guest.label.programs),
            name=guest.label.name,
            evidence=tuple(bad),
        )
    else:
        sure = [p for p in contents.programs if p.program not in guest.possible]
        certain = check_fit(guest, abi, _restricted(contents, sure), own=own, machine=machine)
        if not certain.ok:
            return certain
        bad = list(guest.possible)
        modules = ", ".join(bad[:FEW])
        note = Finding.of("imports-not-known", modules=modules, mpi=abi.mpi.id, evidence=tuple(bad))
    known = CheckResult("known", Level.WARNING, note.message, (note,))
    parts = (*map(_softened, fit.parts), known)
    return replace(fit, parts=parts)


def _on_levels(
    programs: Sequence[SimulatedProgram],
) -> tuple[list[SimulatedProgram], list[SimulatedProgram]]:
    """Split into what programs load on the CPU that is meant and what they load on others only.
    Where no CPU is meant, any may run them."""
    elsewhere = [p for p in programs if p.levels and HERE not in p.levels]
    meant = [p for p in programs if not p.levels or HERE in p.levels]
    if {p.program for p in elsewhere} <= {p.program for p in meant}:
        return meant, elsewhere
    return list(programs), []


def _levels(elsewhere: Fit, programs: Sequence[SimulatedProgram]) -> CheckResult:
    """Report whether the pair fits on CPUs of other levels too, whose loader takes other files."""
    levels = some((level for p in programs for level in p.levels), FEW)
    fine = f"on other CPUs ({levels}) programs load other files, and the pair fits there too"
    wrong = [f for f in elsewhere.findings if f.level is Level.ERROR]
    finding = Finding.of(
        "levels-differ",
        levels=levels,
        mpi=elsewhere.mpi,
        problem=wrong[0].message if wrong else "",
        evidence=tuple(dict.fromkeys(line for f in wrong for line in (f.message, *f.evidence))),
    )
    return part("levels", fine, [finding] if wrong else ())


def _softened(result: CheckResult) -> CheckResult:
    if result.level is not Level.ERROR:
        return result
    findings = tuple(
        replace(f, level=Level.WARNING) if f.level is Level.ERROR else f for f in result.findings
    )
    return replace(result, level=Level.WARNING, findings=findings)


def _restricted(contents: GraftContents, programs: Sequence[SimulatedProgram]) -> GraftContents:
    """Restrict an injection for many programs to some of them."""
    names = {r.name for one in programs for r in one.before}
    absent = tuple((name, by) for name, by in contents.absent if name in names)
    return replace(contents, programs=tuple(programs), absent=absent)
