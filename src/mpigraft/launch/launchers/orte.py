"""ORTE: mpirun of Open MPI 4."""

from __future__ import annotations

from mpigraft.core.model import Command, EnvRow, Order, Scope
from mpigraft.launch.launchers import prrte
from mpigraft.launch.launchers.parts import bound, hosts, joined, masked, path_in

MCA = "OMPI_MCA_"  # it does not read PRTE_MCA_


def command(order: Order) -> Command:
    """As PRRTE's, but oversubscription is an option of its own, and the agent's name another."""
    layout, allocation = order.layout, order.allocation
    agent = ("--mca", "plm_rsh_agent", allocation.agent) if allocation.agent else ()
    several = len(order.groups) > 1
    start = (str(order.launcher), *agent)
    if masked(order):
        path = path_in(order, "ranks")
        words = ("--rankfile", path, *PHYSICAL)
        text = prrte.rankfile(order, [list(mask) for mask in order.masks])
        file = (order.folder / "ranks", text)
        programs = joined(order, words, prrte.APP)
        return Command((*start, *hosts(order), *programs.words), (file, *programs.files))
    mapping = "slot" if several else f"ppr:{layout.ranks_per_node}:node"
    tied = bound(order)
    if tied and layout.threads > 1:
        mapping += f":PE={layout.threads}"
    oversubscribed = ("--oversubscribe",) if order.crowded or several else ()
    words = ("--map-by", mapping, "--bind-to", "core" if tied else "none", *oversubscribed)
    where = () if several else hosts(order)
    programs = joined(order, words, prrte.APP, "--host")
    return Command((*start, *where, *programs.words), programs.files)


# CPUs of a rankfile as the kernel counts them; ranks of one NUMA domain may share them.
PHYSICAL = ("--mca", "rmaps_rank_file_physical", "1", "--bind-to", "core:overload-allowed")


def rows(order: Order) -> tuple[EnvRow, ...]:
    """PRRTE's, under the names that ORTE reads."""
    return tuple(
        EnvRow(_name(row.name), row.value, Scope.LAUNCHER, row.source) for row in prrte.rows(order)
    )


def _name(name: str) -> str:
    """PRTE_MCA_prte_hetero_nodes is OMPI_MCA_orte_hetero_nodes here."""
    return name.replace(f"{prrte.MCA}prte_", f"{MCA}orte_").replace(prrte.MCA, MCA)
