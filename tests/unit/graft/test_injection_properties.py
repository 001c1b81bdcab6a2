"""Whatever libraries meet: an injection ends, says the same twice, and stays in its place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.model import AbiObject, MpiAbi, Replace, Role
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.injection import contents
from mpigraft.graft.injection.contents import GraftContents
from mpigraft.graft.injection.fixpoint import CopyPolicy, GraftState, improve
from mpigraft.graft.injection.simulation import Loaded
from tests.builders.guests import LIB, NEW, OLD, PLACE, an_abi, changed, libc
from tests.builders.injections import copies, grafted, in_lib
from tests.builders.worlds import a_world, at, host, needing

SONAMES = (
    "libd0.so.1", "libd1.so.1", "libd2.so.1", "libfabric.so.1", "libopen-pal.so.80",
    "libmpi.so.40", "libmpi_mpifh.so.40",
)  # fmt: skip
NODES = ("N_1", "N_2")
SYMBOLS = ("f", "g", "h@@N_1", "MPI_Init")
WANTED = ("f", "g", "h@N_1", "MPI_Init")
FOLDERS = (LIB, "/opt/a", "/opt/b")
PATHS = st.sampled_from(["", "/opt/a", "/opt/b:/opt/a", f"{PLACE}/lib/../../opt/a", "$ORIGIN"])


def some(values: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), unique=True, max_size=3).map(tuple)


def needs_of(
    libraries: tuple[str, ...], nodes: tuple[str, ...]
) -> tuple[tuple[str, str, bool], ...]:
    return tuple((name, node, False) for name, node in zip(libraries, nodes, strict=False))


@st.composite
def facts(draw: st.DrawFn) -> dict[str, object]:
    needed = draw(some(SONAMES))
    needs = needs_of(needed, draw(some(NODES)))
    if draw(st.integers(0, 9)) == 0:
        needs = (*needs, ("libc.so.6", "GLIBC_2.38", False))
    return {
        "needed": (*needed, "libc.so.6"),
        "needs": needs,
        "defines": draw(some(NODES)),
        "exported": draw(some(SYMBOLS)),
        "imported": draw(some(WANTED)),
        "rpath": draw(PATHS),
    }


@st.composite
def guests(draw: st.DrawFn) -> Guest:
    programs = {}
    for name in draw(st.sampled_from([("a",), ("a", "b")])):
        has = draw(facts())
        del has["defines"], has["exported"]
        program = needing(*has.pop("needed"), **has)  # type: ignore[misc]
        programs[f"/bin/{name}"] = changed(program, rpath=draw(PATHS) or None)
    places = draw(
        st.lists(
            st.tuples(st.sampled_from(FOLDERS), st.sampled_from(SONAMES)), unique=True, max_size=8
        )
    )
    libraries = [at(f"{folder}/{name}", name, **draw(facts())) for folder, name in places]
    links = {
        f"/opt/b/{name}": f"{folder}/{name}"
        for folder, name in places
        if folder == LIB and ("/opt/b", name) not in places and draw(st.booleans())
    }
    environment = draw(st.sampled_from([{}, {"LD_LIBRARY_PATH": "/opt/b"}]))
    return a_world(programs, *libraries, libc(OLD), links=links, environment=environment)


@st.composite
def mpis(draw: st.DrawFn) -> MpiAbi:
    libraries: list[AbiObject] = [
        host(name, **draw(facts())) for name in draw(some(SONAMES[:5] + SONAMES[6:]))
    ]
    if draw(st.booleans()):
        libraries.append(host("mca_x.so", opened=True, place="openmpi", **draw(facts())))
    return an_abi("openmpi@5.0.11", *libraries, host("libc.so.6", defines=NEW), **draw(facts()))


ASKED = st.tuples(guests(), mpis(), st.sampled_from(Replace), st.booleans())


def tried(asked: tuple[Guest, MpiAbi, Replace, bool]) -> tuple[GraftContents, int]:
    """What came of it, and in how many steps."""
    guest, abi, replace, glibc = asked
    steps = []

    def counted(state: GraftState, after: Sequence[Loaded]) -> bool:
        steps.append(state)
        return improve(state, after)

    with patch.object(contents, "improve", counted):
        found = grafted(guest, abi, replace=replace, glibc=glibc)
    return found, len(steps)


@given(ASKED)
def test_injection_terminates_and_is_deterministic(
    asked: tuple[Guest, MpiAbi, Replace, bool],
) -> None:
    found, steps = tried(asked)
    libraries = len(asked[1].objects)
    files = len(list(asked[0].root.files()))
    # In, over each file, and two rungs of the ladder for each library; and glibc, and the search.
    assert steps <= 3 * libraries + files + 3
    assert tried(asked) == (found, steps)


@given(ASKED)
def test_only_files_that_the_guests_loader_takes_are_laid_over(
    asked: tuple[Guest, MpiAbi, Replace, bool],
) -> None:
    guest = asked[0]
    found, _ = tried(asked)
    names = copies(found)
    taken: set[str] = {str(one.main.interpreter) for one in found.programs}
    for one in found.programs:
        for r in (*one.before, *one.after):
            entry = guest.root.find(str(r.path)) if r.path else None
            taken |= {entry.path} if entry else set()
    for bind in found.binds:
        entry = guest.root.find(bind.target)
        assert entry
        assert (entry.path, entry.kind) == (bind.target, "file")
        assert in_lib(bind.source.removeprefix("{graft}/")) in names
        assert not bind.writable
        if not bind.source.startswith("{graft}/glibc/"):
            assert bind.target in taken
    for copy in found.copies:
        assert not copy.name.startswith("/")
        assert ".." not in copy.name.split("/")


@given(ASKED)
def test_options_of_the_user_are_respected(asked: tuple[Guest, MpiAbi, Replace, bool]) -> None:
    _, abi, replace, glibc = asked
    found, _ = tried(asked)
    roles = {o.path: o.role for o in abi.objects}
    for copy in found.copies:
        role = roles[copy.source]
        assert glibc or role is not Role.LIBC
        assert replace is Replace.MPI or role is not Role.MPI
        if copy.name.startswith("lib/mpigraft-"):
            assert role is Role.OTHER
    assert found.glibc <= bool(found.glibc_lacking)
    if replace is Replace.NOTHING:
        assert not [*found.copies, *found.binds, *found.environment]
        assert all(one.before == one.after for one in found.programs)


@given(ASKED)
def test_of_a_library_that_goes_in_the_guests_own_is_not_loaded_too(
    asked: tuple[Guest, MpiAbi, Replace, bool],
) -> None:
    """Two of one name in a process is what a graft is there to prevent."""
    guest, abi, *_ = asked
    found, _ = tried(asked)
    private = {c.soname for c in found.collisions if c.choice is CopyPolicy.PRIVATE}
    inside = {c.name.removeprefix("lib/") for c in found.copies if c.name.startswith("lib/lib")}
    bound: Mapping[str, str] = {b.target: b.source for b in found.binds}
    for one in found.programs:
        for r in one.after:
            name = str(r.path).rpartition("/")[2]
            if r.path is None or name not in inside or name in private:
                continue
            entry = guest.root.find(str(r.path))
            assert entry is None or entry.path in bound, r
    assert abi.objects[0].soname not in private


def test_a_guest_may_search_its_own_folder_by_a_way_through_the_graft() -> None:
    """Hypothesis met it: the file was then looked for by that way in the guest, which has none."""
    program = changed(
        needing("libfabric.so.1", "libd1.so.1", imported=("g",)), rpath=f"{PLACE}/lib/../../opt/a"
    )
    fabric = at(f"{LIB}/libfabric.so.1", "libfabric.so.1", exported=("g",))
    guest = a_world(program, fabric, at("/opt/a/libd1.so.1", "libd1.so.1"), libc(OLD))
    abi = an_abi(
        "openmpi@5.0.11",
        host("libmpi.so.40", role=Role.MPI),
        host("libfabric.so.1", role=Role.NET, imported=("f",)),
        host("libd1.so.1", exported=("f",)),
        host("libc.so.6", defines=NEW),
    )
    found = grafted(guest, abi, replace=Replace.LIBFABRIC, glibc=False)
    assert {name.rpartition("/")[2] for name in copies(found)} == {
        "libfabric.so.1", "mpigraft-libd1.so.1",
    }  # fmt: skip
