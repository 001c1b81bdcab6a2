"""Ends of test clusters, wanted and not, and clusters of other shapes.

These test the test bed alone, so they are long: they run when it changed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from testbed import cpusets
from testbed.cluster import HOST, PROJECT, Cluster, until
from testbed.images import Images
from testbed.keeper import FAKETIME
from tests.testbed.conftest import two_ranks

pytestmark = [pytest.mark.root, pytest.mark.long, pytest.mark.usefixtures("mild_nodes")]
Clusters = Callable[..., Cluster]
ESTABLISHED = "01"  # of a connection's state in /proc/net/tcp


@dataclass(frozen=True, slots=True)
class Traces:
    """What a cluster is known by on this machine; its number may soon be another's."""

    folder: Path
    keeper: int
    link: int

    @classmethod
    def of(cls, number: int, folder: Path, keeper: int) -> Traces:
        return cls(folder, keeper, socket.if_nametoindex(f"mgc{number}"))

    def left(self) -> dict[str, list[str]]:
        """What there is of it; {} is nothing."""
        words = []
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                line = (process / "cmdline").read_bytes()
                if os.fsencode(self.folder) in line:
                    words.append(line.replace(b"\0", b" ").decode())
        mounted = Path("/proc/self/mounts").read_text().splitlines()
        found = {
            "links": [name for index, name in socket.if_nameindex() if index == self.link],
            "mounts": [row for row in mounted if str(self.folder) in row],
            "cpusets": [str(p) for p in cpusets.MOUNTED.rglob(f"mpigraft-*-{self.keeper}-n*")],
            "processes": words,
            "folder": [str(self.folder)] if self.folder.exists() else [],
        }
        return {kind: things for kind, things in found.items() if things}


def connections(cluster: Cluster, node: str) -> set[str]:
    """States of the node's connections."""
    rows = cluster.said(node, "cat", "/proc/net/tcp").splitlines()[1:]
    return {row.split()[3] for row in rows}


@contextlib.contextmanager
def joined(cluster: Cluster) -> Iterator[None]:
    """n1 and n2 with a connection between them."""
    serve = (
        "import socket; s = socket.create_server(('', 7001)); print(1, flush=True)\n"
        "c, _ = s.accept(); c.recv(1)"
    )
    call = (
        "import socket, time; c = socket.create_connection(('n2', 7001))\n"
        "print(1, flush=True); time.sleep(600)"
    )
    with contextlib.ExitStack() as stack:
        for node, program in (("n2", serve), ("n1", call)):
            argv = [sys.executable, "-c", program]
            command = stack.enter_context(cluster.popen(node, argv, stdout=subprocess.PIPE))
            stack.callback(command.kill)
            assert command.stdout
            assert command.stdout.readline() == b"1\n"
        yield


def test_power_cut_is_heard_by_no_one(clusters: Clusters) -> None:
    with clusters(3) as cluster, joined(cluster):
        assert ESTABLISHED in connections(cluster, "n1")
        cluster.kill("n2")
        assert "n2 is down" in cluster.run("n2", ["true"]).stderr
        assert cluster.run("n1", [cluster.remote, "n2", "true"]).returncode == 255
        assert connections(cluster, "n1") == {ESTABLISHED}
        assert cluster.said("n1", cluster.remote, "n3", "hostname") == "n3\n"


def test_end_of_processes_is_heard_by_their_peers(clusters: Clusters) -> None:
    with clusters(2) as cluster, joined(cluster):
        cluster.kill("n2", told=True)
        until(lambda: ESTABLISHED not in connections(cluster, "n1"), "word of the end")


def test_command_in_a_killed_node_ends(clusters: Clusters) -> None:
    with (
        clusters(2) as cluster,
        cluster.popen("n2", ["sleep", "604"]) as inside,
        cluster.popen("n1", [cluster.remote, "n2", "sleep", "605"]) as by_ssh,
    ):
        sleepers = {"sleep 604", "sleep 605"}
        until(lambda: sleepers <= {*cluster.processes("n2")}, "two sleepers")
        cluster.kill("n2")
        assert inside.wait() == -signal.SIGKILL
        assert by_ssh.wait() == 255


@pytest.mark.covering
def test_closed_cluster_leaves_nothing(clusters: Clusters) -> None:
    sleepers = ["sh", "-c", "setsid sleep 606 & exec sleep 608"]
    with clusters(2) as cluster, cluster.popen("n1", sleepers) as command:
        until(lambda: "sleep 606" in cluster.processes("n1"), "the sleeper")
        traces = Traces.of(cluster.number, cluster.folder, cluster.keeper.pid)
        assert traces.left().keys() >= {"links", "processes", "folder"}
        cluster.close()
        assert command.wait() != 0
        assert traces.left() == {}


