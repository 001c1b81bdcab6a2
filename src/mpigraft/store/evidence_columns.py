"""Evidence as JSON, which has once what ranks have in common.

Records of a job's ranks are nearly alike: an object for each would repeat ten kilobytes of mapped
files thousands of times. So their records are written by columns, one for
each field: the values that differ, and for each rank which of them is its own. Libraries are five
columns, since a file server's disk has another number on each node while all else stays the same:
which of the rank's disks each is on, and the numbers of those disks.
Compressing a list of objects was rejected: it is as long again once it is read.

    {"asked": "ofi-cxi", ..., "ranks": {"count": 3, "columns": {
        "rank": {"values": [0, 1, 2]}, "size": {"values": [3]},
        "host": {"values": ["n1", "n2"], "which": [0, 0, 1]}, ...}}}

Without `which` a column has one value for all ranks, or one for each in their order.
"""

from __future__ import annotations

import typing
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, replace
from typing import Any

from mpigraft.core.model import Evidence, MappedLibrary, RankRecord
from mpigraft.core.serialize import plain, revive

MOST = 1 << 20  # ranks; a document of more is damaged
PARTS = {
    "libraries.path": tuple[str, ...],
    "libraries.disk": tuple[int, ...],  # index of its device
    "libraries.inode": tuple[int, ...],
    "libraries.device": tuple[int, ...],
    "libraries.content": tuple[str, ...],
}
FIELDS = {f.name: f for f in fields(RankRecord) if f.name != "libraries"}
TYPES = {
    **{name: kind for name, kind in typing.get_type_hints(RankRecord).items() if name in FIELDS},
    **PARTS,
}


def flatten_evidence(evidence: Evidence) -> dict[str, Any]:
    """Make what `revive_evidence` reads back: dicts, lists, texts, numbers, bools, None."""
    ranks = evidence.ranks
    columns = {name: _column(getattr(rank, name) for rank in ranks) for name in FIELDS}
    distinct = {id(rank.libraries): rank.libraries for rank in ranks}  # objects that ranks share
    parts = {i: _parts(own) for i, own in distinct.items()}
    for name in PARTS:
        columns[name] = _column(parts[id(rank.libraries)][name] for rank in ranks)
    head: dict[str, Any] = plain(replace(evidence, ranks=()))
    return {**head, "ranks": {"count": len(ranks), "columns": columns}}


def revive_evidence(value: Any) -> Evidence:
    """Read the evidence that `flatten_evidence` or `plain` wrote: stores of version 2 and older
    have an object for each rank. Ranks share what they have in common in memory too.

    Raises ValueError or TypeError for anything else.
    """
    if not isinstance(value, dict) or not isinstance(value.get("ranks"), dict):
        old: Evidence = revive(Evidence, value)
        return old
    evidence: Evidence = revive(Evidence, {**value, "ranks": []})
    return replace(evidence, ranks=_ranks(value["ranks"]))


def _parts(libraries: Sequence[MappedLibrary]) -> dict[str, tuple[Any, ...]]:
    devices = tuple(dict.fromkeys(one.device for one in libraries))
    disks = {device: number for number, device in enumerate(devices)}
    return {
        "libraries.path": tuple(one.path for one in libraries),
        "libraries.disk": tuple(disks[one.device] for one in libraries),
        "libraries.inode": tuple(one.inode for one in libraries),
        "libraries.device": devices,
        "libraries.content": tuple(one.content for one in libraries),
    }


def _column(values: Iterable[Hashable]) -> dict[str, list[Any]]:
    """Distinct values in the order of the first rank that has each, and who has which."""
    numbers: dict[Hashable, int] = {}
    which = [numbers.setdefault(value, len(numbers)) for value in values]
    column = {"values": [plain(value) for value in numbers]}
    return column if len(numbers) in (1, len(which)) else {**column, "which": which}


def _ranks(value: Mapping[str, Any]) -> tuple[RankRecord, ...]:
    count, columns = value.get("count"), value.get("columns")
    if type(count) is not int or not 0 <= count <= MOST or not isinstance(columns, dict):
        raise ValueError(f"{count!r} ranks in {type(columns).__name__}")
    columns_read = {
        name: _read(TYPES[name], columns[name], count) for name in TYPES if name in columns
    }
    libraries = _libraries([columns_read.pop(name, [()] * count) for name in PARTS])
    lacking = [
        name for name, f in FIELDS.items() if f.default is MISSING and name not in columns_read
    ]
    if lacking:
        raise ValueError(f"ranks without {', '.join(lacking)}")
    names = tuple(columns_read)
    rows = zip(*columns_read.values(), libraries, strict=True)
    return tuple(RankRecord(**dict(zip((*names, "libraries"), row, strict=True))) for row in rows)


def _libraries(parts: Sequence[Sequence[tuple[Any, ...]]]) -> list[tuple[MappedLibrary, ...]]:
    """Return the libraries of each rank; the same object for ranks that have the same."""
    shared: dict[tuple[int, ...], tuple[MappedLibrary, ...]] = {}
    libraries = []
    for lists in zip(*parts, strict=True):
        key = tuple(map(id, lists))
        if key not in shared:
            shared[key] = _joined(*lists)
        libraries.append(shared[key])
    return libraries


def _joined(
    paths: Sequence[str],
    disks: Sequence[int],
    inodes: Sequence[int],
    devices: Sequence[int],
    contents: Sequence[str],
) -> tuple[MappedLibrary, ...]:
    if not all(0 <= disk < len(devices) for disk in disks):
        raise ValueError(f"a library is on none of {len(devices)} disks")
    return tuple(
        MappedLibrary(path, devices[disk], inode, content)
        for path, disk, inode, content in zip(
            paths, disks, inodes, contents or [""] * len(paths), strict=True
        )
    )


def _read(kind: Any, column: Any, count: int) -> list[Any]:
    """Return the value of each rank; each distinct one is made once."""
    if not isinstance(column, dict) or not isinstance(column.get("values"), list):
        raise ValueError(f"{column!r} is no column")
    values = [revive(kind, value) for value in column["values"]]
    which = column.get("which", [0] * count if len(values) == 1 else list(range(len(values))))
    if not isinstance(which, list) or len(which) != count:
        raise ValueError(f"a column of {len(values)} values is not of {count} ranks")
    if not all(type(number) is int and 0 <= number < len(values) for number in which):
        raise ValueError("a rank has a value that its column lacks")
    return [values[number] for number in which]
