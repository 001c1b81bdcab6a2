"""The command line of clusters, for trying things by hand; cluster.py says how it is called.

`up` leaves a process behind that owns the cluster and ends with it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from testbed import cluster as clusters
from testbed import door
from testbed.slurm import Slurm

START_S = 60.0


def main(words: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m testbed.cluster")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up", help="start a cluster and leave it running")
    up.add_argument("nodes", type=int)
    up.add_argument("--slurm", action="store_true")
    up.add_argument("--cpus", type=int, default=4, help="what Slurm believes each node to have")
    up.add_argument("--shared-tmp", action="store_true")
    up.add_argument("--loopback-hostname", action="store_true")
    up.add_argument("--no-pin", action="store_true", help="all processors for every node")
    up.add_argument("--root", type=Path, help="folder of an image that nodes have for /")
    up.add_argument("--bind", type=Path, action="append", default=[], help="seen in nodes too")
    up.add_argument("--small", default="", help="size of a file system at STATE/small: 4m")
    up.add_argument("--clock", action="append", default=[], help="a clock that is off: n2=+1h")
    up.add_argument("--owner", action="store_true", help=argparse.SUPPRESS)
    run = commands.add_parser("run", help="run a command in a node")
    run.add_argument("node")
    run.add_argument("argv", nargs="+")
    kill = commands.add_parser("kill", help="cut the power of a node")
    kill.add_argument("node")
    kill.add_argument("--told", action="store_true", help="peers hear of it")
    down = commands.add_parser("down", help="end the cluster")
    for command in (up, run, kill, down):
        command.add_argument("--state", type=Path, required=True)
    given = parser.parse_args(words)
    state: Path = given.state.absolute()
    match given.command:
        case "up" if given.owner:
            _own(given, state)
        case "up":
            _up(words, state)
        case "run":
            words = [
                sys.executable,
                "-I",
                "-S",
                door.__file__,
                "exec",
                str(state / "door"),
                given.node,
                str(Path.cwd()),
                *given.argv,
            ]
            os.execve(words[0], words, {**os.environ, **_environ(state)})
        case "kill":
            request = {"do": "kill", "node": given.node, "told": given.told}
            told = door.answer(door.ask(state / "door", request, []))
            sys.exit(str(told["error"]) if "error" in told else 0)
        case "down":
            _down(state)


def _up(words: list[str], state: Path) -> None:
    """Start the owner and wait until it is ready."""
    state.mkdir(parents=True)
    log = state.with_name(f"{state.name}.log")
    with log.open("wb") as said:
        owner = subprocess.Popen(
            [sys.executable, "-m", "testbed.cluster", *words, "--owner"],
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True,
        )  # fmt: skip
    deadline = time.monotonic() + START_S
    while not (state / "environ").exists():
        if owner.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"no cluster: {log.read_text()}")
        time.sleep(0.02)
    told = "\n".join(f"  {name}={value}" for name, value in _environ(state).items())
    again = f"python -m testbed.cluster {{}} --state {state}"
    sys.stdout.write(
        f"up. In {state / 'environ'}:\n{told}\n"
        f"enter: {again.format('run')} n1 -- COMMAND\nend:   {again.format('down')}\n"
    )


def _own(given: argparse.Namespace, state: Path) -> None:
    with clusters.Cluster(
        given.nodes, folder=state, binds=given.bind, root=given.root, pin=not given.no_pin,
        shared_tmp=given.shared_tmp, loopback_hostname=given.loopback_hostname,
        clocks=dict(row.split("=", 1) for row in given.clock), small=given.small,
    ) as cluster:  # fmt: skip
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        slurm = Slurm(cluster, cpus=given.cpus) if given.slurm else None
        (state / "owner").write_text(str(os.getpid()))
        _write_environ(cluster, slurm, state)
        cluster.keeper.wait()


def _write_environ(cluster: clusters.Cluster, slurm: Slurm | None, state: Path) -> None:
    rows = {
        "PATH": cluster.environ["PATH"],
        "CLUSTER_SSH": str(cluster.remote),
        "CLUSTER_SUBNET": cluster.subnet,
        "CLUSTER_HOSTS": ",".join(cluster.nodes),
        "CLUSTER_SHARED": str(cluster.shared),
    }
    if slurm:
        rows |= {name: slurm.environ[name] for name in ("SLURM_CONF", "PMIX_MCA_psec")}
    new = state / "environ.new"
    new.write_text("".join(f"{name}={value}\n" for name, value in rows.items()))
    new.rename(state / "environ")


def _environ(state: Path) -> dict[str, str]:
    lines = (state / "environ").read_text().splitlines()
    return {name: value for name, _, value in (line.partition("=") for line in lines)}


def _down(state: Path) -> None:
    """End the owner, if it is still the one that was started, and wait until all is gone."""
    try:
        pid = int((state / "owner").read_text())
        handle = os.pidfd_open(pid)
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        sys.exit(f"no cluster has {state}")
    if b"testbed.cluster" not in words:
        sys.exit(f"the owner of {state} is gone")
    signal.pidfd_send_signal(handle, signal.SIGTERM)
    while state.exists() and Path(f"/proc/{pid}").exists():
        time.sleep(0.02)
    state.with_name(f"{state.name}.log").unlink(missing_ok=True)
