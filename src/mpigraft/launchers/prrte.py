"""PRRTE: mpirun of Open MPI 5 and later."""

from __future__ import annotations

from mpigraft.launchers.parts import hosts, joined
from mpigraft.model import Command, EnvRow, Order, Scope

LOCAL_RANK = "OMPI_COMM_WORLD_LOCAL_RANK"


def command(order: Order) -> Command:
    """`--map-by ppr:K:node:PE=T`: K ranks on each node, T cores for each rank. Crowded ranks are
    let onto the node by OVERSUBSCRIBE and stay unbound: --bind-to core would refuse them."""
    layout = order.layout
    mapping = f"ppr:{layout.ranks_per_node}:node"
    bound = layout.bind == "core" and not order.crowded
    if bound and layout.threads > 1:
        mapping += f":PE={layout.threads}"
    if order.crowded:
        mapping += ":OVERSUBSCRIBE"
    words = ["--map-by", mapping, "--bind-to", "core" if bound else "none"]
    return Command((str(order.launcher), *_where(order), *joined(order, tuple(words))))


def _where(order: Order) -> tuple[str, ...]:
    """Hosts and how to reach them; an allocation of a scheduler is read by PRRTE itself."""
    allocation = order.allocation
    agent = ("--prtemca", "plm_ssh_agent", allocation.agent) if allocation.agent else ()
    return (*agent, *hosts(order, "--host"))


def rows(order: Order) -> tuple[EnvRow, ...]:
    """Open MPI refuses to run as root unless told twice; nobody else is told."""
    names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") if order.root else ()
    return tuple(EnvRow(name, "1", Scope.LAUNCHER, "launcher") for name in names)
