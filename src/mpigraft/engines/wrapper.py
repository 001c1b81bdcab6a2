"""A plan as a shell script that needs no mpigraft: mpirun -n 4 ./WRAPPER PROGRAM ARGS

Plain POSIX sh, run once per rank, no process besides the engine. What a node may lack is looked
for where the script runs. Every word is quoted, so nothing in a path or a value is shell.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mpigraft import engines, grafts
from mpigraft.engines.mounts import mounts
from mpigraft.engines.parts import Part, flat
from mpigraft.env import ENV, rank_argv
from mpigraft.errors import UsageError
from mpigraft.model import Bind, EnvRow, GraftPlan, GuestKind, Scope, Seat

CWD = "/{cwd}"  # stands for the working folder until the script runs


def script(plan: GraftPlan, seat: Seat) -> str:
    """The script's text, lines ended by newlines; paths in it are absolute and of this machine.

    Ranks start in the folder from which they are launched, which has to be one that is bound:
    `seat.cwd` and below it, or the launcher's session folders. How many of them will share a node
    is not known here, so `seat.ranks_per_node` counts for nothing. Raises UsageError as the
    engine does, and for a word that a script cannot hold.
    """
    engine = engines.ENGINES[plan.engine]
    seat = replace(seat, ranks_per_node=0)
    binds = mounts(plan, seat) if engine.PROGRAMS else ()
    if any("\0" in word or CWD in word for word in flat(engine.options(plan, seat, binds))):
        raise UsageError(f"no path or value may hold a NUL or {CWD!r} in a wrapper")
    rows = engine.rows(plan, seat)
    own = engine.options(plan, replace(seat, cwd=CWD), binds)
    parts = engines.parts_around(plan, seat, own, _rank(plan, rows))
    check = [] if plan.guest.kind is GuestKind.PROGRAM else [_cwd_check(seat, binds)]
    return "\n".join(
        [
            "#!/bin/sh",
            f"# {_line(plan.mpi or 'its own MPI')} under {_line(plan.guest.name)}, by "
            f"{plan.engine}.",
            "# mpirun -n 4 THIS PROGRAM ARGUMENTS",
            f"graft={quoted(seat.graft)}",
            'if ! [ -d "$graft" ]; then',
            '    echo "$0: $graft is not there: make the plan again" >&2',
            "    exit 3",
            "fi",
            *check,
            *_exports(row for row in rows if row.scope is not Scope.RANK),
            "# From the last word to the first, each in front of what is there.",
            *_prepended(parts),
            'exec "$@"',
            "",
        ]
    )


def quoted(word: str) -> str:
    """A word as sh reads it back byte for byte; CWD in it becomes the working folder."""
    if word == CWD:
        return '"$PWD"'
    pieces = ("'" + piece.replace("'", "'\\''") + "'" for piece in word.split(CWD))
    return '"$PWD"'.join(pieces)


def _rank(plan: GraftPlan, rows: Iterable[EnvRow]) -> tuple[str, ...]:
    """The environment of ranks: what the engine needs of them, then the plan's own."""
    return rank_argv((*rows, *grafts.environment(plan)), (), plan.guest.env_program or ENV)


def _exports(rows: Iterable[EnvRow]) -> list[str]:
    return [
        f"unset {row.name}" if row.value is None else f"export {row.name}={quoted(row.value)}"
        for row in rows
    ]


def _cwd_check(seat: Seat, binds: Iterable[Bind]) -> str:
    """Ends the script where the engine would say less clearly that the folder is not there."""
    same = (b.target for b in binds if b.required and b.writable and b.source == b.target)
    known = [root for root in dict.fromkeys((seat.cwd, *same)) if root != "/"]
    patterns = "|".join(f"{quoted(root)}|{quoted(root)}/*" for root in known)
    said = quoted(" or ".join(known))
    return (
        f"case $PWD in\n/|{patterns}) ;;\n"
        f'*) echo "$0: start from below "{said} >&2\n   exit 2 ;;\nesac'
    )


def _prepended(parts: Iterable[Part]) -> Iterable[str]:
    """`set --` for each run of parts that stand or fall together, the last one first."""
    for part in reversed(_merged(parts)):
        line = f'set -- {" ".join(map(quoted, part.words))} "$@"'
        if part.source:
            line = f"if [ -e {quoted(part.source)} ]; then {line}; fi"
        yield line


def _merged(parts: Iterable[Part]) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        if found and not found[-1].source and not part.source:
            found[-1] = Part((*found[-1].words, *part.words))
        elif part.words:
            found.append(part)
    return found


def _line(text: str) -> str:
    """Text for a comment: what is not printable could end it."""
    return "".join(c if c.isprintable() else "?" for c in text)
