"""What a probe proves: each check has a test in which it alone is what refuses."""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace

import pytest

from mpigraft.core.model import Evidence, Finding, Kind, Layout, Level, Peer, Proof, ProofStatus
from mpigraft.evidence import judge
from mpigraft.evidence.traffic.lanes import TrafficFinding
from mpigraft.launch import LaunchResult
from tests.builders.messages import matches, shows
from tests.builders.probes import (
    LAYOUT,
    configuration,
    errors,
    recorded,
    records,
    standing,
    with_transport,
)

# ------------------------------------------------------------------ one thing at a time


def changed(name: str, old: str, new: str) -> Evidence:
    log = recorded(name)
    asking = configuration(log.identity, log.asked[0])
    return judge.judge_evidence(asking, LAYOUT, LaunchResult(log.edited(old, new), log.ranks))


LNX = "openmpi-5.0.11--ofi-lnx"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        (LNX, "mtl:ofi:provider: lnx", "mtl:ofi:provider: tcp"),
        (LNX, "mtl:ofi:provider: lnx", "mtl:ofi:provider: lnx2"),
        (LNX, "provider:domain: shm", "provider:domain: tcp"),
        (LNX, "selected cm best", "selected ob1 best"),
        (LNX, "connections are ofi", "connections are sm"),
        (LNX, "all connections are ofi", "some connections are ofi"),
        (LNX, r"selecting +tuned,", "selecting xhc,"),
        (LNX, "component sm selected", "component portals4 selected"),
        ("openmpi-5.0.11--ob1-sm", "connections are sm", "connections are tcp"),
        ("openmpi-5.0.11--ucx", "selected ucx best", "selected ob1 best"),
        ("mpich-5.0.2--ofi-tcp", '"peer":"off-node"', '"peer":"on-node"'),
        ("mpich-5.0.2--ofi-tcp", "provider: tcp - ", "provider: sockets - "),
        ("mpich-5.0.2--ucx", '"peer":"off-node"', '"peer":"on-node"'),
        ("mpich-5.0.2--ucx", "==== UCX netmod", "libfabric provider: tcp - \n==== UCX netmod"),
        ("mpich-5.0.2--ofi-tcp", "libfabric provider", "==== UCX netmod Capability ====\nx"),
        ("intel-2021.18.1--ofi-tcp", "provider: tcp", "provider: psm3"),
        ("intel-2021.18.1--ofi-tcp", "I_MPI_FABRICS=ofi", "I_MPI_FABRICS=shm:ofi"),
        ("intel-2021.18.1--shm", "I_MPI_FABRICS=shm", "libfabric provider: tcp"),
    ],
)
def test_one_sign_of_another_lane_contradicts(name: str, old: str, new: str) -> None:
    evidence = changed(name, old, new)
    assert not evidence.ok
    assert ProofStatus.CONTRADICTED in {p.standing for p in evidence.proof}
    assert errors(evidence)


@pytest.mark.parametrize(
    ("name", "old"),
    [
        (LNX, "mtl:ofi:provider: lnx"),
        (LNX, "mtl:ofi:provider:domain: shm"),
        (LNX, "selected cm best"),
        (LNX, "on-host:"),
        (LNX, "comm_select: selecting"),
        (LNX, "component sm selected"),
        ("openmpi-5.0.11--ob1-sm", "on-host:"),
        ("openmpi-5.0.11--ucx", r"tag\("),
        ("openmpi-4.1.8--ob1-sm", "init of component vader"),
        ("mpich-5.0.2--ofi-tcp", "libfabric provider:"),
        ("mpich-5.0.2--shm-ofi-tcp", "libfabric provider:"),
        ("mpich-5.0.2--ucx", "send wireup request"),
        ("mpich-5.0.2--ucx", "UCX netmod Capability"),
        ("intel-2021.18.1--shm", "shm segment size"),
        ("intel-2021.18.1--ofi-tcp", "libfabric provider"),
    ],
)
def test_every_sign_is_needed(name: str, old: str) -> None:
    evidence = changed(name, old, "(lost)")
    assert not evidence.ok
    assert "no-evidence" in errors(evidence)
    assert ProofStatus.CONTRADICTED not in {p.standing for p in evidence.proof}


