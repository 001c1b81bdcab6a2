"""Files and variables of the host that ranks get under every engine, and those that they must not
get."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mpigraft.binary import Root
from mpigraft.core.env import GUEST_PATH
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, BindKind, EngineContext, EnvRow, GraftPlan, Scope
from mpigraft.knowledge import default_binds

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest

GRAFT = "{graft}"
PLACE = "/.mpigraft"
RANKS = "ranks"
MOST_STEPS = 1000  # from a path to what it means: links may lead in a circle
GUEST_TMP = "/tmp"  # noqa: S108  where launchers keep their session folders
OWNER = ("HOME", "USER", "LOGNAME")
USERS = (*OWNER, "TMPDIR")  # the user's; the guest's do not count

# Ranks without a common user namespace must not try single copies: UCX 1.13 does, and crashes in
# the first large message; Open MPI 4 warns (both tried). UCX 1.16 detects it.
ALONE = (
    ("UCX_POSIX_USE_PROC_LINK", "n"),
    ("UCX_TLS", "^cma"),
    ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ("MPIR_CVAR_CH4_CMA_ENABLE", "0"),  # 5.0.2 does without, except with what it spawns
)
APART = (
    "each rank has a user namespace of its own: single-copy shared memory (CMA) is lost, messages "
    "within a node are copied twice"
)


def anywhere(guest: Guest) -> str:
    """Give one path for all guests, of an engine that makes missing mount points itself."""
    del guest
    return PLACE


def apart(context: EngineContext) -> tuple[EnvRow, ...]:
    """Give the rows of ranks that each have a user namespace of their own. One that is alone on its
    node has them too: it may spawn others."""
    del context
    return tuple(EnvRow(name, value, Scope.RANK, "engine") for name, value in ALONE)


def sharing(context: EngineContext) -> str:
    """Say what ranks of a node share under an engine that makes namespaces for users alone."""
    if context.root:
        return "no user namespaces: single-copy shared memory (CMA) works"
    return APART


def mounts(plan: GraftPlan, context: EngineContext) -> tuple[Bind, ...]:
    """List every bind of a rank, sources filled in, each target once, outer folders first.

    Where two have one target, the graft's wins over the user's, and the user's over devices and
    folders that are always bound. Raises UsageError for a path that is not absolute, and for
    a working folder that would hide the guest's own files.
    """
    host = plan.guest.kind.on_host  # its root is the host's: all is there already
    if not host:
        _refuse_hiding(plan, context)
    binds = [
        *(() if host else (*_sessions(context), *_cwd(context), *plan.devices)),
        *context.extra,
        Bind(context.graft, plan.place, BindKind.FOLDER),
        Bind(f"{context.graft}/{RANKS}", f"{plan.place}/{RANKS}", BindKind.FOLDER, writable=True),
        *plan.binds,
    ]
    last = {}
    for bind in binds:
        bound = replace(bind, source=bind.source.replace(GRAFT, context.graft))
        for path in (bound.source, bound.target):
            if not path.startswith("/") or "\0" in path or ".." in PurePosixPath(path).parts:
                raise UsageError.of("bind-path-relative", path=path)
        last[str(PurePosixPath(bound.target))] = bound
    return tuple(sorted(last.values(), key=lambda b: len(PurePosixPath(b.target).parts)))


def default_folders(
    engine: str, environment: Mapping[str, str], settings: Mapping[str, str]
) -> tuple[Bind, ...]:
    """List the folders that an engine with this environment and these settings puts over a guest's
    own by itself; without a source: what is neither the guest's nor this machine's."""
    return tuple(
        Bind(row.host_folder(environment), row.path, BindKind.FOLDER)
        for row in default_binds(engine)
        if settings.get(row.setting, "yes") != "no"
    )


def visible(own: Iterable[Bind], binds: Iterable[Bind]) -> tuple[Bind, ...]:
    """Merge what an engine binds by itself with the binds of a rank, which go over it."""
    return tuple({str(PurePosixPath(b.target)): b for b in (*own, *binds)}.values())


def of_job(context: EngineContext) -> tuple[Bind, ...]:
    """List what ranks see of this machine for the sake of their job, whichever engine it is: what
    launchers need, the working folder, and the binds of the user and the site."""
    return (*_sessions(context), *_cwd(context), *context.extra)


def present(binds: Iterable[Bind]) -> tuple[Bind, ...]:
    """Select the required binds, and those whose source exists on this machine."""
    return tuple(b for b in binds if b.required or os.access(b.source, os.F_OK))


def same_inside(path: str, binds: Iterable[Bind], cwd: str) -> bool:
    """Return whether ranks that see `binds` find this machine's file or folder at its own path: the
    same device and inode. Links are followed as in a rank, where one into the guest's own files
    leads to another file. A relative path is below `cwd`."""
    whole = str(PurePosixPath(cwd) / path)
    table = {PurePosixPath(bind.target): bind.source for bind in binds}
    try:
        backing = _backing(PurePosixPath(whole), table)
        return bool(backing) and Path(whole).samefile(backing)
    except (OSError, ValueError):
        return False


def _backing(path: PurePosixPath, table: Mapping[PurePosixPath, str]) -> str:
    """Give the path on this machine of what ranks find at `path`; empty: the guest's own file."""
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
    """Give the path on this machine by the innermost bind over `path`; empty without one."""
    for target in (path, *path.parents):
        if target in table:
            source = table[target]
            return str(PurePosixPath(source) / path.relative_to(target)) if source else ""
    return ""


