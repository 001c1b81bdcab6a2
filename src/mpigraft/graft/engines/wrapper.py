"""Write a plan as a shell script that needs no mpigraft: mpirun -n 4 ./WRAPPER PROGRAM ARGS

Plain POSIX sh, run once per rank. It tests for what a node may lack, and one `stat` says whether
the image is the one that was planned for. Every word is quoted, so nothing in a path or a value is
shell.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from mpigraft.core.env import ENV, rank_argv
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, BindKind, EngineContext, EnvRow, GraftPlan, Scope
from mpigraft.core.text import printable
from mpigraft.graft.engines import registry
from mpigraft.graft.engines.mounts import mounts
from mpigraft.graft.engines.parts import OptionGroup, flat
from mpigraft.graft.folder.folders import graft_environment
from mpigraft.knowledge import breaking_variables

# What is known when the script runs: the working folder, the process of a child's parent, TMPDIR
# and the umask. No other word has a zero byte.
CWD, PARENT = "/\0cwd", "\0parent"
TMPDIR, UMASK, UNBOUND = "/\0tmpdir", "\0umask", "/\0unbound"  # UNBOUND: a TMPDIR to bind
VARIABLES = {
    CWD: '"$cwd"',
    PARENT: '"$parent"',
    TMPDIR: '"$tmpdir"',
    UMASK: '"$(umask)"',
    UNBOUND: '"$unbound"',
}
# Of a child: whom to end where it enters another MPI (native/witness/spawning.h).
SPAWNED = EnvRow("MPIGRAFT_SPAWN_PARENT", PARENT, Scope.RANK, "witness")
CHILD = """parent=$1 cwd=$2
shift 2
# On another node the process of this number is another one.
grep -qsF "$0" "/proc/$parent/environ" || parent=none
case $cwd in
.) cwd=$PWD ;;
[!/]*) cwd=$PWD/$cwd ;;
esac
PWD=$cwd"""
NO_ASSIGNMENT = """case $1 in *=*)
    echo "$0: env takes $1 for a variable: give the program a name without =" >&2
    exit 2 ;;
esac"""


def wrapper_script(
    plan: GraftPlan | None, context: EngineContext | None, child: Sequence[EnvRow] | None = None
) -> str:
    """Write the script's text; paths in it are absolute and of this machine.

    Ranks start in the folder from which they are launched, which must be bound: `context.cwd` and
    below it, or the launcher's session folders. How many share a node is unknown here:
    `context.ranks_per_node` is ignored. `child`: the environment rows of what ranks spawn, which
    may have no plan; rows that are not of scope RANK are exported for the engine. The script's
    first arguments are then the process that spawned the child, and the child's folder as that
    process sees it.
    Raises UsageError as the engine does, and for a word that a script cannot contain.
    """
    context = context and replace(context, ranks_per_node=0 if child is None else 1)
    tool = (plan.guest.env_program if plan else "") or ENV
    rows = _own_rows(plan, context) if child is None else child
    _writable(rank_argv(rows, (), tool))
    rows = _own_rows(plan, context and _later(context)) if child is None else (*child, SPAWNED)
    rank = rank_argv(rows, (), tool)
    parts: tuple[OptionGroup, ...] = (OptionGroup(rank),)
    checks: list[str] = []
    if plan and context:
        parts, checks = _in_engine(plan, context, rank, child=child is not None)
    if child is not None and not (context and context.program):
        checks.append('cd "$cwd" || exit 2')
    return "\n".join(
        [
            "#!/bin/sh",
            *([] if child is not None or plan is None else _comments(plan)),
            "cwd=$PWD" if child is None else CHILD,
            *checks,
            *_exports(row for row in rows if row.scope is not Scope.RANK),
            *([NO_ASSIGNMENT] if rank else []),
            "# From the last word to the first, each in front of the others.",
            *_prepended(parts),
            'exec "$@"',
            "",
        ]
    )


def _own_rows(plan: GraftPlan | None, context: EngineContext | None) -> tuple[EnvRow, ...]:
    if plan is None or context is None:
        return ()
    breaking = (EnvRow(n, None, Scope.LAUNCHER, "engine") for n in breaking_variables(plan.engine))
    own = registry.ENGINES[plan.engine].rows(plan, context)
    return (*breaking, *own, *graft_environment(plan))


def _comments(plan: GraftPlan) -> list[str]:
    mpi, guest = printable(plan.mpi or "its own MPI"), printable(plan.guest.name)
    return [f"# {mpi} under {guest}, by {plan.engine}.", "# mpirun -n 4 THIS PROGRAM ARGUMENTS"]


def _in_engine(
    plan: GraftPlan, context: EngineContext, rank: tuple[str, ...], *, child: bool
) -> tuple[tuple[OptionGroup, ...], list[str]]:
    """Put the engine around a rank's words, and list what the script checks before."""
    engine = registry.ENGINES[plan.engine]
    where = context if child else replace(context, environment=_without_tmpdir(context))
    binds = mounts(plan, where) if engine.PROGRAMS else ()
    _writable(flat(engine.options(plan, context, binds)))
    inside = bool(binds) and not plan.guest.kind.on_host
    later = _later(context) if not child else context
    extra = () if child or not inside else (Bind(UNBOUND, UNBOUND, BindKind.FOLDER, True, False),)
    later = replace(later, cwd=CWD, parent=PARENT if child else "")
    own = engine.options(plan, later, (*extra, *binds))
    able = any(UNBOUND in word for word in flat(own))
    checks = [
        f"graft={quoted(context.graft)}",
        'if ! [ -d "$graft" ]; then',
        '    echo "$0: $graft is missing: plan again" >&2',
        "    exit 3",
        "fi",
        *([] if child else _change_check(plan)),
        *([] if child or plan.guest.kind.on_host else [_cwd_check(context, binds)]),
        *([_tmpdir_check(binds, able=able)] if extra else []),
    ]
    return registry.parts_around(plan, context, own, rank), checks


