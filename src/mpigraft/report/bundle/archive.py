"""A .tar.gz of files, the same bytes for the same files, with their checksums.

Names are checked, so that nobody who unpacks the archive gets a file outside of its folder.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from mpigraft.core.errors import MissingError
from mpigraft.core.write import writing_whole

PART = re.compile(r"[A-Za-z0-9_+][A-Za-z0-9._+=,-]*")
UNSAFE = re.compile(r"[^A-Za-z0-9._+-]+")
LONGEST = 60  # characters of a name that a person gave
SUMS = "SHA256SUMS"
EXECUTABLE = ".sh"


def safe_name(text: str) -> str:
    """Write a part of a path that any name makes: letters, digits and `.+-_`, never a dot first."""
    return UNSAFE.sub("-", text).strip("-.")[:LONGEST] or "unnamed"


def write_archive(path: Path, folder: str, files: Mapping[str, bytes], created: str) -> None:
    """Write `files` below `folder` into an archive, whole or not at all, with SHA256SUMS, which
    `sha256sum -c` reads. `created` is the date of every file. Raises MissingError where the
    archive cannot be written, ValueError for a name that leaves the folder."""
    sums = "".join(
        f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items())
    )
    seconds = int(datetime.fromisoformat(created).timestamp())
    try:
        with (
            writing_whole(path) as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
        ):
            for name, data in sorted({**files, SUMS: sums.encode()}.items()):
                tar.addfile(_member(folder, name, len(data), seconds), io.BytesIO(data))
    except OSError as error:
        raise MissingError.of(
            "bundle-unwritable", path=path, reason=error.strerror or error
        ) from error


def _member(folder: str, name: str, size: int, seconds: int) -> tarfile.TarInfo:
    """Give the head of a file, of nobody, readable by all."""
    if not all(PART.fullmatch(part) for part in (folder, *name.split("/"))):
        raise ValueError(f"unsafe name {name!r}")
    member = tarfile.TarInfo(f"{folder}/{name}")
    member.size, member.mtime = size, seconds
    member.mode = 0o755 if name.endswith(EXECUTABLE) else 0o644
    return member
