"""Make a plan from a guest and a host MPI: examine, decide what goes in, check. Nothing is
started.

`check`, `plan`, `run` and `bench` share this, so that all of them give one answer for a pair.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as with_fields
from pathlib import Path

from mpigraft.binary import ElfError, ForeignLoader, Root, RootError
from mpigraft.core.errors import CheckFailed, MissingError, UsageError
from mpigraft.core.model import (
    CheckResult,
    Family,
    Finding,
    Fit,
    GraftPlan,
    Level,
    Machine,
    MpiInstall,
    Replace,
)
from mpigraft.graft.abi.libraries import read_abi
from mpigraft.graft.check.check_input import CheckInput
from mpigraft.graft.check.fit import check_pair, has_no_interface
from mpigraft.graft.engines.options import with_engine_options
from mpigraft.graft.engines.registry import ENGINES, select_engine
from mpigraft.graft.guest.examination import Guest, own_mpi_of, own_mpis_of
from mpigraft.graft.guest.own_mpi import GuestMpi
from mpigraft.graft.injection.contents import (
    GraftContents,
    decide_contents,
    describe_bare_guest,
    keep_mpi,
)
from mpigraft.graft.injection.fixpoint import GraftRequest
from mpigraft.graft.injection.plan import BENCH, PROBE, PlanInput, plan_folder
from mpigraft.knowledge import binding_of, device_binds
from mpigraft.native import choose_natives


@dataclass(frozen=True, slots=True)
class GraftOptions:
    """The options of a graft."""

    replace: Replace = Replace.MPI
    engine: str = ""  # empty: the first in PATH that can start such a guest
    glibc: bool = True  # False: the guest's glibc stays, though it lacks something
    force: bool = False  # plan a pair that the check refuses
    native_build: str = "prebuilt"
    engine_options: tuple[str, ...] = ()  # `--nv` or `apptainer=--nv`


def plan_graft(guest: Guest, mpi: MpiInstall, machine: Machine, options: GraftOptions) -> GraftPlan:
    """Plan `mpi` under a guest on this machine.

    Raises CheckFailed for a pair that the check refuses, unless it is forced; UsageError for an
    engine that cannot start such a guest, or a guest that cannot be read; MissingError when no
    engine is in PATH.
    """
    engine = select_engine(guest.label.kind, os.environ, options.engine)
    abi, own_mpi = read_abi(mpi), own_mpi_of(guest)
    served = mpi_under_ranks(guest, mpi, options.replace)
    programs = choose_natives(served, guest.label.architecture, options.native_build)
    ours = {BENCH: programs.bench, PROBE: programs.probe}
    with reading_errors():
        pair = CheckInput(
            guest, abi, describe_bare_guest(guest, abi, options.replace), own_mpi, machine
        )
        if not options.force and has_no_interface(pair) and not (fit := check_pair(pair)).ok:
            raise refusal(fit, loose=guest.loose)
        request = GraftRequest(
            replace=options.replace,
            place=ENGINES[engine].place(guest),
            glibc=options.glibc,
            binds=bool(ENGINES[engine].PROGRAMS),
            ours=ours if options.replace is Replace.MPI else {},
            opened=dict(own_mpi.plugins) if own_mpi else {},
            flags=machine.cpu.flags,
        )
        contents = decide_contents(guest, abi, request)
        fit = check_pair(CheckInput(guest, abi, contents, own_mpi, machine))
    parts = (*fit.parts, _engine_part(engine, mpi, contents))
    fit = with_fields(fit, parts=parts)
    if not fit.ok and not options.force:
        raise refusal(fit, loose=guest.loose)
    plan = plan_folder(
        PlanInput(
            guest=guest.label,
            mpi=mpi.id,
            abi=abi,
            contents=contents,
            parts=fit.parts,
            engine=engine,
            natives=programs,
            devices=device_binds(),
            soname=served.soname,
        )
    )
    return with_engine_options(plan, options.engine_options, os.environ)


@contextmanager
def reading_errors() -> Iterator[None]:
    """Turn what stops an injection or a check of a guest into an error that says what to do."""
    try:
        yield
    except ForeignLoader as error:
        raise CheckFailed.of("guest-not-glibc", error=str(error), libc=error.libc) from error
    except (ElfError, RootError) as error:
        raise UsageError.of("guest-unreadable", error=str(error)) from error


def _engine_part(engine: str, mpi: MpiInstall, contents: GraftContents) -> CheckResult:
    """Report what this engine cannot do for this pair, as a part of the check."""
    findings = [*_closed_files(engine, mpi), *_unreached_libraries(engine, contents)]
    message = findings[0].message if findings else f"{engine} can start it"
    return CheckResult("engine", Level.ERROR if findings else Level.INFO, message, tuple(findings))


def _closed_files(engine: str, mpi: MpiInstall) -> Iterator[Finding]:
    if mpi.family is Family.INTEL and not ENGINES[engine].KEEPS_FILES:
        yield Finding.of("engine-closes-files", engine=engine, id=mpi.id)


def _unreached_libraries(engine: str, contents: GraftContents) -> Iterator[Finding]:
    """Report programs whose own search path precedes LD_LIBRARY_PATH, without an engine."""
    if ENGINES[engine].PROGRAMS or contents.replace is not Replace.MPI:
        return
    for simulated in contents.programs:
        for r in simulated.after:
            if binding_of(r.name) and r.path and not str(r.path).startswith(f"{contents.place}/"):
                yield Finding.of("engine-none", program=simulated.program, path=r.path, how=r.how)


def mpi_under_ranks(guest: Guest, mpi: MpiInstall, replaced: Replace) -> MpiInstall:
    """Give the MPI that ranks run on: the host's, or the guest's with its replaced libraries.
    Raises MissingError where the guest has no known MPI."""
    if replaced is Replace.MPI:
        return mpi
    own = own_install(own_mpi_of(guest), guest.root, guest.label.name)
    if replaced is Replace.NOTHING:
        return own
    return with_fields(own, libfabric=mpi.libfabric, ucx=mpi.ucx)


def plan_own_mpi(
    guest: Guest, options: GraftOptions, families: Collection[Family] = ()
) -> tuple[MpiInstall, GraftPlan]:
    """Plan the guest with its own MPI and launcher: only our programs go in. Of several MPIs it
    takes the first of one of `families`, else the first. Raises MissingError when the guest has no
    MPI."""
    engine = select_engine(guest.label.kind, os.environ, options.engine)
    own = _own(guest, families)
    mpi, elsewhere = own_install(own, guest.root, guest.label.name), own.elsewhere if own else ()
    plan = plan_folder(
        PlanInput(
            guest=guest.label,
            mpi=mpi.id,
            contents=keep_mpi(ENGINES[engine].place(guest), str(mpi.libmpi), elsewhere=elsewhere),
            engine=engine,
            natives=choose_natives(mpi, guest.label.architecture, options.native_build),
            devices=device_binds(),
            soname=mpi.soname,
        )
    )
    return mpi, with_engine_options(plan, options.engine_options, os.environ)


def own_install(own: GuestMpi | None, root: Root, name: str) -> MpiInstall:
    """Describe the own MPI of a guest of that name as an install, with paths inside the guest.
    Raises MissingError where it is no known MPI with a launcher."""
    if own is None or own.family is None or not own.version:
        raise MissingError.of("guest-no-mpi", name=name)
    if not own.launcher:
        raise MissingError.of("guest-no-launcher", name=name, family=own.family)
    entry = root.find(own.libmpi)
    libmpi = Path(entry.path if entry else own.libmpi)
    return own.install(
        own.family,
        id=f"{own.family}@{own.version}",
        prefix=libmpi.parent,
        libmpi=libmpi,
        launcher=Path(own.launcher),
        source="guest",
        found=(f"in {name}",),
        usable=True,
    )


def _own(guest: Guest, families: Collection[Family]) -> GuestMpi | None:
    preferred = (m for m in own_mpis_of(guest) if m.family in families and m.version and m.launcher)
    return (next(preferred, None) if families else None) or own_mpi_of(guest)


def refusal(fit: Fit, *, loose: bool = False) -> CheckFailed:
    """Make the error for a pair that does not fit: the worst finding, and the number of others.
    `loose`: its programs were checked one by one, and none fits."""
    wrong = [f for f in fit.findings if f.level is Level.ERROR]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    name, programs = fit.guest.name, len(fit.guest.programs)
    fix = wrong[0].fix or f"`mpigraft check {name} --mpi {fit.mpi}` shows all findings"
    if loose and programs > 1:
        fix += f"; none of its {programs} programs fits alone"
    elif programs > 1:
        fix += f"; some of its {programs} programs may fit alone: `mpigraft check` "
        fix += "shows which, --program selects one"
    return CheckFailed.of(
        "guest-does-not-fit",
        mpi=fit.mpi,
        name=name,
        problem=f"{wrong[0].message}{more}",
        reason=wrong[0].why,
        advice=fix,
    )
