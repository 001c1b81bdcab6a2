"""Files for people, written whole or not at all: a reader never meets half of one."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

MOST_LINKS = 40  # on the way to a file, as in the kernel
BEGUN = ".mpigraft-"  # begins the name of a file that is not whole
ABANDONED_S = 86400  # of what a killed process left


def write_whole(
    path: Path,
    data: bytes,
    mode: int | None = None,
    *,
    links: bool = True,
    first: bool = False,
    durable: bool = True,
) -> None:
    """Write a file with rights `mode`; without it those that it has, or that the umask leaves.

    A link is followed, so that the file it points at changes, but for one that another user put
    into a folder where all may write (/tmp). Without `links` the file takes the place of a link,
    a device or a pipe; with `first` what is there stays: of processes on several nodes that write
    at once one is first, and all read the same. What is lost with the power is not `durable`.
    Raises OSError.
    """
    with writing_whole(path, mode, links=links, first=first, durable=durable) as file:
        file.write(data)


@contextlib.contextmanager
def writing_whole(
    path: Path,
    mode: int | None = None,
    *,
    links: bool = True,
    first: bool = False,
    durable: bool = True,
) -> Iterator[IO[bytes]]:
    """Give a file to write, which takes the place of `path` at the end, as in `write_whole`. A
    device or a pipe (/dev/stdout) is written to, and stays what it is."""
    target = follow_links(path) if links else path
    if links and is_stream(path):
        with path.open("wb") as file:
            yield file
        return
    if mode is None:
        mode = _rights(target)
    handle, fresh = _nameless(target.parent)
    named = fresh.exists()
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            os.fchmod(file.fileno(), mode)
            if not named:
                with contextlib.suppress(FileExistsError):
                    _name(file.fileno(), target)
                    return
                if first:
                    return
                _name(file.fileno(), fresh)
        if first:
            # A link is made or is not on every file system that nodes share. O_EXCL would leave a
            # file that another node reads before it is written.
            with contextlib.suppress(FileExistsError):  # also where NFS lost the answer (open(2))
                target.hardlink_to(fresh)
        else:
            fresh.replace(target)
    finally:
        fresh.unlink(missing_ok=True)


def _name(number: int, path: Path) -> None:
    """Give an open file without a name one that no other has."""
    # Given as src_dir_fd, links are followed.
    os.link(f"/proc/self/fd/{number}", path, src_dir_fd=number, follow_symlinks=True)


def _nameless(folder: Path) -> tuple[int, Path]:
    """Open a new file in a folder, and give the name that it may have there. Where the file
    system can, it has none until it is whole: nothing is left of it if its writer is killed."""
    name = folder / f"{BEGUN}{os.getpid()}-{secrets.token_hex(4)}"
    with contextlib.suppress(OSError):
        if Path("/proc/self/fd").is_dir():
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600), name
    remove_abandoned(folder, f"{BEGUN}*")
    return os.open(name, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600), name


def remove_abandoned(folder: Path, names: str) -> None:
    """Remove the files of this user that killed processes left, where no process leaves any that
    it can help. By age, not by process id: they may be on other nodes."""
    for path in folder.glob(names):
        with contextlib.suppress(OSError):
            status = path.lstat()
            old = time.time() - status.st_mtime > ABANDONED_S
            if old and status.st_uid == os.geteuid() and stat.S_ISREG(status.st_mode):
                path.unlink()


def _rights(target: Path) -> int:
    """Give the rights of the file that is replaced, if it is this user's; others than the owner
    and the group never get the right to write."""
    with contextlib.suppress(OSError):
        status = target.stat()
        if status.st_uid == os.geteuid():
            return stat.S_IMODE(status.st_mode) & 0o777
    return 0o664 & ~process_umask()


def make_folder(folder: Path, mode: int = 0o775) -> None:
    """Make a folder and what is missing above it, less what the umask takes. Not even an umask of
    000 lets all users write there: files of these folders are loaded and started later. Raises
    OSError."""
    for one in (*reversed(folder.parents), folder):
        if not one.is_dir():
            one.mkdir(mode, exist_ok=True)


def follow_links(path: Path) -> Path:
    """Give the path that `path` leads to, without links. Raises PermissionError for a link, pipe
    or socket of another user in a folder where all may write, and OSError for too many links.

    Source: the kernel's sysctls fs.protected_symlinks and fs.protected_fifos, by whose rule the
    owner is this user or the folder's owner. A machine may have them off.
    """
    parts = list(path.absolute().parts[1:])
    place, links = Path("/"), 0
    while parts:
        part = parts.pop(0)
        one = place.parent if part == ".." else place / part
        with contextlib.suppress(FileNotFoundError, NotADirectoryError):
            status = one.lstat()
            if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
                place = one
                continue
            folder = place.stat()
            shared = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
            if shared and status.st_uid not in (os.geteuid(), folder.st_uid):
                raise PermissionError(errno.EACCES, f"{one} is another user's, in a shared folder")
            if stat.S_ISLNK(status.st_mode) and not _is_open_file(one):
                if (links := links + 1) > MOST_LINKS:
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
                target = one.readlink()
                parts[:0] = target.parts[1:] if target.is_absolute() else target.parts
                place = Path("/") if target.is_absolute() else place
                continue
        place = one
    return place


def _is_open_file(path: Path) -> bool:
    """Return whether a link of /proc is a process's open file, and names nothing."""
    return path.parts[1:2] == ("proc",) and path.parent.name == "fd"


def is_stream(path: Path) -> bool:
    """Return whether something is there that bytes go through, or a link to what a process has
    open."""
    open_file = path.is_symlink() and path.parts[1:2] in (("dev",), ("proc",))
    return path.exists() and (open_file or not (path.is_file() or path.is_dir()))


def process_umask() -> int:
    """Give the umask of this process, which files that it makes have."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
