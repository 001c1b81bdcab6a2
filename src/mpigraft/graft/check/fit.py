"""Check whether a host MPI fits under a guest: in parts, each with its evidence.

The injection simulated the loader. The parts here add what a loader does not know: whether one
name means two ABIs, which compiler built a Fortran binding, which launcher starts the ranks,
whether a network is reached. `check` and `plan` share them and cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpigraft.binary import HERE
from mpigraft.core.model import CheckResult, Finding, Fit, Level
from mpigraft.graft.check import environment, interface, languages, linkage, shared_libraries
from mpigraft.graft.check.check_input import Check, CheckInput, not_checked, part, some

if TYPE_CHECKING:
    from mpigraft.graft.injection.simulation import SimulatedProgram

FEW = 3  # files that a message names
# In this order. Programs that fail in FIRST are left out of REST, which would repeat it.
FIRST: dict[str, Check] = {"architecture": interface.architecture, "abi": interface.abi}
REST: dict[str, Check] = {
    "sonames": interface.sonames,
    "symbols": linkage.symbols,
    "versions": linkage.versions,
    "fortran": languages.fortran,
    "cxx": languages.cxx,
    "collisions": shared_libraries.collisions,
    "pmi": environment.pmi,
    "plugins": shared_libraries.plugins,
    "devices": environment.devices,
    "gpu": environment.gpu,
    "folders": environment.folders,
}


def check_pair(pair: CheckInput) -> Fit:
    """Check an MPI under what a job starts, as far as that is known. Raises ElfError."""
    fit = check_fit(pair)
    if pair.guest.loose or (pair.guest.possible and not fit.ok):
        return soften_fit(pair, fit)
    return fit


def check_fit(pair: CheckInput) -> Fit:
    """Check an MPI under all programs of a guest. Raises ElfError for a file of the guest whose
    symbols cannot be read."""
    # Programs of our own go in too; they are checked only where the guest has no program.
    place = f"{pair.contents.place}/"
    programs = [p for p in pair.contents.programs if not p.program.startswith(place)]
    programs, elsewhere = _on_levels(programs or list(pair.contents.programs))
    meant = pair.only(programs)
    parts = [check(meant) for check in FIRST.values()]
    comparable = [simulated for simulated in programs if interface.comparable(meant, simulated)]
    if comparable:
        parts += [check(pair.only(comparable)) for check in REST.values()]
    else:
        bad = [row.name for row in parts if row.level is Level.ERROR] or ["program"]
        parts += [not_checked(name, f"see {bad[0]}") for name in REST]
    if elsewhere:
        parts.append(_levels(check_fit(pair.only(elsewhere)), elsewhere))
    return Fit(pair.guest.label, pair.mpi, pair.contents.replace, tuple(parts))


def has_no_interface(pair: CheckInput) -> bool:
    """Return whether no program of a guest has the architecture and an ABI of this MPI: then it
    does not matter what would go in."""
    programs = pair.contents.programs
    return bool(programs) and not any(interface.comparable(pair, one) for one in programs)


def fitting_programs(pair: CheckInput) -> tuple[str, ...]:
    """List the programs that fit on their own. Raises as `check_fit` does."""
    programs: dict[str, list[SimulatedProgram]] = {}  # of each, what it loads on each CPU
    for simulated in pair.contents.programs:
        if simulated.program in pair.guest.label.programs:
            programs.setdefault(simulated.program, []).append(simulated)
    return tuple(name for name, levels in programs.items() if check_fit(pair.only(levels)).ok)


def soften_fit(pair: CheckInput, fit: Fit) -> Fit:
    """Soften a refusal where it is unknown what will be started or opened.

    What may never be loaded refuses nothing: its errors become warnings. A guest that may
    start any of its programs is refused when none fits; where all fit, a warning says that it may
    start none of them.
    """
    guest, label = pair.guest, pair.guest.label
    if guest.loose and fit.ok:
        note = Finding.of("started-not-known", programs=len(label.programs), name=label.name)
    elif guest.loose:
        good = fitting_programs(pair)
        if not good:
            return fit
        bad = [p for p in label.programs if p not in good]
        note = Finding.of(
            "programs-not-known",
            bad=len(bad),
            programs=len(label.programs),
            name=label.name,
            evidence=tuple(bad),
        )
    else:
        certain = check_fit(
            pair.only([p for p in pair.contents.programs if p.program not in guest.possible])
        )
        if not certain.ok:
            return certain
        bad = list(guest.possible)
        modules = ", ".join(bad[:FEW])
        note = Finding.of("imports-not-known", modules=modules, mpi=pair.mpi, evidence=tuple(bad))
    known = CheckResult("known", Level.WARNING, note.message, (note,))
    return replace(fit, parts=(*map(_softened, fit.parts), known))


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
