"""Select the MPI of a job by name, and the one that goes under a guest or a stack."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from mpigraft.core.errors import CheckFailed, MissingError, MpigraftError, UsageError
from mpigraft.core.model import EnvRow, Family, GraftPlan, Machine, MpiInstall, Replace, Scope
from mpigraft.core.text import did_you_mean
from mpigraft.discovery import fetch_command, is_at, is_place
from mpigraft.graft import (
    DEFAULT_ENGINES,
    ENGINES,
    GraftOptions,
    Guest,
    StackGuest,
    default_mpi,
    engine_words,
    loaded_objects,
    own_mpi_of,
    plan_graft,
    plan_own_mpi,
    plan_stack,
    stack_install,
)
from mpigraft.launch import IN_GUEST, engine_context, launchers_for
from mpigraft.request import UserEnvironment
from mpigraft.selection.fit_alternatives import describe_wheels, fetchable_mpis

LIBMPI_OF_WHEELS = "MPI4PY_LIBMPI"
NOTHING_TO_FETCH = "`mpigraft discover` shows what is here; nothing that can be fetched would do"
MOST_SHOWN, SHOWN = 4, 160  # of other refusals: how many, characters


@dataclass(frozen=True, slots=True)
class MpiSelection:
    """An MPI, why that one, and what else its ranks need: rows, or a graft. `passed_over` are those
    that would have come before it, each with what does not fit."""

    mpi: MpiInstall
    why: str = ""
    rows: tuple[EnvRow, ...] = ()
    plan: GraftPlan | None = None
    passed_over: tuple[str, ...] = ()
    doubt: str = ""  # of a program that may open an MPI library of another ABI

    @classmethod
    def inside(
        cls, mpi: MpiInstall, guest: Guest, machine: Machine, wanted: GraftOptions
    ) -> MpiSelection:
        """Select this MPI and no other under a benchmark's program in a guest; the guest's own is
        one of source `guest`. Raises CheckFailed where its ranks would load another libmpi, or
        none, UsageError and MissingError as `plan_graft` does."""
        if mpi.source == IN_GUEST:
            _refuse_other_libmpi(mpi, guest)
            plan = plan_own_mpi(guest, wanted, (mpi.family,))[1]
        else:
            plan = plan_graft(guest, mpi, machine, wanted)
        return cls(mpi, "requested", _mpi4py_files(guest, plan), plan)

    @classmethod
    def of_stack(
        cls, mpi: MpiInstall, guest: StackGuest, wanted: GraftOptions, machine: Machine
    ) -> MpiSelection:
        """Select this MPI and no other for a stack's programs. Raises as `plan_stack` does."""
        why = "the stack's own" if mpi.source == "stack" else "it is injected into the stack"
        return cls(mpi, why, plan=plan_stack(guest, mpi, wanted, machine))

    def with_user(self, passed: UserEnvironment) -> MpiSelection:
        """Return the same with the user's own search paths; what the plan preloads comes first."""
        rows = self.plan.environment if self.plan else ()
        own = {row.name: row.value for row in rows if row.name == "LD_PRELOAD" and row.value}
        user = tuple(
            replace(row, value=":".join(filter(None, (own.get(row.name), row.value))))
            for row in passed.rows
        )
        return replace(self, rows=(*self.rows, *user))


def _refuse_other_libmpi(mpi: MpiInstall, guest: Guest) -> None:
    """Raise CheckFailed for a program whose ranks would not load this MPI of the guest's own, and
    for a library that the guest lacks."""
    own, problem = own_mpi_of(guest), ""
    entry = guest.root.find(own.libmpi) if own else None
    if own and (entry.path if entry else own.libmpi) != str(mpi.libmpi):
        problem = f"it would take {own.libmpi} instead of {mpi.libmpi}"
    elif not guest.loose:
        given = dict(guest.label.environment)
        for program in guest.label.programs:
            for one in loaded_objects(guest.root, program, given):
                if one.path is None:
                    problem = problem or f"{one.name} is not found: {one.how}"
    if problem:
        named = next(iter(guest.label.programs), guest.label.name)
        raise CheckFailed.of("program-not-under-mpi", program=named, id=mpi.id, problem=problem)


