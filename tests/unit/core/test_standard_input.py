"""When somebody stands by to hand out standard input, and what becomes of it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mpigraft.core.process import stdin as standard_input

SHOW = """
import os, sys
from mpigraft.core.process import stdin
stdin.ensure_stdin()
print(os.readlink("/proc/self/fd/0"), os.get_inheritable(0), stdin.is_empty())
"""


def at_0(script: str, cwd: Path) -> list[str]:
    """What descriptor 0 is, whether it is inherited, and whether it is empty."""
    words = ["sh", "-c", f'"$@" {script}', "sh", sys.executable, "-c", SHOW]
    return subprocess.run(words, capture_output=True, text=True, check=True, cwd=cwd).stdout.split()


def test_a_closed_descriptor_is_filled_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    assert at_0("<&-", tmp_path) == at_0("</dev/null", tmp_path) == ["/dev/null", "True", "True"]
    for file, path in (("f", tmp_path / "f"), ("/dev/zero", "/dev/zero")):
        assert at_0(f"<{file}", tmp_path) == [str(path), "True", "False"]


def a_stand_in(folder: Path) -> str:
    """A program that stands by as mpigraft-stdin does, and notes its words and its end."""
    path = folder / "stdin"
    path.write_text(
        '#!/bin/sh\nnotes="$1/notes"\necho "$@" >"$notes"\ncat >>"$notes"\n'
        '[ "$2" = bad ] && exit 1\ntrap "echo ended >>$notes; exit" TERM\n'
        "echo ready\nexec 1>&-\nfor i in 1 2 3 4 5 6 7 8; do sleep 0.05; done\n"
    )
    path.chmod(0o755)
    return str(path)


@contextmanager
def fed(path: Path) -> Iterator[None]:
    """What descriptor 0 of this process is for a time."""
    kept = os.dup(0)
    try:
        with path.open("rb") as file:
            os.dup2(file.fileno(), 0)
        yield
    finally:
        os.dup2(kept, 0)
        os.close(kept)


def an_input(folder: Path) -> Path:
    (folder / "input").write_text("input\n")
    return folder / "input"


def test_it_stands_by_until_it_is_ended(tmp_path: Path) -> None:
    stdin = a_stand_in(tmp_path)
    with fed(an_input(tmp_path)):
        words = ["0", "2", "near"]
        pid = standard_input.serve_stdin([stdin, *words], str(tmp_path))
    assert pid > 1
    standard_input.end_stdin(pid)
    notes = (tmp_path / "notes").read_text().split()
    assert notes == [str(tmp_path), *words, "input", "ended"]
    with pytest.raises(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)


def test_where_nobody_stands_by_nobody_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, _: ended.append(pid))
    monkeypatch.setattr(os, "waitpid", lambda *_: None)
    standard_input.end_stdin(0)
    assert ended == []


def test_nobody_stands_by_for_nothing(tmp_path: Path) -> None:
    stdin = a_stand_in(tmp_path)
    with fed(an_input(tmp_path)):
        assert not standard_input.is_empty()
        assert standard_input.serve_stdin([stdin, "none", "2", "near"], str(tmp_path)) == 0
    with fed(Path(os.devnull)):
        assert standard_input.is_empty()
        assert standard_input.serve_stdin([stdin, "0", "2", "near"], str(tmp_path)) == 0
    assert not (tmp_path / "notes").exists()


def test_who_cannot_stand_by_ends_the_job(tmp_path: Path) -> None:
    stdin = a_stand_in(tmp_path)
    before = len(list(Path("/proc/self/fd").iterdir()))
    with fed(an_input(tmp_path)):
        with pytest.raises(OSError, match="cannot be handed to the ranks") as caught:
            standard_input.serve_stdin([stdin, "bad", "2", "near"], str(tmp_path))
        assert caught.value.filename == stdin
        with pytest.raises(FileNotFoundError):
            standard_input.serve_stdin(["/no/such", "0", "2", "near"], str(tmp_path))
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_ensure_fills_descriptor_0_alone() -> None:
    kept = os.dup(0)
    try:
        os.close(0)
        standard_input.ensure_stdin()
        assert (Path("/proc/self/fd/0").readlink(), os.get_inheritable(0)) == (
            Path(os.devnull),
            True,
        )
        standard_input.ensure_stdin()
        count = len(list(Path("/proc/self/fd").iterdir()))
        standard_input.ensure_stdin()
        assert len(list(Path("/proc/self/fd").iterdir())) == count
    finally:
        os.dup2(kept, 0)
        os.close(kept)
