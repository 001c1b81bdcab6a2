"""How a configuration is started on a layout: layers of argument lists.

Takes a configuration, a layout and an allocation; makes a `Launch` and what each launcher is
given. Computes; starts nothing. Rooms inside: `launchers`, `placement`, `hosts`, `schedulers`.
"""

from __future__ import annotations

from mpigraft.core.lazy_exports import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.launch.command import engine_context as engine_context
    from mpigraft.launch.command import prepare_launch as prepare_launch
    from mpigraft.launch.describe import launchers_here as launchers_here
    from mpigraft.launch.describe import render_launchers as render_launchers
    from mpigraft.launch.gpu_select import encode_word as encode_word
    from mpigraft.launch.gpu_select import visible_gpus as visible_gpus
    from mpigraft.launch.hosts.allocation import THIS_HOST as THIS_HOST
    from mpigraft.launch.hosts.allocation import find_allocation as find_allocation
    from mpigraft.launch.hosts.comparison import compare_nodes as compare_nodes
    from mpigraft.launch.hosts.partitions import discover_partition as discover_partition
    from mpigraft.launch.hosts.partitions import keep_document as keep_document
    from mpigraft.launch.hosts.partitions import kept_document as kept_document
    from mpigraft.launch.hosts.partitions import node_differences as node_differences
    from mpigraft.launch.hosts.reachability import Nodes as Nodes
    from mpigraft.launch.launch_request import IN_GUEST as IN_GUEST
    from mpigraft.launch.launch_request import LaunchRequest as LaunchRequest
    from mpigraft.launch.launch_result import LaunchResult as LaunchResult
    from mpigraft.launch.launchers.registry import LAUNCHERS as LAUNCHERS
    from mpigraft.launch.launchers.select import FIX as FIX
    from mpigraft.launch.launchers.select import launcher_name as launcher_name
    from mpigraft.launch.launchers.select import launchers_for as launchers_for
    from mpigraft.launch.launchers.select import split_reason as split_reason
    from mpigraft.launch.placement import assign_cpus as assign_cpus
    from mpigraft.launch.placement import placement_for as placement_for
    from mpigraft.launch.schedulers.registry import SCHEDULERS as SCHEDULERS
    from mpigraft.launch.schedulers.registry import cancel_jobs as cancel_jobs
    from mpigraft.launch.schedulers.registry import find_scheduler as find_scheduler
    from mpigraft.launch.schedulers.registry import job_states as job_states
    from mpigraft.launch.schedulers.registry import submit_script as submit_script
else:
    __getattr__ = exports(__name__)
