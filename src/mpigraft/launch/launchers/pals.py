"""PALS: mpiexec of HPE's systems under PBS."""

from __future__ import annotations

from mpigraft.core.cpuset import format_cpus
from mpigraft.core.model import Command, EnvRow, Order
from mpigraft.launch.launchers.parts import bound, masked, named_hosts, one_program

MCA = ""


def command(order: Order) -> Command:
    """`mpiexec -n 8 --ppn 4 --cpu-bind list:0-3:4-7`, a list for each rank of a node. Raises
    UsageError for several programs."""
    layout, program = order.layout, one_program(order, "PALS")
    words = [str(order.launcher), "-n", str(layout.ranks), "--ppn", str(layout.ranks_per_node)]
    if named := named_hosts(order):
        words += ["--hosts", ",".join(named)]
    if order.pmi:
        words.append(f"--pmi={order.pmi}")
    if order.slingshot and layout.nodes == 1:  # as srun, it gives such a step no VNI of itself
        words.append("--single-node-vni")
    if masked(order):
        binding = "list:" + ":".join(format_cpus(mask) for mask in order.masks)
        words += ["--cpu-bind", binding]
    elif bound(order):
        words += ["--depth", str(layout.threads), "--cpu-bind", "depth"]
    else:
        words += ["--cpu-bind", "none"]
    return Command((*words, *program))


def rows(order: Order) -> tuple[EnvRow, ...]:  # noqa: ARG001  as every launcher's
    return ()
