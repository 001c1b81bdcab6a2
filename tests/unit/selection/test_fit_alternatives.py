"""What a refusal says would do instead, and what it does not."""

from __future__ import annotations

import pytest

from mpigraft.core.errors import CheckFailed, MissingError
from mpigraft.core.model import Family, Machine, MpiInstall, Replace
from mpigraft.discovery.install import fetch
from mpigraft.graft.assemble import GraftOptions
from mpigraft.graft.guest.examination import Guest
from mpigraft.selection import mpi as which_mpi
from mpigraft.selection.fit_alternatives import (
    drop_forbidden_fixes,
    fetchable_mpis,
    fitting_mpis,
    suggest_mpis,
)
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.fits import own
from tests.builders.guests import C_SYMBOLS, a_guest, a_program, library
from tests.builders.messages import shows

OMPI, MPICH, INTEL = "mpigraft get openmpi", "mpigraft get mpich", "mpigraft get intel"
OMPI_4 = f"{OMPI} --version 4.1.8"
GFORTRAN = library("libgfortran.so.5")
FORT = library("libmpifort.so.12", exported=("mpi_init_",))
MPIFH = library("libmpi_mpifh.so.40", exported=("mpi_init_",))
CXX = library("libmpi_cxx.so.40", exported=("_ZN3MPI4InitEv",))
NOTHING_HERE = a_machine()


def c_guest(libmpi: str = "libmpi.so.40") -> Guest:
    return a_guest(a_program([libmpi]), library(libmpi, exported=C_SYMBOLS))


def fortran_guest(*calls: str) -> Guest:
    needed = ["libmpifort.so.12", "libmpi.so.12", "libgfortran.so.5"]
    program = a_program(needed, imported=calls)
    return a_guest(program, library("libmpi.so.12", exported=C_SYMBOLS), FORT, GFORTRAN)


# ------------------------------------------------------------------ of this machine


def test_those_that_pass_the_check_fit() -> None:
    machine = a_machine(
        an_mpi("openmpi@5.0.11"), an_mpi("openmpi@4.1.8"), an_mpi("mpich@5.0.2"),
        an_mpi("openmpi@4.1.4", usable=False), an_mpi("intel@2021.18.1"),
    )  # fmt: skip
    looked: list[str] = []

    def check(mpi: MpiInstall) -> None:
        looked.append(mpi.id)
        if mpi.id.startswith("mpich"):
            raise CheckFailed("another ABI")
        if mpi.id.startswith("intel"):
            raise MissingError("cannot be started")

    assert fitting_mpis(machine, ["openmpi@5.0.11"], check) == ("openmpi@4.1.8",)
    assert looked == ["openmpi@4.1.8", "mpich@5.0.2", "intel@2021.18.1"]


def test_a_fitting_mpi_is_named_first_and_nothing_to_fetch() -> None:
    no = CheckFailed("it does not fit", fix="build it anew")
    suggest_mpis(no, ["a@1", "b@2", "c@3", "d@4", "e@5"], [OMPI])
    assert shows(no.fix, "--mpi a@1", "b@2", "c@3", "d@4")
    other = CheckFailed("it does not fit")
    suggest_mpis(other, ["a@1", "b@2"], [])
    assert shows(other.fix, "--mpi a@1", "b@2")


def test_where_none_fits_the_message_names_what_can_be_fetched() -> None:
    no = CheckFailed("it does not fit", fix="build it anew")
    suggest_mpis(no, [], [OMPI, OMPI_4])
    assert shows(
        no.fix, "no other MPI", "mpigraft get openmpi", "mpigraft get openmpi --version 4.1.8"
    )
    other = CheckFailed("it does not fit")
    suggest_mpis(other, [], [])
    assert shows(other.fix, "no other MPI")


# ------------------------------------------------------------------ to fetch


@pytest.mark.parametrize(
    ("libmpi", "due"),
    [("libmpi.so.40", (OMPI, OMPI_4)), ("libmpi.so.12", (MPICH, INTEL)), ("libmpi.so.20", ())],
)
def test_of_the_programs_abi(libmpi: str, due: tuple[str, ...]) -> None:
    assert fetchable_mpis(c_guest(libmpi), None, NOTHING_HERE) == due


def test_not_what_is_here_nor_what_is_older_than_the_guests() -> None:
    here = a_machine(an_mpi("openmpi@5.0.11"))
    assert fetchable_mpis(c_guest(), None, here) == (OMPI_4,)
    assert fetchable_mpis(c_guest(), own(Family.OPENMPI, "5.0.7"), NOTHING_HERE) == (OMPI,)
    assert fetchable_mpis(c_guest(), own(Family.OPENMPI, "5.0.7"), here) == ()


def test_not_for_another_architecture_nor_for_a_library_alone() -> None:
    arm = a_guest(a_program(machine="aarch64"))
    assert fetchable_mpis(arm, None, NOTHING_HERE) == ()
    assert fetchable_mpis(c_guest(), None, NOTHING_HERE, Replace.LIBFABRIC) == ()


