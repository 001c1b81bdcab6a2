"""What goes into a guest: the loader simulated until nothing is missing.

Takes a guest and an `MpiAbi`; makes an `Injection`, and of it the plan of a graft folder. Reads
files alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.graft.resolve.injection import inject as inject
    from mpigraft.graft.resolve.injection import inject_nothing as inject_nothing
    from mpigraft.graft.resolve.plan import BENCH as BENCH
    from mpigraft.graft.resolve.plan import GPU_SELECT as GPU_SELECT
    from mpigraft.graft.resolve.plan import PLACE_ON_HOST as PLACE_ON_HOST
    from mpigraft.graft.resolve.plan import RELAY as RELAY
    from mpigraft.graft.resolve.plan import TRACE as TRACE
    from mpigraft.graft.resolve.plan import WITNESS as WITNESS
    from mpigraft.graft.resolve.plan import changed_paths as changed_paths
    from mpigraft.graft.resolve.plan import path_stamps as path_stamps
    from mpigraft.graft.resolve.plan import plan_folder as plan_folder
    from mpigraft.graft.resolve.values import Injection as Injection
else:
    __getattr__ = exports(__name__)
