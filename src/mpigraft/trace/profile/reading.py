"""Read a profile from a file: our own document, or a report of another tool."""

from __future__ import annotations

import re
from pathlib import Path

from mpigraft.core.errors import UsageError
from mpigraft.trace.profile.document import parse_profile
from mpigraft.trace.profile.reports.mpitrace import merge_ranks
from mpigraft.trace.profile.reports.report import REPORTS
from mpigraft.trace.profile.values import Profile

PROFILE = re.compile(rb'^\s*{\s*"schema": \d+,\s*"profile"')
MOST_BYTES = 512 * 1024 * 1024
# Patterns take a time that grows with the square of a run's length; no column is so wide.
LONG_RUN = re.compile(r"([^\S\n]{256})[^\S\n]+|(-{256})-+")
HEAD = b"mpiP", b"MPI rank", b"##IPM", b"CrayPat"  # words of each kind of report


def is_profile(path: Path) -> bool:
    """Return whether a file is our profile or a known tool's."""
    try:
        if not path.is_file() or path.stat().st_size > MOST_BYTES:
            return False
        data = path.read_bytes()
    except OSError:
        return False
    if data.lstrip()[:1] == b"{":
        return PROFILE.search(data[:4096]) is not None
    if not any(word in data for word in HEAD):
        return False
    text = _report_text(data.decode("utf-8", "replace"))
    return any(report.is_one(text) for report in REPORTS.values())


def read_profile(path: Path, *more: Path) -> Profile:
    """Read a profile; `more` are the files of other ranks of its job, which mpitrace wrote. Raises
    UsageError for a file that cannot be read, is none, or is damaged; it names the line."""
    if more:
        return merge_ranks([read_profile(one) for one in (path, *more)])
    try:
        with path.open("rb") as file:  # its size says nothing of a pipe or a device
            data = file.read(1 if path.stat().st_size > MOST_BYTES else MOST_BYTES + 1)
            if len(data) > MOST_BYTES or file.read(1):
                raise UsageError.of("profile-unreadable", path=path, reason="it is too large")
    except OSError as error:
        raise UsageError.of("profile-unreadable", path=path, reason=error.strerror) from error
    text = data.decode("utf-8", "replace").replace("\r\n", "\n")
    if text.lstrip()[:1] == "{":
        return parse_profile(text, path)
    text = _report_text(text)
    for report in REPORTS.values():
        if report.is_one(text):
            return report.parse(text, path)
    raise UsageError.of("profile-foreign", path=path, known=", ".join(REPORTS))


def _report_text(text: str) -> str:
    """Return a report without what is longer than its columns and rules. Lines keep their
    numbers."""
    return LONG_RUN.sub(r"\1\2", text)
