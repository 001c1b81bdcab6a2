"""What check knows of languages, and of two MPIs in one process, that no loader tells."""

from __future__ import annotations

from dataclasses import replace as with_fields

import pytest

from mpigraft.binary.image.over import OverlayRoot
from mpigraft.core.model import AbiObject, Family, Level, MpiAbi
from mpigraft.graft.abi.copies import as_elf
from mpigraft.graft.guest.examination import Guest
from tests.builders.fits import codes, finding, own, part, verdict
from tests.builders.guests import (
    APP,
    C_SYMBOLS,
    MPICH,
    OPENMPI,
    a_guest,
    a_program,
    an_abi,
    changed,
    library,
)
from tests.builders.messages import matches, shows

GFORTRAN = library("libgfortran.so.5", exported=("_gfortran_st_write",))
F77 = ("mpi_init_", "mpi_send_")
F08 = ("mpi_init_f08_", "mpi_send_f08ts_")
TYPES = {"gfortran": "__mpi_f08_types_MOD_x", "ifort": "mpi_f08_types_mp_x_"}
COMMON = ("mpifcmb5_", "mpipriv1_")


def bindings(*exported: str, runtime: str = "") -> AbiObject:
    needed = ("libmpi.so.12", *([runtime] if runtime else []))
    return library("libmpifort.so.12", needed=needed, exported=exported)


def fortran_guest(
    *imported: str, runtime: AbiObject = GFORTRAN, common: tuple[str, ...] = COMMON
) -> Guest:
    """A Fortran program on MPICH, which has copies of MPICH's common blocks."""
    needed = ["libmpifort.so.12", "libmpi.so.12", runtime.soname]
    program = a_program(needed, imported=imported or F77, exported=common)
    return a_guest(program, MPICH, runtime, bindings(*F77, *F08, *COMMON))


def host(*exported: str, mpi: str = "mpich@5.0.2", runtime: str = "") -> MpiAbi:
    runtimes = [library(runtime)] if runtime else []
    return an_abi(mpi, bindings(*exported, runtime=runtime), *runtimes)


# ------------------------------------------------------------------ Fortran


def test_fortran_of_one_compiler_on_both_sides() -> None:
    abi = host(*F77, *COMMON, runtime="libgfortran.so.5")
    fit = verdict(fortran_guest(), abi, own=own(Family.MPICH, "4.0.2"))
    assert fit.ok
    assert "gfortran" in part(fit, "fortran").message
    assert "fortran-compiler-unknown" not in codes(fit)


@pytest.mark.parametrize(
    ("runtime", "name"),
    [
        ("libifcore.so.5", "Intel Fortran"),
        ("libflang_rt.runtime.so", "Flang"),
        ("libnvf.so", "NVIDIA Fortran"),
        ("libf.so.1", "Cray Fortran"),
    ],
)
def test_fortran_of_another_compiler_family(runtime: str, name: str) -> None:
    abi = host(*F77, *COMMON, runtime=runtime)
    found = finding(verdict(fortran_guest(), abi, own=own(Family.MPICH)), "fortran-compiler")
    assert found.level is Level.ERROR
    assert matches(
        found, "fortran-compiler", binding="bindings were", host_compilers=name,
        mpi="mpich@5.0.2", program_compilers="gfortran",
    )  # fmt: skip
    assert found.evidence == (f"{APP} needs libgfortran.so.5",)


def test_a_binding_that_serves_two_compilers() -> None:
    """Intel's has module procedures under the names of both."""
    both = ("__mpi_sizeofs_MOD_x", "mpi_sizeofs_mp_x_")
    abi = host(*F77, *COMMON, *both, mpi="intel@2021.18.1")
    fit = verdict(fortran_guest(), abi, own=own(Family.MPICH, "4.0.2"))
    assert fit.ok
    assert "fortran-relative" in codes(fit)


