"""Smaller rules of an injection: symbols of private copies, our own programs, what is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from mpigraft.core.model import AbiObject, MpiAbi, Replace
from mpigraft.graft.injection.contents import GraftContents, decide_contents
from mpigraft.graft.injection.fixpoint import CopyPolicy, GraftRequest, GraftState, load_bare
from mpigraft.graft.injection.private_names import PrivateNames
from tests.builders.elf import program
from tests.builders.guests import APP, C_SYMBOLS, LIB, PLACE, an_abi, libc, library
from tests.builders.injections import GRAFT, choices, copies, grafted, lacks, loads, only, over
from tests.builders.messages import shows
from tests.builders.worlds import a_world, at, host, needing
from tests.unit.graft.test_injection import LIBMPI, PAL, a_plugin, an_openmpi

# ------------------------------------------------------------------ symbols of a private copy


def split(*more: AbiObject, plugin: tuple[str, ...] = ()) -> GraftContents:
    """Both sides' libdep.so.1 lack what the other side needs; `same` is in both."""
    theirs = library("libdep.so.1", exported=("same", "old", "everywhere"))
    ours = host("libdep.so.1", exported=("same", "new", "everywhere"), imported=("same",))
    user = library("libuser.so.1", needed=("libdep.so.1",), imported=("same", "old"))
    abi = an_openmpi(
        ours, *more, needed=("libdep.so.1", *(o.soname for o in more if not o.opened)),
        imported=("new", "same"),
    )  # fmt: skip
    return grafted(a_world(needing("libmpi.so.40", "libuser.so.1"), LIBMPI, PAL, theirs, user), abi)


def test_a_private_copy_has_symbols_of_its_own() -> None:
    """Else the loader would give the guest's library the copy's `same`, or the other way round."""
    found = split(host("libelse.so.1", exported=("everywhere",)))
    names = (("new", "mpigraft-new"), ("same", "mpigraft-same"))  # not what others define too
    assert copies(found)["mpigraft-libdep.so.1"].symbols == names
    assert copies(found)["libmpi.so.40"].symbols == names
    assert copies(found)["libelse.so.1"].symbols == ()
    assert not list(lacks(found))


def test_one_that_uses_it_without_saying_so_is_led_there_too() -> None:
    found = split(host("libloose.so.1", imported=("same", "mine")))
    assert copies(found)["libloose.so.1"].symbols == (("same", "mpigraft-same"),)


def test_a_library_keeps_the_names_of_what_it_shares_with_the_guest() -> None:
    own, other = (library(f"lib{n}.so.1", exported=(n,)) for n in ("own", "other"))
    user = library("libuser.so.1", needed=("libown.so.1",), imported=("own", "other"))
    naming = PrivateNames(
        (own, other, user), {o.soname: o for o in (own, other)}, (own.soname, other.soname)
    )
    assert dict(naming.symbols(user, [own.soname])) == {s: f"mpigraft-{s}" for s in other.exported}
    assert naming.symbols(own, [own.soname]) == ()
    assert len(naming.symbols(user)) == 2
    assert naming.library_for("libelse.so.1") is None
    assert not naming.is_mpi(own.soname)
    assert PrivateNames((PAL,), {PAL.soname: PAL}, ()).is_mpi(PAL.soname)


def test_where_nothing_is_private_no_symbol_is_renamed() -> None:
    abi = an_openmpi(host("libdep.so.1", exported=("same",)), needed=("libdep.so.1",))
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL), abi)
    assert not [copy for copy in found.copies if copy.symbols or copy.soname or copy.renamed]


