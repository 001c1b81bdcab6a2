"""What ranks see of the host, whichever engine starts them, and what none may see."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from mpigraft.errors import UsageError
from mpigraft.model import Bind, BindKind, EnvRow, GraftPlan, GuestKind, Scope, Seat
from mpigraft.roots import Root

GRAFT = "{graft}"
RANKS = "ranks"
MOST_STEPS = 1000  # from a path to what it means: links may lead in a circle
TMP = "/tmp"  # noqa: S108  where launchers keep their session folders
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
OWNER = ("HOME", "USER", "LOGNAME")  # who runs it is not the guest's to say

# Ranks that do not share a user namespace must not try single copies: UCX 1.13 does, and dies in
# the first large message; Open MPI 4 warns (both seen). UCX 1.16 finds out by itself.
ALONE = (
    ("UCX_POSIX_USE_PROC_LINK", "n"),
    ("UCX_TLS", "^cma"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
)
APART = (
    "each rank has a user namespace of its own: single-copy shared memory (CMA) is lost, messages "
    "within a node are copied twice"
)


def apart(seat: Seat) -> tuple[EnvRow, ...]:
    """What ranks need that each have a user namespace of their own."""
    if seat.ranks_per_node == 1:
        return ()
    return tuple(EnvRow(name, value, Scope.RANK, "engine") for name, value in ALONE)


def mounts(plan: GraftPlan, seat: Seat) -> tuple[Bind, ...]:
    """Every bind of a rank, sources filled in, each target once, outer folders before inner ones.

    Where two want one target, the graft goes before the user, and the user before devices and
    folders that are bound in any case. Raises UsageError for a path that is not absolute, and for
    a working folder that would hide the guest's own files.
    """
    host = plan.guest.kind is GuestKind.PROGRAM  # its root is the host's: all is there already
    wanted = [
        *(() if host else (*_sessions(seat), *_cwd(plan, seat), *plan.devices)),
        *seat.extra,
        Bind(seat.graft, plan.place, BindKind.FOLDER),
        Bind(f"{seat.graft}/{RANKS}", f"{plan.place}/{RANKS}", BindKind.FOLDER, writable=True),
        *plan.binds,
    ]
    last = {}
    for bind in wanted:
        bound = replace(bind, source=bind.source.replace(GRAFT, seat.graft))
        for path in (bound.source, bound.target):
            if not path.startswith("/") or "\0" in path or ".." in PurePosixPath(path).parts:
                raise UsageError(
                    f"{path!r} cannot be bound into a guest",
                    why="both sides of a bind are absolute paths without '..'",
                )
        last[str(PurePosixPath(bound.target))] = bound
    return tuple(sorted(last.values(), key=lambda b: len(PurePosixPath(b.target).parts)))


def present(binds: Iterable[Bind]) -> tuple[Bind, ...]:
    """Those that are required, and those whose source is on this machine."""
    return tuple(b for b in binds if b.required or os.access(b.source, os.F_OK))


def same_inside(path: str, binds: Iterable[Bind], cwd: str) -> bool:
    """Whether ranks that see `binds` find at a path of this machine the very file or folder that
    is there here: the same device and inode. Links are followed as ranks would, and one that
    leads into the guest's own files leads to something else. A relative path is below `cwd`."""
    whole = str(PurePosixPath(cwd) / path)
    table = {PurePosixPath(bind.target): bind.source for bind in binds}
    try:
        there = _backing(PurePosixPath(whole), table)
        return bool(there) and Path(whole).samefile(there)
    except (OSError, ValueError):
        return False


def _backing(path: PurePosixPath, table: Mapping[PurePosixPath, str]) -> str:
    """The path on this machine of what ranks find at `path`; empty: it is the guest's own."""
    rest, at = [*path.parts[1:]], PurePosixPath("/")
    for _ in range(MOST_STEPS):
        if not rest:
            return _source(at, table)
        word = rest.pop(0)
        step = at.parent if word == ".." else at / word
        source = Path(_source(step, table))
        if step not in table and source.is_symlink():
            link = PurePosixPath(source.readlink())
            rest = [*link.parts[link.is_absolute() :], *rest]
            at = PurePosixPath("/") if link.is_absolute() else at
        else:
            at = step
    return ""


def _source(path: PurePosixPath, table: Mapping[PurePosixPath, str]) -> str:
    """Where the innermost bind over `path` has it on this machine; empty where none is."""
    for target in (path, *path.parents):
        if target in table:
            return str(PurePosixPath(table[target]) / path.relative_to(target))
    return ""


def is_device(bind: Bind) -> bool:
    """Whether it may hold device files, which a bind without leave for them makes useless."""
    return bind.kind is BindKind.DEVICE or PurePosixPath(bind.source).is_relative_to("/dev")


def _sessions(seat: Seat) -> Iterable[Bind]:
    """Launchers keep sockets and shared memory below TMPDIR, else below /tmp."""
    own = dict(seat.environment).get("TMPDIR", "")
    for folder in dict.fromkeys((TMP, str(PurePosixPath(own)) if own.startswith("/") else TMP)):
        yield Bind(folder, folder, BindKind.FOLDER, writable=True)


def _cwd(plan: GraftPlan, seat: Seat) -> Iterable[Bind]:
    cwd = PurePosixPath(seat.cwd)
    if any(cwd.is_relative_to(b.target) for b in _sessions(seat)) or cwd == PurePosixPath("/"):
        return
    inner = (*(b.target for b in plan.binds), *plan.guest.programs, plan.place)
    if hidden := [path for path in inner if PurePosixPath(path).is_relative_to(cwd)]:
        raise UsageError(
            f"the working folder {seat.cwd} would hide the guest's {hidden[0]}",
            why="ranks see the working folder of the host at its own path",
            mend="start from another folder",
        )
    yield Bind(seat.cwd, seat.cwd, BindKind.FOLDER, writable=True)


def dropped(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    """Names that an engine which hands its environment on has to keep from ranks: what the plan
    drops, whoever sets it meanwhile, and what this process has and `plan.passed` does not name.

    The innermost `env` drops the plan's too, but by then a preloaded library of the host would
    have been loaded into that very `env`.
    """
    gone = [row.name for row in plan.environment if row.value is None]
    own = [name for name, _ in seat.environment if name not in OWNER]
    stray = [n for n in own if not any(fnmatchcase(n, pattern) for pattern in plan.passed)]
    return tuple(dict.fromkeys((*gone, *stray)))


def given(plan: GraftPlan) -> dict[str, str]:
    """What the image sets for its processes, where the engine does not read that itself."""
    return {"PATH": PATH, **dict(plan.guest.environment)}


def kept(seat: Seat, *names: str) -> tuple[EnvRow, ...]:
    """Variables of the engine's own that are set for this process and that a launch would not
    hand on: where it keeps images, its configuration."""
    own = dict(seat.environment)
    return tuple(EnvRow(n, own[n], Scope.LAUNCHER, "engine") for n in names if n in own)


def inside(root: Root, path: str) -> tuple[str, bool]:
    """A path of the guest without links in it, and whether there is something.

    Engines resolve links of a mount point against their own root, not against the guest's.
    """
    pure = PurePosixPath(path)
    for parent in (pure, *pure.parents):
        if seen := root.find(str(parent)):
            rest = pure.relative_to(parent)
            return str(PurePosixPath(seen.path) / rest), rest == PurePosixPath()
    return str(pure), False
