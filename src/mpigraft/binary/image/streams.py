"""Read the bytes of a blob in a file, unpacked on the way: gzip, zstd or plain.

At most one step is unpacked beyond what is read, and a blob that unpacks to far more than real
software does is refused as a bomb.
Sources: RFC 1952 (gzip), RFC 8878 (zstd).
"""

from __future__ import annotations

import errno
import hashlib
import importlib
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

from mpigraft.binary.image.root import RootError
from mpigraft.core.budget import Budget
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.gunzip import GZIP, MEMBER_BYTES, gunzip

STEP = 1 << 18  # bytes read, and unpacked, at once
FREE = 2 << 30  # bytes that any blob may unpack to
RATIO = 100  # and this times its size on top: a layer's usual ratio is 2 to 4
MAX_XZ = 1 << 28  # bytes of memory
ZSTD = b"\x28\xb5\x2f\xfd"
FLAWS = (zlib.error, EOFError, ValueError)


class File:
    """An open file, closed with the last reference to it."""

    def __init__(self, handle: int) -> None:
        self.handle = handle

    @classmethod
    def open(cls, path: Path) -> File:
        """Open a regular file. Raises OSError when there is none."""
        file = cls(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC))
        if not stat.S_ISREG(os.fstat(file.handle).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", os.fspath(path))
        return file

    def pread(self, size: int, at: int) -> bytes:
        return os.pread(self.handle, size, at)

    def __del__(self) -> None:
        os.close(self.handle)


@dataclass(frozen=True, slots=True)
class Blob:
    """Bytes `offset` to `offset + size` of an open file."""

    file: File
    offset: int
    size: int
    name: str  # for messages

    def pread(self, size: int, at: int) -> bytes:
        """Read bytes, fewer at the end of the blob. RootError where the file ends before it."""
        size = min(size, self.size - at)
        if size <= 0:
            return b""
        try:
            data = self.file.pread(size, self.offset + at)
        except (OSError, OverflowError) as error:
            raise RootError(f"{self.name}: {error}") from error
        if not data:
            raise RootError(f"{self.name}: the file ends within it")
        return data

    def all(self, limit: int) -> bytes:
        """Read the whole blob. Raises RootError when it is longer than `limit`."""
        if self.size > limit:
            raise RootError(f"{self.name}: {self.size} bytes, {limit} at most are expected")
        return b"".join(_chunks(self))

    def packed(self) -> bool:
        return self.pread(4, 0).startswith((GZIP, ZSTD))


class Stream:
    """A blob's unpacked bytes, from front to back, and a SHA-256: of the packed blob, or of its
    content."""

    def __init__(self, blob: Blob, *, of_content: bool = False) -> None:
        self.blob = blob
        self.at = 0  # bytes given or skipped so far
        self._sum = hashlib.sha256()
        self._of_content = of_content
        raw = _chunks(blob)
        self._raw = raw if of_content else self._noted(raw)
        unpacked = filter(None, _unpacked(blob, self._raw))
        self._pieces = self._noted(unpacked) if of_content else unpacked
        self._rest = memoryview(b"")
        self._most = FREE + RATIO * blob.size

    def _noted(self, pieces: Iterable[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._sum.update(piece)
            yield piece

    def some(self, size: int) -> memoryview:
        """Read 1 to `size` bytes; none at the end. RootError when it is broken or a bomb."""
        if not self._rest:
            try:
                self._rest = memoryview(next(self._pieces, b""))
            except RootError:
                raise
            except FLAWS as error:
                raise RootError(f"{self.blob.name}: cannot be unpacked: {error}") from error
        part = self._rest[:size]
        self._rest = self._rest[size:]
        self.at += len(part)
        if self.at > self._most:
            raise RootError(
                f"{self.blob.name}: {self.blob.size} bytes unpack to more than {self._most}"
            )
        return part

    def read(self, size: int) -> bytes:
        """Read `size` bytes, fewer at the end."""
        data = bytes(self.some(size)) if size else b""
        while len(data) < size and (part := self.some(size - len(data))):
            data += part
        return data

    def skip_to(self, at: int) -> bool:
        """Skip to an offset. False where the stream is shorter."""
        while self.at < at:
            if not self.some(at - self.at):
                return False
        return True

    def digest(self) -> str:
        """Finish, and give the SHA-256 in hex. Nothing can be read afterwards."""
        while self._of_content and self.some(STEP):
            pass
        for _ in self._raw:
            pass
        return self._sum.hexdigest()


class Plain:
    """A Stream of a plain file, which can skip."""

    def __init__(self, blob: Blob) -> None:
        self.blob = blob
        self.at = 0

    def read(self, size: int) -> bytes:
        data = self.blob.pread(size, self.at)
        self.at += len(data)
        return data

    def skip_to(self, at: int) -> bool:
        self.at = min(at, self.blob.size)
        return self.at == at


def _chunks(blob: Blob) -> Iterator[bytes]:
    at = 0
    while chunk := blob.pread(STEP, at):
        at += len(chunk)
        yield chunk


def _unpacked(blob: Blob, chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Unpack by the first bytes: media types may be wrong, and docker save has none."""
    start = blob.pread(4, 0)
    if start.startswith(GZIP):
        return gunzip(chunks, Budget(blob.name, blob.size, MEMBER_BYTES))
    if start.startswith(ZSTD):
        return _unzstded(chunks, Budget(blob.name, blob.size, MEMBER_BYTES))
    return chunks


def _unzstded(chunks: Iterator[bytes], budget: Budget) -> Iterator[bytes]:
    zstd = _zstd()
    engine = zstd.ZstdDecompressor()  # takes no window over 128 MiB
    for chunk in chunks:
        rest = chunk
        while True:
            if engine.eof:  # a further frame
                if not rest:
                    break
                budget.take(items=1)
                engine = zstd.ZstdDecompressor()
            try:
                yield engine.decompress(rest, STEP)
            except zstd.ZstdError as error:
                raise EOFError(str(error)) from error
            rest = engine.unused_data if engine.eof else b""
            if not rest and (engine.eof or engine.needs_input):
                break
    if not engine.eof:
        raise EOFError("it ends early")


def _zstd() -> ModuleType:
    """Import the zstd module, which Python has since 3.14."""
    name = "compression.zstd" if sys.version_info >= (3, 14) else "backports.zstd"
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingError.of("module-missing", name=name) from error


def unpacker(method: str, name: str) -> Callable[[bytes, int], bytes]:
    """Make a function of (packed block, most bytes) for gzip, xz or zstd. `name`: for messages.

    It raises RootError for a block that is broken or unpacks to more. Raises UsageError for others.
    """
    make: Callable[[], Any]
    if method == "gzip":
        make = zlib.decompressobj
    elif method == "xz":
        import lzma

        make = partial(lzma.LZMADecompressor, lzma.FORMAT_XZ, memlimit=MAX_XZ)
    elif method == "zstd":
        make = _zstd().ZstdDecompressor
    else:
        raise UsageError.of("compression-unknown", name=name, method=method)

    def unpack(packed: bytes, most: int) -> bytes:
        engine = make()
        try:
            data: bytes = engine.decompress(packed, most + 1)
        except Exception as error:  # each method has an error class of its own
            raise RootError(f"{name}: a block cannot be unpacked: {error}") from error
        if len(data) > most or not engine.eof:
            raise RootError(f"{name}: a block is cut off, or unpacks to more than {most} bytes")
        return data

    return unpack
