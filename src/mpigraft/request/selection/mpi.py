"""Select the MPI of a job: of a program of this machine, or under a guest.

What the loader would do decides, not names: a program is resolved as its ranks would start it,
and an MPI whose libmpi it would not get is refused before anything starts.
"""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.binary.elf import ElfError
from mpigraft.binary.loader import Resolved, closure
from mpigraft.core import env
from mpigraft.core.errors import CheckFailed, MissingError, MpigraftError, UsageError
from mpigraft.core.model import EnvRow, Family, GraftPlan, Machine, MpiInstall, Replace, Scope
from mpigraft.discovery.install import fetch_command
from mpigraft.evidence.world import LIBMPI
from mpigraft.graft import GraftOptions, plan_graft, plan_own_mpi, plan_stack, stack_install
from mpigraft.graft.engines import DEFAULT_ENGINES, ENGINES, engine_words, with_engine_options
from mpigraft.graft.guest import (
    CommandKind,
    Guest,
    GuestCommand,
    default_mpi,
    loaded_objects,
    own_mpi_of,
)
from mpigraft.graft.stack import StackGuest
from mpigraft.launch import IN_GUEST, engine_context
from mpigraft.launch.launchers import launchers_for
from mpigraft.request import UserEnvironment
from mpigraft.request.fit import describe_wheels, fetchable_mpis

SEARCH = "LD_LIBRARY_PATH"

LIBMPI_OF_WHEELS = "MPI4PY_LIBMPI"
NOTHING_TO_FETCH = "`mpigraft discover` shows what is here; nothing that can be fetched would do"
MOST_SHOWN, SHOWN = 4, 160  # of other refusals: how many, characters
DEFAULT = "default: Cray MPICH, the first in PATH, the first by id"


@dataclass(frozen=True, slots=True)
class MpiSelection:
    """An MPI, why that one, and what else its ranks need: rows, or a graft."""

    mpi: MpiInstall
    why: str = ""
    rows: tuple[EnvRow, ...] = ()
    plan: GraftPlan | None = None

    @classmethod
    def under(
        cls,
        mpi: MpiInstall,
        program: Path,
        command: GuestCommand,
        given: tuple[EnvRow, ...] = (),
    ) -> MpiSelection:
        """Select this MPI and no other for a benchmark's program, which is given the rows `given`
        and nothing of the user's environment. Raises CheckFailed where its ranks would load another
        libmpi, and for a library that is not here."""
        files = _files(program, command)
        rows, problem = _rows_for(mpi, files, replace(NOTHING_PASSED, rows=given))
        problem = problem or _lacking(mpi, files, rows)
        if problem:
            raise CheckFailed.of(
                "program-not-under-mpi", program=program, id=mpi.id, problem=problem
            )
        return cls(mpi, "requested", rows)

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
        return cls(mpi, "requested", _by_path(_of_wheels(guest), plan.libmpi), plan)

    @classmethod
    def of_stack(cls, mpi: MpiInstall, guest: StackGuest, wanted: GraftOptions) -> MpiSelection:
        """Select this MPI and no other for a stack's programs. Raises as `plan_stack` does."""
        why = "the stack's own" if mpi.source == "stack" else "it is injected into the stack"
        return cls(mpi, why, plan=plan_stack(guest, mpi, wanted))

    def with_user(self, passed: UserEnvironment) -> MpiSelection:
        """The same with the user's own search paths; what the plan preloads comes first."""
        rows = self.plan.environment if self.plan else ()
        own = {row.name: row.value for row in rows if row.name == "LD_PRELOAD" and row.value}
        user = tuple(
            replace(row, value=":".join(filter(None, (own.get(row.name), row.value))))
            for row in passed.rows
        )
        return replace(self, rows=(*self.rows, *user))

    def with_options(self, by_engine: Mapping[str, tuple[str, ...]]) -> MpiSelection:
        """The same with what a site's profile has for the engine that starts the guest."""
        if self.plan is None:
            return self
        words = by_engine.get(self.plan.engine, ())
        return replace(self, plan=with_engine_options(self.plan, words))


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
    """Select MPIs by id (openmpi@5.0.11), by family (intel), or by id's beginning (openmpi@5)."""
    if not specs:
        return tuple(m for m in mpis if m.usable)
    chosen: dict[str, MpiInstall] = {}
    for spec in specs:
        hits = [m for m in mpis if m.id == spec] or [
            m for m in mpis if m.family == spec or ("@" in spec and m.id.startswith(spec))
        ]
        if not hits:
            known = ", ".join(m.id for m in mpis) or "none"
            command = fetch_command(spec)
            fix = f"`{command}` may fetch it" if command else "name one of those"
            raise MissingError.of("mpi-missing", spec=spec, known=known, fix=fix)
        chosen.update((m.id, m) for m in hits)
    return tuple(chosen.values())


