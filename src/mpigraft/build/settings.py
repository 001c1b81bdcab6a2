"""A module for each transport that was proven: the MPI with the settings that force it, as LUMI's
recipe puts them into its module.

They have their own folder, so that one MPI is not listed once more for each.
"""

from __future__ import annotations

from collections.abc import Mapping

from mpigraft.build.folders import BuildFolders, unwritable
from mpigraft.build.modules import write_settings
from mpigraft.build.values import BuildPlan


def write_transport_modules(
    plan: BuildPlan, folders: BuildFolders, proven: Mapping[str, Mapping[str, str]]
) -> list[str]:
    """Write the modules and return their names; `proven` has the variables of each transport.
    Raises MissingError where they cannot be written."""
    mpi = folders.module(plan)
    name, _, version = mpi.partition("/")
    written = []
    for transport, rows in proven.items():
        if not rows:
            continue
        module = f"{name}-{transport}/{version}"
        notes = [f"{mpi} over {transport}, proven on the machine that built it.", plan.recipe.what]
        try:
            write_settings(folders.settings / module, (folders.modules, mpi), rows, notes)
        except OSError as error:
            raise unwritable(folders, error) from None
        written.append(module)
    return written
