"""What the layout of a software stack says: stacks.toml.

Takes the table; makes frozen rows, each with its source. Reads package data alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.knowledge.stacks.rows import LIBRARIES as LIBRARIES
    from mpigraft.knowledge.stacks.rows import cpu_targets as cpu_targets
    from mpigraft.knowledge.stacks.rows import is_network_library as is_network_library
    from mpigraft.knowledge.stacks.rows import library_of_override as library_of_override
    from mpigraft.knowledge.stacks.rows import network_library_of as network_library_of
else:
    __getattr__ = exports(__name__)
