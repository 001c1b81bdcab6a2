"""Answer a shell that completes a command line; where something is wrong, with nothing.

The shell's function gives the line up to the cursor in VARIABLE. Only what the answer needs is
imported: a user waits for it at each press of a key.
"""

from __future__ import annotations

import contextlib
import os
import platform
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpigraft.core import cache
from mpigraft.core.fingerprint import own_state

if TYPE_CHECKING:
    from mpigraft.knowledge import Rules
    from mpigraft.store import Store

Values = Callable[[Sequence[str]], Iterable[str]]
VARIABLE = "_MPIGRAFT_COMPLETE"
BREAKS = "_MPIGRAFT_BREAKS"  # characters where the shell's own words end
KIND = "completion"  # of what the cache keeps
QUOTES = ("", '"', "'")  # that may be open at the cursor
PREFIX_KEPT = "@"  # bash replaces what follows a break, but this one with it (readline's prefixes)
BASH = """\
_mpigraft() {
    local IFS=$'\\n'
    COMPREPLY=($(
        export _MPIGRAFT_COMPLETE="${COMP_LINE:0:$COMP_POINT}" _MPIGRAFT_BREAKS="$COMP_WORDBREAKS"
        "${1/#\\~/$HOME}" 2>/dev/null </dev/null
    ))
    case "${COMPREPLY[*]}" in *[=:/]) compopt -o nospace 2>/dev/null ;; esac
    return 0
}
complete -o default -F _mpigraft mpigraft mpigraft.pyz
"""
FISH = """\
function __mpigraft
    set -l program (string replace -r '^~' $HOME -- (commandline -opc)[1])
    set -lx _MPIGRAFT_COMPLETE (commandline -cp)
    set -g __mpigraft_found ($program 2>/dev/null </dev/null)
    set -q __mpigraft_found[1] # else fish completes files
end
complete -c mpigraft -n __mpigraft -f -a '$__mpigraft_found'
complete -c mpigraft.pyz -n __mpigraft -f -a '$__mpigraft_found'
"""
ZSH = f"autoload -U +X bashcompinit && bashcompinit\n{BASH}"
SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


def answer() -> None:
    """Print the candidates for the word at the cursor, one a line."""
    with contextlib.suppress(Exception):
        words, word = split(os.environ.pop(VARIABLE))
        cut = _cut(word, os.environ.get(BREAKS, ""))
        found = dict.fromkeys(one for one in candidates(words, word) if one.startswith(word))
        sys.stdout.write("".join(f"{one[cut:]}\n" for one in found))
        sys.stdout.flush()


def split(line: str) -> tuple[list[str], str]:
    """Split a line into the words behind the program and the word at its end."""
    for quote in QUOTES:
        with contextlib.suppress(ValueError):
            words = shlex.split(line + quote)
            break
    if not quote and line[-1:].isspace():
        words.append("")
    return words[1:-1], words[-1] if len(words) > 1 else ""


def _cut(word: str, breaks: str) -> int:
    """Count the characters that are no part of the shell's own word at the end of `word`."""
    last = max((at for at, one in enumerate(word) if one in breaks), default=-1)
    return last if last >= 0 and word[last] in PREFIX_KEPT else last + 1


def candidates(words: Sequence[str], word: str) -> Iterator[str]:
    """Yield what fits at the cursor, behind `words`: it need not begin with `word`."""
    from mpigraft.cli.main import COMMANDS

    if "--" in words:  # words of another program
        return
    command = _command(words)
    flag, _, value = word.partition("=")
    if word.startswith("--") and "=" in word:
        yield from (f"{flag}={one}" for one in _values(flag, words, value))
    elif words and words[-1].startswith("--") and (found := [*_values(words[-1], words, word)]):
        yield from found
    elif word.startswith("-"):
        yield from _flags(command, words)
    elif not command:
        yield from COMMANDS
    elif command == "results" and words[-1] == command:
        yield from ("list", "show")
    elif command in ARGUMENTS:
        yield from ARGUMENTS[command](words)


def _command(words: Sequence[str]) -> str:
    from mpigraft.cli.main import named_command

    return named_command(words)


