"""PRRTE: mpirun of Open MPI 5 and later."""

from __future__ import annotations

from mpigraft.core.cpuset import format_cpus
from mpigraft.core.hostnames import short_name
from mpigraft.core.model import Command, EnvRow, Order, Scope
from mpigraft.launch.launchers.parts import bound, hosts, joined, masked, nodes, path_in, slurm_rows

UNEVEN = "prte_hetero_nodes"
FULL_NAMES = "prte_keep_fqdn_hostnames"  # else w.2.example is cut to w: unknown, or another node
MCA = "PRTE_MCA_"  # begins the names of its own settings
APP = "--app"  # a file with a line for each program, as ORTE reads it too


def command(order: Order) -> Command:
    """`--map-by ppr:K:node:PE=T`: K ranks on each node, T cores for each rank. Crowded ranks
    are allowed by OVERSUBSCRIBE and stay unbound: --bind-to core would refuse them.

    Each of several programs names its host. `--host n1:2,n2:2` for all of them was rejected: in a
    job of Slurm its numbers are not slots, so that all ranks go to the first node, or none anywhere
    ("already filled"). Nor is a node's count of slots then the sum of its programs, so it may be
    oversubscribed; cores are still given out one by one (3.0.13)."""
    if masked(order):
        return _by_file(order)
    layout, several = order.layout, len(order.groups) > 1
    mapping = "slot" if several else f"ppr:{layout.ranks_per_node}:node"
    tied = bound(order)
    if tied and layout.threads > 1:
        mapping += f":PE={layout.threads}"
    if order.crowded or several:
        mapping += ":OVERSUBSCRIBE"
    words = ("--map-by", mapping, "--bind-to", "core" if tied else "none")
    where = (*_agent(order), *(() if several else hosts(order)))
    programs = joined(order, words, APP, "--host")
    return Command((str(order.launcher), *where, *programs.words), programs.files)


def _by_file(order: Order) -> Command:
    """Return the command with a rankfile, which names host and CPUs of every rank of all programs.
    It counts hardware threads in the hardware's order, and refuses CPUs that two ranks share (as in
    one NUMA domain) unless an option allows it. `pe-list`, PRRTE's other way to name CPUs, has one
    list for all ranks."""
    path = path_in(order, "ranks")
    number = {cpu: n for n, cpu in enumerate(order.numbers)}
    text = rankfile(order, [[number.get(cpu, cpu) for cpu in mask] for mask in order.masks])
    words = ("--map-by", f"rankfile:FILE={path}:HWTCPUS", "--bind-to", "hwthread:overload-allowed")
    where = (*_agent(order), *hosts(order))
    programs, ranks = joined(order, words, APP), (order.folder / "ranks", text)
    return Command((str(order.launcher), *where, *programs.words), (ranks, *programs.files))


def rankfile(order: Order, masks: list[list[int]]) -> str:
    """`rank 3=n2 slot=0-3`, a line for each rank; `masks` by local rank, as the launcher counts."""
    slots = [(host, mask) for host in nodes(order) for mask in masks]
    return "".join(
        f"rank {rank}={host} slot={format_cpus(mask)}\n" for rank, (host, mask) in enumerate(slots)
    )


def _agent(order: Order) -> tuple[str, ...]:
    agent = order.allocation.agent
    return ("--prtemca", "plm_ssh_agent", agent) if agent else ()


def rows(order: Order) -> tuple[EnvRow, ...]:
    """Open MPI refuses to run as root without both variables; other users do not get them."""
    names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") if order.root else ()
    rows = [EnvRow(name, "1", Scope.LAUNCHER, "launcher") for name in names]
    if order.allocation.scheduler == "slurm":
        # A job of one wide task per node (-n 2 -c 64) has one slot there, unless all its CPUs do.
        rows.append(EnvRow(f"{MCA}{ENTIRE}", "1", Scope.LAUNCHER, "launcher"))
    if any(short_name(host) != host.lower() for host in nodes(order)):
        rows.append(EnvRow(f"{MCA}{FULL_NAMES}", "1", Scope.LAUNCHER, "launcher"))
    if order.uneven:  # else all are bound as the first node's CPUs allow
        rows.append(EnvRow(f"{MCA}{UNEVEN}", "1", Scope.LAUNCHER, "launcher"))
    return (*rows, *slurm_rows(order))


ENTIRE = "ras_slurm_use_entire_allocation"
