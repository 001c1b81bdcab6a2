"""Turn layouts into the CPUs and the GPU of each rank of a node.

Each launcher has its own options for binding, and some know no L3 cache. So the CPUs are chosen
here, once, from what `discover` found, and every launcher gets the same ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from mpigraft.core.errors import UsageError
from mpigraft.core.hostnames import same_host
from mpigraft.core.model import (
    MAP_BY,
    Allocation,
    Core,
    Cpu,
    Gpu,
    Layout,
    Machine,
    Placement,
    cores_of,
    count_cores,
)
from mpigraft.knowledge import nearest_cpus


def placement_for(layout: Layout, machine: Machine, nodes: Allocation) -> Placement:
    """Return the CPUs and GPUs that launchers get for a layout on machines like this one: none for
    a plain one, for which they have options of their own. Raises UsageError as `assign_cpus`.

    Where an affinity mask (taskset, numactl, a scheduler without cpusets) leaves this process fewer
    CPUs than its cpuset has, ranks of this node alone get those of the mask: by itself a launcher
    takes the first ones of the cpuset."""
    confined = bool(machine.cpu.cpuset) and layout.nodes == 1 and layout.bind != "none"
    here = nodes.here or same_host(nodes.hosts[0], machine.hostname)
    if layout.plain and not (confined and here):
        return Placement()
    return assign_cpus(layout, machine.cpu, machine.gpus)


def assign_cpus(layout: Layout, cpu: Cpu, gpus: Sequence[Gpu] = ()) -> Placement:
    """Assign CPUs and a GPU to each rank of a node.

    Ranks are dealt to caches, domains or sockets evenly and in order, so that neighbours stay
    near (Intel MPI's `bunch`; Open MPI's `ppr`): fewer ranks than domains are spread over all of
    them. Inside of one, each takes the next `threads` cores, all hardware threads of a core
    together. Round robin was rejected: it separates ranks that usually communicate most. Raises
    UsageError for a layout that does not fit, or needs GPUs where there are none.
    """
    if layout.gpus and not gpus:
        raise UsageError.of("layout-no-gpu", key=layout.key)
    ranks, free = layout.ranks_per_node, layout.bind == "none"
    alike = [gpu for gpu in gpus if layout.gpus and gpu.vendor == gpus[0].vendor]
    nearest, vendor = nearest_cpus(cpu, alike), alike[0].vendor if alike else ""
    if free and (not alike or ranks * layout.threads > len(cores_of(cpu))):
        chosen: Sequence[int] = [rank * len(alike) // ranks for rank in range(ranks) if alike]
        bound: tuple[tuple[int, ...], ...] = ()
    else:
        homes = _homes(layout, cpu, nearest)
        chosen = _chosen_gpus(homes, cpu, nearest)
        bound = () if free else tuple(_widened(home, layout, cpu) for home in homes)
    return Placement(bound, tuple(alike[n].index for n in chosen), vendor)


def groups_of(level: str, cpu: Cpu) -> tuple[tuple[int, ...], ...]:
    """CPUs of each l3cache, numa or socket; of another level all CPUs as one group."""
    match level:
        case "l3cache":
            return cpu.l3
        case "numa":
            return cpu.numa
        case "socket":
            return cpu.socket_cpus
    return (tuple(sorted(c for core in cores_of(cpu) for c in core)),)


def _homes(layout: Layout, cpu: Cpu, nearest: Sequence[Core]) -> list[list[Core]]:
    """Return the `threads` cores of each rank. Ranks with GPUs and no mapping of their own go where
    the GPUs are, if all of them find room there."""
    ranks, threads, cores = layout.ranks_per_node, layout.threads, cores_of(cpu)
    by_gpu = nearest and layout.map_by in ("core", "node")
    for groups in (sorted(set(nearest)) if by_gpu else (), groups_of(layout.map_by, cpu)):
        cores_of_group = [[core for core in cores if core[0] in set(group)] for group in groups]
        rooms = [len(group) // threads for group in cores_of_group]
        if groups and sum(rooms) >= ranks:
            return [
                group[n * threads : (n + 1) * threads]
                for group, quota in zip(cores_of_group, _quotas(ranks, rooms), strict=True)
                for n in range(quota)
            ]
    raise _no_room(layout, cpu)


def _quotas(ranks: int, rooms: Sequence[int]) -> list[int]:
    """Return how many ranks each group takes: the same number, or one more, as far as there is
    room. A core that the system keeps for itself makes one group smaller than its sisters."""
    count = len(rooms)
    bounds = [-(-n * ranks // count) for n in range(count + 1)]
    quotas = [
        min(end - begin, room) for (begin, end), room in zip(pairwise(bounds), rooms, strict=True)
    ]
    for _ in range(ranks - sum(quotas)):
        free = [n for n in range(count) if quotas[n] < rooms[n]]
        quotas[min(free, key=lambda n: (quotas[n], n))] += 1
    return quotas


def _no_room(layout: Layout, cpu: Cpu) -> UsageError:
    """Say which limit is exceeded, and what would fit."""
    ranks, threads, level = layout.ranks_per_node, layout.threads, layout.map_by
    total = len(cores_of(cpu))
    want = f"layout {layout.key} needs {ranks} ranks with {count_cores(threads)} each on a node"
    if ranks * threads > total:
        return UsageError.of("layout-too-large", want=want, total=total)
    groups = groups_of(level, cpu)
    if not groups:
        return UsageError.of("layout-level-unknown", want=want, domain=level)
    sizes = sorted({sum(core[0] in group for core in cores_of(cpu)) for group in groups})
    wider = [
        name
        for name in MAP_BY[MAP_BY.index(level) + 1 :]
        if sum(sum(c[0] in g for c in cores_of(cpu)) // threads for g in groups_of(name, cpu))
        >= ranks
    ]
    cores = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
    return UsageError.of(
        "layout-level-too-small",
        want=want,
        count=len(groups),
        domain=level,
        cores=cores,
        wider=" or ".join(("core", *wider)),
    )


def _widened(home: Iterable[Core], layout: Layout, cpu: Cpu) -> tuple[int, ...]:
    """Return all CPUs of what the rank is bound to: its own cores, or each cache, domain or socket
    that has one of them. Raises UsageError where none is known: its own cores are less than what
    was requested."""
    own = {c for core in home for c in core}
    if layout.bind == "core":
        return tuple(sorted(own))
    around = {c for group in groups_of(layout.bind, cpu) if own & set(group) for c in group}
    if alone := own - around:
        raise UsageError.of("layout-bind-unknown", key=layout.key, bind=layout.bind, cpu=min(alone))
    return tuple(sorted(around))


# ------------------------------------------------------------------ GPUs


def _chosen_gpus(
    homes: Sequence[Sequence[Core]], cpu: Cpu, nearest: Sequence[Core]
) -> tuple[int, ...]:
    """Return the GPU of each rank, as near as can be while none has more ranks than it must: first
    those that have one beside them, then those of the same domain, of the same socket, and the
    rest. Among equals the nearest in number wins: domains are numbered as they lie, as a rule."""
    most = -(-len(homes) // len(nearest)) if nearest else 0
    load = [0] * len(nearest)
    chosen: dict[int, int] = {}
    for reach in range(4):
        for rank, home in enumerate(homes):
            if rank in chosen:
                continue
            free = [
                gpu
                for gpu in range(len(nearest))
                if load[gpu] < most and distance(home, nearest[gpu], cpu) <= reach
            ]
            if free:
                near = {gpu: abs(home[0][0] - min(nearest[gpu], default=0)) for gpu in free}
                chosen[rank] = min(free, key=lambda gpu: (load[gpu], near[gpu], gpu))
                load[chosen[rank]] += 1
    return tuple(chosen[rank] for rank in sorted(chosen))


def distance(home: Iterable[Core], gpu: Iterable[int], cpu: Cpu) -> int:
    """0: a GPU's nearest CPUs are among these cores; 1: they share a NUMA domain; 2: a socket;
    3: neither, or it is not known where the GPU is."""
    own, near = {c for core in home for c in core}, set(gpu)
    if own & near:
        return 0
    for far, groups in ((1, cpu.numa), (2, cpu.socket_cpus)):
        if any(own & set(group) and near & set(group) for group in groups):
            return far
    return 3
