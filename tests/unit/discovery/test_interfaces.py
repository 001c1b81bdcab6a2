"""Which languages the MPIs of this machine can be called from, by their symbols."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from mpigraft.core.model import Abi, MpiInterface
from mpigraft.discovery.sources.interfaces import interfaces
from mpigraft.report import machine_lines
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import shows

C = ("MPI_Init", "MPI_Send")
F77 = ("mpi_init_", "mpi_send_")
GNU = ("__mpi_MOD_mpi_sizeof",)
F08 = ("mpi_init_f08_", "__mpi_f08_types_MOD_x")
CXX = ("_ZN3MPI4InitEv",)


def made(folder: Path, name: str, symbols: Sequence[str]) -> Path:
    source = folder / f"{name}.c"
    source.write_text("".join(f"void {symbol}(void) {{}}\n" for symbol in symbols))
    file = folder / name
    words = ("cc", "-shared", "-fPIC", "-nostdlib", f"-Wl,-soname,{name}", source, "-o", file)
    subprocess.run([*map(str, words)], check=True)
    return file


def of(folder: Path, abi: Abi, libmpi: str, **libraries: Sequence[str]) -> list[tuple[str, ...]]:
    first = made(folder, libmpi, C)
    for name, symbols in libraries.items():
        made(folder, name.replace("__", ".so."), symbols)
    return [(one.name, one.library, *one.compilers) for one in interfaces(abi, first)]


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path_factory.mktemp("home")))


def test_mpich_has_all_in_one_library(tmp_path: Path) -> None:
    found = of(
        tmp_path, Abi.MPICH, "libmpi.so.12",
        libmpifort__12=(*F77, *GNU, *F08), libmpicxx__12=CXX, libmpi_ilp64__4=F77,
    )  # fmt: skip
    fortran, cxx = "libmpifort.so.12", "libmpicxx.so.12"
    assert found == [
        ("mpif.h", fortran), ("use mpi", fortran, "gfortran"), ("use mpi_f08", fortran, "gfortran"),
        ("C++", cxx),
    ]  # fmt: skip


def test_open_mpis_modules_are_libraries_and_an_empty_one_is_none(tmp_path: Path) -> None:
    found = of(
        tmp_path, Abi.OMPI, "libmpi.so.40",
        libmpi_mpifh__40=F77, libmpi_usempi__40=(), libmpi_usempif08__40=F08,
    )  # fmt: skip
    assert found == [
        ("mpif.h", "libmpi_mpifh.so.40"),
        ("use mpi_f08", "libmpi_usempif08.so.40", "gfortran"),
    ]
    (tmp_path / "libmpi_usempi.so.40").unlink()
    made(tmp_path, "libmpi_usempi.so.40", ("mpi_sizeof_",))
    names = [one.name for one in interfaces(Abi.OMPI, tmp_path / "libmpi.so.40")]
    assert names == ["mpif.h", "use mpi", "use mpi_f08"], "a library that changed is read anew"


def test_constants_of_c_are_no_fortran(tmp_path: Path) -> None:
    first = made(tmp_path, "libmpi.so.40", (*C, "MPI_F08_STATUS_IGNORE", "mpi_init_f08_"))
    made(tmp_path, "libmpifort.so.12", F77)  # another MPI's
    assert interfaces(Abi.OMPI, first) == ()
    assert interfaces(Abi.OMPI, tmp_path / "gone.so") == ()


def test_they_are_shown() -> None:
    def shown(*found: MpiInterface) -> str:
        text = machine_lines(a_machine(an_mpi(interfaces=found)), 200)
        return next(line for line in text if line.startswith("  languages")).split(None, 1)[1]

    assert shows(shown(), "C", "no Fortran", "no C++")
    mpif = MpiInterface("mpif.h", "l")
    modern = MpiInterface("use mpi_f08", "l", ("Intel Fortran", "gfortran"))
    assert shows(
        shown(mpif, modern),
        "C",
        "Fortran",
        "mpif.h",
        "mpi_f08",
        "Intel Fortran",
        "gfortran",
        "no C++",
    )
    assert shown(MpiInterface("C++", "l")) == "C; no Fortran; C++ bindings"
