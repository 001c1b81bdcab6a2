"""Launchers of MPI programs: each a pure function from a layout to the words before the program."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from mpigraft.launchers import hydra, orte, prrte
from mpigraft.model import EnvRow, Layout, MpiInstall


class Launcher(Protocol):
    """What a launcher's module gives. `crowded`: more ranks than cores, so nothing is bound.
    `keeps`: what stands between launcher and ranks hands on open files."""

    def words(
        self,
        launcher: Path,
        mpi: MpiInstall,
        layout: Layout,
        *,
        crowded: bool,
        keeps: bool = True,
    ) -> list[str]: ...

    def rows(
        self, mpi: MpiInstall, layout: Layout, *, crowded: bool, root: bool
    ) -> tuple[EnvRow, ...]: ...


LAUNCHERS: Mapping[str, Launcher] = MappingProxyType({"prrte": prrte, "orte": orte, "hydra": hydra})