@pytest.mark.parametrize(
    "sign", ["mtl:ofi:provider: lnx", "selected cm best", "component sm selected"]
)
def test_every_rank_has_to_say_it(sign: str) -> None:
    log = recorded(LNX)
    who = re.search(rf"\[(vm:\d+)\][^\n]*{sign}".encode(), log.completed.stderr)
    assert who
    line = rf"\[{who[1].decode()}\][^\n]*{sign}[^\n]*\n"
    evidence = judge.judge_evidence(
        configuration(log.identity, "ofi-lnx"),
        LAYOUT,
        LaunchResult(log.edited(line, ""), log.ranks),
    )
    assert not evidence.ok
    assert shows([f.message for f in evidence.findings], "1 of 2 ranks")


def test_a_rank_that_only_answers_used_it_as_well() -> None:
    """PrintedSign with three ranks of MPICH: one whose peers had both begun says nothing of it."""
    log = recorded("mpich-5.0.2--ucx")
    who = re.findall(rb"\[(\w+:\d+):\d\][^\n]*send wireup request", log.completed.stderr)
    assert len(set(who)) == 2
    line = rf"[^\n]*\[{who[0].decode()}:[^\n]*send wireup request[^\n]*\n"
    evidence = judge.judge_evidence(
        configuration(log.identity, "ucx"), LAYOUT, LaunchResult(log.edited(line, ""), log.ranks)
    )
    assert evidence.ok, evidence.findings


def test_signs_do_not_count_without_traffic() -> None:
    """A library that says the right thing and a probe that moved nothing prove nothing."""
    log = recorded(LNX)
    for kind in Kind:
        evidence = judge.judge_evidence(
            configuration(log.identity, "ofi-lnx"),
            LAYOUT,
            LaunchResult(
                log.edited(rf'{{"mpigraft":"phase","kind":"{kind}"[^\n]*\n', ""), log.ranks
            ),
        )
        assert not evidence.ok
        assert "probe-incomplete" in errors(evidence)
        assert standing(evidence, kind) is ProofStatus.NO_EVIDENCE


def test_a_kind_that_mpi_refuses_is_a_warning_unless_it_is_messages() -> None:
    log = recorded(LNX)

    def refused(kind: Kind) -> Evidence:
        old = rf'("kind":"{kind}"[^\n]*)"ok":true'
        done = log.edited(old, r'\1"ok":false,"error":"MPI_ERR_WIN: invalid window"')
        return judge.judge_evidence(
            configuration(log.identity, "ofi-lnx"), LAYOUT, LaunchResult(done, log.ranks)
        )

    windows = refused(Kind.ONE_SIDED)
    assert windows.ok
    assert standing(windows, Kind.ONE_SIDED) is ProofStatus.NO_EVIDENCE
    said = [f for f in windows.findings if f.code == "kind-refused"]
    assert said[0].level is Level.WARNING
    assert "MPI_ERR_WIN" in said[0].message
    messages = refused(Kind.P2P)
    assert not messages.ok
    assert "kind-refused" in errors(messages)


def test_a_transport_without_signs_is_never_proven() -> None:
    log = recorded(LNX)
    asking = with_transport(configuration(log.identity, "ofi-lnx"), signs=())
    evidence = judge.judge_evidence(asking, LAYOUT, LaunchResult(log.completed, log.ranks))
    assert not evidence.ok
    assert "no-evidence" in errors(evidence)


