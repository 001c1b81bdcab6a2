"""ORTE: mpirun of Open MPI 4."""

from __future__ import annotations

from pathlib import Path

from mpigraft.launchers import prrte
from mpigraft.model import Layout, MpiInstall

rows = prrte.rows  # the same two variables for root


def words(
    launcher: Path, mpi: MpiInstall, layout: Layout, *, crowded: bool, keeps: bool = True
) -> list[str]:
    """As PRRTE's, but oversubscription is an option of its own."""
    del mpi, keeps
    mapping = f"ppr:{layout.ranks_per_node}:node"
    bound = layout.bind == "core" and not crowded
    if bound and layout.threads > 1:
        mapping += f":PE={layout.threads}"
    found = [str(launcher), "-n", str(layout.ranks), "--map-by", mapping]
    found += ["--bind-to", "core" if bound else "none"]
    return [*found, "--oversubscribe"] if crowded else found
