"""mpigraft-relay brings each signal to the program once, whatever the engine does with it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from mpigraft.native.programs import RELAY, SOURCES
from tests.native.native_world import compile_c
from tests.native.test_guard import SANITIZED, WAIT_S, alive, until
from tests.readable import readable

# It prints each signal that it gets, and ends with SIGTERM; a second one of it would be lost.
PROGRAM = """
import os, signal, sys
numbers = {1, 2, 10, 12, 15, 18, 20, 23, 28}
signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ()) - numbers
group = os.environ.get("MPIGRAFT_RELAY")
print("ready", os.getpid(), os.getpgrp(), len(blocked), group, flush=True)
while True:
    number = signal.sigwaitinfo(numbers).si_signo
    os.write(1, f"{number}\\n".encode())  # whole, whatever else writes to this pipe
    if number == 15:
        sys.exit(7)
"""
MORTAL = ("sh", "-c", '"$@"; exit $?', "sh")  # an engine that dies of signals, as bubblewrap
# One that passes them on, as Apptainer does.
FORWARDING = (
    sys.executable,
    "-c",
    "import os, signal, subprocess, sys\n"
    "numbers = {1, 2, 10, 12, 15, 18, 20, 23, 28}\n"
    "child = subprocess.Popen(sys.argv[1:])\n"
    "for n in numbers: signal.signal(n, lambda n, _: os.kill(child.pid, n))\n"
    "signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)\n"
    "sys.exit(child.wait())",
)
ENGINES = {"mortal": MORTAL, "forwarding": FORWARDING}
SENT = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGTSTP, signal.SIGCONT, signal.SIGHUP,
        signal.SIGINT, signal.SIGURG, signal.SIGWINCH, signal.SIGUSR1)  # fmt: skip


@pytest.fixture(
    scope="module", params=["prebuilt", pytest.param("sanitized", marks=pytest.mark.long)]
)
def relay(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    if request.param == "prebuilt":
        programs: Path = request.getfixturevalue("programs")
        return str(programs / RELAY)
    return str(
        compile_c(SOURCES / "start/relay.c", tmp_path_factory.mktemp("relay") / "r", *SANITIZED)
    )


@pytest.fixture
def started() -> Iterator[list[subprocess.Popen[str]]]:
    """Each leads a group of its own, as a launcher's ranks do."""
    children: list[subprocess.Popen[str]] = []
    yield children
    for one in children:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(one.pid, signal.SIGKILL)
        one.communicate()


def words(relay: str, engine: tuple[str, ...], *program: str) -> list[str]:
    return [relay, "--", *engine, relay, "--inside", "--", *program]


def start(
    started: list[subprocess.Popen[str]], relay: str, engine: tuple[str, ...], *program: str
) -> subprocess.Popen[str]:
    rank = subprocess.Popen(
        words(relay, engine, *program), stdout=subprocess.PIPE, text=True, process_group=0
    )
    started.append(rank)
    return rank


def line(rank: subprocess.Popen[str]) -> str:
    """The next line, by bytes: what a buffer holds `poll` does not know of."""
    assert rank.stdout is not None
    text = b""
    while not text.endswith(b"\n"):
        assert readable(rank.stdout, wait_s=WAIT_S), f"silent after {text!r}"
        byte = os.read(rank.stdout.fileno(), 1)
        if not byte:
            break
        text += byte
    return text.decode().strip()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["to the group", "to the child"])
