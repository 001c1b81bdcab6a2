"""What goes in under a guest: each rule with a case that it decides and one that it leaves be."""

from __future__ import annotations

import pytest

from mpigraft.core.model import AbiObject, MpiAbi, Replace
from mpigraft.graft.injection.fixpoint import CopyPolicy
from tests.builders.guests import APP, C_SYMBOLS, LIB, an_abi, changed, library
from tests.builders.injections import (
    GRAFT,
    choices,
    copies,
    grafted,
    lacks,
    loads,
    only,
    over,
    search,
)
from tests.builders.worlds import a_world, at, host, needing

LIBMPI = library("libmpi.so.40", exported=C_SYMBOLS, needed=("libopen-pal.so.40", "libc.so.6"))
PAL = library("libopen-pal.so.40")
HOST_PAL = host("libopen-pal.so.80")


def an_openmpi(*more: AbiObject, needed: tuple[str, ...] = (), **libmpi: object) -> MpiAbi:
    """Open MPI 5 with its libopen-pal and what else `needed` names."""
    return an_abi(
        "openmpi@5.0.11", HOST_PAL, *more,
        needed=(HOST_PAL.soname, *needed, "libc.so.6"), **libmpi,
    )  # fmt: skip


# ------------------------------------------------------------------ MPI and network


def test_the_hosts_mpi_lies_over_the_very_file_that_the_guests_loader_takes() -> None:
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL), an_openmpi())
    assert over(found) == {LIBMPI.path: LIBMPI.soname}
    assert found.libmpi == LIBMPI.path
    assert loads(found)[HOST_PAL.soname] == f"{GRAFT}/{HOST_PAL.soname}"
    assert PAL.soname not in loads(found)
    assert not search(found)
    assert not [*lacks(found), *found.absent, *found.closed]
    assert not found.glibc


def test_what_a_link_leads_to_is_laid_over_and_the_link_stays() -> None:
    real = f"{LIB}/openmpi/lib/libmpi.so.40.30.4"
    guest = a_world(
        needing("libmpi.so.40"),
        at(real, "libmpi.so.40"),
        links={f"{LIB}/libmpi.so.40": "openmpi/lib/libmpi.so.40.30.4"},
    )
    assert list(over(grafted(guest, an_openmpi()))) == [real]


@pytest.mark.parametrize("path", ["rpath", "runpath"])
def test_a_program_with_its_own_search_path_gets_the_hosts_mpi(path: str) -> None:
    program = changed(needing("libmpi.so.40"), **{path: "/opt/ompi/lib"})
    own = at("/opt/ompi/lib/libmpi.so.40", "libmpi.so.40", needed=("libopen-pal.so.40",))
    found = grafted(a_world(program, own, PAL), an_openmpi())
    assert list(over(found)) == [own.path]
    assert found.libmpi == own.path
    assert not list(lacks(found))


def test_without_an_mpi_in_the_guest_the_search_path_is_set() -> None:
    found = grafted(a_world(needing("libmpi.so.40")), an_openmpi())
    assert not found.binds
    assert search(found) == GRAFT
    assert found.libmpi == f"{GRAFT}/{LIBMPI.soname}"
    assert not list(lacks(found))


def test_a_search_path_of_the_guests_own_stays_behind_the_grafts() -> None:
    own = at("/opt/x/libx.so.1", "libx.so.1")
    guest = a_world(
        needing("libmpi.so.40", "libx.so.1"), own, environment={"LD_LIBRARY_PATH": "/opt/x"}
    )
    found = grafted(guest, an_openmpi())
    assert search(found) == f"{GRAFT}:/opt/x"
    assert loads(found)["libx.so.1"] == own.path


def test_each_program_has_the_hosts_mpi_wherever_it_finds_its_own() -> None:
    first, second = "/opt/a/libmpi.so.40", "/opt/b/libmpi.so.40"
    guest = a_world(
        {
            "/bin/a": changed(needing("libmpi.so.40"), rpath="/opt/a"),
            "/bin/b": changed(needing("libmpi.so.40"), rpath="/opt/b"),
            "/bin/c": needing("libmpi.so.40"),
        },
        at(first, "libmpi.so.40"),
        at(second, "libmpi.so.40"),
    )
    found = grafted(guest, an_openmpi())
    name = LIBMPI.soname
    assert over(found) == {first: name, second: name}
    assert search(found) == GRAFT
    assert [loads(found, n)[name] for n in range(3)] == [first, second, f"{GRAFT}/{name}"]


def test_an_extension_module_is_a_subject_as_programs_are() -> None:
    module = at("/usr/lib/python3/MPI.so", "MPI.so", needed=("libmpi.so.40", "libc.so.6"))
    python = {"/usr/bin/python3": needing()}
    guest = a_world(python, module, LIBMPI, PAL, modules=[module.path])
    assert list(over(grafted(guest, an_openmpi()))) == [LIBMPI.path]