def test_only_programs_with_mpi_f08_get_the_finding_of_its_compiler() -> None:
    both = ("__mpi_sizeofs_MOD_x", TYPES["ifort"])
    abi = host(*F77, *F08, *COMMON, *both, mpi="intel@2021.18.1")
    needed = ["libmpifort.so.12", "libmpi.so.12", "libgfortran.so.5"]
    programs = {
        "/opt/f77": a_program(needed, imported=F77),
        "/opt/f08": a_program(needed, imported=F08),
    }
    guest = a_guest(programs, MPICH, GFORTRAN, bindings(*F77, *F08))
    fit = verdict(guest, abi, own=own(Family.MPICH, "4.0.2"))
    evidence = finding(fit, "fortran-compiler").evidence
    assert evidence == ("/opt/f08 needs libgfortran.so.5",)


def test_mpi_f08_is_for_one_compiler_and_one_family() -> None:
    both = ("__mpi_sizeofs_MOD_x", TYPES["ifort"])
    abi = host(*F08, *COMMON, *both, mpi="intel@2021.18.1")
    fit = verdict(fortran_guest(*F08), abi, own=own(Family.MPICH, "4.0.2"))
    assert finding(fit, "fortran-family").level is Level.ERROR
    assert shows(
        finding(fit, "fortran-compiler").message, "module", "mpi_f08", "built", "Intel", "Fortran"
    )
    same = host(*F08, *COMMON, TYPES["gfortran"])
    assert verdict(fortran_guest(*F08), same, own=own(Family.MPICH, "4.0.2")).ok


def test_a_compiler_without_a_trace_is_unknown_and_not_guessed() -> None:
    fit = verdict(fortran_guest(), host(*F77, *COMMON), own=own(Family.MPICH))
    assert fit.ok
    assert "mpich@5.0.2" in finding(fit, "fortran-compiler-unknown").message


def test_a_host_mpi_without_fortran() -> None:
    fit = verdict(fortran_guest(), an_abi("mpich@5.0.2"), own=own(Family.MPICH, "3.0.4"))
    assert {f.code for f in fit.findings if f.level is Level.ERROR} == {"fortran-absent"}
    assert shows(finding(fit, "fortran-absent").evidence, APP, "libmpifort.so.12")


def test_mpich_keeps_its_abi_from_3_1_on() -> None:
    fit = verdict(fortran_guest(), an_abi("mpich@5.0.2"), own=own(Family.MPICH, "4.0.2"))
    assert fit.ok
    assert finding(fit, "fortran-own").level is Level.WARNING


@pytest.mark.parametrize(
    ("lacking", "imported", "flags", "fits"),
    [
        ("PMPIX_Delete_error_class", F77, 0, True),
        ("PMPIX_Delete_error_class", (*F77, "mpi_delete_error_class_f08_"), 0, False),
        ("PMPIX_Delete_error_class", (*F77, "pmpix_delete_error_class_"), 0, False),
        ("PMPIX_Delete_error_class", (*F77, "__mpi_f08_MOD_mpix_delete_error_class"), 0, False),
        ("PMPIX_Delete_error_class", F77, 8, False),  # DF_BIND_NOW
        ("MPI_F_STATUS_IGNORE", F77, 0, False),  # a variable is bound at the start
    ],
)
def test_own_bindings_of_mpich_may_lack_what_nothing_calls(
    lacking: str, imported: tuple[str, ...], flags: int, fits: bool
) -> None:
    """Seen: Debian's f77, f90 and f08 programs on MPICH 4.0.2 over 5.0.2 give equal results; one
    that calls mpi_delete_error_class_f08 ends with an undefined symbol."""
    own_binding = library(
        "libmpifort.so.12", needed=("libmpi.so.12",), exported=(*F77, *F08, *COMMON),
        imported=(lacking,),
    )  # fmt: skip
    program = a_program(
        ["libmpifort.so.12", "libmpi.so.12", GFORTRAN.soname], imported=imported, exported=COMMON
    )
    guest = a_guest(program, MPICH, GFORTRAN)
    files = {own_binding.path: changed(as_elf(own_binding, name=own_binding.path), flags=flags)}
    guest = with_fields(guest, root=OverlayRoot(guest.root, files))
    fit = verdict(guest, an_abi("mpich@5.0.2"), own=own(Family.MPICH, "4.0.2"))
    assert fit.ok is fits
    found = finding(fit, "fortran-own" if fits else "fortran-absent")
    assert f"{own_binding.path} lacks {lacking}" in found.evidence


