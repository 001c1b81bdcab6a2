"""Where a build reads and writes, and the lock that keeps two builds of one prefix apart."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from mpigraft.build.easyconfigs import suffix_of
from mpigraft.build.values import BuildPlan, BuildStep
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.lock import open_lock
from mpigraft.core.write import make_folder

OWNER = "MPIGRAFT_BUILDS"  # in the environment of all that a build starts
WAIT_S = 15.0  # for what a build that was killed has started: the guard ends it in 3
LOOK_S = 0.1
SUITABLE = re.compile(r"[\w./+@,~-]+")  # in paths that configure scripts and make get


@dataclass(frozen=True, slots=True)
class BuildFolders:
    """Where a build reads and writes; everything that it writes is below `prefix`."""

    prefix: Path
    sources: Path | None = None
    common: Path | None = None  # of a system's partitions, which share what is fetched

    @property
    def downloads(self) -> Path:
        return (self.common or self.prefix) / "sources"

    @property
    def modules(self) -> Path:
        return self.prefix / "modules/all"

    @property
    def settings(self) -> Path:
        """Modules of the MPI with the settings of one transport."""
        return self.prefix / "modules/transports"

    @property
    def easyconfigs(self) -> Path:
        return self.prefix / "easyconfigs"

    @property
    def records(self) -> Path:
        return self.prefix / "mpigraft"

    @property
    def temporary(self) -> Path:
        return self.prefix / "tmp"

    def module(self, plan: BuildPlan) -> str:
        """Return the module of the MPI that a plan ends with."""
        return module_name(plan.steps[-1], plan)

    def root(self, plan: BuildPlan) -> Path:
        """Return the prefix of that MPI."""
        return self.prefix / "software" / self.module(plan)


def module_name(step: BuildStep, plan: BuildPlan) -> str:
    """Return the name of a package's module, which is also its folder below `software`."""
    return f"{step.package.name}/{step.version}{suffix_of(plan)}"


def make_folders(folders: BuildFolders, sources: Iterable[Path]) -> None:
    """Make the folders of a build, which also reads `sources`. Raises UsageError for a path that
    scripts of packages would split or expand, MissingError for a prefix that cannot be written."""
    for folder in (folders.prefix, *sources):
        if not SUITABLE.fullmatch(str(folder)):
            raise UsageError.of("prefix-unsuitable", prefix=folder)
    try:
        for folder in (folders.easyconfigs, folders.records, folders.temporary):
            make_folder(folder)
            if not os.access(folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
    except OSError as error:
        raise unwritable(folders, error) from None


def unwritable(folders: BuildFolders, error: OSError) -> MissingError:
    return MissingError.of("prefix-not-writable", prefix=folders.prefix, problem=error.strerror)


@contextlib.contextmanager
def prefix_lock(folders: BuildFolders) -> Iterator[None]:
    """Hold the lock of a prefix: two builds at once would overwrite each other's files. Raises
    MissingError that names who builds there."""
    path = folders.records / "lock"
    try:
        file = open_lock(path)
    except OSError as error:
        raise unwritable(folders, error) from None
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = file.read(200).strip() or "another process"
            raise MissingError.of("build-running", prefix=folders.prefix, holder=holder) from None
        except OSError:
            pass  # a file system without locks: one build at a time is up to the user
        _wait_for_orphans(folders)
        file.seek(0)
        file.truncate()
        file.write(f"process {os.getpid()} on {os.uname().nodename}")
        file.flush()
        yield


def _wait_for_orphans(folders: BuildFolders) -> None:
    """Wait for what a build that was killed has started. Raises MissingError when it lasts."""
    deadline = time.monotonic() + WAIT_S
    while pids := _orphans(folders):
        if time.monotonic() > deadline:
            holder = f"process {pids[0]} of a build that was killed"
            raise MissingError.of("build-running", prefix=folders.prefix, holder=holder)
        time.sleep(LOOK_S)


def _orphans(folders: BuildFolders) -> list[int]:
    """List processes of this host that a build of this prefix started, found by their
    environment."""
    row = f"{OWNER}={folders.prefix}".encode()
    pids = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                if row in Path(entry.path, "environ").read_bytes().split(b"\0"):
                    pids.append(int(entry.name))
    return pids
