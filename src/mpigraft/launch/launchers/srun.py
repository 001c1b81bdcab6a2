"""srun: Slurm starts the ranks itself."""

from __future__ import annotations

from pathlib import Path

from mpigraft.core.hostlist import slurm_hosts
from mpigraft.core.model import Command, EnvRow, Family, Order, Scope
from mpigraft.launch.launchers.parts import (
    PROGRAMS,
    bound,
    hexadecimal,
    masked,
    nodes,
    older_than,
    path_in,
    program_scripts,
    refuse_lost_files,
    without_step_options,
)

MCA = ""
NO_PMI = "none"


def command(order: Order) -> Command:
    """`srun --mpi=pmix --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpu-bind=mask_cpu:0x3,0xc`.

    The PMI is always named: a site's default is not the same everywhere, and a wrong one gives
    worlds of one rank in silence. So are the nodes, the first ones of the job. No --cpus-per-task
    beside masks: it implies --exact, which would take the CPUs away that they name. Without them
    `_packed` gives the cores. Raises UsageError for an engine that closes the file through which
    pmi2 talks.
    """
    refuse_lost_files(order, "srun")
    layout = order.layout
    named = nodes(order)
    words = [
        str(order.launcher),
        f"--mpi={order.pmi or NO_PMI}",
        f"--nodes={layout.nodes}",
        f"--ntasks={layout.ranks}",
        f"--ntasks-per-node={layout.ranks_per_node}",
        *_packed(order),
        "--kill-on-bad-exit=1",
        "--input=none",  # by itself it reads all that it gets, and sends it to every rank
    ]
    if order.allocation.scheduler == "slurm" and not order.allocation.here:
        words.append(f"--nodelist={slurm_hosts(named)}")
    if not older_than(order, "20.11"):  # before it steps share their job's CPUs anyhow
        words.append("--overlap")
    if order.crowded:
        words.append("--overcommit")
    if order.slingshot and layout.nodes == 1:  # CXI-04: else it gets no VNI
        words.append("--network=single_node_vni")
    words.append(f"--cpu-bind={_binding(order)}")
    if len(order.groups) == 1:
        return Command((*words, *order.groups[0].words))
    return Command((*words, "--multi-prog", path_in(order, PROGRAMS)), _files(order))


def _packed(order: Order) -> tuple[str, ...]:
    """Node by node; and ranks that get cores without masks get `threads` of them each, one after
    the other. By itself srun deals ranks over the sockets in turn, gives each one CPU, and takes
    the hardware threads of a core for several (srun(1): --distribution, --cpus-per-task,
    --threads-per-core)."""
    if masked(order) or not bound(order):
        return ("--distribution=block",)
    cores = f"--cpus-per-task={order.layout.threads}"
    return ("--distribution=block:block", cores, "--threads-per-core=1")


def _binding(order: Order) -> str:
    """Masks by local rank; srun has no word for L3 caches."""
    if masked(order):
        return "mask_cpu:" + ",".join(hexadecimal(mask) for mask in order.masks)
    return "cores" if bound(order) else "none"


def _files(order: Order) -> tuple[tuple[Path, str], ...]:
    """`0-1,4-5 /bin/sh FILE`: the ranks of each program, node by node, and a script for each.

    The list itself cannot hold their words: srun ends an argument at some quotes and replaces %t
    and %o in it, with no way to say otherwise (22.05).
    """
    layout, first = order.layout, 0
    lines, scripts = [], program_scripts(order)
    for group, (path, _) in zip(order.groups, scripts, strict=True):
        starts = (node * layout.ranks_per_node + first for node in range(layout.nodes))
        ranks = ",".join(f"{a}-{a + group.ranks_per_node - 1}" for a in starts)
        lines.append(f"{ranks} /bin/sh {path_in(order, path.name)}\n")
        first += group.ranks_per_node
    return ((order.folder / PROGRAMS, "".join(lines)), *scripts)


def rows(order: Order) -> tuple[EnvRow, ...]:
    """Remove what would change the step besides its command line. Open MPI's PMIx may be built
    without munge, while Slurm's asks for it (LCH-03)."""
    rows = [*without_step_options()]
    if order.pmi.startswith("pmix") and order.mpi.family is Family.OPENMPI:
        rows.append(EnvRow("PMIX_MCA_psec", "native", Scope.RANK, "launcher"))
    return tuple(rows)
