"""Start guests with Apptainer or SingularityCE, from a folder or a SIF. Both create missing mount
points.

They pass on the whole environment except what the image sets. --cleanenv is not used, because it
would remove the launcher's variables too; variables that ranks must not get are removed before the
engine starts. Binds use --mount, because --bind cannot escape a colon or a comma (seen with 1.4.5).
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mpigraft.core import file_dependencies
from mpigraft.core.env import ENV
from mpigraft.core.model import Bind, BindKind, EngineContext, EnvRow, GraftPlan, GuestKind
from mpigraft.graft.engines.mounts import (
    OWNER,
    anywhere,
    apart,
    as_outside,
    default_folders,
    dropped,
    kept,
)
from mpigraft.graft.engines.parts import OptionGroup, fields
from mpigraft.knowledge import version_numbers

KINDS: tuple[GuestKind, ...] = (GuestKind.FOLDER, GuestKind.SIF)
PROGRAMS: tuple[str, ...] = ("apptainer", "singularity")
STAYS = True  # it passes signals on, also those that the program got with its group
KEEPS_FILES = True
place = anywhere  # a missing mount point is made in a layer over the image
# The engine itself needs these; the container gets its own values.
NEEDED = (*OWNER, "PATH", "TMPDIR", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
BIND_VARIABLES = ("BIND", "BINDPATH")
SETTING = re.compile(r"^[ \t]*([a-z][a-z -]*?)[ \t]*=[ \t]*(\S+)", re.MULTILINE)
SETTINGS = ("CONFIGDIR", "CACHEDIR", "TMPDIR")


def rows(plan: GraftPlan, context: EngineContext) -> tuple[EnvRow, ...]:
    del plan
    own = kept(context, *(f"{p}_{s}" for p in ("APPTAINER", "SINGULARITY") for s in SETTINGS))
    rows = (*own, *as_outside(context, "HOME"))  # Apptainer sets the one of /etc/passwd
    return rows if context.root or _shares(context) else (*rows, *apart(context))


def own_binds(context: EngineContext) -> tuple[Bind, ...]:
    """List what its configuration file and the user's APPTAINER_BIND bind, which is often a site's
    /scratch. Sources: apptainer.conf, `bind path`; apptainer-exec(1), --bind."""
    own = dict(context.environment)
    settings = _settings(context.program, own)
    specs = [own.get(f"{p}_{s}", "") for p in ("APPTAINER", "SINGULARITY") for s in BIND_VARIABLES]
    words = [word for spec in specs for word in spec.split(",")]
    words = [*(value for name, value in settings if name == "bind path"), *words]
    pairs = [(source, target or source) for source, target in map(_sides, words) if source]
    asked = [Bind(s, t, BindKind.FOLDER) for s, t in pairs if s[0] == t[0] == "/"]
    return (*default_folders("apptainer", own, dict(settings)), *asked)


def configurations(program: str, environment: Mapping[str, str]) -> tuple[Path, ...]:
    """List where this program may have its configuration file: where a user's variable says
    (apptainer(1), --config), else below its prefix, or in /etc."""
    named = [environment.get(f"{p}_CONFIG_FILE", "") for p in ("APPTAINER", "SINGULARITY")]
    if any(named):
        return (Path(next(filter(None, named))),)
    prefix = Path(program).resolve().parent.parent
    names = ("apptainer/apptainer.conf", "singularity/singularity.conf")
    return tuple(etc / name for etc in (prefix / "etc", Path("/etc")) for name in names)


def _settings(program: str, environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Read (name, value) from the configuration file; several may have one name."""
    for path in configurations(program, environment):
        file_dependencies.file(path)
        with contextlib.suppress(OSError):
            return SETTING.findall(path.read_text(encoding="utf-8", errors="replace"))
    return []


def _sides(word: str) -> tuple[str, str]:
    source, _, rest = word.strip().partition(":")
    return source, rest.partition(":")[0]


def shares(plan: GraftPlan, context: EngineContext) -> str:
    del plan
    if context.root:
        return "no user namespaces: single-copy shared memory (CMA) works"
    if _shares(context):
        return "one container for the ranks of a node: single-copy shared memory (CMA) works"
    if context.ranks_per_node == 1:
        return "a container for the one rank of a node"
    return (
        "each rank has a container of its own: unless the engine is setuid, single-copy shared "
        "memory (CMA) is lost; Apptainer 1.3 and later keep it (--sharens)"
    )


def _shares(context: EngineContext) -> bool:
    """Return whether the ranks of a node share one container (--sharens, Apptainer 1.3 and later).

    SingularityCE and Singularity 2 and 3 lack the option, and root does not need it. All ranks must
    join before the first ends: 1.4.5 fails the late ones. MPI_Init makes sure of that.
    """
    new = _is_apptainer(context) and version_numbers(context.version) >= (1, 3)
    return new and context.ranks_per_node != 1 and not context.root


def _is_apptainer(context: EngineContext) -> bool:
    return not context.version.endswith("-ce") and version_numbers(context.version) < (2,)


def options(
    plan: GraftPlan, context: EngineContext, binds: Sequence[Bind]
) -> tuple[OptionGroup, ...]:
    """Make the words for these binds. Raises UsageError for a path that cannot be written."""
    drops = [("-u", name) for name in dropped(plan, context) if name not in NEEDED]
    # --cwd came with Apptainer 1.2 and SingularityCE 4; --pwd is its older name.
    new = version_numbers(context.version) >= ((1, 2) if _is_apptainer(context) else (4,))
    return (
        *((OptionGroup((ENV, *(word for drop in drops for word in drop))),) if drops else ()),
        OptionGroup((context.program, "--quiet", "exec", "--no-mount", "home,cwd")),
        *((OptionGroup(("--sharens",)),) if _shares(context) else ()),
        *_bound(binds),
        OptionGroup(plan.options),
        OptionGroup(("--cwd" if new else "--pwd", context.cwd)),
        OptionGroup((plan.guest.source,)),
    )


def _bound(binds: Sequence[Bind]) -> Iterator[OptionGroup]:
    for bind in binds:
        mode = () if bind.writable else ("ro",)
        mount = fields("type=bind", f"source={bind.source}", f"destination={bind.target}", *mode)
        yield OptionGroup(("--mount", mount), "" if bind.required else bind.source)
