"""Which layouts a wish means on this machine and these nodes: named whole, or by their axes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product

from mpigraft.errors import UsageError
from mpigraft.launch import HERE, granted
from mpigraft.layouts import MOST, from_flags, parse, told
from mpigraft.model import Allocation, Layout, Machine
from mpigraft.wish import Wish

MOST_LAYOUTS = 1000  # that axes may make: beyond it somebody did not multiply


def layouts(wish: Wish, machine: Machine, nodes: Allocation = HERE) -> tuple[Layout, ...]:
    """Those that were asked for; else a pair of ranks as far apart as the allocation has them,
    and every core of which the job has the CPUs. Raises UsageError for more nodes than there
    are, and for a layout that does not fit, before anything starts."""
    here = len(nodes.hosts)
    words = (*wish.layout, *_of_axes(wish, machine, nodes))
    if found := tuple(dict.fromkeys(_fitted(text, machine, nodes) for text in words)):
        return found
    cores = _cores(machine, nodes, here)
    pair = Layout(here, 2 if here == 1 else 1, bind="core" if cores >= 2 or here > 1 else "none")
    if wish.quick or cores <= 2:
        return (pair,)
    return (pair, Layout(here, cores))


def _of_axes(wish: Wish, machine: Machine, nodes: Allocation) -> Iterator[str]:
    """The words of each combination: on all nodes of the allocation unless their number is said,
    and with a rank for every `threads` cores unless the ranks are."""
    axes = (
        wish.nodes or (len(nodes.hosts),), wish.ranks_per_node or (0,), wish.threads or (1,),
        wish.map_by or ("",), wish.bind_to or ("",),
    )  # fmt: skip
    if not wish.axes:
        return
    if (many := math.prod(map(len, axes))) > MOST_LAYOUTS:
        raise UsageError(f"{many} layouts", mend="name fewer nodes, ranks, threads or mappings")
    for count, ranks, threads, map_by, bind_to in product(*axes):
        full = max(1, _cores(machine, nodes, count) // threads)
        yield from_flags(count, ranks or full, threads, map_by, bind_to, wish.gpus)


def _fitted(text: str, machine: Machine, nodes: Allocation) -> Layout:
    """A layout from its words, on the first nodes of the allocation."""
    count, here = parse(text, MOST**2).nodes, len(nodes.hosts)
    if count > here:
        raise UsageError(
            f"layout {text} asks for {count} nodes, {nodes.source} has {here}",
            mend="ask the scheduler for more nodes, or name some: --hosts n1,n2",
        )
    layout = parse(text, _cores(machine, nodes, count))
    told(layout, machine)
    return layout


def _cores(machine: Machine, nodes: Allocation, count: int) -> int:
    """Of each of the first `count` nodes: of no more than the CPUs that the job was granted."""
    return min(machine.cpu.cores, *granted(nodes, count))
