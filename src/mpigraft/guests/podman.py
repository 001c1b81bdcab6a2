"""An image of podman's storage as an archive in the cache."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from mpigraft import cache
from mpigraft.errors import MissingError, UsageError
from mpigraft.run import run

ASK_LIMIT_S = 60.0
SAVE_LIMIT_S = 3600.0
ID = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


def saved(image: str) -> tuple[Path, str]:
    """(archive, id) of an image. The id is podman's: a SHA-256, hex.

    Raises MissingError without podman or without room, UsageError for an image that it has not.
    """
    if not image or image.startswith("-"):
        raise UsageError(f"podman:{image}: not the name of an image")
    podman = shutil.which("podman")
    if podman is None:
        raise MissingError(
            "podman is not in PATH",
            why=f"podman:{image} is an image in its storage",
            mend="save it where podman is (`podman save`), and give the archive",
        )
    said = run([podman, "image", "inspect", "--format", "{{.Id}}", image], limit_s=ASK_LIMIT_S)
    found = ID.fullmatch(said.stdout.decode("utf-8", "replace").strip())
    if not said.ok or found is None:
        raise UsageError(
            f"podman has no image {image!r}: {said.stderr.decode('utf-8', 'replace').strip()}",
            mend="`podman images` lists those it has; for another user's, save it there",
        )
    archive = cache.folders().cache / "podman" / f"{found[1]}.tar"
    if not archive.is_file():
        _save(podman, image, archive)
    return archive, found[1]


def _save(podman: str, image: str, archive: Path) -> None:
    """Whole or not at all: podman would leave a part of it behind. Of the two forms the one
    without compression: an image of 390 MB was examined after 8 s instead of 39 s."""
    try:
        archive.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = archive.with_suffix(f".{os.getpid()}.part")
        words = [
            podman,
            "save",
            "--quiet",
            "--format",
            "docker-archive",
            "--output",
            str(part),
            image,
        ]
        done = run(words, limit_s=SAVE_LIMIT_S)
        if done.ok:
            part.replace(archive)
            return
        with contextlib.suppress(OSError):
            part.unlink()
    except OSError as error:
        raise MissingError(f"{archive}: {error.strerror}", mend="set MPIGRAFT_HOME") from error
    raise MissingError(f"podman could not save {image}: {done.stderr.decode(errors='replace')}")
