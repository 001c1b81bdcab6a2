"""What the witness wrote, held against what was asked."""

from __future__ import annotations

import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from mpigraft import bindings, grafts
from mpigraft.launchers.hostlist import folded
from mpigraft.launchers.parts import listed
from mpigraft.model import (
    NOWHERE,
    Configuration,
    Finding,
    Layout,
    Level,
    MappedLibrary,
    Placement,
    RankRecord,
)
from mpigraft.network_libraries import check_networks
from mpigraft.records import UNREAD

FEW = 16  # hosts, ranks or files that are told one by one; of thousands nobody reads each
# The library itself, of any family: libmpi.so.40, libmpi_abi.so.1, libmpich.so.12,
# libmpi_gnu_123.so.12; not libmpi_mpifh, libmpi_gtl_cuda, libmpicxx, libmpifort.
LIBMPI = re.compile(
    r"lib(?:mpi|mpich|mpi_abi|mpi_ilp64|mpi_(?:cray|gnu|intel|nvidia|amd|aocc)(?:_\d+)?)"
    r"\.so(?:\.[\d.]+)?"
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
    """What is wrong with the world that ran: records, size, hosts, libmpi, libfabric and UCX, CPUs
    and GPUs, which
    are held against `placement` where it is known. `hosts` are those of the allocation: they name
    the nodes of which no record came. `ended`: the launch ended well."""
    good = [rank for rank in ranks if rank.rank != UNREAD]
    unread = [f"{r.host}: {r.library_version}" for r in ranks if r.rank == UNREAD]
    found = [_error("witness-unreadable", why) for why in unread[:FEW]]
    if more := unread[FEW:]:
        found.append(_error("witness-unreadable", f"{len(more)} more, the last {more[-1]}"))
    if not good:
        found.append(
            _error(
                "no-witness",
                "no rank wrote a record",
                why="without it nothing says which MPI ran, nor how many ranks",
                mend="the program must call MPI_Init, and LD_PRELOAD must reach it",
            )
        )
        return tuple(found)
    found += (
        _unshared(layout, good, hosts, ended=ended)
        or _world(layout, good, hosts)
        or _hosts(layout, good)
    )
    found += _library(configuration, good)
    found += check_networks(configuration, good)
    found += bindings.check(layout, placement, good)
    return tuple(found)


def _error(code: str, seen: str, *, why: str = "", mend: str = "") -> Finding:
    return Finding(Level.ERROR, code, seen, why, mend)


def _few(words: Sequence[str]) -> str:
    more = len(words) - FEW
    return ", ".join(words[:FEW]) + (f" and {more} more" if more > 0 else "")


def _named(hosts: Sequence[str]) -> str:
    if len(hosts) <= FEW:
        return ", ".join(hosts)
    return folded(sorted(hosts, key=lambda host: (len(host), host)), FEW)  # n9 before n10


def _numbers(ranks: Sequence[RankRecord]) -> str:
    """The ranks of which there are records, and those of which there are several."""
    times = Counter(rank.rank for rank in ranks)
    if len(ranks) <= FEW:
        return ", ".join(str(number) for number in sorted(times.elements()))
    several = [number for number, count in times.items() if count > 1]
    again = f", several of {_ranges(several)}" if several else ""
    return _ranges(times) + again


def _ranges(numbers: Iterable[int]) -> str:
    return _few(listed(numbers).split(","))


def _unshared(
    layout: Layout, ranks: Sequence[RankRecord], hosts: Sequence[str], *, ended: bool
) -> list[Finding]:
    """Whole nodes that left no record, where those that did belong to the world asked for."""
    told = Counter(rank.host for rank in ranks)
    numbers = {rank.rank for rank in ranks}
    if len(told) >= layout.nodes or {rank.size for rank in ranks} != {layout.ranks}:
        return []
    if {*told.values()} != {layout.ranks_per_node} or len(numbers) != len(ranks):
        return []
    silent = [host for host, left in _left(layout, ranks, hosts) if not left]
    if len(silent) != layout.nodes - len(told):  # called by addresses, or by other names
        silent = []
    who = _named(silent) or f"{layout.nodes - len(told)} of {layout.nodes} nodes"
    seen = f"the ranks on {who} left no record; those on {_named(sorted(told))} did"
    if not ended:
        why = "a rank writes it as soon as MPI is there, which on these nodes it never was"
        return [_error("nodes-without-mpi", seen, why=why, mend="look at what the launch said")]
    return [
        _error(
            "witness-unshared",
            seen,
            why="the folder of the records is not the same one on all nodes, or is full there",
            mend="set MPIGRAFT_HOME to a folder that every node sees under one path: in a home or "
            "on a scratch file system, and not in /tmp",
        )
    ]


def _left(
    layout: Layout, ranks: Sequence[RankRecord], hosts: Sequence[str]
) -> tuple[tuple[str, int], ...]:
    """Hosts of the launch, as the allocation calls them, with how many records came of each. The
    same name may be written in full or in capitals."""
    told = Counter(_short(rank.host) for rank in ranks)
    return tuple((host, told[_short(host)]) for host in hosts[: layout.nodes])


def _short(host: str) -> str:
    return host.partition(".")[0].lower()


def _world(layout: Layout, ranks: Sequence[RankRecord], hosts: Sequence[str] = ()) -> list[Finding]:
    sizes = sorted({rank.size for rank in ranks})
    wanted = layout.ranks
    if sizes == [1] and wanted > 1:
        return [
            _error(
                "LCH-01",
                f"{len(ranks)} worlds of one rank instead of one world of {wanted}",
                why="the launcher and the library do not speak the same PMI, so each rank is alone",
                mend="use the launcher of the same MPI, or srun --mpi=pmix for Open MPI 5",
            )
        ]
    if sizes != [wanted]:
        said = ", ".join(map(str, sizes))
        return [
            _error(
                "world-size",
                f"asked for {wanted} ranks, worlds of {said} ran",
                why="another number of ranks is another job",
                mend="see what else decides it: a wrapper around the program, the scheduler's "
                "settings, a host that the launcher left out",
            )
        ]
    if [rank.rank for rank in sorted(ranks, key=lambda r: r.rank)] != list(range(wanted)):
        due, left = layout.ranks_per_node, _left(layout, ranks, hosts)
        few = _few([f"{n} of {due} on {host}" for host, n in left if n < due])
        known = sum(n for _, n in left) == len(ranks)  # else hosts have other names here
        where = f" ({few})" if few and known else ""
        return [
            _error(
                "world-ranks",
                f"records of ranks {_numbers(ranks)}{where}; one of each from 0 to "
                f"{wanted - 1} was due",
                why="a rank that left no record, or left two, is not the world that was asked for",
            )
        ]
    return []


def _hosts(layout: Layout, ranks: Sequence[RankRecord]) -> list[Finding]:
    per_host = Counter(rank.host for rank in ranks)
    uneven = {host: n for host, n in per_host.items() if n != layout.ranks_per_node}
    if len(per_host) != layout.nodes:
        names = _named(sorted(per_host))
        seen = f"asked for {layout.nodes} nodes, ran on {len(per_host)}: {names}"
    elif uneven:
        said = _few([f"{n} on {host}" for host, n in sorted(uneven.items())])
        seen = f"asked for {layout.ranks_per_node} ranks per node, ran {said}"
    else:
        return []
    return [
        _error(
            "hosts",
            seen,
            why="ranks that were to be apart shared a node's cores, memory and network",
            mend="see the settings of the launcher in the environment and in parameter files, and "
            "whether the job has all these nodes; --launcher may name another",
        )
    ]


def libmpis(ranks: Iterable[RankRecord]) -> tuple[MappedLibrary, ...]:
    """Every distinct MPI library that some rank has mapped."""
    lists = {id(rank.libraries): rank.libraries for rank in ranks}  # thousands share one
    found = {
        (lib.device, lib.inode): lib
        for own in lists.values()
        for lib in own
        if LIBMPI.fullmatch(_file_name(lib.path))
    }
    return tuple(found.values())


def _file_name(path: str) -> str:
    return path.removesuffix(" (deleted)").rpartition("/")[2]


def _library(configuration: Configuration, ranks: Sequence[RankRecord]) -> list[Finding]:
    """Exactly one libmpi in every rank, and the one of the configuration."""
    kinds = {id(rank.libraries): rank for rank in ranks}
    lacking = {kind for kind, rank in kinds.items() if not libmpis([rank])}
    without = [rank.rank for rank in ranks if id(rank.libraries) in lacking]
    if without:
        return [_error("libmpi-none", f"rank {without[0]} has no MPI library mapped")]
    due, mapped = due_library(configuration), libmpis(ranks)
    if isinstance(due, MappedLibrary) and not due.inode:  # each rank has a mount of its own
        mapped = tuple({lib.path: lib for lib in mapped}.values())
    else:
        mapped = _of_one_kernel(configuration, ranks) or mapped
    versions = {rank.library_version for rank in ranks}
    if len(mapped) > 1 or len(versions) > 1:
        paths = ", ".join(sorted({lib.path for lib in mapped}))
        paths += f" in {len(versions)} versions" if len(versions) > 1 else ""
        why = "two MPI libraries in one job corrupt each other or split the world"
        return [_error("libmpi-several", f"several MPI libraries are mapped: {paths}", why=why)]
    if isinstance(due, str):
        return [_error("libmpi-unknown", f"{mapped[0].path} ran; {due}")]
    if not is_library(due, mapped[0]) and not _may_be(configuration, due, mapped[0], ranks):
        return [
            _error(
                "libmpi-other",
                f"asked for {due.path}, {mapped[0].path} ran",
                why="values of another library would carry this configuration's name",
                mend="look for an RPATH in the program, and at LD_LIBRARY_PATH",
            )
        ]
    return []


def _of_one_kernel(
    configuration: Configuration, ranks: Sequence[RankRecord]
) -> tuple[MappedLibrary, ...]:
    """The MPI libraries of the ranks under one kernel, this one if any, if those of the others are
    files that can be the same: a file server's disk has another device number on each node, and
    what is installed on each node's own disk another inode. Empty: they cannot."""
    mine, by = _boot(), defaultdict[str, list[RankRecord]](list)
    for rank in ranks:
        by[rank.boot].append(rank)
    groups = [_of_nodes_of(by[boot]) for boot in sorted(by, key=lambda boot: (boot != mine, boot))]
    alone = [group[0] for group in groups if len(group) == 1]
    if len(alone) != len(groups):
        return ()
    one, *others = alone
    host = configuration.graft is None  # in a guest, one path may be two files
    same = all(o.inode == one.inode or (host and o.path == one.path) for o in others)
    return (one,) if same else ()


def _of_nodes_of(ranks: Sequence[RankRecord]) -> tuple[MappedLibrary, ...]:
    """The MPI libraries of ranks under one kernel, as this node names them. Nodes that are
    namespaces of it may each have mounted one image: inode and path are the same, the device
    is not."""
    mine, by = os.uname().nodename, defaultdict[str, list[RankRecord]](list)
    for rank in ranks:
        by[rank.host].append(rank)
    groups = [libmpis(by[host]) for host in sorted(by, key=lambda host: (host != mine, host))]
    alike = {(library.inode, library.path) for group in groups for library in group}
    one_each = all(len(group) == 1 for group in groups)
    return groups[0] if one_each and len(alike) == 1 else libmpis(ranks)


def _may_be(
    configuration: Configuration,
    due: MappedLibrary,
    mapped: MappedLibrary,
    ranks: Sequence[RankRecord],
) -> bool:
    """Whether a library of other nodes, with not one rank on this, can be the one that was due."""
    if any(rank.boot in ("", _boot()) for rank in ranks):
        return False
    path = os.path.realpath(due.path)
    return due.inode == mapped.inode or (configuration.graft is None and path == mapped.path)


def _boot() -> str:
    """The boot id of this kernel; empty: not known."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def due_library(configuration: Configuration) -> MappedLibrary | str:
    """The libmpi that ranks must map, or why it is not known. Inode 0: only its path is, since a
    file of an image has the numbers of whatever file system the engine makes of it."""
    plan, mpi = configuration.graft, configuration.mpi
    if plan and not plan.libmpi_copy:
        return MappedLibrary(plan.libmpi, 0, 0)
    path = grafts.folder(plan) / plan.libmpi_copy if plan else mpi and mpi.libmpi
    if not path:
        return "which one was due is not known"
    try:
        seen = path.stat()  # follows links
    except OSError as error:
        return f"{path}, which was due, cannot be looked at: {error.strerror}"
    return MappedLibrary(str(path), seen.st_dev, seen.st_ino)


def is_library(due: MappedLibrary, mapped: MappedLibrary) -> bool:
    """By device and inode: a path can be a link, a bind mount or replaced."""
    if not due.inode:
        return due.path == mapped.path
    return (due.device, due.inode) == (mapped.device, mapped.inode)