def test_each_signal_arrives_once(
    started: list[subprocess.Popen[str]], relay: str, engine: str, send: object
) -> None:
    assert callable(send)
    rank = start(started, relay, ENGINES[engine], sys.executable, "-c", PROGRAM)
    _, _, group, blocked, variable = line(rank).split()
    assert (int(group), blocked, variable) == (rank.pid, "0", "None")
    for number in SENT:
        send(rank.pid, number)
        assert line(rank) == str(int(number))
    send(rank.pid, signal.SIGTERM)
    assert rank.communicate(timeout=WAIT_S)[0] == "15\n"
    assert rank.returncode == 7


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["to the group", "to the child"])
def test_many_arrive_once_each_on_a_busy_machine(
    started: list[subprocess.Popen[str]], relay: str, send: object
) -> None:
    assert callable(send)
    rank = start(started, relay, MORTAL, sys.executable, "-c", PROGRAM)
    line(rank)
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(4)]
    try:
        for _ in range(20):
            send(rank.pid, signal.SIGUSR1)
            assert line(rank) == "10"
    finally:
        for one in busy:
            one.kill()
            one.wait()
    send(rank.pid, signal.SIGTERM)
    assert rank.communicate(timeout=WAIT_S)[0] == "15\n"


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["to the group", "to the child"])
def test_a_signal_to_the_child_alone_leaves_the_programs_children_alone(
    started: list[subprocess.Popen[str]], relay: str, send: object
) -> None:
    """Slurm's proctrack/cgroup signals the tasks that it started, and nothing below them."""
    assert callable(send)
    script = "trap 'echo 0' USR1; \"$@\" & wait; wait; wait"
    rank = start(started, relay, MORTAL, "sh", "-c", script, "sh", sys.executable, "-c", PROGRAM)
    inner = int(line(rank).split()[1])
    send(rank.pid, signal.SIGUSR1)
    got = {line(rank) for _ in range(2 if send is os.killpg else 1)}
    assert got == ({"0", "10"} if send is os.killpg else {"0"})
    os.kill(inner, signal.SIGTERM)
    assert rank.communicate(timeout=WAIT_S)[0] == "15\n"


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["to the group", "to the child"])
def test_a_signal_before_the_program_is_there_waits_for_it(
    started: list[subprocess.Popen[str]], relay: str, tmp_path: Path, send: object
) -> None:
    assert callable(send)
    ready, go = tmp_path / "ready", tmp_path / "go"
    slow = f'touch {ready}; until [ -e {go} ]; do sleep 0.02; done; "$@"; exit $?'
    rank = start(started, relay, ("sh", "-c", slow, "sh"), "sleep", "60")
    assert until(ready.exists)
    send(rank.pid, signal.SIGTERM)
    go.touch()
    assert rank.wait(WAIT_S) == 128 + signal.SIGTERM  # as the shell tells of its child


