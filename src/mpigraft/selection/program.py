"""Select the MPI of a program of this machine, which starts in place.

The loader decides which libmpi its ranks get, and the parts of the check decide whether the program
runs on that: an MPI that fails one of the two is refused before anything starts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.binary import Resolved, Rule
from mpigraft.core import env
from mpigraft.core.errors import CheckFailed, MissingError
from mpigraft.core.model import EnvRow, Finding, Level, Machine, MpiInstall, Scope
from mpigraft.evidence import LIBMPI
from mpigraft.graft import ABI_NAMES, GuestCommand, HostProgram, Loaded, read_abi
from mpigraft.knowledge import binding_of
from mpigraft.request import UserEnvironment
from mpigraft.selection.mpi import (
    MpiSelection,
    broken_mpis,
    mpi4py_rows,
    refuse_all,
    usable_mpis,
    variants,
)

SEARCH = "LD_LIBRARY_PATH"
DEFAULT = "default: Cray MPICH, the first in PATH, the first by id"
Processes = tuple[HostProgram, ...]  # one of them has to fit


@dataclass(frozen=True, slots=True)
class _MpiForProgram:
    """An MPI for a program: the rows with which its ranks load it; or why it is not suitable."""

    mpi: MpiInstall
    rows: tuple[EnvRow, ...] = ()
    problem: str = ""
    fix: str = ""
    loaded: bool = True  # False: the ranks would load another libmpi
    program: str = ""  # of the problem
    doubt: str = ""  # which programs do not fit, of those that may start
    unfit: tuple[bool, int] = (False, 0)  # whether the first of them is one, and how many are


def mpi_for_programs(
    mpi_name: str,
    machine: Machine,
    programs: Sequence[tuple[Path, GuestCommand]],
    passed: UserEnvironment,
) -> MpiSelection:
    """Choose, for the programs of a job of this machine, the MPI that the first loads by itself,
    else the first on which all run. Each comes with what is known of it: a script with Python's
    extension modules. Raises MissingError without an MPI, CheckFailed where one would not run on
    any requested MPI."""
    usable = usable_mpis(mpi_name, machine)
    user = {row.name: row.value or "" for row in passed.rows}
    environment = dict(passed.environment) | user
    processes = _processes(programs, environment, machine)
    own = next((one for loaded in processes[0][0].alone for one in _libmpis(loaded)), None)
    named = [name for _, command in programs for name in command.opened]
    abis = {binding.abi for name in named if (binding := binding_of(name))}
    usable.sort(key=lambda mpi: bool(abis) and mpi.abi not in abis)
    by_itself = [m for m in usable if own and _same(own.path, m.libmpi)]
    refused: list[tuple[MpiInstall, _MpiForProgram]] = []
    fitting: list[tuple[_MpiForProgram, str]] = []
    for mpi in dict.fromkeys((*by_itself, *usable)):
        finds = f"the program finds it by itself: {own.how}" if own and mpi in by_itself else ""
        answer = _answer(processes, mpi, passed)
        if not answer.problem:
            doubt = _doubt(programs[0][0], named, mpi) if abis and mpi.abi not in abis else ""
            fitting.append((replace(answer, doubt=doubt or answer.doubt), finds or DEFAULT))
            if not answer.doubt:
                break
        else:
            refused.append((mpi, answer))
    if fitting:
        best, why = min(fitting, key=lambda one: one[0].unfit)
        others = (_passed_over(one, no, by_itself, own) for one, no in refused)
        notes = (*broken_mpis(mpi_name, machine), *others)
        other = _other_family(programs[0][0], own, best.mpi, machine)
        doubt = "; ".join(filter(None, (other, best.doubt)))
        return MpiSelection(best.mpi, why, best.rows, passed_over=notes, doubt=doubt)
    no = refuse_all([_refusal(mpi, no) for mpi, no in refused])
    raise no.amended(why=_two_abis(processes) or no.why)


def _other_family(program: Path, own: Resolved | None, mpi: MpiInstall, machine: Machine) -> str:
    """Say that the ranks get an MPI of another family than the one that the program finds."""
    found = next((m for m in machine.mpis if own and _same(own.path, m.libmpi)), None)
    if own is None or found is None or found.family is mpi.family:
        return ""
    finding = Finding.of(
        "family-other", program=program.name, own=found.id, how=own.how, mpi=mpi.id
    )
    return f"{finding.message}; {finding.fix}"


def _doubt(program: Path, named: Sequence[str], mpi: MpiInstall) -> str:
    """Say that a program may open an MPI library of another ABI than this MPI has."""
    abis = sorted({binding.abi for name in named if (binding := binding_of(name))})
    names = ", ".join(dict.fromkeys(named))
    finding = Finding.of(
        "mpi-named",
        program=program.name,
        names=names,
        mpi=mpi.id,
        offered=mpi.abi,
        abis=" or ".join(abis),
    )
    return f"{finding.message}: {finding.why}"


def _processes(
    programs: Sequence[tuple[Path, GuestCommand]], environment: Mapping[str, str], machine: Machine
) -> list[Processes]:
    """Return what ranks start, in groups: of a script that surely starts several programs, each of
    them; of one that starts one of several, these."""
    return [
        tuple(HostProgram.of_command(path, one, environment, machine) for one in group)
        for path, several in programs
        for group in several.groups()
    ]


def _two_abis(processes: Sequence[Processes]) -> str:
    """Say that no MPI fits all programs of a job, where they were built for several ABIs."""
    needed = {one.abi: one.guest.label.programs[0] for one, *_ in processes if one.abi}
    if len(needed) < 2:
        return ""
    built = " and ".join(
        f"{program} for {ABI_NAMES.get(abi, abi)}" for abi, program in needed.items()
    )
    return f"the ranks of a job have one MPI, and no one fits both: {built}"


def _passed_over(
    mpi: MpiInstall, no: _MpiForProgram, by_itself: Sequence[MpiInstall], own: Resolved | None
) -> str:
    finds = f", which the program finds by itself ({own.how})" if own and mpi in by_itself else ""
    return f"{mpi.id}{finds}: {no.problem}"


def _refusal(mpi: MpiInstall, no: _MpiForProgram) -> CheckFailed:
    error = CheckFailed.of(
        "program-does-not-fit", program=no.program, mpi=mpi.id, problem=no.problem
    )
    if not no.loaded:
        error = CheckFailed.of(
            "program-other-libmpi", program=no.program, mpi=mpi.id, problem=no.problem
        )
    return error.amended(fix=no.fix)


def mpi_under_program(
    mpi: MpiInstall,
    machine: Machine,
    program: Path,
    command: GuestCommand,
    given: tuple[EnvRow, ...] = (),
) -> MpiSelection:
    """Select this MPI and no other for a benchmark's program, which is given the rows `given` and
    nothing of the user's environment. Raises CheckFailed where its ranks would load another libmpi,
    or would not run on this one."""
    passed = UserEnvironment((), (), given, ())
    answer = _answer(_processes([(program, command)], {}, machine), mpi, passed)
    problem = answer.problem
    if answer.mpi.libmpi != mpi.libmpi:  # the configuration is of the contents of one
        problem = problem or f"it would take {answer.mpi.libmpi} instead of {mpi.libmpi}"
    if problem:
        raise CheckFailed.of("program-not-under-mpi", program=program, id=mpi.id, problem=problem)
    return MpiSelection(mpi, "requested", answer.rows)


# ------------------------------------------------------------------ one pair


def _answer(
    processes: Sequence[Processes], mpi: MpiInstall, passed: UserEnvironment
) -> _MpiForProgram:
    """Find rows with which the files of all programs load this libmpi and run on it; else give the
    problem of the last way."""
    answer = _MpiForProgram(mpi)
    for rows in dict.fromkeys(_library_path_rows(mpi, passed)):
        answer = _with_rows(processes, mpi, passed, rows)
        if not answer.problem:
            return answer
    return answer


def _with_rows(
    processes: Sequence[Processes],
    mpi: MpiInstall,
    passed: UserEnvironment,
    rows: tuple[EnvRow, ...],
) -> _MpiForProgram:
    start = env.apply(dict(passed.environment), mpi.environment, Scope.LAUNCHER, Scope.RANK)
    environment = env.apply(start, rows, Scope.RANK)
    meant, modules, doubt, unfit = mpi, [], "", (False, 0)
    for group in processes:
        answers = []
        for process in group:
            loaded = process.load(environment)
            meant = _with_libmpi(mpi, loaded) if process is processes[0][0] else meant
            answer = _judged(process, meant, loaded, _other_libmpi(meant, loaded))
            answers.append(replace(answer, program=process.guest.label.programs[0]))
            modules += [one.program for one in loaded]
        bad = [answer for answer in answers if answer.problem]
        if len(bad) == len(group):
            return bad[0]
        if bad:
            doubt, unfit = _doubt_of(bad, len(group)), (answers[0] in bad, len(bad))
    given = (*rows, *mpi4py_rows(modules, meant.libmpi))
    return _MpiForProgram(meant, given, doubt=doubt, unfit=unfit)


def _doubt_of(bad: Sequence[_MpiForProgram], count: int) -> str:
    """Say that a job may start programs which do not run on its MPI."""
    names = ", ".join(answer.program for answer in bad)
    start = f"of {count} programs that it may start, {len(bad)} would not run"
    return f"{start}: {names}: {bad[0].problem}"


def _with_libmpi(mpi: MpiInstall, loaded: Sequence[Loaded]) -> MpiInstall:
    """Return the MPI with the one of its libraries that ranks load: of MPICH's ABI, or of
    MPI-5's."""
    paths = [one.path for process in loaded for one in _libmpis(process) if one.path]
    if not paths or any(_same(path, mpi.libmpi) for path in paths):
        return mpi
    try:
        others = [Path(o.path) for o in read_abi(mpi).objects if LIBMPI.fullmatch(o.soname)]
    except MissingError:
        return mpi
    for own in others:
        if any(_same(path, own) for path in paths):
            return replace(mpi, libmpi=own, soname=own.name, abi=mpi.family.abi(own.name))
    return mpi


