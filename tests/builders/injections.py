"""Injections into guests that are nowhere on disk, and what one did to its guest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mpigraft.core.model import Copy, MpiAbi, Replace
from mpigraft.graft.guest.examination import Guest
from mpigraft.graft.injection.contents import GraftContents, decide_contents
from mpigraft.graft.injection.fixpoint import CopyPolicy, GraftRequest
from mpigraft.graft.injection.simulation import SimulatedProgram
from tests.builders.guests import PLACE

GRAFT = f"{PLACE}/lib"


def grafted(
    guest: Guest,
    abi: MpiAbi,
    *,
    replace: Replace = Replace.MPI,
    glibc: bool = True,
    opened: Mapping[str, tuple[str, ...]] | None = None,
) -> GraftContents:
    return decide_contents(
        guest, abi, GraftRequest(replace=replace, place=PLACE, glibc=glibc, opened=opened or {})
    )


def over(found: GraftContents) -> dict[str, str]:
    """{path inside: name of what lies over it}."""
    return {b.target: in_lib(b.source.removeprefix("{graft}/")) for b in found.binds}


def copies(found: GraftContents) -> dict[str, Copy]:
    return {in_lib(copy.name): copy for copy in found.copies}


def in_lib(name: str) -> str:
    """The name of a file of the graft: most are below its `lib`, which goes without saying."""
    return name.removeprefix("lib/")


def choices(found: GraftContents) -> dict[str, CopyPolicy]:
    return {one.soname: one.choice for one in found.collisions}


def only(found: GraftContents) -> SimulatedProgram:
    (one,) = found.programs
    return one


def loads(found: GraftContents, program: int = 0) -> dict[str, str]:
    """{name asked for: path} of what ranks load."""
    return {r.name: str(r.path) for r in found.programs[program].after if r.path}


def search(found: GraftContents) -> str:
    return next((r.value or "" for r in found.environment if r.name == "LD_LIBRARY_PATH"), "")


def lacks(found: GraftContents) -> Iterator[str]:
    """All that the loader would still miss."""
    for one in found.programs:
        yield from (u.node for u in one.unmet)
        yield from (u.symbol for u in one.unbound)
        yield from (r.name for r in one.missing)
