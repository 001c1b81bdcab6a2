"""glibc: the guest's, unless it is too old; then the host's, whole, file by file and in place."""

from __future__ import annotations

import pytest

from mpigraft.core.model import AbiObject, MpiAbi
from tests.builders.guests import LIB, NEW, OLD, an_abi, changed, libc, library
from tests.builders.injections import GRAFT, copies, grafted, lacks, loads, over
from tests.builders.worlds import a_world, at, host, needing

PARTS = ("libm.so.6", "libpthread.so.0", "libdl.so.2", "libmvec.so.1", "ld-linux-x86-64.so.2")
INTERPRETER = "/lib64/ld-linux-x86-64.so.2"
NEEDS = (("libc.so.6", "GLIBC_2.38", False),)
MERGED = {"/lib": "usr/lib", "/lib64": "usr/lib64"}


def an_mpich(*more: AbiObject, needs: tuple[tuple[str, str, bool], ...] = NEEDS) -> MpiAbi:
    parts = [host(name) for name in PARTS]
    return an_abi("mpich@5.0.2", *more, *parts, host("libc.so.6", defines=NEW), needs=needs)


PROGRAM = needing("libmpi.so.12", "libm.so.6")
LIBMPI = library("libmpi.so.12")


def theirs(*names: str, folder: str = LIB) -> list[AbiObject]:
    return [at(f"{folder}/{name}", name) for name in names]


def test_a_guest_whose_glibc_will_do_keeps_it() -> None:
    guest = a_world(PROGRAM, LIBMPI, *theirs("libm.so.6"), libc(OLD))
    found = grafted(guest, an_mpich(needs=(("libc.so.6", "GLIBC_2.34", False),)))
    assert not found.glibc
    assert not found.glibc_lacking
    assert not [name for name in copies(found) if name.startswith("glibc/")]
    assert loads(found)["libc.so.6"] == f"{LIB}/libc.so.6"


def test_too_old_a_glibc_is_laid_over_whole_with_all_names_that_the_guest_has() -> None:
    """libdl and libpthread too, though no program asks for them: the next one may."""
    loader = at("/usr/lib64/ld-linux-x86-64.so.2", "ld-linux-x86-64.so.2")
    parts = theirs("libm.so.6", "libpthread.so.0", "libdl.so.2")
    found = grafted(a_world(PROGRAM, LIBMPI, *parts, loader, libc(OLD), links=MERGED), an_mpich())
    assert found.glibc
    assert found.glibc_lacking == ("GLIBC_2.38",)
    assert {t: s for t, s in over(found).items() if t != LIBMPI.path} == {
        one.path: f"glibc/{one.soname}" for one in (*parts, loader, libc(OLD))
    }
    assert not list(lacks(found))
    for name, copy in copies(found).items():
        assert copy.edit is not name.startswith("glibc/")
        assert bool(copy.rpath) is copy.edit


def test_real_names_of_older_releases_are_what_is_laid_over() -> None:
    """Until 2.33 libc.so.6 was a link to libc-2.31.so; a bind on a link lies over its target."""
    real = {"libc.so.6": "libc-2.31.so", "libm.so.6": "libm-2.31.so"}
    files = [at(f"{LIB}/{path}", name) for name, path in real.items()]
    loader = at(f"{LIB}/ld-2.31.so", "ld-linux-x86-64.so.2")
    links = {f"{LIB}/{name}": path for name, path in real.items()}
    links |= {"/lib": "usr/lib", INTERPRETER: "/lib/x86_64-linux-gnu/ld-2.31.so"}
    files[0] = at(f"{LIB}/libc-2.31.so", "libc.so.6", defines=OLD)
    found = grafted(a_world(PROGRAM, LIBMPI, *files, loader, links=links), an_mpich())
    due = {one.path: f"glibc/{one.soname}" for one in (*files, loader)}
    assert over(found) == {LIBMPI.path: LIBMPI.soname, **due}
    assert not list(lacks(found))


