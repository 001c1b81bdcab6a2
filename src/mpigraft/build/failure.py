"""What went wrong in EasyBuild: the step, the last lines of the command that failed, the log."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from pathlib import Path

from mpigraft.build.folders import BuildFolders
from mpigraft.build.values import BuildStep
from mpigraft.core.errors import MissingError
from mpigraft.core.messages import Lines
from mpigraft.core.process import Completed, clean
from mpigraft.core.text import printable

PROBLEM = re.compile(
    r"^(?:== FAILED: (?:Installation ended unsuccessfully: )?"
    r"|ERROR: (?:Installation of \S+ failed: )?)"
    r"(?P<problem>\S.*?)(?: \(took .*\))?$",
    re.MULTILINE,
)
LOG = re.compile(r"log file\(s\) (?P<log>\S.*)$", re.MULTILINE)
OUTPUT = re.compile(
    r"output \(stdout \+ stderr\) +-> +(?P<path>\S.*?)(?:\\x1b\[\d+m)?$", re.MULTILINE
)
FULL = re.compile(r"No space left on device|Disk quota exceeded|\[Errno (?:28|122)\]")
COLOUR = re.compile(r"\\x1b\[[\d;]*m")
LAST_LINES = 12
LAST_BYTES = 64 * 1024  # of a command's output, which may be large
LITTLE = 16 * 2**20  # bytes free that no compiler gets on with


def failure_of(step: BuildStep, done: Completed, folders: BuildFolders) -> MissingError:
    """Make the error for a package that EasyBuild did not build."""
    text = COLOUR.sub("", done.text())
    log = LOG.search(text)
    place = log["log"] if log else str(folders.temporary)
    output = _output(text)
    if FULL.search(text) or FULL.search(output) or _is_full(folders.prefix):
        return MissingError.of("prefix-full", prefix=folders.prefix, package=_name(step), log=place)
    problem = PROBLEM.search(text)
    ended = f"it ended with code {done.code}"
    if done.ok:
        ended = "it ended well, but left no module"
    elif done.timed_out:
        ended = f"it did not end within {done.wall_s / 3600:.0f} h"
    return MissingError.of(
        "build-step-failed",
        package=_name(step),
        step=printable(problem["problem"]) if problem else ended,
        lines=Lines("\n".join(_last(output.splitlines() or _own_lines(text)))),
        log=place,
    )


def _name(step: BuildStep) -> str:
    return f"{step.id} {step.version}"


def _output(text: str) -> str:
    """Return the end of what the command printed that failed; EasyBuild names the file that has
    it."""
    match = OUTPUT.search(text)
    if not match:
        return ""
    try:
        with Path(match["path"]).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - LAST_BYTES))
            return clean(file.read())
    except OSError:
        return ""


def _own_lines(text: str) -> list[str]:
    """Return lines of EasyBuild itself, without those of its progress."""
    return [line for line in text.splitlines() if not line.startswith("== ")]


def _last(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if line.strip()][-LAST_LINES:]


def _is_full(prefix: Path) -> bool:
    try:
        return shutil.disk_usage(prefix).free < LITTLE
    except OSError:
        return False
