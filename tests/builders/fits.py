"""What `check` says of a guest that is nowhere on disk: the verdict, its parts, its findings."""

from __future__ import annotations

from mpigraft.core.model import CheckResult, Family, Finding, Fit, Machine, MpiAbi, Replace
from mpigraft.graft.check.check_input import CheckInput
from mpigraft.graft.check.fit import check_fit
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.guest.own_mpi import GuestMpi
from mpigraft.graft.injection.contents import decide_contents
from mpigraft.graft.injection.fixpoint import GraftRequest
from tests.builders.guests import LIB, PLACE


def verdict(
    guest: Guest,
    abi: MpiAbi,
    *,
    own: GuestMpi | None = None,
    machine: Machine | None = None,
    replace: Replace = Replace.MPI,
    glibc: bool = True,
) -> Fit:
    """What `check` would say, the loader simulated."""
    found = decide_contents(guest, abi, GraftRequest(replace=replace, place=PLACE, glibc=glibc))
    return check_fit(CheckInput(guest, abi, found, own, machine))


def part(fit: Fit, name: str) -> CheckResult:
    return next(part for part in fit.parts if part.name == name)


def finding(fit: Fit, code: str) -> Finding:
    return next(finding for finding in fit.findings if finding.code == code)


def codes(fit: Fit) -> set[str]:
    return {finding.code for finding in fit.findings}


def own(
    family: Family | None = Family.OPENMPI, version: str = "4.1.4", **facts: object
) -> GuestMpi:
    values: dict[str, object] = {
        "soname": "libmpi.so.40", "libmpi": f"{LIB}/libmpi.so.40", "launcher": "", "pmi": (),
    }  # fmt: skip
    return GuestMpi(family, version, **{**values, **facts})  # type: ignore[arg-type]
