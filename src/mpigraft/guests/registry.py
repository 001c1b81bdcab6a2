"""Images that are named and not files: of a registry, of docker's storage, or of an archive that a
person names as podman does. The engine that is here fetches or converts them; nothing of a
registry's protocol is spoken here, and credentials stay where the engine keeps them.

What is fetched from a registry is asked for anew only with a new name or digest, or when the file
in the cache is removed: a job starts the image that was checked.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from mpigraft import cache
from mpigraft.errors import MissingError, UsageError
from mpigraft.run import run

REMOTE = ("docker://", "oras://", "library://", "shub://")  # podman pulls the first alone
LOCAL = ("docker-daemon:",)
ARCHIVES = ("docker-archive:", "oci-archive:", "oci:", "dir:")
PULL_LIMIT_S, ASK_LIMIT_S = 7200.0, 60.0
APPTAINER = ("apptainer", "singularity")
# A name and a password before a registry's host; a digest, NAME@sha256:..., is none.
USER_INFO = re.compile(r"(?<![^\s/\"'])[^/@\s\"']+@(?!sha\d+:)")
MOST_SHOWN = 300  # characters of an engine's last line


def is_name(spec: str) -> bool:
    """Whether a guest is named so that only an engine knows it; podman:NAME is not one of them."""
    return spec.startswith((*REMOTE, *LOCAL))


def plain_path(spec: str) -> str:
    """The path in `docker-archive:PATH[:TAG]` or `oci-archive:PATH[:TAG]`; other words as they
    are."""
    for prefix in ARCHIVES[:2]:
        if spec.startswith(prefix):
            path = spec.removeprefix(prefix).removeprefix("//")
            whole, _, tag = path.rpartition(":")
            return whole if whole and not Path(path).exists() and "/" not in tag else path
    return spec


def fetched(spec: str) -> str:
    """The image of this name as a guest that is here: a SIF made by Apptainer, else podman:NAME.

    Raises UsageError for what is no name, MissingError where no engine is here that can fetch it,
    or where the engine could not, with its own last line.
    """
    name = spec.partition(":")[2].removeprefix("//")
    if USER_INFO.match(name):
        raise UsageError(
            f"{shown(spec)}: a name of an image holds no user and no password",
            why="it is kept in the shell's history, and seen by all in the list of processes",
            mend="log in with the engine: `apptainer registry login`, or `podman login`",
        )
    if not name or name.startswith(("-", "/")) or any(c.isspace() or c == "\0" for c in name):
        raise UsageError(
            f"{shown(spec)}: not the name of an image", mend="for example docker://debian:12"
        )
    apptainer = next(filter(None, map(shutil.which, APPTAINER)), None)
    if apptainer:
        return str(_by_apptainer(apptainer, spec))
    if spec.startswith("docker://") and (program := shutil.which("podman")):
        if not run([program, "image", "exists", name], limit_s=ASK_LIMIT_S).ok:
            _pull(program, spec)
        return f"podman:{name}"
    needed = "Apptainer or podman" if spec.startswith("docker://") else "Apptainer"
    raise MissingError(
        f"nothing here can fetch {shown(spec)}: no {' and no '.join(APPTAINER)}"
        + (" and no podman" if spec.startswith("docker://") else "")
        + " in PATH",
        why="images that are named are fetched and converted by a container engine",
        mend=f"load or install {needed} (Debian's packages: apptainer, podman); or fetch it where "
        "one is, and give the file",
    )


def _by_apptainer(program: str, spec: str) -> Path:
    kept = hashlib.sha256(spec.encode()).hexdigest()[:32]
    image = cache.folders().cache / "images" / f"{kept}.sif"
    if image.is_file():
        return image
    part = image.with_suffix(f".{os.getpid()}.part")
    try:
        image.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        words = [program, "--silent", "build", *_insecure(spec), str(part), spec]
        done = run(words, env=dict(os.environ), limit_s=PULL_LIMIT_S)
        if not done.ok or not part.is_file():
            raise _failed(program, spec, done.stderr + done.stdout)
        part.replace(image)
    except OSError as error:
        raise MissingError(f"{image}: {error.strerror}", mend="set MPIGRAFT_HOME") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink()
    return image


def _insecure(spec: str) -> Sequence[str]:
    """A registry of this machine itself mostly speaks without TLS; podman's own configuration
    says so of others, Apptainer has no such file."""
    host = spec.partition("://")[2].partition("/")[0].rpartition(":")[0]
    return ("--no-https",) if host in ("localhost", "127.0.0.1", "[::1]") else ()


def _pull(program: str, spec: str) -> None:
    words = [program, "pull", "--quiet", spec]
    done = run(words, env=dict(os.environ), limit_s=PULL_LIMIT_S)
    if not done.ok:
        raise _failed(program, spec, done.stderr + done.stdout)


def _failed(program: str, spec: str, output: bytes) -> MissingError:
    """With the engine's own last line, in which no password of an address stays."""
    lines = [line.strip() for line in output.decode("utf-8", "replace").splitlines()]
    last = next((line for line in reversed(lines) if line), "it said nothing")
    return MissingError(
        f"{Path(program).name} could not fetch {shown(spec)}",
        why=f"it says: {shown(last)[-MOST_SHOWN:]}",
        mend="where the registry cannot be reached, fetch it elsewhere and give the file; for an "
        "image that is not public, log in with the engine first (`apptainer registry login`, "
        "`podman login`)",
    )


def shown(text: str) -> str:
    """Without a user's name and password in an address, and what a terminal takes for commands."""
    return "".join(c if c.isprintable() else "?" for c in USER_INFO.sub("", text))