def select_mpis(specs: Sequence[str], mpis: Sequence[MpiInstall]) -> tuple[MpiInstall, ...]:
    """Select MPIs by id (openmpi@5.0.11), by family (intel), by id's beginning (openmpi@5), or by
    path: of those that the machine was examined for."""
    if not specs:
        return tuple(m for m in mpis if m.usable)
    chosen: dict[str, MpiInstall] = {}
    for spec in specs:
        by_path = [m for m in mpis if is_place(spec) and is_at(m, spec)]
        hits = (
            by_path
            or [m for m in mpis if m.id == spec]
            or [m for m in mpis if m.family == spec or ("@" in spec and m.id.startswith(spec))]
        )
        if not hits:
            known = ", ".join(m.id for m in mpis) or "none"
            command = fetch_command(spec)
            near = did_you_mean(spec, [name for m in mpis for name in (m.family, m.id)])
            fix = f"`{command}` may fetch it" if command else f"{near}name one of those"
            raise MissingError.of("mpi-missing", spec=spec, known=known, fix=fix)
        chosen.update((m.id, m) for m in hits)
    return tuple(chosen.values())


def usable_mpis(mpi_name: str, machine: Machine) -> list[MpiInstall]:
    """List those that were requested and can be started; Cray's first, then those of PATH."""
    chosen = select_mpis((mpi_name,) if mpi_name else (), machine.mpis)
    usable = [m for m in chosen if m.usable and launchers_for(m, machine)[0]]
    if not usable:
        reasons = "; ".join(f"{m.id}: {m.reason or 'it has no launcher'}" for m in chosen)
        raise MissingError.of("mpi-none", reasons=reasons or "none was found")
    return sorted(usable, key=lambda m: (m.family is not Family.CRAY_MPICH, m.source != "path"))


def broken_mpis(mpi_name: str, machine: Machine) -> tuple[str, ...]:
    """Describe those that were requested, or in PATH, and would be taken if they worked."""
    chosen = select_mpis((mpi_name,), machine.mpis) if mpi_name else machine.mpis
    return tuple(m.problem for m in takewhile(lambda m: not m.usable, chosen))


def first_mpi(names: Sequence[str], choose: Callable[[str], MpiSelection]) -> MpiSelection:
    """Choose the first of these MPIs that is here and fits. Raises what the first refused
    one does, with the others in short; where none is here, what the first does."""
    refused: list[CheckFailed] = []
    missing: list[MissingError] = []
    for mpi_name in names:
        try:
            return choose(mpi_name)
        except CheckFailed as no:
            refused.append(no)
        except MissingError as error:
            missing.append(error)
    if refused:
        raise refuse_all(refused)
    if len(missing) == 1:
        raise missing[0]
    raise missing[-1].amended(
        message="; ".join(error.message for error in missing),
        why="; ".join(error.why for error in missing if error.why),
    )


def _mpi_for_stack(
    mpi_name: str, machine: Machine, guest: StackGuest, wanted: GraftOptions
) -> MpiSelection:
    """Choose what is injected into a stack, or the stack's own MPI where nothing is replaced."""
    if wanted.replace is not Replace.MPI:
        own = stack_install(guest, wanted.replace)
        return MpiSelection.of_stack(own, guest, wanted, machine)
    usable = usable_mpis(mpi_name, machine)
    known = guest.injected or guest.own
    first = next((m for m in usable if known and m.family is known.family), usable[0])
    fits = next((m for m in usable if guest.has_injected(m)), first)
    chosen = MpiSelection.of_stack(fits, guest, wanted, machine)
    return replace(chosen, passed_over=broken_mpis(mpi_name, machine))


