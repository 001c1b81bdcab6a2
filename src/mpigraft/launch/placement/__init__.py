"""Layouts, and the CPUs and GPUs of each rank.

Takes a layout's key and a node's hardware; makes a `Layout` and its `Placement`. Computes alone.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.launch.placement.layouts import BIND_TO as BIND_TO
    from mpigraft.launch.placement.layouts import LAYOUT_PATTERN as LAYOUT_PATTERN
    from mpigraft.launch.placement.layouts import MAP_BY as MAP_BY
    from mpigraft.launch.placement.layouts import MAX_COUNT as MAX_COUNT
    from mpigraft.launch.placement.layouts import Core as Core
    from mpigraft.launch.placement.layouts import assign_cpus as assign_cpus
    from mpigraft.launch.placement.layouts import cores_of as cores_of
    from mpigraft.launch.placement.layouts import layout_key as layout_key
    from mpigraft.launch.placement.layouts import parse_layout as parse_layout
    from mpigraft.launch.placement.layouts import placement_for as placement_for
    from mpigraft.launch.placement.layouts import refuse_count as refuse_count
else:
    __getattr__ = exports(__name__)