def _change_check(plan: GraftPlan) -> list[str]:
    """End the script where files of the guest are not those that the plan was made from, by size
    and modification time, which are the same on every node. An image of podman has no file."""
    source = Path(plan.guest.source)
    paths = [Path(stamp.path) for stamp in plan.inputs]
    files = [p for p in paths if p.is_relative_to(source) and p.is_file()]
    if not source.is_absolute() or not files:
        return []
    states = [file.stat() for file in files]
    due = "\n".join(f"{state.st_size} {int(state.st_mtime)}" for state in states)
    words = " ".join(quoted(str(file)) for file in files)
    return [
        f"if [ \"$(stat -L -c '%s %Y' -- {words})\" != {quoted(due)} ]; then",
        f'    echo "$0: files of "{quoted(str(source))}" changed since the plan: plan again" >&2',
        "    exit 3",
        "fi",
    ]


def _writable(words: tuple[str, ...]) -> tuple[str, ...]:
    """Give the words. Raises UsageError for one that a script cannot contain."""
    if any("\0" in word for word in words):
        raise UsageError.of("wrapper-character")
    return words


def quoted(word: str) -> str:
    """Quote a word so that sh reads it back byte for byte; CWD and PARENT become what they are."""
    inner = word.replace("'", "'\\''")
    for mark, variable in VARIABLES.items():
        inner = inner.replace(mark, f"'{variable}'")
    return f"'{inner}'"


def _exports(rows: Iterable[EnvRow]) -> list[str]:
    own = tuple(rows)
    gone = [row.name for row in own if row.value is None]
    return [
        *([f"unset {' '.join(gone)}"] if gone else []),
        *(f"export {row.name}={quoted(row.value)}" for row in own if row.value is not None),
    ]


def _cwd_check(context: EngineContext, binds: Iterable[Bind]) -> str:
    """End the script with a clearer message than the engine's where the folder is not bound."""
    same = (b.target for b in binds if b.required and b.writable and b.source == b.target)
    known = [root for root in dict.fromkeys((context.cwd, *same)) if root != "/"]
    patterns = "|".join(f"{quoted(root)}|{quoted(root)}/*" for root in known)
    folders = quoted(" or ".join(known))
    return (
        f"case $cwd in\n/|{patterns}) ;;\n"
        f'*) echo "$0: start from below "{folders} >&2\n   exit 2 ;;\nesac'
    )


def _later(context: EngineContext) -> EngineContext:
    """Give the context with TMPDIR and umask of when the script runs."""
    environment = (*_without_tmpdir(context), ("TMPDIR", TMPDIR))
    return replace(context, environment=environment, umask=context.umask and UMASK)


def _without_tmpdir(context: EngineContext) -> tuple[tuple[str, str], ...]:
    return tuple(pair for pair in context.environment if pair[0] != "TMPDIR")


def _tmpdir_check(binds: Iterable[Bind], *, able: bool) -> str:
    """Read TMPDIR, and bind it where no bind has it; `able`: the engine makes mount points."""
    roots = [b.target for b in binds if b.required and b.writable and b.source == b.target]
    patterns = "|".join(f"{quoted(root)}|{quoted(root)}/*" for root in roots)
    refusal = 'echo "$0: TMPDIR=$tmpdir cannot be bound: set TMPDIR=/tmp" >&2; exit 2'
    odd = f'*[,:\\"\\\\]*) {refusal} ;;\n'
    last = "/*) unbound=$tmpdir ;;" if able else f"/*) {refusal} ;;"
    return f"tmpdir=${{TMPDIR:-/tmp}} unbound=\ncase $tmpdir in\n{patterns}) ;;\n{odd}{last}\nesac"


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
