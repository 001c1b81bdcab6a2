"""Start a program of this machine without an engine: the environment selects its libraries."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpigraft.core.errors import UsageError
from mpigraft.core.model import Bind, EngineContext, EnvRow, GraftPlan, GuestKind
from mpigraft.graft.engines.parts import OptionGroup
from mpigraft.graft.injection.plan import PLACE_ON_HOST

if TYPE_CHECKING:
    from mpigraft.graft.guest.examination import Guest

KINDS: tuple[GuestKind, ...] = (GuestKind.PROGRAM, GuestKind.STACK)
PROGRAMS: tuple[str, ...] = ()
STAYS = False
KEEPS_FILES = True


def place(guest: Guest) -> str:
    """Give the graft folder's own path."""
    del guest
    return PLACE_ON_HOST


def rows(plan: GraftPlan, context: EngineContext) -> tuple[EnvRow, ...]:
    del plan, context
    return ()


def own_binds(context: EngineContext) -> tuple[Bind, ...]:
    del context
    return ()


def shares(plan: GraftPlan, context: EngineContext) -> str:
    del plan, context
    return "no namespaces: single-copy shared memory (CMA) works"


def options(
    plan: GraftPlan, context: EngineContext, binds: Sequence[Bind]
) -> tuple[OptionGroup, ...]:
    """Make no words. Raises UsageError for a plan with binds, which need a namespace."""
    del binds
    if over := (*plan.binds, *context.extra):
        raise UsageError.of("bind-needs-engine", target=over[0].target)
    return ()
