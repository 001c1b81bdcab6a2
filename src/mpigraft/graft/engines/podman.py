"""Start guests with podman, from a folder, an image of its storage or an archive, in the host's
namespaces.

Ranks keep their user id: PMIx refuses a client of another user, and its launcher then waits
forever. For ordinary users this takes --userns keep-id, with a user namespace for each container.
One namespace for all containers of a user, with ranks as root inside, would keep single-copy
shared memory, but PMIx would refuse the ranks (both seen with 4.3.1).
"""

from __future__ import annotations

import contextlib
import os
import tarfile
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from mpigraft.core import file_dependencies
from mpigraft.core.env import ENV
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, BindKind, EngineContext, EnvRow, GraftPlan, GuestKind, Scope
from mpigraft.core.parsers import parse_toml
from mpigraft.graft.engines.mounts import anywhere, apart, default_folders, is_device, kept, sharing
from mpigraft.graft.engines.parts import OptionGroup, fields, plain

KINDS: tuple[GuestKind, ...] = (GuestKind.PODMAN, GuestKind.OCI, GuestKind.FOLDER)
PROGRAMS: tuple[str, ...] = ("podman",)
STAYS = False  # podman passes signals on; the program is not its child
KEEPS_FILES = False  # --preserve-fds needs all numbers up to the last, and launchers leave gaps
place = anywhere  # a missing mount point is made in the container's own layer
# runc ignores the second, crun then keeps a user's other groups (podman-run(1), --group-add).
AS_USER = ("--userns", "keep-id", "--group-add", "keep-groups")
SHM = "/dev/shm"  # noqa: S108  ranks share memory through it
MQUEUE = Path("/dev/mqueue")
MOST_MEMBERS = 100_000
SETTINGS = (
    "XDG_RUNTIME_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "DBUS_SESSION_BUS_ADDRESS",
    "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF",
)  # fmt: skip


def rows(plan: GraftPlan, context: EngineContext) -> tuple[EnvRow, ...]:
    alone = () if context.root else apart(context)
    return (*kept(context, *SETTINGS), *_without_own_tmpdir(plan, context), *alone)


def _without_own_tmpdir(plan: GraftPlan, context: EngineContext) -> tuple[EnvRow, ...]:
    """Take TMPDIR from ranks where nobody set it: podman gives itself /var/tmp, and passes that on,
    where each container has a tmpfs of its own (4.3.1)."""
    if {"TMPDIR"} & {*dict(context.environment), *dict(plan.guest.environment)}:
        return ()
    return (EnvRow("TMPDIR", None, Scope.RANK, "engine"),)


def own_binds(context: EngineContext) -> tuple[Bind, ...]:
    own = dict(context.environment)
    volumes = [word.split(":") for word in _volumes(own)]
    asked = [Bind(v[0], v[1], BindKind.FOLDER) for v in volumes if len(v) > 1 and v[0][:1] == "/"]
    return (*default_folders("podman", own, {}), *asked)


