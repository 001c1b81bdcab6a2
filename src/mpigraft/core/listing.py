"""Names in a folder that other nodes write to."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def refresh_listing(folder: Path) -> None:
    """Have the next listing of `folder` show what other nodes made in it until now.

    A client of NFS keeps the names in a folder for up to a minute (nfs(5), acdirmax). It reads them
    anew when it sees that the folder changed under it, which the answer to a change of its own
    tells.
    """
    with contextlib.suppress(OSError):
        name = folder / f".look-{os.getpid()}"
        name.unlink(missing_ok=True)  # of a process that was killed
        handle = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        os.close(handle)
        name.unlink()