def _usable(mpi_name: str, machine: Machine) -> list[MpiInstall]:
    """List those that were requested and can be started; Cray's first, then those of PATH."""
    chosen = select_mpis((mpi_name,) if mpi_name else (), machine.mpis)
    usable = [m for m in chosen if m.usable and launchers_for(m, machine)[0]]
    if not usable:
        reasons = "; ".join(f"{m.id}: {m.reason or 'it has no launcher'}" for m in chosen)
        raise MissingError.of("mpi-none", reasons=reasons or "none was found")
    return sorted(usable, key=lambda m: (m.family is not Family.CRAY_MPICH, m.source != "path"))


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
        raise _all_refused(refused)
    if len(missing) == 1:
        raise missing[0]
    raise missing[-1].amended(
        message="; ".join(error.message for error in missing),
        why="; ".join(error.why for error in missing if error.why),
    )


def mpi_for_program(
    mpi_name: str, machine: Machine, program: Path, passed: UserEnvironment, command: GuestCommand
) -> MpiSelection:
    """Choose, for a program of this machine, the MPI that it loads by itself, else the first on
    which it runs. `command` is what is known of it: Python's extension modules stand for a script.
    Raises MissingError without an MPI, CheckFailed when it would not run on any asked for."""
    usable = _usable(mpi_name, machine)
    user = {row.name: row.value or "" for row in passed.rows}
    files = _files(program, command)
    own = [
        one
        for few in files
        for file in few
        for one in libmpis(file, dict(passed.environment) | user)
    ]
    by_itself_mpis = [m for m in usable if own and _same(own[0].path, m.libmpi)]
    refused: list[str] = []
    for mpi in dict.fromkeys((*by_itself_mpis, *usable)):
        rows, problem = _rows_for(mpi, files, passed)
        if not problem:
            by_itself = (
                f"the program finds it by itself: {own[0].how}" if mpi in by_itself_mpis else ""
            )
            return MpiSelection(mpi, by_itself or DEFAULT, rows)
        refused.append(f"{mpi.id}: {problem}")
    raise CheckFailed.of(
        "program-fits-no-mpi",
        program=program,
        mpi_name=mpi_name or "any MPI that is here",
        reasons="; ".join(refused),
    )


NOTHING_PASSED = UserEnvironment((), (), (), ())


def _lacking(mpi: MpiInstall, files: Sequence[Sequence[Path]], rows: Sequence[EnvRow]) -> str:
    """The first library that a program needs and the loader does not find."""
    environment = env.apply(env.base(), mpi.environment, Scope.LAUNCHER, Scope.RANK)
    environment = env.apply(environment, rows, Scope.RANK)
    for group in files:
        for file in group if len(group) == 1 else ():
            with contextlib.suppress(ElfError):
                for one in closure(file, environment=environment):
                    if one.path is None:
                        return f"{one.name} is not found: {one.how}"
    return ""


def _rows_for(
    mpi: MpiInstall, files: Sequence[Sequence[Path]], passed: UserEnvironment
) -> tuple[tuple[EnvRow, ...], str]:
    """Rows with which the files load this libmpi; else none, and the problem of the last way."""
    problem = ""
    for rows in _ways(mpi, passed):
        problem = _worst(mpi, files, passed, rows)
        if not problem:
            return (*rows, *_by_path(files, mpi.libmpi)), ""
    return (), problem


def _files(program: Path, command: GuestCommand) -> list[tuple[Path, ...]]:
    """Files that load an MPI, in groups of which one file does: the program; or the extension
    modules that a script imports, one for each ABI where a package brings several (mpi4py)."""
    groups: dict[str, list[Path]] = {}
    for path in command.certain:
        folder, _, name = path.rpartition("/")
        groups.setdefault(f"{folder}/{name.partition('.')[0]}", []).append(Path(path))
    named = Path(command.program) if command.program and not command.interpreted else program
    return [(named,), *map(tuple, groups.values())]


def _worst(
    mpi: MpiInstall,
    files: Sequence[Sequence[Path]],
    passed: UserEnvironment,
    rows: Sequence[EnvRow],
) -> str:
    """The first problem of a group none of whose files would load this libmpi."""
    for group in files:
        problems = [_problem(mpi, file, passed, rows) for file in group]
        if all(problems):
            return problems[0]
    return ""


