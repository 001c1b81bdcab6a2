"""Make the layouts that a request means on these nodes: named whole, or by their axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    MAX_COUNT,
    Allocation,
    Layout,
    Machine,
    granted_cpus,
    layout_key,
    parse_layout,
)
from mpigraft.launch import THIS_HOST, placement_for
from mpigraft.request import CampaignSpec

MOST_LAYOUTS = 1000  # that axes may make: beyond it somebody did not multiply


def requested_layouts(
    spec: CampaignSpec, machine: Machine, nodes: Allocation = THIS_HOST
) -> tuple[Layout, ...]:
    """Make those that were requested; else a pair of ranks as far apart as the allocation allows,
    and every core whose CPUs the job has. Raises UsageError for more nodes than there are, and for
    a layout that does not fit, before anything starts."""
    here = len(nodes.hosts)
    words = (*spec.layout, *_of_axes(spec, machine, nodes))
    if layouts := tuple(dict.fromkeys(_fitted(text, machine, nodes) for text in words)):
        return layouts
    cores = _cores(machine, nodes, here)
    pair = Layout(here, 2 if here == 1 else 1, bind="core" if cores >= 2 or here > 1 else "none")
    if spec.quick or cores <= 2:
        return (pair,)
    return (pair, Layout(here, cores))


def _of_axes(spec: CampaignSpec, machine: Machine, nodes: Allocation) -> Iterator[str]:
    """Yield the words of each combination: on all nodes of the allocation unless a number is given,
    and with a rank for every `threads` cores unless the ranks are."""
    axes = (
        spec.nodes or (len(nodes.hosts),), spec.ranks_per_node or (0,), spec.threads or (1,),
        spec.map_by or ("",), spec.bind_to or ("",),
    )  # fmt: skip
    if not spec.axes:
        return
    if (many := math.prod(map(len, axes))) > MOST_LAYOUTS:
        raise UsageError.of("layouts-too-many", count=many)
    for count, ranks, threads, map_by, bind_to in product(*axes):
        full = max(1, _cores(machine, nodes, count) // threads)
        yield layout_key(count, ranks or full, threads, map_by, bind_to, spec.gpus)


def _fitted(text: str, machine: Machine, nodes: Allocation) -> Layout:
    """Parse a layout, on the first nodes of the allocation."""
    count, here = parse_layout(text, MAX_COUNT**2).nodes, len(nodes.hosts)
    if count > here:
        raise UsageError.of(
            "layout-needs-more-nodes", text=text, count=count, source=nodes.source, here=here
        )
    layout = parse_layout(text, _cores(machine, nodes, count))
    placement_for(layout, machine, nodes)
    return layout


def _cores(machine: Machine, nodes: Allocation, count: int) -> int:
    """Return the cores of each of the first `count` nodes, at most the CPUs that the job has."""
    return min(machine.cpu.cores, *granted_cpus(nodes, count))
