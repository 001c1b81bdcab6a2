"""One list of MPI's calls as programs in C, mpif.h, `use mpi` and `use mpi_f08`, for several MPIs.

Debian's Open MPI and MPICH have all four bindings. Their headers and modules are unpacked from
their development packages; the libraries are this machine's. Intel's wheel has C and mpif.h.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.model import Family
from mpigraft.core.process import run_command
from testbed import rootfs
from testbed.kept import recipe
from testbed.science import LIBRARIES, kept_folder, unpack

SOURCES = rootfs.HERE / "calls"
BINDINGS = {"c": 0, "mpif.h": 1, "use mpi": 2, "use mpi_f08": 3}
SYSTEM = Path("/") / LIBRARIES
MODULES = f"{LIBRARIES}/fortran/gfortran-mod-15/openmpi"


@dataclass(frozen=True, slots=True)
class Bound:
    """An MPI with its bindings. Folders of headers and modules are below where `packages` are
    unpacked, or below the MPI's prefix where there are none; libraries are below the prefix."""

    headers: tuple[str, ...]
    libraries: tuple[str, ...]  # those of Fortran first
    packages: tuple[str, ...] = ()
    bindings: tuple[str, ...] = tuple(BINDINGS)


BOUND: Mapping[str, Bound] = {
    "openmpi@4.1.4": Bound(
        (f"{LIBRARIES}/openmpi/include", MODULES),
        tuple(f"libmpi{name}.so.40" for name in ("_usempif08", "_usempi_ignore_tkr", "_mpifh", "")),
        ("libopenmpi-dev",),
    ),
    "mpich@4.0.2": Bound(
        ("usr/include/x86_64-linux-gnu/mpich",),
        ("libmpichfort.so.12", "libmpich.so.12"),
        ("libmpich-dev",),
    ),
    "intel@2021.18.1": Bound(
        ("include",), ("libmpifort.so.12", "libmpi.so.12"), bindings=("c", "mpif.h")
    ),
}


def programs(cache: Path, mpi: str, wheels: Mapping[Family, Path]) -> Mapping[str, Path]:
    """The program of each binding that an MPI has, compiled once in the cache."""
    bound = BOUND[mpi]
    made_by = recipe(repr(bound), *sorted(SOURCES.iterdir()))
    prefix = None if bound.packages else wheels[Family(mpi.partition("@")[0])]

    def make(to: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="mpigraft-languages-") as scratch:
            root, packages = Path(scratch) / "root", Path(scratch) / "packages"
            root.mkdir()
            packages.mkdir()
            if bound.packages:
                unpack(bound.packages, packages, root)
            for name in bound.bindings:
                _compile(bound, name, prefix, root, to)

    folder = kept_folder(cache / "science", f"calls-{mpi}", made_by, make)
    return {name: folder / str(BINDINGS[name]) for name in bound.bindings}


def _compile(bound: Bound, name: str, prefix: Path | None, root: Path, to: Path) -> None:
    headers = [f"-I{(prefix or root) / folder}" for folder in bound.headers]
    folder = prefix / "lib" if prefix else SYSTEM
    libraries = [folder / library for library in bound.libraries]
    if name == "c":
        words: list[str | Path] = ["gcc", "-std=c11", SOURCES / "calls.c", libraries[-1]]
    else:
        # mpif.h has no types: a routine is called with buffers of several.
        fortran = ("-fallow-argument-mismatch", f"-DBINDING={BINDINGS[name]}")
        words = ["gfortran", *fortran, f"-J{root}", SOURCES / "calls.F90", *libraries]
    argv = [*words, *headers, "-w", "-Wl,--allow-shlib-undefined", "-o", to / str(BINDINGS[name])]
    done = run_command(argv, limit_s=120)
    assert done.ok, done.text()
