"""The guest's, the host's, both: how an injection climbs, and what it never climbs for."""

from __future__ import annotations

import pytest

from mpigraft.core.model import AbiObject, Replace
from mpigraft.graft.injection.contents import GraftContents
from mpigraft.graft.injection.fixpoint import CopyPolicy
from tests.builders.guests import LIB, NEW, OLD, an_abi, changed, libc, library
from tests.builders.injections import GRAFT, choices, copies, grafted, lacks, loads, over
from tests.builders.worlds import World, a_world, at, host, needing
from tests.unit.graft.test_injection import HOST_PAL, LIBMPI, PAL, a_plugin, an_openmpi

# ------------------------------------------------------------------ rungs


def pair(
    theirs: AbiObject, ours: AbiObject, wanted: str, *imported: str, first: str = "libuser.so.1"
) -> GraftContents:
    """The guest's library and the host's of one name; a user of the guest's, loaded first."""
    user = library("libuser.so.1", needed=(theirs.soname,), imported=(wanted,))
    program = needing(first, "libmpi.so.40", "libuser.so.1")
    abi = an_openmpi(ours, needed=(ours.soname,), imported=imported)
    return grafted(a_world(program, LIBMPI, PAL, theirs, user), abi)


def test_the_hosts_lies_over_the_guests_that_is_loaded_first() -> None:
    theirs = library("libdep.so.1", exported=("f",))
    found = pair(theirs, host("libdep.so.1", exported=("f", "g")), "f", "g")
    assert over(found)[theirs.path] == "libdep.so.1"
    assert loads(found)["libdep.so.1"] == theirs.path


def test_what_was_laid_over_is_taken_away_again_where_it_does_not_serve() -> None:
    theirs = library("libdep.so.1", exported=("f", "only"))
    found = pair(theirs, host("libdep.so.1", exported=("f", "g")), "only", "g")
    assert choices(found)["libdep.so.1"] is CopyPolicy.PRIVATE
    assert over(found) == {LIBMPI.path: "libmpi.so.40"}
    assert "libdep.so.1" not in copies(found)
    assert not list(lacks(found))


def test_one_that_is_settled_does_not_keep_another_from_it() -> None:
    """The first of two is at the top of the ladder, the second is not."""
    names = ("liba.so.1", "libb.so.1")
    theirs = [library(n, exported=(f"{n}-old",), defines=("X",)) for n in names]
    ours = [host(n, exported=(f"{n}-new",), defines=("Y",)) for n in names]
    users = [library(f"u{n}", needed=(n,), imported=(f"{n}-old",)) for n in names]
    abi = an_openmpi(
        *ours, needed=names, imported=tuple(f"{n}-new" for n in names),
        needs=(("liba.so.1", "NONE", False), ("libb.so.1", "Y", False)),
    )  # fmt: skip
    program = needing("libmpi.so.40", *(u.soname for u in users))
    found = grafted(a_world(program, LIBMPI, PAL, *theirs, *users), abi)
    assert choices(found)["libb.so.1"] is CopyPolicy.PRIVATE
    assert choices(found)["liba.so.1"] is CopyPolicy.PRIVATE
    assert list(lacks(found)) == ["NONE"]  # which the host's lacks at home, too


def test_a_network_library_has_no_ladder() -> None:
    theirs = library("libfabric.so.1", exported=("f", "only"), defines=("F_1",))
    ours = host("libfabric.so.1", exported=("f",), defines=("F_2",))
    found = pair(theirs, ours, "only", "f", "nowhere")
    assert choices(found)["libfabric.so.1"] is CopyPolicy.HOST
    assert list(lacks(found)) == ["only"]
    assert not [name for name in copies(found) if "mpigraft-lib" in name]


def test_one_that_is_there_for_another_program_makes_room_too() -> None:
    """A program without the library gets the host's, which would then serve the other one ill."""
    theirs = at("/opt/b/libdep.so.1", "libdep.so.1", exported=("only",))
    programs = {
        "/bin/a": needing("libmpi.so.40"),
        "/bin/b": changed(
            needing("libmpi.so.40", "libdep.so.1", imported=("only",)), runpath="/opt/b"
        ),
    }
    abi = an_openmpi(host("libdep.so.1", exported=("g",)), needed=("libdep.so.1",), imported=("g",))
    found = grafted(a_world(programs, theirs), abi)
    assert choices(found)["libdep.so.1"] is CopyPolicy.PRIVATE
    assert loads(found, 1)["libdep.so.1"] == theirs.path
    assert not list(lacks(found))


