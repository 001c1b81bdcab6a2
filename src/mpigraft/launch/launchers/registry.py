"""Launchers of MPI programs: each a pure function from an order to a command line."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Protocol

from mpigraft.core.model import Command, EnvRow, Order
from mpigraft.launch.launchers import aprun, flux, hydra, orte, pals, prrte, srun


class Launcher(Protocol):
    """What a launcher's module has."""

    MCA: str  # what its own settings' names begin with, where it is Open MPI's; else empty

    def command(self, order: Order) -> Command:
        """Return the whole command line, programs included. Raises UsageError for an order that
        this launcher cannot express."""

    def rows(self, order: Order) -> tuple[EnvRow, ...]:
        """Return environment of the launcher itself: scopes launcher and daemon."""


LAUNCHERS: Mapping[str, Launcher] = MappingProxyType(
    {
        "prrte": prrte,
        "orte": orte,
        "hydra": hydra,
        "srun": srun,
        "flux": flux,
        "pals": pals,
        "aprun": aprun,
    }
)
