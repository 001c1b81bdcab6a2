"""What the witness wrote, compared with what was requested."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from mpigraft.core.fingerprint import boot_id
from mpigraft.core.hostnames import match_hosts
from mpigraft.core.model import (
    NOWHERE,
    Configuration,
    Finding,
    Layout,
    MappedLibrary,
    Placement,
    RankRecord,
)
from mpigraft.core.text import join_some
from mpigraft.core.worlds import ALONE, STARTED, list_worlds
from mpigraft.evidence.world import bindings
from mpigraft.evidence.world.mapped import LIBMPI
from mpigraft.evidence.world.networks import check_networks
from mpigraft.evidence.world.overrides import check_overrides
from mpigraft.evidence.world.records import UNREAD
from mpigraft.graft.folder import graft_folder
from mpigraft.graft.stack.generations import mixed_generations
from mpigraft.launch import Launched
from mpigraft.launch.hosts import fold_hosts
from mpigraft.launch.launchers import format_cpus

FEW = 16  # hosts, ranks or files that are told one by one; of thousands nobody reads each


def check_launched(
    configuration: Configuration, layout: Layout, launched: Launched
) -> tuple[Finding, ...]:
    """What is wrong with the world of a launch that ended; see `check_witness`."""
    ended = launched.completed.ok
    where = (launched.placement, launched.hosts)
    return check_witness(configuration, layout, launched.ranks, *where, ended=ended)


def check_witness(
    configuration: Configuration,
    layout: Layout,
    ranks: Sequence[RankRecord],
    placement: Placement = NOWHERE,
    hosts: Sequence[str] = (),
    *,
    ended: bool = True,
) -> tuple[Finding, ...]:
    """What is wrong with the world that ran: records, size, hosts, libmpi, libfabric and UCX,
    generations of an override, CPUs and GPUs, which are held against `placement` where it is known.
    `hosts` are those of the allocation: they name the nodes of which no record came. `ended`: the
    launch ended well. Other worlds that ran in the job are named, and are not its ranks."""
    everyone = [rank for rank in ranks if rank.rank != UNREAD]
    records = [rank for rank in everyone if rank.of_launch]
    unread = [f"{r.host}: {r.library_version}" for r in ranks if r.rank == UNREAD]
    problems = unread[:FEW]
    if more := unread[FEW:]:
        problems.append(f"{len(more)} more, the last {more[-1]}")
    findings = [Finding.of("witness-unreadable", problem=problem) for problem in problems]
    if not records:
        return (*findings, _no_world(everyone))
    findings += (
        _unshared(layout, records, hosts, ended=ended)
        or _world(layout, records, hosts)
        or _hosts(layout, records)
    )
    started = [rank for rank in everyone if rank.world_kind in STARTED]
    lists = {id(rank.libraries): rank.libraries for rank in started}  # thousands share one
    findings += mixed_generations(library for own in lists.values() for library in own)
    findings += check_overrides(configuration, started) or _library(configuration, started)
    findings += check_networks(configuration, started)
    scheduled = configuration.launcher is not None
    findings += bindings.check(layout, placement, records, scheduled=scheduled)
    return (*findings, *_other_worlds(everyone))


def _no_world(others: Sequence[RankRecord]) -> Finding:
    """No rank of the launch: none entered MPI, or those that did are of other worlds."""
    if not others:
        return Finding.of("no-witness")
    return Finding.of("no-launch-world", worlds=_listed(others))


def _other_worlds(ranks: Iterable[RankRecord]) -> list[Finding]:
    """The other worlds that ran in the job; a warning where its own launcher started one."""
    others = [rank for rank in ranks if rank.world]
    if not others:
        return []
    alone = [rank for rank in others if rank.world_kind == ALONE]
    if alone:
        return [Finding.of("worlds-alone", worlds=_listed(alone))]
    return [Finding.of("worlds-inner", worlds=_listed(others))]


def _listed(ranks: Iterable[RankRecord]) -> str:
    """ "2 x python3 (1 rank), app (2 ranks)": what ran in each world."""
    worlds = {rank.world: rank for rank in ranks}
    return list_worlds((r.program, r.size, r.world_kind) for r in worlds.values())


def _named(hosts: Sequence[str]) -> str:
    if len(hosts) <= FEW:
        return ", ".join(hosts)
    return fold_hosts(sorted(hosts, key=lambda host: (len(host), host)), FEW)  # n9 before n10


def _numbers(ranks: Sequence[RankRecord]) -> str:
    """The ranks of which there are records, and those of which there are several."""
    times = Counter(rank.rank for rank in ranks)
    if len(ranks) <= FEW:
        return ", ".join(str(number) for number in sorted(times.elements()))
    several = [number for number, count in times.items() if count > 1]
    again = f", several of {_ranges(several)}" if several else ""
    return _ranges(times) + again


def _ranges(numbers: Iterable[int]) -> str:
    return join_some(format_cpus(numbers).split(","), FEW, ", ")


def _unshared(
    layout: Layout, ranks: Sequence[RankRecord], hosts: Sequence[str], *, ended: bool
) -> list[Finding]:
    """Whole nodes that left no record, where those that did belong to the world asked for."""
    counts = Counter(rank.host for rank in ranks)
    numbers = {rank.rank for rank in ranks}
    if len(counts) >= layout.nodes or {rank.size for rank in ranks} != {layout.ranks}:
        return []
    if {*counts.values()} != {layout.ranks_per_node} or len(numbers) != len(ranks):
        return []
    silent = [host for host, count in _records_by_host(layout, ranks, hosts) if not count]
    if len(silent) != layout.nodes - len(counts):  # called by addresses, or by other names
        silent = []
    nodes = _named(silent) or f"{layout.nodes - len(counts)} of {layout.nodes} nodes"
    others = _named(sorted(counts))
    if not ended:
        return [Finding.of("nodes-without-mpi", nodes=nodes, others=others)]
    return [Finding.of("witness-unshared", nodes=nodes, others=others)]


def _records_by_host(
    layout: Layout, ranks: Sequence[RankRecord], hosts: Sequence[str]
) -> tuple[tuple[str, int], ...]:
    """Hosts of the launch, as the allocation calls them, with how many records came of each. The
    same name may be written in full or in capitals."""
    called = match_hosts((rank.host for rank in ranks), hosts[: layout.nodes])
    counts = Counter(called.get(rank.host) for rank in ranks)
    return tuple((host, counts[host]) for host in hosts[: layout.nodes])


def _world(layout: Layout, ranks: Sequence[RankRecord], hosts: Sequence[str] = ()) -> list[Finding]:
    sizes = sorted({rank.size for rank in ranks})
    ranks_due = layout.ranks
    if sizes == [1] and ranks_due > 1:
        return [Finding.of("LCH-01", worlds=len(ranks), due=ranks_due)]
    if sizes != [ranks_due]:
        listed = ", ".join(map(str, sizes))
        return [Finding.of("world-size", due=ranks_due, sizes=listed)]
    if [rank.rank for rank in sorted(ranks, key=lambda r: r.rank)] != list(range(ranks_due)):
        due, counts = layout.ranks_per_node, _records_by_host(layout, ranks, hosts)
        few = join_some([f"{n} of {due} on {host}" for host, n in counts if n < due], FEW, ", ")
        known = sum(n for _, n in counts) == len(ranks)  # else hosts have other names here
        where = f" ({few})" if few and known else ""
        return [Finding.of("world-ranks", numbers=_numbers(ranks), where=where, last=ranks_due - 1)]
    return []


def _hosts(layout: Layout, ranks: Sequence[RankRecord]) -> list[Finding]:
    per_host = Counter(rank.host for rank in ranks)
    uneven = {host: n for host, n in per_host.items() if n != layout.ranks_per_node}
    if len(per_host) != layout.nodes:
        names = _named(sorted(per_host))
        problem = f"requested {layout.nodes} nodes, ran on {len(per_host)}: {names}"
    elif uneven:
        counts = join_some([f"{n} on {host}" for host, n in sorted(uneven.items())], FEW, ", ")
        problem = f"requested {layout.ranks_per_node} ranks per node, ran {counts}"
    else:
        return []
    return [Finding.of("hosts", problem=problem)]


def libmpis(ranks: Iterable[RankRecord]) -> tuple[MappedLibrary, ...]:
    """Every distinct MPI library that some rank has mapped."""
    lists = {id(rank.libraries): rank.libraries for rank in ranks}  # thousands share one
    libraries = {
        (lib.device, lib.inode): lib
        for own in lists.values()
        for lib in own
        if LIBMPI.fullmatch(_file_name(lib.path))
    }
    return tuple(libraries.values())


def _file_name(path: str) -> str:
    return path.removesuffix(" (deleted)").rpartition("/")[2]


def _library(configuration: Configuration, ranks: Sequence[RankRecord]) -> list[Finding]:
    """Exactly one libmpi in every rank, and the one of the configuration."""
    kinds = {id(rank.libraries): rank for rank in ranks}
    lacking = {kind for kind, rank in kinds.items() if not libmpis([rank])}
    without = [rank.rank for rank in ranks if id(rank.libraries) in lacking]
    if without:
        return [Finding.of("libmpi-none", rank=without[0])]
    due, mapped = due_library(configuration), libmpis(ranks)
    if isinstance(due, MappedLibrary) and not due.inode:  # each rank has a mount of its own
        own = [lib for lib in mapped if is_library(configuration, due, lib)]
        others = {lib.path: lib for lib in mapped if lib not in own}
        mapped = (*own[:1], *others.values())
    else:
        mapped = _of_one_kernel(configuration, ranks) or mapped
    versions = {rank.library_version for rank in ranks}
    if len(mapped) > 1 or len(versions) > 1:
        paths = ", ".join(sorted({lib.path for lib in mapped}))
        paths += f" in {len(versions)} versions" if len(versions) > 1 else ""
        return [Finding.of("libmpi-several", paths=paths)]
    if isinstance(due, str):
        return [Finding.of("libmpi-unknown", path=mapped[0].path, reason=due)]
    if not is_library(configuration, due, mapped[0]) and not _may_be_due(
        configuration, due, mapped[0], ranks
    ):
        return [Finding.of("libmpi-other", due=due.path, path=mapped[0].path)]
    return []


def _of_one_kernel(
    configuration: Configuration, ranks: Sequence[RankRecord]
) -> tuple[MappedLibrary, ...]:
    """The MPI libraries of the ranks under one kernel, this one if any, if those of the others are
    files that can be the same: a file server's disk has another device number on each node, and
    what is installed on each node's own disk another inode. Empty: they cannot."""
    this_kernel, ranks_by_kernel = boot_id(), defaultdict[str, list[RankRecord]](list)
    for rank in ranks:
        ranks_by_kernel[rank.boot].append(rank)
    groups = [
        _of_nodes_of(ranks_by_kernel[boot])
        for boot in sorted(ranks_by_kernel, key=lambda boot: (boot != this_kernel, boot))
    ]
    alone = [group[0] for group in groups if len(group) == 1]
    if len(alone) != len(groups):
        return ()
    first, *others = alone
    host = configuration.graft is None  # in a guest, one path may be two files
    same = all(o.inode == first.inode or (host and o.path == first.path) for o in others)
    return (first,) if same else ()


