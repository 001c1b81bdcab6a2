"""What the witness wrote, compared with what was requested."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from mpigraft.core.cpuset import format_cpus
from mpigraft.core.hostlist import fold_hosts
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
from mpigraft.evidence.world.builds import check_builds
from mpigraft.evidence.world.mapped import LIBMPI, DueLibrary, identity_of
from mpigraft.evidence.world.networks import check_networks
from mpigraft.evidence.world.overrides import check_overrides
from mpigraft.evidence.world.records import UNREAD
from mpigraft.graft import graft_folder, mixed_generations
from mpigraft.launch import LaunchResult

FEW = 16  # hosts, ranks or files that are named one by one; nobody reads thousands


def check_launched(
    configuration: Configuration, layout: Layout, launched: LaunchResult
) -> tuple[Finding, ...]:
    """Return what is wrong with the world of a launch that ended; see `check_witness`."""
    return check_witness(
        configuration,
        layout,
        launched.ranks,
        launched.placement,
        launched.hosts,
        ended=launched.completed.ok,
    )


def check_witness(
    configuration: Configuration,
    layout: Layout,
    ranks: Sequence[RankRecord],
    placement: Placement = NOWHERE,
    hosts: Sequence[str] = (),
    *,
    ended: bool = True,
) -> tuple[Finding, ...]:
    """Return what is wrong with the world that ran: records, size, hosts, libmpi, libfabric and
    UCX, generations of an override, CPUs and GPUs, which are compared with `placement` where it is
    known. `hosts` are those of the allocation: they name the nodes without a record.
    `ended`: the launch ended well. Other worlds that ran in the job are named, and are not its
    ranks."""
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
    findings += (
        check_overrides(configuration, started)
        or check_builds(due_library(configuration), started)
        or [*_library(configuration, started), *check_networks(configuration, started)]
    )
    scheduled = configuration.launcher is not None
    findings += bindings.check(layout, placement, records, scheduled=scheduled)
    return (*findings, *_other_worlds(everyone))


def _no_world(others: Sequence[RankRecord]) -> Finding:
    """Report that no rank of the launch is known: none entered MPI, or those that did are of other
    worlds."""
    if not others:
        return Finding.of("no-witness")
    return Finding.of("no-launch-world", worlds=_listed(others))


def _other_worlds(ranks: Iterable[RankRecord]) -> list[Finding]:
    """Return the other worlds that ran in the job; a warning where its own launcher started one."""
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
    """Name the ranks that have a record, and those that have several."""
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
    """Return every distinct MPI library that some rank has mapped."""
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
    kinds = {(id(rank.libraries), rank.boot): rank for rank in ranks}
    mapped = {key: libmpis([rank]) for key, rank in kinds.items()}
    without = [r.rank for r in ranks if not mapped[id(r.libraries), r.boot]]
    if without:
        return [Finding.of("libmpi-none", rank=without[0])]
    due = due_library(configuration)
    every = [(library, boot) for (_, boot), own in mapped.items() for library in own]
    right = not isinstance(due, str) and all(due.is_mapped(*one) for one in every)
    kernels = len({boot for _, boot in every})
    if (due.inode == 0) if isinstance(due, DueLibrary) else kernels > 1:
        # A mount for each rank, or nodes whose inodes cannot be compared: contents are, elsewhere.
        several = len({library.path for library, _ in every}) > 1 and not right
    else:
        several = len({identity_of(*one) for one in every}) > 1 and not right
        several |= any(len(own) > 1 for own in mapped.values())
    versions = {rank.library_version for rank in ranks}
    if several or len(versions) > 1:
        paths = ", ".join(sorted({library.path for library, _ in every}))
        paths += f" in {len(versions)} versions" if len(versions) > 1 else ""
        return [Finding.of("libmpi-several", paths=paths)]
    path = every[0][0].path
    if isinstance(due, str):
        return [Finding.of("libmpi-unknown", path=path, reason=due)]
    return [] if right else [Finding.of("libmpi-other", due=due.path, path=path)]


def due_library(configuration: Configuration) -> DueLibrary | str:
    """Return the libmpi that ranks must map, or why it is not known."""
    plan, mpi = configuration.graft, configuration.mpi
    if plan and not plan.libmpi_copy:
        return DueLibrary(plan.libmpi, 0, 0, plan.libmpi_elsewhere)
    path = graft_folder(plan) / plan.libmpi_copy if plan else mpi and mpi.libmpi
    if not path:
        return "the intended library is not known"
    try:
        status = path.stat()  # follows links
    except OSError as error:
        return f"{path}, the intended library, cannot be read: {error.strerror}"
    return DueLibrary(str(path), status.st_dev, status.st_ino)
