"""A guest's file system, opened for reading: by content, unprivileged, offline, nothing is run."""

from __future__ import annotations

from pathlib import Path

from mpigraft.errors import UsageError
from mpigraft.roots import Entry, ImageConfig, Link, Root, RootError
from mpigraft.roots.folder import FolderRoot
from mpigraft.roots.over import Over

__all__ = [
    "Entry",
    "FolderRoot",
    "ImageConfig",
    "Link",
    "Over",
    "Root",
    "RootError",
    "open_root",
]


def open_root(path: Path) -> Root:
    """A folder.

    UsageError where there is nothing that can be one; RootError when it is broken.
    """
    if not path.exists():
        raise UsageError(f"{path}: nothing is there", mend="give the path of a folder or an image")
    return FolderRoot(path)
