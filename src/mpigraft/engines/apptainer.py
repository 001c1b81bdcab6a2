"""Apptainer and SingularityCE: a folder or a SIF. They make missing mount points themselves.

Everything of the environment but what the image sets is handed on, since --cleanenv would take
the launcher's variables too; what ranks may not get is dropped in front of the engine. Binds are
--mount, not --bind: the latter has no way to write a colon or a comma (seen with 1.4.5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mpigraft.engines.mounts import OWNER, apart, dropped, kept, mounts, present
from mpigraft.engines.parts import Part, fields, flat
from mpigraft.env import ENV
from mpigraft.knowledge.table import version
from mpigraft.model import Bind, BindKind, EnvRow, GraftPlan, GuestKind, Seat

if TYPE_CHECKING:
    from mpigraft.guest import Guest

KINDS: tuple[GuestKind, ...] = (GuestKind.FOLDER, GuestKind.SIF)
PROGRAMS: tuple[str, ...] = ("apptainer", "singularity")
STAYS = True  # it passes signals on, also those that the program got with its group
KEEPS_FILES = True
PLACE = "/.mpigraft"
# The engine's own needs, which the container gets its own values of.
NEEDED = (*OWNER, "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
BIND_VARIABLES = ("BIND", "BINDPATH")
BIND_PATH = re.compile(r"^[ \t]*bind path[ \t]*=[ \t]*(\S+)", re.MULTILINE)
SETTINGS = ("CONFIGDIR", "CACHEDIR", "TMPDIR")


def place(guest: Guest) -> str:
    """Anywhere: a missing mount point is made in a layer over the image."""
    del guest
    return PLACE


def words(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    return flat(options(plan, seat, present(mounts(plan, seat))))


def rows(plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
    del plan
    own = kept(seat, *(f"{p}_{s}" for p in ("APPTAINER", "SINGULARITY") for s in SETTINGS))
    return own if seat.root or _shares(seat) else (*own, *apart(seat))


def own_binds(plan: GraftPlan, seat: Seat) -> tuple[Bind, ...]:
    """What its configuration file binds, and the user's APPTAINER_BIND: /scratch of a site is
    mostly there. Sources: apptainer.conf, `bind path`; apptainer-exec(1), --bind."""
    del plan
    own = dict(seat.environment)
    specs = [own.get(f"{p}_{s}", "") for p in ("APPTAINER", "SINGULARITY") for s in BIND_VARIABLES]
    words = [word for spec in specs for word in spec.split(",")]
    words += [word for path in configurations(seat.program) for word in _bind_paths(path)]
    pairs = [(source, target or source) for source, target in map(_sides, words) if source]
    return tuple(Bind(s, t, BindKind.FOLDER) for s, t in pairs if s[0] == t[0] == "/")


def configurations(program: str) -> tuple[Path, ...]:
    """Where this program may have its configuration file: below its prefix, or in /etc."""
    prefix = Path(program).resolve().parent.parent
    names = ("apptainer/apptainer.conf", "singularity/singularity.conf")
    return tuple(etc / name for etc in (prefix / "etc", Path("/etc")) for name in names)


def _bind_paths(path: Path) -> list[str]:
    try:
        return BIND_PATH.findall(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return []


def _sides(word: str) -> tuple[str, str]:
    source, _, rest = word.strip().partition(":")
    return source, rest.partition(":")[0]


def shares(plan: GraftPlan, seat: Seat) -> str:
    del plan
    if seat.root:
        return "no user namespaces: single-copy shared memory (CMA) works"
    if _shares(seat):
        return "one container for the ranks of a node: single-copy shared memory (CMA) works"
    if seat.ranks_per_node == 1:
        return "a container for the one rank of a node"
    return (
        "each rank has a container of its own: unless the engine is setuid, single-copy shared "
        "memory (CMA) is lost; Apptainer 1.3 and later keep it (--sharens)"
    )


def _shares(seat: Seat) -> bool:
    """--sharens came with Apptainer 1.3; SingularityCE and Singularity 2 and 3 do not have it.

    Root needs none. Ranks have to live until all have joined, as MPI_Init sees to: 1.4.5 fails
    the late ones where the first has ended.
    """
    new = _is_apptainer(seat) and version(seat.version) >= (1, 3)
    return new and seat.ranks_per_node != 1 and not seat.root


def _is_apptainer(seat: Seat) -> bool:
    return not seat.version.endswith("-ce") and version(seat.version) < (2,)


def options(plan: GraftPlan, seat: Seat, binds: Sequence[Bind]) -> tuple[Part, ...]:
    """The words for these binds. Raises UsageError for a path that cannot be written."""
    drops = [("-u", name) for name in dropped(plan, seat) if name not in NEEDED]
    # --cwd came with Apptainer 1.2 and SingularityCE 4; --pwd is its older name.
    new = version(seat.version) >= ((1, 2) if _is_apptainer(seat) else (4,))
    return (
        *((Part((ENV, *(word for drop in drops for word in drop))),) if drops else ()),
        Part((seat.program, "--quiet", "exec", "--no-mount", "home,cwd")),
        *((Part(("--sharens",)),) if _shares(seat) else ()),
        *_bound(binds),
        Part(plan.options),
        Part(("--cwd" if new else "--pwd", seat.cwd)),
        Part((plan.guest.source,)),
    )


def _bound(binds: Sequence[Bind]) -> Iterator[Part]:
    for bind in binds:
        mode = () if bind.writable else ("ro",)
        mount = fields("type=bind", f"source={bind.source}", f"destination={bind.target}", *mode)
        yield Part(("--mount", mount), "" if bind.required else bind.source)
