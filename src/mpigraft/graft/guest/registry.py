"""Fetch images by name: of a registry, of docker's storage, or of an archive in podman's syntax.

An installed engine fetches or converts them. This module implements no registry protocol, and
credentials stay with the engine. An image is fetched again only under a new name or digest, or
when its file in the cache is removed: a job starts the image that was checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mpigraft.core import cache
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.process import run_command
from mpigraft.core.text import printable
from mpigraft.core.write import make_folder, remove_abandoned


@dataclass(frozen=True, slots=True)
class Scheme:
    """Names of images that an engine fetches. `access` says what may keep it from one."""

    example: str
    access: str
    podman: bool = False  # pulls them too; Apptainer fetches all


PRIVATE = "for a private image, log in with the engine first"
SCHEMES = {
    "docker://": Scheme(
        "docker://debian:12", f"{PRIVATE} (`apptainer registry login`, `podman login`)", podman=True
    ),
    "oras://": Scheme(
        "oras://HOST/PROJECT/APP:1.0", f"{PRIVATE} (`apptainer registry login oras://HOST`)"
    ),
    # Source: Apptainer's user guide, "Library API Registries": none is set up by default.
    "library://": Scheme(
        "library://USER/COLLECTION/APP:1.0",
        "Apptainer knows no library by default: `apptainer remote list` shows yours, and "
        "`apptainer remote add --no-login NAME HOST` with `apptainer remote use NAME` adds one",
    ),
    "shub://": Scheme("shub://USER/APP", "Singularity Hub takes no new images since 2021"),
    "docker-daemon:": Scheme(
        "docker-daemon:APP:1.0", "docker has to run here and have it: `docker images` lists them"
    ),
}
ARCHIVES = ("docker-archive:", "oci-archive:", "oci:", "dir:")
PULL_LIMIT_S, ASK_LIMIT_S = 7200.0, 60.0
APPTAINER = ("apptainer", "singularity")
# A name and a password before a registry's host; a digest, NAME@sha256:..., is none.
USER_INFO = re.compile(r"(?<![^\s/\"'])[^/@\s\"']+@(?!sha\d+:)")
MOST_SHOWN = 300  # characters of an engine's last line


def is_name(spec: str) -> bool:
    """Return whether only an engine can resolve the name of a guest; podman:NAME is another
    case."""
    return _scheme(spec) is not None


def _scheme(spec: str) -> Scheme | None:
    return next((one for begin, one in SCHEMES.items() if spec.startswith(begin)), None)


def plain_path(spec: str) -> str:
    """Give the path in `docker-archive:PATH[:TAG]` or `oci-archive:PATH[:TAG]`, or the text."""
    for prefix in ARCHIVES[:2]:
        if spec.startswith(prefix):
            path = spec.removeprefix(prefix).removeprefix("//")
            whole, _, tag = path.rpartition(":")
            return whole if whole and not Path(path).exists() and "/" not in tag else path
    return spec


def fetched(spec: str) -> str:
    """Fetch the image of this name: as a SIF made by Apptainer, else as podman:NAME.

    Raises UsageError for an invalid name, MissingError where no engine can fetch it, or where the
    engine fails, with its last line.
    """
    name, scheme = spec.partition(":")[2].removeprefix("//"), _scheme(spec)
    assert scheme is not None
    if USER_INFO.match(name):
        raise UsageError.of("image-name-secret", image=shown(spec))
    if not name or name.startswith(("-", "/")) or any(c.isspace() or c == "\0" for c in name):
        raise UsageError.of("image-name-invalid", image=shown(spec), example=scheme.example)
    apptainer = next(filter(None, map(shutil.which, APPTAINER)), None)
    if apptainer:
        return str(_by_apptainer(apptainer, spec))
    if scheme.podman and (program := shutil.which("podman")):
        if not run_command([program, "image", "exists", name], limit_s=ASK_LIMIT_S).ok:
            _pull(program, spec)
        return f"podman:{name}"
    raise MissingError.of(
        "no-image-fetcher",
        image=shown(spec),
        engines=" and no ".join((*APPTAINER, *(["podman"] if scheme.podman else []))),
        needed="Apptainer or podman" if scheme.podman else "Apptainer",
    )


def _by_apptainer(program: str, spec: str) -> Path:
    key = hashlib.sha256(spec.encode()).hexdigest()[:32]
    image = cache.folders().cache / "images" / f"{key}.sif"
    if image.is_file():
        return image
    part = image.with_suffix(f".{os.getpid()}.part")
    try:
        make_folder(image.parent, 0o700)
        remove_abandoned(image.parent, "*.part")
        words = [program, "--silent", "build", *_insecure(spec), str(part), spec]
        done = run_command(words, env=dict(os.environ), limit_s=PULL_LIMIT_S)
        if not done.ok or not part.is_file():
            raise _failed(program, spec, done.stderr + done.stdout)
        part.replace(image)
    except OSError as error:
        raise MissingError.of(
            "image-cache-unwritable", path=image, reason=error.strerror
        ) from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return image


def _insecure(spec: str) -> Sequence[str]:
    """Give the option for a registry on this machine, which mostly has no TLS. podman has a
    configuration file for that, Apptainer has none."""
    host = spec.partition("://")[2].partition("/")[0].rpartition(":")[0]
    return ("--no-https",) if host in ("localhost", "127.0.0.1", "[::1]") else ()


def _pull(program: str, spec: str) -> None:
    words = [program, "pull", "--quiet", spec]
    done = run_command(words, env=dict(os.environ), limit_s=PULL_LIMIT_S)
    if not done.ok:
        raise _failed(program, spec, done.stderr + done.stdout)


def _failed(program: str, spec: str, output: bytes) -> MissingError:
    """Make the error with the engine's last line, without passwords in addresses."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines()]
    last = next((line for line in reversed(lines) if line), "no message")
    return MissingError.of(
        "image-not-fetched",
        engine=Path(program).name,
        image=shown(spec),
        output=shown(last)[-MOST_SHOWN:],
        access=scheme.access if (scheme := _scheme(spec)) else PRIVATE,
    )


def shown(text: str) -> str:
    """Strip a user's name and password in an address, and control characters."""
    return printable(USER_INFO.sub("", text))
