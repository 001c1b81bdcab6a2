"""Small software stacks: folders of programs that the loader could start, and nothing runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from mpigraft.binary import Elf, read_elf
from mpigraft.core.model import Abi, Family, MpiAbi, MpiInstall
from mpigraft.graft import Slot, StackCheck, read_abi
from tests.builders.elf import compiled, program

MPI = "libmpi.so.40"
CALLS = "extern int MPI_Init(void);\nint (*use)(void) = MPI_Init;\n"


def rpath(*folders: Path | str) -> list[str]:
    """Flags of a DT_RPATH, as EasyBuild's wrappers give it."""
    return ["-Wl,--disable-new-dtags", f"-Wl,-rpath,{':'.join(map(str, folders))}"]


def runpath(*folders: Path | str) -> list[str]:
    return ["-Wl,--enable-new-dtags", f"-Wl,-rpath,{':'.join(map(str, folders))}"]


def libmpi(folder: Path, soname: str = MPI) -> Path:
    """A library of that name that has MPI_Init, and so much of MPI alone."""
    return compiled(folder / soname, "int MPI_Init(void) { return 0; }\n", soname=soname)


class StackFiles:
    """A stack in EasyBuild's layout below `root`: an MPI, and programs over overrides."""

    def __init__(self, root: Path, overrides: Sequence[Path | str] = ()) -> None:
        self.root = root
        self.overrides = tuple(map(str, overrides))
        self.mpi = libmpi(root / "software/OpenMPI/4.1.6/lib")

    def path(self, *first: Path | str) -> list[str]:
        own = ("$ORIGIN/../lib", "$ORIGIN/../lib64", "$ORIGIN", self.mpi.parent)
        return rpath(*first, *own)

    def program(self, name: str, *needs: Path, overrides: Sequence[Path | str] = ("",)) -> Path:
        """A program of a module `name`; `overrides` other than the stack's where they are given."""
        first = self.overrides if tuple(overrides) == ("",) else tuple(map(str, overrides))
        place = self.root / "software" / name
        return program(
            place / "bin" / name.partition("/")[0].lower(),
            CALLS if self.mpi in needs or not needs else "",
            flags=self.path(*first),
            needs=needs or (self.mpi,),
        )

    def library(self, place: str, soname: str | None, *needs: Path) -> Path:
        """A library below `software`."""
        path = self.root / "software" / place
        return compiled(path, flags=self.path(*self.overrides), needs=needs, soname=soname)


def host(libmpi: Path, family: Family = Family.OPENMPI, abi: Abi = Abi.OMPI) -> MpiAbi:
    """A host MPI that is this file and what it needs."""
    install = MpiInstall(f"{family}@9", family, "9", abi, libmpi.name, libmpi.parent, libmpi)
    return read_abi(install)


def files_of(abi: MpiAbi, *more: Path) -> object:
    """An override that has the MPI's bindings under their names, and files besides."""

    def files(slot: Slot, needed: frozenset[str]) -> Mapping[str, Elf]:
        paths = [Path(o.path) for o in abi.objects if o.role == "mpi"]
        places = {f"{slot.folders[0]}/{p.name}": p for p in (*paths, *more)}
        return {place: replace(read_elf(p), name=place) for place, p in places.items()}

    return files


def codes(verdict: StackCheck) -> set[str]:
    modules = [f.code for module in verdict.modules for f in module.findings]
    return {*modules, *(f.code for f in verdict.findings)}