def test_network_libraries_are_the_hosts_even_where_the_guests_would_do() -> None:
    fabric = {"defines": ("FABRIC_1.0",), "exported": ("fi_getinfo@@FABRIC_1.0",)}
    theirs = library("libfabric.so.1", **fabric)
    guest = a_world(needing("libmpi.so.40", "libfabric.so.1"), LIBMPI, PAL, theirs)
    found = grafted(guest, an_openmpi(host("libfabric.so.1", **fabric), needed=("libfabric.so.1",)))
    assert over(found)[theirs.path] == theirs.soname
    assert choices(found)["libfabric.so.1"] is CopyPolicy.HOST


def test_what_the_host_does_not_bring_of_network_stays_the_guests() -> None:
    theirs = library("libibverbs.so.1")
    guest = a_world(needing("libmpi.so.40", "libibverbs.so.1"), LIBMPI, PAL, theirs)
    found = grafted(guest, an_openmpi())
    assert theirs.path not in over(found)
    assert loads(found)["libibverbs.so.1"] == theirs.path


# ------------------------------------------------------------------ names


def test_another_name_of_the_same_interface_is_the_same_library() -> None:
    """A program of Debian's MPICH asks for libmpich.so.12; two libmpis must not come of it."""
    theirs = library("libmpich.so.12", exported=C_SYMBOLS)
    fortran = host("libmpifort.so.12", needed=("libmpi.so.12",))
    asked = (theirs.soname, "libmpichfort.so.12")
    found = grafted(a_world(needing(*asked), theirs), an_abi("mpich@5.0.2", fortran))
    assert over(found) == {theirs.path: "libmpi.so.12"}  # for programs with a path of their own
    due = {**{name: f"{GRAFT}/{name}" for name in asked}, "libc.so.6": f"{LIB}/libc.so.6"}
    assert loads(found) == due
    sources = {name: copy.source for name, copy in copies(found).items()}
    assert sources["libmpich.so.12"] == sources["libmpi.so.12"]
    assert sources["libmpichfort.so.12"] == fortran.path
    assert not [*found.absent, *lacks(found)]


def test_a_binding_that_the_host_has_not_is_absent() -> None:
    theirs = library("libmpi_cxx.so.40", needed=("libmpi.so.40",))
    found = grafted(
        a_world(needing("libmpi_cxx.so.40", "libmpi.so.40"), LIBMPI, PAL, theirs), an_openmpi()
    )
    assert found.absent == ((theirs.soname, APP),)
    assert theirs.path not in over(found)


def test_an_mpi_of_another_abi_is_absent() -> None:
    found = grafted(a_world(needing("libmpi.so.12")), an_openmpi())
    assert found.absent == (("libmpi.so.12", APP),)
    assert "libmpi.so.12" in [r.name for r in only(found).missing]


@pytest.mark.parametrize("folder", ["/opt/ompi/lib", LIB])
def test_a_library_that_is_asked_for_by_its_path_is_laid_over_too(folder: str) -> None:
    """A linker writes the path of a library that has no soname, and patchelf whatever one says."""
    path = f"{folder}/libmpi.so.40"
    own = at(path, "libmpi.so.40", exported=C_SYMBOLS, needed=("libopen-pal.so.40",))
    found = grafted(a_world(needing(path), own, PAL), an_openmpi())
    assert over(found) == {path: "libmpi.so.40"}
    assert found.libmpi == path
    assert not list(lacks(found))


def test_a_path_that_leads_through_the_grafts_place_is_still_the_guests() -> None:
    program = changed(needing("libmpi.so.40"), rpath=f"{GRAFT}/../../opt/lib")
    own = at("/opt/lib/libmpi.so.40", "libmpi.so.40")
    guest = a_world(program, own, at(f"{GRAFT}/other", "other"))
    assert list(over(grafted(guest, an_openmpi()))) == [own.path]


# ------------------------------------------------------------------ dependencies of both sides


def shared(
    guest_has: tuple[str, ...], host_has: tuple[str, ...], host_needs: str, guest_needs: str
) -> tuple[AbiObject, MpiAbi, AbiObject]:
    """(the guest's libdep.so.1, a host MPI that needs its own, a library of the guest's)."""
    theirs = library("libdep.so.1", defines=guest_has)
    ours = host("libdep.so.1", defines=host_has)
    needs = (("libdep.so.1", host_needs, False),)
    user = library(
        "libuser.so.1", needed=("libdep.so.1",), needs=(("libdep.so.1", guest_needs, False),)
    )
    return theirs, an_openmpi(ours, needed=("libdep.so.1",), needs=needs), user


