"""The file system of a folder: whether other hosts share it, and how much room it has."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

from mpigraft.core.shared_memory import MIB

SAMPLE = bytes(MIB)  # more than a quota that is used up leaves
# Types of file systems whose files several hosts have, as mountinfo names them.
OF_NETWORK = re.compile(
    r"nfs4?|lustre|gpfs|beegfs|ceph|glusterfs|cifs|smb3?|afs|panfs|wekafs|pvfs2|gfs2|ocfs2|daos"
    r"|9p|fuse\..*(ceph|gluster|lustre|nfs|beegfs|weka|daos|juicefs|sshfs|cvmfs).*"
)
MOUNTS = Path("/proc/self/mountinfo")


def shared_type(folder: Path, mounts: Path = MOUNTS) -> str:
    """Give the type of the file system of a folder if other hosts may have it too, by the kernel's
    list of mounts (proc(5), mountinfo); empty for one of this host's alone."""
    kind, longest = "", 0
    for line in mounts.read_text(errors="surrogateescape").splitlines():
        mount, _, source = line.partition(" - ")
        place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), mount.split(" ")[4])
        if folder.is_relative_to(place) and len(place) >= longest:  # the last of equals is on top
            kind, longest = source.partition(" ")[0], len(place)
    return kind if OF_NETWORK.fullmatch(kind) else ""


def existing(folder: Path) -> Path:
    """Give the folder, or the nearest one above it that exists: where it would be made."""
    return next(place for place in (folder, *folder.parents) if os.path.lexists(place))


def free_mib(folder: Path) -> int:
    """Give the room that this user has in a folder, after a file was written to it: quotas and
    rights are known by that alone. Raises OSError."""
    place = existing(folder)
    with tempfile.TemporaryFile(dir=place) as file:
        file.write(SAMPLE)
        file.flush()
        room = os.statvfs(place)
    return room.f_bavail * room.f_frsize // MIB