def _flags(command: str, words: Sequence[str]) -> Iterator[str]:
    from typer.main import get_command

    from mpigraft.cli.main import load

    found: Any = get_command(load([command]))
    for name in (command, *words):
        found = getattr(found, "commands", {}).get(name, found)
    for option in found.params:
        if option.param_type_name == "option":
            yield from (one for one in (*option.opts, *option.secondary_opts) if len(one) > 2)
    yield "--help"


def _values(flag: str, words: Sequence[str], value: str) -> Iterator[str]:
    """Yield the values of an option; of one that takes several, behind those that are given."""
    rules = _rules(_command(words), flag)
    several = rules and (rules.commas or flag == "--benchmark")  # which has options with commas
    given = value[: value.rfind(",") + 1] if several else ""
    known = VALUES[flag](words) if flag in VALUES else rules.words if rules else ()
    yield from (f"{given}{one}" for one in known)


def _rules(command: str, flag: str) -> Rules | None:
    """Find what is valid for an option of a request."""
    from mpigraft import request

    kind = getattr(request, REQUESTS.get(command, "RunSpec"))
    return next((one.rules for one in request.options_of(kind).values() if one.flag == flag), None)


# ------------------------------------------------------------------ what there is


def _kept(name: str, make: Callable[[], Iterable[str]]) -> list[str]:
    """Give facts of this version from the cache: to read all tables takes half a second."""
    key = f"{own_state()} {name}"
    if isinstance(known := cache.get(KIND, key), list):
        return known
    cache.put(KIND, key, made := [*make()])
    return made


def _transports(_: Sequence[str]) -> list[str]:
    def names() -> Iterable[str]:
        from mpigraft.core.model import Family
        from mpigraft.knowledge import transport_names

        return dict.fromkeys(name for family in Family for name in transport_names(family))

    return _kept("transports", names)


def _variables(_: Sequence[str]) -> list[str]:
    def names() -> Iterable[str]:
        from mpigraft.knowledge import transport_rows

        return sorted({f"{name}=" for row in transport_rows() for name, _ in row.env})

    return _kept("variables", names)


def _settings(_: Sequence[str]) -> list[str]:
    from mpigraft.request import read_site

    return [one.name for one in read_site(os.environ).settings]


def _benchmarks(_: Sequence[str]) -> list[str]:
    def names() -> Iterator[str]:
        from mpigraft.bench import PROGRAM_SUITES
        from mpigraft.native import benchmarks
        from mpigraft.request import CampaignSpec

        yield from benchmarks()
        for suite, one in PROGRAM_SUITES.items():
            yield from (f"{suite}:{name}" for name in one.names(CampaignSpec()))

    return _kept("benchmarks", names)


def _mpis(_: Sequence[str]) -> Iterator[str]:
    """Yield families, and the ids that `discover` found last on this host or `get` fetched."""
    from mpigraft.core.model import Family
    from mpigraft.discovery import fetch_offers, known_mpis

    yield from Family
    yield from known_mpis(platform.node())
    yield from (f"{one.family}@{one.version}" for one in fetch_offers() if one.prefix)


def _families(_: Sequence[str]) -> Iterable[str]:
    from mpigraft.discovery import MPI_OFFERS, fetch_offers

    return [*MPI_OFFERS, *(f"{one.family}@{one.version}" for one in fetch_offers())]


def _store(words: Sequence[str]) -> Store:
    from mpigraft.cli.common import default_store
    from mpigraft.store import Store

    folder = os.environ.get("MPIGRAFT_STORE") or default_store()
    for before, one in pairwise(words):
        folder = one if before == "--store" else folder
    return Store(Path(folder))


def _campaigns(words: Sequence[str]) -> Iterator[str]:
    for record in _store(words).campaigns():
        yield from (record.name, record.id[:8])


def _baselines(words: Sequence[str]) -> Iterator[str]:
    """Yield the configurations of the campaign that is named, else of the latest; of what is to be
    measured MPIs too."""
    store = _store(words)
    records = store.campaigns()
    named = [one for one in records if {one.name, one.id, one.id[:8]} & {*words}]
    for record in (named or records)[-1:]:
        yield from (one.id for one in store.configurations(record.id))
    if _command(words) not in ARGUMENTS:
        yield from _mpis(words)


