"""What ranks see of the host, whichever engine starts them, and what none may see."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from mpigraft.errors import UsageError
from mpigraft.model import Bind, BindKind, GraftPlan, GuestKind, Seat

GRAFT = "{graft}"
RANKS = "ranks"
TMP = "/tmp"  # noqa: S108 - where launchers keep their session folders

# Of the host's libraries, and poison to those of another machine: a launcher exports them for its
# own sake (Open MPI's mpirun does OPAL_PREFIX), and an inherited one beats what a guest has.
NEVER = (
    "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_AUDIT", "LD_DEBUG", "LD_BIND_NOW", "GLIBC_TUNABLES",
    "OPAL_PREFIX", "OPAL_LIBDIR", "OPAL_PKGLIBDIR", "OPAL_DATADIR", "PMIX_INSTALL_PREFIX",
    "PRTE_PREFIX", "FI_PROVIDER_PATH", "UCX_MODULE_DIR", "PYTHONHOME", "PYTHONPATH",
)  # fmt: skip


def mounts(plan: GraftPlan, seat: Seat) -> tuple[Bind, ...]:
    """Every bind of a rank, sources filled in, each target once, outer folders before inner ones.

    Where two want one target, files of the graft go before the user's, and the user's before
    devices and folders that are bound in any case. Raises UsageError for a path that is not
    absolute or holds a NUL, and for a working folder that would hide the guest's own files.
    """
    host = plan.guest.kind is GuestKind.PROGRAM  # its root is the host's: all is there already
    wanted = [
        *(() if host else (*_sessions(seat), *_cwd(plan, seat), *plan.devices)),
        *seat.extra,
        Bind(seat.graft, plan.place, BindKind.FOLDER, why="the graft"),
        Bind(f"{seat.graft}/{RANKS}", f"{plan.place}/{RANKS}", BindKind.FOLDER, writable=True),
        *plan.binds,
    ]
    last = {}
    for bind in wanted:
        bound = replace(bind, source=bind.source.replace(GRAFT, seat.graft))
        for path in (bound.source, bound.target):
            if not path.startswith("/") or "\0" in path or ".." in PurePosixPath(path).parts:
                raise UsageError(
                    f"{path!r} cannot be bound into a guest",
                    why="both sides of a bind are absolute paths without '..'",
                )
        last[str(PurePosixPath(bound.target))] = bound
    return tuple(sorted(last.values(), key=lambda b: len(PurePosixPath(b.target).parts)))


def present(binds: Iterable[Bind]) -> tuple[Bind, ...]:
    """Those that are required, and those whose source is on this machine."""
    return tuple(b for b in binds if b.required or Path(b.source).exists())


def _sessions(seat: Seat) -> Iterable[Bind]:
    """Launchers keep sockets and shared memory below TMPDIR, else below /tmp."""
    own = dict(seat.environment).get("TMPDIR", "")
    for folder in dict.fromkeys((TMP, str(PurePosixPath(own)) if own.startswith("/") else TMP)):
        yield Bind(folder, folder, BindKind.FOLDER, writable=True, why="the launcher's session")


def _cwd(plan: GraftPlan, seat: Seat) -> Iterable[Bind]:
    cwd = PurePosixPath(seat.cwd)
    if any(cwd.is_relative_to(b.target) for b in _sessions(seat)) or cwd == PurePosixPath("/"):
        return
    inner = (*(b.target for b in plan.binds), *plan.guest.programs, plan.place)
    if hidden := [path for path in inner if PurePosixPath(path).is_relative_to(cwd)]:
        raise UsageError(
            f"the working folder {seat.cwd} would hide the guest's {hidden[0]}",
            why="ranks see the working folder of the host at its own path",
            mend="start from another folder, or under another one of the guest",
        )
    yield Bind(seat.cwd, seat.cwd, BindKind.FOLDER, writable=True, why="the working folder")


def dropped(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    """Names that an engine which hands its environment on has to drop: NEVER, whatever a pattern
    says, and what this process has and `plan.passed` does not name."""
    own = (name for name, _ in seat.environment if not is_passed(plan, name))
    return tuple(dict.fromkeys((*NEVER, *own)))


def is_passed(plan: GraftPlan, name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in plan.passed)
