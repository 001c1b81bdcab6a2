"""A process that has this one's own streams and terminal: the job of `mpigraft run`.

It is apart from `run.py`, which captures, because it must cost nothing: `run` imports what takes
forty milliseconds, and this is half of all that a job costs over the same line typed by hand.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

PASSED = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGTSTP,
        signal.SIGCONT,
    }
)
ENDING = frozenset({signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT})
OF_TERMINAL = 0x80  # SI_KERNEL: sent by no process; all of the foreground group got it
AGAIN_S = (
    0.5  # within which one request to end comes twice: timeout(1) sends it to us and our group
)
GRACE_S = 2.0  # for a job that `look` has ended, between SIGTERM and SIGKILL
HELPER_S = 5.0  # for the helper of an srun that was killed
IDLE_S = 3600.0  # nothing to look at: whoever computes here is not disturbed
FIRST_LOOK_S, LAST_LOOK_S = 0.02, 1.0  # looks become rarer: by half each time

GO_ON, DONE, END = range(3)  # what `look` answers: look again, look no more, end the job


def run_attached(
    argv: Sequence[str],
    environ: Mapping[str, str],
    look: Callable[[], int] = lambda: DONE,
) -> int:
    """Run `argv` to its end with stdin, stdout, stderr and terminal inherited; its exit code, as
    a shell gives it: 128 + n for a process that signal n ended.

    Signals that come here are passed on; a second one that asks to end kills all that is left. The
    terminal's stop (Ctrl-Z) stops this process as well, or the shell would wait on.
    `look` is called while the job runs until it answers DONE, or END, which ends the job.
    Raises OSError for a program that cannot be started.

    Signals are blocked and waited for, rather than handled: so none is lost between two calls,
    and the end of the job is noticed at once on kernels without pidfds too.
    """
    deaf = {number for number in PASSED if signal.getsignal(number) is signal.SIG_IGN}
    watched = PASSED - deaf | {signal.SIGCHLD}
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # ignored, the exit code would be lost
    before = signal.pthread_sigmask(signal.SIG_BLOCK, watched)
    try:
        alone = bool(deaf & {signal.SIGHUP, signal.SIGINT}) or not os.isatty(0)
        pid = _spawn(argv, environ, before, alone=alone)
        return _wait(pid, watched, look, Signals(pid, shared=not alone))
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _spawn(argv: Sequence[str], environ: Mapping[str, str], mask: set[int], *, alone: bool) -> int:
    """Start it with the signals as this process found them. Python ignores SIGPIPE; a job must
    not. `alone`: under nohup, or in a script's background, signals of the terminal are not for
    the job, so it gets a process group of its own: the guard in front of it would take them. So it
    does where it does not read the terminal, and gets each signal once, from here."""
    words = [os.fspath(word) for word in argv]
    reset = (signal.SIGPIPE, signal.SIGXFSZ)
    if alone:
        return os.posix_spawn(
            words[0], words, environ, setsigmask=mask, setsigdef=reset, setpgroup=0
        )
    return os.posix_spawn(words[0], words, environ, setsigmask=mask, setsigdef=reset)


class Signals:
    """Passes signals on to a job, each one once; who else got it is known by its sender.

    `shared`: the job's guard is in this process's group, so that it may read the terminal.
    """

    def __init__(self, pid: int, *, shared: bool) -> None:
        self.pid = pid
        self.shared = shared
        self.requests = 0  # to end
        self.last = float("-inf")  # when the last of them came
        self.halted = False  # the whole group was, by the terminal

    def take(self, number: int, code: int, now: float) -> None:
        """Deal with a signal that came at `now`; `code` is its si_code."""
        by_terminal = code == OF_TERMINAL
        known = self.shared and by_terminal
        if number in ENDING:
            again = by_terminal or now - self.last >= AGAIN_S  # a key sends one, however fast
            self.requests += again
            self.last = now if again else self.last
            if again and self.requests > 1:
                kill_below(self.pid)
                return
            known = known or not again
        if number == signal.SIGCONT:  # a shell continues the group that its terminal stopped
            known, self.halted = self.halted, False
        if not known:
            os.kill(self.pid, number)
        if number == signal.SIGTSTP and by_terminal:
            self.halted = self.shared
            os.kill(os.getpid(), signal.SIGSTOP)


def _wait(pid: int, watched: frozenset[int], look: Callable[[], int], passing: Signals) -> int:
    pause, deadline = FIRST_LOOK_S, float("inf")
    looking = True
    while True:
        timeout = min(pause if looking else IDLE_S, max(0.0, deadline - time.monotonic()))
        came = signal.sigtimedwait(watched, timeout)
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if came is not None and came.si_signo != signal.SIGCHLD:
            passing.take(came.si_signo, came.si_code, time.monotonic())
        elif time.monotonic() >= deadline:
            kill_below(pid)
            deadline = float("inf")
        elif looking:
            pause = min(1.5 * pause, LAST_LOOK_S)
            answer = look()
            looking = answer == GO_ON
            if answer == END:
                os.kill(pid, signal.SIGTERM)
                deadline = time.monotonic() + GRACE_S


def kill_below(pid: int) -> None:
    """SIGKILL for everything below the guard, after which that ends by itself. A helper of srun,
    which then ends the ranks on other nodes, has HELPER_S until it is killed too."""
    from mpigraft.core.process import descendants, helpers

    processes = descendants(pid)
    late = helpers(processes)
    _kill(p for p in processes if p not in late)
    deadline = time.monotonic() + HELPER_S
    while late.intersection(descendants(pid)) and time.monotonic() < deadline:
        time.sleep(0.02)
    _kill(late.intersection(descendants(pid)))


def _kill(processes: Iterable[int]) -> None:
    for pid in processes:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
