"""What a set of environment modules changes, as rows of a configuration's environment.

Some MPIs are selected by module and not by a variable: Cray MPICH uses OFI or UCX according to
`craype-network-*` and `cray-mpich*`, with the same program. So a configuration may load and unload
modules, and what that changes belongs to it. A set is written `-cray-mpich,cray-mpich-ucx`: words
in order, those with a minus are unloaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from mpigraft.core import env
from mpigraft.core.cache import file_digest
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import EnvRow, Machine, MpiInstall, Scope
from mpigraft.core.parsers import TooMuch
from mpigraft.core.process import clean, run_command
from mpigraft.discovery import inventory
from mpigraft.discovery.sources.candidate import Host
from mpigraft.discovery.sources.modules import LIMIT_S, NOT_FOR_RUNS, changes_of, command
from mpigraft.knowledge import Facts, transport_offers

WORD = re.compile(r"-?[A-Za-z0-9_][\w.+@/:~-]*", re.ASCII)
ON_PATH = "a place"  # replaces absolute paths in a key, which must not depend on them


def parse(text: str) -> tuple[str, ...]:
    """Split one set into its words. Raises UsageError for an invalid module name."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if not WORD.fullmatch(word):
            raise UsageError.of("modules-invalid", text=text, word=word)
    if not words:
        raise UsageError.of("modules-empty", text=text)
    return words


def label(names: Sequence[str]) -> str:
    """Name a set by what it loads, or by what it unloads where it loads nothing."""
    return ",".join(name for name in names if not name.startswith("-")) or ",".join(names)


def module_rows(names: Sequence[str], host: Host) -> tuple[EnvRow, ...]:
    """Give what loading and unloading `names` in order changes for launcher and ranks.

    A row with the value None removes the variable. Rows are sorted by name, without secrets and
    without what is only for compilers, manuals and the module command. A module that is loaded
    already is loaded again, so that its own settings are included.
    Raises MissingError where there is no module command or where it fails, with its message.
    """
    before = dict(host.environ)
    after = _after(names, host)
    fresh = _without(names, host)
    changes: list[EnvRow] = []
    for name in sorted({*before, *after}):
        if after.get(name) == before.get(name) == fresh.get(name):
            continue
        if NOT_FOR_RUNS.fullmatch(name) or env.SECRET_NAME.search(name):
            continue
        rows = (EnvRow(name, after.get(name), s, "module") for s in (Scope.LAUNCHER, Scope.RANK))
        changes += rows
    return tuple(changes)


def rows_of_modules(words: Sequence[str], environ: Mapping[str, str]) -> tuple[EnvRow, ...]:
    """Give what loading modules into an environment sets for ranks. Raises UsageError for an
    invalid name, MissingError as `module_rows` does."""
    names = [name for word in words for name in parse(word)]
    rows = module_rows(names, Host(environ=environ))
    return tuple(row for row in rows if row.scope is Scope.RANK)


def host_with_modules(names: Sequence[str], host: Host) -> Host:
    """Give the machine with these modules loaded: discovery finds the MPI that they bring."""
    return replace(host, environ=_after(names, host))


def module_mpis(machine: Machine, sets: Sequence[str], host: Host | None = None) -> Machine:
    """Give the machine with only the MPIs that `sets` of modules bring, each with what its set
    changes. Without a set the machine stays as it is.

    Raises UsageError as `parse` does, MissingError as `module_rows` does and for a set that brings
    no MPI.
    """
    if not sets:
        return machine
    host = host or Host()
    up = tuple(d.name for d in machine.fabrics if d.state == "up")
    selected: list[MpiInstall] = []
    for text in dict.fromkeys(sets):
        names = parse(text)
        rows = module_rows(names, host)
        mpis, _ = inventory.discover_mpis(host_with_modules(names, host), up)
        known = {mpi.libmpi for mpi in machine.mpis if mpi.source not in ENVIRONMENT_SOURCES}
        brought = [m for m in mpis if m.source in ENVIRONMENT_SOURCES or m.libmpi not in known]
        if not brought:
            raise MissingError.of("modules-no-mpi", text=text)
        selected += [_tagged(m, label(names), rows) for m in brought]
    facts = Facts.of(machine)
    selected = [replace(m, transports=transport_offers(m, facts)) for m in selected]
    return replace(machine, mpis=tuple(selected))


ENVIRONMENT_SOURCES = ("path", "cray")  # sources of an MPI that the environment points to


def _tagged(mpi: MpiInstall, name: str, rows: Sequence[EnvRow]) -> MpiInstall:
    environment = (*rows, *mpi.environment)
    return replace(mpi, id=f"{mpi.id}({name})", environment=environment, modules=name)


def row_content(rows: Sequence[EnvRow]) -> list[list[str | None]]:
    """Give (variable, value) pairs for a configuration's key. Of a file its digest counts, and of
    any other path nothing: what is there counts by the libraries' own digests."""
    return [
        [row.name, None if row.value is None else _content(row.value)]
        for row in rows
        if row.scope is Scope.RANK
    ]


def _content(value: str) -> str:
    if not value.startswith("/"):
        return value
    try:
        return file_digest(Path(value))
    except OSError:
        return ON_PATH


# ------------------------------------------------------------------ the module command


def _after(names: Sequence[str], host: Host) -> dict[str, str]:
    """Give the environment after `names`, and check that each is really loaded or unloaded."""
    now = _without(names, host)
    for unload, group in groupby(names, key=lambda name: name.startswith("-")):
        words = [name.removeprefix("-") for name in group]
        now = _run_module_command(host, _verb(unload=unload), words, now)
        for word in words:
            if _is_loaded(word, now) is unload:
                still = "is still loaded" if unload else "is not loaded"
                verb = _verb(unload=unload)
                raise MissingError.of("module-not-changed", word=word, still=still, verb=verb)
    return now


def _verb(*, unload: bool) -> str:
    return "unload" if unload else "load"


def _without(names: Sequence[str], host: Host) -> dict[str, str]:
    """Give the environment with those of `names` unloaded that are already loaded."""
    now = dict(host.environ)
    words = [name for name in names if not name.startswith("-") and _is_loaded(name, now)]
    return _run_module_command(host, "unload", words, now) if words else now


def _is_loaded(word: str, environ: Mapping[str, str]) -> bool:
    names = environ.get("LOADEDMODULES", "").split(":")
    return any(name == word or name.startswith(f"{word}/") for name in names)


def _run_module_command(
    host: Host, verb: str, words: Sequence[str], environ: dict[str, str]
) -> dict[str, str]:
    """Give `environ` as one call of the module command leaves it."""
    tool = command(host)
    if tool is None:
        raise MissingError.of("module-command-missing", verb=verb, words=" ".join(words))
    done = run_command([*tool, "python", verb, *words], env=environ, limit_s=LIMIT_S)
    error = clean(done.stderr).strip()
    if not done.ok or "_mlstatus = False" in clean(done.stdout):
        how = f"no answer within {LIMIT_S:.0f} s" if done.timed_out else env.redact(error)
        raise MissingError.of(
            "modules-failed",
            verb=verb,
            words=" ".join(words),
            outcome=how or f"exit code {done.code}",
        )
    try:
        changed = changes_of(clean(done.stdout))
    except TooMuch as error:
        raise MissingError.of(
            "modules-failed", verb=verb, words=" ".join(words), outcome=f"it prints {error}"
        ) from error
    now = environ | {name: value for name, value in changed.items() if value is not None}
    return {name: value for name, value in now.items() if changed.get(name, "") is not None}
