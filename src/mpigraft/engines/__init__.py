"""Engines that start a guest: each a few functions from a plan to the words before the program.

`words` changes nothing and starts nothing. It looks at this machine only for which optional
sources are there, and bubblewrap's at the image's folders.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

from mpigraft.engines import apptainer, bwrap, charliecloud, mounts, none, podman
from mpigraft.engines.parts import Part, flat
from mpigraft.errors import MissingError, UsageError
from mpigraft.model import Bind, EnvRow, GraftPlan, GuestKind, Seat
from mpigraft.plan import RELAY
from mpigraft.run import run

if TYPE_CHECKING:
    from mpigraft.guest import Guest

VERSION_LIMIT_S = 20.0


class Engine(Protocol):
    """What an engine's module gives."""

    KINDS: tuple[GuestKind, ...]  # what it can start from
    PROGRAMS: tuple[str, ...]  # names of its program; none: it has no program
    STAYS: bool  # a process of it stays between launcher and rank, and gets signals in its place
    KEEPS_FILES: bool  # open files of the launcher's reach ranks: hydra's PMI_FD is one

    def place(self, guest: Guest) -> str:
        """Where the graft folder can appear in this guest. Raises UsageError when nowhere."""

    def words(self, plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
        """The words in front of the program. Raises UsageError for what they cannot express."""

    def rows(self, plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
        """Environment of the engine itself: scopes launcher and daemon."""

    def own_binds(self, plan: GraftPlan, seat: Seat) -> tuple[Bind, ...]:
        """What the engine binds of this machine by itself, beside `mounts`."""

    def shares(self, plan: GraftPlan, seat: Seat) -> str:
        """What the ranks of a node share, and what is lost where they do not."""

    def options(self, plan: GraftPlan, seat: Seat, binds: Sequence[Bind]) -> tuple[Part, ...]:
        """`words` in parts, for these binds: a script decides later which of them are there."""


ENGINES: Mapping[str, Engine] = MappingProxyType(
    {
        "apptainer": apptainer,
        "podman": podman,
        "charliecloud": charliecloud,
        "bwrap": bwrap,
        "none": none,
    }
)
# Of those that are there the first is taken. No engine costs nothing; Apptainer shares one user
# namespace among ranks, bubblewrap starts the quickest.
DEFAULTS: Mapping[GuestKind, tuple[str, ...]] = MappingProxyType(
    {
        GuestKind.PROGRAM: ("none", "bwrap"),
        GuestKind.FOLDER: ("apptainer", "bwrap", "charliecloud", "podman"),
        GuestKind.SIF: ("apptainer",),
        GuestKind.OCI: ("podman",),
        GuestKind.PODMAN: ("podman",),
    }
)


def around(plan: GraftPlan, seat: Seat, program: Sequence[str]) -> tuple[str, ...]:
    """The words of `program` in the guest, the engine's in front. Raises UsageError as `words`."""
    engine = Part(ENGINES[plan.engine].words(plan, seat))
    return flat(parts_around(plan, seat, (engine,), program))


def parts_around(
    plan: GraftPlan, seat: Seat, engine: Sequence[Part], program: Sequence[str]
) -> tuple[Part, ...]:
    """Those words in parts, around an engine's own. Where a process of the engine stays, a relay
    on each side of it brings the launcher's signals to the program; a plan of an older version
    has none."""
    relayed = ENGINES[plan.engine].STAYS and any(copy.name == RELAY for copy in plan.copies)
    if not relayed:
        return (*engine, Part(tuple(program)))
    return (
        Part((f"{seat.graft}/{RELAY}", "--")),
        *engine,
        Part((f"{plan.place}/{RELAY}", "--inside", "--", *program)),
    )


def find(name: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """(path of the engine's program, its version), by the PATH of `environ`.

    The version is the program's own: "1.4.5", with "-ce" behind that of SingularityCE. Empty
    both for `none`. Raises UsageError for a name that no engine has, MissingError when its
    program is not here or does not say its version.
    """
    if name not in ENGINES:
        raise UsageError(f"no engine is called {name!r}", mend=f"one of {', '.join(ENGINES)}")
    programs = ENGINES[name].PROGRAMS
    if not programs:
        return "", ""
    for program in programs:
        if path := shutil.which(program, path=environ.get("PATH", "")):
            return path, _version(path, environ)
    raise MissingError(
        f"{name} is not here: no {' and no '.join(programs)} in PATH",
        mend="load its module or install it, or choose another with --engine",
    )


def same_inside(plan: GraftPlan, seat: Seat) -> Callable[[str], bool]:
    """Whether ranks find at a path of this machine the very file or folder that is there here."""
    own = ENGINES[plan.engine].own_binds(plan, seat)
    binds = (*mounts.present(own), *mounts.present(mounts.mounts(plan, seat)))
    return lambda path: mounts.same_inside(path, binds, seat.cwd)


def choose(kind: GuestKind, environ: Mapping[str, str]) -> str:
    """The engine for guests of a kind, where none was named. Raises MissingError."""
    for name in DEFAULTS[kind]:
        programs = ENGINES[name].PROGRAMS
        if not programs or any(shutil.which(p, path=environ.get("PATH", "")) for p in programs):
            return name
    raise MissingError(
        f"nothing here starts a guest that is a {kind}",
        mend=f"install or load one of {', '.join(DEFAULTS[kind])}",
    )


def _version(path: str, environ: Mapping[str, str]) -> str:
    # ch-run says nothing at all where USER is not set.
    said = run([path, "--version"], env={"USER": "", **environ}, limit_s=VERSION_LIMIT_S)
    text = said.text()
    match = re.search(r"\d+(?:\.\d+)+", text)
    if not said.ok or not match:
        raise MissingError(f"{path} does not say its version", why=text.strip()[:200])
    return match.group() + ("-ce" if "singularity-ce" in text else "")
