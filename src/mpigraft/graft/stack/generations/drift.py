"""Say what of an injection is not what it was: the host's MPI, or the override itself.

A host update leaves the copies as they were. They go on running, and differ from the MPI that the
machine has now: for a bug that the update mends, or a kernel driver that it brings, that matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from mpigraft.binary import Elf, ElfError, read_elf
from mpigraft.core.model import Copy, Finding, MappedLibrary
from mpigraft.graft.stack.generations.reading import (
    GENERATIONS,
    STORE,
    GenerationRecord,
    InstalledOverride,
    damaged,
    digest_of,
)
from mpigraft.graft.stack.override.content import OverridePlan, override_files

GENERATION = re.compile(rf"(?P<store>.*/{re.escape(STORE)}[^/]+)/{GENERATIONS}/(?P<number>\d+)/.*")


def find_drift(override: InstalledOverride, record: GenerationRecord) -> tuple[Finding, ...]:
    """Report what changed since a generation was made: sources of its copies, its own files."""
    return (*_sources(record), *_files(override, record))


def _sources(record: GenerationRecord) -> Iterator[Finding]:
    now = {source.path: digest_of(source.path) for source in record.sources}
    gone = sorted(path for path, digest in now.items() if not digest)
    other = sorted(s.path for s in record.sources if now[s.path] and now[s.path] != s.digest)
    number, made = record.number, record.made
    if other:
        yield Finding.of(
            "drift-sources",
            count=len(other),
            request=record.request,
            number=number,
            made=made,
            evidence=tuple(other),
        )
    if gone:
        yield Finding.of(
            "drift-gone",
            count=len(gone),
            mpi=record.content,
            request=replace(record, mpi="SPEC").request,
            number=number,
            made=made,
            evidence=tuple(gone),
        )


def _files(override: InstalledOverride, record: GenerationRecord) -> Iterator[Finding]:
    if names := damaged(override, record):
        folder = override.folder(record.number)
        yield Finding.of("drift-copies", count=len(names), folder=folder, evidence=names)


def newer_content(
    record: GenerationRecord, plan: OverridePlan, folder: Path
) -> tuple[Finding, ...]:
    """Report that the MPI would be injected in other words today: another version, another closure,
    or programs that need more of it; or that the generation in `folder` is not as planned."""
    if record.key == plan.key:
        known = all(file.digest for file in record.files)
        return () if known else _unlike_plan(folder, plan)
    before = {source.path: source.digest for source in record.sources}
    now = {source.path: source.digest for source in plan.sources}
    changed = sorted(p for p in before.keys() | now.keys() if before.get(p) != now.get(p))
    request = replace(record, mpi=plan.mpi).request
    return (
        Finding.of(
            "drift-plan",
            number=record.number,
            mpi=replace(record, mpi=plan.mpi).content,
            request=request,
            evidence=tuple(changed),
        ),
    )


def _unlike_plan(folder: Path, plan: OverridePlan) -> tuple[Finding, ...]:
    """Report files of a generation that commands made, whose digests its record does not have,
    which are not what the plan says."""
    planned = override_files(plan, str(folder))
    names = tuple(
        copy.name
        for copy in plan.copies
        if not _as_planned(folder / copy.name, copy, planned.get(f"{folder}/{copy.name}"))
    )
    one = Finding.of("drift-copies", count=len(names), folder=folder, evidence=names)
    return (one,) if names else ()


def _as_planned(path: Path, copy: Copy, planned: Elf | None) -> bool:
    if not copy.edit or planned is None:
        return digest_of(path) == copy.digest
    try:
        own = read_elf(path)
    except ElfError:
        return False
    names = {own.soname or planned.soname} == {planned.soname}
    return names and {*own.needed} == {*planned.needed} and own.rpath == planned.rpath


def mapped_generations(libraries: Iterable[MappedLibrary]) -> Mapping[str, tuple[int, ...]]:
    """Give {folder of generations: numbers} of the generations that a process has mapped."""
    numbers: dict[str, set[int]] = {}
    for library in libraries:
        if hit := GENERATION.fullmatch(library.path):
            numbers.setdefault(hit["store"], set()).add(int(hit["number"]))
    return {store: tuple(sorted(own)) for store, own in sorted(numbers.items())}


def mixed_generations(libraries: Iterable[MappedLibrary]) -> tuple[Finding, ...]:
    """Report a process that has files of two generations: it started while one was switched on."""
    return tuple(
        Finding.of("generations-mixed", store=store, numbers=" and ".join(map(str, numbers)))
        for store, numbers in mapped_generations(libraries).items()
        if len(numbers) > 1
    )
