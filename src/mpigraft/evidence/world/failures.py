"""Why a job failed: ranks did not return from MPI_Init, or a call of MPI_Comm_spawn was refused.

Of the first: which libmpi was loaded, which was intended, and by which rule the loader found it.

The witness notes what is mapped before it calls on, so that a job that fails or hangs inside of
MPI_Init leaves this much behind.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Sequence
from pathlib import Path

from mpigraft.binary import BoundRoot, ElfError, Resolved, Root, RootError, Rule, closure, open_root
from mpigraft.core.errors import MpigraftError
from mpigraft.core.hostlist import fold_hosts
from mpigraft.core.job_memory import is_out_of_memory
from mpigraft.core.model import Configuration, Finding, GuestKind, MappedLibrary
from mpigraft.core.shared_memory import scarce_memory
from mpigraft.evidence.world.mapped import LIBMPI, DueLibrary
from mpigraft.evidence.world.overrides import differing_nodes
from mpigraft.evidence.world.records import Entered, read_entered
from mpigraft.evidence.world.refusals import refused_spawns
from mpigraft.evidence.world.witness import due_library

MOST = 8  # hosts that a finding lists
SIGKILLED = 137
# Exit codes of launchers where SIGKILL ended a rank, as the kernel does that runs out of memory:
# Open MPI's and srun's, MPICH's, Intel's.
KILLED = (SIGKILLED, 9, 255)


def explain_failure(configuration: Configuration, folder: Path, ranks: int) -> tuple[Finding, ...]:
    """Report refused calls of MPI_Comm_spawn, else processes that entered MPI_Init and never left
    it, by their notes in `folder`; `ranks` others did leave it. Nothing where none entered, or
    where the intended library was loaded and some rank did return: then another failure ended
    them."""
    if refused := refused_spawns(folder):
        return refused
    entered = read_entered(folder)
    due = due_library(configuration)
    if not entered or isinstance(due, str):
        return ()
    wrong = [
        process
        for process in entered
        if (loaded := _libmpis(process)) and not _is_due(due, process, loaded)
    ]
    plan = configuration.graft
    if plan is not None and plan.guest.kind is GuestKind.STACK:
        mapped = ((one.host, lib.path) for one in wrong for lib in _libmpis(one))
        if elsewhere := differing_nodes(plan, (row for row in mapped if row[1] != due.path)):
            return tuple(elsewhere)
    if wrong:
        return (_other_libmpi(configuration, due, wrong[0], len(wrong)),)
    again = [process for process in entered if process.again and _libmpis(process)]
    if ranks and again:
        path = _libmpis(again[0])[0].path
        return (Finding.of("init-again", processes=_processes(len(again)), path=path),)
    if ranks or not any(map(_libmpis, entered)):
        return ()
    path = _libmpis(entered[0])[0].path
    unfinished = Finding.of("init-unfinished", processes=_processes(len(entered)), path=path)
    return (unfinished, *full_shared_memory({process.host for process in entered}))


def full_shared_memory(hosts: Collection[str], code: int = 0) -> tuple[Finding, ...]:
    """Report that this host, if it is one of `hosts`, has too little shared memory for MPI, or may
    have had for a job that failed with `code`."""
    own, scarce = os.uname().nodename, scarce_memory(code)
    if scarce is None or own not in hosts:
        return ()
    free, size = scarce
    return (Finding.of("shm-full", host=own, free=free, size=size),)


def used_up_memory(hosts: Collection[str], code: int) -> tuple[Finding, ...]:
    """Report what memory, shared or a job's, has to do with a failure with exit code `code` of
    ranks on `hosts`. Slurm writes of it to streams that are the user's; other nodes' counters
    cannot be read here."""
    findings = full_shared_memory(hosts, code)
    if not ("SLURM_JOB_ID" in os.environ and hosts and code in KILLED):
        return findings
    if (own := os.uname().nodename) in hosts and is_out_of_memory():
        return (*findings, Finding.of("step-memory", node=own))
    if code != SIGKILLED:  # it may be the program's own
        return findings
    names = fold_hosts(sorted(hosts), MOST)
    node = names if len(hosts) == 1 else f"one of {names}"
    return (*findings, Finding.of("rank-killed", node=node))


def _processes(count: int) -> str:
    return f"{count} processes" if count > 1 else "a process"


def _libmpis(process: Entered) -> list[MappedLibrary]:
    return [
        library
        for library in process.libraries
        if LIBMPI.fullmatch(library.path.removesuffix(" (deleted)").rpartition("/")[2])
    ]


def _is_due(due: DueLibrary, process: Entered, loaded: Sequence[MappedLibrary]) -> bool:
    """On other nodes, by inode or path: a file server's disk has another device number on each, and
    a process that is in MPI_Init has not read its files."""
    far = bool(due.inode) and process.host != os.uname().nodename
    return all(
        due.is_mapped(library, "")
        or (far and (library.inode == due.inode or library.path == due.path))
        for library in loaded
    )


def _other_libmpi(
    configuration: Configuration, due: DueLibrary, process: Entered, count: int
) -> Finding:
    loaded = next(library for library in _libmpis(process) if not _is_due(due, process, [library]))
    mpi = configuration.mpi.id if configuration.mpi else "the selected MPI"
    row = _loader_row(configuration, process, loaded.path)
    return Finding.of(
        "init-other-libmpi",
        processes=_processes(count),
        loaded=loaded.path,
        due=due.path,
        mpi=mpi,
        reason=_why(process, row),
        advice=_fix(configuration, process, row),
    )


def _why(process: Entered, row: Resolved | None) -> str:
    if row is None:
        return (
            f"{process.program} does not name it: it, or an extension module, was opened while the "
            "program ran"
        )
    where = f"{row.rule} {row.where}".rstrip()
    by = f", which {row.needed_by} needs" if str(row.needed_by) != process.program else ""
    return f"the loader of {process.program} takes {row.name}{by} by {where}"


def _fix(configuration: Configuration, process: Entered, row: Resolved | None) -> str:
    plan = configuration.graft
    if row is not None and row.rule is Rule.PRELOAD:
        return "take that library out of LD_PRELOAD"
    if row is not None and row.rule is Rule.LD_LIBRARY_PATH:
        return (
            f"take its folder out of LD_LIBRARY_PATH={process.search} where the program is started"
        )
    if plan is None:
        if row is not None and row.rule in (Rule.RPATH, Rule.RUNPATH):
            return f"put the MPI under the program: --image {process.program}"
        return "see what of the program's own opens it: a setting, or a module of its own"
    if plan.guest.kind is GuestKind.STACK:
        stack = shlex.join(["mpigraft", "inject", plan.guest.source, "--verify"])
        return f"see what its overrides hold now: {stack}"
    if process.program not in plan.guest.programs:
        return f"name it, so that the host's MPI is laid over this one: --program {process.program}"
    if not plan.binds and plan.engine == "none":
        return "use an engine that can lay the host's over it: --engine bwrap"
    if not plan.binds:  # none of the guest's libraries is of this MPI's ABI
        fits = shlex.join(["mpigraft", "check", plan.guest.source])
        return f"take an MPI of the ABI that it was built for: {fits} shows which fit"
    return "see what of the program's own opens it: a setting, or a module of its own"


def _loader_row(configuration: Configuration, process: Entered, path: str) -> Resolved | None:
    """Return the row of the loader's search that leads to a library; None where the program does
    not name it, or nothing can be known of its image any more."""
    environment = {"LD_LIBRARY_PATH": process.search} if process.search else {}
    environment |= {n: v for n, v in configuration.variables if n == "LD_PRELOAD"}
    try:
        root = _root(configuration)
        rows = closure(process.program, environment=environment, root=root)
    except (ElfError, RootError, MpigraftError, OSError):
        return None
    for row in rows:
        if row.path is not None and _real(root, str(row.path)) == path:
            return row
    return None


def _root(configuration: Configuration) -> Root | None:
    """Return the guest, with the working folder of this host in it; None: the program is this
    host's."""
    plan = configuration.graft
    if plan is None or plan.guest.kind.on_host:
        return None
    if plan.guest.kind is GuestKind.PODMAN:
        raise RootError("an image in podman's storage is not unpacked for this")
    here = Path.cwd()
    return BoundRoot(open_root(Path(plan.guest.source)), {str(here): here})


def _real(root: Root | None, path: str) -> str:
    if root is None:
        return str(Path(path).resolve())
    entry = root.find(path)
    return entry.path if entry else path
