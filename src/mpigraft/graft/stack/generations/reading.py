"""Read an override: the generation that is on, the others, and what mpigraft did not make."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core.cache import file_digest
from mpigraft.core.errors import UsageError
from mpigraft.core.model import MpiInstall
from mpigraft.core.serialize import revive
from mpigraft.graft.stack.override.content import OverridePlan, SourceFile
from mpigraft.graft.stack.values import Slot
from mpigraft.knowledge import network_library_of

STORE = ".mpigraft-"  # begins the name of the folder beside an override
GENERATIONS, PLAN = "generations", "plan.json"
MOST_FOREIGN = 10  # files of others that are named


@dataclass(frozen=True, slots=True)
class GenerationRecord:
    """What plan.json of a generation says."""

    number: int
    previous: int  # the generation that was on when it was made; 0: none
    key: str
    mpi: str
    made: str  # UTC
    bindings: tuple[str, ...]
    sources: tuple[SourceFile, ...]
    files: tuple[SourceFile, ...]  # of the generation, by their names in it; no digest: by commands
    accepted: tuple[str, ...] = ()  # paths of programs that need not fit

    @property
    def part(self) -> str:
        """libfabric or ucx where it has that alone; empty: an MPI."""
        return next(filter(None, map(network_library_of, self.bindings)), "")

    @property
    def content(self) -> str:
        """Name it in messages: openmpi@5.0.11, libfabric of openmpi@5.0.11."""
        return f"{self.part} of {self.mpi}" if self.part else self.mpi

    @property
    def request(self) -> str:
        """The options of `inject` that make the same of what the host has now."""
        return f"--mpi {self.mpi}{f' --replace {self.part}' if self.part else ''}"

    def made_of(self, mpis: Sequence[MpiInstall]) -> MpiInstall | None:
        """Find the MPI that it was made of: by the content of libmpi, else by its id. An id changes
        when another MPI of that version comes."""
        digests = {source.digest for source in self.sources}
        same = [mpi for mpi in mpis if mpi.libmpi and digest_of(mpi.libmpi) in digests]
        named = [mpi for mpi in mpis if mpi.id == self.mpi]
        return next(iter(sorted((*same, *named), key=lambda mpi: not mpi.usable)), None)


@dataclass(frozen=True, slots=True)
class InstalledOverride:
    """An override as it is on the disk."""

    slot: Slot
    link: Path  # what is switched
    store: Path  # the folder of generations, as programs spell it
    current: int  # 0: none
    generations: tuple[GenerationRecord, ...]  # by number
    foreign: tuple[str, ...] = ()  # files in the override that mpigraft did not make

    @property
    def active(self) -> GenerationRecord | None:
        return next((g for g in self.generations if g.number == self.current), None)

    def folder(self, number: int) -> Path:
        return self.store / GENERATIONS / str(number)

    def record(
        self, number: int, plan: OverridePlan, made: str, files: Iterable[SourceFile]
    ) -> GenerationRecord:
        """Make the record of a new generation."""
        return GenerationRecord(
            number=number, previous=self.current, key=plan.key, mpi=plan.mpi, made=made,
            bindings=plan.bindings, sources=plan.sources, files=tuple(files),
            accepted=plan.accepted,
        )  # fmt: skip


def read_override(slot: Slot) -> InstalledOverride:
    """Read an override. Raises UsageError for one that cannot be read, or a loop of links."""
    link = Path(slot.path)
    store = link.parent / f"{STORE}{link.name}"
    try:
        os.stat(link.parent)  # noqa: PTH116  tells a loop of links
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise UsageError.of("override-link-loop", path=link.parent) from error
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            raise UsageError.of("file-unusable", path=link, reason=error.strerror) from error
    try:
        current = current_number(link, store)
        foreign = () if current else tuple(_foreign(link))
        records = sorted(_records(store), key=lambda record: record.number)
    except OSError as error:
        raise UsageError.of("file-unusable", path=link, reason=error.strerror) from error
    return InstalledOverride(slot, link, store, current, tuple(records), foreign)


def current_number(link: Path, store: Path) -> int:
    """Give the number of the generation that is on; 0 where none is."""
    try:
        target = os.readlink(link)  # noqa: PTH115  its text, unresolved
    except OSError:
        return 0
    folder, _, number = target.rpartition("/")
    return int(number) if folder == f"{store.name}/{GENERATIONS}" and number.isdecimal() else 0


def _foreign(link: Path) -> Iterator[str]:
    """Yield what is in an override that is not on. Empty folders are nobody's data."""
    if link.is_symlink() or (link.exists() and not link.is_dir()):
        yield str(link)
        return
    names = 0
    for folder, folders, files in os.walk(link, onerror=_raise):
        for name in sorted([*files, *(f for f in folders if Path(folder, f).is_symlink())]):
            yield str(Path(folder, name))
            names += 1
            if names >= MOST_FOREIGN:
                return


def _raise(error: OSError) -> None:
    if error.errno != errno.ENOENT:
        raise error


def _records(store: Path) -> Iterator[GenerationRecord]:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        for folder in (store / GENERATIONS).iterdir():
            if folder.name.isdecimal() and (record := read_record(folder)) is not None:
                yield record


def read_record(folder: Path) -> GenerationRecord | None:
    """Read plan.json of a generation; None where this version cannot."""
    try:
        value = json.loads((folder / PLAN).read_bytes())["generation"]
        record = revive(GenerationRecord, value)
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return record if isinstance(record, GenerationRecord) else None


def damaged(override: InstalledOverride, record: GenerationRecord) -> tuple[str, ...]:
    """List the files of a generation that are not what they were when it was made, or are gone."""
    folder = override.folder(record.number)
    now = ((file, digest_of(folder / file.path)) for file in record.files)
    return tuple(f.path for f, digest in now if not digest or f.digest not in ("", digest))


def digest_of(path: Path | str) -> str:
    """Give a file's digest; empty where it cannot be read."""
    try:
        return file_digest(path)
    except OSError:
        return ""
