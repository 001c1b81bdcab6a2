"""Read a SIF, the image file of Apptainer and SingularityCE: its header and its partition.

Source: sylabs/sif, pkg/sif/sif.go, descriptor.go and arch.go (format 1, little endian, packed).
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from mpigraft.binary.image.root import ImageConfig, RootError
from mpigraft.binary.image.singularity import config_of
from mpigraft.binary.image.squashfs import SquashRoot
from mpigraft.binary.image.streams import Blob, File
from mpigraft.core.errors import UsageError

MAGIC = b"SIF_MAGIC\0"
MAGIC_AT = 32  # after a "#!" line
HEADER = struct.Struct("<32x10s3s3s32x8xqqq16x")  # magic, version, architecture, descriptors
DESCRIPTOR = struct.Struct("<i?12xqq40x128x8s376x")  # type, used, offset, size, what it is
PARTITION_IS = struct.Struct("<ii")  # file system, use
MAX_DESCRIPTORS = 1 << 12  # Apptainer makes 48
PARTITION, OCI_INDEX = 0x4004, 0x400A
SQUASHFS, ENCRYPTED = 1, 5
FILE_SYSTEMS = {2: "ext3", 3: "archive", 4: "raw", ENCRYPTED: "encrypted"}
PRIMARY, OVERLAY = 2, 4
ARCHITECTURES = {
    b"01": "i386", b"02": "x86_64", b"03": "arm", b"04": "aarch64", b"05": "ppc64",
    b"06": "ppc64le", b"07": "mips", b"11": "s390x", b"12": "riscv64",
}  # fmt: skip


class SifRoot(SquashRoot):
    """The primary partition of a SIF; its scripts give `config`."""

    def __init__(self, blob: Blob, architecture: str, unread: tuple[str, ...]) -> None:
        super().__init__(blob)
        self._architecture = architecture
        self._unread_parts = unread

    def config(self) -> ImageConfig:
        return config_of(self, self._architecture, self._unread_parts)


def is_sif(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a SIF."""
    return head[MAGIC_AT : MAGIC_AT + len(MAGIC)] == MAGIC


def open_sif(path: Path) -> SifRoot:
    """Open a SIF. Raises RootError when it is broken, UsageError for an unreadable partition."""
    file = File.open(path)
    whole = Blob(file, 0, os.fstat(file.handle).st_size, str(path))
    head = whole.pread(HEADER.size, 0)
    if len(head) < HEADER.size:
        raise RootError(f"{path}: the file ends within the header of a SIF")
    magic, version, architecture, total, place, size = HEADER.unpack(head)
    if magic != MAGIC or version[:2] != b"01":
        raise RootError(f"{path}: a SIF of version {version!r}, only 01 is known")
    if not 0 < total <= MAX_DESCRIPTORS or size < total * DESCRIPTOR.size or place < 0:
        raise RootError(f"{path}: {total} descriptors in {size} bytes at {place}")
    table = Blob(file, place, total * DESCRIPTOR.size, f"{path}: descriptors").all(size)
    primary: list[tuple[int, int, int]] = []  # file system, offset, size
    unread: list[str] = []
    oci = False
    for kind, used, offset, length, details in DESCRIPTOR.iter_unpack(table):
        if not used:
            continue
        oci = oci or kind == OCI_INDEX
        system, use = PARTITION_IS.unpack(details)
        if kind == PARTITION and use == PRIMARY:
            primary.append((system, offset, length))
        elif kind == PARTITION and use == OVERLAY:
            unread.append("an overlay partition of the SIF")
    blob = _primary(path, whole, primary, oci=oci)
    return SifRoot(blob, ARCHITECTURES.get(architecture[:2], ""), tuple(unread))


def _primary(path: Path, whole: Blob, partitions: list[tuple[int, int, int]], *, oci: bool) -> Blob:
    if oci and not partitions:
        raise UsageError.of("sif-oci", path=path)
    if len(partitions) != 1:
        raise RootError(f"{path}: {len(partitions)} primary partitions, where one should be")
    system, offset, size = partitions[0]
    if system != SQUASHFS:
        raise UsageError.of(
            "sif-file-system", path=path, file_system=FILE_SYSTEMS.get(system, system)
        )
    if offset < 0 or size < 0 or offset + size > whole.size:
        raise RootError(f"{path}: its partition goes past the end of the file")
    return Blob(whole.file, offset, size, str(path))
