"""The one door to subprocesses.

Only argv lists, never a shell. Each child gets a process group of its own and this process is
made its subreaper, so that a time limit or an interrupt leaves no process behind, not even one
that left its group. Output is bytes: other people's programs print what they like.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 2.0  # between SIGTERM and SIGKILL
MAX_OUTPUT = 64 * 1024 * 1024  # bytes kept of each stream; the rest is counted and dropped

verbose: Callable[[str], None] | None = None  # set by cli for -v: echoes each argv


@dataclass(frozen=True, slots=True)
class Completed:
    """How a child ended. `code` is its exit code, or minus the signal that ended it."""

    argv: tuple[str, ...]
    code: int
    stdout: bytes
    stderr: bytes
    wall_s: float
    timed_out: bool = False
    dropped: int = 0  # bytes of output over MAX_OUTPUT

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out

    def text(self) -> str:
        """Both streams as text, NULs and broken UTF-8 made visible."""
        return clean(self.stdout) + clean(self.stderr)


def clean(data: bytes) -> str:
    """Bytes of a foreign program as text: undecodable bytes and control characters other than
    tab and newline are shown as escapes, so they can neither hide nor move a cursor."""
    text = data.decode("utf-8", "backslashreplace").replace("\r\n", "\n")
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def run(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit_s: float = 60.0,
    stdin: bytes | None = None,
) -> Completed:
    """Run `argv` to its end, or to `limit_s` seconds, and return its output.

    A program that cannot be started is not an exception: `code` is 127 (not found) or 126 and
    `stderr` says why, as a shell would have it. KeyboardInterrupt ends the child, then goes on.
    """
    words = tuple(str(a) for a in argv)
    if verbose is not None:
        verbose(" ".join(words))
    _become_subreaper()
    started = time.monotonic()
    try:
        child = subprocess.Popen(
            words,
            env=dict(env) if env is not None else None,
            cwd=cwd,
            stdin=subprocess.PIPE if stdin is not None else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        code = 127 if isinstance(error, FileNotFoundError) else 126
        return Completed(words, code, b"", str(error).encode(), 0.0)
    streams = [_Drain(child.stdout), _Drain(child.stderr)]
    if stdin is not None and child.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            child.stdin.write(stdin)
        with contextlib.suppress(BrokenPipeError):
            child.stdin.close()
    timed_out = False
    try:
        child.wait(limit_s)
    except subprocess.TimeoutExpired:
        timed_out = True
    finally:
        end_tree(child)
    wall = time.monotonic() - started
    out, err = (s.finish() for s in streams)
    dropped = sum(s.dropped for s in streams)
    return Completed(words, child.returncode, out, err, wall, timed_out, dropped)


class _Drain(threading.Thread):
    """Reads a pipe to its end so that a child never blocks on a full one."""

    def __init__(self, pipe: object) -> None:
        super().__init__(daemon=True)
        self.pipe = pipe
        self.kept = bytearray()
        self.dropped = 0
        self.start()

    def run(self) -> None:
        read = self.pipe.read1  # type: ignore[attr-defined]
        with contextlib.suppress(ValueError, OSError):
            while block := read(1 << 16):
                room = MAX_OUTPUT - len(self.kept)
                self.kept += block[:room]
                self.dropped += max(0, len(block) - room)

    def finish(self) -> bytes:
        self.join(GRACE_S)
        if not self.is_alive():
            self.pipe.close()  # type: ignore[attr-defined]
        return bytes(self.kept)


def end_tree(child: subprocess.Popen[bytes]) -> None:
    """End a child and every process that descends from it; returns when none is left."""
    started_by_child = [p for p in (child.pid, *descendants(child.pid)) if p != os.getpid()]
    if child.poll() is None:
        _signal(started_by_child, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(GRACE_S)
    session = [p for p in _processes() if _session(p) == child.pid]
    left = {*session, *(p for p in started_by_child if p != child.pid)}
    if child.poll() is None:
        left.add(child.pid)
    deadline = time.monotonic() + 5 * GRACE_S
    while left and time.monotonic() < deadline:
        _signal(left, signal.SIGKILL)
        child.poll()
        for pid in left - {child.pid}:
            with contextlib.suppress(OSError):
                os.waitpid(pid, os.WNOHANG)
        left = {p for p in left if _alive(p)}
        if left:
            time.sleep(0.01)
    if child.returncode is None:
        child.wait()


def descendants(pid: int) -> list[int]:
    """All processes below `pid`, nearest first."""
    children: dict[int, list[int]] = {}
    for p in _processes():
        children.setdefault(_parent(p), []).append(p)
    found: list[int] = []
    todo = [pid]
    while todo:
        for child in children.get(todo.pop(0), ()):
            found.append(child)
            todo.append(child)
    return found


def _processes() -> list[int]:
    return [int(e.name) for e in os.scandir("/proc") if e.name.isdigit()]


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()  # state, ppid, pgrp, session, ...


def _parent(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[1]) if fields else 0


def _session(pid: int) -> int:
    fields = _stat(pid)
    return int(fields[3]) if fields else 0


def _alive(pid: int) -> bool:
    fields = _stat(pid)
    return bool(fields) and fields[0] not in "ZX"


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _become_subreaper() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
