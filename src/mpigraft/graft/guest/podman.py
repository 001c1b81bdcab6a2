"""Save an image of podman's storage as an archive in the cache."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
from pathlib import Path

from mpigraft.core import cache
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.process import run_command
from mpigraft.core.write import make_folder, remove_abandoned

ASK_LIMIT_S = 60.0
SAVE_LIMIT_S = 3600.0
ID = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


def saved(image: str) -> tuple[Path, str]:
    """Save an image: (archive, id). The id is podman's: a SHA-256, hex.

    Raises MissingError without podman or disk space, UsageError for an unknown image.
    """
    if not image or image.startswith("-"):
        raise UsageError.of("podman-name-invalid", image=image)
    podman = shutil.which("podman")
    if podman is None:
        raise MissingError.of("podman-missing", image=image)
    done = run_command(
        [podman, "image", "inspect", "--format", "{{.Id}}", image], limit_s=ASK_LIMIT_S
    )
    match = ID.fullmatch(done.stdout.decode("utf-8", "replace").strip())
    if not done.ok or match is None:
        raise UsageError.of(
            "podman-no-image", image=image, output=done.stderr.decode("utf-8", "replace").strip()
        )
    archive = cache.folders().cache / "podman" / f"{match[1]}.tar"
    if not archive.is_file():
        _save(podman, image, archive)
    return archive, match[1]


def _save(podman: str, image: str, archive: Path) -> None:
    """Save an archive whole or not at all: podman leaves partial files. The docker form has no
    compression: an image of 390 MB was examined in 8 s instead of 39 s."""
    try:
        make_folder(archive.parent, 0o700)
        remove_abandoned(archive.parent, "*.part")
        part = archive.with_suffix(f".{os.getpid()}.part")
        form = ("--quiet", "--format", "docker-archive")
        words = [podman, "save", *form, "--output", str(part), image]
        done = run_command(words, limit_s=SAVE_LIMIT_S)
        if done.ok:
            part.replace(archive)
            return
        with contextlib.suppress(OSError):
            part.unlink()
    except OSError as error:
        raise MissingError.of(
            "image-cache-unwritable", path=archive, reason=error.strerror
        ) from error
    raise MissingError.of(
        "podman-save-failed", image=image, output=done.stderr.decode(errors="replace")
    )