def test_one_rank_proves_nothing() -> None:
    log = recorded(LNX)
    layout = Layout(ranks_per_node=1)
    quiet = log.edited(r'{"mpigraft":"phase"[^\n]*\n', "")
    evidence = judge.judge_evidence(
        configuration(log.identity, "ofi-lnx"), layout, LaunchResult(quiet, records(1))
    )
    assert not any(one.standing is ProofStatus.PROVEN for one in evidence.proof)
    assert evidence.ran == judge.ALONE
    assert evidence.ok, "what starting costs can be measured of it"
    assert [f.code for f in evidence.findings if f.level is Level.WARNING] == ["not-exercised"]
    two = judge.judge_evidence(
        configuration(log.identity, "ofi-lnx"), LAYOUT, LaunchResult(quiet, records(1))
    )
    assert not two.ok
    assert "not-exercised" in errors(two)


def test_a_time_limit_is_reported() -> None:
    log = recorded(LNX)
    asking = configuration(log.identity, "ofi-lnx")
    for done in (replace(log.completed, code=124), replace(log.completed, timed_out=True)):
        evidence = judge.judge_evidence(asking, LAYOUT, LaunchResult(done, log.ranks))
        assert not evidence.ok
        assert errors(evidence) == ["probe-timeout"]


@pytest.mark.parametrize(
    ("code", "says"),
    [(-11, "SIGSEGV"), (139, "SIGSEGV"), (134, "SIGABRT"), (143, "exit code 143"), (1, "code 1")],
)
def test_how_a_probe_ended(code: int, says: str) -> None:
    log = recorded(LNX)
    done = replace(log.completed, code=code)
    evidence = judge.judge_evidence(
        configuration(log.identity, "ofi-lnx"), LAYOUT, LaunchResult(done, log.ranks)
    )
    assert not evidence.ok
    assert says in evidence.findings[0].message
    assert signal.SIGSEGV.name not in says or errors(evidence) == ["probe-crash"]


