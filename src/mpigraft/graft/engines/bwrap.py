"""Start guests with bubblewrap, from a folder or this machine's own root.

bwrap creates missing mount points, but not in a folder that is mounted read-only. So `/` is an
empty tmpfs, and each entry of the image's top folder is bound into it. The same is done for every
deeper folder that lacks a mount point. Binding the image as `/` and letting bwrap write into it
was rejected: a plan never writes into a guest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from mpigraft.binary import Link, Root, open_root
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, EngineContext, EnvRow, GraftPlan, GuestKind
from mpigraft.graft.engines.mounts import (
    anywhere,
    apart,
    default_folders,
    dropped,
    given,
    inside,
    is_device,
    sharing,
)
from mpigraft.graft.engines.parts import OptionGroup
from mpigraft.knowledge import default_binds

KINDS: tuple[GuestKind, ...] = (GuestKind.FOLDER, GuestKind.PROGRAM)
PROGRAMS: tuple[str, ...] = ("bwrap",)
STAYS = True
KEEPS_FILES = True
place = anywhere  # the root is rebuilt
MOST_ENTRIES = 4096  # words have to fit into one command line
# Bound over the guest's files of the same names: host and user names are this machine's.
NAMES = ("/etc/hosts", "/etc/resolv.conf", "/etc/passwd", "/etc/group")
OWN = tuple(row.path for row in default_binds("bwrap"))
KERNEL = (
    OptionGroup(("--bind", "/proc", "/proc")),  # the host's: ranks read each other's memory by pid
    OptionGroup(("--ro-bind", "/sys", "/sys")),
    OptionGroup(("--dev", "/dev")),
    OptionGroup(("--dev-bind", "/dev/shm", "/dev/shm")),  # noqa: S108  ranks share memory through it
)


def rows(plan: GraftPlan, context: EngineContext) -> tuple[EnvRow, ...]:
    del plan
    return () if context.root else apart(context)


def own_binds(context: EngineContext) -> tuple[Bind, ...]:
    return default_folders("bwrap", dict(context.environment), {})


def shares(plan: GraftPlan, context: EngineContext) -> str:
    del plan
    return sharing(context)


def options(
    plan: GraftPlan, context: EngineContext, binds: Sequence[Bind]
) -> tuple[OptionGroup, ...]:
    """Make the words for these binds. This reads the image's folders to see which mount points they
    lack.

    Raises UsageError for an image that is not a folder, and for a folder that lacks a mount point
    and cannot be read or has more than MOST_ENTRIES entries.
    """
    host = plan.guest.kind is GuestKind.PROGRAM
    source = Path("/" if host else plan.guest.source)
    if not source.is_dir():
        raise UsageError.of("guest-not-folder-bwrap", source=source)
    root = open_root(source)
    own = () if host else OWN
    placed = [(bind, *inside(root, bind.target)) for bind in binds]
    covered = {path for _, path, _ in placed}.union(own)
    parted = {"/"}
    for _, path, exists in placed:
        above = [str(parent) for parent in PurePosixPath(path).parents]
        if not exists and covered.isdisjoint(above):
            parted.update(above)
    tree = _tree(root, source, "/", parted, own, "--dev-bind" if host else "--ro-bind")
    return (
        OptionGroup((context.program, "--die-with-parent", "--tmpfs", "/")),
        *tree,
        *(() if host else KERNEL),
        *(() if host else _names(root)),
        *(_bound(bind, path) for bind, path, _ in placed),
        OptionGroup(
            ("--remount-ro", "/")
        ),  # what a rank writes there would be lost, with exit code 0
        *(OptionGroup(("--unsetenv", name)) for name in dropped(plan, context)),
        *(
            ()
            if host
            else (OptionGroup(("--setenv", *pair)) for pair in given(plan, context).items())
        ),
        OptionGroup(plan.options),
        OptionGroup(("--chdir", context.cwd, "--")),
    )


def _bound(bind: Bind, target: str) -> OptionGroup:
    option = "--dev-bind" if is_device(bind) else "--bind" if bind.writable else "--ro-bind"
    if bind.required:
        return OptionGroup((option, bind.source, target))
    return OptionGroup((f"{option}-try", bind.source, target), bind.source)


def _names(root: Root) -> Iterator[OptionGroup]:
    for name in NAMES:
        entry = root.find(name)
        if entry is not None and entry.kind == "file":
            yield OptionGroup(("--ro-bind-try", name, entry.path))


def _tree(
    root: Root, source: Path, folder: str, parted: set[str], own: Sequence[str], how: str
) -> Iterator[OptionGroup]:
    """Bind the entries of a folder one by one; the folders in `parted` are rebuilt the same way."""
    host_folder = f"{str(source).rstrip('/')}{folder}"
    if not os.access(host_folder, os.R_OK | os.X_OK):
        raise UsageError.of("bind-folder-unreadable", folder=host_folder)
    names = root.names(folder)
    if len(names) > MOST_ENTRIES:
        raise UsageError.of("bind-folder-large", folder=host_folder, count=len(names))
    for name in names:
        path = f"{folder.rstrip('/')}/{name}"
        entry = None if path in own else root.entry_in(folder, name)
        if isinstance(entry, Link):
            yield OptionGroup(("--symlink", entry.target, path))
        elif entry is not None and path in parted and entry.kind == "folder":
            yield OptionGroup(("--perms", f"{entry.mode & 0o7777:04o}", "--dir", path))
            yield from _tree(root, source, path, parted, own, how)
        elif entry is not None and entry.kind in {"folder", "file"}:
            yield OptionGroup((how, f"{str(source).rstrip('/')}{path}", path))
