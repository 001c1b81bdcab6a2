"""Which libfabric and UCX the ranks mapped, and which library holds them, compared with the plan or
the MPI's own.

Another libmpi is refused by the witness; under `--replace libfabric` it stays the guest's, and
what goes in is libfabric or UCX alone. One that LD_LIBRARY_PATH or a provider's folder brings is
another network library under this configuration's name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from mpigraft.core.model import Configuration, Finding, MappedLibrary, RankRecord
from mpigraft.evidence.files.used import mpi_libraries
from mpigraft.evidence.world.mapped import DueLibrary
from mpigraft.graft import graft_folder
from mpigraft.launch import IN_GUEST

NETWORK_LIBRARY = re.compile(
    r"(?:mpigraft-)?(libfabric|libucp|libucs|libuct|libucm|libopen-pal)\.so(?:\.[\d.]+)?"
)

Due = Mapping[str, tuple[DueLibrary, ...]]  # by name without version


def network_name(path: str) -> str:
    """libfabric, libucp, ...; empty for any other file."""
    hit = NETWORK_LIBRARY.fullmatch(path.removesuffix(" (deleted)").rpartition("/")[2])
    return hit[1] if hit else ""


def due_networks(configuration: Configuration) -> Due:
    """Return the files that ranks must map where they map such a library: the graft's copies, else
    those of the MPI. What neither has is nobody's to say."""
    plan, mpi = configuration.graft, configuration.mpi
    paths: Iterable[Path] = ()
    if plan:
        folder = graft_folder(plan)
        paths = [folder / copy.name for copy in plan.copies]
    elif mpi is not None and mpi.source != IN_GUEST:
        paths = mpi_libraries(mpi)
    libraries: dict[str, list[DueLibrary]] = {}
    for path in paths:
        if name := network_name(str(path)):
            try:
                status = path.stat()  # follows links
            except OSError:
                continue
            real = DueLibrary(os.path.realpath(path), status.st_dev, status.st_ino)
            libraries.setdefault(name, []).append(real)
    return {name: tuple(own) for name, own in libraries.items()}


def check_networks(configuration: Configuration, ranks: Sequence[RankRecord]) -> list[Finding]:
    """Return an error for each network library that ranks mapped from elsewhere, and not from where
    it was due. One that no rank mapped was not exercised."""
    due = due_networks(configuration)
    other: dict[tuple[str, str], list[int]] = {}
    kinds = {(id(rank.libraries), rank.boot): rank for rank in ranks}  # thousands share a list
    wrong = {key: list(_others(due, rank)) for key, rank in kinds.items()}
    for rank in ranks:
        for one in wrong[id(rank.libraries), rank.boot]:
            other.setdefault(one, []).append(rank.rank)
    return [
        Finding.of(
            "network-library-other",
            requested=due[name][0].path,
            rank=numbers[0],
            mapped=path,
            more=f", and so did {len(numbers) - 1} more" if len(numbers) > 1 else "",
        )
        for (name, path), numbers in sorted(other.items())
    ]


def _others(due: Due, rank: RankRecord) -> Iterable[tuple[str, str]]:
    """(name, path) of libraries of one rank, where none of its name is the one that was due. A
    program may bring one for itself beside the MPI's."""
    mapped: dict[str, list[MappedLibrary]] = {}
    for library in rank.libraries:
        if (name := network_name(library.path)) in due:
            mapped.setdefault(name, []).append(library)
    for name, own in mapped.items():
        if not any(wanted.is_mapped(one, rank.boot) for one in own for wanted in due[name]):
            yield name, own[0].path