@pytest.mark.parametrize("send", [os.killpg, os.kill], ids=["the group", "the child"])
def test_nothing_is_left_of_what_is_killed(
    started: list[subprocess.Popen[str]], relay: str, send: object
) -> None:
    """bubblewrap's --die-with-parent and Apptainer end the program with the engine; the stand-in
    does not, so it is looked for the engine where only that was killed."""
    assert callable(send)
    script = "echo $PPID; sleep 60 & echo $!; echo $$; wait"
    rank = start(started, relay, MORTAL, "sh", "-c", script)
    engine, below, program = (int(line(rank)) for _ in range(3))
    send(rank.pid, signal.SIGKILL)
    assert rank.wait(WAIT_S) == -signal.SIGKILL
    assert until(lambda: not alive(engine))
    if send is os.killpg:
        assert until(lambda: not alive(below) and not alive(program))
    for pid in (below, program):
        if alive(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("code", [0, 3, 255])
def test_the_exit_code_is_the_engines(relay: str, code: int) -> None:
    argv = words(relay, MORTAL, "sh", "-c", f"exit {code}")
    assert subprocess.run(argv, timeout=WAIT_S).returncode == code


def test_an_engine_that_a_signal_ends_is_told_by_that_signal(relay: str) -> None:
    argv = [relay, "--", "sh", "-c", "ulimit -c 0; kill -SEGV $$"]
    assert subprocess.run(argv, timeout=WAIT_S).returncode == -signal.SIGSEGV


def test_streams_end_with_the_program(started: list[subprocess.Popen[str]], relay: str) -> None:
    """A launcher that reads a rank's output sees its end as early as without a relay."""
    argv = words(relay, (), "sh", "-c", "echo out; exec >&-; read x; exit 4")
    pipe = subprocess.PIPE
    rank = subprocess.Popen(argv, stdin=pipe, stdout=pipe, text=True, process_group=0)
    started.append(rank)
    assert [line(rank), line(rank)] == ["out", ""]
    assert rank.poll() is None
    rank.communicate("\n", timeout=WAIT_S)
    assert rank.returncode == 4


def test_the_launchers_connection_lasts_as_long_as_its_child(
    started: list[subprocess.Popen[str]], relay: str
) -> None:
    """hydra kills a child that is there after its connection ended without a word of PMI."""
    launcher, rank_end = socket.socketpair()
    with launcher, rank_end:
        fd = str(rank_end.fileno())
        # The engine stays for a while after the program has ended.
        after = f"code=$?; exec {fd}>&-; echo ended; read x; exit $code"
        engine = ("bash", "-c", f'"$@"; {after}', "sh")
        rank = subprocess.Popen(
            words(relay, engine, "sh", "-c", "exit 3"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            process_group=0,
            pass_fds=(rank_end.fileno(),),
            env=os.environ | {"PMI_FD": fd},
        )
        started.append(rank)
        rank_end.close()
        assert line(rank) == "ended"
        with pytest.raises(BlockingIOError):
            launcher.recv(1, socket.MSG_DONTWAIT)
        rank.communicate("\n", timeout=WAIT_S)
        assert rank.returncode == 3
        assert launcher.recv(1) == b""


def test_programs_that_cannot_start(relay: str, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("no program", encoding="ascii")
    for name, code in ((str(tmp_path / "none"), 127), (str(plain), 126)):
        for argv in ([relay, "--", name], words(relay, MORTAL, name)):
            done = subprocess.run(argv, capture_output=True, text=True, timeout=WAIT_S)
            assert done.returncode == code
            assert f"mpigraft-relay: {name}: " in done.stderr


@pytest.mark.parametrize(
    "text", [None, "", "x", "0 1", "1 12", "12x", "5 6 7", "999999999 999999999"]
)
def test_a_group_that_cannot_be_joined_is_told_and_the_program_runs(
    relay: str, text: str | None
) -> None:
    given = {"PATH": os.environ["PATH"]} | ({} if text is None else {"MPIGRAFT_RELAY": text})
    argv = [relay, "--inside", "--", "sh", "-c", 'echo "${MPIGRAFT_RELAY-none}"']
    done = subprocess.run(argv, env=given, capture_output=True, text=True, timeout=WAIT_S)
    assert (done.returncode, done.stdout) == (0, "none\n")
    assert "signals of the launcher may not arrive" in done.stderr


BAD = ((), ("--",), ("true",), ("--inside",), ("--inside", "--"), ("--inside", "true"),
       ("--other", "--", "true"))  # fmt: skip


@pytest.mark.parametrize("arguments", BAD, ids=" ".join)
def test_wrong_usage(relay: str, arguments: tuple[str, ...]) -> None:
    done = subprocess.run([relay, *arguments], capture_output=True, text=True, timeout=WAIT_S)
    assert done.returncode == 2
    assert "usage: mpigraft-relay" in done.stderr


def test_waiting_costs_no_time(started: list[subprocess.Popen[str]], relay: str) -> None:
    """It sleeps in the kernel until a signal comes: no tick disturbs who computes."""
    rank = start(started, relay, MORTAL, sys.executable, "-c", PROGRAM)
    line(rank)

    def switches() -> int:
        text = Path(f"/proc/{rank.pid}/status").read_text()
        return sum(int(x.split()[1]) for x in text.splitlines() if "ctxt_switches" in x)

    assert until(lambda: Path(f"/proc/{rank.pid}/stat").read_text().split()[2] == "S")
    before = switches()
    time.sleep(0.5)
    assert switches() == before
