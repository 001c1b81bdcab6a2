"""A job with this process's own streams: exit codes, signals, looks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpigraft.native.programs import PREBUILT
from mpigraft.run import foreground
from tests.native.native_world import srun
from tests.readable import readable

HERE = dict(os.environ)
STOP = 1 << (signal.SIGTSTP - 1)  # in a mask of /proc/PID/status
START = "import os, sys\nfrom mpigraft.run.foreground import run_attached\n"


def sh(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
def test_codes_are_a_shells(script: str, code: int) -> None:
    assert foreground.run_attached(sh(script), HERE) == code


def test_what_cannot_be_started_is_an_error_and_signals_are_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(FileNotFoundError):
        foreground.run_attached(["/none/such"], HERE)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_the_job_is_watched_until_the_watcher_is_done() -> None:
    looks = []

    def look() -> int:
        looks.append(1)
        return foreground.DONE if len(looks) == 3 else foreground.GO_ON

    assert foreground.run_attached(sh("sleep 1"), HERE, look) == 0
    assert len(looks) == 3


def test_a_look_can_end_it() -> None:
    assert foreground.run_attached(sh("exec sleep 60"), HERE, lambda: foreground.END) == 143


def child(words: list[str]) -> subprocess.Popen[str]:
    program = f"{START}sys.exit(run_attached({words!r}, os.environ))"
    pipe = subprocess.PIPE
    return subprocess.Popen(
        [sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=pipe, text=True
    )


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    children: list[subprocess.Popen[str]] = []
    yield children
    for one in children:
        one.kill()
        one.communicate()


def test_streams_are_this_ones(started: list[subprocess.Popen[str]]) -> None:
    one = child(sh("cat; echo beside >&2"))
    started.append(one)
    assert one.communicate("through\n", timeout=30) == ("through\n", "beside\n")


def test_the_default_of_sigpipe_is_back(started: list[subprocess.Popen[str]]) -> None:
    one = child(["/bin/grep", "SigIgn", "/proc/self/status"])
    started.append(one)
    out, _ = one.communicate(timeout=30)
    assert int(out.split()[1], 16) & 1 << (signal.SIGPIPE - 1) == 0


def test_no_signal_is_blocked_for_it(started: list[subprocess.Popen[str]]) -> None:
    one = child(["/bin/grep", "SigBlk", "/proc/self/status"])
    started.append(one)
    assert int(one.communicate(timeout=30)[0].split()[1], 16) == 0


@pytest.mark.parametrize("sent", sorted(foreground.PASSED - {signal.SIGCONT}))
def test_signals_are_passed_on(started: list[subprocess.Popen[str]], sent: signal.Signals) -> None:
    script = f"trap 'echo got; exit 9' {sent.name.removeprefix('SIG')}; echo up; "
    one = child(sh(script + "while :; do sleep 0.1; done"))
    started.append(one)
    assert one.stdout is not None
    assert one.stdout.readline() == "up\n"
    one.send_signal(sent)
    assert one.communicate(timeout=30)[0] == "got\n"
    assert one.returncode == 9


def test_a_second_request_to_end_is_not_refused(started: list[subprocess.Popen[str]]) -> None:
    guard = str(PREBUILT / os.uname().machine / "mpigraft-guard")
    script = "trap '' TERM INT; echo up; while :; do sleep 0.1; done"
    one = child([guard, "--grace", "1000", "--", *sh(script)])
    started.append(one)
    assert one.stdout is not None
    assert one.stdout.readline() == "up\n"
    one.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    assert one.poll() is None
    one.send_signal(signal.SIGTERM)
    assert one.wait(30) != 0


def test_a_helper_of_srun_outlives_it(started: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    """Killed along with srun, it could not have Slurm end the step on other nodes."""
    guard = str(PREBUILT / os.uname().machine / "mpigraft-guard")
    program, note = srun(tmp_path)
    one = child([guard, "--grace", "1000", "--", program])
    started.append(one)
    while not (tmp_path / "ready").exists():
        assert one.poll() is None
        time.sleep(0.02)
    one.send_signal(signal.SIGINT)
    time.sleep(foreground.AGAIN_S)
    one.send_signal(signal.SIGINT)
    assert one.wait(30) == 130
    deadline = time.monotonic() + 20  # on a loaded machine it ends after the guard
    while not (note.exists() and note.read_text()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert note.read_text() == "step ended\n"


# ------------------------------------------------------------------ at a terminal


def at_terminal(words: list[str], stdin: str = "") -> tuple[int, int]:
    """(process id, terminal) of a job in the foreground of a terminal of its own; its stdin is
    that, or a file."""
    pid, terminal = os.forkpty()
    if not pid:
        # The shell of this terminal: its job has a process group of its own in the foreground.
        job = os.fork()
        if not job:
            os.setpgid(0, 0)
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            os.tcsetpgrp(1, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            if stdin:
                os.dup2(os.open(stdin, os.O_RDONLY), 0)
            os.execv(sys.executable, [sys.executable, "-c",
                     f"{START}sys.exit(run_attached({words!r}, os.environ))"])  # fmt: skip
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if not os.WIFSTOPPED(status):
                signal.sigwait([signal.SIGUSR1])  # its end takes along what nobody has read yet
                os._exit(os.waitstatus_to_exitcode(status) & 0xFF)
            os.write(1, b"stopped\n")
            signal.sigwait([signal.SIGUSR1])  # SIGCONT takes a stop back that has not arrived
            os.killpg(job, signal.SIGCONT)
    return pid, terminal


def read_until(terminal: int, *texts: bytes) -> bytes:
    read = b""
    while not all(text in read for text in texts):
        assert readable(terminal, wait_s=30), read
        read += os.read(terminal, 1000)
    return read


def read_their_stops(pid: int) -> None:
    """Wait until no process below has a SIGTSTP that it has not read: SIGCONT takes it back."""
    below = [pid]
    for one in below:
        tasks = Path(f"/proc/{one}/task/{one}")
        below += [int(word) for word in (tasks / "children").read_text().split()]
        end = time.monotonic() + 30
        while int((tasks / "status").read_text().split("ShdPnd:")[1].split()[0], 16) & STOP:
            assert time.monotonic() < end
            time.sleep(0.01)


@pytest.mark.parametrize("stdin", ["", "/dev/null"], ids=["terminal", "file"])
def test_control_z_stops_the_job_and_the_shell_goes_on(stdin: str) -> None:
    """As `vi` under a shell: the process that the shell waits for is stopped, and the job was
    told once of both."""
    guard = str(PREBUILT / os.uname().machine / "mpigraft-guard")
    script = "import os, signal, time\ndef note(n, _): os.write(1, b'got %d\\n' % n)\n"
    script += "for n in (18, 20): signal.signal(n, note)\n"
    script += "try:\n    print('up', flush=True)\n    while True: time.sleep(9)\n"
    script += "except KeyboardInterrupt: print('interrupted', flush=True)"
    words = [guard, "--", sys.executable, "-c", script]
    pid, terminal = at_terminal(words, stdin)
    try:
        read_until(terminal, b"up")
        os.write(terminal, b"\x1a")
        read_until(terminal, b"stopped", b"got 20")
        read_their_stops(pid)
        os.kill(pid, signal.SIGUSR1)
        assert b"got 20" not in read_until(terminal, b"got 18")
        os.write(terminal, b"\x03")
        rest = read_until(terminal, b"interrupted")
        assert b"got" not in rest
        os.kill(pid, signal.SIGUSR1)
        assert os.waitpid(pid, 0)[1]
    finally:
        os.close(terminal)