def _planned(name: str, end: str = "") -> Values:
    """Give the names in a part of the table that builds are planned by."""

    def names() -> Iterator[str]:
        from mpigraft.knowledge import plan_table

        yield from (f"{one.id}{end}" for one in getattr(plan_table(), name))

    return lambda _: _kept(name, names)


def _packages(words: Sequence[str]) -> Iterable[str]:
    """Give packages of `build`; `bundle --with` takes another campaign."""
    from mpigraft.knowledge import packages

    return _campaigns(words) if _command(words) == "bundle" else _kept("packages", packages)


def _stacks(_: Sequence[str]) -> Iterable[str]:
    """Give the versions of stacks that this host has mounted, as EESSI's."""
    return map(str, Path("/cvmfs").glob("*/versions/[0-9]*"))


def _words_of(name: str) -> Values:
    """Give the words that an option of the command takes: a constant of its module."""

    def words_of(words: Sequence[str]) -> Iterable[str]:
        command = _command(words)
        module = f"mpigraft.{command}" if command == "build" else f"mpigraft.cli.{command}"
        known: Iterable[str] = getattr(import_module(module), name)
        return known

    return words_of


def _layouts(_: Sequence[str]) -> Iterator[str]:
    from mpigraft.core.model import BIND_TO, MAP_BY

    cores = len(os.sched_getaffinity(0))
    for nodes in (1, 2):
        for ranks in dict.fromkeys((1, 2, cores)):
            yield f"{nodes}x{ranks}"
            yield from (f"{nodes}x{ranks}:{level}" for level in MAP_BY)
            yield from (f"{nodes}x{ranks}-{level}" for level in BIND_TO)


def _engines(_: Sequence[str]) -> Iterable[str]:
    from mpigraft.graft import ENGINES

    return ENGINES


def _launchers(_: Sequence[str]) -> Iterable[str]:
    from mpigraft.launch import LAUNCHERS

    return ("own", *LAUNCHERS)


def _schedulers(_: Sequence[str]) -> Iterable[str]:
    from mpigraft.launch import SCHEDULERS

    return SCHEDULERS


def _cases(_: Sequence[str]) -> Iterable[str]:
    from mpigraft.knowledge import case_names

    return case_names()


REQUESTS = {
    "bench": "CampaignSpec", "check": "GraftSpec", "plan": "GraftSpec", "inject": "InjectSpec",
}  # fmt: skip
VALUES: Mapping[str, Values] = {  # of options whose rules have no words
    "--accept": _campaigns,
    "--across": lambda _: ("configurations", "layouts", "settings"),
    "--as": _words_of("FORMS"),
    "--baseline": _baselines,
    "--benchmark": _benchmarks,
    "--compiler": _planned("compilers"),
    "--diff": _mpis,
    "--engine": _engines,
    "--env": _variables,
    "--fail-on": _words_of("GATES"),
    "--figure-width": lambda _: ("page", "column"),
    "--format": _words_of("FORMATS"),
    "--launcher": _launchers,
    "--layout": _layouts,
    "--mpi": _mpis,
    "--network": lambda _: ("single_node_vni", "job_vni", "none"),
    "--on": _stacks,
    "--scheduler": _schedulers,
    "--setting": _settings,
    "--stack": _stacks,
    "--transport": _transports,
    "--use": _planned("provided", "="),
    "--with": _packages,
    "--without": _packages,
}
ARGUMENTS: Mapping[str, Values] = {
    "build": _planned("recipes"),
    "bundle": _campaigns,
    "case": _cases,
    "compare": _campaigns,
    "completion": lambda _: SHELLS,
    "diagnose": _campaigns,
    "export": _campaigns,
    "get": _families,
    "inject": _stacks,
    "layout": _layouts,
    "recheck": _campaigns,
    "report": _campaigns,
    "results": _campaigns,
    "status": _campaigns,
    "undo": _stacks,
}
