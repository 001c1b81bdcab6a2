"""Why launches failed, as launchers, ssh and Slurm printed it on the test bed."""

from __future__ import annotations

import os
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpigraft.core.errors import LaunchFailed
from mpigraft.core.messages import message_of
from mpigraft.core.model import Finding
from mpigraft.core.process import Completed, Listener, run_command
from mpigraft.evidence.causes import ends_launch, named_causes
from mpigraft.evidence.runner import error_from_findings
from mpigraft.knowledge import cause_table
from tests.builders.messages import matches

RECORDED = Path(__file__).parents[2] / "data/causes.toml"
CASES = tomllib.loads(RECORDED.read_text())["case"]
NODES = ("n1", "n2")


@pytest.fixture(autouse=True)
def _on_n1(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="n1"))


def ended(code: int, stdout: str = "", stderr: str = "") -> Completed:
    return Completed((), code, stdout.encode(), stderr.encode(), 0.0)


def recorded(case: dict[str, Any]) -> Completed:
    return ended(case["code"], case.get("stdout", ""), case.get("stderr", ""))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_cause_that_was_printed_is_named_with_its_node(case: dict[str, Any]) -> None:
    causes = named_causes(recorded(case), NODES, whole=False, slurm=True)
    assert [f"{one.code}: {one.message}" for one in causes] == case["causes"]
    assert all(one.fix for one in causes)


def test_every_cause_was_recorded() -> None:
    known = {row.finding for row in cause_table().cause}
    assert known == {words.partition(":")[0] for case in CASES for words in case["causes"]}


def test_each_line_has_the_fields_of_its_finding() -> None:
    for row in cause_table().cause:
        texts = str(message_of(row.finding))
        fields = set(re.findall(r"{(\w+)}", texts)) - {"node"}
        for pattern in row.patterns:
            assert set(re.compile(pattern).groupindex) - {"node"} == fields, pattern


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_what_keeps_ranks_from_starting_is_no_cause_once_all_are_in_mpi(
    case: dict[str, Any],
) -> None:
    """A program may print such words itself."""
    late = {"step-memory", "rank-killed", "rank-bus-error"}
    causes = named_causes(recorded(case), NODES, whole=True, slurm=True)
    assert {one.code for one in causes} <= late
    assert not any(one.code == "step-memory" for one in named_causes(
        recorded(case), NODES, whole=True, slurm=False))  # fmt: skip


@pytest.mark.parametrize(
    "line",
    [
        "bash: /opt/mpi/bin/prted: No such file or directory",
        "bash: line 1: /opt/mpi/bin/prted: No such file or directory",
        "zsh:1: no such file or directory: /opt/mpi/bin/prted",
        "/opt/mpi/bin/prted: Command not found.",
    ],
)
def test_each_shell_names_a_missing_daemon_in_its_own_way(line: str) -> None:
    (cause,) = named_causes(ended(127, stderr=f"{line}\n"), NODES, whole=False)
    assert matches(cause, "node-no-program", program="/opt/mpi/bin/prted", node="n2")


@pytest.mark.parametrize(
    "line",
    [
        "log: u@n2: Permission denied (publickey).",
        "mkdir: cannot create directory 'x': Permission denied",
        "sh: 1: /opt/app/tool: not found",
        "error: Host key verification failed. Retrying",
        "# slurmstepd: error: Detected 1 oom-kill event(s) in StepId=3.0.",
        "task 1 launch failed: out of luck",
    ],
)
def test_words_of_a_program_are_no_cause(line: str) -> None:
    assert named_causes(ended(1, line, line), NODES, whole=False, slurm=True) == ()
    assert not ends_launch(line.encode())


def test_a_cause_that_names_no_node_lists_those_that_it_may_be() -> None:
    printed = ended(255, stderr="Host key verification failed.\n")
    (cause,) = named_causes(printed, ("n1", "n2", "n3"), whole=False)
    assert matches(cause, "ssh-host-key", node=("n2", "n3"))


def test_nodes_with_one_cause_share_a_finding() -> None:
    lines = "".join(f"u@n{n}: Permission denied (publickey).\n" for n in range(1, 12))
    (cause,) = named_causes(ended(255, stderr=lines), NODES, whole=False)
    assert matches(cause, "ssh-denied", node=("n1", "n2", "n3", "n4", "n5", "n6", "n7", "n8", 3))


def test_a_launch_ends_where_its_launcher_would_wait_in_vain() -> None:
    """Slurm's srun waits for the other tasks, and so do launchers that it started daemons for."""
    line = "srun: error: task 1 launch failed: Slurmd could not execve job"
    words = ["/bin/sh", "-c", f"echo '{line}' >&2; exec sleep 60"]
    done = run_command(words, limit_s=30.0, listener=Listener(ends=ends_launch))
    assert (done.timed_out, done.code) == (False, -15)
    assert line in done.text()


def test_parameter_files_are_not_blamed_for_what_a_node_lacks() -> None:
    """The advice was to look at a file with settings of the MPI."""
    (cause,) = named_causes(recorded(CASES[0]), NODES, whole=False)
    files = Finding.of("config-files", files="/etc/openmpi-mca-params.conf")
    lacks = Finding.of("node-lacks", nodes="n2", others="n1", libraries="/opt/libmpi.so")
    full = Finding.of("shm-full", host="n1", free=0, size=64)  # and what fills /dev/shm
    for one in (cause, lacks, full):
        assert error_from_findings(LaunchFailed, "mpich@5", (one, files)).fix == one.fix


def test_a_setting_is_not_blamed_for_the_kernels_route() -> None:
    """FI_TCP_IFACE=e1 was taken, and the kernel sent to that network through e0."""
    wire = Finding.of(
        "wire-contradiction", where="p2p off-node", requested="ofi-tcp", lane="tcp over e0",
        reason="the payload was to cross e1, and crossed e0", advice="type `ip route get`",
    )  # fmt: skip
    user = Finding.of("setting-overrides", name="FI_TCP_IFACE", value="e1", was="e0")
    assert error_from_findings(LaunchFailed, "mpich@5", (wire, user)).fix == wire.fix
