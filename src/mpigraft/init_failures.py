"""Why ranks did not come back from MPI_Init: which libmpi was loaded, which was due, and what led
the loader there.

The witness notes what is mapped before it calls on, so that a job that fails or hangs inside of
MPI_Init leaves this much behind.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from mpigraft.elf import ElfError
from mpigraft.errors import MpigraftError
from mpigraft.model import Configuration, Finding, GuestKind, Level, MappedLibrary
from mpigraft.records import Entered, read_entered
from mpigraft.resolve import Resolved, Rule, closure
from mpigraft.root import Bound, Root, RootError, open_root
from mpigraft.witness import LIBMPI, due_library, is_library

OTHER, SAME = "init-other-libmpi", "init-unfinished"
CODES = frozenset({OTHER, SAME})


def explain(configuration: Configuration, folder: Path, ranks: int) -> tuple[Finding, ...]:
    """What is to be said of processes that entered MPI_Init and never left it, by their notes in
    `folder`; `ranks` others did leave it. Nothing where none entered, or where the library was
    the one that was due and some rank did come back: then another failure ended them."""
    left = read_entered(folder)
    due = due_library(configuration)
    if not left or isinstance(due, str):
        return ()
    wrong = [one for one in left if (found := _libmpis(one)) and not _right(due, found)]
    if wrong:
        return (_of_other(configuration, due, wrong[0], len(wrong)),)
    if ranks or not any(map(_libmpis, left)):
        return ()
    seen = f"{_processes(len(left))} called MPI_Init and did not come back from it"
    why = (
        f"{_libmpis(left[0])[0].path} was loaded, as was meant: the reason is in what was printed, "
        "or a rank that ended before its MPI_Init kept the others waiting"
    )
    return (Finding(Level.WARNING, SAME, seen, why),)


def _processes(count: int) -> str:
    return f"{count} processes" if count > 1 else "a process"


def _libmpis(one: Entered) -> list[MappedLibrary]:
    return [
        library
        for library in one.libraries
        if LIBMPI.fullmatch(library.path.removesuffix(" (deleted)").rpartition("/")[2])
    ]


def _right(due: MappedLibrary, found: Sequence[MappedLibrary]) -> bool:
    """By inode alone: a file server's disk has another device number on each node."""
    return all(is_library(due, one) or (due.inode and one.inode == due.inode) for one in found)


def _of_other(
    configuration: Configuration, due: MappedLibrary, one: Entered, count: int
) -> Finding:
    loaded = next(found for found in _libmpis(one) if not _right(due, [found]))
    mpi = configuration.mpi.id if configuration.mpi else "the MPI that was chosen"
    row = _led(configuration, one, loaded.path)
    return Finding(
        Level.ERROR,
        OTHER,
        f"{_processes(count)} called MPI_Init of {loaded.path} and did not come back from it; "
        f"{due.path} of {mpi} was meant",
        _why(one, row),
        _mend(configuration, one, row),
    )


def _why(one: Entered, row: Resolved | None) -> str:
    if row is None:
        return (
            f"{one.program} does not name it: it, or an extension module, was opened while the "
            "program ran"
        )
    where = f"{row.rule} {row.where}".rstrip()
    by = f", which {row.needed_by} needs" if str(row.needed_by) != one.program else ""
    return f"the loader of {one.program} takes {row.name}{by} by {where}"


def _mend(configuration: Configuration, one: Entered, row: Resolved | None) -> str:
    plan = configuration.graft
    if row is not None and row.rule is Rule.LD_LIBRARY_PATH:
        return f"take its folder out of LD_LIBRARY_PATH={one.search} where the program is started"
    if plan is None:
        if row is not None and row.rule in (Rule.RPATH, Rule.RUNPATH):
            return f"put the MPI under the program: --image {one.program}"
        return "see what of the program's own opens it: a setting, or a module of its own"
    if one.program not in plan.guest.programs:
        return f"name it, so that the host's MPI is laid over this one: --program {one.program}"
    if not plan.binds and plan.engine == "none":
        return "use an engine that can lay the host's over it: --engine bwrap"
    if not plan.binds:  # none of the guest's libraries is of this MPI's ABI
        fits = shlex.join(["mpigraft", "check", plan.guest.source])
        return f"take an MPI of the ABI that it was built for: {fits} shows which fit"
    return "see what of the program's own opens it: a setting, or a module of its own"


def _led(configuration: Configuration, one: Entered, path: str) -> Resolved | None:
    """The row of the loader's search that leads to a library; None where the program does not
    name it, or nothing can be known of its image any more."""
    environment = {"LD_LIBRARY_PATH": one.search} if one.search else {}
    try:
        root = _root(configuration)
        found = closure(one.program, environment=environment, root=root)
    except (ElfError, RootError, MpigraftError, OSError):
        return None
    for row in found:
        if row.path is not None and _real(root, str(row.path)) == path:
            return row
    return None


def _root(configuration: Configuration) -> Root | None:
    """The guest, with the working folder of this host in it; None: the program is this host's."""
    plan = configuration.graft
    if plan is None or plan.guest.kind is GuestKind.PROGRAM:
        return None
    if plan.guest.kind is GuestKind.PODMAN:
        raise RootError("an image in podman's storage is not unpacked for this")
    here = Path.cwd()
    return Bound(open_root(Path(plan.guest.source)), {str(here): here})


def _real(root: Root | None, path: str) -> str:
    if root is None:
        return str(Path(path).resolve())
    entry = root.find(path)
    return entry.path if entry else path
