"""Files into a store, a batch at a time: what was read of a batch is one transaction.

An import that is killed loses the batch in flight; importing again adds what is missing. A file
that cannot be taken is reported and does not stop the others.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from mpigraft.bench.importing.endings import Census
from mpigraft.bench.importing.exported import take_export
from mpigraft.bench.importing.import_ledger import Book, campaign_name, campaign_of
from mpigraft.bench.importing.reading import (
    Exported,
    FileState,
    ImportedFile,
    ImportOptions,
    ImportSource,
    ImportTable,
    read_results,
)
from mpigraft.core.env import refuse_secrets
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import layout_order
from mpigraft.core.text import join_some
from mpigraft.store import Store, Writer

BATCH = 200  # files of one transaction: what a killed import loses at most
SHOWN = 5  # refused lines of one log
BATCH_BYTES = 16 * 1024 * 1024  # of them together, which are in memory until then


Read = tuple[ImportSource, tuple[ImportTable, ...] | UsageError]
Entry = tuple[ImportTable, ImportedFile]  # what became of a table


def import_files(
    store: Store,
    sources: Sequence[ImportSource],
    options: ImportOptions,
    *,
    dry_run: bool = False,
) -> Iterator[ImportedFile]:
    """Store the files as launches of imported campaigns; yield what became of each, once its
    batch is on disk. With `dry_run` nothing is written. A file outside `named` that is no result
    is skipped rather than refused. Raises MissingError where the store cannot be written.
    """
    refuse_secrets(*(value for value in dataclasses.astuple(options) if isinstance(value, str)))
    with contextlib.ExitStack() as stack:
        opened: list[Writer] = []

        def open_writer() -> Writer:
            if not opened:
                opened.append(stack.enter_context(store.writer()))
                stack.enter_context(_turn(store.folder))
            return opened[0]

        books: dict[str, Book] = {}
        census = Census()
        for batch in _batches(sources, options):
            if isinstance(batch, Exported):
                yield _campaign(store, batch, options, None if dry_run else open_writer)
                books.clear()  # the file may have grown one of them
                continue
            read = [tables for _, tables in batch if not isinstance(tables, UsageError)]
            for tables in read:
                census.add(tables)
            writer = open_writer() if read and not dry_run else None
            with writer.batch() if writer else contextlib.nullcontext():
                done = [
                    _not_taken(source, tables)
                    if isinstance(tables, UsageError)
                    else _entered(
                        store, source, [*map(census.judge, tables)], options, books, writer
                    )
                    for source, tables in batch
                ]
            yield from done


def _batches(
    sources: Sequence[ImportSource], options: ImportOptions
) -> Iterator[Exported | list[Read]]:
    """Read the files; a batch ends when it has many, or much. An export is one of its own."""
    batch: list[Read] = []
    size = 0
    for source in sources:
        try:
            tables = read_results(source, options)
        except UsageError as error:
            batch.append((source, error))
        else:
            if isinstance(tables, Exported):
                yield from (batch, tables) if batch else (tables,)
                batch, size = [], 0
                continue
            batch.append((source, tables))
            size += sum(len(table.data) for table in tables)
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _campaign(
    store: Store,
    exported: Exported,
    options: ImportOptions,
    open_writer: Callable[[], Writer] | None,
) -> ImportedFile:
    """Take a campaign that was exported."""
    source = exported.source
    try:
        name, launches, values = take_export(store, source, exported.form, options, open_writer)
    except (UsageError, MissingError) as error:
        if isinstance(error, MissingError) and error.code != "parquet-missing":
            raise
        return ImportedFile(source.name, FileState.REFUSED, error)
    state = FileState.STORED if launches else FileState.KNOWN
    return ImportedFile(source.name, state, None, name, suite="export", values=values,
                        launches=launches)  # fmt: skip


def _entered(
    store: Store,
    source: ImportSource,
    tables: Sequence[ImportTable],
    options: ImportOptions,
    books: dict[str, Book],
    writer: Writer | None,
) -> ImportedFile:
    """Enter the tables of one file into their campaigns' books."""
    entries: list[Entry] = []
    refused: list[str] = []
    for table in tables:
        try:
            name = campaign_name(table, options)
            if name not in books:
                books[name] = Book(store, campaign_of(store, table, options))
            entries.append((table, books[name].add(table, writer)))
        except UsageError as error:
            if len(tables) == 1:
                return ImportedFile(source.name, FileState.REFUSED, error)
            refused.append(f"{table.name}: {error.message}")
    if not entries:
        problem = join_some(refused, SHOWN)
        nothing = UsageError.of("import-no-value", path=source.name, problem=problem)
        return ImportedFile(source.name, FileState.REFUSED, nothing)
    return _taken(source, entries, refused)


def _not_taken(source: ImportSource, error: UsageError) -> ImportedFile:
    foreign = error.code == "import-unknown-suite" and not source.expected
    return ImportedFile(source.name, FileState.SKIPPED if foreign else FileState.REFUSED, error)


def _taken(source: ImportSource, entries: Sequence[Entry], refused: Sequence[str]) -> ImportedFile:
    """Return one answer for all tables of a file; of what differs between them, all of it."""
    new = [one for one in entries if one[1].state is not FileState.KNOWN] or entries
    tables = [table for table, _ in new]
    notes = dict.fromkeys(note for _, entry in new for note in entry.notes)
    findings = tuple(finding for table, _ in entries for finding in table.parsed.findings)
    state = new[0][1].state
    if any(table.died for table, _ in entries) or any(f.code == "cut-short" for f in findings):
        state = FileState.FAILED
    return ImportedFile(
        name=source.name,
        state=state,
        error=None,
        campaign=_joined(entry.campaign for _, entry in new),
        configuration=_joined(table.configuration for table in tables),
        layout=_joined(sorted({table.layout for table in tables}, key=layout_order)),
        suite=tables[0].suite,
        rounds=tuple(sorted({number for _, entry in new for number in entry.rounds})),
        values=sum(len(table.parsed.measurements) for table in tables),
        benchmarks=tuple(dict.fromkeys(key for table in tables for key in table.benchmarks)),
        notes=(*notes, *refused[:SHOWN]),
        findings=findings,
        lost=sum(table.lost for table in tables),
    )


def _joined(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


@contextlib.contextmanager
def _turn(folder: Path) -> Iterator[None]:
    """One import at a time: rounds are counted from what is there. Where the file system knows
    no locks the import goes on; ids made from contents still keep a file from counting twice."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
