"""Nodes as those of a site: each with a boot id of its own, two networks and a real sshd, and a
Slurm that binds tasks."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from pathlib import Path

import pytest

from mpigraft.core.model import Evidence, Family, Level, Machine
from mpigraft.discovery import inventory
from testbed import sshd
from testbed.cluster import PACKAGE, Cluster
from testbed.foreign import BETWEEN, Probes, pumping
from testbed.nodes import SHORT, User
from testbed.slurm import Slurm

pytestmark = [pytest.mark.testbed, pytest.mark.mpi, pytest.mark.root, pytest.mark.long]

BOOT_ID = "/proc/sys/kernel/random/boot_id"
Mpis = Mapping[Family, Path]


@pytest.fixture(scope="module")
def hard(clusters: Callable[..., Cluster]) -> Cluster:
    if reason := sshd.why_not():
        if "MPIGRAFT_TEST_ALL" in os.environ and reason.startswith(PACKAGE):
            pytest.fail(f"{reason}, which set-up should have seen to", pytrace=False)
        pytest.skip(reason)
    return clusters(4, hard=True)


@pytest.fixture(scope="module")
def machine(mpis: Mpis) -> Machine:
    assert len(mpis) == 3
    return inventory.discover_machine()


@pytest.fixture(scope="module")
def hard_slurm(hard: Cluster, slurms_here: None) -> Iterator[Slurm]:
    with Slurm(hard) as slurm:
        yield slurm


@pytest.mark.covering
def test_each_node_is_a_machine_of_its_own(hard: Cluster) -> None:
    ids = {hard.said(node, "cat", BOOT_ID) for node in hard.nodes} | {Path(BOOT_ID).read_text()}
    assert len(ids) == len(hard.nodes) + 1
    for subnet in ("10.77", "10.78"):
        there = f"{subnet}.{hard.number}.2"
        who = hard.said("n1", "ssh", there, "hostname; echo $SSH_CONNECTION").split()
        assert who == ["n2", f"{subnet}.{hard.number}.1", who[2], there, "22"]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("pump", [False, True], ids=["quiet", "pump"])
def test_every_transport_is_proven(
    hard: Cluster, machine: Machine, ranks: int, *, pump: bool
) -> None:
    probes, refused = Probes(machine, hard, ranks), {}
    with pumping(hard) if pump else nullcontext():
        for family, names in BETWEEN.items():
            for name in names:
                evidence, _ = probes.judged(family, probes.transport(family, name))
                if not evidence.ok:
                    refused[family, name] = errors(evidence)
    assert not refused


def errors(evidence: Evidence) -> list[str]:
    return [f.message for f in evidence.findings if f.level is Level.ERROR]


@pytest.mark.covering
def test_its_slurm_binds_a_task_and_limits_its_memory(hard_slurm: Slurm) -> None:
    show = ("sed", "-n", r"s/^Cpus_allowed_list:\s*//p", "/proc/self/status")
    assert hard_slurm.ask("srun", "-n1", *show).text() == "0\n"
    eat = f"{hard_slurm.cluster.python} -c 'bytearray(200 << 20)'"
    assert hard_slurm.ask("srun", "-n1", "--mem=300", "sh", "-c", eat).ok
    killed = hard_slurm.ask("srun", "-n1", "--mem=100", "sh", "-c", eat)
    assert not killed.ok
    assert "Out Of Memory" in killed.text()


def test_a_job_on_all_of_them_is_proven(hard_slurm: Slurm, mpis: Mpis) -> None:
    user = User(hard_slurm.cluster, mpis, hard_slurm)
    mpi = mpis[Family.OPENMPI].name.replace("-", "@")  # Debian's says nothing of windows
    words = ("bench", "--mpi", mpi, "--transport", "ob1-tcp", "--layout", "4x2-none")
    user.job(*words, *SHORT, nodes=4, ranks=2)
    (shown,) = user.shown().values()
    assert {p["standing"] for p in shown["proof"] if p["peer"] != "self"} == {"proven"}