def openmpi_fortran(*beside: str) -> Guest:
    """An image with Open MPI and its Fortran bindings, which also need `beside`."""
    program = a_program(["libmpi_mpifh.so.40", "libgfortran.so.5"], imported=F77)
    binding = library(
        "libmpi_mpifh.so.40",
        needed=("libmpi.so.40", *beside),
        exported=F77,
        imported=("PMPI_Init",),
    )
    own = library("libmpi.so.40", exported=(*C_SYMBOLS, "PMPI_Init"))
    return a_guest(program, own, binding, GFORTRAN, *(library(name) for name in beside))


@pytest.mark.parametrize(
    ("version", "exported", "beside", "code"),
    [
        ("5.0.7", ("PMPI_Init",), (), "fortran-own"),
        ("4.1.4", ("PMPI_Init",), (), "fortran-absent"),
        ("5.0.7", (), (), "fortran-absent"),
        ("5.0.7", ("PMPI_Init",), ("libopen-pal.so.40",), "fortran-absent"),
    ],
)
def test_the_guests_own_bindings_are_kept_within_a_release_series(
    version: str, exported: tuple[str, ...], beside: tuple[str, ...], code: str
) -> None:
    """Seen: trixie's of 5.0.7 over 5.0.11 run; bookworm's of 4.1.4 end in MPI_Init."""
    abi = an_abi("openmpi@5.0.11", exported=(*C_SYMBOLS, *exported))
    fit = verdict(openmpi_fortran(*beside), abi, own=own(version=version))
    told = {f.code for f in part(fit, "fortran").findings}
    assert told == {code}
    assert fit.ok is (code == "fortran-own")


def test_a_c_program_asks_nothing_of_fortran() -> None:
    """Though the guest's own MPI brings its Fortran bindings."""
    guest = a_guest(a_program(["libmpi.so.12"]), MPICH, bindings(*F77))
    assert verdict(guest, an_abi("mpich@5.0.2"), own=own(Family.MPICH)).ok


def test_common_blocks_that_the_host_does_not_know() -> None:
    """MPI_IN_PLACE is the address of one: the host would send from it."""
    abi = host(*F77, *COMMON, runtime="libgfortran.so.5")
    fit = verdict(fortran_guest(common=(*COMMON, "mpifcmba_")), abi, own=own(Family.MPICH))
    found = finding(fit, "fortran-constants")
    assert found.level is Level.ERROR
    assert found.evidence == ("mpifcmba_",)
    assert "MPI_IN_PLACE" in found.message


def test_a_fortran_procedure_that_the_host_lacks() -> None:
    abi = host(*F77, *COMMON, runtime="libgfortran.so.5")
    fit = verdict(fortran_guest(*F77, "mpi_session_init_"), abi, own=own(Family.MPICH))
    assert finding(fit, "fortran-symbols").level is Level.ERROR
    assert shows(finding(fit, "fortran-symbols").evidence[0], "mpi_session_init_")
    assert "symbols" not in codes(fit)


# ------------------------------------------------------------------ C++


def cxx_guest(*imported: str) -> Guest:
    program = a_program(["libmpi_cxx.so.40", "libmpi.so.40"], imported=(*C_SYMBOLS, *imported))
    old = library("libmpi.so.40", exported=(*C_SYMBOLS, "ompi_op_set_cxx_callback"))
    cxx = library(
        "libmpi_cxx.so.40", needed=("libmpi.so.40", "libopen-pal.so.40"),
        exported=("_ZN3MPI4InitEv",), imported=("ompi_op_set_cxx_callback",),
    )  # fmt: skip
    return a_guest(program, old, cxx, library("libopen-pal.so.40"))


@pytest.mark.parametrize(("version", "fits"), [("4.1.8", True), ("4.0.7", False)])
def test_cxx_bindings_of_the_guest_are_kept_within_a_release_series(
    version: str, fits: bool
) -> None:
    """Seen: bookworm's of 4.1.4 over 4.1.8, which has none, run."""
    program = a_program(["libmpi_cxx.so.40", "libmpi.so.40"], imported=C_SYMBOLS)
    cxx = library("libmpi_cxx.so.40", needed=("libmpi.so.40",), imported=("MPI_Init",))
    guest = a_guest(program, library("libmpi.so.40", exported=C_SYMBOLS), cxx)
    fit = verdict(guest, an_abi(f"openmpi@{version}"), own=own())
    assert fit.ok is fits
    assert finding(fit, "cxx-own" if fits else "cxx-bindings")


