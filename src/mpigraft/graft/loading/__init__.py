"""One program under the simulated loader, without the host's files and with them.

Takes what the loader maps in both cases; makes a `SimulatedProgram`: what is missing only with
them. Reads nothing.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.loading.comparison import brought_by as brought_by
    from mpigraft.graft.loading.comparison import compare_levels as compare_levels
    from mpigraft.graft.loading.comparison import compare_loading as compare_loading
    from mpigraft.graft.loading.comparison import plain as plain
    from mpigraft.graft.loading.values import PRIVATE as PRIVATE
    from mpigraft.graft.loading.values import Loaded as Loaded
    from mpigraft.graft.loading.values import LoadedByLevel as LoadedByLevel
    from mpigraft.graft.loading.values import Sides as Sides
    from mpigraft.graft.loading.values import SimulatedProgram as SimulatedProgram
    from mpigraft.graft.loading.values import distinct as distinct
else:
    __getattr__ = exports(__name__)
