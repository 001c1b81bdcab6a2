"""Folders whose files cannot be executed: those of file systems mounted noexec."""

from __future__ import annotations

import os
from pathlib import Path

from mpigraft.core.errors import MissingError

HOME_FIX = "set MPIGRAFT_HOME to a folder of another file system"
INSTALL_FIX = "install mpigraft on another file system"


def refuse_noexec(folder: Path, what: str, fix: str = HOME_FIX) -> None:
    """Raise MissingError where the kernel starts no program of `folder` and maps no library of it:
    ranks would end with exit code 126, or run without the library. `what` is kept there."""
    try:
        noexec = os.statvfs(folder).f_flag & os.ST_NOEXEC
    except OSError:  # whoever uses it reports that
        return
    if noexec:
        raise MissingError.of("folder-noexec", folder=folder, what=what, fix=fix)
