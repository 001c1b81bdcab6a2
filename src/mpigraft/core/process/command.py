"""The one door to subprocesses.

Only argv lists, never a shell. Each child gets a session of its own and this process is made
its subreaper, so that a time limit or an interrupt leaves no process behind, not even one that
left its session and its parent: the kernel gives such orphans to this process, where they are
found. Output is bytes: other people's programs print what they like.
"""

from __future__ import annotations

import contextlib
import os
import select
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mpigraft.core.text import printable

PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 2.0  # between SIGTERM and SIGKILL
HELPER_S = 5.0  # for the helper of an srun that was killed
MAX_LINE = 4096  # bytes of a line that may end a child
MAX_OUTPUT = 64 * 1024 * 1024  # bytes kept of each stream; the rest is counted and dropped

# Takes each command line before it is started, for `-v`.
_echo: Callable[[str], None] | None = None


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
    started: float = 0.0  # seconds since the epoch

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.timed_out

    def text(self) -> str:
        """Return both streams as text, NULs and broken UTF-8 made visible."""
        return clean(self.stdout) + clean(self.stderr)


def clean(data: bytes) -> str:
    """Decode a foreign program's output. Undecodable bytes and control characters other than tab
    and newline become escapes, so they can neither hide nor move a cursor."""
    return printable(data.decode("utf-8", "backslashreplace").replace("\r\n", "\n"), "\n\t")


def echo_to(write: Callable[[str], None]) -> None:
    """Write each command line before it is started, for `-v`."""
    global _echo  # noqa: PLW0603
    _echo = write


@dataclass(frozen=True, slots=True)
class Listener:
    """What hears a program while it runs."""

    output: Callable[[bytes], None] | None = None  # its standard output, in a thread of its own
    ends: Callable[[bytes], bool] | None = None  # a line on standard error: whether to end it


SILENT = Listener()


def run_command(
    argv: Sequence[str | Path],
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    limit_s: float = 60.0,
    stdin: bytes | None = None,
    listener: Listener = SILENT,
) -> Completed:
    """Run `argv` to its end, or to `limit_s` seconds, and return its output.

    A program that cannot be started is not an exception: `code` is 127 (not found) or 126 and
    `stderr` says why, as a shell would have it. KeyboardInterrupt ends the child, then goes on.
    """
    words = tuple(str(a) for a in argv)
    if _echo is not None:
        _echo(shlex.join(words))
    _become_subreaper()
    started, began = time.time(), time.monotonic()
    try:
        child = _runs.start(words, env, cwd, has_input=stdin is not None)
    except (OSError, ValueError) as error:  # ValueError: a NUL in a word or in the environment
        code = 127 if isinstance(error, FileNotFoundError) else 126
        return Completed(words, code, b"", str(error).encode(), 0.0, started=started)
    timed_out = True
    try:
        ends = listener.ends
        pipes = (
            (child.stdout, listener.output),
            (child.stderr, ends and _end_at_line(child, ends)),
        )
        streams = [_Drain(pipe, hears) for pipe, hears in pipes if pipe]
        if stdin is not None and child.stdin:
            threading.Thread(target=_feed, args=(child.stdin, stdin), daemon=True).start()
        timed_out = not _wait(child, limit_s)
    finally:
        wall = time.monotonic() - began
        end_tree(child)
    out, err = (s.finish() for s in streams)
    dropped = sum(s.dropped for s in streams)
    # A child that even SIGKILL does not end waits in the kernel, for a file server as a rule.
    code = -signal.SIGKILL if child.returncode is None else child.returncode
    return Completed(
        argv=words,
        code=code,
        stdout=out,
        stderr=err,
        wall_s=wall,
        timed_out=timed_out,
        dropped=dropped,
        started=started,
    )


def _wait(child: subprocess.Popen[bytes], limit_s: float) -> bool:
    """Return whether the child ended within the limit.

    Popen.wait with a limit looks every 50 ms, which is late by 25 ms on average; a pidfd wakes
    at once, but is not there before Linux 5.3.
    """
    try:
        handle = os.pidfd_open(child.pid)
    except (AttributeError, OSError):
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(limit_s)
        return child.returncode is not None
    try:
        poll = select.poll()
        poll.register(handle, select.POLLIN)
        ended = bool(poll.poll(min(limit_s * 1000, 2**31 - 1)))
    finally:
        os.close(handle)
    if ended:
        child.wait()
    return ended


def _end_at_line(
    child: subprocess.Popen[bytes], ends: Callable[[bytes], bool]
) -> Callable[[bytes], None]:
    """Make the function that takes blocks of a child's errors, and asks the child to end after a
    line that `ends` matches."""
    rest = b""

    def take_block(block: bytes) -> None:
        nonlocal rest
        *lines, rest = (rest + block).split(b"\n")
        rest = rest[-MAX_LINE:]
        if any(ends(line[:MAX_LINE]) for line in lines):
            child.terminate()

    return take_block


def _feed(pipe: IO[bytes], data: bytes) -> None:
    """Write a child's input beside waiting for it: a child that reads none must not block us."""
    with contextlib.suppress(OSError), pipe:
        pipe.write(data)


class _Drain(threading.Thread):
    """Reads a pipe to its end so that a child never blocks on a full one."""

    def __init__(self, pipe: IO[bytes], listen: Callable[[bytes], None] | None = None) -> None:
        super().__init__(daemon=True)
        self.pipe = pipe
        self.listen = listen
        self.kept = bytearray()
        self.dropped = 0
        self.start()

    def run(self) -> None:
        with contextlib.suppress(ValueError, OSError):
            while block := os.read(self.pipe.fileno(), 1 << 16):
                room = MAX_OUTPUT - len(self.kept)
                self.kept += block[:room]
                self.dropped += max(0, len(block) - room)
                if self.listen:
                    self.listen(block)

    def finish(self) -> bytes:
        self.join(GRACE_S)
        if not self.is_alive():
            self.pipe.close()
        return bytes(self.kept)


