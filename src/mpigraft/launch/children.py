"""What ranks start with MPI_Comm_spawn: a script that puts it where its parents are.

A launcher starts children on its own side, outside of the container and without the variables that
ranks alone are given. The preloaded witness makes each of them `/bin/sh SCRIPT PID FOLDER
PROGRAM ARGUMENTS` (native/witness/spawning.h), so that they are started as the ranks were.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mpigraft.core.model import Abi, EngineContext, EnvRow, Scope
from mpigraft.graft import wrapper_script
from mpigraft.launch.launch_request import LaunchRequest

CHILDREN_SCRIPT = "children.sh"
CHILDREN_VARIABLE = "MPIGRAFT_SPAWN"  # in ranks: the path of the script, as their launcher sees it
FOLDER_VARIABLE = "MPIGRAFT_SPAWN_FOLDER"  # in which the launcher was started
LIBRARY_VARIABLE = "MPIGRAFT_SPAWN_LIBRARY"  # in children alone: libmpi of the ranks' ABI
LIBRARIES = {Abi.OMPI: "libmpi.so.40", Abi.MPICH: "libmpi.so.12"}
LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD")


def children_script(request: LaunchRequest) -> Path | None:
    """Give the path of the script of a launch; None where it needs none: our benchmarks start
    nothing, and a launcher in the guest starts children there."""
    if request.launcher_in_guest or request.natives.has_program(request.program):
        return None
    return request.witness / CHILDREN_SCRIPT


def children_rows(request: LaunchRequest) -> tuple[EnvRow, ...]:
    """Return what ranks, and children too, need to know to start children as ranks."""
    if (script := children_script(request)) is None:
        return ()
    values = {CHILDREN_VARIABLE: str(script), FOLDER_VARIABLE: str(request.cwd)}
    return tuple(EnvRow(n, v, Scope.RANK, "witness") for n, v in values.items())


def children_files(
    request: LaunchRequest,
    rows: Iterable[EnvRow],
    context: EngineContext | None,
    environment: Mapping[str, str],
) -> tuple[tuple[Path, str], ...]:
    """Write the script for these rows of a child; `environment` is the launcher's, whose own
    libraries are none for the engine's program. Raises UsageError as `wrapper_script`."""
    script = children_script(request)
    if script is None:
        return ()
    own = [*(row for row in rows if row.scope is Scope.RANK), *children_rows(request)]
    mpi = request.configuration.mpi
    if mpi and (library := LIBRARIES.get(mpi.abi)):
        own += [EnvRow(LIBRARY_VARIABLE, library, Scope.RANK, "witness")]
    if context and context.program:
        given = (name for name in LOADER if name in environment)
        own += [EnvRow(name, None, Scope.DAEMON, "launcher") for name in given]
    return ((script, wrapper_script(request.configuration.graft, context, own)),)
