"""Check an MPI of this machine for a program of it that starts in its place, by the parts of the
check, so that `run` and `check` give one answer for a pair.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mpigraft.binary import FolderRoot
from mpigraft.core.model import Fit, GuestKind, GuestLabel, Machine, MpiInstall
from mpigraft.graft.abi.libraries import read_abi
from mpigraft.graft.assemble import reading_errors
from mpigraft.graft.check.check_input import CheckInput
from mpigraft.graft.check.fit import check_pair
from mpigraft.graft.guest.command import GuestCommand
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.guest.own_mpi import GuestMpi, find_own_mpi
from mpigraft.graft.injection.in_place import InstalledFiles, contents_in_place, load_in_place
from mpigraft.graft.injection.simulation import Loaded, compare_loading
from mpigraft.knowledge import binding_of, is_libmpi

LOADER = ("LD_LIBRARY_PATH", "LD_PRELOAD")


@dataclass(frozen=True)
class HostProgram:
    """A program of this machine, or a script with the extension modules that it opens, under the
    loader. `environment` is that in which it finds its own MPI, if any. `scripted`: a script of a
    shell starts it, and may change that."""

    guest: Guest
    environment: Mapping[str, str]
    machine: Machine
    scripted: bool = False

    @classmethod
    def of_command(
        cls, program: Path, command: GuestCommand, environment: Mapping[str, str], machine: Machine
    ) -> HostProgram:
        """Make that of a command. Python's extension modules represent a script."""
        named = command.program or str(program)
        label = GuestLabel(
            name=program.name,
            kind=GuestKind.PROGRAM,
            source=str(program),
            digest="",
            architecture=machine.cpu.architecture,
            os=machine.os,
            glibc="",
            programs=(named,),
        )
        modules = (*command.certain, *command.possible)
        guest = Guest(label, FolderRoot(Path("/")), modules, command.possible)
        scripted = not command.interpreted and (bool(command.sources) or not _is_elf(program))
        return cls(guest, environment, machine, scripted)

    @cached_property
    def alone(self) -> tuple[Loaded, ...]:
        """What the loader maps for its files by themselves; nothing for what is no ELF file."""
        return load_in_place((*self.guest.label.programs, *self.guest.libraries), self.environment)

    @cached_property
    def needs_mpi(self) -> bool:
        """Whether it needs an MPI library by name. Else it opens one later, or another program
        does, and what that needs is not known."""
        rows = (r for one in self.alone for r in one.objects)
        return any(binding_of(r.name) or binding_of(r.soname) for r in rows)

    @cached_property
    def abi(self) -> str:
        """The ABI of the MPI library that it needs by name; empty: none, or several."""
        rows = (binding_of(r.name) for one in self.alone for r in one.objects)
        abis = {binding.abi for binding in rows if binding}
        return abis.pop() if len(abis) == 1 else ""

    @cached_property
    def own(self) -> GuestMpi | None:
        """The MPI that it loads by itself."""
        rows = (r for one in self.alone for r in one.objects if r.path and is_libmpi(r.soname))
        if (libmpi := next(rows, None)) is None:
            return None
        real = os.path.realpath(str(libmpi.path))
        for mpi in self.machine.mpis:
            if mpi.libmpi and os.path.realpath(mpi.libmpi) == real and mpi.usable:
                launcher = str(mpi.launcher or "")
                return GuestMpi(mpi.family, mpi.version, mpi.soname, real, launcher, ())
        search = {n: v for n, v in self.environment.items() if n in LOADER}
        subjects = (*self.guest.label.programs, *self.guest.libraries)
        return find_own_mpi(self.guest.root, subjects, search)

    def load(self, environment: Mapping[str, str]) -> tuple[Loaded, ...]:
        """Simulate the loader for the same files in another environment."""
        return load_in_place([one.program for one in self.alone], environment)

    def check(self, mpi: MpiInstall, loaded: Sequence[Loaded]) -> Fit:
        """Check an MPI, given what `load` gave for its environment. Raises MissingError for an MPI
        that cannot be read, CheckFailed for a program whose loader is not glibc's."""
        abi = read_abi(mpi)
        with reading_errors():
            sides, after = InstalledFiles(abi), {one.program: one for one in loaded}
            programs = [
                compare_loading(one, after[one.program], sides)
                for one in self.alone
                if one.program in after
            ]
            contents = contents_in_place(abi, programs, sides)
            return check_pair(CheckInput(self.guest, abi, contents, self.own, self.machine))


def _is_elf(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(4) == b"\x7fELF"
    except OSError:
        return False