def _judged(
    process: HostProgram, mpi: MpiInstall, loaded: Sequence[Loaded], other: str
) -> _MpiForProgram:
    """Judge the pair, whose ranks would load another libmpi for the reason `other`, if any: then
    only what holds for any way of loading says more, such as another ABI."""
    if not process.needs_mpi:
        return _MpiForProgram(mpi)
    try:
        fit = process.check(mpi, loaded)
    except MissingError as error:
        return _MpiForProgram(mpi, problem=error.message, fix=error.fix)
    errors = [f for f in fit.findings if f.level is Level.ERROR]
    if process.scripted:  # it may search elsewhere, which changes no ABI
        other, errors = "", [f for f in errors if f.code in OF_NAMES]
    if other and not (errors := [f for f in errors if f.code in OF_NAMES]):
        fix = "take that library out of LD_PRELOAD" if f"({Rule.PRELOAD} " in other else ""
        return _MpiForProgram(mpi, problem=other, loaded=False, fix=fix)
    return (
        _MpiForProgram(mpi, problem=_message(errors), fix=errors[0].fix)
        if errors
        else _MpiForProgram(mpi)
    )


OF_NAMES = ("architecture", "abi-differs", "two-abis", "mpi-static")


def _message(errors: Sequence[Finding]) -> str:
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{errors[0].message}{more}"


