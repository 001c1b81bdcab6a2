"""A guest's file system, opened for reading: a folder, SIF, squashfs, OCI or docker archive.

Takes a path; makes a `Root` that reads by content. Unprivileged and offline; runs nothing, and
writes only the cache of unpacked layers.
"""

from __future__ import annotations

from mpigraft.core.doors import exports

TYPE_CHECKING = False
if TYPE_CHECKING:
    from mpigraft.binary.image.bound import BoundRoot as BoundRoot
    from mpigraft.binary.image.folder import FolderRoot as FolderRoot
    from mpigraft.binary.image.masked import MaskedRoot as MaskedRoot
    from mpigraft.binary.image.opening import open_root as open_root
    from mpigraft.binary.image.over import OverlayRoot as OverlayRoot
    from mpigraft.binary.image.root import Entry as Entry
    from mpigraft.binary.image.root import Link as Link
    from mpigraft.binary.image.root import Root as Root
    from mpigraft.binary.image.root import RootError as RootError
    from mpigraft.binary.image.root import host_path as host_path
    from mpigraft.binary.image.squashfs import SquashRoot as SquashRoot
else:
    __getattr__ = exports(__name__)
