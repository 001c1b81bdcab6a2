"""From a guest and a host MPI to a plan: examine, inject, judge, decide. Nothing is started.

This is what `check`, `plan`, `run` and `bench` share, so that what one of them says of a pair the
others say too.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from dataclasses import replace as with_fields
from pathlib import Path

from mpigraft import abi as abis
from mpigraft import check, engines, guest
from mpigraft.elf import ElfError
from mpigraft.errors import AnswerIsNo, MissingError, UsageError
from mpigraft.guest import Guest
from mpigraft.guest_loader import ForeignLoader
from mpigraft.injection import Injection, inject
from mpigraft.knowledge import devices
from mpigraft.knowledge.sonames import binding_of
from mpigraft.model import (
    Family,
    Finding,
    Fit,
    GraftPlan,
    Level,
    Machine,
    MpiInstall,
    Part,
    Replace,
)
from mpigraft.natives import natives
from mpigraft.plan import BENCH, plan
from mpigraft.root import RootError
from mpigraft.sources.install import abi_of


@dataclass(frozen=True, slots=True)
class Wanted:
    """What was asked of a graft."""

    replace: Replace = Replace.MPI
    engine: str = ""  # empty: the first that is here and can start such a guest
    glibc: bool = True  # False: the guest's glibc stays, whatever it lacks
    force: bool = False  # plan what the check refuses
    native_build: str = "prebuilt"


def planned(on: Guest, mpi: MpiInstall, machine: Machine, wanted: Wanted) -> GraftPlan:
    """The plan for `mpi` under a guest on this machine.

    Raises AnswerIsNo for a pair that the check refuses, unless it is forced; UsageError for an
    engine that cannot start such a guest, or a guest that cannot be read; MissingError when no
    engine is here.
    """
    engine = chosen(on, wanted.engine)
    abi, theirs = abis.of(mpi), guest.mpi_of(on)
    served = serves(on, mpi, wanted.replace)
    programs = natives(served, on.label.architecture, wanted.native_build)
    with readable():
        found = inject(
            on,
            abi,
            replace=wanted.replace,
            place=engines.ENGINES[engine].place(on),
            glibc=wanted.glibc,
            binds=bool(engines.ENGINES[engine].PROGRAMS),
            ours={BENCH: programs.bench} if wanted.replace is Replace.MPI else None,
            opened=dict(theirs.plugins) if theirs else None,
        )
        verdict = check.judge(on, abi, found, own=theirs, machine=machine)
        if not verdict.ok and (on.possible or on.loose):
            verdict = check.sparing(on, abi, found, verdict, own=theirs, machine=machine)
    parts = (*verdict.parts, _engine_part(engine, mpi, found))
    verdict = with_fields(verdict, parts=parts)
    if not verdict.ok and not wanted.force:
        raise refused(verdict, loose=on.loose)
    return plan(
        on.label,
        abi,
        found,
        verdict.parts,
        engine=engine,
        natives=programs,
        devices=devices.binds(),
        soname=served.soname,
    )


@contextmanager
def readable() -> Iterator[None]:
    """What stops an injection or a check of a guest, as an answer or an error for a person."""
    try:
        yield
    except ForeignLoader as error:
        raise AnswerIsNo(
            str(error),
            why="the host's MPI was built for glibc, and a process has one C library",
            mend="an image on glibc; where other programs matter, name them: --program PATH",
        ) from error
    except (ElfError, RootError) as error:
        raise UsageError(
            str(error),
            why="a program or library of the guest cannot be read",
            mend="name the programs that matter: --program PATH",
        ) from error


def _engine_part(engine: str, mpi: MpiInstall, found: Injection) -> Part:
    """What this engine cannot do for this pair; a part of the verdict like any other."""
    wrong = [*_deaf(engine, mpi), *_unled(engine, found)]
    said = wrong[0].seen if wrong else f"{engine} can start it"
    return Part("engine", Level.ERROR if wrong else Level.INFO, said, tuple(wrong))


def _deaf(engine: str, mpi: MpiInstall) -> Iterator[Finding]:
    if mpi.family is Family.INTEL and not engines.ENGINES[engine].KEEPS_FILES:
        yield Finding(
            Level.ERROR,
            "engine-closes-files",
            f"{engine} cannot start ranks of {mpi.id}",
            "Intel's hydra talks to its ranks through an open file, which this engine closes",
            "use another engine: apptainer, charliecloud or bwrap",
        )


def _unled(engine: str, found: Injection) -> Iterator[Finding]:
    """Without an engine a search path before LD_LIBRARY_PATH cannot be overcome."""
    if engines.ENGINES[engine].PROGRAMS or found.replace is not Replace.MPI:
        return
    for one in found.programs:
        for r in one.after:
            if binding_of(r.name) and r.path and not str(r.path).startswith(f"{found.place}/"):
                yield Finding(
                    Level.ERROR,
                    "engine-none",
                    f"{one.program} would load {r.path} all the same ({r.how})",
                    "its own search path comes first, and no engine lays the host's over it",
                    "use --engine bwrap, which can",
                )


def serves(on: Guest, mpi: MpiInstall, what: Replace) -> MpiInstall:
    """The MPI that ranks would run on: the host's, or the guest's with what is replaced of it.
    Raises MissingError where the guest has none that is known."""
    if what is Replace.MPI:
        return mpi
    theirs = installed(on)
    if what is Replace.NOTHING:
        return theirs
    return with_fields(theirs, libfabric=mpi.libfabric, ucx=mpi.ucx)


def own(
    on: Guest, wanted: Wanted, families: Collection[Family] = ()
) -> tuple[MpiInstall, GraftPlan]:
    """The guest with its own MPI and its own launcher, and the plan that puts only our programs
    in. `families`: as `installed` has them. Raises MissingError when it has none."""
    engine = chosen(on, wanted.engine)
    mpi = installed(on, families)
    nothing = Injection(
        replace=Replace.NOTHING,
        place=engines.ENGINES[engine].place(on),
        copies=(),
        binds=(),
        environment=(),
        glibc=False,
        glibc_lacking=(),
        programs=(),
        collisions=(),
        absent=(),
        closed=(),
        libmpi=str(mpi.libmpi),
        inputs=(),
    )
    made = plan(
        on.label,
        None,
        nothing,
        (),
        engine=engine,
        natives=natives(mpi, on.label.architecture, wanted.native_build),
        devices=devices.binds(),
        soname=mpi.soname,
    )
    return mpi, with_fields(made, mpi=mpi.id)


def installed(on: Guest, families: Collection[Family] = ()) -> MpiInstall:
    """The guest's own MPI as an install; its paths are those inside. Of several the first that is
    of one of `families`, else the first. Raises MissingError where there is none, or none that is
    known and has a launcher."""
    preferred = (m for m in guest.mpis_of(on) if m.family in families and m.version and m.launcher)
    found = (next(preferred, None) if families else None) or guest.mpi_of(on)
    if found is None or found.family is None or not found.version:
        raise MissingError(
            f"{on.label.name} has no MPI of its own that is known",
            why="its programs find no libmpi, or one that does not say what it is",
        )
    if not found.launcher:
        raise MissingError(f"{on.label.name} has no launcher for its {found.family}")
    entry = on.root.find(found.libmpi)
    libmpi = Path(entry.path if entry else found.libmpi)
    return MpiInstall(
        id=f"{found.family}@{found.version}",
        family=found.family,
        version=found.version,
        abi=abi_of(found.family, found.soname),
        soname=found.soname,
        prefix=libmpi.parent,
        libmpi=libmpi,
        launcher=Path(found.launcher),
        launcher_kind=_launcher_kind(found.family, found.version),
        launcher_version=found.version,
        wrappers=(),
        library_version="",
        libfabric=None,
        ucx=None,
        device=found.device,
        components=found.components,
        environment=(),
        source="guest",
        found=(f"in {on.label.name}",),
        usable=True,
    )


def _launcher_kind(family: Family, version: str) -> str:
    if family is not Family.OPENMPI:
        return "hydra"
    return "prrte" if int(version.partition(".")[0]) >= 5 else "orte"


def refused(verdict: Fit, *, loose: bool = False) -> AnswerIsNo:
    """The error for a pair that does not fit: the worst finding, and how many more there are.
    `loose`: its programs were looked at one by one, and none fits."""
    wrong = [f for f in verdict.findings if f.level is Level.ERROR]
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    name, programs = verdict.guest.name, len(verdict.guest.programs)
    mend = wrong[0].mend or f"`mpigraft check {name} --mpi {verdict.mpi}` says all"
    if loose and programs > 1:
        mend += f"; none of its {programs} programs fits alone"
    elif programs > 1:
        mend += (
            f"; of its {programs} programs some may fit alone: `mpigraft check` says which, and "
        )
        mend += "--program names one"
    return AnswerIsNo(
        f"{verdict.mpi} does not fit under {name}: {wrong[0].seen}{more}",
        why=wrong[0].why,
        mend=mend,
    )


def chosen(on: Guest, wish: str) -> str:
    """The engine that was wished for, else the first that is here and can start such a guest.
    Raises UsageError, MissingError."""
    if not wish:
        return engines.choose(on.label.kind, os.environ)
    engine = engines.ENGINES.get(wish)
    if engine is None:
        raise UsageError(f"no engine {wish!r}", mend=f"one of {', '.join(engines.ENGINES)}")
    if on.label.kind not in engine.KINDS:
        able = [name for name, e in engines.ENGINES.items() if on.label.kind in e.KINDS]
        raise UsageError(
            f"{wish} does not start a guest that is a {on.label.kind}",
            mend=f"use one of {', '.join(able)}, or unpack it into a folder",
        )
    return wish
