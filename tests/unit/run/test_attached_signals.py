"""Which signals of a job's user are passed on, and when a second one kills."""

from __future__ import annotations

import os
import signal

import pytest

from mpigraft.run import foreground

TERM, INT, USR1 = signal.SIGTERM, signal.SIGINT, signal.SIGUSR1
TSTP, CONT, STOP = signal.SIGTSTP, signal.SIGCONT, signal.SIGSTOP
BY_PROCESS, BY_TERMINAL = 0, 0x80  # SI_USER and SI_KERNEL of Linux's siginfo.h
JOB = 12345


Came = tuple[int, int, float]
# Shared: the job's guard is in our group, and gets what the terminal sends by itself.
CASES: list[tuple[bool, list[Came], list[tuple[int, int]]]] = [
    (True, [(USR1, BY_PROCESS, 0), (USR1, BY_PROCESS, 0.1)], [(JOB, USR1), (JOB, USR1)]),
    (False, [(TSTP, BY_PROCESS, 0), (CONT, BY_PROCESS, 1)], [(JOB, TSTP), (JOB, CONT)]),
    (True, [(TSTP, BY_PROCESS, 0), (CONT, BY_PROCESS, 1)], [(JOB, TSTP), (JOB, CONT)]),
    (True, [(TSTP, BY_TERMINAL, 0), (CONT, BY_PROCESS, 1)], [(os.getpid(), STOP)]),
    (True, [(TSTP, BY_TERMINAL, 0), (CONT, 0, 1), (CONT, 0, 2)],
     [(os.getpid(), STOP), (JOB, CONT)]),
    (False, [(TSTP, BY_TERMINAL, 0), (CONT, BY_PROCESS, 1)],
     [(JOB, TSTP), (os.getpid(), STOP), (JOB, CONT)]),
    (True, [(INT, BY_TERMINAL, 0)], []),
    (True, [(INT, BY_TERMINAL, 0), (INT, BY_TERMINAL, 0.1)], [(JOB, 0)]),
    (True, [(INT, BY_TERMINAL, 0), (INT, BY_PROCESS, 0.1)], []),
    (False, [(INT, BY_TERMINAL, 0), (INT, BY_TERMINAL, 3)], [(JOB, INT), (JOB, 0)]),
    (False, [(TERM, BY_PROCESS, 0), (TERM, BY_PROCESS, 0.4)], [(JOB, TERM)]),
    (False, [(TERM, 0, 0), (INT, 0, 0.4), (TERM, 0, 0.6)], [(JOB, TERM), (JOB, 0)]),
    (False, [(TERM, 0, 9), (USR1, 0, 9.1), (TERM, 0, 9.2)], [(JOB, TERM), (JOB, USR1)]),
    (False, [(TERM, 0, 0), (TERM, 0, 1), (TERM, 0, 2)], [(JOB, TERM), (JOB, 0), (JOB, 0)]),
]  # fmt: skip


@pytest.mark.parametrize(("shared", "came", "due"), CASES)
def test_each_signal_is_passed_on_once(
    shared: bool, came: list[Came], due: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[tuple[int, int]] = []  # (process, signal); (JOB, 0): all below the job is killed
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append((pid, number)))
    monkeypatch.setattr(foreground, "kill_below", lambda pid: sent.append((pid, 0)))
    passing = foreground.Signals(JOB, shared=shared)
    for one in came:
        passing.take(*one)
    assert sent == due
