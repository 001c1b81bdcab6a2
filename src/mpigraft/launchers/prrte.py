"""PRRTE: mpirun of Open MPI 5 and later."""

from __future__ import annotations

from pathlib import Path

from mpigraft.model import EnvRow, Layout, MpiInstall, Scope


def words(
    launcher: Path, mpi: MpiInstall, layout: Layout, *, crowded: bool, keeps: bool = True
) -> list[str]:
    """`--map-by ppr:K:node:PE=T`: K ranks on each node, T cores for each rank. Crowded ranks are
    let onto the node by OVERSUBSCRIBE and stay unbound: --bind-to core would refuse them."""
    del mpi, keeps
    mapping = f"ppr:{layout.ranks_per_node}:node"
    bound = layout.bind == "core" and not crowded
    if bound and layout.threads > 1:
        mapping += f":PE={layout.threads}"
    if crowded:
        mapping += ":OVERSUBSCRIBE"
    bind = "core" if bound else "none"
    return [str(launcher), "-n", str(layout.ranks), "--map-by", mapping, "--bind-to", bind]


def rows(mpi: MpiInstall, layout: Layout, *, crowded: bool, root: bool) -> tuple[EnvRow, ...]:
    """Open MPI refuses to run as root unless told twice; nobody else is told."""
    del mpi, layout, crowded
    names = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM") if root else ()
    return tuple(EnvRow(name, "1", Scope.LAUNCHER, "launcher") for name in names)
