"""Write a plan as a shell script that needs no mpigraft: mpirun -n 4 ./WRAPPER PROGRAM ARGS

Plain POSIX sh, run once per rank, no process besides the engine. The script itself tests for what
a node may lack. Every word is quoted, so nothing in a path or a value is shell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mpigraft.core.env import ENV, rank_argv
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, EngineContext, EnvRow, GraftPlan, Scope
from mpigraft.core.text import printable
from mpigraft.graft.engines import registry
from mpigraft.graft.engines.mounts import mounts
from mpigraft.graft.engines.parts import OptionGroup, flat
from mpigraft.graft.folder import graft_environment

CWD = "/{cwd}"  # the working folder, which is known when the script runs


def wrapper_script(plan: GraftPlan, context: EngineContext) -> str:
    """Write the script's text; paths in it are absolute and of this machine.

    Ranks start in the folder from which they are launched, which must be bound: `context.cwd` and
    below it, or the launcher's session folders. The number of ranks on a node is unknown here, so
    `context.ranks_per_node` is ignored. Raises UsageError as the engine does, and for a word that
    a script cannot contain.
    """
    engine = registry.ENGINES[plan.engine]
    context = replace(context, ranks_per_node=0)
    binds = mounts(plan, context) if engine.PROGRAMS else ()
    if any("\0" in word or CWD in word for word in flat(engine.options(plan, context, binds))):
        raise UsageError.of("wrapper-character", mark=CWD)
    rows = engine.rows(plan, context)
    own = engine.options(plan, replace(context, cwd=CWD), binds)
    parts = registry.parts_around(plan, context, own, _rank(plan, rows))
    check = [] if plan.guest.kind.on_host else [_cwd_check(context, binds)]
    return "\n".join(
        [
            "#!/bin/sh",
            f"# {printable(plan.mpi or 'its own MPI')} under {printable(plan.guest.name)}, by "
            f"{plan.engine}.",
            "# mpirun -n 4 THIS PROGRAM ARGUMENTS",
            f"graft={quoted(context.graft)}",
            'if ! [ -d "$graft" ]; then',
            '    echo "$0: $graft is missing: plan again" >&2',
            "    exit 3",
            "fi",
            *check,
            *_exports(row for row in rows if row.scope is not Scope.RANK),
            "# From the last word to the first, each in front of the others.",
            *_prepended(parts),
            'exec "$@"',
            "",
        ]
    )


def quoted(word: str) -> str:
    """Quote a word so that sh reads it back byte for byte; CWD becomes the working folder."""
    if word == CWD:
        return '"$PWD"'
    pieces = ("'" + piece.replace("'", "'\\''") + "'" for piece in word.split(CWD))
    return '"$PWD"'.join(pieces)


def _rank(plan: GraftPlan, rows: Iterable[EnvRow]) -> tuple[str, ...]:
    """Set the environment of ranks: what the engine needs, then the plan's own."""
    return rank_argv((*rows, *graft_environment(plan)), (), plan.guest.env_program or ENV)


def _exports(rows: Iterable[EnvRow]) -> list[str]:
    return [
        f"unset {row.name}" if row.value is None else f"export {row.name}={quoted(row.value)}"
        for row in rows
    ]


def _cwd_check(context: EngineContext, binds: Iterable[Bind]) -> str:
    """End the script with a clearer message than the engine's where the folder is not bound."""
    same = (b.target for b in binds if b.required and b.writable and b.source == b.target)
    known = [root for root in dict.fromkeys((context.cwd, *same)) if root != "/"]
    patterns = "|".join(f"{quoted(root)}|{quoted(root)}/*" for root in known)
    folders = quoted(" or ".join(known))
    return (
        f"case $PWD in\n/|{patterns}) ;;\n"
        f'*) echo "$0: start from below "{folders} >&2\n   exit 2 ;;\nesac'
    )


def _prepended(parts: Iterable[OptionGroup]) -> Iterable[str]:
    """Yield `set --` for each run of parts with one condition, the last one first."""
    for part in reversed(_merged(parts)):
        line = f'set -- {" ".join(map(quoted, part.words))} "$@"'
        if part.source:
            line = f"if [ -e {quoted(part.source)} ]; then {line}; fi"
        yield line


def _merged(parts: Iterable[OptionGroup]) -> list[OptionGroup]:
    groups: list[OptionGroup] = []
    for part in parts:
        if groups and not groups[-1].source and not part.source:
            groups[-1] = OptionGroup((*groups[-1].words, *part.words))
        elif part.words:
            groups.append(part)
    return groups
