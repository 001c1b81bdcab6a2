"""Read the witness's records: a file per node, in it a line per rank
(native/witness/rank_record.h).

What the ranks of a node have in common is in one line of each kind, and the others name it by its
digest. So there are as many files as nodes, and each has a library list once.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from sys import intern
from typing import Any

from mpigraft.core.listing import refresh_listing
from mpigraft.core.model import MappedLibrary, RankRecord
from mpigraft.core.worlds import make_lineage, sort_worlds, topmost

UNREAD = -1  # rank of a record that could not be read; `library_version` then says why
SUFFIX = ".ranks"
ENTERED = ".entered"  # of what processes note before they enter MPI
MOST_ENTERED = 1000  # are taken in: one is as good as the others
MOST = 64 * 1024 * 1024  # bytes of one node's file
MOST_CPUS = 1 << 16
MOST_BROKEN = 8  # lines of a file that are reported one by one
CPUS = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?", re.ASCII)
HARMLESS = (ValueError, TypeError, AttributeError, KeyError, IndexError, RecursionError)


@dataclass(frozen=True, slots=True)
class Common:
    """What the ranks that name one digest have in common."""

    record: RankRecord  # of any of them, without what is its own
    # Path, one of the rank's disks, inode, content.
    libraries: tuple[tuple[str, int, int, str], ...]
    numa: tuple[tuple[int, frozenset[int]], ...]  # CPUs of each NUMA node


Shared = dict[tuple[int, tuple[int, ...]], tuple[MappedLibrary, ...]]


def read_witness(folder: Path, ranks: int = 0) -> tuple[RankRecord, ...]:
    """Return the records of a launch of so many ranks, by world and rank: those of other worlds
    that ran in the job have a number. 0 ranks: as many as its largest world has. What cannot be
    read becomes a record of rank -1 whose `library_version` is the reason: `check_witness` makes a
    finding of it. Nodes of one host name get different names."""
    refresh_listing(folder)
    try:
        paths = sorted(p for p in folder.iterdir() if p.suffix == SUFFIX)
    except OSError as error:
        return (_unread(folder.name, str(error)),)
    rows = list(_with_distinct_hosts({path.stem: list(_of_node(path)) for path in paths}))
    lineages = [
        make_lineage(number, (node, record.rank, record.size), line, record.program)
        for number, (node, record, line) in enumerate(rows)
        if record.rank != UNREAD
    ]
    records = [record for _, record, _ in rows]
    for number, world in enumerate(sort_worlds(lineages, ranks)):
        for one in world.members:
            own = replace(records[one.key], world=number, world_kind=world.kind)
            records[one.key] = own
    return tuple(sorted(records, key=lambda r: (r.world, r.rank, r.host)))


@dataclass(frozen=True, slots=True)
class Entered:
    """A process that entered MPI_Init, as it was then."""

    host: str
    pid: int
    program: str  # file of the process, as it sees it
    search: str  # its LD_LIBRARY_PATH
    libraries: tuple[MappedLibrary, ...]  # those of MPI
    again: bool = False  # another process of its task had returned from it


def read_entered(folder: Path) -> tuple[Entered, ...]:
    """Read the processes that entered MPI_Init and did not come back from it, or had not yet. What
    cannot be read is left out: the records of ranks say what is wrong with a folder."""
    names = sorted(folder.iterdir()) if folder.is_dir() else []
    ranks = [(p.stem, line) for p in names if p.suffix == SUFFIX for line in _whole_lines(p)]
    notes = [(p.stem, line) for p in names if p.suffix == ENTERED for line in _whole_lines(p)]
    returned = {line.get("id") for _, line in ranks}
    tasks = [line.get("task") for _, line in ranks]
    entered = []
    for line in _of_launch([*ranks, *notes]):
        process = None if line.get("id") in returned else _entered(line)
        again = "task" in line and line["task"] in tasks
        entered += [replace(process, again=again)] if process else []
    return tuple(entered[:MOST_ENTERED])


def _of_launch(rows: Iterable[tuple[str, Mapping[str, Any]]]) -> Iterator[Mapping[str, Any]]:
    """Return the lines of processes that can be ranks of the launch, as (node, line) have them."""
    lineages = []
    for node, line in rows:
        with contextlib.suppress(*HARMLESS):
            lineages.append(make_lineage(line, (node, 0, 0), line))
    top = topmost(lineages)
    own = [one for one in top if one.of_launcher] or top
    return (one.key for one in own)


def _whole_lines(path: Path) -> list[dict[str, Any]]:
    with contextlib.suppress(OSError):
        return [value for _, value in _objects(_bytes(path), [])]
    return []


def _entered(value: Mapping[str, Any]) -> Entered | None:
    with contextlib.suppress(*HARMLESS):
        return Entered(
            _text(value["host"]),
            _whole(value["pid"]),
            _text(value["program"]),
            _text(value["search"]),
            tuple(MappedLibrary(_text(p), _whole(d), _whole(i)) for p, d, i in value["libraries"]),
        )
    return None


Row = tuple[RankRecord, Mapping[str, Any]]  # a record, and the line that it was read from


def _with_distinct_hosts(
    nodes: Mapping[str, list[Row]],
) -> Iterator[tuple[str, RankRecord, Mapping[str, Any]]]:
    """Yield the records of all nodes, with their nodes' names and their lines; where two nodes have
    one host name, with a part of the file's name, in which the witness put what tells nodes
    apart."""
    owners: dict[str, set[str]] = defaultdict(set)
    for name, rows in nodes.items():
        for rank, _ in rows:
            owners[rank.host].add(name)
    for name, rows in nodes.items():
        for rank, line in rows:
            mark = name.rpartition("-")[2]
            clash = len(owners[rank.host]) > 1
            yield name, replace(rank, host=f"{rank.host} ({mark})") if clash else rank, line


def _of_node(path: Path) -> Iterator[Row]:
    try:
        data = _bytes(path)
    except OSError as error:
        yield _unread(path.name, str(error.strerror)), {}
        return
    broken: list[str] = []
    values = list(_objects(data, broken))
    common: dict[str, Common] = {}
    shared: Shared = {}
    for number, value in values:
        if "libraries" in value:
            with _noting(broken, number):
                common[_text(value["map"])] = _common(value)
    orphans: dict[str, list[int]] = defaultdict(list)
    for number, value in values:
        with _noting(broken, number):
            digest = _text(value["map"])
            if digest in common:
                yield _record(value, common[digest], shared), value
            elif "libraries" not in value:
                orphans[digest].append(_whole(value["rank"]))
    for ranks in orphans.values():
        named = ", ".join(map(str, sorted(ranks)[:MOST_BROKEN]))
        broken.append(f"no rank wrote what is common to it and others: of rank {named}")
    if not values and not broken:
        broken.append("it is empty: a rank could not write to it, as when a disk is full")
    for why in broken[:MOST_BROKEN]:
        yield _unread(path.name, why), {}
    if len(broken) > MOST_BROKEN:
        yield _unread(path.name, f"{len(broken) - MOST_BROKEN} more lines cannot be read"), {}


def _bytes(path: Path) -> bytes:
    """Return a regular file's: a guest may have put a pipe there, or a link to one."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(0, "not a regular file")
        if status.st_size > MOST:
            raise OSError(0, f"{status.st_size} bytes are more than any node's ranks write")
        return file.read(MOST)


