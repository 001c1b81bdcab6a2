"""A squashfs image as a root, read in place: only what is needed is unpacked.

Other readers load the whole tree into memory first and trust its counts. Here every table, count
and offset is bounded, and a block that unpacks to more than the format allows is an error.
Source: the kernel's Documentation/filesystems/squashfs.rst and fs/squashfs/squashfs_fs.h
(format 4.0, little endian; names of the structures are in the comments).
"""

from __future__ import annotations

import os
import struct
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from mpigraft.binary.image.root import (
    MAX_PATH,
    BaseRoot,
    Link,
    Pread,
    RootEntry,
    RootError,
    join,
)
from mpigraft.binary.image.streams import Blob, File, unpacker
from mpigraft.core.budget import Budget

SUPER = struct.Struct("<4s4I6H8Q")  # squashfs_super_block
SQUASHFS = b"hsqs"
METADATA = 8192  # bytes of a metadata block, unpacked
METADATA_PLAIN, DATA_PLAIN = 1 << 15, 1 << 24  # set in a block's length: it is not packed
DATA_LENGTH = DATA_PLAIN - 1
NO_FRAGMENT = 0xFFFFFFFF
FRAGMENTS = 512  # entries of a block of the fragment table
INODE = struct.Struct("<HH12x")  # squashfs_base_inode: type, mode
FOLDER, LONG_FOLDER = struct.Struct("<I4xHH4x"), struct.Struct("<4xII6xH4x")  # ..._dir_inode
FILE, LONG_FILE = struct.Struct("<4I"), struct.Struct("<QQ12xII4x")  # squashfs_reg_inode
LINK = struct.Struct("<4xI")  # squashfs_symlink_inode
LIST_HEAD, LIST_ENTRY = struct.Struct("<II4x"), struct.Struct("<HhHH")  # squashfs_dir_header
FRAGMENT = struct.Struct("<QI4x")  # squashfs_fragment_entry
MAX_LIST = 1 << 26  # bytes of a folder's list
MAX_BLOCKS = 1 << 24  # of a file: 2 TiB at the usual block size
LENGTH_COST = 256  # of a block's length and place, in bytes of data that take as long to read
METADATA_KEPT, DATA_KEPT = 2048, 16  # blocks
COMPRESSIONS = {1: "gzip", 2: "lzma", 3: "lzo", 4: "xz", 5: "lz4", 6: "zstd"}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inode:
    """An inode. `start` and `offset` locate a folder's list or a file's data."""

    kind: str  # "file", "folder", "link", "other"
    mode: int
    size: int
    start: int = 0
    offset: int = 0  # within a block of the list; of a file's tail within its fragment
    fragment: int = NO_FRAGMENT
    target: str = ""
    lengths: tuple[int, int] = (0, 0)  # of a file: where in the metadata those of its blocks are


