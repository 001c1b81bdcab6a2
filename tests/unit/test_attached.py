"""A job with this process's own streams: exit codes, signals, looks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from mpigraft import attached
from mpigraft.natives import PREBUILT

HERE = dict(os.environ)
START = "import os, sys\nfrom mpigraft.attached import attached\n"


def sh(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]


@pytest.mark.parametrize(
    ("script", "code"), [("exit 0", 0), ("exit 3", 3), ("kill -9 $$", 137), ("kill -15 $$", 143)]
)
def test_codes_are_a_shells(script: str, code: int) -> None:
    assert attached.attached(sh(script), HERE) == code


def test_what_cannot_be_started_is_an_error_and_signals_are_as_before() -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    with pytest.raises(FileNotFoundError):
        attached.attached(["/none/such"], HERE)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == before


def test_it_is_looked_at_until_enough_was_seen() -> None:
    looks = []

    def look() -> int:
        looks.append(1)
        return attached.SEEN if len(looks) == 3 else attached.GO_ON

    assert attached.attached(sh("sleep 1"), HERE, look) == 0
    assert len(looks) == 3


def test_a_look_can_end_it() -> None:
    assert attached.attached(sh("exec sleep 60"), HERE, lambda: attached.END) == 143


def child(words: list[str]) -> subprocess.Popen[str]:
    program = f"{START}sys.exit(attached({words!r}, os.environ))"
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


@pytest.mark.parametrize("sent", sorted(attached.PASSED))
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
