"""flux run: Flux starts the ranks itself."""

from __future__ import annotations

from mpigraft.core.model import Command, EnvRow, Order
from mpigraft.launch.launchers.parts import (
    bound,
    hexadecimal,
    is_part,
    masked,
    nodes,
    one_program,
    refuse_lost_files,
)

MCA = ""


def command(order: Order) -> Command:
    """`flux run --nodes=2 --tasks-per-node=4 --exclusive -o cpu-affinity=map:0x3;0xc`, where the
    masks go round by local rank (flux-shell-options(7)). Whole nodes, since a task is given the
    first free cores and may be bound to no others. Raises UsageError for several programs."""
    refuse_lost_files(order, "flux run")
    program = one_program(order, "flux run")
    words = [
        str(order.launcher),
        "run",
        f"--nodes={order.layout.nodes}",
        f"--tasks-per-node={order.layout.ranks_per_node}",
        "--exclusive",
        "-o",
        "exit-on-error",  # the first rank that fails ends all, as srun does; else it is 30 s later
    ]
    named = nodes(order)
    if is_part(order):
        words.append(f"--requires=hosts:{','.join(named)}")
    if order.pmi:
        words += ["-o", f"pmi={order.pmi}"]
    return Command((*words, "-o", f"cpu-affinity={_affinity(order)}", *program))


def _affinity(order: Order) -> str:
    if masked(order):
        return "map:" + ";".join(hexadecimal(mask) for mask in order.masks)
    return "per-task" if bound(order) else "off"


def rows(order: Order) -> tuple[EnvRow, ...]:  # noqa: ARG001  as every launcher's
    return ()
