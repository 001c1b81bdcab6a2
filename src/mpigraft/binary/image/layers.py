"""Read a layer of an image once: its rows, and the contents that may be needed later.

The cache has one file per layer, under its digest: contents, then the rows as JSON, then MAGIC and
the offset of the rows. Images share layers, and a second read takes the rows alone. Of an unpacked
layer only the rows are written: its contents are read where they are.
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

from mpigraft.binary.image.root import Pread, RootError
from mpigraft.binary.image.streams import STEP, Blob, File, Stream
from mpigraft.binary.image.tar import Member, members
from mpigraft.binary.image.tree import MAX_DEPTH, LayerMember
from mpigraft.core import cache
from mpigraft.core.budget import Budget
from mpigraft.core.errors import MissingError
from mpigraft.core.write import make_folder, writing_whole

MAGIC = b"mpiglay1"
TRAILER = struct.Struct("<8sQ")
MAX_ROWS = 1 << 28  # bytes of a layer's rows as JSON, and characters of its names
SETTINGS_FOLDERS = ("etc", ".singularity.d")
SETTINGS = (".conf", ".ini", ".txt", ".dat", ".json", ".toml", ".modulemap")
NAMED = ("os-release", "ld.so.cache")
MAX_SETTING = 1 << 22  # bytes
PACKED_MEMBER = 32  # bytes that a file takes in a packed layer: an empty one with a name has 20
ZEROS = bytes(STEP)
ELF_KINDS = (2, 3)  # ET_EXEC, ET_DYN: what a loader takes


@dataclass(frozen=True, slots=True)
class Layer:
    """The bytes of a layer, and the SHA-256 that they must have."""

    blob: Blob
    digest: str  # hex
    of_content: bool = False  # the digest is of the tar file, not of the packed one


def rows(layer: Layer) -> tuple[list[LayerMember], Pread]:
    """Give the rows of a layer, and a reader of the bytes that their offsets refer to.

    Raises RootError when it is broken or does not match its digest, MissingError for a full disk.
    """
    place = _place(layer)
    if place:
        with contextlib.suppress(OSError, ValueError, TypeError, struct.error):  # damaged: no cache
            return _load(File.open(place), layer)
    return _load(_make(layer, place), layer)


def _place(layer: Layer) -> Path | None:
    """Give the cache file of a layer; for an unpacked layer, one for each archive that has it."""
    key = f"{layer.digest}:{layer.of_content}"
    if not layer.blob.packed():
        status = os.fstat(layer.blob.file.handle)
        parts = (
            status.st_dev,
            status.st_ino,
            status.st_size,
            status.st_mtime_ns,
            status.st_ctime_ns,
        )
        key = ":".join(map(str, (key, *parts, layer.blob.offset)))
    try:
        folder = cache.folders().cache / "layers"
        make_folder(folder, 0o700)
    except (OSError, MissingError):
        return None
    return folder / hashlib.sha256(key.encode()).hexdigest()


def _load(file: File, layer: Layer) -> tuple[list[LayerMember], Pread]:
    """Load the rows from a file that `_make` wrote."""
    size = os.fstat(file.handle).st_size
    magic, end = TRAILER.unpack(file.pread(TRAILER.size, size - TRAILER.size))
    length = size - TRAILER.size - end
    if magic != MAGIC or not 0 <= length <= MAX_ROWS:
        raise ValueError("not a kept layer")
    rows = [LayerMember(*row) for row in json.loads(Blob(file, end, length, "rows").all(MAX_ROWS))]
    contents = Blob(file, 0, end, layer.blob.name) if layer.blob.packed() else layer.blob
    return rows, contents.pread


def _make(layer: Layer, place: Path | None) -> File:
    """Read a layer and store what may be needed: at `place`, or in an unnamed file."""
    try:
        with (
            writing_whole(place, 0o600, links=False, durable=False)
            if place
            else tempfile.TemporaryFile()
        ) as draft:
            table = json.dumps(_gather(layer, draft), separators=(",", ":")).encode()
            if len(table) > MAX_ROWS:
                raise RootError(f"{layer.blob.name}: its names take {len(table)} bytes")
            end = draft.tell()
            draft.write(table + TRAILER.pack(MAGIC, end))
            draft.flush()
            return File(os.dup(draft.fileno()))
    except OSError as error:
        raise MissingError.of(
            "image-cache-full", path=error.filename or "the cache", reason=error.strerror
        ) from error


def _gather(layer: Layer, out: IO[bytes]) -> list[LayerMember]:
    """Collect the rows of a layer; contents go to `out` where it is packed."""
    name = layer.blob.name
    stream = Stream(layer.blob, of_content=layer.of_content)
    packed = layer.blob.packed()
    rows: list[LayerMember] = []
    weight = 0
    budget = Budget(name, layer.blob.size, PACKED_MEMBER)
    for member in members(stream, name):
        budget.take(items=1)
        path = _path(member.name, name)
        target = _path(member.target, name) if member.kind == "hard" else member.target
        offset = _keep(member, path, stream, out if packed else None)
        kind = "file" if member.kind == "sparse" else member.kind
        weight += len(path) + len(target)
        if weight > MAX_ROWS:
            raise RootError(f"{name}: its names take more than {MAX_ROWS} bytes")
        rows.append(LayerMember(path, kind, member.size, member.mode, target, offset))
    if (digest := stream.digest()) != layer.digest:
        raise RootError(f"{name}: its SHA-256 is {digest}, and should be {layer.digest}")
    return rows


def _path(name: str, where: str) -> str:
    """Normalize a member's path. Engines refuse ".." in it, too."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise RootError(f"{where}: {name!r} leads out of the folder that it is unpacked in")
    if len(parts) > MAX_DEPTH:
        raise RootError(f"{where}: {name[:80]!r}...: more than {MAX_DEPTH} folders deep")
    return "/".join(parts)


def _keep(member: Member, path: str, stream: Stream, out: IO[bytes] | None) -> int:
    """Give the offset of a file's contents: in `out`, else in the stream; -1: never needed."""
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
        remaining = member.at + member.size - stream.at
        if not remaining:
            return start
        part = bytes(stream.some(min(remaining, STEP)))
        if not part:
            raise RootError(f"{stream.blob.name}: it ends within {path}")


def _is_elf(head: bytes) -> bool:
    """Return whether it is a program or a library; a loader takes no object files and cores."""
    order = "<" if head[5:6] == b"\1" else ">"
    return (
        len(head) >= 18
        and head.startswith(b"\x7fELF")
        and struct.unpack_from(f"{order}H", head, 16)[0] in ELF_KINDS
    )


def _is_setting(path: str, size: int) -> bool:
    """Return whether it is a configuration file of the image, its loader or its MPI."""
    *folders, name = path.split("/")
    return size <= MAX_SETTING and (
        name in NAMED
        or name.endswith(SETTINGS)
        or any(folder in folders for folder in SETTINGS_FOLDERS)
    )
