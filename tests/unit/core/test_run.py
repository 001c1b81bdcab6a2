"""The one door to subprocesses: what it returns, what it bears, and that it leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.core.process import command
from mpigraft.core.process.command import clean
from tests.native.native_world import srun

ENV = {"PATH": os.environ["PATH"]}


def python(source: str, **options: object) -> command.Completed:
    return command.run_command([sys.executable, "-c", source], **options)  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def pids(folder: Path, count: int) -> list[int]:
    """The process ids that a program's processes wrote, when all of them have."""
    limit = time.monotonic() + 20
    while time.monotonic() < limit:
        found = [int(f.name) for f in folder.iterdir() if f.name.isdigit()]
        if len(found) >= count:
            return found
        time.sleep(0.01)
    raise AssertionError(f"{count} processes were to start in {folder}")


# ------------------------------------------------------------------ what it returns


def test_output_and_code_are_the_programs_own() -> None:
    done = python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)")
    assert (done.stdout, done.stderr, done.code) == (b"out\n", b"err\n", 3)
    assert not done.ok
    assert done.text() == "out\nerr\n"
    assert not done.timed_out


def test_a_signal_is_a_negative_code() -> None:
    assert python("import os; os.kill(os.getpid(), 11)").code == -signal.SIGSEGV


def test_environment_and_folder_are_those_given(tmp_path: Path) -> None:
    words = ["sh", "-c", "pwd; echo $HERE; echo ${HOME-none}"]
    done = command.run_command(words, env={**ENV, "HERE": "yes"}, cwd=tmp_path)
    assert done.text().split() == [str(tmp_path), "yes", "none"]


def test_stdin_is_empty_unless_given() -> None:
    assert command.run_command(["cat"]).stdout == b""
    assert command.run_command(["cat"], stdin=b"in\0put").stdout == b"in\0put"


def test_a_program_that_reads_no_input_does_not_block() -> None:
    """More than a pipe holds, to a program that never looks at it."""
    done = command.run_command(["sleep", "0.1"], stdin=bytes(1 << 20), limit_s=20)
    assert done.ok
    done = command.run_command(["sleep", "60"], stdin=bytes(1 << 20), limit_s=0.3)
    assert done.timed_out


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["/absent/program"], 127),
        (["mpigraft-no-such-program"], 127),
        (["/etc"], 126),
        (["/etc/passwd"], 126),
        (["echo", "a\0b"], 126),
    ],
)
def test_what_cannot_start_is_a_code_and_a_reason(argv: list[str], code: int) -> None:
    done = command.run_command(argv)
    assert done.code == code
    assert done.stderr
    assert not done.ok


def test_words_may_be_paths_and_are_echoed_as_a_shell_would_take_them() -> None:
    lines: list[str] = []
    command.echo_to(lines.append)
    command.run_command([Path("/bin/echo"), "two words", "$HOME"])
    assert lines == ["/bin/echo 'two words' '$HOME'"]


def test_the_clock_stops_when_the_program_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ending what it left behind is not the program's time."""
    clock = [100.0]
    end_tree = command.end_tree

    def slow(child: subprocess.Popen[bytes]) -> None:
        clock[0] += 50
        end_tree(child)

    monkeypatch.setattr(command, "end_tree", slow)
    now = time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock[0] + now())
    assert command.run_command(["true"]).wall_s < 50


def test_a_helper_of_srun_outlives_it(tmp_path: Path) -> None:
    """Killed along with srun, it could not have Slurm end the step on other nodes."""
    program, note = srun(tmp_path)
    with subprocess.Popen([program], start_new_session=True) as child:
        while not (tmp_path / "ready").exists():
            assert child.poll() is None
            time.sleep(0.02)
        command.end_tree(child)
    assert child.returncode == -signal.SIGKILL
    assert note.read_text() == "step ended\n"


# ------------------------------------------------------------------ output


def test_a_flood_is_kept_to_its_bound_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_OUTPUT", 100_000)
    done = python("import sys\nfor _ in range(3000): sys.stdout.write('x' * 1000)")
    assert done.ok
    assert len(done.stdout) == 100_000
    assert done.dropped == 2_900_000