OWNER = """
import sys, time
from testbed.cluster import Cluster
cluster = Cluster(2)
print(cluster.number, cluster.folder, cluster.keeper.pid, flush=True)
cluster.run("n1", ["sleep", "607"])
"""


@pytest.mark.covering
@pytest.mark.parametrize("killed", ["owner", "keeper"])
def test_killed_cluster_leaves_nothing(killed: str, clusters: Clusters) -> None:
    """Not even cpusets and files, when the keeper lives; else the next cluster sees to the
    cpusets, as nobody is there to do it."""
    argv = [sys.executable, "-c", OWNER]
    with subprocess.Popen(argv, cwd=PROJECT, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        number, folder, keeper = owner.stdout.readline().split()
        traces = Traces.of(int(number), Path(folder), int(keeper))
        os.kill(owner.pid if killed == "owner" else traces.keeper, signal.SIGKILL)
        if killed == "owner":
            until(lambda: traces.left() == {}, "the end of all")
            return
        owner.kill()
    until(lambda: traces.left().keys() <= {"cpusets", "folder"}, "the end of all else")
    with contextlib.ExitStack() as stack:
        while stack.enter_context(clusters(1)).number < int(number):
            pass  # other numbers were free
        assert traces.left().keys() == {"folder"}
    subprocess.run(["rm", "-r", folder], check=True)


def test_any_number_at_once(clusters: Clusters) -> None:
    with clusters(2) as one, clusters(4) as other:
        assert one.subnet != other.subnet
        for cluster in (one, other):
            last = cluster.nodes[-1]
            assert cluster.said("n1", cluster.remote, last, "hostname") == f"{last}\n"
        one.close()
        assert other.said("n4", other.remote, "n1", "hostname") == "n1\n"


# ------------------------------------------------------------------ shapes


def test_own_name_can_be_loopback(clusters: Clusters) -> None:
    with clusters(2, loopback_hostname=True) as cluster:
        for node, other in (("n1", "n2"), ("n2", "n1")):
            assert cluster.said(node, "getent", "hosts", node).split()[0] == "127.0.1.1"
            assert cluster.said(node, "getent", "hosts", other).split()[0] == cluster.address(other)


def test_tmp_can_be_shared(clusters: Clusters) -> None:
    with clusters(2, shared_tmp=True) as cluster:
        cluster.said("n1", "touch", "/tmp/both", "/dev/shm/one")
        assert cluster.run("n2", ["test", "-e", "/tmp/both"]).returncode == 0
        assert cluster.run("n2", ["test", "-e", "/dev/shm/one"]).returncode == 1
        assert not Path("/tmp/both").exists()


@pytest.mark.skipif(not FAKETIME, reason="needs Debian's faketime")
def test_clocks_can_differ(clusters: Clusters) -> None:
    """For whatever is started, with a clean environment too."""
    with clusters(2, clocks={"n2": "+1h"}) as cluster:
        date = ["env", "-i", "date", "+%s"]
        here, there = (int(cluster.said(node, *date)) for node in cluster.nodes)
        by_ssh = int(cluster.said("n1", cluster.remote, "n2", *date))
    assert here + 3000 < there <= by_ssh < here + 4200


def test_file_system_can_be_small(clusters: Clusters) -> None:
    with clusters(2, small="1m") as cluster:
        fill = ["dd", "if=/dev/zero", f"of={cluster.small}/big", "bs=64k", "count=64"]
        full = cluster.run("n1", fill)
        assert full.returncode == 1
        assert "No space left" in full.stderr
        for place in ("n2", HOST):
            size = cluster.said(place, "stat", "--format=%s", cluster.small / "big")
            assert int(size) == 1 << 20
        traces = Traces.of(cluster.number, cluster.folder, cluster.keeper.pid)
    assert traces.left() == {}


@pytest.mark.testbed
@pytest.mark.mpi
def test_nodes_of_an_image(clusters: Clusters, images: Images) -> None:
    """Debian 13 with its own Open MPI, over two nodes; the image stays as it was."""
    image = images.folder("trixie")
    with clusters(2, root=image) as cluster:
        assert "trixie" in cluster.said("n2", "cat", "/etc/os-release")
        cluster.said("n2", "touch", "/etc/mark")
        launch = ("mpirun", "--allow-run-as-root", "-H", "n1:1,n2:1", "-n", "2",
                  "--prtemca", "plm_ssh_agent", cluster.remote,
                  "--prtemca", "prte_if_include", cluster.subnet, "/opt/app/hello")  # fmt: skip
        lines = sorted(cluster.said("n1", *launch).splitlines())
        assert [line.partition(",")[0] for line in lines] == two_ranks("Open MPI v5.0.7")
    assert not (image / "etc/mark").exists()