def test_what_no_library_of_the_guest_is_to_blame_for_changes_nothing() -> None:
    theirs = library("libdep.so.1", exported=("f",))
    found = pair(theirs, host("libdep.so.1", exported=("f",)), "nowhere", "f", "nobody")
    assert choices(found)["libdep.so.1"] is CopyPolicy.GUEST
    assert not list(lacks(found))
    own = library("libmpi.so.40", exported=("helper",))
    user = library("libuser.so.1", needed=("libdep.so.1",), imported=("helper",))
    abi = an_openmpi(
        host("libdep.so.1", exported=("f", "g")), needed=("libdep.so.1",), imported=("g",)
    )
    program = needing("libuser.so.1", "libmpi.so.40")
    found = grafted(a_world(program, own, user, theirs), abi)
    assert choices(found)["libdep.so.1"] is CopyPolicy.HOST
    assert list(lacks(found)) == ["helper"]


# ------------------------------------------------------------------ what is put in


def test_under_the_guests_mpi_only_what_the_hosts_network_misses_goes_in() -> None:
    net = host("libfabric.so.1", needed=("libnl.so.200", "libopen-pal.so.80", "libc.so.6"))
    plugin = host("libx-fi.so", opened=True, place="libfabric", needed=("libx.so.1",))
    others = (host("libnl.so.200"), host("libx.so.1"), host("libgfortran.so.5"), host("libe.so.1"))
    abi = an_openmpi(net, plugin, *others, needed=("libfabric.so.1", "libe.so.1"))
    program = needing("libmpi.so.40", "libfabric.so.1", "libgfortran.so.5")
    guest = a_world(program, LIBMPI, PAL, library("libfabric.so.1"))
    found = grafted(guest, abi, replace=Replace.LIBFABRIC)
    names = [net.soname, f"{plugin.place}/{plugin.soname}", others[0].soname, others[1].soname]
    assert sorted(copies(found)) == names
    assert [name for name in lacks(found) if "pal" in name] == [HOST_PAL.soname]
    whole = grafted(guest, abi)
    assert others[2].soname in copies(whole)


def test_the_mpis_own_parts_come_along_and_others_wait_until_they_are_missed() -> None:
    theirs = (library("libpmix.so.2"), library("libz.so.1"), library("libucp.so.0"))
    abi = an_openmpi(
        host("libpmix.so.2"), host("libz.so.1", needed=("libucp.so.0",)), host("libucp.so.0"),
        needed=("libpmix.so.2", "libz.so.1"),
    )  # fmt: skip
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL, *theirs), abi)
    assert "libpmix.so.2" in copies(found)
    assert "libz.so.1" not in copies(found)
    assert "libucp.so.0" not in copies(found)


def test_a_name_of_the_hosts_own_goes_before_its_other_names() -> None:
    theirs = library("libmpich.so.12")
    abi = an_abi("mpich@5.0.2", host(theirs.soname))
    found = grafted(a_world(needing(theirs.soname), theirs), abi)
    assert over(found)[theirs.path] == theirs.soname


def test_a_part_of_an_mpi_that_no_binding_names_is_asked_for_as_one() -> None:
    """A program that was linked with libopen-pal, as wrappers did once."""
    program = needing("libmpi.so.40", HOST_PAL.soname)
    theirs = library(HOST_PAL.soname)
    found = grafted(a_world(program, LIBMPI, PAL, theirs), an_openmpi())
    assert over(found)[theirs.path] == theirs.soname


def test_a_plugin_that_misses_a_symbol_climbs_too() -> None:
    theirs = library("libdep.so.1", exported=("f",))
    plugin = a_plugin("mca_x.so", needed=("libdep.so.1", "libc.so.6"), imported=("g",))
    abi = an_openmpi(plugin, host("libdep.so.1", exported=("f", "g")))
    found = grafted(a_world(needing("libmpi.so.40", "libdep.so.1"), LIBMPI, PAL, theirs), abi)
    assert choices(found)["libdep.so.1"] is CopyPolicy.HOST


# ------------------------------------------------------------------ glibc, of odd guests


