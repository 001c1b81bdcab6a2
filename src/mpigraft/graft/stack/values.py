"""The values of a software stack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase as fnmatch
from os.path import normpath
from pathlib import PurePosixPath

from mpigraft.core.model import Family, Finding, GuestKind, GuestLabel, Level


@dataclass(frozen=True, slots=True)
class Slot:
    """An override: folders that programs search before all others, and one symlink can switch.

    Nothing has to be there: a stack is built with overrides that its sites fill or leave empty.
    """

    path: str  # what the symlink is: the folder above `lib` and `lib64`, else the folder itself
    folders: tuple[str, ...]  # as DT_RPATH spells them, in search order
    family: Family | None  # of the MPI that programs need which search it; None for MPI-5's ABI
    programs: int = 0  # that search it
    modules: int = 0  # that these belong to
    holds: str = ""  # what its name says is for it: an ABI, libfabric, ucx; empty: any MPI

    @property
    def names(self) -> tuple[str, ...]:
        """The folders below `path`: lib, lib64; an empty name is `path` itself."""
        return tuple(normpath(folder)[len(self.path) :].lstrip("/") for folder in self.folders)


@dataclass(frozen=True, slots=True)
class StackProgram:
    """A file of a stack that needs MPI: a program, or what a program opens at run time."""

    path: str  # absolute, links of folders resolved
    module: str  # name/version of its installation; empty: unknown
    executable: bool  # False: a library, such as an extension module of Python
    slots: tuple[str, ...]  # paths of the overrides that it searches, in search order
    mpi: tuple[str, ...]  # sonames of MPI that it needs, first its own, then its libraries'
    machine: str  # x86_64, aarch64
    interpreter: str = ""  # PT_INTERP; empty for a library
    runpath: bool = False  # DT_RUNPATH: LD_LIBRARY_PATH is searched before its folders
    opens: bool = False  # it needs no MPI, and opens one by its name


@dataclass(frozen=True, slots=True)
class StackLoader:
    """The dynamic loader of most programs of a stack."""

    path: str  # PT_INTERP
    root: str  # of the compatibility layer that it belongs to; "/" for the host's own


@dataclass(frozen=True, slots=True)
class Stack:
    """A software stack, as far as MPI is concerned."""

    root: str  # as given, made absolute; of a program: the tree that it belongs to
    real: str  # links resolved
    programs: tuple[StackProgram, ...]  # sorted by path
    slots: tuple[Slot, ...]  # in search order
    loader: StackLoader | None  # None: no program has one
    elf_files: int  # that were read
    unread: tuple[str, ...] = ()  # files and folders that may not be read
    only: str = ""  # the one program that was named, if one was

    @property
    def modules(self) -> tuple[str, ...]:
        """The installations that have a program, sorted."""
        return tuple(sorted({program.module for program in self.programs}))

    def needed(self, machine: str) -> dict[str, int]:
        """Count the programs for a machine that need each soname of MPI."""
        count = Counter(name for p in self.programs if p.machine == machine for name in p.mpi)
        return dict(sorted(count.items()))

    def label(
        self, name: str, programs: Sequence[str], machine: str, digest: str = "", glibc: str = ""
    ) -> GuestLabel:
        """Label the stack as a guest whose programs are these. `digest`: of its content, which
        depends on the MPI that is meant."""
        return GuestLabel(
            name=name,
            kind=GuestKind.STACK,
            source=self.root,
            digest=digest,
            architecture=machine,
            os="",
            glibc=glibc,
            programs=tuple(programs),
        )

    def searching(self, slot: Slot) -> tuple[StackProgram, ...]:
        """List the programs that search an override."""
        return tuple(p for p in self.programs if slot.path in p.slots)


# ------------------------------------------------------------------ checks


OTHER = "other-override"  # why a program is kept that has its MPI from another override


class Fate(StrEnum):
    """What an injection makes of a program."""

    FITS = "fits"  # it would load the host's MPI, and nothing else would change
    REFUSED = "refused"  # it would not, or would not start
    ACCEPTED = "accepted"  # the same, and who injected the MPI named it as an exception
    KEPT = "kept"  # the override does not reach it: it stays on the stack's own MPI


@dataclass(frozen=True, slots=True)
class LibraryChange:
    """A library of a program that would be another file with the override."""

    name: str
    before: str
    after: str  # empty: not found any more


@dataclass(frozen=True, slots=True)
class ProgramCheck:
    path: str
    module: str
    fate: Fate
    slot: str  # path of the override from which it would load MPI
    changes: tuple[LibraryChange, ...] = ()
    why: str = ""  # of one that is kept: other-abi, other-machine, runpath, no-override, OTHER


@dataclass(frozen=True, slots=True)
class ModuleCheck:
    """The checks of the programs of one installation, with what was noticed of them."""

    name: str
    programs: tuple[ProgramCheck, ...]
    findings: tuple[Finding, ...]

    @property
    def notable(self) -> bool:
        """Whether something is wrong with it."""
        return bool(self.count(Fate.REFUSED)) or any(f.level == "error" for f in self.findings)

    def count(self, fate: Fate) -> int:
        return sum(program.fate is fate for program in self.programs)


@dataclass(frozen=True, slots=True)
class StackCheck:
    """Whether a host MPI may be injected into a stack."""

    stack: Stack
    mpi: str  # id
    slots: tuple[Slot, ...]  # overrides into which it would go
    glibc: str  # of the stack: 2.37
    modules: tuple[ModuleCheck, ...]
    findings: tuple[Finding, ...]  # of the stack as a whole
    injected: bool = False  # it is there now

    def count(self, fate: Fate) -> int:
        return sum(module.count(fate) for module in self.modules)

    @property
    def ok(self) -> bool:
        bad = any(finding.level is Level.ERROR for finding in self.findings)
        right = self.count(Fate.FITS) + self.count(Fate.ACCEPTED)
        return not bad and right > 0 and self.count(Fate.REFUSED) == 0

    def excepted(self, names: Sequence[str]) -> tuple[ProgramCheck, ...]:
        """Give the refused programs that are named, by module, path or file name, as patterns of a
        shell."""
        return tuple(
            p
            for m in self.modules
            for p in m.programs
            if p.fate is Fate.REFUSED
            and any(
                fnmatch(own, n)
                for own in (p.module, p.path, PurePosixPath(p.path).name)
                for n in names
            )
        )

    def ok_without(self, names: Sequence[str]) -> bool:
        """Return whether all programs fit but those that are named. "*" names all, and takes what
        is wrong with the stack too."""
        accepted = len(self.excepted(names)) == self.count(Fate.REFUSED)
        bad = any(finding.level is Level.ERROR for finding in self.findings)
        return "*" in names or (accepted and not bad and self.count(Fate.FITS) > 0)
