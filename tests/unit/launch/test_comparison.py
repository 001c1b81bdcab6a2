"""What nodes say of themselves, compared."""

from __future__ import annotations

import os
from pathlib import Path

from mpigraft.core.model import Allocation, Level
from mpigraft.core.process import Completed
from mpigraft.launch.hosts.comparison import _differences, compare_nodes, read_facts

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
    assert (code, message) == (
        "node-unlike",
        "b is unlike a,c: its kernel is Linux 5.14, not Linux 6.1, /dev/shm has 2 MiB free, "
        "not room",
    )
    ((code, message),) = codes(lines("a"), lines("b"), lines("c", libmpi="cd" * 32))
    assert code == "node-build"
    assert message.startswith("the MPI on c is another build than on a,b: /opt/libmpi.so (SHA-256")


def test_a_node_that_lacks_a_file_is_named_whoever_is_first() -> None:
    for nodes in (
        (lines("a", libmpi="missing"), lines("b")),
        (lines("b"), lines("a", libmpi="missing")),
    ):
        ((code, message),) = codes(*nodes)
        assert (code, message.partition(":")[0]) == (
            "node-lacks",
            "a lacks files of the MPI that b has",
        )


def test_what_stops_a_launch_is_an_error() -> None:
    text = (lines("a") + lines("b", "5", libmpi="missing")).encode()
    levels = {f.code: f.level for f in _differences(read_facts(Completed((), 0, text, b"", 0.0)))}
    assert levels == {"node-unlike": Level.WARNING, "node-lacks": Level.ERROR}


def test_a_missing_mpi_is_some_of_its_files() -> None:
    def node(host: str, digest: str) -> str:
        return "".join(f"mpigraft-node {host} file {digest} /opt/{n}\n" for n in range(9))

    ((_, message),) = codes(node("a", "ab" * 32), node("b", "missing"))
    assert message.endswith(": /opt/0, /opt/1, /opt/2, /opt/3 and 5 more")


def test_nodes_that_did_not_answer_are_counted(tmp_path: Path) -> None:
    """Of one that is compared in silence nobody knows that it was not."""
    agent = tmp_path / "agent"
    agent.write_text('#!/bin/sh\necho "$1: Permission denied (publickey)." >&2\nexit 255\n')
    agent.chmod(0o755)
    hosts = (os.uname().nodename, "n2")
    (found,) = compare_nodes(Allocation(hosts, "--hosts", agent=str(agent)), 2, ())
    assert found.message == (
        "1 of 2 nodes were not compared with the others: n2: Permission denied (publickey)."
    )
    assert found.level is Level.WARNING
