"""bubblewrap: a folder, or this machine's own root, with nothing but kernel features.

bwrap makes a missing mount point, but not in a folder that is mounted read-only. So `/` is an
empty tmpfs into which each entry of the image's top folder is bound, and the same is done to
every deeper folder that lacks a mount point. Binding the image itself as `/` and letting bwrap
write into it was rejected: a plan never writes into a guest.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mpigraft.engines.mounts import APART, apart, dropped, given, inside, is_device, mounts, present
from mpigraft.engines.parts import Part, flat
from mpigraft.errors import UsageError
from mpigraft.model import Bind, BindKind, EnvRow, GraftPlan, GuestKind, Seat
from mpigraft.root import open_root
from mpigraft.roots import Link, Root

if TYPE_CHECKING:
    from mpigraft.guest import Guest

KINDS: tuple[GuestKind, ...] = (GuestKind.FOLDER, GuestKind.PROGRAM)
PROGRAMS: tuple[str, ...] = ("bwrap",)
STAYS = True
KEEPS_FILES = True
PLACE = "/.mpigraft"
MOST_ENTRIES = 4096  # words have to fit into one command line
# Over the guest's, where it has such a file: names of hosts and users are this machine's.
NAMES = ("/etc/hosts", "/etc/resolv.conf", "/etc/passwd", "/etc/group")
OWN = ("/proc", "/sys", "/dev")
KERNEL = (
    Part(("--bind", "/proc", "/proc")),  # the host's: ranks read each other's memory by pid
    Part(("--ro-bind", "/sys", "/sys")),
    Part(("--dev", "/dev")),
    Part(("--dev-bind", "/dev/shm", "/dev/shm")),  # noqa: S108  ranks share memory through it
)


def place(guest: Guest) -> str:
    """Anywhere: the root is put together anew."""
    del guest
    return PLACE


def words(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    return flat(options(plan, seat, present(mounts(plan, seat))))


def rows(plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
    del plan
    return () if seat.root else apart(seat)


def own_binds(plan: GraftPlan, seat: Seat) -> tuple[Bind, ...]:
    del plan, seat
    return tuple(Bind(path, path, BindKind.FOLDER) for path in ("/proc", "/sys"))


def shares(plan: GraftPlan, seat: Seat) -> str:
    del plan
    if seat.root:
        return "no user namespaces: single-copy shared memory (CMA) works"
    return APART


def options(plan: GraftPlan, seat: Seat, binds: Sequence[Bind]) -> tuple[Part, ...]:
    """The words for these binds. The image's folders are read, for the mount points they lack.

    Raises UsageError for an image that is no folder, or with a folder that has to be put together
    and cannot be read or has more than MOST_ENTRIES entries.
    """
    host = plan.guest.kind is GuestKind.PROGRAM
    source = Path("/" if host else plan.guest.source)
    if not source.is_dir():
        raise UsageError(f"{source} is no folder", why="bubblewrap starts guests from folders")
    root = open_root(source)
    own = () if host else OWN
    placed = [(bind, *inside(root, bind.target)) for bind in binds]
    covered = {path for _, path, _ in placed}.union(own)
    parted = {"/"}
    for _, path, there in placed:
        above = [str(parent) for parent in PurePosixPath(path).parents]
        if not there and covered.isdisjoint(above):
            parted.update(above)
    tree = _tree(root, source, "/", parted, own, "--dev-bind" if host else "--ro-bind")
    return (
        Part((seat.program, "--die-with-parent", "--tmpfs", "/")),
        *tree,
        *(() if host else KERNEL),
        *(() if host else _names(root)),
        *(_bound(bind, path) for bind, path, _ in placed),
        Part(("--remount-ro", "/")),  # what a rank writes there would be lost, with exit code 0
        *(Part(("--unsetenv", name)) for name in dropped(plan, seat)),
        *(() if host else (Part(("--setenv", *pair)) for pair in given(plan).items())),
        Part(plan.options),
        Part(("--chdir", seat.cwd, "--")),
    )


def _bound(bind: Bind, target: str) -> Part:
    option = "--dev-bind" if is_device(bind) else "--bind" if bind.writable else "--ro-bind"
    if bind.required:
        return Part((option, bind.source, target))
    return Part((f"{option}-try", bind.source, target), bind.source)


def _names(root: Root) -> Iterator[Part]:
    for name in NAMES:
        seen = root.find(name)
        if seen is not None and seen.kind == "file":
            yield Part(("--ro-bind-try", name, seen.path))


def _tree(
    root: Root, source: Path, folder: str, parted: set[str], own: Sequence[str], how: str
) -> Iterator[Part]:
    """The entries of a folder, bound one by one; those of `parted` are put together anew."""
    here = f"{str(source).rstrip('/')}{folder}"
    if not os.access(here, os.R_OK | os.X_OK):
        raise UsageError(
            f"{here} may not be read",
            why="it lacks a mount point, so its entries are bound one by one",
        )
    names = root.names(folder)
    if len(names) > MOST_ENTRIES:
        raise UsageError(
            f"{here} has {len(names)} entries",
            why="it lacks a mount point, so they would have to be bound one by one",
            mend="bind to a folder that the guest has",
        )
    for name in names:
        path = f"{folder.rstrip('/')}/{name}"
        seen = None if path in own else root.look(folder, name)
        if isinstance(seen, Link):
            yield Part(("--symlink", seen.target, path))
        elif seen is not None and path in parted and seen.kind == "folder":
            yield Part(("--perms", f"{seen.mode & 0o7777:04o}", "--dir", path))
            yield from _tree(root, source, path, parted, own, how)
        elif seen is not None and seen.kind in {"folder", "file"}:
            yield Part((how, f"{str(source).rstrip('/')}{path}", path))
