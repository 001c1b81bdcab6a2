"""The process that keeps a cluster: it makes the nodes, starts commands in them, ends it all.

It lives as long as its standard input is open, so a cluster does not outlive its owner, however
that one ends. Nodes end with their keeper; what joins them is a network namespace that only the
keeper holds, so even when the keeper is killed no link stays, nor a process. The number of the
cluster, hence its subnet and its names, is free again then, and whoever takes it next removes
what is left: empty cpusets.

    python -m testbed.keeper SHAPE     a JSON object, see `Shape`

says {"number": ...} in a line when the cluster is up, or {"error": ...}.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from testbed import warden
from testbed.cpusets import MEMORY, Cpuset, MemoryGroup, cpus
from tests.readable import readable

NODE = Path(__file__).with_name("node")
SPACES = ("--net", "--uts", "--ipc", "--mount", "--pid")
CLONE_NEWNET, CLONE_NEWNS = 0x40000000, 0x00020000
NUMBERS = range(1, 255)
HOST = 254  # the last part of the host's own address
FAKETIME = sorted(Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1"))
libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True, slots=True)
class Shape:
    """What is asked for: see `Cluster`. `login` is the environment of commands started by ssh."""

    folder: str
    nodes: int
    binds: list[str]
    root: str
    shared_tmp: bool
    loopback_hostname: bool
    pin: bool
    clocks: dict[str, str]
    small: str
    hard: bool
    login: dict[str, str]


def take_number() -> tuple[int, socket.socket]:
    """The first number that no living cluster has: a name that the kernel gives to one only and
    takes back when that one dies."""
    used = _said("ip", "-4", "-oneline", "address", "show")
    for number in NUMBERS:
        held = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(OSError):
            held.bind(f"\0mpigraft-cluster-{number}")
            if f" 10.77.{number}." not in used:
                return number, held
        held.close()
    raise OSError("every subnet of 10.77.0.0/16 is taken")


def _said(*argv: str) -> str:
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout


class Switch:
    """What joins the nodes: a bridge in a network namespace of its own, and a link of the host.

    There the bridge needs no name of its own and goes with its holder.
    """

    def __init__(self, number: int) -> None:
        self.link = f"mgc{number}"
        own = os.open("/proc/self/ns/net", os.O_RDONLY)
        if libc.unshare(CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "no network namespace of its own")
        self.space = os.open("/proc/self/ns/net", os.O_RDONLY)
        if libc.setns(own, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "no way back to the host's network")
        os.close(own)
        for name in ("bridge", "second"):
            self.ip("link", "add", name, "type", "bridge")
            self.ip("link", "set", name, "up")
        self.plug("host", os.getpid(), self.link)
        _said("ip", "address", "add", f"10.77.{number}.{HOST}/24", "dev", self.link)
        _said("ip", "link", "set", self.link, "up")

    def ip(self, *words: str) -> None:
        _said("nsenter", f"--net=/proc/{os.getpid()}/fd/{self.space}", "ip", *words)

    def plug(self, port: str, pid: int, link: str, bridge: str = "bridge") -> None:
        """A cable between a port and the namespace of a process."""
        self.ip("link", "add", port, "type", "veth", "peer", "name", link, "netns", str(pid))
        self.ip("link", "set", port, "master", bridge, "up")

    def unplug(self, port: str) -> None:
        self.ip("link", "set", port, "down")

    def close(self) -> None:
        """What is there of it at all: a half-made cluster is taken down too."""
        with contextlib.suppress(OSError):
            _said("ip", "link", "delete", self.link)
        os.close(self.space)


class Node:
    """One node: its first process, by a handle that no other process can get."""

    def __init__(self, name: str, address: str, shape: Shape, cpuset: Cpuset | None) -> None:
        self.name, self.cpuset = name, cpuset
        folder = Path(shape.folder)
        self.errors = folder / "nodes" / name / "errors"
        with self.errors.open("wb") as errors:
            self.outer = self._unshare(name, address, shape, errors)
        if not (pid := self._line()).isdecimal():
            raise OSError(f"{name} has no namespaces of its own: {self.errors.read_text()}")
        self.pid = int(pid)
        self.handle = os.pidfd_open(self.pid)
        if cpuset:
            cpuset.take(self.pid)

    @staticmethod
    def _unshare(name: str, address: str, shape: Shape, errors: IO[bytes]) -> subprocess.Popen[str]:
        folder = Path(shape.folder)
        return subprocess.Popen(
            # What is below ends with what is above: the keeper, unshare, the node.
            ["setpriv", "--pdeathsig", "KILL", "unshare", *SPACES, "--fork", "--kill-child",
             NODE, name, address, folder / "nodes" / name, folder / "slurm",
             "/usr/bin/ssh" if shape.hard else folder / "bin/ssh", shape.root or "/", *shape.binds],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True,
            start_new_session=True,
        )  # fmt: skip

    def _line(self) -> str:
        assert self.outer.stdout
        return self.outer.stdout.readline().strip()

    def boot(self) -> None:
        """The second half of its start, when its cable is in."""
        assert self.outer.stdin
        self.outer.stdin.write("\n")
        self.outer.stdin.close()
        if self._line() != "ready":
            raise OSError(f"{self.name} did not come up: {self.errors.read_text()}")

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        readable(self.handle)  # ends when all of the node's processes have


class Keeper:
    """One cluster, from the first node's start to the last one's end."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.folder = shape, Path(shape.folder)
        self.number, self.held = take_number()
        self.nodes: dict[str, Node] = {}
        self.groups: list[Cpuset | MemoryGroup] = []
        self.wardens: set[int] = set()
        self.switch: Switch | None = None
        self.door = socket.socket(socket.AF_UNIX)

    def start(self) -> None:
        if self.shape.small:
            self._mount_small()
        allowed = cpus() if self.shape.pin else []
        Cpuset.sweep(f"mpigraft-{self.number}-")
        self.switch = Switch(self.number)
        for index in range(self.shape.nodes):
            name, address = f"n{index + 1}", f"10.77.{self.number}.{index + 1}"
            self._lay_out(name)
            cpuset = None
            if allowed:
                own = f"mpigraft-{self.number}-{os.getpid()}-{name}"
                cpuset = Cpuset(own, allowed[index % len(allowed)])
                self.groups.append(cpuset)
            node = self.nodes[name] = Node(name, address, self.shape, cpuset)
            self.switch.plug(name, node.pid, "e0")
            if self.shape.hard:
                self.switch.plug(f"{name}-e1", node.pid, "e1", "second")
        for node in self.nodes.values():
            node.boot()
        with in_folder(self.folder):  # a socket's whole path may be too long
            self.door.bind("door")
            Path("door").chmod(0o666)  # commands are run as the user who asks
        self.door.listen(128)

    def _mount_small(self) -> None:
        """In a mount namespace of the keeper's own, which all nodes are made from."""
        if libc.unshare(CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), "no mount namespace of its own")
        small = str(self.folder / "small")
        _said("mount", "--make-rprivate", "/")
        _said("mount", "-t", "tmpfs", "-o", f"mode=1777,size={self.shape.small}", "tmpfs", small)

    def _lay_out(self, name: str) -> None:
        """The node's own files; what is not shared."""
        folder = self.folder / "nodes" / name
        (folder / "root").mkdir(parents=True)
        if self.shape.shared_tmp:
            (folder / "tmp").symlink_to(self.folder / "tmp")
        else:
            (folder / "tmp").mkdir()
            (folder / "tmp").chmod(0o1777)
        subnet = f"10.77.{self.number}"
        rows = ["127.0.0.1 localhost", f"{subnet}.{HOST} {socket.gethostname()}"]
        for index in range(1, self.shape.nodes + 1):
            own = f"n{index}" == name and self.shape.loopback_hostname
            rows.append(f"{'127.0.1.1' if own else f'{subnet}.{index}'} n{index}")
        (folder / "hosts").write_text("\n".join([*rows, ""]))
        if self.shape.hard:
            (folder / "ssh").symlink_to(self.folder / "ssh")
            (folder / "boot_id").write_text(f"{uuid.uuid4()}\n")
            if os.access(MEMORY, os.W_OK):
                group = MemoryGroup(f"mpigraft-{self.number}-{os.getpid()}-{name}")
                self.groups.append(group)
                (folder / "memory").symlink_to(group.folder)
        if clock := self.shape.clocks.get(name):
            (folder / "etc").mkdir()
            (folder / "etc/ld.so.preload").write_text(f"{FAKETIME[0]}\n")
            (folder / "etc/faketimerc").write_text(f"{clock}\n")

    def loop(self) -> None:
        """Answer the door until the owner goes."""
        while True:
            ready = readable(0, self.door, wait_s=10)
            self._reap()
            if 0 in ready and not os.read(0, 1):
                return
            if self.door in ready:
                connection, _ = self.door.accept()
                if not (pid := os.fork()):
                    warden.serve(self, connection)
                self.wardens.add(pid)
                connection.close()

    def _reap(self) -> None:
        self.wardens -= {pid for pid in self.wardens if os.waitpid(pid, os.WNOHANG)[0]}

    def close(self) -> None:
        """Take it all down; the folder last, when nothing is mounted in it any more."""
        self.door.close()
        for node in self.nodes.values():
            node.kill()
            node.outer.wait()
        for pid in self.wardens:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        for pid in self.wardens:
            os.waitpid(pid, 0)
        if self.switch:
            self.switch.close()
        for group in self.groups:
            group.remove()
        if os.path.ismount(self.folder / "small"):
            _said("umount", str(self.folder / "small"))
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def _say(told: dict[str, object]) -> None:
    sys.stdout.write(f"{json.dumps(told)}\n")
    sys.stdout.flush()


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the owner's to hear
    keeper = Keeper(Shape(**json.loads(sys.argv[1])))
    try:
        try:
            keeper.start()
        except OSError as error:
            _say({"error": str(error)})
            return
        _say({"number": keeper.number})
        with Path(os.devnull).open("w") as nowhere:
            os.dup2(nowhere.fileno(), 1)
        keeper.loop()
    finally:
        keeper.close()


if __name__ == "__main__":
    main()
