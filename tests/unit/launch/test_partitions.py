"""What nodes of a partition say of themselves, as their scheduler prints it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpigraft.cli.main import run_command
from mpigraft.core.errors import LaunchFailed
from mpigraft.core.model import JobRequest
from mpigraft.core.serialize import document
from mpigraft.graft.abi import saved
from mpigraft.launch.hosts import partitions
from mpigraft.launch.hosts.partitions import node_differences, parse_documents
from mpigraft.report import machine_document
from tests.builders.configuration import a_machine, an_mpi
from tests.builders.messages import matches, shows

MACHINE = machine_document(a_machine(an_mpi("openmpi@5.0.11")))


def labelled(*machines: dict[str, object], width: int = 1) -> str:
    """As srun --label prints them: numbers of one width, lines of several tasks mixed."""
    lines = [
        [f"{number:{width}}: {line}" for line in document(**machine).split("\n")]
        for number, machine in enumerate(machines)
    ]
    mixed = [line for row in zip(*lines, strict=True) for line in row]
    return "\n".join(mixed) + "\n"


def test_documents_of_several_nodes_are_reported_apart() -> None:
    nodes = [{**MACHINE, "hostname": f"n{number}"} for number in range(12)]
    text = "0: Welcome to the node\nsrun: job 7 has been allocated\n" + labelled(*nodes, width=2)
    assert [found["hostname"] for found in parse_documents(text)] == [f"n{n}" for n in range(12)]


def test_a_text_with_a_line_separator_in_it_is_one_line() -> None:
    odd = {**MACHINE, "os": "an\u2028os\x85"}
    plain = json.dumps({"schema": 1, **odd}, indent=2, ensure_ascii=False)
    text = "\n".join(f"0: {line}" for line in plain.split("\n"))
    assert parse_documents(text)[0]["os"] == "an\u2028os\x85"


@given(st.text(alphabet='01: {}"a,\n[]'))
def test_any_output_is_documents_or_none(text: str) -> None:
    assert all(isinstance(found, dict) for found in parse_documents(text))


def test_nodes_that_are_alike_but_for_names_and_addresses_are_alike() -> None:
    device = {"name": "hsn0", "kind": "cxi", "state": "up", "address": "10.0.0.1", "details": {}}
    one = {**MACHINE, "fabrics": [device], "memory_mib": 1000}
    like = {**one, "hostname": "b", "fabrics": [{**device, "address": "10.0.0.2"}],
            "memory_mib": 1010}  # fmt: skip
    other = {**one, "hostname": "c", "fabrics": [], "memory_mib": 500}
    assert node_differences([one, like]) == []
    ((host, keys),) = node_differences([one, like, other])
    assert (host, set(keys)) == ("c", {"fabrics", "memory_mib"})


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    for name in ("sbatch", "salloc"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho \"$@\" > {tmp_path}/asked\n"
                                     f"cat {tmp_path}/said\n")  # fmt: skip
        (tmp_path / name).chmod(0o755)
    return tmp_path


def test_a_partition_is_shown_and_kept(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd = {**MACHINE, "hostname": "odd", "kernel": "2.6"}
    (site / "said").write_text(labelled({**MACHINE, "hostname": "n1"}, odd))
    words = ["discover", "--partition", "gpu/a", "--nodes", "2", "--time", "5m", "--", "--qos=x"]
    assert run_command(words) == 0
    out, err = capsys.readouterr()
    assert shows(out, "used on n1")
    assert "openmpi@5.0.11" in out
    assert shows(err, "differs", "n1", "kernel")
    kept = site / "home/machines/gpu_a.json"
    assert str(kept) in err
    assert saved.read_machine(kept).hostname == "n1"
    asked = (site / "asked").read_text()
    assert "--partition=gpu/a" in asked
    assert "--nodes=2" in asked
    assert "--time=00:05:00" in asked
    assert "--qos=x" in asked


def test_a_node_that_says_nothing_is_reported(site: Path) -> None:
    (site / "said").write_text("0: bash: mpigraft: not found\n")
    with pytest.raises(LaunchFailed, match="0 of 2 nodes"):
        partitions.discover_partition(
            "slurm", JobRequest(str(site), nodes=2, command=("mpigraft",))
        )


def test_words_for_a_scheduler_without_one_are_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run_command(["discover", "gpu"]) == 2
    assert matches(capsys.readouterr().err, "argument-unknown", word="'gpu'")
