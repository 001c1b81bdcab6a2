"""No engine: a program of this machine, its libraries found through the environment alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpigraft.engines.parts import Part
from mpigraft.errors import UsageError
from mpigraft.model import Bind, EnvRow, GraftPlan, GuestKind, Seat
from mpigraft.plan import ANYWHERE

if TYPE_CHECKING:
    from mpigraft.guest import Guest

KINDS: tuple[GuestKind, ...] = (GuestKind.PROGRAM,)
PROGRAMS: tuple[str, ...] = ()
STAYS = False
KEEPS_FILES = True


def place(guest: Guest) -> str:
    """The graft folder is seen where it is."""
    del guest
    return ANYWHERE


def words(plan: GraftPlan, seat: Seat) -> tuple[str, ...]:
    """None at all. Raises UsageError for a plan that binds: only a namespace can do that."""
    options(plan, seat, ())
    return ()


def rows(plan: GraftPlan, seat: Seat) -> tuple[EnvRow, ...]:
    del plan, seat
    return ()


def own_binds(plan: GraftPlan, seat: Seat) -> tuple[Bind, ...]:
    del plan, seat
    return ()


def shares(plan: GraftPlan, seat: Seat) -> str:
    del plan, seat
    return "no namespaces: single-copy shared memory (CMA) works"


def options(plan: GraftPlan, seat: Seat, binds: Sequence[Bind]) -> tuple[Part, ...]:
    del binds
    if over := (*plan.binds, *seat.extra):
        raise UsageError(
            f"{over[0].target} is to be bound over, which needs an engine",
            why="without one a library is found only where no search path of the program's own "
            "(DT_RPATH) comes before LD_LIBRARY_PATH",
            mend="use --engine bwrap",
        )
    return ()
