"""What a job is given that launchers are known to change, and a program that shows what came."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

# ORTE obeys -tune, PRRTE rewrites --map-by, several part programs at a colon.
ODD = (
    "a", "", "b c", "n\nl", "\n", "%t%o%%", ":", "b", ":", "--map-by", "x", "-tune", "q", "-x",
    "HOME", "-n", "3", "--help", "$HOME `id`", "~", "*", "q'\"", "\\", ";", "--", "K=V", "@f",
    "{}", "é€", os.fsdecode(b"\xff\xfe"), "-", "", ":",
)  # fmt: skip
# A line of each rank, since launchers mix those of several: digest of what it reads, and its
# arguments. There is no python in images.
TELL = 'echo "$(md5sum | cut -c 1-32) $(printf "%s\\0" "$@" | base64 -w 0)"'
SHOW = ("sh", "-c", TELL, "sh")
NOTHING = hashlib.md5(b"").hexdigest()
RUN = (sys.executable, "-m", "mpigraft.cli.entry", "run")
SIZES = (0, 400, 229_000, 64 << 20)


def content(size: int) -> bytes:
    return (hashlib.sha256(str(size).encode()).digest() * (size // 32 + 1))[:size]


def digest(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


def of_size(folder: Path, size: int) -> Path:
    path = folder / f"{size} bytes"
    if not path.exists():
        path.write_bytes(content(size))
    return path


def shown(
    words: Sequence[object],
    arguments: Sequence[str] = (),
    stdin: IO[bytes] | int = subprocess.DEVNULL,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> tuple[list[str], list[str]]:
    """(what the ranks read, sorted; the arguments of one) of a `run` of SHOW."""
    argv = [*RUN, *map(str, words), "--no-proof", "--", *SHOW, *arguments]
    done = subprocess.run(argv, stdin=stdin, capture_output=True, timeout=300, env=env, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return parsed(done.stdout)


def parsed(output: bytes) -> tuple[list[str], list[str]]:
    """What SHOW printed, of all ranks. Arguments have to be the same."""
    lines = [line.split(" ") for line in output.decode().splitlines()]
    given = {argument for _, argument in lines}
    assert len(given) == 1, output
    words = base64.b64decode(given.pop()).split(b"\0")[:-1]
    return sorted(read for read, _ in lines), [os.fsdecode(word) for word in words]