@pytest.mark.parametrize(
    ("guest_has", "host_has", "host_needs", "guest_needs", "choice"),
    [
        (("D_1",), ("D_1", "D_2"), "D_1", "D_1", CopyPolicy.GUEST),
        (("D_1",), ("D_1", "D_2"), "D_2", "D_1", CopyPolicy.HOST),
        (("D_0", "D_1"), ("D_1", "D_2"), "D_2", "D_0", CopyPolicy.PRIVATE),
        (("D_0", "D_1"), ("D_1", "D_2"), "D_1", "D_0", CopyPolicy.GUEST),
    ],
)
def test_whose_dependency_is_loaded_by_version_nodes(
    guest_has: tuple[str, ...],
    host_has: tuple[str, ...],
    host_needs: str,
    guest_needs: str,
    choice: CopyPolicy,
) -> None:
    theirs, abi, user = shared(guest_has, host_has, host_needs, guest_needs)
    found = grafted(
        a_world(needing("libmpi.so.40", "libuser.so.1"), LIBMPI, PAL, theirs, user), abi
    )
    assert choices(found)["libdep.so.1"] is choice
    assert not list(lacks(found))
    libmpi = copies(found)["libmpi.so.40"]
    private = copies(found).get("mpigraft-libdep.so.1")
    assert (loads(found)["libdep.so.1"] == theirs.path) is (choice is not CopyPolicy.HOST)
    assert ("libdep.so.1" in copies(found)) is (choice is CopyPolicy.HOST)
    assert (private is not None) is (choice is CopyPolicy.PRIVATE)
    if private:
        assert private.soname == private.name.removeprefix("lib/")
        assert libmpi.renamed == ((theirs.soname, private.soname),)
        assert loads(found)[theirs.soname] == theirs.path
        assert loads(found)[private.soname] == f"{GRAFT}/{private.soname}"
    else:
        assert not libmpi.renamed


@pytest.mark.parametrize(
    ("guest_wants", "host_has", "host_wants", "choice"),
    [
        ("common", ("common", "new"), "common", CopyPolicy.GUEST),
        ("common", ("common", "new"), "new", CopyPolicy.HOST),
        ("old", ("new",), "new", CopyPolicy.PRIVATE),
    ],
)
def test_whose_dependency_is_loaded_by_symbols(
    guest_wants: str, host_has: tuple[str, ...], host_wants: str, choice: CopyPolicy
) -> None:
    """hwloc and libevent have no versions: what is missing shows in the symbols alone."""
    theirs = library("libdep.so.1", exported=(guest_wants,))
    ours = host("libdep.so.1", exported=host_has)
    user = library("libuser.so.1", needed=("libdep.so.1",), imported=(guest_wants,))
    found = grafted(
        a_world(needing("libmpi.so.40", "libuser.so.1"), LIBMPI, PAL, theirs, user),
        an_openmpi(ours, needed=("libdep.so.1",), imported=(host_wants,)),
    )
    assert choices(found)["libdep.so.1"] is choice
    assert not list(lacks(found))


def test_a_dependency_that_the_guest_lacks_is_put_in() -> None:
    ours = host("libdep.so.1", needed=("libdeep.so.1",))
    abi = an_openmpi(ours, host("libdeep.so.1"), host("libidle.so.1"), needed=("libdep.so.1",))
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL), abi)
    put_in = ("libdep.so.1", "libdeep.so.1")
    assert [loads(found)[name] for name in put_in] == [f"{GRAFT}/{name}" for name in put_in]
    assert "libidle.so.1" not in copies(found)
    assert not choices(found).keys() & {*put_in}
    assert not search(found)


def test_what_neither_side_has_is_missing() -> None:
    found = grafted(
        a_world(needing("libmpi.so.40"), LIBMPI, PAL), an_openmpi(needed=("libgone.so.1",))
    )
    assert [r.name for r in only(found).missing] == ["libgone.so.1"]


def test_what_a_guest_lacked_before_is_no_trouble_of_the_graft() -> None:
    theirs, abi, user = shared(("D_1",), ("D_1", "D_2"), "D_1", "D_2")
    sick = library("libsick.so.1", needed=("libgone.so.1",), imported=("nowhere",))
    program = needing("libmpi.so.40", "libuser.so.1", "libsick.so.1")
    found = grafted(a_world(program, LIBMPI, PAL, theirs, user, sick), abi)
    assert not list(lacks(found))
    assert choices(found)["libdep.so.1"] is CopyPolicy.GUEST  # not the host's to mend


def test_a_missing_mpi_symbol_is_reported_even_if_the_guest_lacked_it_before() -> None:
    symbol = "MPI_Comm_attach_buffer"
    program = needing("libmpi.so.40", imported=(symbol, "nowhere"))
    found = grafted(a_world(program, LIBMPI, PAL), an_openmpi())
    assert list(lacks(found)) == [symbol]