def test_secrets_in_output_are_struck_out(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "planted-secret"
    monkeypatch.setenv("SITE_TOKEN", secret)
    evidence = changed(LNX, "mtl:ofi:provider: lnx", f"mtl:ofi:provider: {secret}")
    assert not evidence.ok
    assert secret not in json.dumps([str(evidence.proof), str(evidence.findings)])


# ------------------------------------------------------------------ the wire


@pytest.mark.parametrize("name", ["openmpi-5.0.11--ob1-tcp", "mpich-5.0.2--ofi-tcp"])
def test_tcp_without_bytes_on_the_wire_is_an_error(name: str) -> None:
    evidence = changed(name, r'("kind":"p2p".*"lo":)\d+', r"\g<1>0")
    assert errors(evidence) == ["wire-contradiction"]
    assert shows(evidence.ran, "no network", "not tcp")


def test_shared_memory_with_all_bytes_on_the_wire_is_an_error() -> None:
    evidence = changed("openmpi-5.0.11--ob1-sm", r'"lo":\d+', '"lo":99999999')
    assert set(errors(evidence)) == {"wire-contradiction"}
    assert {p.standing for p in evidence.proof if p.peer is Peer.ON_NODE} == {
        ProofStatus.CONTRADICTED
    }


def test_a_part_of_the_payload_on_the_wire_is_a_warning() -> None:
    evidence = changed("openmpi-5.0.11--ob1-sm", r'("kind":"p2p".*"lo":)\d+', r"\g<1>9999999")
    assert evidence.ok
    assert "wire-unclear" in {f.code for f in evidence.findings}


def test_counters_that_cannot_be_read_prove_nothing() -> None:
    evidence = changed("openmpi-5.0.11--ob1-sm", r'"wire":{[^}]*}', '"wire":{}')
    assert not evidence.ok
    assert "no-evidence" in errors(evidence)


def test_two_nodes_over_a_transport_of_one_are_refused() -> None:
    log = recorded("openmpi-5.0.11--ob1-sm")
    layout = Layout(nodes=2, ranks_per_node=1)
    asking = configuration(log.identity, "ob1-sm")
    evidence = judge.judge_evidence(
        asking, layout, LaunchResult(log.completed, records(2, hosts=2))
    )
    assert not evidence.ok
    (reached,) = (f for f in evidence.findings if f.code == "peer-class")
    assert "peer-class" in errors(evidence)
    assert matches(reached, "peer-class", name="ob1-sm", peer="off-node")


def test_mpich_that_takes_the_ranks_for_strangers_has_no_shared_memory_of_its_own() -> None:
    """NOLOCAL under the name of the default: nothing is said to be on a node."""
    log = recorded("mpich-5.0.2--shm-ofi-tcp")
    done = log.edited('"peer":"on-node"', '"peer":"off-node"')
    evidence = judge.judge_evidence(
        configuration(log.identity, "shm-ofi-tcp"), LAYOUT, LaunchResult(done, log.ranks)
    )
    assert not evidence.ok
    assert "no-evidence" in errors(evidence)


@pytest.mark.parametrize(
    ("codes", "again"),
    [
        ((), False),
        (("wire-contradiction",), True),
        (("no-evidence", "probe-incomplete"), True),
        (("no-evidence", "probe-incomplete", "wire-contradiction"), True),
        (("wire-contradiction", "transport-mismatch"), False),
        (("libmpi-other",), False),
        (("probe-crash", "no-evidence"), False),
    ],
)
def test_only_what_chance_can_do_is_tried_again(codes: tuple[str, ...], again: bool) -> None:
    findings = tuple(Finding(Level.ERROR, code, "") for code in codes)
    noted = Finding(Level.WARNING, "lane-other", "")
    assert judge.worth_repeating(Evidence("a", "b", (), (*findings, noted), ())) is again


def heard(
    standing: ProofStatus, kind: Kind = Kind.P2P, *, refused: bool = False, unreported: bool = False
) -> TrafficFinding:
    proof = Proof(Peer.ON_NODE, kind, standing, "", "")
    return TrafficFinding(proof=proof, refused=refused, unreported=unreported)


P, N, C, X = (
    ProofStatus.PROVEN,
    ProofStatus.NO_EVIDENCE,
    ProofStatus.CONTRADICTED,
    ProofStatus.NOT_EXERCISED,
)
PUT = Kind.ONE_SIDED


@pytest.mark.parametrize(
    ("all_heard", "due"),
    [
        ([], False),
        ([heard(X)], False),
        ([heard(P)], True),
        ([heard(P), heard(X, PUT)], True),
        ([heard(P), heard(P, PUT)], True),
        ([heard(X), heard(P, PUT)], False),
        ([heard(P), heard(N)], False),
        ([heard(C), heard(P)], False),
        ([heard(P), heard(N, PUT)], False),
        ([heard(P), heard(C, PUT)], False),
        ([heard(P), heard(N, PUT, refused=True)], True),
        ([heard(P), heard(N, PUT, unreported=True)], True),
        ([heard(N, refused=True)], False),
        ([heard(P), heard(N, unreported=True)], False),
    ],
)
def test_a_pass_needs_every_kind_that_moved_bytes(
    all_heard: list[TrafficFinding], due: bool
) -> None:
    """By itself, whatever the findings say."""
    assert judge._all_proven(all_heard) is due


def test_the_wire_of_the_messages_is_kept() -> None:
    evidence = changed(LNX, r'("kind":"p2p".*"lo":)\d+', r"\g<1>77")
    assert dict(evidence.wire)["lo"] == 77
    assert evidence.ok


def test_the_lines_of_a_failure_that_say_most() -> None:
    rule = "-" * 74
    lines = ["No components", "Host: vm"]
    block = f"before\n{rule}\n{lines[0]}\n\n  {lines[1]}\n{rule}\nafter\n"
    assert judge.relevant_lines(block) == judge.relevant_lines(block + block) == lines
    assert judge.relevant_lines(f"only\n{rule}\none rule\n") == ["only", rule, "one rule"]
    assert judge.relevant_lines("\n".join(map(str, range(9)))) == ["3", "4", "5", "6", "7", "8"]
    assert judge.relevant_lines("") == []
