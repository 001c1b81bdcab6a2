"""Plan a software stack as a guest: on the MPI that was injected into it, or on its own.

As `assemble` does for what engines start; here only the overrides decide.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import replace as with_fields
from pathlib import Path

from mpigraft.core.errors import CheckFailed, UsageError
from mpigraft.core.lease import LEASES
from mpigraft.core.model import (
    CheckResult,
    GraftPlan,
    Level,
    Machine,
    MappedLibrary,
    MpiInstall,
    Replace,
)
from mpigraft.core.serialize import digest
from mpigraft.discovery import network_library
from mpigraft.graft.assemble import GraftOptions, own_install
from mpigraft.graft.guest.own_mpi import GuestMpi
from mpigraft.graft.injection.contents import keep_mpi
from mpigraft.graft.injection.plan import PLACE_ON_HOST, PlanInput, plan_folder
from mpigraft.graft.stack.generations.drift import mapped_generations
from mpigraft.graft.stack.guest import StackGuest
from mpigraft.graft.stack.injected import check_injected
from mpigraft.graft.stack.reading import read_stack
from mpigraft.graft.stack.values import Fate
from mpigraft.knowledge import binding_of
from mpigraft.native import choose_natives

ENGINE = "none"  # a stack's programs are programs of this machine
IN_STACK = "stack"  # source of an MpiInstall that belongs to one
ACCEPTED = "accepted"  # names the part of a plan with what --except accepted
BY_EXCEPT = "accepted by `inject --except`"


def stack_install(guest: StackGuest, replaced: Replace = Replace.NOTHING) -> MpiInstall:
    """Describe the stack's own MPI as an install of this machine, on its own libfabric and UCX or
    on those that were injected alone. Raises MissingError where no known MPI with a launcher
    exists."""
    injected = guest.network if replaced is Replace.LIBFABRIC else {}

    def library(soname: str) -> Path | None:
        return Path(injected[soname]) if soname in injected else guest.own_library(soname)

    mpi = own_install(guest.own, guest.bare, guest.name)
    return with_fields(
        mpi,
        source=IN_STACK,
        libfabric=network_library("libfabric", library("libfabric.so.1")),
        ucx=network_library("ucx", library("libucp.so.0")),
    )


def plan_stack(
    guest: StackGuest, mpi: MpiInstall, options: GraftOptions, machine: Machine
) -> GraftPlan:
    """Plan `mpi`: what `stack_install` gives, or an MPI of this machine that was injected.

    Raises CheckFailed where another MPI is injected, or none, for a program that would load
    another libmpi, and for one that does not run on what is injected.
    """
    own = mpi.source == IN_STACK
    there = _own(guest) if own else _injected(guest, mpi)
    libmpi = os.path.realpath(there.libmpi)
    below = own and options.replace is Replace.LIBFABRIC
    if below and not guest.network:
        raise CheckFailed.of(
            "stack-no-network", name=guest.name, path=guest.slots[0].path, stack=guest.stack.root
        )
    preloads = guest.preloads(network=not below) if own else ()
    _refuse_other_libmpi(guest, libmpi, mpi, preloads)
    unjudged = options.force or (own and not below)
    accepted = () if unjudged else tuple(_refuse_unfit(guest, machine, whole=not own))
    content = guest.content(there, own=own)
    content = digest([content, guest.network_content()]) if below else content
    return plan_folder(
        PlanInput(
            guest=guest.label(content),
            mpi=mpi.id,
            contents=keep_mpi(
                PLACE_ON_HOST,
                libmpi,
                replace=Replace.MPI if not own else Replace.LIBFABRIC if below else Replace.NOTHING,
                preloads=preloads,
                inputs=_inputs(guest, there),
            ),
            parts=accepted,
            engine=ENGINE,
            natives=choose_natives(mpi, guest.program.machine, options.native_build),
            soname=there.soname,
            # Our benchmarks find libmpi as the stack's programs do.
            rpath=guest.search_path(own=own and not below),
            interpreter=guest.program.interpreter,
        )
    )


def due_leases(paths: Iterable[str]) -> list[tuple[str, int]]:
    """List what a job that maps these files has leases of while it runs: (folder of leases, number)
    of each generation of an override."""
    mapped = mapped_generations(MappedLibrary(os.path.realpath(path), 0, 0) for path in paths)
    return [(f"{store}/{LEASES}", number) for store, own in mapped.items() for number in own]


def _own(guest: StackGuest) -> GuestMpi:
    assert guest.own is not None  # of an install that was described from it
    return guest.own


def _injected(guest: StackGuest, mpi: MpiInstall) -> GuestMpi:
    """Give the MPI in the overrides, if it is this one."""
    there, stack = guest.injected, guest.stack.only or guest.stack.root
    if there is None:
        raise CheckFailed.of(
            "stack-not-injected", name=guest.name, path=guest.slots[0].path, stack=stack, mpi=mpi.id
        )
    if not guest.has_injected(mpi):
        here = f"{there.family or 'an unknown MPI'}@{there.version or 'unknown'}"
        raise CheckFailed.of(
            "stack-other-injected",
            name=guest.name,
            here=here,
            libmpi=there.libmpi,
            stack=stack,
            mpi=mpi.id,
        )
    return there


def _refuse_other_libmpi(
    guest: StackGuest, libmpi: str, mpi: MpiInstall, preloads: tuple[str, ...]
) -> None:
    """Raise CheckFailed for a program whose ranks would load another libmpi than `libmpi`."""
    given = {"LD_PRELOAD": ":".join(preloads)} if preloads else {}
    for path in guest.libmpis(given):
        if os.path.realpath(path) != libmpi:
            raise CheckFailed.of(
                "stack-program-other-mpi",
                program=guest.started,
                path=path,
                libmpi=libmpi,
                mpi=mpi.id,
            )


def _refuse_unfit(guest: StackGuest, machine: Machine, *, whole: bool) -> Iterator[CheckResult]:
    """Raise CheckFailed for a program that does not run on what is injected, by the parts of the
    check; yield what was accepted of it. `whole`: it runs on an injected MPI. What is no ELF file,
    such as a script, is passed over: what it starts is checked."""
    for path in (guest.started or guest.program.path, *guest.opened):
        with contextlib.suppress(UsageError):
            for fit in check_injected(read_stack(path), machine, whole=whole):
                findings = [*fit.findings, *(f for m in fit.modules for f in m.findings)]
                if fit.count(Fate.ACCEPTED):
                    named = (with_fields(f, message=f"{BY_EXCEPT}: {f.message}") for f in findings)
                    yield CheckResult(ACCEPTED, Level.WARNING, "", tuple(named))
                wrong = [f for f in findings if f.level is Level.ERROR]
                if wrong and not fit.ok:
                    raise CheckFailed.of(
                        "stack-program-unfit",
                        program=path,
                        mpi=fit.mpi,
                        problem=wrong[0].message,
                        reason=wrong[0].why,
                        advice=wrong[0].fix or "inject another one",
                        stack=guest.stack.root,
                    )


def _inputs(guest: StackGuest, mpi: GuestMpi) -> Iterator[str]:
    """Yield files whose change shows another generation, or an injection where there was none."""
    yield guest.program.path
    yield guest.program.interpreter
    yield mpi.libmpi
    yield from guest.network.values()
    yield from guest.generation_folders
    for path in filter(None, (guest.started, *guest.opened)):
        yield path
        for row in guest.loaded(path, own=False):
            yield from filter(None, (row.path and str(row.path),))
            if binding_of(row.name):  # one may come into an override
                yield from (f"{folder}/{row.name}" for folder in guest.folders)
    yield from (f"{folder}/{mpi.soname}" for folder in guest.folders)
