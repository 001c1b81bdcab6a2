"""A guest's file system, opened for reading: by content, unprivileged, offline, nothing is run."""

from __future__ import annotations

from pathlib import Path

from mpigraft.errors import UsageError
from mpigraft.roots import Entry, ImageConfig, Link, Root, RootError
from mpigraft.roots.bound import Bound
from mpigraft.roots.folder import FolderRoot
from mpigraft.roots.oci import open_image
from mpigraft.roots.over import Over
from mpigraft.roots.sif import is_sif, open_sif
from mpigraft.roots.squashfs import SQUASHFS, open_squashfs
from mpigraft.roots.streams import File

__all__ = [
    "Bound",
    "Entry",
    "FolderRoot",
    "ImageConfig",
    "Link",
    "Over",
    "Root",
    "RootError",
    "open_root",
]


def open_root(path: Path, architecture: str = "") -> Root:
    """A folder, a SIF, a squashfs file, or what podman and docker save (OCI's form or theirs).

    What it is decides its content, not its name. Of an archive with images for several machines
    `architecture` (as `uname -m`) is taken, else this machine's.
    UsageError where there is nothing that can be a root; RootError when it is broken or hostile;
    MissingError when something that is needed to read it is not here.
    """
    if path.is_dir():
        return FolderRoot(path)
    try:
        head = File.open(path).pread(512, 0)
    except (OSError, ValueError) as error:
        raise UsageError(
            f"{path}: {getattr(error, 'strerror', error)}",
            mend="give the path of a folder or of an image file",
        ) from error
    if is_sif(head):
        return open_sif(path)
    if head.startswith(SQUASHFS):
        return open_squashfs(path)
    if head[257:262] == b"ustar" or head.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")):
        return open_image(path, architecture)
    raise UsageError(
        f"{path}: neither a folder nor an image (SIF, squashfs, OCI archive, docker save)",
        mend="unpack it and give the folder",
    )
