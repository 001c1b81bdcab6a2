"""ORTE: mpirun of Open MPI 4."""

from __future__ import annotations

from mpigraft.launchers import prrte
from mpigraft.launchers.parts import hosts, joined
from mpigraft.model import Command, Order

LOCAL_RANK = prrte.LOCAL_RANK
rows = prrte.rows  # the same two variables for root


def command(order: Order) -> Command:
    """As PRRTE's, but oversubscription is an option of its own, and the agent's name another."""
    layout, allocation = order.layout, order.allocation
    mapping = f"ppr:{layout.ranks_per_node}:node"
    bound = layout.bind == "core" and not order.crowded
    if bound and layout.threads > 1:
        mapping += f":PE={layout.threads}"
    words = ["--map-by", mapping, "--bind-to", "core" if bound else "none"]
    if order.crowded:
        words.append("--oversubscribe")
    agent = ("--mca", "plm_rsh_agent", allocation.agent) if allocation.agent else ()
    where = (*agent, *hosts(order, "--host"))
    return Command((str(order.launcher), *where, *joined(order, tuple(words))))
