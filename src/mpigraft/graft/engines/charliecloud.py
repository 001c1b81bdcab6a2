"""Start guests with Charliecloud, from a folder.

It creates no mount points in a read-only image, so the graft is bound over an empty folder of the
image. All binds are writable: a rank can change the copies in the graft folder, but nothing else of
the host. Newer versions create mount points in an overlay (--write-fake); this is not used, because
many kernels do not allow it to users.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mpigraft.binary import open_root
from mpigraft.core.env import ENV
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, EngineContext, EnvRow, GraftPlan, GuestKind, Scope
from mpigraft.graft.engines.mounts import (
    APART,
    OWNER,
    apart,
    as_outside,
    default_folders,
    given,
    inside,
    kept,
)
from mpigraft.graft.engines.parts import OptionGroup, plain
from mpigraft.knowledge import default_binds

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest

KINDS: tuple[GuestKind, ...] = (GuestKind.FOLDER,)
PROGRAMS: tuple[str, ...] = ("ch-run",)
STAYS = False
KEEPS_FILES = True
# Folders that distributions leave empty, the likeliest first.
PLACES = ("/.mpigraft", "/mnt/9", "/mnt", "/media", "/srv", "/opt")
BOUND = tuple(row.path for row in default_binds("charliecloud"))
# With TMPDIR in its environment ch-run would bind that folder at the guest's /tmp, and unset it:
# a working folder below /tmp would be another one, or missing. So it starts without.
WITHOUT = "TMPDIR"


def place(guest: Guest) -> str:
    """Give the first empty folder. Raises UsageError when there is none."""
    for folder in PLACES:
        entry = guest.root.find(folder)
        if entry is not None and entry.kind == "folder" and not guest.root.names(folder):
            return entry.path
    raise UsageError.of("charliecloud-no-folder", name=guest.label.name, folder=PLACES[0])


def rows(plan: GraftPlan, context: EngineContext) -> tuple[EnvRow, ...]:
    """Set USER where a batch system does not: ch-run does not start without it."""
    del plan
    user = () if dict(context.environment).get("USER") else (_user(),)
    alone = () if context.ranks_per_node > 1 else apart(context)
    return (*user, *kept(context, "CH_IMAGE_STORAGE"), *as_outside(context, WITHOUT), *alone)


def _user() -> EnvRow:
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    return EnvRow("USER", name, Scope.LAUNCHER, "engine")


def own_binds(context: EngineContext) -> tuple[Bind, ...]:
    environment = {n: v for n, v in context.environment if n != WITHOUT}
    return default_folders("charliecloud", environment, {})


def shares(plan: GraftPlan, context: EngineContext) -> str:
    del plan
    if context.ranks_per_node > 1:
        return "one container for the ranks of a node: single-copy shared memory (CMA) works"
    if context.ranks_per_node == 1:
        return "a container for the one rank of a node"
    return f"how many ranks share a node is not known, so {APART}"


def options(
    plan: GraftPlan, context: EngineContext, binds: Sequence[Bind]
) -> tuple[OptionGroup, ...]:
    """Make the words for these binds. Raises UsageError for a required bind whose target the image
    lacks, and for paths and values that the options cannot contain."""
    join = context.ranks_per_node
    gone = (row.name for row in plan.environment if row.value is None)
    return (
        OptionGroup((ENV, "-u", WITHOUT, context.program)),
        *((OptionGroup((f"--join-ct={join}",)),) if join > 1 else ()),
        *_joined(context.parent),
        *_bound(plan, context, binds),
        OptionGroup((f"--unset-env=!({_either((*plan.passed, *OWNER))})",)),
        OptionGroup((f"--unset-env=@({_either(gone)})",)),
        OptionGroup(("--env-no-expand",)),
        *(OptionGroup((f"--set-env={_value(*pair)}",)) for pair in given(plan, context).items()),
        OptionGroup(plan.options),
        OptionGroup((f"--cd={context.cwd}", plan.guest.source, "--")),
    )


def _joined(parent: str) -> Iterator[OptionGroup]:
    """Join the container of a process of this node: what it spawns shares its user namespace then.
    In another one MPICH 5.0.2 fails to copy from it (process_vm_readv, errno 1)."""
    if parent:
        yield OptionGroup((f"--join-pid={parent}",), f"/proc/{parent}/ns/user")


def _either(patterns: Iterable[str]) -> str:
    """Make one extended pattern of fnmatch(3) that matches any of these."""
    return "|".join(plain("Charliecloud", pattern, "|()!@+\\") for pattern in patterns)


def _value(name: str, value: str) -> str:
    plain("Charliecloud", value, "\n")
    if value[:1] == value[-1:] == "'":
        plain("Charliecloud", value, "'")  # it strips a pair of them
    return f"{name}={value}"


def _bound(plan: GraftPlan, context: EngineContext, binds: Sequence[Bind]) -> Iterator[OptionGroup]:
    if not Path(plan.guest.source).is_dir():
        raise UsageError.of("guest-not-folder-charliecloud", source=plan.guest.source)
    root = open_root(Path(plan.guest.source))
    if lacking := next((own for own in BOUND if root.find(own) is None), ""):
        raise _no_place(plan, lacking, f"make it in the image: mkdir {plan.guest.source}{lacking}")
    targets = [PurePosixPath(b.target) for b in binds]
    for bind in binds:
        pure = PurePosixPath(bind.target)
        if bind.source == bind.target and any(pure.is_relative_to(own) for own in BOUND):
            continue
        target, exists = inside(root, bind.target)
        if not exists and bind.target == context.cwd and _at_home(context) and root.find("/home"):
            yield OptionGroup(("--home",))
            continue
        nested = any(pure.is_relative_to(t) for t in targets if t != pure)
        if exists or nested:
            paths = (plain("Charliecloud", path, ":") for path in (bind.source, target))
            yield OptionGroup((f"--bind={':'.join(paths)}",), "" if bind.required else bind.source)
        elif bind.required and pure == PurePosixPath(dict(context.environment).get(WITHOUT, "")):
            what = f"{bind.target}, which TMPDIR names"
            raise _no_place(plan, what, "set TMPDIR=/tmp, make that folder in the image")
        elif bind.required:
            raise _no_place(plan, bind.target, "make it in the image, start from below /tmp")


def _no_place(plan: GraftPlan, target: str, fix: str) -> UsageError:
    return UsageError.of("charliecloud-no-target", name=plan.guest.name, target=target, fix=fix)


def _at_home(context: EngineContext) -> bool:
    """Return whether the working folder is below /home/USER, the only mount point that ch-run
    creates."""
    own = dict(context.environment)
    home = f"/home/{own.get('USER', '')}"
    return own.get("HOME") == home and PurePosixPath(context.cwd).is_relative_to(home)
