"""What probes of real MPIs prove: each of its own transport, and of no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft.core.model import Family, Kind, Level, Peer, ProofStatus
from mpigraft.evidence import judge
from mpigraft.knowledge.transports.match import transport_names
from mpigraft.launch import LaunchResult
from tests.builders.messages import matches, shows
from tests.builders.probes import (
    LAYOUT,
    Recorded,
    asked_for,
    configuration,
    errors,
    judged,
    logs,
    recorded,
    standing,
    unknown,
    with_transport,
)

AS_ASKED = [
    pytest.param(log, name, id=f"{log.name}-as-{name}") for log in logs() for name in log.asked
]


# ------------------------------------------------------------------ real output


@pytest.mark.parametrize(("log", "asked"), AS_ASKED)
def test_what_ran_as_requested_is_proven(log: Recorded, asked: str) -> None:
    evidence = judged(log, asked)
    assert evidence.ok, evidence.findings
    noisy = {"wire-unclear"} if log.name.endswith("ob1-tcp") else set()  # recorded on a busy host
    assert {f.code for f in evidence.findings} <= {"lane-other", "no-evidence"} | noisy
    assert standing(evidence, Kind.P2P) is ProofStatus.PROVEN
    assert standing(evidence, Kind.COLLECTIVE) is ProofStatus.PROVEN
    unreported = log.identity.startswith("openmpi@4") and "ucx" not in asked
    due = ProofStatus.NO_EVIDENCE if unreported else ProofStatus.PROVEN
    assert standing(evidence, Kind.ONE_SIDED) is due
    for kind in Kind:
        assert standing(evidence, kind, Peer.OFF_NODE) is ProofStatus.NOT_EXERCISED
        assert standing(evidence, kind, Peer.SELF) is ProofStatus.NOT_EXERCISED


MATRIX = [
    pytest.param(log, name, id=f"{log.name}-as-{name}")
    for log in logs()
    for name in transport_names(Family(log.identity.partition("@")[0]))
    if name not in log.asked and not unknown(log, name)
]


@pytest.mark.parametrize(("log", "asked"), MATRIX)
def test_no_output_of_another_transport_passes(log: Recorded, asked: str) -> None:
    evidence = judged(log, asked)
    assert not evidence.ok
    assert errors(evidence)


def test_the_matrix_is_whole() -> None:
    """Each family's transports meet each other's output, and those of launches that failed."""
    assert len(MATRIX) > 400
    asked = {param.values[1] for param in MATRIX}
    assert asked >= {"ob1-sm", "ofi-lnx", "ucx", "shm", "ofi-tcp", "ofi-cxi", "ob1-ugni", "ofi-efa"}


@pytest.mark.parametrize(
    ("name", "ran"),
    [
        ("openmpi-5.0.11--ob1-sm", "sm"),
        ("openmpi-5.0.11--ob1-tcp", "p2p tcp, one-sided sm, collective tcp"),
        (
            "openmpi-5.0.11--ofi-lnx",
            "p2p lnx (shm+eth0), one-sided sm, collective lnx (shm+eth0)",
        ),
        ("openmpi-4.1.8--ob1-sm", "p2p vader, one-sided not known, collective vader"),
        ("mpich-5.0.2--ofi-tcp", "tcp"),
        ("mpich-5.0.2--shm-ofi-tcp", "posix shm"),
        ("mpich-5.0.2--ucx", "ucx (sysv/memory cma/memory)"),
        ("intel-2021.18.1--shm", "shm"),
        ("intel-2021.18.1--ofi-tcp", "tcp"),
    ],
)
def test_ran_names_the_lanes(name: str, ran: str) -> None:
    log = recorded(name)
    assert judged(log, log.asked[0]).ran == ran


def test_requested_lnx_and_got_ob1() -> None:
    """The silent fallback: exit code 0, all data right, another transport."""
    log = recorded("openmpi-5.0.11--not-lnx-old-name-unforced")
    asking = configuration(log.identity, "ofi-lnx")
    row = asked_for(asking)
    env = tuple(
        replace(r, value="shm+cxi:lnx") if r.name.endswith("provider_include") else r
        for r in row.env
    )
    evidence = judge.judge_evidence(
        with_transport(asking, env=env), LAYOUT, LaunchResult(log.completed, log.ranks)
    )
    first = evidence.findings[0]
    assert not evidence.ok
    assert evidence.asked == "ofi-lnx"
    assert evidence.ran.startswith("p2p ob1 (sm)")
    assert (first.level, first.code) == (Level.ERROR, "LNX-01")
    assert shows(first.message, "ofi-lnx", "ob1 (sm)", "the library says", "pml ob1")
    assert "lnx" in first.fix
    assert shows(first.evidence[0], "selected ob1")


def test_a_launch_that_failed_after_another_lane_showed_is_a_mismatch() -> None:
    log = recorded("openmpi-5.0.11--not-lnx-old-name-unforced")
    done = replace(log.completed, code=1)
    evidence = judge.judge_evidence(
        configuration(log.identity, "ofi-lnx"), LAYOUT, LaunchResult(done, log.ranks)
    )
    assert not evidence.ok
    assert evidence.ran.startswith("p2p ob1 (sm)")


def test_lnx_without_its_shared_memory_is_caught_by_the_wire_alone() -> None:
    log = recorded("openmpi-5.0.11--not-lnx-noshm")
    evidence = judged(log, "ofi-lnx")
    assert errors(evidence) == ["wire-contradiction"]
    assert "did not run" in evidence.findings[0].why
    assert standing(evidence, Kind.P2P) is ProofStatus.CONTRADICTED
    assert shows(evidence.ran, "a network", "not lnx")
    assert judge.worth_repeating(evidence)  # another job's traffic would look the same


def test_a_launch_that_failed_says_why() -> None:
    for name, asked, code in (
        ("openmpi-5.0.11--not-lnx-map", "ofi-lnx", "LNX-02"),
        ("openmpi-5.0.11--not-ucx-gate", "ucx", "UCX-01"),
        ("mpich-5.0.2--not-lnx", "ofi-tcp", "probe-failed"),
        ("openmpi-5.0.11--ofi-shm", "ofi-shm", "probe-failed"),
    ):
        evidence = judged(recorded(name), asked)
        assert not evidence.ok
        assert evidence.ran == ""
        assert errors(evidence)[0] == code, name
        assert not judge.worth_repeating(evidence)
    first = judged(recorded("openmpi-5.0.11--not-ucx-gate"), "ucx").findings[0]
    assert shows(first.message, "No components", "pml framework")
    failed = judged(recorded("openmpi-5.0.11--ofi-shm"), "ofi-shm").findings[0]
    assert len(failed.message.splitlines()) > 1
    assert "\\x0a" not in failed.message


def test_a_crash_is_reported_with_what_was_proven_before_it() -> None:
    evidence = judged(recorded("openmpi-5.0.11--not-crash-osc"), "ofi-lnx")
    assert errors(evidence) == ["probe-crash"]
    assert evidence.ran == ""  # a failed launch, not another transport
    assert "SIGSEGV" in evidence.findings[0].message
    assert standing(evidence, Kind.P2P) is ProofStatus.PROVEN
    assert standing(evidence, Kind.ONE_SIDED) is ProofStatus.NO_EVIDENCE


def test_windows_outside_the_transport_are_reported_apart() -> None:
    evidence = judged(recorded("openmpi-5.0.11--ofi-lnx"), "ofi-lnx")
    beside = [f for f in evidence.findings if f.code == "lane-other"]
    assert [f.level for f in beside] == [Level.WARNING]
    assert matches(
        beside[0], "lane-other", lane="sm", requested="ofi-lnx", where="one-sided on-node"
    )
