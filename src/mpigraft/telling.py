"""What each launcher would be told of a layout: the same CPUs, in the words of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft import seating
from mpigraft.errors import UsageError
from mpigraft.launchers import LAUNCHERS
from mpigraft.layouts import cores_of
from mpigraft.model import (
    Abi,
    Allocation,
    Family,
    Group,
    Layout,
    Machine,
    MpiInstall,
    Order,
    Placement,
    Scope,
)

PROGRAM = ("PROGRAM",)
FAMILIES = {"prrte": Family.OPENMPI, "orte": Family.OPENMPI, "hydra": Family.MPICH}
SCHEDULERS = {"srun": "slurm", "flux": "flux"}
PROGRAMS = {"prrte": "mpirun", "orte": "mpirun", "hydra": "mpiexec", "pals": "mpiexec"}
SEAT = Path("mpigraft-seat")


@dataclass(frozen=True, slots=True)
class Told:
    """A launcher's words for a layout; `refused` says why it has none."""

    launcher: str
    mpi: str  # of which family the words are; empty: of any
    environment: tuple[tuple[str, str], ...] = ()
    words: tuple[str, ...] = ()
    files: tuple[tuple[str, str], ...] = ()  # name, text
    refused: str = ""


def here(machine: Machine) -> tuple[str, ...]:
    """Launchers of this machine: of its MPIs, and those of schedulers; all where there is none."""
    found = {mpi.launcher_kind for mpi in machine.mpis if mpi.usable and mpi.launcher}
    found |= {one.name for one in machine.launchers}
    return tuple(kind for kind in LAUNCHERS if kind in found) or tuple(LAUNCHERS)


def told(
    kinds: Sequence[str],
    machine: Machine,
    layout: Layout,
    placement: Placement,
    allocation: Allocation,
) -> Iterator[Told]:
    """The words of each launcher. Raises UsageError for one that is not known."""
    for kind in kinds:
        if kind not in LAUNCHERS:
            raise UsageError(f"launcher {kind!r} is unknown", mend=f"one of {', '.join(LAUNCHERS)}")
        for mpi in _mpis(kind, machine):
            yield _told(kind, mpi, machine, layout, placement, allocation)


def _mpis(kind: str, machine: Machine) -> list[MpiInstall]:
    """One of each family that the launcher starts here; hydra has other words for Intel's."""
    own = [mpi for mpi in machine.mpis if mpi.usable and mpi.launcher_kind == kind]
    families = {mpi.family: mpi for mpi in reversed(own)}
    return [*families.values()] or [_stand_in(kind)]


def _stand_in(kind: str) -> MpiInstall:
    """An MPI of which only the family is known: most words depend on no more."""
    family = FAMILIES.get(kind, Family.MPICH)
    return MpiInstall(
        "", family, "", Abi.MPICH, "", Path(), None, None, kind, "", (), "", None, None, "", (),
        (), "", (), usable=False,
    )  # fmt: skip


def _told(
    kind: str,
    mpi: MpiInstall,
    machine: Machine,
    layout: Layout,
    placement: Placement,
    allocation: Allocation,
) -> Told:
    launcher = LAUNCHERS[kind]
    about = next((one for one in machine.launchers if one.name == kind), None)
    name = PROGRAMS.get(kind, kind)
    label = mpi.family if kind in FAMILIES else ""
    try:
        seat = seating.words(placement, SEAT, launcher.LOCAL_RANK)
        order = Order(
            Path(name),
            mpi,
            layout,
            allocation,
            (Group(layout.ranks_per_node, (*seat, *PROGRAM)),),
            placement.masks,
            crowded=layout.ranks_per_node * layout.threads > machine.cpu.cores,
            version=about.version if about else mpi.launcher_version,
            numbers=tuple(cpu for core in cores_of(machine.cpu) for cpu in core),
            pmi="pmix" if kind == "srun" else "",
        )
        command, rows = launcher.command(order), launcher.rows(order)
    except UsageError as error:
        return Told(kind, label, refused=error.seen)
    given = [(r.name, r.value) for r in rows if r.value is not None and r.scope is not Scope.RANK]
    files = tuple((path.name, text) for path, text in command.files)
    return Told(kind, label, tuple((n, v) for n, v in given if v), command.words, files)