def test_a_symbol_that_only_the_guests_own_mpi_had_is_reported() -> None:
    theirs = library("libmpi.so.40", exported=(*C_SYMBOLS, "MPIX_Own", "helper"))
    program = needing("libmpi.so.40", imported=("MPIX_Own", "helper"))
    found = grafted(a_world(program, theirs), an_openmpi())
    assert sorted(lacks(found)) == ["MPIX_Own", "helper"]


# ------------------------------------------------------------------ what is replaced


CXI = host("libcxi.so.1")
FABRIC = host("libfabric.so.1", needed=(CXI.soname,))
OPENER = {"mca_mtl_ofi.so": ("libfabric.so.1",)}


def test_libfabric_alone_leaves_the_guests_mpi() -> None:
    theirs = library("libfabric.so.1")
    own = library("libmpi.so.40", exported=C_SYMBOLS, needed=("libfabric.so.1", "libc.so.6"))
    abi = an_openmpi(FABRIC, CXI, needed=("libfabric.so.1",))
    found = grafted(a_world(needing("libmpi.so.40"), own, theirs), abi, replace=Replace.LIBFABRIC)
    assert over(found) == {theirs.path: theirs.soname}
    assert found.libmpi == own.path
    assert sorted(copies(found)) == [CXI.soname, FABRIC.soname]
    assert loads(found)[CXI.soname] == f"{GRAFT}/{CXI.soname}"


def test_libfabric_that_the_guests_mpi_opens_later_is_replaced_too() -> None:
    theirs = library("libfabric.so.1")
    plugin = at("/opt/mca_mtl_ofi.so", "mca_mtl_ofi.so", needed=("libfabric.so.1", "libc.so.6"))
    abi = an_openmpi(FABRIC, CXI, needed=("libfabric.so.1",))
    found = grafted(
        a_world(needing("libmpi.so.40"), LIBMPI, PAL, theirs, plugin),
        abi,
        replace=Replace.LIBFABRIC,
        opened={"libmpi.so.40": (plugin.path,)},
    )
    assert over(found) == {theirs.path: theirs.soname}


def test_nothing_is_replaced_when_nothing_is_wanted() -> None:
    found = grafted(
        a_world(needing("libmpi.so.40"), LIBMPI, PAL), an_openmpi(), replace=Replace.NOTHING
    )
    assert not [*found.copies, *found.binds, *found.environment]
    assert found.libmpi == LIBMPI.path


# ------------------------------------------------------------------ plugins


def a_plugin(name: str, **facts: object) -> AbiObject:
    return host(name, **{"opened": True, "place": "openmpi", **facts})


def test_plugins_lie_where_the_library_looks_for_them() -> None:
    plugin = a_plugin("mca_pml_ob1.so", needed=("libdep.so.1", "libc.so.6"))
    abi = an_openmpi(plugin, host("libdep.so.1"))
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL), abi)
    assert copies(found)["openmpi/mca_pml_ob1.so"].rpath == GRAFT
    assert "libdep.so.1" in copies(found)
    assert not found.closed


def test_a_plugin_that_cannot_be_opened_is_named_and_is_no_error() -> None:
    plugins = (
        a_plugin("mca_a.so", needed=("libcuda.so.1",)),
        a_plugin("mca_b.so", needed=("libdep.so.1", "libc.so.6")),
        a_plugin("mca_c.so", needs=(("libc.so.6", "GLIBC_2.99", False),), needed=("libc.so.6",)),
        a_plugin("mca_d.so", needed=("libold.so.1", "libc.so.6")),
    )
    old = host("libold.so.1", needed=("libc.so.6",), needs=(("libc.so.6", "GLIBC_2.99", False),))
    abi = an_openmpi(*plugins, host("libdep.so.1", needed=("libgone.so.1",)), old)
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL), abi, glibc=False)
    assert [name for name, _ in found.closed] == ["mca_a.so", "mca_b.so", "mca_c.so", "mca_d.so"]
    reasons = dict(found.closed)
    assert "libcuda.so.1" in reasons["mca_a.so"]
    assert "libgone.so.1" in reasons["mca_b.so"]
    assert "GLIBC_2.99" in reasons["mca_c.so"]
    assert "GLIBC_2.99" in reasons["mca_d.so"]
    assert not list(lacks(found))


def test_plugins_are_opened_by_whichever_libmpi_the_program_has() -> None:
    plugin = a_plugin("libprov-fi.so", place="libfabric", needed=("libdep.so.1",))
    libmpi = host("libmpi_abi.so.1")
    abi = an_abi("mpich@5.0.2", libmpi, plugin, host("libdep.so.1"))
    found = grafted(a_world(needing(libmpi.soname)), abi)
    assert found.libmpi == f"{GRAFT}/{libmpi.soname}"
    assert "libdep.so.1" in copies(found)