def test_a_flood_on_both_streams_does_not_block() -> None:
    source = """
import os, threading
def flood(fd):
    for _ in range(200): os.write(fd, b'y' * 10_000)
threads = [threading.Thread(target=flood, args=(fd,)) for fd in (1, 2)]
[t.start() for t in threads]; [t.join() for t in threads]
"""
    done = python(source)
    assert (len(done.stdout), len(done.stderr)) == (2_000_000, 2_000_000)


def test_nuls_and_broken_text_are_kept_as_bytes_and_shown_as_escapes() -> None:
    done = python(r"import os; os.write(1, b'a\0b\xff\x1b[2Jc\r\n\td\x7f')")
    assert done.stdout == b"a\0b\xff\x1b[2Jc\r\n\td\x7f"
    assert done.text() == "a\\x00b\\xff\\x1b[2Jc\n\td\\x7f"


@given(data=st.binary(max_size=200))
def test_clean_text_can_neither_hide_nor_move_a_cursor(data: bytes) -> None:
    text = clean(data)
    assert all(c in "\n\t" or c.isprintable() for c in text)
    if data.isascii() and data.decode().isprintable():
        assert text == data.decode()


# ------------------------------------------------------------------ nothing is left

# Starts `count` processes that each leave the group, the session and their parent; each says so.
STRAY = """
import os, pathlib, signal, time
for _ in range({count}):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
            for fd in (0, 1, 2):
                os.close(fd)
            pathlib.Path('{folder}', str(os.getpid())).touch()
            time.sleep(600)
        os._exit(0)
while len(os.listdir('{folder}')) < {count}:
    time.sleep(0.01)
{last}
"""


@pytest.mark.parametrize(
    ("last", "check"),
    [
        ("os._exit(0)", lambda done: done.ok),
        ("os._exit(7)", lambda done: done.code == 7),
        ("os.kill(os.getpid(), 9)", lambda done: done.code == -9),
        ("time.sleep(600)", lambda done: done.timed_out),
        (
            "signal.signal(15, signal.SIG_IGN)\nwhile True: time.sleep(600)",
            lambda done: done.timed_out and done.code == -9,
        ),
    ],
)
def test_daemons_are_ended_however_the_program_ends(
    last: str, check: Callable[[command.Completed], bool], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(command, "GRACE_S", 0.3)
    done = python(STRAY.format(folder=tmp_path, count=3, last=last), limit_s=3.0)
    assert check(done), done
    started = pids(tmp_path, 3)
    assert not [pid for pid in started if alive(pid)]
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()], "a zombie is left"


def test_a_limit_gives_a_program_the_chance_to_end(tmp_path: Path) -> None:
    source = """
import pathlib, signal, sys, time
def end(*_):
    pathlib.Path({path!r}).write_text('ended'); sys.exit(0)
signal.signal(signal.SIGTERM, end)
print('ready', flush=True)
time.sleep(600)
"""
    path = str(tmp_path / "said")
    done = python(source.format(path=path), limit_s=2.0)
    assert done.timed_out
    assert not done.ok
    assert done.stdout == b"ready\n"
    assert Path(path).read_text() == "ended"


def test_one_that_starts_others_while_it_is_ended_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A launcher that starts its ranks anew when they die."""
    monkeypatch.setattr(command, "GRACE_S", 0.3)
    source = f"""
import os, pathlib, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for _ in range(30):
    if os.fork() == 0:
        os.setsid()
        pathlib.Path('{tmp_path}', str(os.getpid())).touch()
        time.sleep(600)
        os._exit(0)
    time.sleep(0.05)
time.sleep(600)
"""
    done = python(source, limit_s=1.0)
    assert done.timed_out
    assert not [pid for pid in pids(tmp_path, 1) if alive(pid)]


def test_processes_of_others_are_left_alone() -> None:
    """Neither those of this process's other code, nor those of a session of their own."""
    other = subprocess.Popen(["sleep", "600"])
    own_session = subprocess.Popen(["sleep", "600"], start_new_session=True)
    time.sleep(0.05)  # a tick of the clock by which the kernel dates processes
    try:
        assert command.run_command(["true"]).ok
        assert command.run_command(["sleep", "60"], limit_s=0.1).timed_out
        assert other.poll() is None
        assert own_session.poll() is None
    finally:
        for child in (other, own_session):
            child.kill()
            child.wait()