def test_cxx_bindings_against_open_mpi_5() -> None:
    fit = verdict(cxx_guest("_ZN3MPI4InitEv"), an_abi("openmpi@5.0.11"), own=own())
    assert {f.code for f in fit.findings if f.level is Level.ERROR} == {"cxx-bindings"}
    found = finding(fit, "cxx-bindings")
    assert matches(found, "cxx-bindings")
    assert any(shows(line, "miss", "ompi_op_set_cxx_callback") for line in found.evidence)


@pytest.mark.parametrize(
    ("lacking", "called", "fits"),
    [
        ("MPII_Op_set_cxx", "_ZN3MPI4InitEv", True),
        ("MPII_Op_set_cxx", "_ZN3MPI2Op4InitEPFvPKvPviRKNS_8DatatypeEEb", False),
        ("MPII_Op_set_cxx", "_ZN3MPI4Comm17Create_errhandlerEPFvRS0_PizE", True),
        ("MPII_Errhandler_set_cxx", "_ZN3MPI3Win17Create_errhandlerEPFvRS0_PizE", False),
        ("MPI_Type_hvector", "_ZN3MPI4InitEv", False),  # who calls it in C++ is not known
    ],
)
def test_own_cxx_bindings_of_mpich_may_lack_what_nothing_calls(
    lacking: str, called: str, fits: bool
) -> None:
    """Seen: a C++ program of MPICH 4.0.2 with collectives, windows, files, attributes and
    exceptions runs over 5.0.2; MPI::Op::Init and Create_errhandler end with an undefined symbol."""
    program = a_program(["libmpicxx.so.12", "libmpi.so.12"], imported=(*C_SYMBOLS, called))
    cxx = library(
        "libmpicxx.so.12", needed=("libmpi.so.12",), exported=(called,), imported=(lacking,)
    )
    guest = a_guest(program, library("libmpi.so.12", exported=(*C_SYMBOLS, lacking)), cxx)
    fit = verdict(guest, an_abi("mpich@5.0.2"), own=own(Family.MPICH, "4.0.2"))
    assert fit.ok is fits
    found = finding(fit, "cxx-own" if fits else "cxx-bindings")
    assert f"{cxx.path} lacks {lacking}" in found.evidence


def test_cxx_bindings_that_the_host_has() -> None:
    cxx = library("libmpi_cxx.so.40", needed=("libmpi.so.40",), exported=("_ZN3MPI4InitEv",))
    abi = an_abi("openmpi@4.1.8", cxx, exported=(*C_SYMBOLS, "ompi_op_set_cxx_callback"))
    assert verdict(cxx_guest("_ZN3MPI4InitEv"), abi, own=own()).ok


def test_a_cxx_procedure_that_the_host_lacks() -> None:
    cxx = library("libmpi_cxx.so.40", needed=("libmpi.so.40",), exported=("_ZN3MPI4InitEv",))
    fit = verdict(cxx_guest("_ZN3MPI4Comm3FooEv"), an_abi("openmpi@4.1.8", cxx), own=own())
    assert finding(fit, "cxx-symbols").level is Level.ERROR
    assert not codes(fit) & {"symbols", "mpi-symbols"}


# ------------------------------------------------------------------ two MPIs in one process


def test_a_library_that_needs_the_guests_own_mpi_from_below() -> None:
    """A profiler linked to libopen-pal would bring the guest's Open MPI 4 beside the host's 5."""
    profiler = library("libprof.so.1", needed=("libopen-pal.so.40",))
    program = a_program(["libprof.so.1", "libmpi.so.40"])
    guest = a_guest(program, profiler, OPENMPI, library("libopen-pal.so.40"))
    fit = verdict(guest, an_abi("openmpi@5.0.11"), own=own())
    found = finding(fit, "two-mpis")
    assert found.level is Level.ERROR
    assert matches(found, "two-mpis", libraries="libopen-pal.so.40")
    same = an_abi("openmpi@4.1.8", library("libopen-pal.so.40"))
    assert verdict(guest, same, own=own()).ok
