"""Engines that start a guest: each makes the words before the program from a plan.

This changes nothing and starts nothing. It reads this machine only to test which optional sources
of binds exist; bubblewrap's module also reads the image's folders.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.messages import Lines
from mpigraft.core.model import Bind, EngineContext, EnvRow, GraftPlan, GuestKind
from mpigraft.core.process import run_command
from mpigraft.graft.engines import apptainer, bwrap, charliecloud, mounts, none, podman
from mpigraft.graft.engines.parts import OptionGroup, flat
from mpigraft.graft.injection.plan import RELAY

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest

VERSION_LIMIT_S = 20.0


class Engine(Protocol):
    """The interface of an engine's module."""

    KINDS: tuple[GuestKind, ...]  # what it can start from
    PROGRAMS: tuple[str, ...]  # names of its program; none: it has no program
    STAYS: bool  # its process stays between launcher and rank, and gets the signals for the rank
    KEEPS_FILES: bool  # ranks inherit the launcher's open files: hydra's PMI_FD is one

    def place(self, guest: Guest) -> str:
        """Give the path of the graft folder in this guest. Raises UsageError without one."""

    def rows(self, plan: GraftPlan, context: EngineContext) -> tuple[EnvRow, ...]:
        """Make the environment of the engine itself: scopes launcher and daemon."""

    def own_binds(self, context: EngineContext) -> tuple[Bind, ...]:
        """List what the engine binds of this machine by itself, besides `mounts`."""

    def shares(self, plan: GraftPlan, context: EngineContext) -> str:
        """Say what the ranks of a node share, and what is lost where they share nothing."""

    def options(
        self, plan: GraftPlan, context: EngineContext, binds: Sequence[Bind]
    ) -> tuple[OptionGroup, ...]:
        """Make the words before the program, in groups, for these binds: a script tests later
        which sources exist. Raises UsageError for what they cannot express."""


ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        "apptainer": apptainer,
        "podman": podman,
        "charliecloud": charliecloud,
        "bwrap": bwrap,
        "none": none,
    }
)
# The first in PATH is the default. `none` has no cost; Apptainer shares one user namespace among
# ranks; bubblewrap starts fastest.
DEFAULT_ENGINES: Mapping[GuestKind, tuple[str, ...]] = MappingProxyType(
    {
        GuestKind.PROGRAM: ("none", "bwrap"),
        GuestKind.FOLDER: ("apptainer", "bwrap", "charliecloud", "podman"),
        GuestKind.SIF: ("apptainer",),
        GuestKind.OCI: ("podman",),
        GuestKind.PODMAN: ("podman",),
        GuestKind.STACK: ("none",),
    }
)


def engine_words(plan: GraftPlan, context: EngineContext) -> tuple[str, ...]:
    """Make the words before the program, for the binds whose sources exist on this machine. Raises
    UsageError for what the engine cannot express."""
    engine = ENGINES[plan.engine]
    binds = mounts.present(mounts.mounts(plan, context)) if engine.PROGRAMS else ()
    return flat(engine.options(plan, context, binds))


def wrap_program(
    plan: GraftPlan, context: EngineContext, program: Sequence[str]
) -> tuple[str, ...]:
    """Put the engine's words before those of `program`. Raises UsageError as `engine_words`."""
    engine = OptionGroup(engine_words(plan, context))
    return flat(parts_around(plan, context, (engine,), program))


def parts_around(
    plan: GraftPlan, context: EngineContext, engine: Sequence[OptionGroup], program: Sequence[str]
) -> tuple[OptionGroup, ...]:
    """Put the engine's words and the relays around a program. Where a process of the engine stays,
    a relay on each side of it passes the launcher's signals to the program; a plan of an older
    version has none."""
    relayed = ENGINES[plan.engine].STAYS and any(copy.name == RELAY for copy in plan.copies)
    if not relayed:
        return (*engine, OptionGroup(tuple(program)))
    return (
        OptionGroup((f"{context.graft}/{RELAY}", "--")),
        *engine,
        OptionGroup((f"{plan.place}/{RELAY}", "--inside", "--", *program)),
    )