def _of_nodes_of(ranks: Sequence[RankRecord]) -> tuple[MappedLibrary, ...]:
    """The MPI libraries of ranks under one kernel, as this node names them. Nodes that are
    namespaces of it may each have mounted one image: inode and path are the same, the device
    is not."""
    this_node, ranks_by_host = os.uname().nodename, defaultdict[str, list[RankRecord]](list)
    for rank in ranks:
        ranks_by_host[rank.host].append(rank)
    groups = [
        libmpis(ranks_by_host[host])
        for host in sorted(ranks_by_host, key=lambda host: (host != this_node, host))
    ]
    alike = {(library.inode, library.path) for group in groups for library in group}
    one_each = all(len(group) == 1 for group in groups)
    return groups[0] if one_each and len(alike) == 1 else libmpis(ranks)


def _may_be_due(
    configuration: Configuration,
    due: MappedLibrary,
    mapped: MappedLibrary,
    ranks: Sequence[RankRecord],
) -> bool:
    """Whether a library of other nodes, with not one rank on this, can be the one that was due."""
    if any(rank.boot in ("", boot_id()) for rank in ranks):
        return False
    path = os.path.realpath(due.path)
    return due.inode == mapped.inode or (configuration.graft is None and path == mapped.path)


def due_library(configuration: Configuration) -> MappedLibrary | str:
    """The libmpi that ranks must map, or why it is not known. Inode 0: only its path is, since a
    file of an image has the numbers of whatever file system the engine makes of it."""
    plan, mpi = configuration.graft, configuration.mpi
    if plan and not plan.libmpi_copy:
        return MappedLibrary(plan.libmpi, 0, 0)
    path = graft_folder(plan) / plan.libmpi_copy if plan else mpi and mpi.libmpi
    if not path:
        return "the intended library is not known"
    try:
        status = path.stat()  # follows links
    except OSError as error:
        return f"{path}, the intended library, cannot be read: {error.strerror}"
    return MappedLibrary(str(path), status.st_dev, status.st_ino)


def is_library(configuration: Configuration, due: MappedLibrary, mapped: MappedLibrary) -> bool:
    """By device and inode: a path can be a link, a bind mount or replaced. The guest's own has
    another path where the loader takes another file for the node's CPU."""
    if not due.inode:
        plan = configuration.graft
        return mapped.path in (due.path, *(plan.libmpi_elsewhere if plan else ()))
    return (due.device, due.inode) == (mapped.device, mapped.inode)
