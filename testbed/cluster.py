"""Clusters of this one machine: nodes that are namespaces, joined by a bridge.

Each node has a name (n1, n2, ...), an address, processes, a /tmp and a /dev/shm of its own, and
where cgroups can be written a processor. Files are this machine's, or an image's. Any number of
clusters can be up at once; each has its own subnet.

    python -m testbed.cluster up 2 --state DIR [--slurm] [--shared-tmp] [--bind PATH] ...
    python -m testbed.cluster run --state DIR n1 -- hostname
    python -m testbed.cluster kill --state DIR n2
    python -m testbed.cluster down --state DIR
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from testbed import door, sshd
from tests.readable import readable

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent
NEEDED = {"ip": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux", "ps": "procps"}
PACKAGE = "needs Debian's "
SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
STOP_S = 120.0
HOST = "host"  # a command of this machine itself, ended with the cluster


def why_not() -> str:
    """Why clusters cannot be made here, or ""."""
    if os.geteuid():
        return "needs root"
    for program, package in NEEDED.items():
        if not shutil.which(program, path=SYSTEM_PATH):
            return PACKAGE + package
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "ip", "link", "add", "type", "veth"],
        stderr=subprocess.DEVNULL,
    )
    return "" if tried.returncode == 0 else "needs leave to make namespaces and links"


class Cluster:
    """N nodes, up when the constructor returns. Also a context manager.

    `folder` is the cluster's own, a new one unless given, and is removed with it; what lies in
    `shared` all nodes see under the same path. `binds` are further paths under /tmp, or of any
    place where `root` is an image's folder, that nodes see. `pin` gives node k the processor
    (k-1) modulo their number. With `loopback_hostname` a node's own name is 127.0.1.1 to it.
    `clocks` are nodes whose clock is off, {"n2": "+1h"} in the words of faketime. `small` is the
    size of a file system at `self.small`, which nodes and HOST see, as "4m". `hard` nodes are as
    those of a site: each has a boot id of its own, a second network, limits of memory where
    cgroups can be written, and a real sshd instead of the stand-in.

    Any user may use the door, and gets commands as that user.
    """

    def __init__(
        self,
        nodes: int = 2,
        *,
        folder: Path | None = None,
        binds: Sequence[Path] = (),
        root: Path | None = None,
        shared_tmp: bool = False,
        loopback_hostname: bool = False,
        pin: bool = True,
        clocks: Mapping[str, str] | None = None,
        small: str = "",
        hard: bool | None = None,
    ) -> None:
        self.nodes = tuple(f"n{index + 1}" for index in range(nodes))
        self.folder = folder or Path(tempfile.mkdtemp(prefix="mgc-"))
        self.folder.chmod(0o755)
        for name in ("shared", "bin", "slurm", "nodes", "tmp", "small"):
            (self.folder / name).mkdir()
        self.shared, self.small = self.folder / "shared", self.folder / "small"
        for open_to_all in ("shared", "tmp"):
            (self.folder / open_to_all).chmod(0o1777)
        self.door = self.folder / "door"
        self.python = self._python(root)
        self.hard = "MPIGRAFT_TEST_HARD" in os.environ if hard is None else hard
        self.hard &= root is None
        if self.hard:
            sshd.write_settings(self.folder / "ssh")
        self.remote = sshd.SSH if self.hard else self._write_remote()
        home = os.environ.get("HOME", "/root")
        login = {
            "HOME": home, "USER": "root", "LOGNAME": "root", "SHELL": "/bin/sh",
            "LANG": "C.UTF-8", "PATH": f"{self.folder / 'bin'}:{SYSTEM_PATH}",
        }  # fmt: skip
        shape = {
            "folder": str(self.folder), "nodes": nodes, "root": str(root or ""),
            "pin": pin and not self.hard,
            "binds": self._binds(binds, Path(home), root), "shared_tmp": shared_tmp,
            "loopback_hostname": loopback_hostname, "login": login, "small": small,
            "clocks": dict(clocks or {}), "hard": self.hard,
        }  # fmt: skip
        self.login: Mapping[str, str] = login
        self.services: list[Service] = []  # a daemon ends with the connection to its warden
        self.keeper = subprocess.Popen(
            [sys.executable, "-m", "testbed.keeper", json.dumps(shape)],
            cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
        assert self.keeper.stdout
        with self.keeper.stdout as pipe:
            told = json.loads(pipe.readline() or b'{"error": "the keeper did not start"}')
        if "error" in told:
            self.close()
            raise OSError(f"no cluster: {told['error']}")
        self.number: int = told["number"]
        self.subnet = f"10.77.{self.number}.0/24"
        self.host_address = f"10.77.{self.number}.254"
        self.host_device, self.device = f"mgc{self.number}", "e0"
        if self.hard:
            sshd.start(self)

    def _binds(self, binds: Sequence[Path], home: Path, root: Path | None) -> list[str]:
        """What a private /tmp, or a root of its own, would hide from the nodes."""
        own = [Path(place) for place in (os.environ.get("MPIGRAFT_HOME"),) if place]
        ours = [PROJECT, Path(sys.prefix), Path(sys.base_prefix), *own]
        wanted = [path for path in (self.folder, home, *ours, *binds) if path.exists()]
        if root:  # /usr is the image's
            wanted = [path for path in wanted if str(path) not in {"/usr", "/"}]
        else:
            wanted = [path for path in wanted if path.is_relative_to("/tmp")]
        return [str(path) for path in dict.fromkeys(path.resolve() for path in wanted)]

    @staticmethod
    def _python(root: Path | None) -> str:
        """The system's, which every user can start, where nodes have the system's files."""
        system = "/usr/bin/python3"
        return sys.executable if root or not Path(system).exists() else system

    def _write_remote(self) -> Path:
        """The stand-in for ssh, which also has that name, for those who look in PATH."""
        remote = self.folder / "bin" / "ssh"
        program = shutil.copy(HERE / "door.py", remote.parent)
        words = [self.python, "-I", "-S", program, "ssh", self.door]
        remote.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, words))} "$@"\n')
        remote.chmod(0o755)
        return remote

    def __enter__(self) -> Cluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def address(self, node: str) -> str:
        """The node's address; HOST's is this machine's end of the bridge."""
        if node == HOST:
            return self.host_address
        return f"10.77.{self.number}.{self.nodes.index(node) + 1}"

    @property
    def environ(self) -> dict[str, str]:
        """This environment with the stand-in for ssh in front of PATH."""
        path = os.environ.get("PATH", SYSTEM_PATH)
        return {**os.environ, "PATH": f"{self.folder / 'bin'}:{path}"}

    def popen(
        self,
        node: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        **options: Any,
    ) -> subprocess.Popen[Any]:
        """Start a command in a node, or on the HOST; the rest is as subprocess has it.

        `cwd` is / where the node has no such folder. Signals go to the command and to its process
        group; killed by SIGKILL, the command is ended too.
        """
        directory = cwd or Path.cwd()
        words = [sys.executable, "-I", "-S", HERE / "door.py", "exec", self.door, node, directory,
                 *argv]  # fmt: skip
        options.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen([*map(str, words)], env=env, **options)

    def run(
        self,
        node: str,
        argv: Sequence[str | Path],
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        stdin: str = "",
        timeout: float | None = 120.0,
        check: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run a command in a node to its end, or to `timeout` seconds: TimeoutExpired.

        `check`: a code other than 0 is an AssertionError that has all it said.
        """
        with self.popen(
            node, argv, env=env, cwd=cwd, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        ) as process:  # fmt: skip
            try:
                out, err = process.communicate(stdin, timeout)
            except BaseException:
                process.kill()
                raise
        words = [*map(str, argv)]
        if check and process.returncode:
            raise AssertionError(f"{words} in {node}: {process.returncode}\n{out}\n{err}")
        return subprocess.CompletedProcess(words, process.returncode, out, err)

    def said(self, node: str, *argv: str | Path, stdin: str = "") -> str:
        """What a command prints that is to succeed."""
        return self.run(node, argv, stdin=stdin, check=True).stdout

    def kill(self, node: str, *, told: bool = False) -> None:
        """End a node as a power cut does: nobody hears of it. `told`: its processes end, and
        whoever is connected to them is told so by the kernel."""
        with door.ask(self.door, {"do": "kill", "node": node, "told": told}, []) as connection:
            answer = door.answer(connection)
        if "error" in answer:
            raise OSError(str(answer["error"]))

    def processes(self, node: str) -> list[str]:
        """Command lines of the node's processes, but for its first one."""
        done = self.run(node, ["ps", "-ww", "-eo", "pid=,args="], check=True)
        rows = [line.split(None, 1) for line in done.stdout.splitlines()]
        return [args for pid, args in rows if pid != "1" and not args.startswith("ps -ww")]

    def close(self) -> None:
        """End every process of every node and leave nothing."""
        if self.keeper.stdin:
            with contextlib.suppress(BrokenPipeError):
                self.keeper.stdin.close()
        self.keeper.wait(STOP_S)
        for service in self.services:
            service.connection.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def until(true: Callable[[], object], what: str, *, patience_s: float = 60.0) -> None:
    """Wait for what is bound to come; the limit is for what never does."""
    deadline = time.monotonic() + patience_s
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"never came: {what}")
        time.sleep(0.02)


class Service:
    """A daemon in a node, or on the host, for as long as this process lives; its words go to
    `log`."""

    def __init__(
        self,
        cluster: Cluster,
        node: str,
        argv: Sequence[str | Path],
        env: Mapping[str, str],
        log: Path,
    ) -> None:
        self.name, self.log = str(argv[0]), log
        request = {"do": "exec", "node": node, "argv": [*map(str, argv)], "env": dict(env),
                   "cwd": "/"}  # fmt: skip
        with log.open("ab") as words, Path(os.devnull).open("rb") as nothing:
            files = (nothing.fileno(), words.fileno(), words.fileno())
            self.connection = door.ask(cluster.door, request, files)

    def running(self) -> bool:
        return not readable(self.connection, wait_s=0)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Send a signal and wait for the end; once is enough."""
        with contextlib.suppress(OSError):
            self.connection.sendall(bytes([number]))
            door.answer(self.connection)
        self.connection.close()


if __name__ == "__main__":
    from testbed.cluster_cli import main

    main(sys.argv[1:])
