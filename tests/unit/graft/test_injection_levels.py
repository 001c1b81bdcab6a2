"""One graft for every CPU: the loader takes other files of a guest on other CPUs."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from mpigraft.binary.architecture.levels import HERE, LEVELS, V2, V3, V4
from mpigraft.core.model import Level, MpiAbi, Replace
from mpigraft.graft.check.check_input import CheckInput
from mpigraft.graft.check.fit import check_fit, fitting_programs
from mpigraft.graft.guest.examination import Guest, own_mpi_of
from mpigraft.graft.injection.contents import decide_contents
from mpigraft.graft.injection.fixpoint import GraftRequest
from tests.builders.guests import APP, LIB, OPENMPI, PLACE, an_abi
from tests.builders.injections import copies, over
from tests.builders.worlds import a_world, at, host, needing

NEW = b"\0".join([
    b"\x7fELF", b"/lib/x86_64-linux-gnu/", b"/usr/lib/x86_64-linux-gnu/", b"/lib64/",
    b"/usr/lib64/", b"lib/x86_64-linux-gnu", b"x86-64-v4:x86-64-v3:x86-64-v2", b"",
])  # fmt: skip
FOLDERS = ("glibc-hwcaps/x86-64-v4", "glibc-hwcaps/x86-64-v3", "glibc-hwcaps/x86-64-v2", "")
V2_LIB = f"{LIB}/glibc-hwcaps/x86-64-v2"


def a_copy(folder: str, name: str = "libmpi.so.40", **facts: object) -> object:
    path = "/".join(filter(None, (LIB, folder, name)))
    return at(path, name, exported=OPENMPI.exported, needed=("libc.so.6",), **facts)


def guest_with(*libraries: object, needed: str = "libmpi.so.40", **facts: object) -> Guest:
    program = needing(needed, **facts)
    return a_world(program, *libraries, loader=NEW)  # type: ignore[arg-type]


def grafted_on(flags: frozenset[str] | None, guest: Guest, abi: MpiAbi) -> dict[str, str]:
    return over(
        decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE, flags=flags))
    )


def test_the_graft_is_over_the_copies_for_every_cpu() -> None:
    guest = guest_with(*(a_copy(folder) for folder in FOLDERS))
    binds = grafted_on(V3, guest, an_abi("openmpi@5.0.11"))
    places = {"/".join(filter(None, (LIB, f, "libmpi.so.40"))) for f in FOLDERS}
    assert binds == dict.fromkeys(places, "libmpi.so.40")


@given(
    st.sets(st.sampled_from(FOLDERS), min_size=1),
    st.sets(st.sampled_from(FOLDERS)),
    st.sampled_from([frozenset[str](), V2, V3, V4, None]),
)
def test_a_graft_does_not_depend_on_the_cpu_that_plans_it(
    mpi: set[str], other: set[str], flags: frozenset[str] | None
) -> None:
    """Whatever a CPU would load of MPI in the bare guest is the host's in the graft."""
    copies_of_guest = [*(a_copy(f) for f in mpi), *(a_copy(f, "libz.so.1") for f in other)]
    guest = guest_with(*copies_of_guest)
    abi = an_abi("openmpi@5.0.11", host("libz.so.1"), needed=("libz.so.1", "libc.so.6"))
    found = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE, flags=flags))
    again = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE, flags=None))
    assert (over(found), copies(found).keys()) == (over(again), copies(again).keys())
    levels = {*LEVELS["x86_64"], *([] if flags is None else [HERE])}
    covered = [level for one in found.programs for level in one.levels or levels]
    assert sorted(covered) == sorted(levels)
    binds = over(found)
    for one in found.programs:
        libmpi = next(r for r in one.after if r.name == "libmpi.so.40")
        assert str(libmpi.path) in binds or str(libmpi.path).startswith(PLACE)


def test_a_library_goes_in_that_one_cpu_alone_lacks() -> None:
    """The copy of libz for CPUs of level 3 needs nothing; the others' libz needs what is absent."""
    guest = guest_with(
        a_copy(""), a_copy(FOLDERS[1], "libz.so.1"),
        at(f"{LIB}/libz.so.1", "libz.so.1", exported=OPENMPI.exported, needed=("libx.so.1",)),
    )  # fmt: skip
    abi = an_abi(
        "openmpi@5.0.11", host("libz.so.1"), host("libx.so.1"), needed=("libz.so.1", "libc.so.6")
    )
    found = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE, flags=V3))
    assert "libx.so.1" in copies(found)


def test_what_fails_on_other_cpus_alone_is_a_warning_here() -> None:
    """Only the copy of liba for CPUs of level 2 needs a library that nobody has."""
    broken = at(
        f"{V2_LIB}/liba.so.1", "liba.so.1", needed=("libgone.so.1",), exported=OPENMPI.exported
    )
    good = at(f"{LIB}/glibc-hwcaps/x86-64-v3/liba.so.1", "liba.so.1", exported=OPENMPI.exported)
    program = needing("libmpi.so.40", "liba.so.1")
    guest = a_world(program, OPENMPI, good, broken, loader=NEW)
    guest = replace(guest, label=replace(guest.label, env_program="/usr/bin/env"))
    abi = an_abi("openmpi@5.0.11")
    found = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE, flags=V3))
    verdict = check_fit(CheckInput(guest, abi, found))
    assert verdict.ok
    (warning,) = [f for f in verdict.findings if f.code == "levels-differ"]
    assert warning.level is Level.WARNING
    assert "libgone.so.1" in warning.message
    assert "x86-64-v2" in warning.message
    for flags in (V2, None):  # the CPU is of that level; which CPU is not known
        found = decide_contents(
            guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE, flags=flags)
        )
        assert not check_fit(CheckInput(guest, abi, found)).ok
        assert fitting_programs(CheckInput(guest, abi, found)) == ()
    found = decide_contents(guest, abi, GraftRequest(replace=Replace.MPI, place=PLACE, flags=V3))
    assert fitting_programs(CheckInput(guest, abi, found)) == (APP,)


def test_the_guests_own_libmpi_has_its_paths_on_all_cpus() -> None:
    guest = guest_with(*(a_copy(folder) for folder in FOLDERS))
    own = own_mpi_of(guest)
    assert own
    paths = {"/".join(filter(None, (LIB, f, "libmpi.so.40"))) for f in FOLDERS}
    assert {own.libmpi, *own.elsewhere} == paths
    found = decide_contents(
        guest, an_abi("openmpi@5.0.11"), GraftRequest(replace=Replace.LIBFABRIC, place=PLACE)
    )
    assert {found.libmpi, *found.libmpi_elsewhere} == paths
