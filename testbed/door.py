"""Starts a command in a node of a cluster, with the caller's own input and output.

The door is a socket of the cluster's keeper, a file that the host and every node see: a process
in one node can enter another this way, which the kernel alone does not allow between two process
namespaces. The command lives at most as long as its caller, who may pass signals to it.

As a script, on the standard library alone:

    door.py exec SOCKET NODE DIRECTORY PROGRAM WORDS...   the caller's environment
    door.py ssh SOCKET [OPTIONS] HOST WORDS...            a login's environment, as ssh has it
"""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

LENGTH = struct.Struct("!I")
PASSED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1,
          signal.SIGUSR2)  # fmt: skip
WITH_VALUE = set("BbcDEeFIiJLlmOopQRSWw")  # options of ssh that a word follows
LOST = 255  # how ssh ends when the other side is gone

Request = Mapping[str, object]


def ask(door: Path, request: Request, files: Sequence[int] = (0, 1, 2)) -> socket.socket:
    """Send a request; what comes back is the connection, on which the answer will stand.

    The folder is opened first, as the path of a socket may be 107 bytes long and no more.
    """
    connection = socket.socket(socket.AF_UNIX)
    folder = os.open(door.parent, os.O_PATH)
    try:
        connection.connect(f"/proc/self/fd/{folder}/{door.name}")
        data = json.dumps(request).encode()
        socket.send_fds(connection, [LENGTH.pack(len(data))], files)
        connection.sendall(data)
    except OSError:
        connection.close()
        raise
    finally:
        os.close(folder)
    return connection


def answer(connection: socket.socket) -> dict[str, object]:
    """Wait for the answer: {"code": exit code, or minus the signal}, or {"error": why}."""
    told = bytearray()
    while block := connection.recv(1 << 16):
        told += block
    if not told:
        return {"error": "the cluster went down"}
    loaded: dict[str, object] = json.loads(told)
    return loaded


def receive(connection: socket.socket) -> tuple[dict[str, object], list[int]]:
    """The other end of `ask`: the request and the files that came with it."""
    head, files, _, _ = socket.recv_fds(connection, LENGTH.size, 8)
    while len(head) < LENGTH.size:
        head += _some(connection, LENGTH.size - len(head))
    data = bytearray()
    (size,) = LENGTH.unpack(head)
    while len(data) < size:
        data += _some(connection, size - len(data))
    request: dict[str, object] = json.loads(data)
    return request, files


def _some(connection: socket.socket, size: int) -> bytes:
    if block := connection.recv(min(size, 1 << 16)):
        return block
    raise EOFError("the caller went away")


def ssh_words(words: Sequence[str]) -> tuple[str, list[str]]:
    """Host and command of a call of ssh: options stand before the host or after it."""
    host, rest = "", list(words)
    while rest:
        word = rest.pop(0)
        if word == "--" or not word.startswith("-"):
            if host and word != "--":
                return host, [word, *rest]
            if host:
                return host, rest
            host = (rest.pop(0) if word == "--" and rest else word).rpartition("@")[2]
        elif _takes_next(word) and rest:
            rest.pop(0)
    return host, rest


def _takes_next(word: str) -> bool:
    """Whether the value of an option is the next word: `-p 22`, not `-p22`, not `-xq`."""
    for place, letter in enumerate(word[1:], 2):
        if letter in WITH_VALUE:
            return place == len(word)
    return False


def _wait(connection: socket.socket, *, passing: bool) -> int:
    """How the command ended. Where signals are not passed on they end this process, and the
    keeper then ends the command, as the connection is gone."""
    for number in PASSED:
        signal.signal(number, signal.SIG_DFL)
        if passing:
            signal.signal(number, lambda got, _: connection.sendall(bytes([got])))
    told = answer(connection)
    if "error" in told:
        sys.stderr.write(f"{told['error']}\n")
        return LOST
    return int(str(told["code"]))


def _end(code: int) -> None:
    """End as the command did: by the same signal, if it was one."""
    if code < 0:
        if code != -signal.SIGKILL:
            signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    os._exit(code & 0xFF)


def _environ() -> dict[str, str]:
    """As the caller made it: Python adds LC_CTYPE to its own where the locale is C."""
    rows = Path("/proc/self/environ").read_bytes().split(b"\0")
    return dict(os.fsdecode(row).split("=", 1) for row in rows if b"=" in row)


def main(words: list[str]) -> None:
    mode, door, *rest = words
    if mode == "exec":
        node, directory, *argv = rest
        request = {"do": "exec", "node": node, "argv": argv, "env": _environ(),
                   "cwd": directory}  # fmt: skip
        _end(_wait(ask(Path(door), request), passing=True))
    host, command = ssh_words(rest)
    if not command:
        sys.stderr.write("ssh stand-in: a host and a command are wanted\n")
        os._exit(LOST)
    code = _wait(ask(Path(door), {"do": "ssh", "node": host, "line": " ".join(command)}),
                 passing=False)  # fmt: skip
    os._exit(LOST if code < 0 else code)


if __name__ == "__main__":
    main(sys.argv[1:])
