"""The test clusters themselves: what other tests take for given of nodes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed import cpusets
from testbed.cluster import HOST, Cluster, until
from testbed.door import ssh_words

pytestmark = pytest.mark.root


@pytest.fixture(scope="module")
def cluster(mild_nodes: None, clusters: Callable[..., Cluster]) -> Cluster:
    """Nodes in which nothing else runs, no daemon of Slurm either."""
    return clusters(2)


# ------------------------------------------------------------------ nodes


def test_nodes_have_their_own_names_files_and_processes(cluster: Cluster) -> None:
    assert [cluster.said(node, "hostname").strip() for node in cluster.nodes] == ["n1", "n2"]
    for folder in ("/tmp", "/dev/shm"):
        mark = f"{folder}/only-n1"
        cluster.said("n1", "touch", mark)
        assert cluster.run("n1", ["test", "-e", mark]).returncode == 0
        assert cluster.run("n2", ["test", "-e", mark]).returncode == 1
        assert not Path(mark).exists()
    with cluster.popen("n1", ["sleep", "600"]) as sleeper:
        until(lambda: "sleep 600" in cluster.processes("n1"), "the sleeper")
        assert "sleep 600" not in cluster.processes("n2")
        sleeper.kill()


def test_all_see_the_shared_folder_and_the_tests_own(cluster: Cluster, tmp_path: Path) -> None:
    for folder in (cluster.shared, tmp_path):
        cluster.said("n1", "sh", "-c", f"hostname >{folder / 'who'}")
        assert cluster.said("n2", "cat", folder / "who") == "n1\n"
        assert (folder / "who").read_text() == "n1\n"


def test_nodes_reach_each_other_and_the_host_but_nothing_else(cluster: Cluster) -> None:
    listen = "import socket; s = socket.create_server(('', 7000)); print(1, flush=True); s.accept()"
    connect = "import socket, sys; socket.create_connection((sys.argv[1], 7000), 5)"
    for listener, caller, name in (
        ("n1", "n2", "n1"),
        ("n2", "n1", "n2"),
        (HOST, "n1", cluster.host_address),
    ):
        with cluster.popen(
            listener, [sys.executable, "-c", listen], stdout=subprocess.PIPE
        ) as server:
            assert server.stdout
            assert server.stdout.readline() == b"1\n"
            assert cluster.said(caller, sys.executable, "-c", connect, name) == ""
    assert cluster.said("n1", "ip", "-4", "route").split()[0] == cluster.subnet
    assert cluster.said("n1", "getent", "hosts", "n2").split() == [cluster.address("n2"), "n2"]


@pytest.mark.skipif(not cpusets.cpus(), reason="cpusets cannot be written here")
def test_each_node_has_a_processor_of_its_own(cluster: Cluster) -> None:
    own = cpusets.cpus()
    for index, node in enumerate(cluster.nodes):
        see = "import os; print(*os.sched_getaffinity(0))"
        assert cluster.said(node, sys.executable, "-c", see) == f"{own[index % len(own)]}\n"


def test_command_ends_as_it_would_here(cluster: Cluster) -> None:
    assert cluster.run("n1", ["sh", "-c", "cat; echo oops >&2; exit 7"], stdin="in").stdout == "in"
    done = cluster.run("n1", ["sh", "-c", "echo oops >&2; exit 7"])
    assert (done.returncode, done.stderr) == (7, "oops\n")
    assert cluster.run("n1", ["sh", "-c", "kill -SEGV $$"]).returncode == -signal.SIGSEGV
    assert cluster.run("n1", ["no-such-program"]).returncode == 127
    assert cluster.run("n1", ["env"], env={"A": "b c\n$d", "PATH": "/usr/bin"}).stdout == (
        "A=b c\n$d\nPATH=/usr/bin\n"
    )
    assert "no such node" in cluster.run("n3", ["true"]).stderr


def test_signals_reach_the_command(cluster: Cluster) -> None:
    trap = "trap 'echo got; exit 3' TERM; echo ready; while :; do sleep 0.05; done"
    with cluster.popen("n2", ["sh", "-c", trap], stdout=subprocess.PIPE, text=True) as command:
        assert command.stdout
        assert command.stdout.readline() == "ready\n"
        command.terminate()
        assert command.stdout.read() == "got\n"
    assert command.returncode == 3


# ------------------------------------------------------------------ the stand-in for ssh


@pytest.mark.parametrize(
    ("words", "host", "command"),
    [
        (["n1", "true"], "n1", ["true"]),
        (["-x", "-p", "22", "me@n1", "a", "-b"], "n1", ["a", "-b"]),
        (["-p22", "-oA=b", "-o", "C=d", "-q", "--", "n1", "a"], "n1", ["a"]),
        (["n1", "-x", "-l", "me", "--", "-a"], "n1", ["-a"]),
        (["-xqp", "22", "n1", "a b", ";"], "n1", ["a b", ";"]),
    ],
)
def test_options_are_taken_as_ssh_takes_them(
    words: list[str], host: str, command: list[str]
) -> None:
    assert ssh_words(words) == (host, command)


def test_remote_goes_both_ways_and_from_the_host(cluster: Cluster) -> None:
    for origin, to in (("n1", "n2"), ("n2", "n1"), ("n1", "n1"), (HOST, "n2")):
        done = cluster.run(
            origin, [cluster.remote, "-x", to, "hostname; cat; exit", "5"], stdin="x"
        )
        assert (done.returncode, done.stdout) == (5, f"{to}\nx")
    address = cluster.address("n2")
    assert cluster.said("n1", cluster.remote, "-q", address, "hostname") == "n2\n"
    again = cluster.said("n1", cluster.remote, "n2", f"{cluster.remote} n1 hostname")
    assert again == "n1\n"


def test_remote_is_a_login_and_a_shell(cluster: Cluster) -> None:
    """Words are joined and evaluated there, and nothing of the environment comes along."""
    env = {**cluster.environ, "MINE": "x"}
    done = cluster.run("n1", ["ssh", "n2", "echo", "'a  b'", '"$MINE-$HOME"', "$PWD"], env=env)
    assert done.stdout == f"a  b -{os.environ['HOME']} {os.environ['HOME']}\n"
    lost = cluster.run("n1", [cluster.remote, "n9", "true"])
    assert lost.returncode == 255
    assert "n9" in lost.stderr


def test_every_user_gets_commands_of_his_own(cluster: Cluster) -> None:
    """Only root may cut the power."""
    drop = ("setpriv", "--reuid=4242", "--regid=4343", "--clear-groups")
    line = "id -u; id -g; id -G; echo $USER $HOME"
    told = cluster.said("n1", *drop, cluster.remote, "n2", line)
    assert told == "4242\n4343\n4343\n4242 /\n"
    cut = (
        "import sys; from pathlib import Path; sys.path.insert(0, sys.argv[1]); import door\n"
        "request = {'do': 'kill', 'node': 'n2', 'told': True}\n"
        "print(door.answer(door.ask(Path(sys.argv[2]), request, [])))"
    )
    bin_ = cluster.remote.parent
    told = cluster.said("n1", *drop, cluster.python, "-c", cut, bin_, cluster.door)
    assert "only root" in told
    assert cluster.said("n2", "hostname") == "n2\n"


def test_what_a_killed_caller_started_ends(cluster: Cluster) -> None:
    """As mpirun kills its clients of ssh."""
    with cluster.popen("n1", [cluster.remote, "n2", "sleep 601 & sleep 602"]) as client:
        until(lambda: "sleep 602" in cluster.processes("n2"), "the remote command")
        client.kill()
    until(lambda: not cluster.processes("n2"), "the remote command's end")


def test_daemon_outlives_its_remote_command(cluster: Cluster) -> None:
    """As the daemons of mpirun do, which tell ssh that all is well and go on."""
    line = "setsid sleep 603 </dev/null >/dev/null 2>&1 &"
    assert cluster.run("n1", [cluster.remote, "n2", line]).returncode == 0
    until(lambda: "sleep 603" in cluster.processes("n2"), "the daemon")
    row = cluster.said("n2", "ps", "-o", "pid=", "-C", "sleep").split()
    cluster.said("n2", "kill", *(pid for pid in row if pid != "1"))
    until(lambda: "sleep 603" not in cluster.processes("n2"), "its end")
