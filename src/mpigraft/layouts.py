"""Layouts: read from words, and turned into the CPUs and the GPU of each rank of a node.

Launchers bind in words of their own, and some know no L3 cache. So the CPUs are chosen here, once,
from what `discover` saw, and every launcher is told the same ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise

from mpigraft.errors import UsageError
from mpigraft.knowledge import gpus as near
from mpigraft.model import Cpu, Gpu, Layout, Machine, Placement

MAP_BY = ("core", "l3cache", "numa", "socket", "node")
BIND_TO = ("core", "l3cache", "numa", "socket", "none")
GRAMMAR = re.compile(
    r"(?P<nodes>\d{1,6})x(?P<ranks>\d{1,6})(?:x(?P<threads>\d{1,6}))?"
    r"(?::(?P<map>[a-z0-9]+))?(?:-(?P<bind>[a-z0-9]+))?(?P<gpus>\+gpus)?",
    re.ASCII,
)
EXAMPLE = "for example 2x8 (nodes x ranks per node), 2x8x7 with threads, 2x8x7:l3cache-numa+gpus"

MOST = 999_999  # nodes, ranks and threads, each: what GRAMMAR has room for

Core = tuple[int, ...]  # its CPUs: one, or as many as it has hardware threads


# ------------------------------------------------------------------ words


def parse(text: str, cores: int) -> Layout:
    """A layout from its key: `2x8x7:l3cache-numa+gpus`. Where a mapping or a binding is written,
    launchers are to be told the CPUs, of `2x8:core` and `2x8-core` too. More ranks times threads
    than `cores` of a node are not bound; raises UsageError where they were to be, and for other
    words."""
    found = GRAMMAR.fullmatch(text)
    numbers = [int(found[name] or 1) for name in ("nodes", "ranks", "threads")] if found else [0]
    if found is None or 0 in numbers:
        raise UsageError(f"layout {text!r} is not NODESxRANKS", mend=EXAMPLE)
    nodes, ranks, threads = numbers
    map_by, bind = found["map"] or "core", found["bind"] or ""
    _refuse_unknown(f"layout {text!r}: mapping", map_by, MAP_BY)
    _refuse_unknown(f"layout {text!r}: binding", bind or "core", BIND_TO)
    crowded = ranks * threads > cores
    if crowded and bind not in ("", "none"):
        raise UsageError(
            f"layout {text!r} binds {ranks} ranks with {_cores(threads)} each, of {cores} in all",
            why="ranks that share a core wait for each other's time slice",
            mend="use fewer ranks or threads, or leave them unbound: -none, --bind-to none",
        )
    said, gpus = bool(found["map"] or bind), bool(found["gpus"])
    bind = "none" if crowded else bind or "core"
    usual = (map_by, bind) == ("core", "core") and not gpus  # else the key tells by itself
    return Layout(nodes, ranks, threads, bind, map_by, gpus, explicit=said and usual)


def from_flags(
    nodes: int,
    ranks_per_node: int,
    threads: int = 1,
    map_by: str = "",
    bind_to: str = "",
    gpus: bool = False,
) -> str:
    """The words that flags mean, for `parse`: those that were said, and no default in the place
    of an empty one. Raises UsageError, naming the flag."""
    numbers = {"--nodes": nodes, "--ranks-per-node": ranks_per_node, "--threads": threads}
    for flag, number in numbers.items():
        refuse_count(flag, number)
    _refuse_unknown("--map-by", map_by or "core", MAP_BY)
    _refuse_unknown("--bind-to", bind_to or "core", BIND_TO)
    words = f"{nodes}x{ranks_per_node}" + (f"x{threads}" if threads > 1 else "")
    words += (f":{map_by}" if map_by else "") + (f"-{bind_to}" if bind_to else "")
    return f"{words}{'+gpus' if gpus else ''}"


def refuse_count(flag: str, number: int) -> None:
    """Raise UsageError for a number of nodes, ranks or threads that is none."""
    if not 1 <= number <= MOST:
        raise UsageError(f"{flag} {number}", mend=f"give a number, 1 to {MOST:,}")


def _refuse_unknown(what: str, word: str, known: tuple[str, ...]) -> None:
    if word not in known:
        raise UsageError(f"{what} {word!r} is unknown", mend=f"one of {', '.join(known)}")


def _cores(count: int) -> str:
    return "one core" if count == 1 else f"{count} cores"


# ------------------------------------------------------------------ places


def masks(layout: Layout, cpu: Cpu, gpus: Sequence[Gpu] = ()) -> tuple[tuple[int, ...], ...]:
    """CPUs of each rank of a node, ascending; empty where nothing is bound. Raises UsageError
    for a layout that does not fit these CPUs."""
    return place(layout, cpu, gpus).masks


def told(layout: Layout, machine: Machine) -> Placement:
    """What launchers are told of a layout on machines like this one, by whichever command: nothing
    of a plain one, for which they have words of their own. Raises UsageError as `place` does."""
    return Placement() if layout.plain else place(layout, machine.cpu, machine.gpus)


def place(layout: Layout, cpu: Cpu, gpus: Sequence[Gpu] = ()) -> Placement:
    """CPUs and GPU of each rank of a node.

    Ranks are dealt to caches, domains or sockets evenly and in order, so that neighbours stay
    near (Intel MPI's `bunch`; Open MPI's `ppr`): fewer ranks than domains are spread over all of
    them. Inside of one, each takes the next `threads` cores, all hardware threads of a core
    together. Round robin was rejected: it parts ranks that as a rule talk the most. Raises
    UsageError for a layout that does not fit, or wants GPUs where there are none.
    """
    if layout.gpus and not gpus:
        raise UsageError(
            f"layout {layout.key} gives each rank a GPU, but there is none here",
            mend="go where they are, or leave +gpus (--gpus) out; `mpigraft layout --machine FILE`"
            " draws another machine, by its `discover --json`",
        )
    ranks, free = layout.ranks_per_node, layout.bind == "none"
    alike = [gpu for gpu in gpus if layout.gpus and gpu.vendor == gpus[0].vendor]
    nearest, vendor = near.nearest(cpu, alike), alike[0].vendor if alike else ""
    if free and (not alike or ranks * layout.threads > len(cores_of(cpu))):
        chosen: Sequence[int] = [rank * len(alike) // ranks for rank in range(ranks) if alike]
        bound: tuple[tuple[int, ...], ...] = ()
    else:
        homes = _homes(layout, cpu, nearest)
        chosen = _chosen_gpus(homes, cpu, nearest)
        bound = () if free else tuple(_widened(home, layout, cpu) for home in homes)
    return Placement(bound, tuple(alike[n].index for n in chosen), vendor)


def cores_of(cpu: Cpu) -> tuple[Core, ...]:
    """Physical cores in the order of the hardware, socket by socket. Some machines number CPUs
    across sockets in turn: those of neighbouring numbers are then far from each other."""
    cpus = sorted({c for group in (*cpu.numa, *cpu.l3) for c in group} or range(cpu.threads))
    cores = cpu.core_cpus or tuple((c,) for c in cpus)
    levels = [_index(groups) for groups in (cpu.socket_cpus, cpu.numa, cpu.l3)]

    def place_of(core: Core) -> tuple[int, ...]:
        return (*(level.get(core[0], -1) for level in levels), core[0])

    return tuple(sorted(cores, key=place_of))


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


def _index(groups: Iterable[Iterable[int]]) -> dict[int, int]:
    return {c: n for n, group in enumerate(groups) for c in group}


def _homes(layout: Layout, cpu: Cpu, nearest: Sequence[Core]) -> list[list[Core]]:
    """The `threads` cores of each rank. Ranks with GPUs and no mapping of their own go where the
    GPUs are, if all of them find room there."""
    ranks, threads, cores = layout.ranks_per_node, layout.threads, cores_of(cpu)
    by_gpu = nearest and layout.map_by in ("core", "node")
    for groups in (sorted(set(nearest)) if by_gpu else (), groups_of(layout.map_by, cpu)):
        held = [[core for core in cores if core[0] in set(group)] for group in groups]
        rooms = [len(group) // threads for group in held]
        if groups and sum(rooms) >= ranks:
            return [
                group[n * threads : (n + 1) * threads]
                for group, quota in zip(held, _quotas(ranks, rooms), strict=True)
                for n in range(quota)
            ]
    raise _no_room(layout, cpu)


def _quotas(ranks: int, rooms: Sequence[int]) -> list[int]:
    """How many ranks each group takes: the same number, or one more, as far as there is room. A
    core that the system keeps for itself makes one group smaller than its sisters."""
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
    """Where it ends, and what would do."""
    ranks, threads, level = layout.ranks_per_node, layout.threads, layout.map_by
    total = len(cores_of(cpu))
    want = f"layout {layout.key} wants {ranks} ranks with {_cores(threads)} each on a node"
    if ranks * threads > total:
        return UsageError(f"{want}, which has {total}", mend="use fewer ranks or threads")
    groups = groups_of(level, cpu)
    if not groups:
        return UsageError(
            f"{want}, dealt over each {level}, and none is known of here",
            mend="map over cores or NUMA domains",
        )
    sizes = sorted({sum(core[0] in group for core in cores_of(cpu)) for group in groups})
    wider = [
        name
        for name in MAP_BY[MAP_BY.index(level) + 1 :]
        if sum(sum(c[0] in g for c in cores_of(cpu)) // threads for g in groups_of(name, cpu))
        >= ranks
    ]
    said = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
    return UsageError(
        f"{want}, dealt over {len(groups)} x {level} of {said} cores: there they do not fit",
        why="the cores of one rank are not taken from two of them",
        mend=f"use fewer ranks or threads, or map over {' or '.join(('core', *wider))}",
    )


def _widened(home: Iterable[Core], layout: Layout, cpu: Cpu) -> tuple[int, ...]:
    """All CPUs of what the rank is bound to: its own cores, or each cache, domain or socket that
    one of them lies in. Raises UsageError where none is known: its own cores are less than what
    was asked for."""
    own = {c for core in home for c in core}
    if layout.bind == "core":
        return tuple(sorted(own))
    around = {c for group in groups_of(layout.bind, cpu) if own & set(group) for c in group}
    if alone := own - around:
        raise UsageError(
            f"layout {layout.key} binds each rank to its {layout.bind}, and of CPU {min(alone)} "
            "none is known here",
            mend="bind to core, or to none",
        )
    return tuple(sorted(around))


# ------------------------------------------------------------------ GPUs


def _chosen_gpus(
    homes: Sequence[Sequence[Core]], cpu: Cpu, nearest: Sequence[Core]
) -> tuple[int, ...]:
    """The GPU of each rank, as near as can be while none has more ranks than it must: first those
    that have one beside them, then those of the same domain, of the same socket, and the rest.
    Among equals the nearest in number wins: domains are numbered as they lie, as a rule."""
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
    mine, its = {c for core in home for c in core}, set(gpu)
    if mine & its:
        return 0
    for far, groups in ((1, cpu.numa), (2, cpu.socket_cpus)):
        if any(mine & set(group) and its & set(group) for group in groups):
            return far
    return 3