def test_each_choice_says_why() -> None:
    private = split()
    assert [c.why.partition(":")[0] for c in private.collisions if c.soname == "libdep.so.1"] == [
        "neither has all that the other side needs"
    ]
    theirs = library("libdep.so.1", exported=("f",))
    for wanted, why in (("f", "it has all"), ("g", "the guest's lacks")):
        ours = host("libdep.so.1", exported=("f", "g"))
        abi = an_openmpi(ours, needed=("libdep.so.1",), imported=(wanted,))
        found = grafted(a_world(needing("libmpi.so.40", "libdep.so.1"), LIBMPI, PAL, theirs), abi)
        whys = {c.soname: c for c in found.collisions}
        assert whys["libdep.so.1"].why.startswith(why)
        assert whys["libdep.so.1"].guest == theirs.path
        assert whys["libdep.so.1"].host == ours.path
        assert shows(whys["libmpi.so.40"].why, "part of the MPI")
        assert set(whys) == {"libdep.so.1", "libmpi.so.40"}  # and not glibc


# ------------------------------------------------------------------ our own programs


def test_our_program_is_simulated_as_the_guests_are(tmp_path: Path) -> None:
    bench = program(tmp_path / "bench")
    guest = a_world(needing("libmpi.so.40"), LIBMPI, PAL)
    built = program(tmp_path / "built", needs=[_shared(tmp_path, "libmpi.so.40")])
    for file, needed in ((bench, []), (built, ["libmpi.so.40", "libopen-pal.so.80", "libc.so.6"])):
        found = decide_contents(
            guest,
            an_openmpi(),
            GraftRequest(replace=Replace.MPI, place=PLACE, ours={"bin/bench": file}),
        )
        assert [one.program for one in found.programs] == [APP, f"{PLACE}/bin/bench"]
        ours = found.programs[1]
        assert ours.main.rpath == GRAFT
        assert [r.name for r in ours.after] == needed
        assert not list(lacks(found))
    assert loads(found, 1)[LIBMPI.soname] == f"{GRAFT}/{LIBMPI.soname}"
    assert [r.name for r in ours.before] == [LIBMPI.soname, *LIBMPI.needed]


def _shared(folder: Path, soname: str) -> Path:
    from tests.builders.elf import compiled

    return compiled(folder / soname, soname=soname)


# ------------------------------------------------------------------ what is opened by name


NET = host("libx-fi.so", opened=True, place="libfabric", needed=("libnl.so.200", "libc.so.6"))


def test_providers_go_with_libfabric_and_what_theirs_opened_is_no_longer() -> None:
    theirs = library("libfabric.so.1", needed=("libc.so.6",))
    provider = at("/opt/liby-fi.so", "liby-fi.so", needed=("libold.so.1",))
    own_mpi = library("libmpi.so.40", needed=("libfabric.so.1", "libc.so.6"))
    deps = (host("libnl.so.200"), host("libold.so.1"), host("libidle.so.1"))
    mca = a_plugin("mca_z.so", needed=("libidle.so.1",))
    found = grafted(
        a_world(needing("libmpi.so.40"), own_mpi, theirs, provider),
        an_openmpi(host("libfabric.so.1"), NET, mca, *deps),
        replace=Replace.LIBFABRIC,
        opened={"libfabric.so.1": (provider.path,)},
    )
    net = f"{NET.place}/{NET.soname}"
    assert sorted(copies(found)) == [theirs.soname, net, deps[0].soname]
    assert f"{GRAFT}/{net}" in [str(r.path) for r in only(found).after]
    assert provider.path in [str(r.path) for r in only(found).before]
    assert provider.path not in [str(r.path) for r in only(found).after]


def test_what_the_guests_own_mpi_opened_is_no_matter_under_the_hosts() -> None:
    gone = at("/opt/mca_old.so", "mca_old.so", needed=("libgone.so.1", "libc.so.6"))
    found = grafted(
        a_world(needing("libmpi.so.40"), LIBMPI, PAL, gone),
        an_openmpi(),
        opened={"libmpi.so.40": (gone.path,)},
    )
    assert gone.path not in [str(r.path) for r in only(found).after]
    assert not [*found.closed, *lacks(found)]