def find_engine(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Give (path of the engine's program, its version), by the PATH of `environ`.

    The version is the program's own: "1.4.5", with "-ce" appended for SingularityCE. Both are empty
    for `none`. Raises UsageError for an unknown name, MissingError when the program is missing or
    prints no version.
    """
    programs = engine_named(name).PROGRAMS
    if not programs:
        return "", ""
    for program in programs:
        if path := shutil.which(program, path=environ.get("PATH", "")):
            return path, _version(path, environ)
    raise MissingError.of("engine-missing", name=name, programs=" and no ".join(programs))


def same_paths_inside(plan: GraftPlan, context: EngineContext) -> Callable[[str], bool]:
    """Make a test of paths: whether ranks find this machine's own file or folder there."""
    binds = visible_binds(plan, context)
    return lambda path: mounts.same_inside(path, binds, context.cwd)


def visible_binds(plan: GraftPlan, context: EngineContext) -> tuple[Bind, ...]:
    """List all that ranks see of this machine, and what the engine puts over the guest's own
    folders: the plan's binds, the user's and the engine's. Raises UsageError as `engine_words`."""
    own = () if plan.guest.kind.on_host else ENGINES[plan.engine].own_binds(context)
    return mounts.visible(mounts.present(own), mounts.present(mounts.mounts(plan, context)))


def visible_folders(
    kind: GuestKind,
    environ: Mapping[str, str],
    cwd: str,
    engine: str = "",
    extra: Sequence[Bind] = (),
) -> dict[str, Path]:
    """Map paths inside a guest of this kind to the folders of this machine that ranks see there,
    before a plan is made: of a job that starts in `cwd`, with `extra` binds of the user. `engine`:
    as for `select_engine`. Without one that can start such a guest these are the folders that
    every engine shows.
    """
    if kind.on_host:
        return {}
    try:
        engine = select_engine(kind, environ, engine)
    except (MissingError, UsageError):
        engine = ""
    programs = ENGINES[engine].PROGRAMS if engine in ENGINES else ()
    paths = (shutil.which(name, path=environ.get("PATH", "")) for name in programs)
    context = EngineContext(
        program=next(filter(None, paths), ""),
        version="",
        root=os.geteuid() == 0,
        cwd=cwd,
        ranks_per_node=1,
        graft="",
        extra=tuple(extra),
        environment=tuple(environ.items()),
    )
    own = ENGINES[engine].own_binds(context) if context.program else ()
    binds = mounts.visible(mounts.present(own), mounts.of_job(context))
    return {bind.target: Path(bind.source) for bind in binds if bind.source}


def select_engine(kind: GuestKind, environ: Mapping[str, str], name: str = "") -> str:
    """Select the engine for guests of a kind: the named one, else the first that is in PATH.

    Raises UsageError for a name that no engine has, or an engine that cannot start such a guest;
    MissingError when no engine is in PATH.
    """
    if name:
        if kind not in engine_named(name).KINDS:
            able = [other for other, engine in ENGINES.items() if kind in engine.KINDS]
            raise UsageError.of(
                "engine-cannot-start", name=name, kind=kind, engines=", ".join(able)
            )
        return name
    for default in DEFAULT_ENGINES[kind]:
        programs = ENGINES[default].PROGRAMS
        if not programs or any(shutil.which(p, path=environ.get("PATH", "")) for p in programs):
            return default
    raise MissingError.of("no-engine", kind=kind, engines=", ".join(DEFAULT_ENGINES[kind]))


def engine_named(name: str) -> Engine:
    """Return the engine of that name. Raises UsageError for an unknown one."""
    if name not in ENGINES:
        raise UsageError.unknown("word-unknown", name, ENGINES, what="engine")
    return ENGINES[name]


def _version(path: str, environ: Mapping[str, str]) -> str:
    # ch-run prints nothing where USER is not set.
    output = run_command([path, "--version"], env={"USER": "", **environ}, limit_s=VERSION_LIMIT_S)
    text = output.text()
    match = re.search(r"\d+(?:\.\d+)+", text)
    if not output.ok or not match:
        raise MissingError.of("engine-no-version", path=path, output=Lines(text.strip()[:200]))
    return match.group() + ("-ce" if "singularity-ce" in text else "")
