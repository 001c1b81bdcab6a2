"""A layer of an image, read once: its rows, and the contents that anyone may ask for.

What was kept lies in the cache under the layer's digest, one file per layer: contents, then the
rows as JSON, then MAGIC and the place of the rows. Images share layers, and a second look reads
the rows alone. Of a layer that is not packed only the rows are written: its contents are read
where they are.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import struct
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mpigraft import cache
from mpigraft.errors import MissingError
from mpigraft.roots import Pread, RootError
from mpigraft.roots.streams import STEP, Blob, File, Stream
from mpigraft.roots.tar import Member, members
from mpigraft.roots.tree import MAX_DEPTH, Row

MAGIC = b"mpiglay1"
TRAILER = struct.Struct("<8sQ")
MAX_ROWS = 1 << 28  # bytes of a layer's rows as JSON, and characters of its names
SETTINGS_FOLDERS = ("etc", ".singularity.d")
SETTINGS = (".conf", ".ini", ".txt", ".dat", ".json", ".toml", ".modulemap")
NAMED = ("os-release", "ld.so.cache")
MAX_SETTING = 1 << 22  # bytes
ZEROS = bytes(STEP)
ELF_KINDS = (2, 3)  # ET_EXEC, ET_DYN: what a loader takes


@dataclass(frozen=True, slots=True)
class Layer:
    """Where a layer lies, and the SHA-256 that it must have."""

    blob: Blob
    digest: str  # hex
    of_content: bool = False  # the digest is of the tar file, not of the packed one


def rows(layer: Layer) -> tuple[list[Row], Pread]:
    """The rows of a layer, and the bytes that their offsets count in.

    RootError when it is broken, or not what its digest says; MissingError when the disk is full.
    """
    place = _place(layer)
    if place:
        with contextlib.suppress(OSError, ValueError, TypeError, struct.error):  # damaged: no cache
            return _load(File.open(place), layer)
    return _load(_make(layer, place), layer)


def _place(layer: Layer) -> Path | None:
    """Of a layer that is not packed, one for each file that it lies in."""
    key = f"{layer.digest}:{layer.of_content}"
    if not layer.blob.packed():
        seen = os.fstat(layer.blob.file.handle)
        parts = (seen.st_dev, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
        key = ":".join(map(str, (key, *parts, layer.blob.offset)))
    try:
        folder = cache.folders().cache / "layers"
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except (OSError, MissingError):
        return None
    return folder / hashlib.sha256(key.encode()).hexdigest()


def _load(file: File, layer: Layer) -> tuple[list[Row], Pread]:
    """From a file that `_make` wrote."""
    size = os.fstat(file.handle).st_size
    magic, end = TRAILER.unpack(file.pread(TRAILER.size, size - TRAILER.size))
    length = size - TRAILER.size - end
    if magic != MAGIC or not 0 <= length <= MAX_ROWS:
        raise ValueError("not a kept layer")
    found = [Row(*row) for row in json.loads(Blob(file, end, length, "rows").all(MAX_ROWS))]
    kept = Blob(file, 0, end, layer.blob.name) if layer.blob.packed() else layer.blob
    return found, kept.pread


def _make(layer: Layer, place: Path | None) -> File:
    """Read a layer and keep what may be asked for: at `place`, or in a file without a name."""
    draft = None
    try:
        with tempfile.NamedTemporaryFile(
            prefix=".", dir=place.parent if place else None, delete=False
        ) as draft:
            found = json.dumps(_gather(layer, draft), separators=(",", ":")).encode()
            if len(found) > MAX_ROWS:
                raise RootError(f"{layer.blob.name}: its names take {len(found)} bytes")
            end = draft.tell()
            draft.write(found + TRAILER.pack(MAGIC, end))
            draft.flush()
            made = File(os.dup(draft.fileno()))
        if place:
            Path(draft.name).replace(place)
            draft = None
        return made
    except OSError as error:
        raise MissingError(
            f"{error.filename or 'the cache'}: {error.strerror}",
            why="what is needed of an image's packed layers is kept in the cache",
            mend="make room, or set MPIGRAFT_HOME to a folder that has it",
        ) from error
    finally:
        if draft:
            Path(draft.name).unlink(missing_ok=True)


def _gather(layer: Layer, out: IO[bytes]) -> list[Row]:
    """The rows of a layer; contents go to `out` where it is packed."""
    name = layer.blob.name
    stream = Stream(layer.blob, of_content=layer.of_content)
    packed = layer.blob.packed()
    found: list[Row] = []
    weight = 0
    for member in members(stream, name):
        path = _path(member.name, name)
        target = _path(member.target, name) if member.kind == "hard" else member.target
        offset = _keep(member, path, stream, out if packed else None)
        kind = "file" if member.kind == "sparse" else member.kind
        weight += len(path) + len(target)
        if weight > MAX_ROWS:
            raise RootError(f"{name}: its names take more than {MAX_ROWS} bytes")
        found.append(Row(path, kind, member.size, member.mode, target, offset))
    if (seen := stream.digest()) != layer.digest:
        raise RootError(f"{name}: its SHA-256 is {seen}, and should be {layer.digest}")
    return found


def _path(name: str, where: str) -> str:
    """A member's path without what says nothing. Engines refuse ".." in it, too."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise RootError(f"{where}: {name!r} leads out of the folder that it is unpacked in")
    if len(parts) > MAX_DEPTH:
        raise RootError(f"{where}: {name[:80]!r}...: more than {MAX_DEPTH} folders deep")
    return "/".join(parts)


def _keep(member: Member, path: str, stream: Stream, out: IO[bytes] | None) -> int:
    """Where a file's contents are: in `out`, else in the stream; -1: nobody will ask for them."""
    if member.kind != "file":
        return -1
    head = stream.read(min(20, member.size))
    if not (_is_elf(head) or _is_setting(path, member.size)):
        return -1
    if out is None:
        return member.at
    start = out.tell()
    part: bytes = head
    while True:
        if part == ZEROS[: len(part)]:
            out.seek(len(part), os.SEEK_CUR)  # a hole
        else:
            out.write(part)
        left = member.at + member.size - stream.at
        if not left:
            return start
        part = bytes(stream.some(min(left, STEP)))
        if not part:
            raise RootError(f"{stream.blob.name}: it ends within {path}")


def _is_elf(head: bytes) -> bool:
    """Whether it is a program or a library: object files and cores are no loader's business."""
    order = "<" if head[5:6] == b"\1" else ">"
    return (
        len(head) >= 18
        and head.startswith(b"\x7fELF")
        and struct.unpack_from(f"{order}H", head, 16)[0] in ELF_KINDS
    )


def _is_setting(path: str, size: int) -> bool:
    """Whether it is a file that says something of the image, its loader or its MPI."""
    *folders, name = path.split("/")
    return size <= MAX_SETTING and (
        name in NAMED
        or name.endswith(SETTINGS)
        or any(folder in folders for folder in SETTINGS_FOLDERS)
    )
