"""How a configuration is started on a layout: layers of argument lists.

Takes a configuration, a layout and an allocation; makes a `Launch` and what each launcher is
given. Computes; starts nothing. Rooms inside: `launchers`, `placement`, `hosts`, `schedulers`.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.launch.command import engine_context as engine_context
    from mpigraft.launch.command import granted_cpus as granted_cpus
    from mpigraft.launch.command import prepare_launch as prepare_launch
    from mpigraft.launch.describe import RenderedCommand as RenderedCommand
    from mpigraft.launch.describe import launchers_here as launchers_here
    from mpigraft.launch.describe import render_launchers as render_launchers
    from mpigraft.launch.gpu_select import encode_word as encode_word
    from mpigraft.launch.gpu_select import visible_gpus as visible_gpus
    from mpigraft.launch.launch_request import IN_GUEST as IN_GUEST
    from mpigraft.launch.launch_request import LaunchRequest as LaunchRequest
    from mpigraft.launch.launch_request import Tracing as Tracing
    from mpigraft.launch.launched import Launched as Launched
else:
    __getattr__ = exports(__name__)