def _by_path(files: Sequence[Sequence[Path]], libmpi: object) -> tuple[EnvRow, ...]:
    """mpi4py's wheels open a libmpi to see of which ABI it is, and look into the virtual
    environment first; with this they take the one that is meant (mpi4py 4.1, _mpiabi.py)."""
    several = any(len(group) > 1 for group in files)
    return (EnvRow(LIBMPI_OF_WHEELS, str(libmpi), Scope.RANK, "mpi"),) if several else ()


def _mpi_for_stack(
    mpi_name: str, machine: Machine, guest: StackGuest, wanted: GraftOptions
) -> MpiSelection:
    """Choose what is injected into a stack, or the stack's own MPI where nothing is replaced."""
    if wanted.replace is Replace.NOTHING:
        return MpiSelection.of_stack(stack_install(guest), guest, wanted)
    usable = _usable(mpi_name, machine)
    known = guest.injected or guest.own
    first = next((m for m in usable if known and m.family is known.family), usable[0])
    fits = next((m for m in usable if guest.has_injected(m)), first)
    return MpiSelection.of_stack(fits, guest, wanted)


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
        usable = sorted(_usable(mpi_name, machine), key=lambda m: m.family is not family)
    except MissingError as missing:
        if not mpi_name:
            wheels = fetchable_mpis(guest, own, machine, wanted.replace, wanted.engine)
            missing.fix = describe_wheels(wheels) if wheels else NOTHING_TO_FETCH
        raise
    refused: list[CheckFailed] = []
    for mpi in usable:
        try:
            plan = _startable(guest, mpi, machine, wanted)
        except CheckFailed as no:
            refused.append(no)
        else:
            rows = _by_path(_of_wheels(guest), plan.libmpi)
            why = f"default: the first that fits, {family or 'any'} first"
            return MpiSelection(mpi, why, rows, plan)
    raise _all_refused(refused)


def _all_refused(refused: Sequence[CheckFailed]) -> CheckFailed:
    """Merge refusals: the first, and in short the others."""
    first, *others = refused
    if not others:
        return first
    more = f"; and {len(others) - MOST_SHOWN} more" if len(others) > MOST_SHOWN else ""
    nor = "; ".join(textwrap.shorten(no.message, SHOWN) for no in others[:MOST_SHOWN])
    return first.amended(why=f"{first.why}. Nor do others: {nor}{more}")


def _of_wheels(guest: Guest) -> list[tuple[Path, ...]]:
    command = GuestCommand(CommandKind.MPI, interpreted=True, certain=guest.libraries)
    return _files(Path("/"), command)


def _startable(guest: Guest, mpi: MpiInstall, machine: Machine, wanted: GraftOptions) -> GraftPlan:
    """The plan for the engine that was asked for, else for the first that can say it: without an
    engine, for instance, nothing goes over a library that the program's own RPATH leads to."""
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


def _ways(mpi: MpiInstall, passed: UserEnvironment) -> list[tuple[EnvRow, ...]]:
    """Rows for the ranks: the MPI's own search path before the user's, then also the folder of
    its libmpi before both."""
    own = [r.value for r in mpi.environment if r.name == SEARCH and r.scope is Scope.RANK]
    user = [r.value for r in passed.rows if r.name == SEARCH]
    other = tuple(row for row in passed.rows if row.name != SEARCH)
    usual = [*own[-1:], *user]
    ways = []
    for folders in (usual, [str(mpi.libmpi.parent if mpi.libmpi else ""), *usual]):
        value = ":".join(filter(None, folders))
        row = [EnvRow(SEARCH, value, Scope.RANK, "mpi, user")] if value else []
        ways.append((*row, *other))
    return ways


def _problem(
    mpi: MpiInstall, program: Path, passed: UserEnvironment, rows: Sequence[EnvRow]
) -> str:
    """Why the program's ranks would not run on this libmpi; empty where they do, and for what is
    no program that says which libraries it needs: a script, or one that opens MPI later."""
    start = env.apply(dict(passed.environment), mpi.environment, Scope.LAUNCHER, Scope.RANK)
    libraries = libmpis(program, env.apply(start, rows, Scope.RANK))
    for one in libraries:
        if one.path is None:
            return f"{one.name} is not found: {one.how}"
        if not _same(one.path, mpi.libmpi):
            return f"it would take {one.path} ({one.how}) instead of {mpi.libmpi}"
    return ""


def libmpis(program: Path, environment: Mapping[str, str]) -> list[Resolved]:
    try:
        libraries = closure(program, environment=environment)
    except ElfError:
        return []
    return [one for one in libraries if LIBMPI.fullmatch(one.name.rpartition("/")[2])]


def _same(one: Path | None, other: Path | None) -> bool:
    try:
        return one is not None and other is not None and one.samefile(other)
    except OSError:
        return False
