"""Whether a host MPI fits under a guest: one verdict, made of parts, each with its evidence.

What the loader would say comes from the injection, which simulated it; the parts here add what it
cannot see: that one name stands for two ABIs, who built a Fortran binding, which launcher starts
whom, whether a network is reached at all. So `check` and `plan` cannot disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpigraft.check import beside, here, interface, languages, linkage
from mpigraft.check.case import Case, Judge, unseen
from mpigraft.model import Fit, Level, Machine, MpiAbi, Part

if TYPE_CHECKING:
    from mpigraft.guest import Guest, GuestMpi
    from mpigraft.injection import Injection

# In this order; where one of GATES says no, the parts behind it would only repeat it.
PARTS: dict[str, Judge] = {
    "architecture": interface.architecture,
    "abi": interface.abi,
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
GATES = {"architecture": "another architecture", "abi": "another ABI"}


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
    case = Case(guest, own, abi, injection, machine)
    parts: list[Part] = []
    shut = ""
    for name, look in PARTS.items():
        parts.append(unseen(name, shut) if shut else look(case))
        if name in GATES and parts[-1].level is Level.ERROR:
            shut = GATES[name]
    return Fit(guest.label, abi.mpi.id, injection.replace, tuple(parts))