def configurations(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """List where podman may have its configuration, the last one first. Source:
    containers.conf(5)."""
    if named := environment.get("CONTAINERS_CONF"):
        return (Path(named),)
    home = environment.get("XDG_CONFIG_HOME") or f"{environment.get('HOME', '')}/.config"
    folders = (Path(home) / "containers", Path("/etc/containers"), Path("/usr/share/containers"))
    return tuple(folder / "containers.conf" for folder in folders)


def _volumes(environment: Mapping[str, str]) -> list[str]:
    """Read the binds that its configuration asks for; a file that counts more replaces the list."""
    for path in configurations(environment):
        file_dependencies.file(path)
        with contextlib.suppress(OSError, ValueError):
            part = parse_toml(path.read_text(encoding="utf-8")).get("containers", {})
            if isinstance(volumes := part.get("volumes"), list):
                return [word for word in volumes if isinstance(word, str)]
    return []


def shares(plan: GraftPlan, context: EngineContext) -> str:
    del plan
    return sharing(context)


def options(
    plan: GraftPlan, context: EngineContext, binds: Sequence[Bind]
) -> tuple[OptionGroup, ...]:
    """Make the words for these binds. Raises UsageError for a path or a pattern that the options
    cannot contain, for another user's folder, and for a file that is not an archive."""
    gone = (row.name for row in plan.environment if row.value is None)
    drops = [name for name in gone if any(fnmatchcase(name, p) for p in plan.passed)]
    ipc = context.root or MQUEUE.exists()  # --ipc host binds it, and fails without it
    return (
        *((OptionGroup((ENV, *(w for name in drops for w in ("-u", name)))),) if drops else ()),
        OptionGroup(
            (context.program, "run", "--rm", "--interactive", "--quiet", "--pull", "missing")
        ),
        # Files written outside the binds would be lost with the layer, with exit code 0. So the
        # root is read-only, as with other engines, except podman's tmpfs over /run and /var/tmp.
        OptionGroup(("--read-only",)),
        OptionGroup(("--network", "host", "--pid", "host", *(("--ipc", "host") if ipc else ()))),
        # The user of the host, not the image's; its /etc/passwd is not changed.
        OptionGroup(("--user", "0:0") if context.root else AS_USER),
        OptionGroup(("--passwd=false", "--security-opt", "label=disable", "--log-driver", "none")),
        OptionGroup(("--systemd", "false", "--http-proxy=false", "--entrypoint", "")),
        OptionGroup(("--env-host=false",)),  # containers.conf may ask for it
        *((OptionGroup((f"--umask={context.umask}",)),) if context.umask else ()),
        *(OptionGroup(("--env", _pattern(pattern))) for pattern in plan.passed),
        *(_bound(bind) for bind in binds if not (ipc and bind.target == SHM)),
        OptionGroup(("--workdir", context.cwd)),
        OptionGroup(plan.options),
        OptionGroup(_image(plan, context)),
    )


def _pattern(pattern: str) -> str:
    """Give the pattern. podman supports `*` at the end of a name only."""
    plain("podman", pattern.removesuffix("*"), "*?[]=")
    return pattern


def _bound(bind: Bind) -> OptionGroup:
    optional = "" if bind.required else bind.source
    if is_device(bind) and bind.source != SHM:
        paths = (plain("podman", path, ":") for path in (bind.source, bind.target))
        return OptionGroup(("--device", ":".join(paths)), optional)
    mode = () if bind.writable or bind.kind is BindKind.SOCKET else ("ro=true",)
    mount = fields("type=bind", f"source={bind.source}", f"target={bind.target}", *mode)
    return OptionGroup(("--mount", mount), optional)


def _image(plan: GraftPlan, context: EngineContext) -> tuple[str, ...]:
    source = plan.guest.source
    match plan.guest.kind:
        case GuestKind.FOLDER:
            plain("podman", source, ":,\\")  # the last two are those of mount options
            if not context.root and Path(source).stat().st_uid != os.geteuid():
                raise UsageError.of("podman-foreign-folder", source=source)
            return ("--rootfs", f"{source}:O")
        case GuestKind.OCI:
            return (f"{_transport(source)}:{plain('podman', source, ':')}",)
        case _:  # by its id: the name may be another image's by now
            return (plan.guest.digest,)


def _transport(archive: str) -> str:
    """Give podman's name for this kind of archive, by its content."""
    try:
        with tarfile.open(archive, "r:") as members:
            for _, member in zip(range(MOST_MEMBERS), members, strict=False):
                name = str(PurePosixPath(member.name))
                if name in {"index.json", "oci-layout"}:
                    return "oci-archive"
    except (OSError, tarfile.TarError) as error:
        raise UsageError.of("archive-unreadable", archive=archive, error=error) from None
    return "docker-archive"