def test_a_program_that_the_mpi_starts_lies_beside_its_libraries() -> None:
    daemon = host("orted", opened=True, place="bin", needed=("libc.so.6",))
    plugin = a_plugin("mca_x.so")
    abi = replace(an_openmpi(plugin), programs=(daemon,))
    guest = a_world(needing("libmpi.so.40"), LIBMPI, PAL)
    due = {f"bin/{daemon.soname}", f"lib/{plugin.place}/{plugin.soname}"}
    assert due <= {copy.name for copy in grafted(guest, abi).copies}
    assert "bin/orted" not in copies(grafted(guest, abi, replace=Replace.LIBFABRIC))


def test_fortran_alone_opens_no_plugins() -> None:
    plugin = a_plugin("mca_x.so", needed=("libdep.so.1",))
    fortran = host("libmpi_mpifh.so.40", needed=("libc.so.6",))
    abi = an_openmpi(plugin, fortran, host("libdep.so.1"))
    found = grafted(a_world(needing("libmpi_mpifh.so.40")), abi)
    assert "libdep.so.1" not in copies(found)


def test_symbols_that_a_plugin_misses_are_no_error_of_the_program() -> None:
    plugin = a_plugin("mca_x.so", needed=("libdep.so.1", "libc.so.6"), imported=("newfn",))
    deep = host("libdep.so.1", needed=("libc.so.6",), imported=("newfn",))
    abi = an_abi("openmpi@5.0.11", plugin, deep, libc_with("newfn"))
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL), abi)
    assert "libdep.so.1" in copies(found)
    assert not list(lacks(found))


def libc_with(*exported: str) -> AbiObject:
    return host("libc.so.6", defines=libc().defines, exported=exported)


def test_symbols_that_only_the_host_can_bind_are_reported() -> None:
    """Those that nobody has at home either are never called."""
    abi = an_abi("openmpi@5.0.11", libc_with("newfn"), imported=("newfn", "nowhere"))
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL), abi)
    assert list(lacks(found)) == ["newfn"]


# ------------------------------------------------------------------ names and paths


def test_a_library_without_a_soname_goes_by_its_file() -> None:
    nameless = at("/opt/lib/libmpi.so.40", "", exported=C_SYMBOLS)
    found = grafted(a_world(needing(nameless.path), nameless), an_openmpi())
    assert over(found) == {nameless.path: LIBMPI.soname}


def test_a_name_that_is_asked_for_as_a_name_counts_as_asked() -> None:
    """libmpi.so.12 may be a link to a library that calls itself libmpi_cray.so.12."""
    odd = at(f"{LIB}/libmpi.so.12", "libmpi_cray.so.12", exported=C_SYMBOLS)
    found = grafted(a_world(needing("libmpi.so.12"), odd), an_abi("mpich@5.0.2"))
    assert over(found) == {odd.path: "libmpi.so.12"}


def test_the_libmpi_is_the_c_library_by_its_own_path() -> None:
    real = at("/opt/mpi/libmpi.so.40.1", "libmpi.so.40")
    fortran = library("libmpi_mpifh.so.40", needed=("libmpi.so.40",))
    guest = a_world(
        needing("libmpi_mpifh.so.40", "libmpi.so.40"), real, fortran,
        links={f"{LIB}/libmpi.so.40": "/opt/mpi/libmpi.so.40.1"},
    )  # fmt: skip
    abi = an_openmpi(host("libmpi_mpifh.so.40", needed=("libmpi.so.40",)))
    assert grafted(guest, abi).libmpi == real.path
    nothing = grafted(a_world(needing("libmpi.so.12")), an_openmpi())
    assert nothing.libmpi == ""


def test_what_is_lost_with_the_guests_mpi_is_missing() -> None:
    """A library that only the search path of the guest's libmpi led to."""
    hidden = at("/opt/hidden/libhelper.so.1", "libhelper.so.1")
    theirs = library("libmpi.so.40", needed=(hidden.soname,), rpath="/opt/hidden")
    deep = library("libdeep.so.1", needed=(hidden.soname,))
    user = library("libuser.so.1", needed=("libdeep.so.1",))
    found = grafted(
        a_world(needing("libmpi.so.40", "libuser.so.1"), theirs, hidden, deep, user), an_openmpi()
    )
    assert list(lacks(found)) == [hidden.soname]
    assert only(found).missing[0].needed_by == Path(deep.path)


