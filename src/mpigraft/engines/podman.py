"""podman: a folder, an image of its storage, or an archive, under the namespaces of the host.

Ranks are who they are outside: PMIx refuses a client of another user, and its launcher then waits
for ever. For ordinary users that is --userns keep-id, a user namespace for each container. One for
all of a user's, with ranks that are root inside, would keep single-copy shared memory (both seen
with 4.3.1); a launch that starts goes first.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mpigraft.engines.mounts import APART, apart, is_device, kept, mounts, present
from mpigraft.engines.parts import Part, fields, flat, plain
from mpigraft.env import ENV
from mpigraft.errors import UsageError
from mpigraft.model import Bind, BindKind, EnvRow, GraftPlan, GuestKind, Seat

if TYPE_CHECKING:
    from mpigraft.guest import Guest

KINDS: tuple[GuestKind, ...] = (GuestKind.PODMAN, GuestKind.OCI, GuestKind.FOLDER)
PROGRAMS: tuple[str, ...] = ("podman",)
STAYS = False  # the program is no child of podman's, which passes signals on
KEEPS_FILES = False  # --preserve-fds wants every one up to the last, and a launcher leaves gaps
PLACE = "/.mpigraft"
SHM = "/dev/shm"  # noqa: S108  ranks share memory through it
MQUEUE = Path("/dev/mqueue")
MOST_MEMBERS = 100_000
SETTINGS = (
    "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS",
    "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF",
)  # fmt: skip


def place(guest: Guest) -> str:
    """Anywhere: a missing mount point is made in the container's own layer."""
    del guest
    return PLACE


def words(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    return flat(options(plan, seat, present(mounts(plan, seat))))


def rows(plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
    del plan
    return (*kept(seat, *SETTINGS), *(() if seat.root else apart(seat)))


def own_binds(plan: GraftPlan, seat: Seat) -> tuple[Bind, ...]:
    del plan, seat
    return ()


def shares(plan: GraftPlan, seat: Seat) -> str:
    del plan
    if seat.root:
        return "no user namespaces: single-copy shared memory (CMA) works"
    return APART


def options(plan: GraftPlan, seat: Seat, binds: Sequence[Bind]) -> tuple[Part, ...]:
    """The words for these binds. Raises UsageError for a path or a pattern that the options
    cannot hold, for a folder of somebody else's, and for an archive that is none."""
    gone = (row.name for row in plan.environment if row.value is None)
    drops = [name for name in gone if any(fnmatchcase(name, p) for p in plan.passed)]
    ipc = seat.root or MQUEUE.exists()  # podman binds that too, and fails without it
    return (
        *((Part((ENV, *(w for name in drops for w in ("-u", name)))),) if drops else ()),
        Part((seat.program, "run", "--rm", "--interactive", "--quiet", "--pull", "missing")),
        # What a rank writes beside the binds would be lost with the layer, with exit code 0: as
        # read-only as under other engines, but for podman's own tmpfs over /run and /var/tmp.
        Part(("--read-only",)),
        Part(("--network", "host", "--pid", "host", *(("--ipc", "host") if ipc else ()))),
        # Whoever an image wants to be; its /etc/passwd is left alone.
        Part(("--user", "0:0") if seat.root else ("--userns", "keep-id")),
        Part(("--passwd=false", "--security-opt", "label=disable", "--log-driver", "none")),
        Part(("--systemd", "false", "--http-proxy=false", "--entrypoint", "")),
        *(Part(("--env", _pattern(pattern))) for pattern in plan.passed),
        *(_bound(bind) for bind in binds if not (ipc and bind.target == SHM)),
        Part(("--workdir", seat.cwd)),
        Part(plan.options),
        Part(_image(plan, seat)),
    )


def _pattern(pattern: str) -> str:
    """podman knows `*` at the end of a name only."""
    plain("podman", pattern.removesuffix("*"), "*?[]=")
    return pattern


def _bound(bind: Bind) -> Part:
    optional = "" if bind.required else bind.source
    if is_device(bind) and bind.source != SHM:
        paths = (plain("podman", path, ":") for path in (bind.source, bind.target))
        return Part(("--device", ":".join(paths)), optional)
    mode = () if bind.writable or bind.kind is BindKind.SOCKET else ("ro=true",)
    mount = fields("type=bind", f"source={bind.source}", f"target={bind.target}", *mode)
    return Part(("--mount", mount), optional)


def _image(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    source = plan.guest.source
    match plan.guest.kind:
        case GuestKind.FOLDER:
            plain("podman", source, ":,\\")  # the last two are those of mount options
            if not seat.root and Path(source).stat().st_uid != os.geteuid():
                raise UsageError(
                    f"{source} belongs to somebody else",
                    why="podman lays a layer over a folder, and of ordinary users only over their "
                    "own; without the layer it would make mount points in the folder",
                    mend="use --engine apptainer or bwrap, or podman load and podman:IMAGE",
                )
            return ("--rootfs", f"{source}:O")
        case GuestKind.OCI:
            return (f"{_transport(source)}:{plain('podman', source, ':')}",)
        case _:
            if source.startswith("-"):
                raise UsageError(f"{source} is no name of an image")
            return (source,)


def _transport(archive: str) -> str:
    """The name that podman has for this kind of archive, by what is in it."""
    try:
        with tarfile.open(archive, "r:") as members:
            for _, member in zip(range(MOST_MEMBERS), members, strict=False):
                name = str(PurePosixPath(member.name))
                if name in {"index.json", "oci-layout"}:
                    return "oci-archive"
    except (OSError, tarfile.TarError) as error:
        raise UsageError(f"{archive} is no archive of an image: {error}") from None
    return "docker-archive"
