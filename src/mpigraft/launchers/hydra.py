"""Hydra: mpiexec of MPICH and of Intel MPI, which bind in different ways."""

from __future__ import annotations

from pathlib import Path

from mpigraft.model import EnvRow, Family, Layout, MpiInstall, Scope


def words(
    launcher: Path, mpi: MpiInstall, layout: Layout, *, crowded: bool, keeps: bool = True
) -> list[str]:
    """MPICH: -bind-to core:T gives each rank T cores, `none` leaves it free. Intel MPI binds by
    environment (`rows`); its hydra knows -bind-to too, but I_MPI_PIN, on by default, wins.

    Ranks talk to hydra through a file that it opens for them; where that does not reach them
    MPICH's can listen at a port instead. Intel's cannot."""
    found = [str(launcher), "-n", str(layout.ranks), "-ppn", str(layout.ranks_per_node)]
    if mpi.family is Family.INTEL:
        return found
    if not keeps:
        found.append("-pmi-port")
    if layout.bind != "core" or crowded:
        return [*found, "-bind-to", "none"]
    return [*found, "-bind-to", "core" if layout.threads == 1 else f"core:{layout.threads}"]


def rows(mpi: MpiInstall, layout: Layout, *, crowded: bool, root: bool) -> tuple[EnvRow, ...]:
    """Intel MPI: a domain of T cores for each rank, next to each other; or no pinning at all."""
    del root
    if mpi.family is not Family.INTEL:
        return ()
    if layout.bind != "core" or crowded:
        pins = {"I_MPI_PIN": "off"}
    else:
        domain = "core" if layout.threads == 1 else f"{layout.threads}:compact"
        pins = {"I_MPI_PIN": "on", "I_MPI_PIN_CELL": "core", "I_MPI_PIN_DOMAIN": domain}
    return tuple(EnvRow(name, value, Scope.LAUNCHER, "launcher") for name, value in pins.items())
