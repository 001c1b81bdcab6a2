"""Facts about building MPIs: packages, sources, versions that work together or clash.

Takes packages.toml and plans.toml; makes frozen rows, each with its source. Reads package data
alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.builds.rows import Archive as Archive
    from mpigraft.knowledge.builds.rows import Clash as Clash
    from mpigraft.knowledge.builds.rows import Compiler as Compiler
    from mpigraft.knowledge.builds.rows import Package as Package
    from mpigraft.knowledge.builds.rows import Patch as Patch
    from mpigraft.knowledge.builds.rows import PlanTable as PlanTable
    from mpigraft.knowledge.builds.rows import Provided as Provided
    from mpigraft.knowledge.builds.rows import Recipe as Recipe
    from mpigraft.knowledge.builds.rows import Unneeded as Unneeded
    from mpigraft.knowledge.builds.rows import VersionSet as VersionSet
    from mpigraft.knowledge.builds.rows import packages as packages
    from mpigraft.knowledge.builds.rows import plan_table as plan_table
else:
    __getattr__ = exports(__name__)
