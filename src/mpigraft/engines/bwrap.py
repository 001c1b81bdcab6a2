"""bubblewrap: a folder, or this machine's own root, with nothing but kernel features.

bwrap makes a missing mount point, but not in a folder that is mounted read-only. So `/` is an
empty tmpfs into which each entry of the image's top folder is bound, and the same is done to
every deeper folder that lacks a mount point. Binding the image itself as `/` and letting bwrap
write into it was rejected: a plan never writes into a guest.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from mpigraft.engines.mounts import dropped, mounts, present
from mpigraft.engines.parts import Part, flat
from mpigraft.errors import UsageError
from mpigraft.model import Bind, BindKind, EnvRow, GraftPlan, GuestKind, Seat

KINDS: tuple[GuestKind, ...] = (GuestKind.FOLDER, GuestKind.PROGRAM)
PROGRAMS: tuple[str, ...] = ("bwrap",)
PLACE = "/.mpigraft"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
MOST_ENTRIES = 4096  # words have to fit into one command line
MOST_LINKS = 40  # as the kernel's own limit
# Over the guest's, where it has such a file: names of hosts and users are this machine's.
NAMES = ("/etc/hosts", "/etc/resolv.conf", "/etc/passwd", "/etc/group")
KERNEL = (
    Part(("--bind", "/proc", "/proc")),  # of the host: ranks read each other's memory by pid
    Part(("--ro-bind", "/sys", "/sys")),
    Part(("--dev", "/dev")),
    Part(("--dev-bind", "/dev/shm", "/dev/shm")),  # noqa: S108
)
OWN = ("/proc", "/sys", "/dev")


def place(guest: object) -> str:
    """Anywhere: the root is put together anew."""
    del guest
    return PLACE


def words(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    return flat(options(plan, seat, present(mounts(plan, seat))))


def rows(plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
    del plan, seat
    return ()


def shares(plan: GraftPlan, seat: Seat) -> str:
    del plan
    if seat.root:
        return "no user namespace: single-copy shared memory (CMA) works"
    return (
        "each rank has a user namespace of its own: single-copy shared memory (CMA) is lost, "
        "messages within a node are copied twice"
    )


def options(plan: GraftPlan, seat: Seat, binds: Sequence[Bind]) -> tuple[Part, ...]:
    """The words for these binds. The image's folders are read, for the mount points they lack.

    Raises UsageError for an image without a root folder, with loops in its links, or with more
    than MOST_ENTRIES entries in a folder that has to be put together.
    """
    host = plan.guest.kind is GuestKind.PROGRAM
    image = _Image("/" if host else plan.guest.source)
    placed = [(bind, *image.find(bind.target)) for bind in binds]
    bound = {path for _, path, _ in placed} | (set() if host else set(OWN))
    open_folders = {"/"}
    for _, path, there in placed:
        above = [str(p) for p in PurePosixPath(path).parents]
        if not there and bound.isdisjoint(above):
            open_folders.update(above)
    tree = image.tree("/", open_folders, () if host else OWN, "--dev-bind" if host else "--ro-bind")
    names = [] if host else [n for n in NAMES if image.find(n)[1]]
    environment = {"PATH": PATH, **dict(plan.guest.environment)}
    return (
        Part((seat.program, "--die-with-parent", "--tmpfs", "/")),
        *tree,
        *(() if host else KERNEL),
        *(Part(("--ro-bind-try", name, image.find(name)[0])) for name in names),
        *(_bound(bind, path) for bind, path, _ in placed),
        *(() if host else _environment(plan, seat, environment)),
        Part(("--chdir", seat.cwd, "--")),
    )


def _bound(bind: Bind, target: str) -> Part:
    if bind.kind in {BindKind.DEVICE, BindKind.SOCKET}:
        option = "--dev-bind"
    else:
        option = "--bind" if bind.writable else "--ro-bind"
    if bind.required:
        return Part((option, bind.source, target))
    return Part((f"{option}-try", bind.source, target), bind.source)


def _environment(plan: GraftPlan, seat: Seat, environment: dict[str, str]) -> Iterator[Part]:
    for name in dropped(plan, seat):
        if name not in environment:
            yield Part(("--unsetenv", name))
    for name, value in environment.items():
        yield Part(("--setenv", name, value))


class _Image:
    """The folder that is to be the root. Its links are followed inside it, as chroot does."""

    def __init__(self, source: str) -> None:
        self.source = source.rstrip("/")
        if not Path(source).is_dir():
            raise UsageError(f"{source} is no folder", why="bubblewrap starts guests from folders")

    def find(self, path: str) -> tuple[str, bool]:
        """The path without links in it, and whether there is something."""
        done: list[str] = []
        left = [p for p in reversed(path.split("/")) if p not in {"", "."}]
        links = 0
        while left:
            name = left.pop()
            if name == "..":
                done = done[:-1]
                continue
            target = _link(f"{self.source}/{'/'.join([*done, name])}")
            if target is not None:
                links += 1
                if links > MOST_LINKS:
                    raise UsageError(f"{path}: its links go in a circle", why="inside the guest")
                done = [] if target.startswith("/") else done
                left += [p for p in reversed(target.split("/")) if p not in {"", "."}]
            else:
                done.append(name)
        found = "/" + "/".join(done)
        return found, os.path.lexists(self.source + found)

    def tree(
        self, folder: str, open_folders: set[str], skipped: Sequence[str], how: str
    ) -> Iterator[Part]:
        """The entries of a folder, bound one by one; those of `open_folders` made anew."""
        try:
            with os.scandir(self.source + folder) as entries:
                found = sorted(entries, key=lambda e: e.name)
        except OSError as error:
            raise UsageError(
                f"{self.source}{folder} cannot be read: {error.strerror}",
                why="it lacks a mount point, so its entries are bound one by one",
            ) from None
        if len(found) > MOST_ENTRIES:
            raise UsageError(
                f"{self.source}{folder} has {len(found)} entries",
                why="it lacks a mount point, so its entries would be bound one by one",
                mend="bind to a folder that the guest has",
            )
        for entry in found:
            path = f"{folder.rstrip('/')}/{entry.name}"
            if path in skipped:
                continue
            target = _link(entry.path)
            if target is not None:
                yield Part(("--symlink", target, path))
            elif path in open_folders:
                mode = stat.S_IMODE(entry.stat(follow_symlinks=False).st_mode)
                yield Part(("--perms", f"{mode:04o}", "--dir", path))
                yield from self.tree(path, open_folders, skipped, how)
            elif entry.is_dir(follow_symlinks=False) or entry.is_file(follow_symlinks=False):
                yield Part((how, entry.path, path))


def _link(path: str) -> str | None:
    """What a link says; None for anything else, and for what this user may not look at."""
    try:
        return os.readlink(path)  # noqa: PTH115 - as it stands: a Path would tidy it up
    except OSError:
        return None