@pytest.mark.parametrize("name", ["libm.so.6", "libdl.so.2"])
def test_a_folder_in_the_place_of_a_part_is_left_alone(name: str) -> None:
    guest = a_world(needing("libmpi.so.12"), library("libmpi.so.12"), libc(OLD))
    assert isinstance(guest.root, World)
    guest.root.folders.add(f"{LIB}/{name}")
    abi = an_abi(
        "mpich@5.0.2", host(name), host("libc.so.6", defines=NEW),
        needs=(("libc.so.6", "GLIBC_2.38", False),),
    )  # fmt: skip
    found = grafted(guest, abi)
    assert found.glibc
    assert f"{LIB}/{name}" not in over(found)
    assert loads(found)["libmpi.so.12"].startswith((LIB, GRAFT))


def test_a_library_in_glibcs_folder_is_no_part_of_glibc() -> None:
    beside = library("libz.so.1")
    guest = a_world(
        needing("libmpi.so.12", "libz.so.1"), library("libmpi.so.12"), beside, libc(OLD)
    )
    abi = an_abi(
        "mpich@5.0.2", host("libz.so.1"), host("libc.so.6", defines=NEW),
        needs=(("libc.so.6", "GLIBC_2.38", False),), needed=("libz.so.1", "libc.so.6"),
    )  # fmt: skip
    found = grafted(guest, abi)
    assert beside.path not in over(found)
    assert choices(found)["libz.so.1"] is CopyPolicy.GUEST


# ------------------------------------------------------------------ who opens, who is who


def after(found: GraftContents) -> list[str]:
    return [str(r.path) for r in found.programs[0].after]


def test_the_guests_plugins_are_opened_as_long_as_their_opener_is_the_guests() -> None:
    theirs = library("libfabric.so.1", needed=("libc.so.6",))
    own = library("libmpi.so.40", needed=("libfabric.so.1", "libc.so.6"))
    mca = at("/opt/mca_mtl_ofi.so", "mca_mtl_ofi.so")
    provider = at("/opt/liby-fi.so", "liby-fi.so")
    opened = {"libmpi.so.40": (mca.path,), "libfabric.so.1": (provider.path,)}
    found = grafted(
        a_world(needing("libmpi.so.40"), own, theirs, mca, provider),
        an_openmpi(host("libfabric.so.1")),
        replace=Replace.LIBFABRIC,
        opened=opened,
    )
    assert mca.path in after(found)
    assert provider.path not in after(found)


def test_a_provider_is_opened_by_libfabric_and_not_by_the_mpi() -> None:
    plugin = host("libx-fi.so", opened=True, place="libfabric")
    abi = an_openmpi(host("libfabric.so.1"), plugin)
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL), abi, replace=Replace.LIBFABRIC)
    assert f"{GRAFT}/{plugin.place}/{plugin.soname}" not in after(found)


def test_one_file_under_two_names_is_loaded_once() -> None:
    theirs = at("/opt/mpi/libmpich.so.12", "libmpich.so.12")
    program = changed(needing("libmpich.so.12", "libmpi.so.12"), rpath="/opt/mpi")
    found = grafted(a_world(program, theirs), an_abi("mpich@5.0.2"))
    assert [name for name in loads(found) if name.startswith("libmpi")] == [theirs.soname]
    assert choices(found)["libmpich.so.12"] is CopyPolicy.HOST


def test_a_path_counts_by_the_soname_behind_it() -> None:
    special = at("/opt/mpi/special.so", "libmpi.so.40")
    found = grafted(a_world(needing(special.path), special), an_openmpi())
    assert over(found) == {special.path: "libmpi.so.40"}


def test_a_name_counts_as_it_is_asked_for() -> None:
    other = at(f"{LIB}/libother.so.1", "libopen-pal.so.80")
    found = grafted(
        a_world(needing("libother.so.1", "libmpi.so.40"), LIBMPI, PAL, other), an_openmpi()
    )
    assert other.path not in over(found)


def test_who_needs_a_private_copy_gets_all_its_names() -> None:
    """What it asks for weakly is not among what it has to have."""
    theirs = library("libdep.so.1", exported=("old",))
    found = pair(theirs, host("libdep.so.1", exported=("new", "more")), "old", "new")
    names = (("more", "mpigraft-more"), ("new", "mpigraft-new"))
    assert copies(found)["libmpi.so.40"].symbols == names