def _library_path_rows(mpi: MpiInstall, passed: UserEnvironment) -> Iterator[tuple[EnvRow, ...]]:
    """Yield rows for the ranks: the MPI's own search path before the user's, then also the folder
    of its libmpi before both."""
    own = [r.value for r in mpi.environment if r.name == SEARCH and r.scope is Scope.RANK]
    user = [r.value for r in passed.rows if r.name == SEARCH]
    other = tuple(row for row in passed.rows if row.name != SEARCH)
    usual = [*own[-1:], *user]
    for folders in (usual, [str(mpi.libmpi.parent if mpi.libmpi else ""), *usual]):
        value = ":".join(dict.fromkeys(filter(None, folders)))
        row = [EnvRow(SEARCH, value, Scope.RANK, "mpi, user")] if value else []
        yield (*row, *other)


def _other_libmpi(mpi: MpiInstall, loaded: Sequence[Loaded]) -> str:
    """Return why the ranks would not load this libmpi; empty where they do, and for what needs none
    by name. Of the variants of an extension module, one that loads it is enough."""
    by_path = {one.program: one for one in loaded}
    for group in variants(by_path):
        problems = [_problem(mpi, by_path[path]) for path in group]
        if all(problems):
            return problems[0]
    return ""


def _problem(mpi: MpiInstall, loaded: Loaded) -> str:
    for one in _libmpis(loaded):
        if one.path is None:
            return f"{one.name} is not found: {one.how}"
        if not _same(one.path, mpi.libmpi):
            return f"it would take {one.path} ({one.how}) instead of {mpi.libmpi}"
    return ""


def _libmpis(loaded: Loaded) -> list[Resolved]:
    return [one for one in loaded.objects if LIBMPI.fullmatch(one.name.rpartition("/")[2])]


def _same(one: Path | None, other: Path | None) -> bool:
    try:
        return one is not None and other is not None and one.samefile(other)
    except OSError:
        return False