class SquashRoot(BaseRoot):
    """The file system that starts with `blob`. Raises RootError when it is broken or another."""

    def __init__(self, blob: Blob) -> None:
        super().__init__()
        self.name = blob.name
        self._blob = blob
        head = blob.pread(SUPER.size, 0)
        if len(head) < SUPER.size:
            raise RootError(f"{self.name}: {len(head)} bytes are too few for a squashfs")
        fields = SUPER.unpack(head)
        self.block = fields[3]
        self._fragments = fields[4]
        self._top: int = fields[11]
        used = fields[12]
        self._inodes, self._lists, self._fragment_table = fields[15:18]
        if fields[0] != SQUASHFS or fields[9:11] != (4, 0):
            raise RootError(f"{self.name}: not a squashfs of version 4.0")
        if self.block not in (1 << n for n in range(12, 21)):
            raise RootError(f"{self.name}: blocks of {self.block} bytes")
        if used > blob.size:
            raise RootError(f"{self.name}: {used} bytes long, but only {blob.size} exist")
        self._unpack = unpacker(COMPRESSIONS.get(fields[5], f"method {fields[5]}"), self.name)
        self._metadata = _BlockCache(METADATA_KEPT, self._metadata_block)
        self._data = _BlockCache(DATA_KEPT, self._data_block)
        self._folders: dict[str, int] = {"/": self._top}  # canonical folder: reference of its inode
        self._lists_by_inode: dict[int, dict[str, int]] = {}  # by inode: references by name
        self.budget = Budget(blob.name, blob.size)

    # -------------------------------------------------------------- as a root

    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        place = self._folder_reference(folder)
        reference = self._names(place).get(name) if place is not None else None
        if reference is None:
            return None
        inode = self._inode(reference)
        if inode.kind == "link":
            return Link(inode.target)
        path = join(folder, name)
        if inode.kind == "folder":
            self._folders[path] = reference
        # Hard links share an inode; its number in the image is not to be trusted.
        return RootEntry(path, inode.kind, inode.size, inode.mode, (0, reference))

    def _list(self, folder: str) -> list[str]:
        place = self._folder_reference(folder)
        return list(self._names(place)) if place is not None else []

    @contextmanager
    def _opened(self, entry: RootEntry) -> Iterator[Pread]:
        yield _Content(self, self._inode(entry.identity[1])).pread

    def _folder_reference(self, folder: str) -> int | None:
        if folder in self._folders:
            return self._folders[folder]
        reference, path = self._top, "/"
        for name in folder.split("/")[1:]:
            child = self._names(reference).get(name)
            if child is None or self._inode(child).kind != "folder":
                return None
            reference, path = child, join(path, name)
            self._folders[path] = reference
        return reference

    # -------------------------------------------------------------- tables

    def _inode(self, reference: int) -> Inode:
        cursor = _Cursor(self, self._inodes, reference)
        kind, mode = INODE.unpack(cursor.take(INODE.size))
        mode &= 0o7777
        if kind in (1, 8):
            start, size, offset = self._folder_fields(cursor, kind)
            return Inode("folder", mode, size, start, offset)
        if kind in (2, 9):
            form = FILE if kind == 2 else LONG_FILE
            fields = form.unpack(cursor.take(form.size))
            if kind == 2:
                start, fragment, offset, size = fields
            else:
                start, size, fragment, offset = fields
            return Inode("file", mode, size, start, offset, fragment, lengths=cursor.state())
        if kind in (3, 10):
            (size,) = LINK.unpack(cursor.take(LINK.size))
            if size > MAX_PATH:
                raise RootError(f"{self.name}: a link of {size} bytes")
            return Inode(
                "link", mode, size, target=cursor.take(size).decode("utf-8", "surrogateescape")
            )
        if not 4 <= kind <= 14:
            raise RootError(f"{self.name}: an inode of type {kind}")
        return Inode("other", mode, 0)

    @staticmethod
    def _folder_fields(cursor: _Cursor, kind: int) -> tuple[int, int, int]:
        """Give (start, size, offset) of a folder's list."""
        if kind == 1:
            start, size, offset = FOLDER.unpack(cursor.take(FOLDER.size))
        else:
            size, start, offset = LONG_FOLDER.unpack(cursor.take(LONG_FOLDER.size))
        return start, max(0, size - 3), offset  # "." and ".." are counted, though absent

    def _names(self, reference: int) -> dict[str, int]:
        """Read a folder: {name: reference of its inode}."""
        if reference in self._lists_by_inode:
            return self._lists_by_inode[reference]
        inode = self._inode(reference)
        if inode.size > MAX_LIST:
            raise RootError(f"{self.name}: a folder's list of {inode.size} bytes")
        cursor = _Cursor(self, self._lists, inode.start << 16 | inode.offset)
        references: dict[str, int] = {}
        remaining = inode.size
        while remaining > 0:
            count, start = LIST_HEAD.unpack(cursor.take(LIST_HEAD.size))
            remaining -= LIST_HEAD.size
            self.budget.take(items=count + 1)  # one less than there are
            for _ in range(min(count, remaining) + 1):
                offset, _, _, length = LIST_ENTRY.unpack(cursor.take(LIST_ENTRY.size))
                name = cursor.take(length + 1)
                remaining -= LIST_ENTRY.size + len(name)
                if name not in (b".", b"..") and not {0, 47} & set(name):
                    references[name.decode("utf-8", "surrogateescape")] = start << 16 | offset
        self._lists_by_inode[reference] = references
        return references

    def metadata(self, place: int) -> tuple[bytes, int]:
        """Give (a metadata block, offset of the next one)."""
        return self._metadata.at((place, 0))

    def _metadata_block(self, place: int, _: int) -> tuple[bytes, int]:
        (head,) = struct.unpack("<H", self._bytes(place, 2))
        length = head & METADATA_PLAIN - 1
        data = self._bytes(place + 2, length)
        if not head & METADATA_PLAIN:
            data = self._unpack(data, METADATA)
        if not 0 < len(data) <= METADATA:
            raise RootError(f"{self.name}: a table's block of {len(data)} bytes")
        return data, place + 2 + length

    def data(self, place: int, length: int) -> bytes:
        """Give a block of a file's data, by its offset and its length field."""
        return self._data.at((place, length))

    def _data_block(self, place: int, length: int) -> bytes:
        packed = self._bytes(place, min(length & DATA_LENGTH, self.block + 1))
        return packed if length & DATA_PLAIN else self._unpack(packed, self.block)

    def fragment(self, number: int) -> bytes:
        """Give a block that holds the tails of several files."""
        if number >= self._fragments:
            raise RootError(f"{self.name}: fragment {number} does not exist")
        index = self._bytes(self._fragment_table + number // FRAGMENTS * 8, 8)
        table = int.from_bytes(index, "little")
        cursor = _Cursor(self, table, number % FRAGMENTS * FRAGMENT.size)
        place, length = FRAGMENT.unpack(cursor.take(FRAGMENT.size))
        return self.data(place, length)

    def _bytes(self, place: int, size: int) -> bytes:
        data = self._blob.pread(size, place)
        while len(data) < size and (more := self._blob.pread(size - len(data), place + len(data))):
            data += more
        if len(data) != size:
            raise RootError(f"{self.name}: bytes {place} to {place + size} are missing")
        return data


def open_squashfs(path: Path) -> SquashRoot:
    """Open a plain squashfs file. Raises as SquashRoot; OSError."""
    file = File.open(path)
    return SquashRoot(Blob(file, 0, os.fstat(file.handle).st_size, str(path)))


class _Cursor:
    """Reads metadata from a reference of a table on: offset of a block << 16 | offset in it."""

    def __init__(self, root: SquashRoot, table: int, reference: int) -> None:
        self._root = root
        self._place = table + (reference >> 16)
        self._offset = reference & 0xFFFF

    def state(self) -> tuple[int, int]:
        """Give the state that another cursor needs to continue from here."""
        return self._place, self._offset

    def take(self, size: int) -> bytes:
        data_read = b""
        while True:
            data, following = self._root.metadata(self._place)
            if self._offset > len(data):
                raise RootError(f"{self._root.name}: a reference to nothing")
            part = data[self._offset : self._offset + size - len(data_read)]
            data_read += part
            self._offset += len(part)
            if len(data_read) == size:
                return data_read
            self._place, self._offset = following, 0


class _Content:
    """Reads a file's bytes by offset, and the lengths of its blocks as far as they are needed."""

    def __init__(self, root: SquashRoot, inode: Inode) -> None:
        self._root = root
        self._inode = inode
        self._cursor = _Cursor(root, inode.lengths[0], inode.lengths[1])
        self._places = [inode.start]  # of the blocks, and of the one that follows
        self._lengths: list[int] = []
        tail = inode.fragment == NO_FRAGMENT and inode.size % root.block > 0
        self._blocks = inode.size // root.block + tail

    def pread(self, size: int, at: int) -> bytes:
        size = max(0, min(size, self._inode.size - at))
        data = bytearray()
        while len(data) < size:
            number, offset = divmod(at + len(data), self._root.block)
            room = min(self._root.block, self._inode.size - number * self._root.block)
            part = self._block(number, room)[offset : offset + size - len(data)]
            self._root.budget.take(unpacked=len(part))
            data += part
        return bytes(data)

    def _block(self, number: int, length: int) -> bytes:
        """Read a block, whose `length` follows from the file's size."""
        if number >= self._blocks:
            data = self._root.fragment(self._inode.fragment)
            data = data[self._inode.offset : self._inode.offset + length]
        else:
            self._reach(number)
            length_field = self._lengths[number]
            data = (
                self._root.data(self._places[number], length_field)
                if length_field
                else bytes(length)
            )
        if len(data) != length:
            raise RootError(f"{self._root.name}: a block of {len(data)} bytes, not {length}")
        return data

    def _reach(self, number: int) -> None:
        if number > MAX_BLOCKS:
            raise RootError(f"{self._root.name}: a file of {self._inode.size} bytes")
        while len(self._lengths) <= number:
            self._root.budget.take(unpacked=LENGTH_COST)
            (length,) = struct.unpack("<I", self._cursor.take(4))
            self._lengths.append(length)
            self._places.append(self._places[-1] + (length & DATA_LENGTH))


class _BlockCache(Generic[T]):
    """A cache of the blocks that were used last."""

    def __init__(self, most: int, make: Callable[[int, int], T]) -> None:
        self._most = most
        self._make = make
        self._blocks: OrderedDict[tuple[int, int], T] = OrderedDict()

    def at(self, key: tuple[int, int]) -> T:
        if key in self._blocks:
            self._blocks.move_to_end(key)
            return self._blocks[key]
        block = self._blocks[key] = self._make(*key)
        if len(self._blocks) > self._most:
            self._blocks.popitem(last=False)
        return block
