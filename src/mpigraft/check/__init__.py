"""Whether a host MPI fits under a guest: one verdict, made of parts, each with its evidence.

What the loader would say comes from the injection, which simulated it; the parts here add what it
cannot see: that one name stands for two ABIs, who built a Fortran binding, which launcher starts
whom, whether a network is reached at all. So `check` and `plan` cannot disagree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpigraft.check import beside, here, interface, languages, linkage
from mpigraft.check.case import Case, Judge, unseen
from mpigraft.model import Finding, Fit, Level, Machine, MpiAbi, Part

if TYPE_CHECKING:
    from mpigraft.guest import Guest, GuestMpi
    from mpigraft.injection import Injection, Simulated

FEW = 3  # files that are named to a person
# In this order. Programs that fail at FIRST are left out of REST, which would only repeat it.
FIRST: dict[str, Judge] = {"architecture": interface.architecture, "abi": interface.abi}
REST: dict[str, Judge] = {
    "sonames": interface.sonames,
    "symbols": linkage.symbols,
    "versions": linkage.versions,
    "fortran": languages.fortran,
    "cxx": languages.cxx,
    "collisions": beside.collisions,
    "pmi": here.pmi,
    "plugins": beside.plugins,
    "devices": here.devices,
    "gpu": here.gpu,
}


def judge(
    guest: Guest,
    abi: MpiAbi,
    injection: Injection,
    *,
    own: GuestMpi | None = None,
    machine: Machine | None = None,
) -> Fit:
    """The verdict on `abi` under `guest`, from what `injection` simulated.

    `own`: the guest's own MPI, where it has one. `machine`: where ranks will run; without it
    nothing is said of its devices. Raises ElfError for a file of the guest whose symbols cannot
    be read.
    """
    # Programs of our own go in too, and are no part of the question unless nothing else is.
    place = f"{injection.place}/"
    theirs = [p for p in injection.programs if not p.program.startswith(place)]
    theirs = theirs or list(injection.programs)
    case = Case(guest, own, abi, _only(injection, theirs), machine)
    parts = [look(case) for look in FIRST.values()]
    left = [one for one in theirs if interface.comparable(case, one)]
    if left:
        case = Case(guest, own, abi, _only(injection, left), machine)
        parts += [look(case) for look in REST.values()]
    else:
        bad = [part.name for part in parts if part.level is Level.ERROR] or ["program"]
        parts += [unseen(name, f"see {bad[0]}") for name in REST]
    return Fit(guest.label, abi.mpi.id, injection.replace, tuple(parts))


def fitting(
    guest: Guest,
    abi: MpiAbi,
    injection: Injection,
    *,
    own: GuestMpi | None = None,
    machine: Machine | None = None,
) -> tuple[str, ...]:
    """Programs that fit when they are looked at one by one: what is wrong with one of an image's
    is nothing to another. As `judge`, whose arguments and errors it has."""
    return tuple(
        one.program
        for one in injection.programs
        if one.program in guest.label.programs
        and judge(guest, abi, _only(injection, [one]), own=own, machine=machine).ok
    )


def sparing(
    guest: Guest,
    abi: MpiAbi,
    injection: Injection,
    verdict: Fit,
    *,
    own: GuestMpi | None = None,
    machine: Machine | None = None,
) -> Fit:
    """A refusal, as far as it stands where it is not known what will be started or opened.

    What may never be loaded refuses nothing: its errors become warnings. Of a guest whose programs
    are `loose` the refusal stands when not one of them fits.
    """
    if guest.loose:
        good = fitting(guest, abi, injection, own=own, machine=machine)
        if not good:
            return verdict
        bad = [p for p in guest.label.programs if p not in good]
        seen = (
            f"{len(bad)} of {len(guest.label.programs)} programs of {guest.label.name} do not fit"
        )
        why = "which of them are started is not known, so they refuse nothing"
        mend = "name what is started: --program PATH"
    else:
        sure = [p for p in injection.programs if p.program not in guest.possible]
        certain = judge(guest, abi, _only(injection, sure), own=own, machine=machine)
        if not certain.ok:
            return certain
        bad = list(guest.possible)
        seen = f"{', '.join(bad[:FEW])} may be imported, and would not fit under {abi.mpi.id}"
        why = "the import depends on a condition, so it refuses nothing"
        mend = ""
    note = Finding(
        Level.WARNING,
        "not-known",
        seen,
        why,
        mend,
        tuple(bad),
    )
    parts = (*map(_softened, verdict.parts), Part("known", Level.WARNING, seen, (note,)))
    return replace(verdict, parts=parts)


def _softened(part: Part) -> Part:
    if part.level is not Level.ERROR:
        return part
    findings = tuple(
        replace(f, level=Level.WARNING) if f.level is Level.ERROR else f for f in part.findings
    )
    return replace(part, level=Level.WARNING, findings=findings)


def _only(injection: Injection, programs: Sequence[Simulated]) -> Injection:
    """What an injection for many programs says of some of them."""
    asked = {r.name for one in programs for r in one.before}
    absent = tuple((name, by) for name, by in injection.absent if name in asked)
    return replace(injection, programs=tuple(programs), absent=absent)
