"""mpigraft-guard leaves nothing behind: not after the end, the limit, a signal or our death."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mpigraft.native.programs import GUARD, SOURCES
from tests.native.native_world import compile_c, srun

SANITIZED = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
WAIT_S = 30.0


@pytest.fixture(scope="module", params=["prebuilt", "sanitized"])
def guard_program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file of this module's own, so that guards of other jobs are not taken for those started
    here."""
    if request.param == "prebuilt":
        programs: Path = request.getfixturevalue("programs")
        copy = tmp_path_factory.mktemp("guard") / GUARD
        shutil.copy2(programs / GUARD, copy)
        return copy
    return compile_c(
        SOURCES / "start/guard.c",
        tmp_path_factory.mktemp("guard") / "guard",
        SOURCES / "start/sweep.c",
        *SANITIZED,
    )


def words(program: Path, *child: str, limit: float = 60, grace: float = 1) -> list[str]:
    return [str(program), "--limit", str(limit), "--grace", str(grace), "--", *child]


def guarded(
    program: Path, *child: str, limit: float = 60, grace: float = 1
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words(program, *child, limit=limit, grace=grace),
        capture_output=True, text=True, timeout=WAIT_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def until(true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + WAIT_S
    while not true() and time.monotonic() < deadline:
        time.sleep(0.02)
    return true()


def stray(tmp_path: Path, then: str, *, deaf: bool = False) -> tuple[list[str], Path]:
    """A program whose grandchild left its session, and goes on as `then` says."""
    note = tmp_path / "pid"
    script = f"""
        import os, signal, sys, time
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
            if {deaf}:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            with open({str(note)!r} + ".part", "w") as file:
                file.write(str(os.getpid()))
            os.rename({str(note)!r} + ".part", {str(note)!r})
            time.sleep(600)
        while not os.path.exists({str(note)!r}):
            time.sleep(0.01)
        {then}
    """
    return [sys.executable, "-c", textwrap.dedent(script)], note


# ------------------------------------------------------------------ what comes back


@pytest.mark.parametrize("code", [0, 1, 2, 77, 255])
def test_exit_codes_pass(guard_program: Path, code: int) -> None:
    done = guarded(guard_program, "sh", "-c", f"echo out; echo err >&2; exit {code}")
    assert (done.returncode, done.stdout, done.stderr) == (code, "out\n", "err\n")


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGKILL, signal.SIGTERM])
def test_a_signal_of_the_child_is_told(guard_program: Path, number: int) -> None:
    done = guarded(guard_program, "sh", "-c", f"ulimit -c 0; kill -{int(number)} $$")
    assert done.returncode == 128 + number