class _Runs:
    """The current runs of this process, to separate their orphans from other children.

    An orphan is a child of this process that it did not start, of another session than its own
    (every run has its own), and born since the runs began. While several runs go on in threads
    an orphan that left its session may be anyone's; the last to end sees to it.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.active: set[int] = set()
        self.since = 0

    def start(
        self,
        words: Sequence[str],
        env: Mapping[str, str] | None,
        cwd: Path | None,
        *,
        has_input: bool,
    ) -> subprocess.Popen[bytes]:
        with self.lock:  # so that no other run's end takes the new child for an orphan
            child = subprocess.Popen(
                words,
                env=dict(env) if env is not None else None,
                cwd=cwd,
                stdin=subprocess.PIPE if has_input else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            if not self.active:
                self.since = _Process.of(child.pid).born
            self.active.add(child.pid)
        return child

    def orphans(self, child: subprocess.Popen[bytes]) -> list[_Process]:
        """Orphans that this child's end has to see to, dead ones included."""
        with self.lock:
            if child.poll() is not None:
                self.active.discard(child.pid)
            alone = self.active <= {child.pid}
            own = os.getsid(0)
            return [
                p
                for p in map(_Process.of, children(os.getpid()))
                if p.pid not in self.active
                and p.pid != child.pid
                and (
                    p.session == child.pid
                    or (alone and p.session != own and p.born >= self.since > 0)
                )
            ]

    def forget(self, child: subprocess.Popen[bytes]) -> None:
        """Also of a child that nothing can end."""
        with self.lock:
            self.active.discard(child.pid)


_runs = _Runs()


def end_tree(child: subprocess.Popen[bytes]) -> None:
    """End a child and all that it started; returns when none is left.

    The child and its descendants get SIGTERM and GRACE_S seconds; then, and for what outlives a
    child that has ended, SIGKILL, until nothing new appears.
    """
    try:
        if child.poll() is None:
            _signal((child.pid, *descendants(child.pid)), signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(GRACE_S)
        began = time.monotonic()
        clear, seen, late = 0, False, frozenset[int]()
        # A list of children that change while it is read may lack some, hence the second look.
        while clear < 1 + seen and (lasted := time.monotonic() - began) < 5 * GRACE_S:
            if living := _living(child):
                clear, seen, late = 0, True, late | helpers(living)
                spared = late if lasted < HELPER_S else frozenset()
                _signal((pid for pid in living if pid not in spared), signal.SIGKILL)
                time.sleep(0.005)
            else:
                clear += 1
    finally:
        _runs.forget(child)


def _living(child: subprocess.Popen[bytes]) -> list[int]:
    """Living processes of a run. Reaps its dead ones."""
    roots = [child.pid] if child.poll() is None else []
    for orphan in _runs.orphans(child):
        if orphan.state == "Z":
            with contextlib.suppress(OSError):
                os.waitpid(orphan.pid, os.WNOHANG)
        else:
            roots.append(orphan.pid)
    processes = [*roots, *(p for root in roots for p in descendants(root))]
    return [pid for pid in processes if _Process.of(pid).state not in "ZX"]


def descendants(pid: int) -> list[int]:
    """Return all processes below `pid`, nearest first."""
    processes = children(pid)
    for below in processes:  # grows while it is walked
        processes += children(below)
    return processes


def helpers(processes: Sequence[int]) -> frozenset[int]:
    """Return those of them that a killed srun leaves to have Slurm end its step on all nodes: forks
    of an srun. Killed along with it, ranks that heed no signal would compute on."""
    sruns = [p for p in (_Process.of(pid) for pid in processes) if p.name == "srun"]
    parents = {p.pid for p in sruns}
    return frozenset(p.pid for p in sruns if p.parent in parents)


def children(pid: int) -> list[int]:
    """Return the processes whose parent is `pid`."""
    listed = _listed_children(pid)
    if listed is not None:
        return listed
    everyone = [int(e.name) for e in os.scandir("/proc") if e.name.isdigit()]
    return [p for p in everyone if _Process.of(p).parent == pid]


def _listed_children(pid: int) -> list[int] | None:
    """Return the children that the kernel lists; None if it lacks CONFIG_PROC_CHILDREN.

    Reading all of /proc instead costs 0.1 s on a login node with thousands of processes.
    """
    pids: list[int] = []
    try:
        for task in Path(f"/proc/{pid}/task").iterdir():
            try:
                pids += map(int, (task / "children").read_text().split())
            except ProcessLookupError:
                continue
            except FileNotFoundError:  # a thread that has ended, such as our readers of output
                if task.exists():
                    return None
    except OSError:
        return []
    return pids


@dataclass(frozen=True, slots=True)
class _Process:
    """What /proc/PID/stat says. `state` X: it is not there any more."""

    pid: int
    state: str = "X"
    parent: int = 0
    session: int = 0
    born: int = 0  # clock ticks since boot
    name: str = ""  # of the program, 15 bytes at most

    @classmethod
    def of(cls, pid: int) -> _Process:
        try:
            text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
        except OSError:
            return cls(pid)
        head, _, rest = text.rpartition(")")  # a name may hold blanks and brackets
        fields, name = rest.split(), head.partition("(")[2]  # from the third field on
        return cls(pid, fields[0], int(fields[1]), int(fields[3]), int(fields[19]), name)


def _signal(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, number)


def _become_subreaper() -> None:
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
