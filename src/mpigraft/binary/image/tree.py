"""A root that is assembled in memory from the layers of an image.

It holds only names, and the offsets of file contents. Order and meaning of whiteouts are those
of the OCI image specification 1.1, "Image Layer Filesystem Changeset". A member whose parent is
a link is put where the link leads inside the root, as containerd, umoci and Apptainer do.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from mpigraft.binary.elf.reader import Elf
from mpigraft.binary.elf.tables import ElfError
from mpigraft.binary.image.root import (
    MAX_NAMES,
    BaseRoot,
    ImageConfig,
    Link,
    Pread,
    RootEntry,
    RootError,
    join,
)

WHITEOUT, OPAQUE = ".wh.", ".wh..wh..opq"
MAX_DEPTH = 256  # folders within folders
MAX_WEIGHT = 1 << 29  # characters of all paths of folders


class LayerMember(NamedTuple):
    """A member of a layer."""

    path: str  # relative, without "." and ".."; empty for the top itself
    kind: str  # "file", "folder", "link", "hard", "other"
    size: int
    mode: int
    target: str  # of links; of a hard one as `path`
    offset: int  # where its bytes start in what the layer kept; -1: not kept


@dataclass(frozen=True, slots=True)
class TreeNode:
    """The file of a name. All names of one file have one node."""

    row: LayerMember
    number: int
    pread: Pread  # of the layer


class TreeRoot(BaseRoot):
    """An image's file system, layer by layer: `add` the lowest first."""

    def __init__(self, name: str, config: ImageConfig) -> None:
        super().__init__()
        self.name = name
        self._config = config
        self._tree: dict[str, dict[str, TreeNode]] = {"/": {}}  # canonical folder: what is in it
        self._entered: dict[str, str] = {}  # folder as a layer has it: canonical
        self._count = self._weight = 0

    def config(self) -> ImageConfig:
        return self._config

    def entry_in(self, folder: str, name: str) -> RootEntry | Link | None:
        node = self._tree.get(folder, {}).get(name)
        if node is None:
            return None
        row = node.row
        if row.kind == "link":
            return Link(row.target)
        return RootEntry(join(folder, name), row.kind, row.size, row.mode, (0, node.number))

    def _list(self, folder: str) -> list[str]:
        return list(self._tree.get(folder, ()))

    @contextmanager
    def _opened(self, entry: RootEntry) -> Iterator[Pread]:
        node = self._node(entry)
        start, size = node.row.offset, node.row.size
        if start < 0:
            raise RootError(f"{self.name}: {entry.path}: its contents were not kept")
        yield lambda count, at: node.pread(max(0, min(count, size - at)), start + at)

    def _parsed(self, entry: RootEntry) -> Elf | ElfError:
        if self._node(entry).row.offset < 0:  # every ELF file that a loader takes is kept
            return ElfError(f"{entry.path}: not an ELF file")
        return super()._parsed(entry)

    def _node(self, entry: RootEntry) -> TreeNode:
        folder, _, name = entry.path.rpartition("/")
        return self._tree[folder or "/"][name]

    def add(self, rows: Sequence[LayerMember], pread: Pread) -> None:
        """Add a layer over the others. Raises RootError when it is malformed or too large."""
        self._entries.clear()
        self._entered.clear()
        for row in rows:  # whiteouts act on lower layers, wherever they are in this one
            folder, _, name = row.path.rpartition("/")
            if name.startswith(WHITEOUT):
                self._white_out(folder, name)
        for row in rows:
            folder, _, name = row.path.rpartition("/")
            if name and not name.startswith(WHITEOUT):
                node = self._linked(row) if row.kind == "hard" else self._new(row, pread)
                self._put(self._enter(folder), name, node)
        self._entries.clear()

    def _white_out(self, folder: str, name: str) -> None:
        place = self._walk("/", folder.split("/"))
        if place is None or place.kind != "folder":
            return
        if name == OPAQUE:
            for below in self._list(place.path):
                self._remove(place.path, below)
        else:
            self._remove(place.path, name.removeprefix(WHITEOUT))

    def _new(self, row: LayerMember, pread: Pread) -> TreeNode:
        self._count += 1
        if self._count > MAX_NAMES:
            raise RootError(f"{self.name}: more than {MAX_NAMES} names")
        return TreeNode(row, self._count, pread)

    def _linked(self, row: LayerMember) -> TreeNode:
        """Find the node that a hard link names; a link at its end is not followed."""
        folder, _, name = row.target.rpartition("/")
        place = self._walk("/", folder.split("/"))
        node = self._tree.get(place.path, {}).get(name) if place else None
        if node is None or node.row.kind == "folder":
            raise RootError(f"{self.name}: {row.path}: a hard link to {row.target}: no such file")
        self._count += 1
        return node

    def _enter(self, folder: str) -> str:
        """Give a layer's folder as a canonical path; make it where it is missing."""
        if folder in self._entered:
            return self._entered[folder]
        if not folder:
            return "/"
        above, _, name = folder.rpartition("/")
        if folder.count("/") >= MAX_DEPTH:
            raise RootError(f"{self.name}: {folder[:80]}...: more than {MAX_DEPTH} folders deep")
        path = self._enter(above)  # cached: layers have many folders in one
        entry = self._walk(path, [name])  # through a link
        if entry is None or entry.kind != "folder":
            row = LayerMember("", "folder", 0, 0o755, "", -1)
            self._put(path, name, self._new(row, _nothing))
            path = join(path, name)
        else:
            path = entry.path
        self._entered[folder] = path
        return path

    def _put(self, folder: str, name: str, node: TreeNode) -> None:
        """Put a node: a folder over a folder keeps its entries; all else replaces."""
        old = self._tree[folder].get(name)
        is_folder = node.row.kind == "folder"
        if old and not (is_folder and old.row.kind == "folder"):
            self._remove(folder, name)
        self._tree[folder][name] = node
        if is_folder:
            path = join(folder, name)
            self._weight += len(path)
            if self._weight > MAX_WEIGHT:
                raise RootError(f"{self.name}: its folders have too long names")
            self._tree.setdefault(path, {})

    def _remove(self, folder: str, name: str) -> None:
        node = self._tree[folder].pop(name, None)
        if node is None:
            return
        if node.row.kind in ("folder", "link"):
            self._entered.clear()  # may have led through it
        rest = [join(folder, name)]
        while rest:
            path = rest.pop()
            rest += [join(path, below) for below in self._tree.pop(path, ())]


def _nothing(_size: int, _at: int) -> bytes:
    return b""
