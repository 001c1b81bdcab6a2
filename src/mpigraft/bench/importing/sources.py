"""The files that a command line names: each file, and all below each folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpigraft.bench.importing.pattern import Pattern
from mpigraft.bench.importing.reading import FileState, ImportedFile, ImportSource
from mpigraft.core.errors import UsageError
from mpigraft.core.text import printable

STDIN = Path("/dev/stdin")  # what `-` means


def collect_sources(
    paths: Sequence[Path], pattern: Pattern | None
) -> tuple[list[ImportSource], list[ImportedFile]]:
    """List the files to read, in the order in which their rounds count, and those that the pattern
    leaves out. Hidden files and folders are passed over, and so are links to folders that are below
    the one that is named, or above it.

    A file that is named twice is there once. A folder that cannot be read is reported likewise.
    """
    sources: dict[Path, ImportSource] = {}
    unmatched: dict[Path, ImportedFile] = {}
    for path, below in _files(paths, unmatched):
        if path in sources or path in unmatched:
            continue
        bare = ImportSource.of(path, below)
        try:
            fields = pattern.fields_of(path) if pattern else None
            if pattern and fields is None:
                raise UsageError.of("import-unmatched", path=bare.name, pattern=pattern.text)
        except UsageError as error:
            named = below is None or error.code != "import-unmatched"
            state = FileState.REFUSED if named else FileState.SKIPPED
            unmatched[path] = ImportedFile(bare.name, state, error)
        else:
            sources[path] = ImportSource.of(path, below, fields)
    ordered = sorted(sources.values(), key=lambda source: source.fields.order)
    return ordered, list(unmatched.values())


def _files(
    paths: Sequence[Path], unmatched: dict[Path, ImportedFile]
) -> Iterator[tuple[Path, Path | None]]:
    """(file, the folder that was given or None); folders that cannot be read go to `unmatched`."""
    for path in (STDIN if path == Path("-") else path for path in paths):
        if path.is_dir():
            yield from ((file, path) for file in _below(path, unmatched))
        else:
            yield path, None


def _below(folder: Path, unmatched: dict[Path, ImportedFile]) -> Iterator[Path]:
    def refuse(error: OSError) -> None:
        place = Path(error.filename)
        name, reason = printable(str(place)), error.strerror or str(error)
        refusal = UsageError.of("import-unreadable", path=name, reason=reason)
        unmatched[place] = ImportedFile(name, FileState.REFUSED, refusal)

    top = folder.resolve()
    linked: set[Path] = set()  # folders elsewhere that a link led to
    for place, folders, names in os.walk(folder, onerror=refuse, followlinks=True):
        shown = sorted((n for n in folders if not n.startswith(".")), key=natural)
        folders[:] = (n for n in shown if _is_entered(Path(place, n), top, linked))
        for name in sorted((n for n in names if not n.startswith(".")), key=natural):
            path = Path(place, name)
            try:
                if path.is_file():  # no pipe, no socket, no link that leads nowhere
                    yield path
            except OSError as error:  # of a folder that may be listed, and no more
                refuse(error)


def _is_entered(folder: Path, top: Path, linked: set[Path]) -> bool:
    """Return whether to read a folder below `top`, which may be a link: once, and no way up or
    around."""
    if not folder.is_symlink():
        return True
    real = folder.resolve()
    if any(real.is_relative_to(one) or one.is_relative_to(real) for one in (top, *linked)):
        return False
    linked.add(real)
    return True


def natural(text: str) -> list[tuple[int, str]]:
    """Return a key that sorts 2 before 10."""
    return [
        (int(piece), "") if piece.isdigit() and len(piece) < 20 else (0, piece)
        for piece in re.split(r"([0-9]+)", text)
    ]