@pytest.mark.parametrize("name", ["GLIBC_2.9", "GLIBC_2.10"])
def test_missing_version_nodes_are_counted(name: str) -> None:
    needs = tuple(("libc.so.6", node, False) for node in ("GLIBC_2.10", "GLIBC_2.9"))
    old = libc(("GLIBC_2.2.5",))
    abi: MpiAbi = an_abi("openmpi@5.0.11", needs=needs)
    found = grafted(a_world(needing("libmpi.so.40"), LIBMPI, PAL, old), abi, glibc=False)
    assert found.glibc_lacking == ("GLIBC_2.9", "GLIBC_2.10")
    assert name in list(lacks(found))
    assert not only(found).broken


NEW_NODE = (("libc.so.6", "GLIBC_2.99", False),)
OLD_LIBC = libc(("GLIBC_2.2.5",))


@pytest.mark.parametrize("who", ["the program", "a preloaded library", "an opened plugin", "none"])
def test_what_the_guests_own_loader_refuses_starts_with_no_mpi_either(who: str) -> None:
    """A plugin is refused alone: the program goes on without it."""
    needs = {who: NEW_NODE}
    preloaded, plugin = (
        at(f"/opt/{name}", name, needed=("libc.so.6",), needs=needs.get(one, ()))
        for name, one in (("hook.so", "a preloaded library"), ("mca_x.so", "an opened plugin"))
    )
    main = needing("libmpi.so.40", "libc.so.6", needs=needs.get("the program", ()))
    world = (LIBMPI, PAL, OLD_LIBC, preloaded, plugin)
    found = grafted(
        a_world(main, *world, environment={"LD_PRELOAD": "/opt/hook.so"}),
        an_abi("openmpi@5.0.11"),
        replace=Replace.LIBFABRIC,
        opened={"libmpi.so.40": (plugin.path,)},
    )
    refused = {"the program": APP, "a preloaded library": preloaded.path}
    assert [u.by for u in only(found).broken] == [p for w, p in refused.items() if w == who]
    assert not only(found).unmet


def test_a_library_of_both_sides_is_one_collision() -> None:
    theirs = library("libfabric.so.1")
    guest = a_world(needing("libmpi.so.40", "libfabric.so.1"), LIBMPI, PAL, theirs)
    found = grafted(guest, an_openmpi(host("libfabric.so.1"), needed=("libfabric.so.1",)))
    rows = [(c.soname, c.guest) for c in found.collisions]
    assert rows == [(one.soname, one.path) for one in (theirs, LIBMPI)]
    assert set(choices(found).values()) == {CopyPolicy.HOST}


# ------------------------------------------------------------------ several MPIs, one guest


def test_a_program_without_a_graft_is_loaded_once_for_all_mpis() -> None:
    guest = a_world(needing("libmpi.so.40"), LIBMPI, PAL)
    requests = [GraftRequest(replace=r, place=PLACE) for r in (Replace.MPI, Replace.NOTHING)]
    first, second = (load_bare(GraftState(guest, an_openmpi(), one), APP) for one in requests)
    assert first is second


@pytest.mark.parametrize("present", [False, True])
def test_an_image_may_preload_what_is_not_there_but_not_what_lacks_a_library(
    present: bool,
) -> None:
    """The loader reports the first and goes on; the second it refuses."""
    libraries = [library("libmpi.so.40", exported=C_SYMBOLS)]
    libraries += [at("/opt/hook.so", "hook.so", needed=("libgone.so.1",))] if present else []
    guest = a_world(
        needing("libmpi.so.40"), *libraries, environment={"LD_PRELOAD": "/opt/hook.so libx.so"}
    )
    missing = [r.name for r in only(grafted(guest, an_abi("openmpi@5.0.11"))).after if not r.path]
    assert missing == ["libgone.so.1"] * present