def test_programs_that_cannot_start(guard_program: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program", encoding="ascii")
    assert guarded(guard_program, str(tmp_path / "none")).returncode == 127
    refused = guarded(guard_program, str(plain))
    assert refused.returncode == 126
    assert f"mpigraft-guard: {plain}: " in refused.stderr


BAD = (
    (), ("--",), ("--limit",), ("--limit", "--", "true"), ("--limit", "x", "--", "true"),
    ("--limit", "-1", "--", "true"), ("--limit", "nan", "--", "true"), ("true",),
    ("--grace", "1e10", "--", "true"), ("--other", "1", "--", "true"), ("--parent", "--", "true"),
    ("--parent", "0", "--", "true"), ("--parent", "1x", "--", "true"),
    ("--parent", "4294967297", "--", "true"),
)  # fmt: skip


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_wrong_usage(guard_program: Path, arguments: tuple[str, ...]) -> None:
    done = subprocess.run(
        [guard_program, *arguments], capture_output=True, text=True, timeout=WAIT_S
    )
    assert done.returncode == 2
    assert "mpigraft-guard" in done.stderr


def test_signal_state_of_the_child_is_the_callers(guard_program: Path) -> None:
    """The guard blocks signals for itself; a launcher that inherited that could not be ended."""
    shown = guarded(guard_program, "grep", "-E", "Sig(Blk|Ign)", "/proc/self/status").stdout
    bare = subprocess.run(
        ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"], capture_output=True, text=True
    ).stdout
    assert shown == bare


# ------------------------------------------------------------------ nothing is left


@pytest.mark.parametrize("deaf", [False, True])
def test_strays_end_with_the_program(guard_program: Path, tmp_path: Path, deaf: bool) -> None:
    program, note = stray(tmp_path, "sys.exit(7)", deaf=deaf)
    done = guarded(guard_program, *program, grace=0.3)
    assert done.returncode == 7
    assert not alive(int(note.read_text()))
    assert ("killed 1 processes" in done.stderr) is deaf


@pytest.mark.parametrize("deaf", [False, True])
def test_the_limit(guard_program: Path, tmp_path: Path, deaf: bool) -> None:
    program, note = stray(tmp_path, "time.sleep(600)", deaf=deaf)
    done = guarded(guard_program, *program, limit=1, grace=0.3)
    assert done.returncode == 124
    assert "the limit of 1 s has passed" in done.stderr
    assert until(note.exists)
    assert not alive(int(note.read_text()))


def test_a_limit_of_nothing(guard_program: Path) -> None:
    assert guarded(guard_program, "sleep", "600", limit=0, grace=0).returncode == 124


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_all(guard_program: Path, tmp_path: Path, number: signal.Signals) -> None:
    program, note = stray(tmp_path, "time.sleep(600)", deaf=True)
    guard = subprocess.Popen(
        words(guard_program, *program, grace=0.3), stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert until(note.exists)
    guard.send_signal(number)
    assert guard.wait(WAIT_S) == 128 + number
    assert not alive(int(note.read_text()))


def test_a_helper_of_srun_outlives_it(guard_program: Path, tmp_path: Path) -> None:
    """It has Slurm end the step on other nodes."""
    program, note = srun(tmp_path)
    guard = subprocess.Popen(
        words(guard_program, program, grace=0.1), stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    assert until((tmp_path / "ready").exists)
    guard.terminate()
    assert guard.wait(WAIT_S) == 128 + signal.SIGTERM
    assert note.read_text() == "step ended\n"


def test_a_program_may_end_itself_in_the_grace(guard_program: Path, tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    script = f"trap 'exit 9' TERM; touch {ready}; while :; do sleep 0.05; done"
    guard = subprocess.Popen(words(guard_program, "sh", "-c", script, grace=20))
    assert until(ready.exists)
    guard.terminate()
    assert guard.wait(WAIT_S) == 9


ON = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGCONT)


@pytest.mark.parametrize("number", ON)
def test_other_signals_pass(guard_program: Path, tmp_path: Path, number: signal.Signals) -> None:
    ready, got = tmp_path / "ready", tmp_path / "got"
    trap = f"trap 'touch {got}; exit 3' {number.name.removeprefix('SIG')}"
    script = f"{trap}; touch {ready}; while :; do sleep 0.05; done"
    guard = subprocess.Popen(words(guard_program, "sh", "-c", script), stdin=subprocess.DEVNULL)
    assert until(ready.exists)
    guard.send_signal(number)
    assert guard.wait(WAIT_S) == 3
    assert got.exists()


def test_what_ends_the_program_goes_to_that_alone(guard_program: Path, tmp_path: Path) -> None:
    """A launcher passes it on to ranks; one that got it from both would take the second as a
    demand to end at once. What the program leaves is ended too."""
    ready, log = tmp_path / "ready", tmp_path / "log"
    rank = f"trap 'echo rank >> {log}; exit' TERM; trap 'echo rank INT >> {log}' INT"
    rank = f"{rank}; trap 'echo CONT >> {log}' CONT; touch {ready}; while :; do sleep 0.05; done"
    launcher = f"trap 'echo launcher >> {log}; exit 9' INT; ({rank}) & wait"
    guard = subprocess.Popen(
        words(guard_program, "sh", "-c", launcher, grace=20), stdin=subprocess.DEVNULL
    )
    assert until(ready.exists)
    guard.send_signal(signal.SIGINT)
    assert guard.wait(WAIT_S) == 9
    assert log.read_text().split("\n") == ["launcher", "rank", ""]


def test_a_stopped_process_is_ended_too(guard_program: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = f"echo $$ > {note}; kill -STOP $$"
    done = guarded(guard_program, "sh", "-c", script, limit=1, grace=20)
    assert done.returncode == 124
    assert "outlived" not in done.stderr
    assert not alive(int(note.read_text()))


def test_the_parents_death_ends_all(guard_program: Path, tmp_path: Path) -> None:
    program, note = stray(tmp_path, "time.sleep(600)", deaf=True)
    argv = words(guard_program, *program, grace=0.3)
    parent = subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run({argv!r})"],
        stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip
    assert until(note.exists)
    parent.send_signal(signal.SIGKILL)
    parent.wait(WAIT_S)
    assert until(lambda: not alive(int(note.read_text())))
    assert until(lambda: not still_running(guard_program))


def test_a_parent_that_died_before_the_guard_looked(guard_program: Path, tmp_path: Path) -> None:
    """Between fork and exec nobody tells the guard: it would take whoever adopted it for its
    parent, and run on to its limit."""
    note = tmp_path / "ran"
    gone = subprocess.Popen(["true"])
    gone.wait(WAIT_S)
    argv = [
        str(guard_program),
        "--limit",
        "60",
        "--parent",
        str(gone.pid),
        "--",
        "touch",
        str(note),
    ]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 128 + signal.SIGTERM
    assert f"{gone.pid} is not our parent" in done.stderr
    assert not note.exists()


def test_the_parent_that_is_there_may_be_named(guard_program: Path) -> None:
    argv = [str(guard_program), "--parent", str(os.getpid()), "--", "sh", "-c", "sleep 0.5; exit 3"]
    assert subprocess.run(argv, timeout=WAIT_S).returncode == 3


def still_running(program: Path) -> list[int]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                same = (folder / "exe").samefile(program)
            except OSError:
                continue
            found += [int(folder.name)] if same and alive(int(folder.name)) else []
    return found


def test_the_end_of_a_thread_is_not_the_parents(guard_program: Path, tmp_path: Path) -> None:
    """The kernel tells of a parent's death when the thread that forked ends."""
    argv = words(guard_program, "sh", "-c", "sleep 1; exit 5")
    script = f"""
        import subprocess, threading
        started = []
        def start():
            started.append(subprocess.Popen({argv!r}))
        thread = threading.Thread(target=start)
        thread.start()
        thread.join()
        raise SystemExit(started[0].wait())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], timeout=WAIT_S)
    assert done.returncode == 5


def test_the_death_of_the_guard_ends_the_program(guard_program: Path, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    script = f"echo $$ > {note}.part; mv {note}.part {note}; exec sleep 600"
    guard = subprocess.Popen(words(guard_program, "sh", "-c", script))
    assert until(note.exists)
    guard.kill()
    guard.wait(WAIT_S)
    assert until(lambda: not alive(int(note.read_text())))


def test_a_program_that_signals_its_group_does_not_end_the_guard(
    guard_program: Path, tmp_path: Path
) -> None:
    program, note = stray(tmp_path, "os.killpg(0, signal.SIGKILL)")
    done = guarded(guard_program, *program)
    assert done.returncode == 128 + signal.SIGKILL
    assert not alive(int(note.read_text()))


def test_the_program_may_read_another_file(guard_program: Path, tmp_path: Path) -> None:
    (tmp_path / "input").write_text("of a file")
    for path, code, seen in ((tmp_path / "input", 0, "of a file"), (tmp_path / "none", 126, "")):
        argv = [str(guard_program), "--stdin", str(path), "--", "cat"]
        ended = subprocess.run(argv, input="ours", capture_output=True, text=True, timeout=WAIT_S)
        assert (ended.returncode, ended.stdout) == (code, seen)
    assert f"{tmp_path}/none: No such file" in ended.stderr
