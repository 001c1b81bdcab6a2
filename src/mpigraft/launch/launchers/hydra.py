"""Hydra: mpiexec of MPICH and of Intel MPI, which bind in different ways."""

from __future__ import annotations

from mpigraft.core.model import Command, EnvRow, Family, Order, Scope
from mpigraft.launch.launchers.parts import (
    bound,
    hexadecimal,
    joined,
    masked,
    named_hosts,
    slurm_overlap,
)

LOCAL_RANK = "MPI_LOCALRANKID"
RANK = "PMI_RANK"
MCA = ""


def command(order: Order) -> Command:
    """MPICH: -bind-to core:T gives each rank T cores, user:0+1,2+3 the named CPUs, `none` leaves
    it free. Intel MPI binds by environment (`rows`); its hydra knows -bind-to too, but I_MPI_PIN,
    on by default, wins.

    Ranks talk to hydra through a file that it opens for them; where that does not reach them
    MPICH's can listen at a port instead. Intel's cannot."""
    layout = order.layout
    first = [str(order.launcher), *_where(order), "-ppn", str(layout.ranks_per_node)]
    if order.mpi.family is Family.INTEL:
        return _started(order, first)
    if not order.keeps:
        first.append("-pmi-port")
    bind = "none"
    if masked(order):
        bind = "user:" + ",".join("+".join(map(str, mask)) for mask in order.masks)
    elif bound(order):
        bind = "core" if layout.threads == 1 else f"core:{layout.threads}"
    return _started(order, [*first, "-bind-to", bind])


def _started(order: Order, first: list[str]) -> Command:
    programs = joined(order, (), "-configfile")
    return Command((*first, *programs.words), programs.files)


def _where(order: Order) -> tuple[str, ...]:
    """Hosts and how to reach them. An allocation of a scheduler is read by hydra itself, which
    starts its proxies through the scheduler too."""
    agent = order.allocation.agent
    reached = ("-launcher", "ssh", "-launcher-exec", agent) if agent else ()
    named = named_hosts(order)
    return (*reached, "-hosts", ",".join(named)) if named else reached


def rows(order: Order) -> tuple[EnvRow, ...]:
    """Intel MPI: a domain of T cores for each rank, next to each other; or the named CPUs; or no
    pinning at all."""
    layout, step = order.layout, slurm_overlap(order)
    if order.mpi.family is not Family.INTEL:
        return step
    if not bound(order):
        pins = {"I_MPI_PIN": "off"}
    elif order.masks:  # without its 0x a mask is refused, and the default taken (2021.18)
        domains = ",".join(hexadecimal(mask) for mask in order.masks)
        pins = {"I_MPI_PIN": "on", "I_MPI_PIN_DOMAIN": f"[{domains}]"}
    else:
        domain = "core" if layout.threads == 1 else f"{layout.threads}:compact"
        pins = {"I_MPI_PIN": "on", "I_MPI_PIN_CELL": "core", "I_MPI_PIN_DOMAIN": domain}
    rows = (EnvRow(name, value, Scope.LAUNCHER, "launcher") for name, value in pins.items())
    return (*rows, *step)
