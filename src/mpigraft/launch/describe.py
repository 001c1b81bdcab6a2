"""The command line of each launcher for a layout: the same CPUs, in each one's options."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    Abi,
    Allocation,
    Family,
    Group,
    Layout,
    Machine,
    MpiInstall,
    Order,
    Placement,
    RenderedCommand,
    Scope,
    cores_of,
)
from mpigraft.knowledge import rank_variables
from mpigraft.launch import gpu_select
from mpigraft.launch.launchers.hardware import in_order
from mpigraft.launch.launchers.registry import LAUNCHERS

PROGRAM = ("PROGRAM",)
FAMILIES = {"prrte": Family.OPENMPI, "orte": Family.OPENMPI, "hydra": Family.MPICH}
SCHEDULERS = {"srun": "slurm", "flux": "flux"}
PROGRAMS = {"prrte": "mpirun", "orte": "mpirun", "hydra": "mpiexec", "pals": "mpiexec"}
GPU_SELECT = Path("mpigraft-gpu-select")


def launchers_here(machine: Machine) -> tuple[str, ...]:
    """List the launchers of this machine: of its MPIs and schedulers; all of them
    where there is none."""
    kinds = {mpi.launcher_kind for mpi in machine.mpis if mpi.usable and mpi.launcher}
    kinds |= {info.name for info in machine.launchers}
    return tuple(kind for kind in LAUNCHERS if kind in kinds) or tuple(LAUNCHERS)


def render_launchers(
    kinds: Sequence[str],
    machine: Machine,
    layout: Layout,
    placement: Placement,
    allocation: Allocation,
) -> Iterator[RenderedCommand]:
    """Render the command line of each launcher. Raises UsageError for an unknown one."""
    for kind in kinds:
        if kind not in LAUNCHERS:
            raise UsageError.unknown("word-unknown", kind, LAUNCHERS, what="launcher")
        for mpi in _mpis(kind, machine):
            yield _render(kind, mpi, machine, layout, placement, allocation)


def _mpis(kind: str, machine: Machine) -> list[MpiInstall]:
    """Return one of each family that the launcher starts here; hydra has other options for
    Intel's."""
    own = [mpi for mpi in machine.mpis if mpi.usable and mpi.launcher_kind == kind]
    families = {mpi.family: mpi for mpi in reversed(own)}
    return [*families.values()] or [_mpi_for(kind)]


def _mpi_for(kind: str) -> MpiInstall:
    """Make an MPI with only a family: most options depend on no more."""
    family = FAMILIES.get(kind, Family.MPICH)
    return MpiInstall("", family, "", Abi.MPICH, launcher_kind=kind, usable=False)


def _render(
    kind: str,
    mpi: MpiInstall,
    machine: Machine,
    layout: Layout,
    placement: Placement,
    allocation: Allocation,
) -> RenderedCommand:
    launcher = LAUNCHERS[kind]
    about = next((info for info in machine.launchers if info.name == kind), None)
    name = PROGRAMS.get(kind, kind)
    label = mpi.family if kind in FAMILIES else ""
    try:
        seat = gpu_select.rank_prefix(placement, GPU_SELECT, rank_variables(kind))
        order = Order(
            Path(name),
            mpi,
            layout,
            allocation,
            (Group(layout.ranks_per_node, (*seat, *PROGRAM)),),
            placement.masks,
            crowded=layout.ranks_per_node * layout.threads > machine.cpu.cores,
            version=about.version if about else mpi.launcher_version,
            numbers=in_order(machine.cpu.cpuset)
            or tuple(cpu for core in cores_of(machine.cpu) for cpu in core),
            pmi="pmix" if kind == "srun" else "",
        )
        command, rows = launcher.command(order), launcher.rows(order)
    except UsageError as error:
        return RenderedCommand(kind, label, refused=error.message)
    variables = [
        (r.name, r.value) for r in rows if r.value is not None and r.scope is not Scope.RANK
    ]
    files = tuple((path.name, text) for path, text in command.files)
    return RenderedCommand(
        kind, label, tuple((n, v) for n, v in variables if v), command.words, files
    )