def is_device(bind: Bind) -> bool:
    """Return whether it can contain device files, which need a bind that allows devices."""
    return bind.kind is BindKind.DEVICE or PurePosixPath(bind.source).is_relative_to("/dev")


def _sessions(context: EngineContext) -> Iterable[Bind]:
    """Bind TMPDIR and /tmp: launchers keep sockets and shared memory there."""
    own = dict(context.environment).get("TMPDIR", "")
    for folder in dict.fromkeys(
        (GUEST_TMP, str(PurePosixPath(own)) if own.startswith("/") else GUEST_TMP)
    ):
        yield Bind(folder, folder, BindKind.FOLDER, writable=True)


def _cwd(context: EngineContext) -> Iterable[Bind]:
    """Bind the working folder, also at the path by which a user came there through a link."""
    cwd = PurePosixPath(context.cwd)
    if cwd == PurePosixPath("/"):
        return
    own = Bind(context.cwd, context.cwd, BindKind.FOLDER, writable=True)
    if not any(cwd.is_relative_to(b.target) for b in _sessions(context)):
        yield own
    came = dict(context.environment).get("PWD", "")
    if came.startswith("/") and ".." not in came.split("/") and PurePosixPath(came) != cwd:
        # A link in a folder that is bound leads there by itself, and bwrap mounts on no link.
        there = same_inside(came, (*_sessions(context), own, *context.extra), context.cwd)
        with contextlib.suppress(OSError):
            if not there and Path(came).samefile(cwd):
                yield replace(own, target=came, required=False)


def _refuse_hiding(plan: GraftPlan, context: EngineContext) -> None:
    for bind in _cwd(context):
        for path in _of_guest(plan):
            if PurePosixPath(path).is_relative_to(bind.target):
                raise UsageError.of("cwd-hides", cwd=context.cwd, hidden=path)


def _of_guest(plan: GraftPlan) -> Iterable[str]:
    """List what ranks need of the guest's own. A program of this machine may bring libraries of
    its own, over which the plan binds."""
    own = plan.guest.of_host
    yield plan.place
    yield from (path for path in plan.guest.programs if path not in own)
    yield from (b.target for b in plan.binds if not (own and Path(b.target).is_file()))


def dropped(plan: GraftPlan, context: EngineContext) -> tuple[str, ...]:
    """List variables that an engine which passes its environment on must keep from ranks: what the
    plan drops, and what this process has and `plan.passed` does not name.

    The innermost `env` drops the plan's too, but a preloaded library of the host would already be
    loaded into that `env`.
    """
    gone = [row.name for row in plan.environment if row.value is None]
    own = [name for name, _ in context.environment if name not in OWNER]
    stray = [n for n in own if not any(fnmatchcase(n, pattern) for pattern in plan.passed)]
    return tuple(dict.fromkeys((*gone, *stray)))


def given(plan: GraftPlan, context: EngineContext) -> dict[str, str]:
    """Give what the image sets for its processes, where the engine does not read it."""
    own = dict(context.environment)
    image = {n: v for n, v in plan.guest.environment if n not in USERS or n not in own}
    return {"PATH": GUEST_PATH, **image}


def as_outside(context: EngineContext, *names: str) -> tuple[EnvRow, ...]:
    """Give ranks the user's values of variables that the engine sets or drops by itself."""
    own = dict(context.environment)
    return tuple(EnvRow(n, own[n], Scope.RANK, "engine") for n in names if n in own)


def kept(context: EngineContext, *names: str) -> tuple[EnvRow, ...]:
    """Keep the engine's own variables of this process, which a launch would not pass on: where it
    stores images, its configuration."""
    own = dict(context.environment)
    return tuple(EnvRow(n, own[n], Scope.LAUNCHER, "engine") for n in names if n in own)


def inside(root: Root, path: str) -> tuple[str, bool]:
    """Resolve the links of a path of the guest, and tell whether it exists.

    Engines resolve links of a mount point against their own root, not against the guest's.
    """
    pure = PurePosixPath(path)
    for parent in (pure, *pure.parents):
        if entry := root.find(str(parent)):
            rest = pure.relative_to(parent)
            return str(PurePosixPath(entry.path) / rest), rest == PurePosixPath()
    return str(pure), False
