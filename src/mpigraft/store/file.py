"""One SQLite file of a store: its schema, how it is opened, and what may be written into it.

Files keep a rollback journal: WAL needs shared memory and does not work on network file systems
(sqlite.org/wal.html), where most results will live.

A file is never changed by another than its writer. One of an older schema is copied into memory
and migrated there, so reading needs no right to write, and an older mpigraft can still read it.

Locks keep a reader from what is half written, where there are any: a Lustre mounted without
`flock` has none, and a file server mounted with `nolock` has those of each node alone. A reader
that rolled back the journal of a live writer on another node would destroy what that one writes.
So readers never write, and where there are no locks or there is a journal they read a copy.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import sqlite3
import sys
import tempfile
import time
import zlib
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from mpigraft.core import env
from mpigraft.core.errors import MissingError
from mpigraft.core.serialize import canonical
from mpigraft.store import bounds

VERSION = 5
JOBS = """
CREATE TABLE submission (
    campaign TEXT PRIMARY KEY, name TEXT NOT NULL, created TEXT NOT NULL, scheduler TEXT NOT NULL,
    wish TEXT NOT NULL, nodes INTEGER NOT NULL, limit_s INTEGER NOT NULL, shares INTEGER NOT NULL);
CREATE TABLE job (
    campaign TEXT NOT NULL, share INTEGER NOT NULL, job TEXT NOT NULL, submitted TEXT NOT NULL,
    script TEXT NOT NULL, PRIMARY KEY (campaign, job));
"""
MIGRATIONS = {  # SQL from version N to N + 1, run on a copy in memory
    1: f"""
ALTER TABLE allocation ADD COLUMN hosts TEXT NOT NULL DEFAULT '[]';
ALTER TABLE allocation ADD COLUMN job TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN share TEXT NOT NULL DEFAULT '';
ALTER TABLE allocation ADD COLUMN steps INTEGER NOT NULL DEFAULT 0;
ALTER TABLE allocation ADD COLUMN ended TEXT NOT NULL DEFAULT '';
ALTER TABLE evidence ADD COLUMN allocation TEXT NOT NULL DEFAULT '';
{JOBS}""",
    2: "",  # evidence is written by columns; the reader takes both (evidence_json)
    # `started` was written when a launch had ended; an imported table has no time of its own.
    3: """
ALTER TABLE launch ADD COLUMN ended TEXT NOT NULL DEFAULT '';
ALTER TABLE launch ADD COLUMN conditions TEXT;
ALTER TABLE value ADD COLUMN resolution REAL;
UPDATE launch SET ended = started, started = coalesce(
    strftime('%Y-%m-%dT%H:%M:%f+00:00', started, -wall_s || ' seconds'), started) WHERE wall_s > 0;
""",
    4: "ALTER TABLE launch ADD COLUMN program TEXT NOT NULL DEFAULT '';",
}
SUFFIX = ".sqlite"
ACCEPTED = ".accepted"  # of a mark: this campaign is a good state
ALONE = "rw&nolock=1"  # of a file that no other process opens for writing
COPIES, BETWEEN_S = 20, 0.1
BUSY_S = 30.0  # a reader of a big file may hold its lock for a second or two

TABLES = f"""
{JOBS}
CREATE TABLE campaign (
    id TEXT PRIMARY KEY, name TEXT NOT NULL, created TEXT NOT NULL, origin TEXT NOT NULL,
    seed INTEGER NOT NULL, rounds INTEGER NOT NULL, baseline TEXT NOT NULL, plan TEXT NOT NULL,
    tool TEXT NOT NULL);
CREATE TABLE allocation (
    id TEXT PRIMARY KEY, campaign TEXT NOT NULL, started TEXT NOT NULL, host TEXT NOT NULL,
    machine TEXT NOT NULL, hosts TEXT NOT NULL, job TEXT NOT NULL, share TEXT NOT NULL,
    steps INTEGER NOT NULL, ended TEXT NOT NULL);
CREATE TABLE configuration (
    campaign TEXT NOT NULL, key TEXT NOT NULL, id TEXT NOT NULL, provenance TEXT NOT NULL,
    buffers TEXT NOT NULL, PRIMARY KEY (campaign, key));
CREATE TABLE evidence (
    campaign TEXT NOT NULL, configuration TEXT NOT NULL, layout TEXT NOT NULL,
    allocation TEXT NOT NULL, written TEXT NOT NULL, evidence TEXT NOT NULL,
    PRIMARY KEY (campaign, configuration, layout, allocation));
CREATE TABLE launch (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, campaign TEXT NOT NULL,
    allocation TEXT NOT NULL, configuration TEXT NOT NULL, layout TEXT NOT NULL,
    round INTEGER NOT NULL, slot INTEGER NOT NULL, replica INTEGER NOT NULL,
    started TEXT NOT NULL, wall_s REAL NOT NULL, exit_code INTEGER, state TEXT NOT NULL,
    findings TEXT NOT NULL, artefacts TEXT NOT NULL, ended TEXT NOT NULL, conditions TEXT,
    program TEXT NOT NULL);
