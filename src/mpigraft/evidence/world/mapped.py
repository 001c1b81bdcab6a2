"""Which of the files that a rank has mapped is the MPI, and whether it is the one that was due."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache

from mpigraft.binary import ElfError, read_elf
from mpigraft.core.cache import file_digest
from mpigraft.core.fingerprint import boot_id
from mpigraft.core.model import MappedLibrary

# The library itself, of any family: libmpi.so.40, libmpi_abi.so.1, libmpich.so.12,
# libmpi_gnu_123.so.12; not libmpi_mpifh, libmpi_gtl_cuda, libmpicxx, libmpifort.
LIBMPI = re.compile(
    r"lib(?:mpi|mpich|mpi_abi|mpi_ilp64|mpi_(?:cray|gnu|intel|nvidia|amd|aocc)(?:_\d+)?)"
    r"\.so(?:\.[\d.]+)?"
)


def file_contents(path: str) -> tuple[str, ...]:
    """Name a file's content in each way in which a rank may (native/witness/contents.c); nothing
    where it cannot be read."""
    try:
        status = os.stat(path)  # noqa: PTH116
        return _contents(path, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
    except OSError:
        return ()


@lru_cache(maxsize=256)
def _contents(path: str, device: int, inode: int, size: int, time: int) -> tuple[str, ...]:
    del device, inode, time  # of the key
    digest = f"sha256:{file_digest(path)}"
    try:
        build_id = read_elf(path).build_id
    except ElfError:
        return (digest,)
    return (f"{build_id}/{size}", digest) if build_id else (digest,)


@dataclass(frozen=True, slots=True)
class DueLibrary:
    """A file of this machine that ranks must map. Inode 0: only its path is known, since a file of
    an image has the numbers of the file system that the engine makes of it."""

    path: str
    device: int
    inode: int
    elsewhere: tuple[str, ...] = ()  # its paths where the loader takes another file for the CPU

    @property
    def contents(self) -> tuple[str, ...]:
        return file_contents(self.path) if self.inode else ()

    def is_mapped(self, library: MappedLibrary, boot: str) -> bool:
        """Return whether a rank under the kernel `boot` has mapped it. Under this kernel device and
        inode tell; else, and of a copy, the content does. A path tells nothing: each node may have
        another build there, and one file server another path on each."""
        if not self.inode:
            return library.path in (self.path, *self.elsewhere)
        if boot in ("", boot_id()):
            if (library.device, library.inode) == (self.device, self.inode):
                return True
            return content_here(library) in self.contents
        return library.content in self.contents


def content_here(library: MappedLibrary) -> str:
    """Return the content of what a rank under this kernel mapped. It is read where no rank did so
    and the path leads here to the same file; else empty."""
    if library.content:
        return library.content
    try:
        status = os.stat(library.path)  # noqa: PTH116
    except OSError:
        return ""
    same = (status.st_dev, status.st_ino) == (library.device, library.inode)
    return next(iter(file_contents(library.path)), "") if same else ""


def identity_of(library: MappedLibrary, boot: str) -> str:
    """Name what was mapped: its content, else the file of that kernel."""
    return library.content or f"{boot} {library.device} {library.inode}"
