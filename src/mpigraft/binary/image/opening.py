"""Open a guest's file system for reading: by content, unprivileged, offline, unrun."""

from __future__ import annotations

from pathlib import Path

from mpigraft.binary.image.folder import FolderRoot
from mpigraft.binary.image.oci import open_image
from mpigraft.binary.image.root import Root
from mpigraft.binary.image.sif import is_sif, open_sif
from mpigraft.binary.image.squashfs import SQUASHFS, open_squashfs
from mpigraft.binary.image.streams import File
from mpigraft.core.errors import UsageError


def open_root(path: Path, architecture: str = "") -> Root:
    """Open a folder, a SIF, a squashfs file, or an archive of podman or docker.

    Content decides on the kind, not the name. Of an archive with images for several machines it
    takes the one for `architecture` (as `uname -m`), else for this machine.
    Raises UsageError where no file system is found, RootError when it is broken or hostile,
    MissingError when a Python module that reads it is missing.
    """
    if path.is_dir():
        return FolderRoot(path)
    try:
        head = File.open(path).pread(512, 0)
    except FileNotFoundError as error:
        raise UsageError.of("image-absent", path=path) from error
    except (OSError, ValueError) as error:
        raise UsageError.of(
            "image-unreadable", path=path, reason=getattr(error, "strerror", error)
        ) from error
    if is_sif(head):
        return open_sif(path)
    if head.startswith(SQUASHFS):
        return open_squashfs(path)
    if head[257:262] == b"ustar" or head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return open_image(path, architecture)
    raise UsageError.of("image-kind-unknown", path=path)
