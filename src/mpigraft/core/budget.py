"""What reading one file may cost, counted as it is read.

A small file can claim to be large: packed zeros, holes, folders that share one list. A reader has
one budget for each file that it opens, and takes from it before it makes anything. What a file may
cost grows with its size, so that no honest file of any size is refused. Counts end a reader at the
same place on every machine; a limit of time would not.
"""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

from mpigraft.core.errors import UsageError

BYTES, BYTES_PER_BYTE = 1 << 26, 1 << 8  # unpacked, of any file and for each of its bytes
ITEMS, BYTES_PER_ITEM = 1 << 16, 4  # names and the like: packed, each takes more than this
MOST_ITEMS = 1 << 21  # the largest images have a million or so


class Budget:
    """The budget of the file at `path`, which has `size` bytes. An item of it takes `per_item`."""

    __slots__ = ("_bytes", "_items", "_left", "_path", "_room", "_size")

    def __init__(self, path: str | Path, size: int, per_item: int = BYTES_PER_ITEM) -> None:
        self._path, self._size = path, size
        self._room = self._bytes = BYTES + size * BYTES_PER_BYTE
        self._left = self._items = min(ITEMS + size // per_item, MOST_ITEMS)

    def take(self, *, unpacked: int = 0, items: int = 0) -> None:
        """Take from it. Raises UsageError, which names the file, where less is left."""
        self._room -= unpacked
        self._left -= items
        if self._room < 0:
            self.refuse(f"more than {self._bytes:,} bytes when it is unpacked")
        if self._left < 0:
            self.refuse(f"more than {self._items:,} entries")

    def refuse(self, claim: str) -> NoReturn:
        """Raise the error for a file that has `claim`."""
        raise UsageError.of("file-over-budget", path=self._path, size=self._size, claim=claim)