def test_a_loader_elsewhere_and_its_libc_are_the_ones_that_are_replaced() -> None:
    program = changed(PROGRAM, interpreter="/opt/libc/ld-linux-x86-64.so.2", rpath="/opt/libc")
    own = theirs("libm.so.6", "ld-linux-x86-64.so.2", folder="/opt/libc")
    own_libc = at("/opt/libc/libc.so.6", "libc.so.6", defines=OLD)
    found = grafted(a_world(program, LIBMPI, *own, own_libc), an_mpich())
    due = {one.path for one in (*own, own_libc)}
    assert {t for t, s in over(found).items() if s.startswith("glibc/")} == due


def test_a_loader_under_another_name_is_replaced_too() -> None:
    """patchelf and some stacks write the file's own name into programs, not the link's."""
    path = "/opt/libc/ld-2.31.so"
    program = changed(PROGRAM, interpreter=path, rpath="/opt/libc")
    loader = at(path, "ld-linux-x86-64.so.2")
    own_libc = at("/opt/libc/libc.so.6", "libc.so.6", defines=OLD)
    found = grafted(a_world(program, LIBMPI, loader, own_libc), an_mpich())
    assert over(found)[path] == f"glibc/{loader.soname}"


def test_no_part_of_the_old_one_stays_in_another_folder() -> None:
    """Some systems keep a libm for newer CPUs in a folder of its own."""
    program = changed(PROGRAM, rpath="/opt/fast")
    fast = at("/opt/fast/libm.so.6", "libm.so.6")
    found = grafted(a_world(program, LIBMPI, fast, libc(OLD)), an_mpich())
    assert over(found)[fast.path] == f"glibc/{fast.soname}"


def test_a_part_that_the_guest_lacks_comes_with_the_set_and_not_alone() -> None:
    vector = host("libvector.so.1", needed=("libmvec.so.1",))
    needed = ("libvector.so.1", "libc.so.6")
    for node, whole in (("GLIBC_2.38", True), ("GLIBC_2.34", False)):
        needs = (("libc.so.6", node, False),)
        abi = an_abi(
            "mpich@5.0.2", vector, host("libmvec.so.1"), host("libc.so.6", defines=NEW),
            needs=needs, needed=needed,
        )  # fmt: skip
        found = grafted(a_world(PROGRAM, LIBMPI, *theirs("libm.so.6"), libc(OLD)), abi)
        assert found.glibc is whole
        if whole:
            (name,) = vector.needed
            assert loads(found)[name] == f"{GRAFT}/{name}"
            assert not copies(found)["libmvec.so.1"].edit
        assert list(lacks(found)) == ([] if whole else ["libmvec.so.1"])


def test_no_glibc_keeps_the_guests_glibc() -> None:
    guest = a_world(PROGRAM, LIBMPI, *theirs("libm.so.6"), libc(OLD))
    found = grafted(guest, an_mpich(), glibc=False)
    assert not found.glibc
    assert found.glibc_lacking == ("GLIBC_2.38",)
    assert list(over(found)) == [LIBMPI.path]
    assert list(lacks(found)) == ["GLIBC_2.38"]


def test_a_dependency_alone_may_need_the_newer_glibc() -> None:
    deep = host("libdeep.so.1", needed=("libc.so.6",), needs=NEEDS)
    abi = an_mpich(deep, needs=())
    abi = an_abi(abi.mpi, *abi.objects[1:], needed=("libdeep.so.1", "libc.so.6"))
    guest = a_world(PROGRAM, LIBMPI, *theirs("libm.so.6"), libc(OLD))
    assert grafted(guest, abi).glibc
    own = library("libdeep.so.1", needed=("libc.so.6",))
    guest = a_world(PROGRAM, LIBMPI, own, *theirs("libm.so.6"), libc(OLD))
    assert not grafted(guest, abi).glibc  # the guest's own serves, and asks for nothing newer


@pytest.mark.parametrize("weak", [True, False])
def test_a_weak_need_is_no_need(weak: bool) -> None:
    guest = a_world(PROGRAM, LIBMPI, *theirs("libm.so.6"), libc(OLD))
    assert grafted(guest, an_mpich(needs=(("libc.so.6", "GLIBC_2.38", weak),))).glibc is not weak


def test_a_program_that_was_too_new_for_its_own_guest_is_not_mended() -> None:
    sick = needing("libmpi.so.12", "libm.so.6", needs=NEEDS)
    found = grafted(a_world(sick, LIBMPI, *theirs("libm.so.6"), libc(OLD)), an_mpich(needs=()))
    assert not found.glibc
