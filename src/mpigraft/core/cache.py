"""Where fetched things and caches live, and a cache of JSON documents keyed by content.

A cache is a convenience: one that cannot be read or written, or that is damaged, is ignored in
silence. What is asked twice at the same time is computed twice; the last one wins.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mpigraft.core import file_dependencies
from mpigraft.core.errors import MissingError
from mpigraft.core.write import make_folder, write_whole

DIGESTS = "digest"  # kind under which digests of files are remembered
SETTLED_S = 2.0  # a file this young may change again without a change of its timestamps
MAX_DOCUMENT = 64 * 1024 * 1024  # bytes; a cache file beyond this is damage, not a document

_digests: dict[str, str] = {}  # of this process: a stat instead of a file read per library


@dataclass(frozen=True, slots=True)
class Folders:
    """`data` holds what was fetched or built and is wanted again, `cache` what may be lost."""

    data: Path
    cache: Path


def folders() -> Folders:
    """$MPIGRAFT_HOME and its `cache`, else the XDG folders. Absolute; nothing is created.

    Raises MissingError when there is no home folder to put them into.
    Source: XDG Base Directory Specification 0.8, which says to ignore relative values.
    """
    if home := os.environ.get("MPIGRAFT_HOME"):
        base = Path(home).absolute()
        return Folders(base, base / "cache")
    return Folders(
        _xdg("XDG_DATA_HOME", ".local/share") / "mpigraft",
        _xdg("XDG_CACHE_HOME", ".cache") / "mpigraft",
    )


def _xdg(variable: str, default: str) -> Path:
    if (value := os.environ.get(variable, "")).startswith("/"):
        return Path(value)
    try:
        return Path.home() / default
    except RuntimeError as error:
        raise MissingError.of("home-missing") from error


def file_digest(path: Path | str) -> str:
    """SHA-256, hex, of a regular file's content; OSError when it cannot be read or is none.

    Remembered by device, inode, size, mtime and ctime, so that a second look at a closure of
    forty libraries costs forty stats. ctime is in the key because installers set mtime back.
    A file that changed within the last two seconds is not remembered: on a coarse clock it may
    change again and look the same.
    """
    file_dependencies.file(path)
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # no wait on a fifo
    with os.fdopen(handle, "rb", buffering=0) as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path}: not a regular file")
        key = _identity(status)
        known = _digests.get(key) or get(DIGESTS, key)
        if isinstance(known, str) and len(known) == 64:
            _digests[key] = known
            return known
        sha = hashlib.file_digest(file, "sha256").hexdigest()
        unchanged = _identity(os.fstat(handle)) == key
    if unchanged and abs(time.time() - max(status.st_mtime, status.st_ctime)) > SETTLED_S:
        _digests[key] = sha
        put(DIGESTS, key, sha)
    return sha


def _identity(stat: os.stat_result) -> str:
    parts = (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)
    return ":".join(map(str, parts))


def get(kind: str, key: str) -> Any | None:
    """Return the document that was put under `kind` and `key`, or None."""
    try:
        with _place(kind, key).open("rb") as file:
            size = os.fstat(file.fileno()).st_size  # read() takes the memory that it is given
            entry = json.loads(file.read(min(size, MAX_DOCUMENT)))
    except (OSError, ValueError, RecursionError, MissingError):
        return None
    if not isinstance(entry, dict) or entry.get("key") != key:
        return None
    return entry.get("document")


def put(kind: str, key: str, document: Any) -> None:
    """Remember a JSON document: whole or not at all, also when several processes write.

    TypeError or ValueError when `document` is not JSON: that is the caller's mistake.
    """
    text = json.dumps({"key": key, "document": document}, separators=(",", ":"), allow_nan=False)
    with contextlib.suppress(OSError, MissingError):
        place = _place(kind, key)
        make_folder(place.parent, 0o700)
        write_whole(place, text.encode(), 0o600, links=False, durable=False)


def trim(kind: str, most: int) -> None:
    """Keep the newest `most` documents of a kind: for those that are large."""
    with contextlib.suppress(OSError, MissingError):
        files = (folders().cache / kind).glob("*.json")
        aged = sorted(((file.stat().st_mtime_ns, file) for file in files), reverse=True)
        for _, file in aged[most:]:
            file.unlink(missing_ok=True)


def _place(kind: str, key: str) -> Path:
    # Keys hold versions, paths and colons; their digest is a safe file name of fixed length.
    name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
    return folders().cache / kind / f"{name}.json"
