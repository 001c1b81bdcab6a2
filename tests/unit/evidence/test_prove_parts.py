"""The parts of a judgement, each by itself: what a whole probe would cover up for one another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mpigraft.core.model import (
    EnvRow,
    Evidence,
    Finding,
    Kind,
    Level,
    Peer,
    Proof,
    ProofStatus,
    Scope,
)
from mpigraft.evidence import judge
from mpigraft.evidence.traffic.lanes import TrafficFinding, Wire
from mpigraft.knowledge import KnownIssue
from mpigraft.launch import LaunchResult
from tests.builders.messages import matches, shows
from tests.builders.probes import (
    LAYOUT,
    asked_for,
    configuration,
    errors,
    judged,
    recorded,
    records,
    with_transport,
)

LNX = "openmpi-5.0.11--ofi-lnx"
P, N, C, X = (
    ProofStatus.PROVEN,
    ProofStatus.NO_EVIDENCE,
    ProofStatus.CONTRADICTED,
    ProofStatus.NOT_EXERCISED,
)
ISSUE = KnownIssue("ABC-01", "it hangs", "all", "a race", "upgrade", (), ())


def heard(standing: ProofStatus, kind: Kind = Kind.P2P, lane: str = "") -> TrafficFinding:
    return TrafficFinding(
        proof=Proof(Peer.ON_NODE, kind, standing, lane, "its line", f"it goes by {lane}")
    )


def of_lanes(
    *several: TrafficFinding, known: tuple[KnownIssue, ...] = (), ended: bool = True
) -> list[str]:
    found = judge._lane_findings("asked", several, known, ended=ended)
    return [f"{f.level} {f.code}" for f in found]


def test_a_finding_that_was_forgotten_is_no_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgotten(*_: object, **__: object) -> list[Finding]:
        return []

    log = recorded("openmpi-5.0.11--not-lnx-noshm")
    assert errors(judged(log, "ofi-lnx")) == ["wire-contradiction"]
    monkeypatch.setattr(judge, "_lane_findings", forgotten)
    evidence = judged(log, "ofi-lnx")
    assert errors(evidence) == []
    assert not evidence.ok


def test_a_node_that_was_lost_comes_first_and_nothing_is_proven_without_it() -> None:
    log = recorded(LNX)
    asked = configuration(log.identity, "ofi-lnx")
    lost = Finding(Level.ERROR, "node-lost", "n2 answered at the start")
    evidence = judge.judge_evidence(
        asked, LAYOUT, LaunchResult(log.completed, log.ranks, nodes=(lost,))
    )
    assert evidence.findings[0] == lost
    assert not evidence.ok
    assert judge.judge_evidence(asked, LAYOUT, LaunchResult(log.completed, log.ranks)).ok


def test_without_a_transport_nothing_is_proven() -> None:
    log = recorded(LNX)
    asking = replace(configuration(log.identity, "ofi-lnx"), transport=None)
    evidence = judge.judge_evidence(asking, LAYOUT, LaunchResult(log.completed, log.ranks))
    assert not evidence.ok
    assert (evidence.asked, evidence.ran) == ("", "not known")
    assert any(matches(f, "peer-class", peer="on-node") for f in evidence.findings)


def test_a_lane_that_nobody_used_is_not_in_the_label() -> None:
    used, unused = heard(P, lane="sm"), heard(X, Kind.ONE_SIDED)
    assert judge.lane_label([used, unused]) == "sm"
    label = judge.lane_label([used, heard(N, Kind.ONE_SIDED)])
    assert shows(label, "p2p sm", "one-sided not known")
    assert judge.lane_label([heard(N), heard(N, Kind.ONE_SIDED)]) == ""
    assert judge.lane_label([]) == ""


def failed(stdout: bytes, stderr: bytes, count: int = 2) -> Evidence:
    log = recorded(LNX)
    done = replace(log.completed, code=1, stdout=stdout, stderr=stderr)
    return judge.judge_evidence(
        configuration(log.identity, "ofi-lnx"), LAYOUT, LaunchResult(done, records(count))
    )


def test_the_end_is_reported_by_whichever_stream_has_it() -> None:
    assert "no such host" in failed(b"no such host\n", b"").findings[0].message
    both = failed(b"of stdout\n", b"of stderr\n").findings[0].message
    assert "of stderr" in both
    assert "of stdout" not in both


def test_a_failed_probe_has_no_finding_of_missing_lines() -> None:
    assert "not-exercised" not in errors(failed(b"", b"gone", count=1))
    assert of_lanes(heard(N), ended=False) == []
    assert [one.split() for one in of_lanes(heard(X))] == [["error", "not-exercised"]]
    assert of_lanes(heard(X), ended=False) == []


def test_an_mpi_that_never_says_is_excused_for_all_but_messages() -> None:
    for kind, level in (
        (Kind.P2P, "error"),
        (Kind.ONE_SIDED, "warning"),
        (Kind.COLLECTIVE, "warning"),
    ):
        assert of_lanes(replace(heard(N, kind), unreported=True)) == [f"{level} no-evidence"]
        assert of_lanes(heard(N, kind)) == ["error no-evidence"]


def test_only_a_proven_lane_is_reported_to_be_beside_or_unclear() -> None:
    proven = replace(heard(P, lane="sm"), unrequested=True, wire=Wire.UNCLEAR)
    assert of_lanes(proven) == ["warning lane-other", "warning wire-unclear"]
    other = replace(proven, proof=heard(C, lane="tcp").proof)
    assert of_lanes(other) == ["error transport-mismatch"]


def test_a_mismatch_says_why_and_what_to_do() -> None:
    (plain,) = judge._mismatches("asked", [heard(C, lane="tcp")], ())
    told = {"lane": "tcp", "requested": "asked", "where": "p2p on-node"}
    assert matches(plain, "transport-mismatch", **told)
    assert plain.evidence == ("its line",)
    (known,) = judge._mismatches("asked", [heard(C, lane="tcp")], (ISSUE,))
    assert (known.code, known.fix) == ("ABC-01", "upgrade")
    assert shows(known.why, ISSUE.id, "it hangs", "a race")
    by_wire = replace(heard(C, lane="tcp"), by_wire=True, reason="bytes crossed")
    (wire,) = judge._mismatches("asked", [by_wire], (ISSUE,))
    assert matches(wire, "wire-contradiction", lane="tcp", reason=by_wire.reason)
    assert "idle host" in wire.fix
    silent = replace(by_wire, proof=replace(by_wire.proof, says="", sign=""))
    (alone,) = judge._mismatches("asked", [silent], ())
    assert matches(alone, "wire-contradiction", reason=by_wire.reason, **told)
    assert alone.message.endswith(by_wire.reason)
    assert alone.evidence == ()


def test_peers_out_of_reach_are_an_error() -> None:
    (found,) = judge._unreachable(None, [heard(N)])
    assert (found.level, found.code) == (Level.ERROR, "peer-class")
    assert judge._unreachable(None, [heard(X)]) == []


@pytest.mark.parametrize("broken", ['"parts":7', '"parts":null', '"kind":[]', '"peer":{}'])
def test_a_malformed_phase_is_a_finding_and_no_crash(broken: str) -> None:
    log = recorded(LNX)
    # of two keys of one name the last counts
    done = log.edited(r'("kind":"p2p".*)}', rf"\1,{broken}}}")
    evidence = judge.judge_evidence(
        configuration(log.identity, "ofi-lnx"), LAYOUT, LaunchResult(done, log.ranks)
    )
    assert "probe-incomplete" in errors(evidence)


def test_a_setting_that_replaces_what_forces_the_transport_is_named() -> None:
    log = recorded(LNX)
    asked = configuration(log.identity, "ofi-lnx")
    for value, level in (("ob1", Level.WARNING), ("cm", None)):
        rows = (
            EnvRow("UCX_TLS", "tcp", Scope.RANK, "user"),
            EnvRow("OMPI_MCA_pml", value, Scope.RANK, "user"),
        )
        mine = with_transport(asked, env=(*asked_for(asked).env, *rows))
        found = judge.judge_evidence(mine, LAYOUT, LaunchResult(log.completed, log.ranks)).findings
        told = [(f.level, f.message) for f in found if f.code == "setting-overrides"]
        seen = f"--env OMPI_MCA_pml={value} replaces cm, which forces it"
        assert told == ([(level, seen)] if level else [])
