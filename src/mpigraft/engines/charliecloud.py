"""Charliecloud: a folder. It makes no mount points in a read-only image, and all binds are
writable: the graft folder's copies may be changed by a rank, nothing else of the host's can.

So the graft appears in a folder that the image has and leaves empty. Newer versions make mount
points under an overlay (--write-fake), which needs kernels that allow it to users; not used.
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mpigraft.engines.mounts import APART, OWNER, TMP, apart, given, inside, kept, mounts, present
from mpigraft.engines.parts import Part, flat, plain
from mpigraft.errors import UsageError
from mpigraft.model import Bind, BindKind, EnvRow, GraftPlan, GuestKind, Scope, Seat
from mpigraft.root import open_root

if TYPE_CHECKING:
    from mpigraft.guest import Guest

KINDS: tuple[GuestKind, ...] = (GuestKind.FOLDER,)
PROGRAMS: tuple[str, ...] = ("ch-run",)
STAYS = False
KEEPS_FILES = True
# Where nothing of a distribution's lies, the likeliest first.
PLACES = ("/.mpigraft", "/mnt/9", "/mnt", "/media", "/srv", "/opt")
BOUND = ("/dev", "/proc", "/sys", TMP)  # by itself, always


def place(guest: Guest) -> str:
    """The first empty folder. Raises UsageError when there is none."""
    for folder in PLACES:
        seen = guest.root.find(folder)
        if seen is not None and seen.kind == "folder" and not guest.root.names(folder):
            return seen.path
    raise UsageError(
        f"{guest.label.name} has no empty folder in which the graft could appear",
        why="Charliecloud makes no mount points in an image that it does not write to",
        mend=f"make an empty folder {PLACES[0]} in the image, or choose another with --engine",
    )


def words(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    return flat(options(plan, seat, present(mounts(plan, seat))))


def rows(plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
    """ch-run refuses to start without USER, which some batch systems do not set."""
    del plan
    user = () if dict(seat.environment).get("USER") else (_user(),)
    alone = () if seat.ranks_per_node > 1 else apart(seat)
    return (*user, *kept(seat, "CH_IMAGE_STORAGE"), *alone)


def _user() -> EnvRow:
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    return EnvRow("USER", name, Scope.LAUNCHER, "engine")


def own_binds(plan: GraftPlan, seat: Seat) -> tuple[Bind, ...]:
    del plan, seat
    return tuple(Bind(path, path, BindKind.FOLDER) for path in BOUND)


def shares(plan: GraftPlan, seat: Seat) -> str:
    del plan
    if seat.ranks_per_node > 1:
        return "one container for the ranks of a node: single-copy shared memory (CMA) works"
    if seat.ranks_per_node == 1:
        return "a container for the one rank of a node"
    return f"how many ranks share a node is not known, so {APART}"


def options(plan: GraftPlan, seat: Seat, binds: Sequence[Bind]) -> tuple[Part, ...]:
    """The words for these binds. Raises UsageError for a required one whose target the image
    does not have, and for paths and values that the options cannot hold."""
    join = seat.ranks_per_node
    gone = (row.name for row in plan.environment if row.value is None)
    return (
        Part((seat.program,)),
        *((Part((f"--join-ct={join}",)),) if join > 1 else ()),
        *_bound(plan, seat, binds),
        Part((f"--unset-env=!({_either((*plan.passed, *OWNER))})",)),
        Part((f"--unset-env=@({_either(gone)})",)),
        Part(("--env-no-expand",)),
        *(Part((f"--set-env={_value(*pair)}",)) for pair in given(plan).items()),
        Part(plan.options),
        Part((f"--cd={seat.cwd}", plan.guest.source, "--")),
    )


def _either(patterns: Iterable[str]) -> str:
    """What fnmatch's extended patterns take for one of these."""
    return "|".join(plain("Charliecloud", pattern, "|()!@+\\") for pattern in patterns)


def _value(name: str, value: str) -> str:
    plain("Charliecloud", value, "\n")
    if value[:1] == value[-1:] == "'":
        plain("Charliecloud", value, "'")  # it strips a pair of them
    return f"{name}={value}"


def _bound(plan: GraftPlan, seat: Seat, binds: Sequence[Bind]) -> Iterator[Part]:
    if not Path(plan.guest.source).is_dir():
        raise UsageError(
            f"{plan.guest.source} is no folder", why="Charliecloud starts guests from folders"
        )
    root = open_root(Path(plan.guest.source))
    if lacking := next((own for own in BOUND if root.find(own) is None), ""):
        raise _no_place(plan, lacking, f"make it in the image: mkdir {plan.guest.source}{lacking}")
    targets = [PurePosixPath(b.target) for b in binds]
    for bind in binds:
        pure = PurePosixPath(bind.target)
        if bind.source == bind.target and any(pure.is_relative_to(own) for own in BOUND):
            continue
        target, there = inside(root, bind.target)
        if not there and bind.target == seat.cwd and _at_home(seat) and root.find("/home"):
            yield Part(("--home",))
            continue
        nested = any(pure.is_relative_to(t) for t in targets if t != pure)
        if there or nested:
            paths = (plain("Charliecloud", path, ":") for path in (bind.source, target))
            yield Part((f"--bind={':'.join(paths)}",), "" if bind.required else bind.source)
        elif bind.required:
            raise _no_place(plan, bind.target, "make it in the image, start from below /tmp")


def _no_place(plan: GraftPlan, target: str, mend: str) -> UsageError:
    return UsageError(
        f"{plan.guest.name} has no {target}",
        why="Charliecloud makes no mount points in an image that it does not write to",
        mend=f"{mend}, or choose another with --engine",
    )


def _at_home(seat: Seat) -> bool:
    """Whether the working folder is below /home/USER, which ch-run can make: no other is."""
    own = dict(seat.environment)
    home = f"/home/{own.get('USER', '')}"
    return own.get("HOME") == home and PurePosixPath(seat.cwd).is_relative_to(home)
