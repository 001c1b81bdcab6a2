"""Unpack mpigraft.pyz once into the user's cache, and start mpigraft from there.

Compiled modules and programs cannot run inside a zip. What one Python on one architecture needs is
unpacked into a folder that is named by a digest of its content: versions and Pythons do not
overwrite each other, and a start that finds the folder reads nothing else of the archive.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

from contents import DIGESTS, GLIBC  # type: ignore[import-not-found,unused-ignore]

ARCHIVE = os.path.dirname(__file__)  # pathlib takes 5 ms to import
PAYLOAD = "payload.zip"
PROGRAM = "bin/patchelf"  # of every folder; access(2) refuses it on a noexec mount
ABANDONED_S = 3600  # a folder in the making that is older was left by a process that was killed


def fail(message: str, fix: str) -> NoReturn:
    """Print what is wrong and what to do; end with the exit code for something missing."""
    sys.stderr.write(f"mpigraft: {message}\nwhat to do: {fix}\n")
    sys.exit(3)


def cache_folder() -> str:
    """Return the same folder as mpigraft.core.cache, which is not unpacked yet."""
    if home := os.environ.get("MPIGRAFT_HOME"):
        return os.path.join(os.path.abspath(home), "cache")
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not base.startswith("/"):
        base = os.path.expanduser("~/.cache")
    if not base.startswith("/"):
        fail("this user has no home folder", "set MPIGRAFT_HOME to a folder that you may write")
    return f"{base}/mpigraft"


def start() -> None:
    """Run mpigraft's command from its folder; unpack the folder where it does not exist."""
    version, machine = sys.version_info, os.uname().machine
    tag = f"{sys.implementation.name}{version[0]}{version[1]}{sys.abiflags}-{machine}"
    if tag not in DIGESTS:
        fail(
            f"{ARCHIVE} has no compiled packages for {tag}",
            f"start it with one of: {', '.join(DIGESTS)}; or install mpigraft with pip",
        )
    folder = f"{cache_folder()}/pyz/{DIGESTS[tag]}"
    if not os.access(f"{folder}/{PROGRAM}", os.X_OK):
        prepare(tag, folder)
    sys.path[0] = folder  # in place of the archive
    from mpigraft.cli.entry import main

    main()


def prepare(tag: str, folder: str) -> None:
    """Make `folder` whole and usable, or end with the reason."""
    fix = "set MPIGRAFT_HOME to a folder of yours that is writable and not mounted noexec"
    if not is_glibc():
        fail(
            f"the compiled packages in {ARCHIVE} need glibc {GLIBC[0]}.{GLIBC[1]} or newer",
            "use a newer system or a container (docs/howto/install.md)",
        )
    try:
        above = os.path.dirname(folder)
        os.makedirs(above, 0o700, exist_ok=True)
        if os.statvfs(above).f_flag & os.ST_NOEXEC:
            fail(f"{above} is on a file system that is mounted noexec", fix)
        if not os.path.isdir(folder):
            unpack(tag, folder)
    except OSError as error:
        fail(f"cannot unpack into {folder}: {error.strerror or error}", fix)
    if not os.access(f"{folder}/{PROGRAM}", os.X_OK):
        fail(f"{folder} is not whole any more", f"remove it (rm -r '{folder}') and start again")


def is_glibc() -> bool:
    """Tell whether this libc is a glibc that the compiled packages load on."""
    try:
        name, _, number = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        return name == "glibc" and tuple(map(int, number.split("."))) >= GLIBC
    except (OSError, ValueError):  # musl
        return False


def unpack(tag: str, folder: str) -> None:
    """Unpack beside `folder` and rename, so that it appears whole; another process may be first."""
    import json
    import shutil
    import tempfile
    import time
    import zipfile
    from pathlib import Path

    target = Path(folder)
    for part in target.parent.glob(".*.part"):
        with contextlib.suppress(OSError):
            if part.stat().st_mtime < time.time() - ABANDONED_S:
                shutil.rmtree(part, ignore_errors=True)
    stage = Path(tempfile.mkdtemp(".part", f".{target.name}.", target.parent))
    try:
        with (
            zipfile.ZipFile(ARCHIVE) as outer,
            outer.open(PAYLOAD) as file,
            zipfile.ZipFile(file) as payload,
        ):
            files = json.loads(payload.read(f"{tag}.json"))
            for entry in payload.infolist():  # in their order: to seek back is slow
                for name, mode in files.get(entry.filename, ()):
                    path = stage / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(payload.read(entry))
                    path.chmod(mode)
        stage.rename(target)
    except OSError:
        if not target.is_dir():
            raise
    finally:
        shutil.rmtree(stage, ignore_errors=True)
