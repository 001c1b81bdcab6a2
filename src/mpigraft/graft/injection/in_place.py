"""Describe an MPI of this machine under programs of it that start in place: nothing is copied
and nothing bound, and the loader finds the MPI by variables, or by itself.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath, PurePosixPath

from mpigraft.binary import ElfError, Resolved, closure, read_elf
from mpigraft.core.model import MpiAbi, Replace, Role
from mpigraft.graft.injection.contents import GraftContents
from mpigraft.graft.injection.plan import PLACE_ON_HOST
from mpigraft.graft.injection.private_names import PrivateNames
from mpigraft.graft.injection.simulation import Loaded, Sides, SimulatedProgram
from mpigraft.knowledge import binding_of, network_library_of, role_of


def load_in_place(files: Iterable[str], environment: Mapping[str, str]) -> tuple[Loaded, ...]:
    """Simulate this machine's loader for files of it, in a process with this environment. What is
    no ELF file, such as a script, is left out."""
    return tuple(_loaded(files, environment))


def _loaded(files: Iterable[str], environment: Mapping[str, str]) -> Iterator[Loaded]:
    for file in files:
        with contextlib.suppress(ElfError):
            yield Loaded(file, read_elf(file), closure(file, environment=environment))


def contents_in_place(
    abi: MpiAbi,
    programs: Sequence[SimulatedProgram],
    sides: Sides,
    *,
    place: str = PLACE_ON_HOST,
    libmpi: str = "",
    closed: Sequence[tuple[str, str]] = (),
) -> GraftContents:
    """Describe `abi`, or the libfabric or UCX that it describes, at the paths at which programs
    that were simulated find it. `sides` tells which files are its own."""
    part = network_library_of(abi.objects[0].soname)
    rows = {id(one.after): one.after for one in programs}  # many programs share theirs
    files = {name for after in rows.values() for r in after if r.path and sides.grafted(r.path)
             for name in (str(r.path), r.elf.name if r.elf else "")}  # fmt: skip
    return GraftContents(
        replace=Replace.LIBFABRIC if part else Replace.MPI,
        place=place,
        programs=tuple(programs),
        absent=() if part else absent_bindings(abi, (one.before for one in programs)),
        closed=tuple(closed),
        libmpi=libmpi,
        files=frozenset(files),
    )


def absent_bindings(
    abi: MpiAbi, loaded: Iterable[Iterable[Resolved]]
) -> tuple[tuple[str, str], ...]:
    """List (MPI library that a program needs, file that needs it) where the MPI has none of that
    name, nor of another name of the same binding."""
    offered = {o.soname for o in abi.objects}
    bindings = {binding_of(name) for name in offered}
    absent = {
        r.name: str(r.needed_by)
        for one in loaded
        for r in one
        if r.name not in offered and (b := binding_of(r.name)) and b not in bindings
    }
    return tuple(sorted(absent.items()))


class InstalledFiles:
    """The files of an MPI where it is installed."""

    plugin_names: Mapping[str, str] = {}  # what it opens, it opens as ever

    def __init__(self, abi: MpiAbi) -> None:
        self.abi = abi
        own = [o for o in abi.objects if o.role is not Role.LIBC]
        self._files = {os.path.realpath(o.path) for o in own}
        self._folder = os.path.dirname(os.path.realpath(abi.objects[0].path))  # noqa: PTH120
        self.names = PrivateNames(abi.objects, {o.soname: o for o in abi.objects})
        self._known: dict[str, bool] = {}

    def grafted(self, path: PurePath | str) -> bool:
        """Return whether a file is of this install: what its libmpi needs or opens, and other parts
        of an MPI beside that, which a program alone may need (liboshmem)."""
        text = str(path)
        if text not in self._known:
            real = PurePosixPath(os.path.realpath(text))
            beside = str(real.parent) == self._folder and role_of(real.name) is Role.MPI
            self._known[text] = beside or str(real) in self._files
        return self._known[text]