def _objects(data: bytes, broken: list[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (number of its line, object) of each whole line; what is wrong with the others is
    noted."""
    lines = data.split(b"\n")
    for number, line in enumerate(lines, 1):
        if line and number == len(lines):
            broken.append(f"line {number} is cut short: its rank was ended, or a disk is full")
        elif line:
            with _noting(broken, number):
                value = json.loads(line)
                if not isinstance(value, dict):
                    raise TypeError("not an object")
                yield number, value


@contextlib.contextmanager
def _noting(broken: list[str], number: int) -> Iterator[None]:
    """Note what is wrong with a line, each line once, and go on."""
    try:
        yield
    except HARMLESS as error:
        message = f"line {number}: {type(error).__name__}: {error}"
        if not any(known.startswith(f"line {number}:") for known in broken):
            broken.append(message)


def _common(value: Mapping[str, Any]) -> Common:
    contents = {**value.get("contents", {}), **value.get("sums", {})}
    size, host, boot = _whole(value["size"]), _text(value["host"]), _text(value["boot"])
    version = _text(value["library_version"])
    libraries = tuple(  # paths and contents are the same on all nodes
        (intern(_text(path)), _whole(disk), _whole(inode), intern(_text(contents.get(path, ""))))
        for path, disk, inode in value["libraries"]
    )
    numa = tuple((int(node), frozenset(cpus(own))) for node, own in value["numa"].items())
    program = _text(value.get("program", "")).rpartition("/")[2]
    if size < 1:
        raise ValueError(f"a world of {size}")
    record = replace(_unread(host, version), size=size, boot=boot, program=program)
    return Common(record, libraries, numa)


def _record(value: Mapping[str, Any], common: Common, shared: Shared) -> RankRecord:
    cores = cpus(value["cores"])
    record = replace(
        common.record,
        rank=_whole(value["rank"]),
        pid=_whole(value["pid"]),
        cores=cores,
        libraries=_libraries(common, tuple(map(_whole, value["disks"])), shared),
        numa=tuple(sorted(node for node, own in common.numa if not own.isdisjoint(cores))),
        gpus=_texts(value.get("gpus", [])),
        devices=_texts(value.get("devices", [])),
    )
    if record.rank < 0:
        raise ValueError(f"rank {record.rank} of {record.size}")
    make_lineage(None, ("", record.rank, record.size), value)  # or the line is damaged
    return record


def _libraries(common: Common, disks: tuple[int, ...], shared: Shared) -> tuple[MappedLibrary, ...]:
    """Return the same object for ranks that have the same: thousands of lists are hundreds of
    megabytes, and whoever asks something of each looks at one."""
    key = (id(common), disks)
    if key not in shared:
        shared[key] = tuple(
            MappedLibrary(p, disks[disk], i, c) for p, disk, i, c in common.libraries
        )
    return shared[key]


def cpus(text: Any) -> tuple[int, ...]:
    """`0-3,8` as numbers, ascending: the kernel's cpulist format. Raises ValueError for anything
    else, and for more CPUs than a kernel can have."""
    numbers: list[int] = []
    for part in _text(text).split(",") if text else ():
        match = CPUS.fullmatch(part)
        if not match:
            raise ValueError(f"{text!r} is no list of CPUs")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first or last >= MOST_CPUS or (numbers and first <= numbers[-1]):
            raise ValueError(f"{text!r} is no list of CPUs in ascending order")
        numbers += range(first, last + 1)
    return tuple(numbers)


def _unread(name: str, why: str) -> RankRecord:
    return RankRecord(UNREAD, 0, name, 0, why, (), ())


def _whole(value: Any) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no text")
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError(f"{value!r} is no list")
    return tuple(map(_text, value))
