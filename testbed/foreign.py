"""Probes while other programs' traffic fills the interface that the ranks use."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft.core.model import (
    Allocation,
    Configuration,
    EnvRow,
    Evidence,
    Family,
    Layout,
    Machine,
    MpiInstall,
    Scope,
    Transport,
)
from mpigraft.core.process.command import Completed, run_command
from mpigraft.evidence import judge
from mpigraft.knowledge.transports.match import Facts, resolve_transport
from mpigraft.launch import LaunchRequest, LaunchResult, prepare_launch
from mpigraft.launch.hosts.allocation import THIS_HOST
from mpigraft.native.programs import choose_natives
from testbed.cluster import Cluster

PUMP = Path(__file__).with_name("pump.py")
PORT = "17717"
LIMIT_S = 90.0

# The transports over TCP that run without hardware, on one node and between two.
TCP = {
    Family.OPENMPI: ("ob1-tcp", "ofi-tcp", "ofi-tcp-rxm", "ucx-tcp"),
    Family.MPICH: ("ofi-tcp",),
    Family.INTEL: ("ofi-tcp",),
}
# All that reach another node.
BETWEEN = {
    Family.OPENMPI: (*TCP[Family.OPENMPI], "ofi-lnx", "ucx", "shm-ucx-tcp"),
    Family.MPICH: ("ofi-tcp", "shm-ofi-tcp", "ucx", "shm-ucx"),
    Family.INTEL: ("ofi-tcp", "shm-ofi-tcp"),
}
# Those in which ranks of a node share memory.
SHARED = {
    Family.OPENMPI: ("ob1-sm", "ofi-lnx"),
    Family.MPICH: ("shm-ofi-tcp",),
    Family.INTEL: ("shm",),
}


def wheel(machine: Machine, family: Family) -> MpiInstall:
    return next(m for m in machine.mpis if m.family is family and m.source == "wheel" and m.usable)


@contextmanager
def pumping(cluster: Cluster | None = None) -> Iterator[None]:
    """Foreign traffic while this is entered: through the loopback, or both ways between the
    first two nodes of a cluster."""
    with ExitStack() as stack:
        if cluster is None:
            words = [sys.executable, str(PUMP), "127.0.0.1", "127.0.0.1", PORT]
            pumps = [subprocess.Popen(words, stdout=subprocess.PIPE)]
        else:
            pair = cluster.nodes[:2]
            pumps = [
                cluster.popen(
                    own, [cluster.python, PUMP, cluster.address(own), cluster.address(peer), PORT],
                    cwd=Path("/"), stdout=subprocess.PIPE,
                )
                for own, peer in (pair, pair[::-1])
            ]  # fmt: skip
        for pump in pumps:
            stack.enter_context(pump)
            stack.callback(pump.kill)
        for pump in pumps:
            assert pump.stdout
            assert pump.stdout.readline() == b"on\n"
        yield


@dataclass(frozen=True)
class Probes:
    """Probes of this machine's MPIs on one node, or on the nodes of a cluster."""

    machine: Machine
    cluster: Cluster | None = None
    ranks_per_node: int = 1  # on each of the cluster's first two nodes

    @property
    def layout(self) -> Layout:
        if self.cluster:
            return Layout(2, self.ranks_per_node, bind="none")
        return Layout(bind="none")

    def transport(self, family: Family, name: str) -> Transport:
        facts = Facts.of(self.machine, nodes=self.layout.nodes)
        if self.cluster:
            facts = replace(facts, interface=self.cluster.device)
        elif not name.startswith("ucx"):  # Open MPI's UCX takes no loopback; the kernel does
            facts = replace(facts, interface="lo")
        return resolve_transport(name, wheel(self.machine, family), facts)

    def launch(
        self, family: Family, transport: Transport, folder: Path
    ) -> tuple[Configuration, Completed]:
        """One probe launch; the witness's records are in `folder`."""
        mpi = wheel(self.machine, family)
        asked = Configuration("key", f"{mpi.id}/{transport.name}", mpi, transport)
        programs = choose_natives(mpi, self.machine.cpu.architecture)
        nodes, environ = THIS_HOST, None
        if self.cluster:
            nodes = Allocation(self.cluster.nodes[:2], "--hosts", agent=str(self.cluster.remote))
            environ = {**os.environ, **self.cluster.environ}
        request = LaunchRequest(
            asked, self.layout, judge.probe_program(programs), natives=programs, witness=folder,
            limit_s=LIMIT_S, cwd=folder, probe=True, cores=1 if self.cluster else None,
            allocation=nodes, environ=environ,
        )  # fmt: skip
        launch = prepare_launch(request)
        for path, text in launch.files:
            path.write_text(text)
        if not self.cluster:
            return asked, run_command(
                launch.argv, env=dict(launch.env), cwd=folder, limit_s=LIMIT_S
            )
        words = launch.argv[launch.argv.index("--") + 1 :]  # a guard knows its parent's number
        done = self.cluster.run("n1", words, env=dict(launch.env), cwd=folder, timeout=LIMIT_S)
        out, err = done.stdout.encode(), done.stderr.encode()
        return asked, Completed(tuple(words), done.returncode, out, err, 1.0)

    def judged(self, family: Family, transport: Transport) -> tuple[Evidence, Evidence]:
        """What one probe proves, and what the interfaces alone would have proven of it."""
        parent = self.cluster.shared if self.cluster else None
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            asked, ended = self.launch(family, transport, Path(folder))
            ranks = judge.read_witness(Path(folder))
        blind = replace(ended, stdout=without_sockets(ended.stdout))
        evidence, before = (
            judge.judge_evidence(asked, self.layout, LaunchResult(e, ranks)) for e in (ended, blind)
        )
        return evidence, before


def without_sockets(stdout: bytes) -> bytes:
    """The probe's output as it was before ranks told of their own connections."""
    lines = []
    for line in stdout.decode(errors="replace").splitlines():
        if line.startswith('{"mpigraft":"phase"'):
            phase = json.loads(line)
            for part in phase["parts"]:
                part.pop("sockets", None)
            lines.append(json.dumps(phase, separators=(",", ":")))
        else:
            lines.append(line)
    return "\n".join(lines).encode()


def doctored(transport: Transport, **changes: str) -> Transport:
    kept = tuple(row for row in transport.env if row.name not in changes)
    new = tuple(EnvRow(name, value, Scope.RANK, "test") for name, value in changes.items())
    return replace(transport, env=kept + new)