CREATE TABLE value (
    number INTEGER PRIMARY KEY, launch INTEGER NOT NULL REFERENCES launch (number),
    benchmark TEXT NOT NULL, metric TEXT NOT NULL, size INTEGER NOT NULL, value REAL,
    mean REAL, minimum REAL, maximum REAL, p90 REAL, p99 REAL, iterations INTEGER,
    valid INTEGER, resolution REAL);
CREATE INDEX value_by_launch ON value (launch);
CREATE TABLE samples (value INTEGER PRIMARY KEY REFERENCES value (number), data BLOB NOT NULL);
CREATE TABLE artefact (sha TEXT PRIMARY KEY, data BLOB NOT NULL);
"""


def create(path: Path) -> sqlite3.Connection:
    """Return a new file with the current schema, in autocommit mode. Raises sqlite3.Error,
    OSError."""
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644))
    with bounds.open_regular(path) as own:
        mode = "rw" if _lockable(own) else ALONE
    db = _connect(path, mode)
    try:
        db.execute("PRAGMA journal_mode = DELETE")
        db.execute("PRAGMA synchronous = FULL")  # on disk before a launch counts
        db.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
    except BaseException:
        db.close()
        raise
    return db


@contextlib.contextmanager
def transaction(db: sqlite3.Connection, path: Path) -> Iterator[None]:
    """All or nothing of what is executed inside. Raises OSError where another user made a file in
    place of the journal."""
    if bounds.has_strange_journal(path):
        raise OSError(f"{path}-journal is of another user")
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # after a full disk SQLite has rolled back already
            db.execute("ROLLBACK")
        raise


@contextlib.contextmanager
def translate_errors(folder: Path) -> Iterator[None]:
    """Failures of disk, rights and locks become a MissingError with a mend."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as error:
        _refuse_no_folder(folder)
        full = getattr(error, "sqlite_errorname", "") == "SQLITE_FULL"
        full |= isinstance(error, OSError) and error.errno == errno.ENOSPC
        raise MissingError.of(
            "store-unwritable",
            folder=folder,
            error=error,
            advice="free some space there" if full else "check its rights, quota and free space",
        ) from error


def refuse_unwritable(folder: Path) -> None:
    """Raise MissingError, as a writer does, where no file can be made; make nothing."""
    with translate_errors(folder):
        _refuse_no_folder(folder)
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            folder.stat()  # no loop of links, name that is too long, folder that is closed
        place = _first_there(folder)
        for one in (folder.absolute(), *folder.absolute().parents):
            if one != place and one.is_relative_to(place) and one.is_symlink():
                raise FileNotFoundError(errno.ENOENT, "it is a link to nothing", str(one))
        if not os.access(place, os.W_OK | os.X_OK):
            raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(place))
        room = os.statvfs(place)
        if room.f_blocks and not room.f_bfree:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(place))


def _first_there(folder: Path) -> Path:
    """Return the folder, or the nearest above it that this user can see."""
    place = folder.absolute()
    every = (place, *place.parents)
    return next(one for one in every if os.path.exists(one))  # noqa: PTH110  Path's raises errors


def _refuse_no_folder(folder: Path) -> None:
    """Raise MissingError for a store that is a file, or below one."""
    if not (place := _first_there(folder)).is_dir():
        raise MissingError.of("store-no-folder", folder=folder, place=place)


def store_files(folder: Path, suffix: str = SUFFIX) -> list[Path]:
    """Return the files of a store with that suffix; none of one that is not there. Raises
    MissingError for a folder that cannot be looked into, whose results are not lost, and are not
    nothing, and for what is no folder."""
    try:
        entries = os.listdir(folder)  # noqa: PTH208  Path.glob passes errors over
    except FileNotFoundError:
        return []
    except OSError as error:
        _refuse_no_folder(folder)
        raise MissingError.of("store-unreadable", folder=folder, reason=error.strerror) from error
    return [folder / name for name in sorted(entries) if name.endswith(suffix)]


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection | None]:
    """Open a connection to read one file in the current schema, or None for a file that its writer
    has only just created. Raises sqlite3.Error, OSError, or ValueError for a newer schema and for
    what no writer makes."""
    with contextlib.ExitStack() as stack:
        db = stack.enter_context(_opened(path))
        bounds.refuse_programs(db)
        version = _version(db)
        if version > VERSION:
            raise ValueError(f"its schema {version} is newer than this mpigraft's {VERSION}")
        if 0 < version < VERSION:
            steps = [MIGRATIONS[step] for step in range(version, VERSION)]
            db = stack.enter_context(_migrated(db, steps)) if any(steps) else db
        db.row_factory = sqlite3.Row
        yield db if version else None


