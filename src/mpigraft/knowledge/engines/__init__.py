"""What container engines do by themselves, and what a job sees under each: engines.toml.

Takes the table; makes frozen rows, each with its source. Reads package data alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.engines.rows import breaking_variables as breaking_variables
    from mpigraft.knowledge.engines.rows import default_binds as default_binds
else:
    __getattr__ = exports(__name__)