def test_what_other_code_starts_meanwhile_is_left_alone(tmp_path: Path) -> None:
    """It is born during the run, but in this process's own session."""
    gate = tmp_path / "gate"
    wait = f"while [ ! -e {gate} ]; do sleep 0.02; done"
    thread = threading.Thread(target=lambda: command.run_command(["sh", "-c", wait]))
    thread.start()
    while not command._runs.active:
        time.sleep(0.01)
    time.sleep(0.05)
    other = subprocess.Popen(["sleep", "600"])
    try:
        gate.touch()
        thread.join()
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_an_empty_list_is_looked_at_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel's list of children may lack one while others of it end."""
    lists = iter([[11], [], [12], [], []])
    ended: list[int] = []
    monkeypatch.setattr(command, "_living", lambda _: next(lists))
    monkeypatch.setattr(command, "_signal", lambda found, _: ended.extend(found))
    assert command.run_command(["true"]).ok
    assert ended == [11, 12]


def test_runs_at_the_same_time_do_not_end_each_other(tmp_path: Path) -> None:
    results: list[command.Completed] = []

    def one(number: int) -> None:
        for _ in range(5):
            results.append(command.run_command(["sh", "-c", f"sleep 0.0{number}; echo {number}"]))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(1, 7)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 30
    assert all(done.ok and done.stdout for done in results)


def test_an_interrupt_ends_the_program_and_goes_on(tmp_path: Path) -> None:
    """In a process of its own, since an interrupt of this one would end the tests."""
    stray = STRAY.format(folder=tmp_path, count=1, last="time.sleep(600)")
    source = f"""
import os, signal, sys, threading, time
sys.path[:0] = {sys.path!r}
from mpigraft.core.process import run_command
def interrupt():
    while not os.listdir({str(tmp_path)!r}): time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)
threading.Thread(target=interrupt).start()
try:
    run_command([sys.executable, '-c', {stray!r}])
except KeyboardInterrupt:
    print('interrupted')
"""
    done = python(source)
    assert done.stdout == b"interrupted\n", done.text()
    assert not [pid for pid in pids(tmp_path, 1) if alive(pid)]


def test_a_pipe_that_outlives_its_program_does_not_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Daemons keep the pipe open; they are ended, so it closes."""
    done = command.run_command(["sh", "-c", "sleep 600 & echo said"])
    assert done.ok
    assert done.stdout == b"said\n"


@pytest.mark.parametrize("way", ["pidfd", "children"])
def test_old_kernels_do_without(way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pidfd before Linux 5.3, no list of children where the kernel was built without it."""
    if way == "pidfd":

        def no_such_call(*_: object) -> int:
            raise OSError(38, "Function not implemented")

        monkeypatch.setattr(os, "pidfd_open", no_such_call)
    else:
        monkeypatch.setattr(command, "_listed_children", lambda _: None)
    assert python("print('out')").stdout == b"out\n"
    done = python(STRAY.format(folder=tmp_path, count=2, last="os._exit(0)"))
    assert done.ok
    assert not [pid for pid in pids(tmp_path, 2) if alive(pid)]
    assert command.run_command(["sleep", "60"], limit_s=0.2).timed_out


def test_a_thread_that_ended_meanwhile_is_no_old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of output that ended just then made all of /proc be read: 71 files for none."""
    tasks = Path(f"/proc/{os.getpid()}/task")
    listed = [*tasks.iterdir(), tasks / "4194305"]  # above the most that a pid can be
    monkeypatch.setattr(Path, "iterdir", lambda _: iter(listed))
    with subprocess.Popen(["sleep", "60"]) as child:
        assert child.pid in (command._listed_children(os.getpid()) or ())
        child.kill()


def test_a_kernel_without_lists_of_children_gives_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Path, "iterdir", lambda _: iter([tmp_path]))  # a thread without that file
    assert command._listed_children(os.getpid()) is None


def test_a_process_that_is_gone_has_no_children() -> None:
    assert command._listed_children(4194305) == []
