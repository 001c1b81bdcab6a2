"""Hydra: mpiexec of MPICH and of Intel MPI, which bind in different ways."""

from __future__ import annotations

from mpigraft.launchers.parts import joined
from mpigraft.model import Command, EnvRow, Family, Order, Scope

LOCAL_RANK = "MPI_LOCALRANKID"


def command(order: Order) -> Command:
    """MPICH: -bind-to core:T gives each rank T cores, `none` leaves it free. Intel MPI binds by
    environment (`rows`); its hydra knows -bind-to too, but I_MPI_PIN, on by default, wins.

    Ranks talk to hydra through a file that it opens for them; where that does not reach them
    MPICH's can listen at a port instead. Intel's cannot."""
    layout = order.layout
    first = [str(order.launcher), *_where(order), "-ppn", str(layout.ranks_per_node)]
    if order.mpi.family is Family.INTEL:
        return Command((*first, *joined(order, ())))
    if not order.keeps:
        first.append("-pmi-port")
    bind = "none"
    if layout.bind == "core" and not order.crowded:
        bind = "core" if layout.threads == 1 else f"core:{layout.threads}"
    return Command((*first, "-bind-to", bind, *joined(order, ())))


def _where(order: Order) -> tuple[str, ...]:
    """Hosts and how to reach them; an allocation of a scheduler is read by hydra itself."""
    allocation = order.allocation
    if allocation.here or allocation.scheduler:
        return ()
    agent = ("-launcher", "ssh", "-launcher-exec", allocation.agent) if allocation.agent else ()
    return (*agent, "-hosts", ",".join(allocation.hosts[: order.layout.nodes]))


def rows(order: Order) -> tuple[EnvRow, ...]:
    """Intel MPI: a domain of T cores for each rank, next to each other; or no pinning at all."""
    layout = order.layout
    if order.mpi.family is not Family.INTEL:
        return ()
    if layout.bind != "core" or order.crowded:
        pins = {"I_MPI_PIN": "off"}
    else:
        domain = "core" if layout.threads == 1 else f"{layout.threads}:compact"
        pins = {"I_MPI_PIN": "on", "I_MPI_PIN_CELL": "core", "I_MPI_PIN_DOMAIN": domain}
    return tuple(EnvRow(name, value, Scope.LAUNCHER, "launcher") for name, value in pins.items())
