"""Which libmpi ranks are to map, where not all that is looked at would load it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mpigraft.core.model import Replace
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.injection.contents import GraftContents, decide_contents
from mpigraft.graft.injection.fixpoint import GraftRequest
from tests.builders.guests import MPICH, OPENMPI, PLACE, a_guest, a_program, an_abi


def guest(*needed: Sequence[str]) -> Guest:
    """Programs by what they need, in an image with both MPIs."""
    programs = {f"/opt/{n}": a_program(names) for n, names in enumerate(needed)}
    return a_guest(programs, OPENMPI, MPICH)


def of(one: Guest, mpi: str, what: Replace = Replace.MPI) -> GraftContents:
    return decide_contents(one, an_abi(mpi), GraftRequest(replace=what, place=PLACE))


def test_one_of_the_graft_before_the_guests_own() -> None:
    """The guest's own was taken for the one that is due, and no rank was told that it ran."""
    asked = "libmpich.so.12"
    found = of(replace(guest(["libmpi.so.40"], [asked])), "mpich@5.0.2")
    assert OPENMPI.path in {str(r.path) for r in found.programs[0].after}
    assert found.libmpi == f"{PLACE}/lib/{asked}"


def test_one_that_lies_over_the_guests_own() -> None:
    found = of(guest(["libmpi.so.12"], ["libmpi.so.40"]), "openmpi@5.0.11")
    assert found.libmpi == OPENMPI.path
    turned = of(guest(["libmpi.so.40"], ["libmpi.so.12"]), "openmpi@5.0.11")
    assert turned.libmpi == OPENMPI.path


def test_the_guests_own_where_it_stays() -> None:
    found = of(guest(["libmpi.so.12"], ["libmpi.so.40"]), "openmpi@5.0.11", Replace.LIBFABRIC)
    assert found.libmpi == MPICH.path
    later = of(guest(["libm.so.6"], ["libmpi.so.12"]), "openmpi@5.0.11", Replace.LIBFABRIC)
    assert later.libmpi == MPICH.path
    assert of(guest(["libm.so.6"]), "openmpi@5.0.11", Replace.LIBFABRIC).libmpi == ""
