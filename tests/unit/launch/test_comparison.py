"""What nodes say of themselves, compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from mpigraft.core.model import Allocation, Level
from mpigraft.core.process import Completed
from mpigraft.launch.hosts.comparison import SCRIPT, _differences, compare_nodes, read_facts
from tests.builders.messages import matches, shows

SHM = "tmpfs 65536 1 {} 1% /dev/shm"


def lines(host: str, kernel: str = "6.1", shm: int = 60000, libmpi: str = "ab" * 32) -> str:
    facts = (f"kernel Linux {kernel}", f"shm {SHM.format(shm)}", f"file {libmpi} /opt/libmpi.so")
    return "".join(f"mpigraft-node {host} {fact}\n" for fact in facts)


def codes(*nodes: str) -> list[tuple[str, str]]:
    text = "Welcome!\nmpigraft-node\n" + "".join(nodes)
    found = _differences(read_facts(Completed((), 0, text.encode(), b"", 0.0)))
    return [(f.code, f.message) for f in found]


def test_nodes_that_are_alike_say_nothing() -> None:
    assert codes(lines("a"), lines("b", shm=40000)) == codes() == codes(lines("a")) == []


def test_each_difference_is_named_with_its_node() -> None:
    ((code, message),) = codes(lines("a"), lines("b", "5.14", 2048), lines("c"))
    assert code == "node-unlike"
    assert matches(
        message, code, nodes="b", others="a,c", libraries=("Linux 5.14, not Linux 6.1", "2 MiB")
    )
    ((code, message),) = codes(lines("a"), lines("b"), lines("c", libmpi="cd" * 32))
    assert code == "node-build"
    assert matches(
        message, "node-build", nodes="c", others="a,b", libraries=("/opt/libmpi.so", "SHA-256")
    )


def net(host: str, *interfaces: str, network: bytes = b"\x0a\x4e\x01\x00") -> str:
    """As the kernel prints it: numbers as they lie in memory."""
    there, mask = (f"{int.from_bytes(b, sys.byteorder):08X}" for b in (network, b"\xff\xff\xff\0"))
    own = f"mpigraft-node {host} net {mask} {mask} e0\n"
    return own + "".join(f"mpigraft-node {host} net {there} {mask} {i}\n" for i in interfaces)


def test_an_interface_that_is_down_or_has_another_name_is_named_with_its_node() -> None:
    for here in ("a", os.uname().nodename):
        for nodes in ((net(here, "e1"), net("b")), (net(here), net("b", "e1"))):
            lacks, has = (here, "b") if nodes[0] == net(here) else ("b", here)
            ((_, message),) = codes(*nodes)
            assert matches(message, "node-unlike", nodes=lacks, others=has)
            assert shows(message, "10.78.1.0/24", "no interface", "not on e1")
    ((_, message),) = codes(net("a", "e1"), net("b", "x1"), net("c", "e1"))
    assert matches(
        message, "node-unlike", nodes="b", others="a,c", libraries=("10.78.1.0/24", "x1", "e1")
    )
    ((_, message),) = codes(net("a", "h1", "h0"), net("b", "h0", "h1"), net("c", "h1"))
    assert matches(
        message, "node-unlike", nodes="c", others="a,b", libraries=("10.78.1.0/24", "h1", "h0")
    )


def test_a_node_that_says_nothing_of_networks_is_not_unlike() -> None:
    assert codes(net("a", "e1"), lines("b")) == []
    cut = "mpigraft-node b net 00\nmpigraft-node b net ? ? e0\n"
    assert codes(lines("a"), cut) == []


def test_this_node_names_the_networks_that_it_is_in(tmp_path: Path) -> None:
    """Without the default route, bridges and links to one address."""
    answer = subprocess.run(["sh", "-c", SCRIPT], capture_output=True, text=True, check=True)
    own = read_facts(Completed((), 0, answer.stdout.encode(), b"", 0.0))[os.uname().nodename]
    routes = [line.split() for line in Path("/proc/net/route").read_text().splitlines()[1:]]
    due = {
        row[0] for row in routes if row[2] == "00000000" and row[7] not in ("00000000", "FFFFFFFF")
    }
    shown = {i for name, value in own.items() if name.startswith("network ") for i in value.split()}
    bridges = {i for i in due if Path("/sys/class/net", i, "bridge").exists()}
    down = {i for i in due if Path("/sys/class/net", i, "operstate").read_text() == "down\n"}
    assert shown == due - bridges - down
    assert answer.stderr == ""


def test_a_node_that_lacks_a_file_is_named_whoever_is_first() -> None:
    for nodes in (
        (lines("a", libmpi="missing"), lines("b")),
        (lines("b"), lines("a", libmpi="missing")),
    ):
        ((code, message),) = codes(*nodes)
        assert code == "node-lacks"
        assert matches(message, code, nodes="a", others="b")


def test_what_stops_a_launch_is_an_error() -> None:
    text = (lines("a") + lines("b", "5", libmpi="missing")).encode()
    levels = {f.code: f.level for f in _differences(read_facts(Completed((), 0, text, b"", 0.0)))}
    assert levels == {"node-unlike": Level.WARNING, "node-lacks": Level.ERROR}


def test_a_missing_mpi_is_some_of_its_files() -> None:
    def node(host: str, digest: str) -> str:
        return "".join(f"mpigraft-node {host} file {digest} /opt/{n}\n" for n in range(9))

    ((_, message),) = codes(node("a", "ab" * 32), node("b", "missing"))
    assert matches(message, "node-lacks", libraries="/opt/0, /opt/1, /opt/2, /opt/3 and 5 more")


def test_nodes_that_did_not_answer_are_counted(tmp_path: Path) -> None:
    """Of one that is compared in silence nobody knows that it was not."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\necho "$1: Permission denied (publickey)." >&2\nexit 255\n')
    agent.chmod(0o755)
    hosts = (os.uname().nodename, "n2")
    (found,) = compare_nodes(Allocation(hosts, "--hosts", agent=str(agent)), 2, ())
    assert matches(found, "nodes-not-compared", count=1, nodes=2, reason="n2")
    assert found.level is Level.WARNING
