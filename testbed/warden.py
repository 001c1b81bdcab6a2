"""One request at the door of a cluster, in a process of its own: mostly one command in a node.

The warden starts the command, passes signals to it, ends it when the caller goes, and tells how
it ended. It stays outside the node; its child is inside.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import signal
import socket
import struct
import time
from collections.abc import Mapping
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from testbed import door
from tests.readable import readable

if TYPE_CHECKING:
    from testbed.keeper import Keeper, Node

# Of the kernel's linux/sched.h: new cgroup, mount, uts, ipc, pid and net namespaces.
SPACES = 0x00020000 | 0x04000000 | 0x08000000 | 0x20000000 | 0x40000000
PR_SET_PDEATHSIG = 1
PEER = struct.Struct("3i")  # process, user and group
GRACE_S = 2.0
HERE = "host"  # the name by which commands of the host itself are started
libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who is at the door, by the kernel's word; commands are run as that user."""

    uid: int
    gid: int

    @classmethod
    def of(cls, connection: socket.socket) -> Caller:
        told = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size)
        _, uid, gid = PEER.unpack(told)
        return cls(uid, gid)

    def login(self, of_root: Mapping[str, str]) -> dict[str, str]:
        """The environment that ssh would give; PATH is the cluster's."""
        if not self.uid:
            return dict(of_root)
        name, home, shell = str(self.uid), "/", ""
        with contextlib.suppress(KeyError):
            name, *_, home, shell = pwd.getpwuid(self.uid)
        own = {"HOME": home, "USER": name, "LOGNAME": name, "SHELL": shell or "/bin/sh"}
        return {**of_root, **own}

    def assume(self) -> None:
        if not self.uid:
            return
        with contextlib.suppress(KeyError):  # a user whom the node does not know
            os.initgroups(pwd.getpwuid(self.uid).pw_name, self.gid)
        os.setgid(self.gid)
        os.setuid(self.uid)


@dataclass(frozen=True, slots=True)
class Command:
    argv: list[str]
    env: dict[str, str]
    cwd: str
    caller: Caller


def serve(keeper: Keeper, connection: socket.socket) -> NoReturn:
    """Answer one request and end."""
    told: dict[str, object] = {"error": "the request went wrong; see the keeper's own error"}
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    try:
        request, files = door.receive(connection)
        told = answer(keeper, request, files, connection)
    except OSError as error:
        told = {"error": str(error)}
    finally:
        with contextlib.suppress(OSError):
            connection.sendall(json.dumps(told).encode())
        os._exit(0)


def answer(
    keeper: Keeper, request: dict[str, object], files: list[int], connection: socket.socket
) -> dict[str, object]:
    name, caller = str(request["node"]), Caller.of(connection)
    match request["do"]:
        case "kill" if caller.uid:
            return {"error": "only root may do that"}
        case "kill":
            return _kill(keeper, name, told=bool(request["told"]))
        case "ssh":
            node = _by_host(keeper, name)
            if node is None:
                return {"error": f"ssh: Could not resolve hostname {name}"}
            login = caller.login(keeper.shape.login)
            argv = [login["SHELL"], "-c", str(request["line"])]
            command = Command(argv, login, login["HOME"], caller)
            return _run(node, command, files, connection)
        case "exec":
            if name != HERE and name not in keeper.nodes:
                return {"error": f"{name}: no such node"}
            words, env = request["argv"], request["env"]
            assert isinstance(words, list)
            assert isinstance(env, dict)
            command = Command(words, env, str(request["cwd"]), caller)
            return _run(keeper.nodes.get(name), command, files, connection)
    return {"error": f"nothing known of {request['do']}"}


def _by_host(keeper: Keeper, host: str) -> Node | None:
    """By name or by address, as far as ssh would get there."""
    subnet, _, last = host.rpartition(".")
    if subnet == f"10.77.{keeper.number}":
        host = f"n{last}"
    return keeper.nodes.get(host)


def _kill(keeper: Keeper, name: str, *, told: bool) -> dict[str, object]:
    assert keeper.switch
    if name not in keeper.nodes:
        return {"error": f"{name}: no such node"}
    if not told:
        keeper.switch.unplug(name)
    keeper.nodes[name].kill()
    return {"code": 0}


def _run(
    node: Node | None, command: Command, files: list[int], connection: socket.socket
) -> dict[str, object]:
    """Run a command to its end, or to its caller's."""
    if node:
        if node.cpuset:
            node.cpuset.take(0)
        if libc.setns(node.handle, SPACES):  # the next child will be in there
            return {"error": f"{node.name} is down"}
    if not (pid := os.fork()):
        _become(command, files)
    for file in files:
        os.close(file)
    signal.signal(signal.SIGTERM, _leave)
    try:
        _attend(pid, connection)
    except InterruptedError:  # the keeper's own end
        _finish(pid)
    _, status = os.waitpid(pid, 0)
    return {"code": os.waitstatus_to_exitcode(status)}


def _leave(_number: int, _frame: FrameType | None) -> None:
    raise InterruptedError


def _become(command: Command, files: list[int]) -> NoReturn:
    """The child: a session of its own, nothing of the keeper left, then the program."""
    try:
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        for number, file in enumerate(files):
            os.dup2(file, number)
        os.closerange(len(files), 1 << 20)
        for ignored in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(ignored, signal.SIG_DFL)
        os.umask(0o022)
        command.caller.assume()
        try:
            os.chdir(command.cwd)
        except OSError:  # a folder that the node does not have
            os.chdir("/")
        os.execvpe(command.argv[0], command.argv, command.env)
    except OSError as error:
        os.write(2, f"{command.argv[0]}: {error.strerror}\n".encode())
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(126)


def _attend(pid: int, connection: socket.socket) -> None:
    """Pass signals on until the command ends; end it when the caller is gone."""
    handle = os.pidfd_open(pid)
    while True:
        ready = readable(handle, connection)
        if handle in ready:
            return
        numbers = b""
        with contextlib.suppress(ConnectionError):
            numbers = connection.recv(64)
        if not numbers:
            _finish(pid)
            return
        for number in numbers:
            _signal(pid, number)


def _finish(pid: int) -> None:
    """SIGTERM, then SIGKILL, to the command and to what stayed in its process group."""
    _signal(pid, signal.SIGTERM)
    handle = os.pidfd_open(pid)
    deadline = time.monotonic() + GRACE_S
    with contextlib.suppress(InterruptedError):
        readable(handle, wait_s=max(0.0, deadline - time.monotonic()))
    _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: int) -> None:
    """The group is named for the command until the command is waited for, so it is no other;
    a command that has just been started may have none yet."""
    for send in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError):
            send(pid, number)
            return