def mpi_for_guest(
    mpi_name: str, machine: Machine, guest: Guest | StackGuest, wanted: GraftOptions
) -> MpiSelection:
    """Choose, under a guest, the first MPI that fits, those of its own family before others; in a
    stack the one that is injected. Raises CheckFailed when none does, MissingError or UsageError
    as `plan_graft` does."""
    if isinstance(guest, StackGuest):
        return _mpi_for_stack(mpi_name, machine, guest, wanted)
    if wanted.replace is Replace.NOTHING:
        mpi, plan = plan_own_mpi(guest, wanted)
        return MpiSelection(mpi, "the guest's own", plan=plan)
    own = own_mpi_of(guest) or default_mpi(guest)
    family = own.family if own else None
    try:
        usable = sorted(usable_mpis(mpi_name, machine), key=lambda m: m.family is not family)
    except MissingError as missing:
        if not mpi_name:
            wheels = fetchable_mpis(guest, own, machine, wanted.replace, wanted.engine)
            missing.fix = describe_wheels(wheels) if wheels else NOTHING_TO_FETCH
        raise
    refused: list[CheckFailed] = []
    for mpi in usable:
        try:
            plan = _plan_with_first_engine(guest, mpi, machine, wanted)
        except CheckFailed as no:
            refused.append(no)
        else:
            rows = _mpi4py_files(guest, plan)
            why = f"default: the first that fits, {family or 'any'} first"
            passed_over = (no.message for no in refused)
            broken = broken_mpis(mpi_name, machine)
            return MpiSelection(mpi, why, rows, plan, (*broken, *passed_over))
    raise refuse_all(refused)


def refuse_all(refused: Sequence[CheckFailed]) -> CheckFailed:
    """Merge refusals: the first, and in short the others."""
    first, *others = refused
    if not others:
        return first
    more = f"; and {len(others) - MOST_SHOWN} more" if len(others) > MOST_SHOWN else ""
    nor = "; ".join(textwrap.shorten(no.message, SHOWN) for no in others[:MOST_SHOWN])
    return first.amended(why=f"{first.why}. Nor do others: {nor}{more}")


def variants(paths: Iterable[str]) -> list[tuple[str, ...]]:
    """Group alternatives: only one is loaded. A package may bring an extension module for each
    ABI (mpi4py)."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        folder, _, name = path.rpartition("/")
        module = name.partition(".")[0] if name.endswith(".so") else name
        groups.setdefault(f"{folder}/{module}", []).append(path)
    return [tuple(group) for group in groups.values()]


def _mpi4py_files(guest: Guest, plan: GraftPlan) -> tuple[EnvRow, ...]:
    return mpi4py_rows(guest.libraries, plan.libmpi)


def mpi4py_rows(modules: Iterable[str], libmpi: object) -> tuple[EnvRow, ...]:
    """Return a row for mpi4py's wheels, which open a libmpi to see its ABI, and search the virtual
    environment first; with this they take the one that is meant (mpi4py 4.1, _mpiabi.py)."""
    several = any(len(group) > 1 for group in variants(modules))
    return (EnvRow(LIBMPI_OF_WHEELS, str(libmpi), Scope.RANK, "mpi"),) if several else ()


def _plan_with_first_engine(
    guest: Guest, mpi: MpiInstall, machine: Machine, wanted: GraftOptions
) -> GraftPlan:
    """Return the plan for the requested engine, else for the first that can run it. Without an
    engine, nothing can cover a library that the program's own RPATH finds."""
    names = (wanted.engine,) if wanted.engine else DEFAULT_ENGINES[guest.label.kind]
    refused: list[MpigraftError] = []
    for name in names:
        try:
            plan = plan_graft(guest, mpi, machine, replace(wanted, engine=name))
            engine_words(plan, engine_context(plan, 1, Path.cwd()))
        except CheckFailed as no:
            # Without an engine a program's own search path may lead past the host's libraries.
            if ENGINES[name].PROGRAMS:
                raise
            refused.append(no)
        except (UsageError, MissingError) as error:
            refused.append(error)
        else:
            return plan
    raise refused[0]
