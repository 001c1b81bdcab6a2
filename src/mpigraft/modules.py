"""What a set of environment modules changes, as rows of a configuration's environment.

Some MPIs are chosen by module and not by a variable: Cray MPICH speaks OFI or UCX according to
`craype-network-*` and `cray-mpich*`, with the same program. So a configuration may load and unload
modules, and exactly what that changes belongs to it. A set is written `-cray-mpich,cray-mpich-ucx`:
words in order, those with a minus are unloaded.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from pathlib import Path

from mpigraft import discover, env
from mpigraft.cache import file_digest
from mpigraft.errors import MissingError, UsageError
from mpigraft.knowledge.loader import Facts, offers
from mpigraft.model import EnvRow, Machine, MpiInstall, Scope
from mpigraft.run import clean, run
from mpigraft.sources.candidate import Here
from mpigraft.sources.modules import LIMIT_S, NOT_FOR_RUNS, changes_of, command

# What tells the module command of itself is no part of a run; MODULEPATH decides what it finds.
WORD = re.compile(r"-?[A-Za-z0-9_][\w.+@/:~-]*", re.ASCII)
ON_PATH = "a place"  # stands in a key for absolute paths, which no key knows of


def parse(text: str) -> tuple[str, ...]:
    """The words of one set. Raises UsageError for what cannot be a module's name."""
    words = tuple(word.strip() for word in text.split(",") if word.strip())
    for word in words:
        if not WORD.fullmatch(word):
            raise UsageError(
                f"modules {text!r}: {word!r} is no name of a module",
                mend="NAME or NAME/VERSION, with a minus before what is to be unloaded: "
                "-cray-mpich,cray-mpich-ucx",
            )
    if not words:
        raise UsageError(f"modules {text!r}: no module is named")
    return words


def label(names: Sequence[str]) -> str:
    """A set's name for a person: what it loads, or what it unloads where it loads nothing."""
    return ",".join(name for name in names if not name.startswith("-")) or ",".join(names)


def loaded(names: Sequence[str], here: Here) -> tuple[EnvRow, ...]:
    """What loading and unloading `names` in order, on top of what is loaded already, changes for
    launcher and ranks; a value of None: it is removed. Sorted by name, without secrets and without
    what is only for compilers, manuals and the module command. A module that is loaded already is
    loaded anew, so that its own settings are seen.

    Raises MissingError where there is no module command or where it fails, in its own words.
    """
    before = dict(here.environ)
    after = _after(names, here)
    fresh = _without(names, here)
    found: list[EnvRow] = []
    for name in sorted({*before, *after}):
        if after.get(name) == before.get(name) == fresh.get(name):
            continue
        if NOT_FOR_RUNS.fullmatch(name) or env.SECRET_NAME.search(name):
            continue
        rows = (EnvRow(name, after.get(name), s, "module") for s in (Scope.LAUNCHER, Scope.RANK))
        found += rows
    return tuple(found)


def there(names: Sequence[str], here: Here) -> Here:
    """The machine as it looks with these modules: where discover finds the MPI that they bring."""
    return replace(here, environ=_after(names, here))


def brought(machine: Machine, sets: Sequence[str], here: Here | None = None) -> Machine:
    """The machine with those MPIs alone that `sets` of modules bring, each with what its set
    changes; as it is without any set. Raises UsageError and MissingError as `parse` and `loaded`
    do, and MissingError for a set that brings no MPI."""
    if not sets:
        return machine
    place = here or Here()
    up = tuple(d.name for d in machine.fabrics if d.state == "up")
    found: list[MpiInstall] = []
    for text in dict.fromkeys(sets):
        names = parse(text)
        rows = loaded(names, place)
        seen, _ = discover.mpis(there(names, place), up)
        old = {mpi.libmpi for mpi in machine.mpis if mpi.source not in CHOSEN}
        mine = [m for m in seen if m.source in CHOSEN or m.libmpi not in old]
        if not mine:
            raise MissingError(
                f"modules {text}: no MPI is in PATH with them, nor told by their variables",
                mend="name modules that bring one; `mpigraft discover` shows what each MPI is by",
            )
        found += [_tagged(m, label(names), rows) for m in mine]
    facts = Facts.of(machine)
    found = [replace(m, transports=offers(m, facts)) for m in found]
    return replace(machine, mpis=tuple(found))


CHOSEN = ("path", "cray")  # sources of an MPI that the environment points to


def _tagged(mpi: MpiInstall, name: str, rows: Sequence[EnvRow]) -> MpiInstall:
    environment = (*rows, *mpi.environment)
    return replace(mpi, id=f"{mpi.id}({name})", environment=environment, modules=name)


def content(rows: Sequence[EnvRow]) -> list[list[str | None]]:
    """(variable, value) for a configuration's key. Of a file its digest counts, and of any other
    place nothing: what lies there counts by the libraries' own digests."""
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


def _after(names: Sequence[str], here: Here) -> dict[str, str]:
    """The environment after `names`, each of which really is loaded or unloaded then."""
    now = _without(names, here)
    for away, group in groupby(names, key=lambda name: name.startswith("-")):
        words = [name.removeprefix("-") for name in group]
        now = _ran(here, _verb(away=away), words, now)
        for word in words:
            if _is_loaded(word, now) is away:
                still = "is still loaded" if away else "is not loaded"
                raise MissingError(
                    f"module {word} {still} after `module {_verb(away=away)} {word}`"
                )
    return now


def _verb(*, away: bool) -> str:
    return "unload" if away else "load"


def _without(names: Sequence[str], here: Here) -> dict[str, str]:
    """The environment without those of `names` that are loaded already and shall be."""
    now = dict(here.environ)
    words = [name for name in names if not name.startswith("-") and _is_loaded(name, now)]
    return _ran(here, "unload", words, now) if words else now


def _is_loaded(word: str, environ: Mapping[str, str]) -> bool:
    names = environ.get("LOADEDMODULES", "").split(":")
    return any(name == word or name.startswith(f"{word}/") for name in names)


def _ran(here: Here, verb: str, words: Sequence[str], environ: dict[str, str]) -> dict[str, str]:
    """`environ` as one call of the module command leaves it."""
    tool = command(here)
    if tool is None:
        raise MissingError(
            f"no module command here to {verb} {' '.join(words)} with",
            why="neither LMOD_CMD nor MODULES_CMD names one, and there is no modulecmd in PATH",
            mend="start the shell so that `module` works in it, or leave --modules out",
        )
    done = run([*tool, "python", verb, *words], env=environ, limit_s=LIMIT_S)
    told = clean(done.stderr).strip()
    if not done.ok or "_mlstatus = False" in clean(done.stdout):
        how = f"did not end within {LIMIT_S:.0f} s" if done.timed_out else env.redact(told)
        raise MissingError(
            f"module {verb} {' '.join(words)}: {how or f'exit code {done.code}'}",
            mend="`module spider NAME` shows what is there and what must be loaded before it",
        )
    changed = changes_of(clean(done.stdout))
    now = environ | {name: value for name, value in changed.items() if value is not None}
    return {name: value for name, value in now.items() if changed.get(name, "") is not None}
