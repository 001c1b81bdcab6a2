"""mpigraft-stdin hands its standard input to ranks, of this node and of others."""

from __future__ import annotations

import hashlib
import os
import pty
import signal
import socket
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from mpigraft.native.programs import GPU_SELECT, STDIN
from tests.native.native_world import compile_program

Pair = tuple[Path, Path]  # server, mpigraft-gpu-select
SUM = ("md5sum",)
NOTHING = hashlib.md5(b"").hexdigest()


@pytest.fixture(scope="module", params=["prebuilt", "sanitized"])
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    if request.param == "prebuilt":
        programs: Path = request.getfixturevalue("programs")
        return programs / STDIN, programs / GPU_SELECT
    folder = tmp_path_factory.mktemp("stdin")
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    return (
        compile_program(STDIN, folder / "stdin", *flags),
        compile_program(GPU_SELECT, folder / "gpu_select", *flags),
    )


@contextmanager
def served(
    pair: Pair, folder: Path, stdin: IO[bytes] | int, *words: object, far: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """The server; `far`: as a rank of another node would see it, without the socket of this one."""
    where = "far" if far else "near"
    argv = [*map(str, (pair[0], folder, *words, where))]
    with subprocess.Popen(argv, stdin=stdin, stdout=subprocess.PIPE) as process:
        assert process.stdout
        assert process.stdout.read() == b"ready\n"
        told = folder / "stdin"
        if far:
            lines = told.read_text().splitlines(keepends=True)
            told.write_text("".join(line for line in lines if not line.startswith("unix")))
        try:
            yield process
        finally:
            process.terminate()
            assert process.wait(30) == 0
            told.unlink(missing_ok=True)


def rank(pair: Pair, folder: Path, number: int, whose: str, *program: str) -> subprocess.Popen[str]:
    argv = [pair[1], "--stdin", whose, "--world", "W", "--folder", folder, "--", *program]
    env = {"PATH": "/usr/bin:/bin", "W": str(number)}
    return subprocess.Popen([*map(str, argv)], env=env, stdout=subprocess.PIPE, text=True)


def read_by(
    pair: Pair, folder: Path, whose: str = "0", program: tuple[str, ...] = SUM, ranks: int = 2
) -> list[str]:
    """What each rank prints of what it reads, up to a blank."""
    started = [rank(pair, folder, number, whose, *program) for number in range(ranks)]
    said = [process.communicate(timeout=60)[0].split() for process in started]
    return [words[0] if words else "" for words in said]


def content(size: int) -> bytes:
    return os.urandom(size)


def digest(data: bytes) -> str:
    return hashlib.md5(data).hexdigest()


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("kind", ["file", "deleted", "pipe"])
@pytest.mark.parametrize("size", [0, 400, 229_000, 9_000_000])
def test_the_first_rank_gets_all_of_it_and_others_nothing(
    pair: Pair, tmp_path: Path, size: int, kind: str, far: bool
) -> None:
    data = content(size)
    path = tmp_path / "data"
    path.write_bytes(data)
    if kind == "pipe":
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            assert cat.stdout
            with served(pair, tmp_path, cat.stdout, 0, 2, far=far):
                assert read_by(pair, tmp_path) == [digest(data), NOTHING]
        return
    with path.open("rb") as file:
        if kind == "deleted":
            path.unlink()
        with served(pair, tmp_path, file, 0, 2, far=far):
            assert read_by(pair, tmp_path) == [digest(data), NOTHING]
        assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == size


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("kind", ["file", "pipe"])
def test_every_rank_may_get_all_of_it(pair: Pair, tmp_path: Path, kind: str, far: bool) -> None:
    data = content(300_000)
    (tmp_path / "data").write_bytes(b"before" + data)
    with (tmp_path / "data").open("rb", buffering=0) as file:
        file.read(6)
        stdin: IO[bytes] = file
        cat = None
        if kind == "pipe":
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
            assert cat.stdout
            stdin = cat.stdout
        with served(pair, tmp_path, stdin, "all", 3, far=far):
            assert read_by(pair, tmp_path, "all", ranks=3) == [digest(data)] * 3
        if cat:
            cat.communicate()
        else:
            assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == 6


@pytest.mark.parametrize("far", [False, True], ids=["near", "far"])
@pytest.mark.parametrize("count", [0, 7, 5000])
def test_what_is_left_of_a_file_is_there_for_the_next(
    pair: Pair, tmp_path: Path, far: bool, count: int
) -> None:
    (tmp_path / "data").write_bytes(content(600_000))
    take = ("dd", "bs=1", f"count={count}", "of=/dev/null", "status=none")
    with (tmp_path / "data").open("rb") as file:
        for turn in (1, 2):
            with served(pair, tmp_path, file, 0, 1, far=far):
                assert read_by(pair, tmp_path, program=take, ranks=1) == [""]
            assert os.lseek(file.fileno(), 0, os.SEEK_CUR) == turn * count


def test_nothing_is_read_of_a_pipe_that_no_rank_reads(pair: Pair, tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    os.write(theirs, b"all of it")
    with served(pair, tmp_path, ours, 0, 1):
        assert read_by(pair, tmp_path, program=("true",), ranks=1) == [""]
    assert os.read(ours, 100) == b"all of it"
    os.close(ours)
    os.close(theirs)


def test_a_terminal_is_read_in_its_stead(pair: Pair, tmp_path: Path) -> None:
    main, terminal = pty.openpty()
    with served(pair, tmp_path, terminal, 0, 1):
        started = rank(pair, tmp_path, 0, "0", "sh", "-c", "test -t 0 || cat -n")
        os.write(main, b"one\n")
        os.write(main, b"two\n\x04")
        assert started.communicate(timeout=60)[0].split() == ["1", "one", "2", "two"]
    os.close(main)
    os.close(terminal)


def test_a_terminal_in_the_background_stops_nobody(pair: Pair, tmp_path: Path) -> None:
    """A session of its own with the server in its background: no SIGTTIN, and no byte is taken."""
    main, terminal = pty.openpty()
    script = (
        "import os, signal, subprocess, sys, termios, fcntl, time\n"
        "os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
        "server = subprocess.Popen(sys.argv[1:4] + ['1', 'near'], process_group=0,\n"
        "    stdout=subprocess.PIPE)\n"
        "assert server.stdout.read() == b'ready\\n'\n"
        "reader = subprocess.Popen(sys.argv[4:], stdout=subprocess.PIPE, process_group=0,\n"
        "    env={'PATH': '/usr/bin:/bin', 'W': '0'})\n"
        "os.write(3, b'x'); os.read(4, 1)\n"  # typed: the reader must not have it
        "time.sleep(0.5)\n"
        "assert server.poll() is None and reader.poll() is None\n"
        "state = open(f'/proc/{server.pid}/stat').read().rpartition(')')[2].split()[0]\n"
        "assert state == 'S', state\n"
        "signal.signal(signal.SIGTTOU, signal.SIG_IGN)\n"
        "os.tcsetpgrp(0, server.pid)\n"  # fg
        "print(reader.communicate()[0])\n"
        "server.terminate(); server.wait()\n"
    )
    asks, asked = os.pipe()
    answers, answered = os.pipe()
    attributes = termios.tcgetattr(terminal)
    argv = ["python3", "-c", script, pair[0], tmp_path, "0", pair[1], "--stdin", "0", "--world",
            "W", "--folder", tmp_path, "--", "head", "-1"]  # fmt: skip
    shell = f'exec 3>&{asked} 4<&{answers}; exec "$@"'
    with subprocess.Popen(
        ["bash", "-c", shell, "sh", *map(str, argv)], stdin=terminal, stdout=subprocess.PIPE,
        pass_fds=(asked, answers),
    ) as process:  # fmt: skip
        assert os.read(asks, 1) == b"x"
        os.write(main, b"typed\n")
        os.write(answered, b"y")
        assert process.communicate(timeout=60)[0] == b"b'typed\\n'\n"
    assert termios.tcgetattr(terminal) == attributes
    for fd in (main, terminal, asks, asked, answers, answered):
        os.close(fd)


def refused(stranger: socket.socket) -> bool:
    try:
        return stranger.recv(100) == b""
    except ConnectionResetError:
        return True


def test_strangers_get_nothing(pair: Pair, tmp_path: Path) -> None:
    """Over the network only who knows the token is fed, and a rank asks nobody who does not."""
    (tmp_path / "data").write_bytes(b"secret")
    with (tmp_path / "data").open("rb") as file, served(pair, tmp_path, file, 0, 1, far=True):
        told = (tmp_path / "stdin").read_text()
        assert (tmp_path / "stdin").stat().st_mode & 0o777 == 0o600
        address, port = next(line.split()[1:] for line in told.splitlines() if "tcp" in line)
        for word in (b"0" * 16, b"x"):
            with socket.create_connection((address, int(port))) as stranger:
                assert len(stranger.recv(100)) == 16
                stranger.sendall(word + b"\0\0\0\x40" + b"\0" * 20)
                assert refused(stranger)
        assert read_by(pair, tmp_path, program=("cat",), ranks=1) == ["secret"]
    with socket.create_server(("127.0.0.1", 0)) as liar:
        port = str(liar.getsockname()[1])
        (tmp_path / "stdin").write_text(
            f"token {'a' * 16} {'b' * 16}\ntcp 127.0.0.1 {port}\ntcp 127.0.0.1 1\n"
        )
        started = rank(pair, tmp_path, 0, "0", "cat")
        connection, _ = liar.accept()
        connection.sendall(b"c" * 16)
        assert connection.recv(100) == b""
        assert started.wait(30) == 2
        started.communicate()
        connection.close()


def test_a_descriptor_that_cannot_be_read_is_no_input(pair: Pair, tmp_path: Path) -> None:
    """nohup leaves /dev/null opened for writing."""
    with (tmp_path / "data").open("wb") as file, served(pair, tmp_path, file, 0, 1):
        assert not (tmp_path / "stdin").exists()
        assert read_by(pair, tmp_path, ranks=1) == [NOTHING]


def test_signals_of_the_terminal_are_for_the_job(pair: Pair, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"here")
    with (tmp_path / "data").open("rb") as file, served(pair, tmp_path, file, 0, 1) as server:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP, signal.SIGUSR1):
            server.send_signal(number)
        assert read_by(pair, tmp_path, program=("cat",), ranks=1) == ["here"]


@pytest.mark.parametrize(
    "words", [(), ("/", "0", "1"), ("/", "1", "1", "near"), ("/", "0", "0", "near"),
              ("/", "0", "1x", "near"), ("/", "0", "1", "off")]
)  # fmt: skip
def test_bad_words_are_refused(pair: Pair, words: tuple[str, ...]) -> None:
    done = subprocess.run([pair[0], *words], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("usage:")


def test_a_folder_that_is_not_there_is_told(pair: Pair, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with (tmp_path / "data").open("w+b") as file:
        done = subprocess.run(
            [pair[0], gone, "0", "1", "near"], stdin=file, capture_output=True, text=True
        )
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{gone}/.stdin: No such file" in done.stderr