def test_intel_is_not_for_podman() -> None:
    assert fetchable_mpis(c_guest("libmpi.so.12"), None, NOTHING_HERE, engine="podman") == (MPICH,)


def test_with_the_bindings_of_the_programs_compiler() -> None:
    assert fetchable_mpis(fortran_guest("mpi_init_"), None, NOTHING_HERE) == (INTEL,)
    modern = fortran_guest("mpi_init_f08_", "__mpi_f08_types_MOD_x")
    assert fetchable_mpis(modern, None, NOTHING_HERE) == ()


def test_bindings_that_are_linked_and_not_called_do_not_matter() -> None:
    assert fetchable_mpis(fortran_guest("MPI_Init"), None, NOTHING_HERE) == (MPICH, INTEL)


@pytest.mark.parametrize("extra", [MPIFH, CXX])
def test_beside_open_mpis_own_series_the_guests_bindings_may_stay(extra: object) -> None:
    soname = extra.soname  # type: ignore[attr-defined]
    program = a_program([soname, "libmpi.so.40"], imported=("mpi_init_", "_ZN3MPI4InitEv"))
    guest = a_guest(program, library("libmpi.so.40", exported=C_SYMBOLS), extra)  # type: ignore[arg-type]
    assert fetchable_mpis(guest, own(Family.OPENMPI, "4.1.4"), NOTHING_HERE) == (OMPI_4,)
    assert fetchable_mpis(guest, own(Family.OPENMPI, "3.1.4"), NOTHING_HERE) == ()


def test_without_an_mpi_here_only_what_would_do_is_named() -> None:
    def asked(guest: Guest, machine: Machine) -> str:
        with pytest.raises(MissingError) as missing:
            which_mpi.mpi_for_guest("", machine, guest, GraftOptions())
        return missing.value.fix

    assert asked(c_guest("libmpi.so.12"), NOTHING_HERE).startswith(f"`{MPICH}` or `{INTEL}`")
    assert asked(c_guest("libmpi.so.20"), NOTHING_HERE) == which_mpi.NOTHING_TO_FETCH


# ------------------------------------------------------------------ what a profile forbids

FIXED = {"mpi": "/etc/site.toml:3", "engine": "/etc/site.toml:4"}
ASK = "ask those who keep the site's profile, which does not leave the rest to users"


@pytest.mark.parametrize(
    ("fix", "left"),
    [
        ("--mpi a@1 fits, which was checked; else use a host MPI of ABI ompi", ""),
        ("use a host MPI of ABI ompi; or build it anew", "build it anew"),
        ("`mpigraft get openmpi` fetches one for such programs", ""),
        ("use --engine bwrap, which can", ""),
        ("use another engine: apptainer, charliecloud or bwrap", ""),
        ("name a host MPI whose launcher starts it; --replace mpi would", "--replace mpi would"),
    ],
)
def test_no_way_out_that_the_profile_forbids(fix: str, left: str) -> None:
    error = CheckFailed("no", fix=fix)
    drop_forbidden_fixes(error, FIXED)
    where = "(/etc/site.toml:3, /etc/site.toml:4)"
    assert error.fix == "; ".join(filter(None, [left, f"{ASK} {where}"]))


@pytest.mark.parametrize("fix", ["build it anew", "--program PATH names one", ""])
def test_other_ways_stay(fix: str) -> None:
    error = CheckFailed("no", fix=fix)
    drop_forbidden_fixes(error, FIXED)
    assert error.fix == fix
    free = CheckFailed("no", fix="--mpi a@1 fits")
    drop_forbidden_fixes(free, {})
    drop_forbidden_fixes(free, {"transport": "x"})
    assert shows(free.fix, "--mpi a@1")


def test_flags_have_their_own_names() -> None:
    error = CheckFailed("no", fix="-n 2 starts fewer; --no-proof starts it; --replace mpi")
    drop_forbidden_fixes(error, {"ranks": "a:1", "proof": "a:2"})
    assert shows(error.fix, "--replace mpi")


def test_every_wheel_is_one_that_get_offers() -> None:
    families = {wheel.family: wheel.version for wheel in fetch.MPI_WHEELS[::-1]}
    assert families == {f: offer.version for f, offer in fetch.MPI_OFFERS.items()}


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        ("openmpi", "mpigraft get openmpi"),
        ("openmpi@5", "mpigraft get openmpi"),
        ("openmpi@5.0.11", "mpigraft get openmpi"),
        ("openmpi@4.1.8", "mpigraft get openmpi --version 4.1.8"),
        ("openmpi@4", ""),
        ("openmpi@50", ""),
        ("cray-mpich", ""),
        ("lam", ""),
    ],
)
def test_the_command_that_fetches_what_was_named(spec: str, command: str) -> None:
    assert fetch.fetch_command(spec) == command
