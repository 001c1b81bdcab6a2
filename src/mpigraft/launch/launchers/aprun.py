"""aprun: ALPS of Cray XE and XC, a historic launcher."""

from __future__ import annotations

import re

from mpigraft.core.cpuset import format_cpus
from mpigraft.core.errors import UsageError
from mpigraft.core.model import Command, EnvRow, Order
from mpigraft.launch.launchers.parts import bound, is_part, masked, nodes, one_program

MCA = ""


def command(order: Order) -> Command:
    """`aprun -n 8 -N 4 -d 2 -cc 0-1:2-3`: the CPUs of each rank of a node. Raises UsageError for
    several programs, which ALPS puts on nodes of their own, and for a part of an allocation whose
    nodes have no number."""
    layout, program = order.layout, one_program(order, "aprun")
    words = [str(order.launcher), "-n", str(layout.ranks), "-N", str(layout.ranks_per_node)]
    words += ["-d", str(layout.threads)]
    named = nodes(order)
    if is_part(order):
        words += ["-L", ",".join(str(_nid(host)) for host in named)]
    binding = "none"
    if masked(order):
        binding = ":".join(format_cpus(mask) for mask in order.masks)
    elif bound(order):
        binding = "cpu"
    return Command((*words, "-cc", binding, *program))


def _nid(host: str) -> int:
    match = re.fullmatch(r"(?:nid)?0*(\d+)", host)
    if not match:
        raise UsageError.of("aprun-needs-numbers", host=host)
    return int(match[1])


def rows(order: Order) -> tuple[EnvRow, ...]:  # noqa: ARG001  as every launcher's
    return ()