@contextlib.contextmanager
def _migrated(db: sqlite3.Connection, steps: Sequence[str]) -> Iterator[sqlite3.Connection]:
    with contextlib.closing(sqlite3.connect(":memory:")) as copy:
        db.backup(copy)
        bounds.bound(copy, _pragma(db, "page_count") * _pragma(db, "page_size"))
        for step in steps:
            copy.executescript(step)
        yield copy


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """Open the file itself, or a copy on which the journal of a killed writer can be rolled
    back."""
    with contextlib.ExitStack() as stack:
        if db := _in_place(path):
            stack.enter_context(contextlib.closing(db))
            if _readable(db):
                yield db
                return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        db = _connect(_copied(path, folder), ALONE, bounded=True)
        yield stack.enter_context(contextlib.closing(db))


def _in_place(path: Path) -> sqlite3.Connection | None:
    """Open the file itself, where it may be; what was checked is what is read. Raises OSError for
    one that another took the place of meanwhile."""
    with bounds.open_regular(path) as file:  # closed before SQLite locks anything (`_lockable`)
        if bounds.is_obstructed(path, file) or not _lockable(file):
            return None
        db = _connect(path, "ro", bounded=True)
        if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
            db.close()
            raise OSError("another file took its place while it was opened")
    return db


def _readable(db: sqlite3.Connection) -> bool:
    try:
        _version(db)
    except sqlite3.OperationalError:  # a journal, or a lock that is not given back
        return False
    return True


def _copied(path: Path, folder: Path) -> Path:
    """Return the file and its journal as they were at one moment. Raises OSError where there is
    none."""
    for _ in range(COPIES):
        before, owner = _state(path), path.stat().st_uid
        with contextlib.suppress(FileNotFoundError):  # the journal of a transaction that ended
            for part in before:
                with (
                    bounds.open_regular(part, owner) as source,
                    (folder / part.name).open("wb") as copy,
                ):
                    shutil.copyfileobj(source, copy)
            if _state(path) == before:
                if any(p.read_bytes()[-8:] == bounds.SUPER for p in folder.glob("*-journal")):
                    raise ValueError("its journal names another file, which SQLite would remove")
                return folder / path.name
        time.sleep(BETWEEN_S)
        for part in folder.iterdir():
            part.unlink()
    raise OSError(f"it changed during each of {COPIES} attempts to copy it")


def _state(path: Path) -> dict[Path, tuple[int, int]]:
    """Last change and size of the file and, while something is being written, of its journal."""
    stats = {path: path.stat()}
    with contextlib.suppress(FileNotFoundError):
        if bounds.has_journal(path):
            journal = path.with_name(f"{path.name}-journal")
            stats[journal] = journal.stat()
    return {part: (stat.st_mtime_ns, stat.st_size) for part, stat in stats.items()}


def _lockable(file: BinaryIO) -> bool:
    """Return whether its file system knows locks, asked with one that SQLite does not use. Not
    within a transaction of this process on that file: closing it gives back all locks
    (fcntl(2))."""
    try:
        fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1)
    except OSError as error:
        if error.errno in (errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP):
            return False
        raise
    return True


def _connect(path: Path, mode: str, *, bounded: bool = False) -> sqlite3.Connection:
    """In autocommit mode; `bounded` for what others may have written."""
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    db = sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)
    if bounded:
        bounds.bound(db, path.stat().st_size)
    return db


def _version(db: sqlite3.Connection) -> int:
    return _pragma(db, "user_version")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    return int(db.execute(f"PRAGMA {name}").fetchone()[0])


# ------------------------------------------------------------------ what may be written


def redacted(value: Any) -> Any:
    """Return a JSON value with secrets struck out of every text in it, keys included."""
    if isinstance(value, str):
        return env.redact(value)
    if isinstance(value, list):
        return [redacted(v) for v in value]
    if isinstance(value, dict):
        return {env.redact(k): redacted(v) for k, v in value.items()}
    return value


def redacted_json(text: str) -> str:
    """Return the same for a text that is JSON: inside, a secret with a quote in it looks
    different."""
    try:
        return canonical(redacted(json.loads(text)))
    except ValueError:
        return env.redact(text)


def redacted_bytes(data: bytes) -> bytes:
    """Return the same for what a program printed: secrets as the environment has them and as JSON
    has them. surrogateescape is how os.environ holds bytes that are no UTF-8."""
    text = env.redact(data.decode("utf-8", "surrogateescape"))
    secret = env.secrets()
    for ascii_only in (True, False) if secret else ():
        quoted = {k: json.dumps(v, ensure_ascii=ascii_only)[1:-1] for k, v in secret.items()}
        text = env.redact(text, quoted)
    return text.encode("utf-8", "surrogateescape")


def pack(samples: Sequence[float]) -> bytes:
    """Compressed little-endian doubles: files move between machines."""
    return zlib.compress(_little_endian(array("d", samples)).tobytes())


def unpack(data: bytes | None, most: int = bounds.MOST_SAMPLES) -> tuple[float, ...]:
    """Return what `pack` packed, of at most so many bytes; nothing for None. Raises zlib.error or
    ValueError for damage."""
    return () if data is None else tuple(_little_endian(array("d", bounds.decompress(data, most))))


def _little_endian(numbers: array[float]) -> array[float]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
