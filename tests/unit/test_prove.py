"""What a probe proves, on output that real MPIs printed.

Each check has a test in which it alone is what refuses.
"""

from __future__ import annotations

import json
import re
import signal
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from probes import (
    HERE,
    LAYOUT,
    Recorded,
    asked_for,
    configuration,
    logs,
    recorded,
    records,
    with_transport,
)

from mpigraft import prove
from mpigraft.knowledge.loader import Facts, names
from mpigraft.lanes import (
    Heard,
    Line,
    Phase,
    Wire,
    exercised,
    expected,
    hear,
    lines,
    look,
    named,
    phase_of,
    phases,
    placed,
    wire_says,
)
from mpigraft.model import (
    Evidence,
    Family,
    Finding,
    Kind,
    Layout,
    Level,
    Peer,
    Proof,
    Sign,
    Standing,
)

LOOPBACK = Facts(interface="lo", cxi=(), infiniband=())
AS_ASKED = [
    pytest.param(log, name, id=f"{log.name}-as-{name}") for log in logs() for name in log.asked
]


def facts_of(log: Recorded) -> Facts:
    return LOOPBACK if log.name.endswith("-loopback") else HERE


def unknown(log: Recorded, name: str) -> bool:
    """Whether no row could be asked for: there is no Slingshot here, and 4.1 knows no LNX."""
    old = log.identity.startswith("openmpi@4")
    return name.endswith("cxi") or (old and name in ("ofi-lnx", "ofi-shm"))


def judged(log: Recorded, asked: str, layout: Layout = LAYOUT) -> Evidence:
    asking = configuration(log.identity, asked, facts_of(log))
    return prove.judge(asking, layout, log.completed, log.ranks)


def errors(evidence: Evidence) -> list[str]:
    return [f.code for f in evidence.findings if f.level is Level.ERROR]


def standing(evidence: Evidence, kind: Kind, peer: Peer = Peer.ON_NODE) -> Standing:
    return next(p.standing for p in evidence.proof if (p.kind, p.peer) == (kind, peer))


# ------------------------------------------------------------------ real output


@pytest.mark.parametrize(("log", "asked"), AS_ASKED)
def test_what_ran_as_asked_is_proven(log: Recorded, asked: str) -> None:
    evidence = judged(log, asked)
    assert evidence.ok, evidence.findings
    assert standing(evidence, Kind.P2P) is Standing.PROVEN
    assert standing(evidence, Kind.COLLECTIVE) is Standing.PROVEN
    untold = log.identity.startswith("openmpi@4") and asked != "ucx"
    due = Standing.NO_EVIDENCE if untold else Standing.PROVEN
    assert standing(evidence, Kind.ONE_SIDED) is due
    for kind in Kind:
        assert standing(evidence, kind, Peer.OFF_NODE) is Standing.NOT_EXERCISED
        assert standing(evidence, kind, Peer.SELF) is Standing.NOT_EXERCISED


MATRIX = [
    pytest.param(log, name, id=f"{log.name}-as-{name}")
    for log in logs()
    for name in names(Family(log.identity.partition("@")[0]))
    if name not in log.asked and not unknown(log, name)
]


@pytest.mark.parametrize(("log", "asked"), MATRIX)
def test_no_output_of_another_transport_passes(log: Recorded, asked: str) -> None:
    evidence = judged(log, asked)
    assert not evidence.ok
    assert errors(evidence)


def test_the_matrix_is_whole() -> None:
    """Each family's transports meet each other's output, and those of launches that failed."""
    assert len(MATRIX) > 100
    assert {param.values[1] for param in MATRIX} >= {"ob1-sm", "ofi-lnx", "ucx", "shm", "ofi-tcp"}


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


def test_asked_for_lnx_and_got_ob1() -> None:
    """The silent fallback: exit code 0, all data right, another transport."""
    log = recorded("openmpi-5.0.11--not-lnx-old-name-unforced")
    asking = configuration(log.identity, "ofi-lnx")
    row = asked_for(asking)
    env = tuple(
        replace(r, value="shm+cxi:lnx") if r.name.endswith("provider_include") else r
        for r in row.env
    )
    evidence = prove.judge(with_transport(asking, env=env), LAYOUT, log.completed, log.ranks)
    first = evidence.findings[0]
    assert not evidence.ok
    assert evidence.asked == "ofi-lnx"
    assert evidence.ran.startswith("p2p ob1 (sm)")
    assert (first.level, first.code) == (Level.ERROR, "LNX-01")
    assert "asked for ofi-lnx, ran ob1 (sm)" in first.seen
    assert "the library says" in first.seen
    assert "lnx" in first.mend
    assert "selected ob1 best priority" in first.seen


def test_a_launch_that_failed_after_another_lane_showed_is_a_mismatch() -> None:
    log = recorded("openmpi-5.0.11--not-lnx-old-name-unforced")
    done = replace(log.completed, code=1)
    evidence = prove.judge(configuration(log.identity, "ofi-lnx"), LAYOUT, done, log.ranks)
    assert not evidence.ok
    assert evidence.ran.startswith("p2p ob1 (sm)")


def test_lnx_without_its_shared_memory_is_caught_by_the_wire_alone() -> None:
    log = recorded("openmpi-5.0.11--not-lnx-noshm")
    evidence = judged(log, "ofi-lnx")
    assert errors(evidence) == ["wire-contradiction"]
    assert standing(evidence, Kind.P2P) is Standing.CONTRADICTED
    assert "a network, so not lnx" in evidence.ran
    assert prove.worth_repeating(evidence)  # another job's traffic would look the same


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
        assert not prove.worth_repeating(evidence)
    first = judged(recorded("openmpi-5.0.11--not-ucx-gate"), "ucx").findings[0]
    assert "No components were able to be opened in the pml framework" in first.seen


def test_a_crash_is_reported_with_what_was_proven_before_it() -> None:
    evidence = judged(recorded("openmpi-5.0.11--not-crash-osc"), "ofi-lnx")
    assert errors(evidence) == ["probe-crash"]
    assert evidence.ran == ""  # a failed launch, not another transport
    assert "SIGSEGV" in evidence.findings[0].seen
    assert standing(evidence, Kind.P2P) is Standing.PROVEN
    assert standing(evidence, Kind.ONE_SIDED) is Standing.NO_EVIDENCE


def test_windows_beside_the_transport_are_told_apart() -> None:
    evidence = judged(recorded("openmpi-5.0.11--ofi-lnx"), "ofi-lnx")
    beside = [f for f in evidence.findings if f.code == "lane-beside"]
    assert [f.level for f in beside] == [Level.WARNING]
    assert beside[0].seen == "one-sided on-node went by sm, not by ofi-lnx"


# ------------------------------------------------------------------ one thing at a time


def changed(name: str, old: str, new: str) -> Evidence:
    log = recorded(name)
    asking = configuration(log.identity, log.asked[0])
    return prove.judge(asking, LAYOUT, log.edited(old, new), log.ranks)


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
    assert Standing.CONTRADICTED in {p.standing for p in evidence.proof}
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
    assert Standing.CONTRADICTED not in {p.standing for p in evidence.proof}


@pytest.mark.parametrize(
    "sign", ["mtl:ofi:provider: lnx", "selected cm best", "component sm selected"]
)
def test_every_rank_has_to_say_it(sign: str) -> None:
    log = recorded(LNX)
    who = re.search(rf"\[(vm:\d+)\][^\n]*{sign}".encode(), log.completed.stderr)
    assert who
    line = rf"\[{who[1].decode()}\][^\n]*{sign}[^\n]*\n"
    evidence = prove.judge(
        configuration(log.identity, "ofi-lnx"), LAYOUT, log.edited(line, ""), log.ranks
    )
    assert not evidence.ok
    assert any("1 of 2 ranks say" in f.seen for f in evidence.findings)


def test_signs_do_not_count_without_traffic() -> None:
    """A library that says the right thing and a probe that moved nothing prove nothing."""
    log = recorded(LNX)
    for kind in Kind:
        evidence = prove.judge(
            configuration(log.identity, "ofi-lnx"),
            LAYOUT,
            log.edited(rf'{{"mpigraft":"phase","kind":"{kind}"[^\n]*\n', ""),
            log.ranks,
        )
        assert not evidence.ok
        assert "probe-incomplete" in errors(evidence)
        assert standing(evidence, kind) is Standing.NO_EVIDENCE


def test_a_kind_that_mpi_refuses_is_a_warning_unless_it_is_messages() -> None:
    log = recorded(LNX)

    def refused(kind: Kind) -> Evidence:
        old = rf'("kind":"{kind}"[^\n]*)"ok":true'
        done = log.edited(old, r'\1"ok":false,"error":"MPI_ERR_WIN: invalid window"')
        return prove.judge(configuration(log.identity, "ofi-lnx"), LAYOUT, done, log.ranks)

    windows = refused(Kind.ONE_SIDED)
    assert windows.ok
    assert standing(windows, Kind.ONE_SIDED) is Standing.NO_EVIDENCE
    said = [f for f in windows.findings if f.code == "kind-refused"]
    assert said[0].level is Level.WARNING
    assert "MPI_ERR_WIN" in said[0].seen
    messages = refused(Kind.P2P)
    assert not messages.ok
    assert "kind-refused" in errors(messages)


def test_a_transport_without_signs_is_never_proven() -> None:
    log = recorded(LNX)
    asking = with_transport(configuration(log.identity, "ofi-lnx"), signs=())
    evidence = prove.judge(asking, LAYOUT, log.completed, log.ranks)
    assert not evidence.ok
    assert "no-evidence" in errors(evidence)


def test_one_rank_proves_nothing() -> None:
    log = recorded(LNX)
    layout = Layout(ranks_per_node=1)
    quiet = log.edited(r'{"mpigraft":"phase"[^\n]*\n', "")
    evidence = prove.judge(configuration(log.identity, "ofi-lnx"), layout, quiet, records(1))
    assert not evidence.ok
    assert errors(evidence) == ["not-exercised"]


def test_a_time_limit_is_said() -> None:
    log = recorded(LNX)
    asking = configuration(log.identity, "ofi-lnx")
    for done in (replace(log.completed, code=124), replace(log.completed, timed_out=True)):
        evidence = prove.judge(asking, LAYOUT, done, log.ranks)
        assert not evidence.ok
        assert errors(evidence) == ["probe-timeout"]


@pytest.mark.parametrize(
    ("code", "says"),
    [(-11, "SIGSEGV"), (139, "SIGSEGV"), (134, "SIGABRT"), (143, "exit code 143"), (1, "code 1")],
)
def test_how_a_probe_ended(code: int, says: str) -> None:
    log = recorded(LNX)
    done = replace(log.completed, code=code)
    evidence = prove.judge(configuration(log.identity, "ofi-lnx"), LAYOUT, done, log.ranks)
    assert not evidence.ok
    assert says in evidence.findings[0].seen
    assert signal.SIGSEGV.name not in says or errors(evidence) == ["probe-crash"]


def test_secrets_in_output_are_struck_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SITE_TOKEN", "planted-secret")
    evidence = changed(LNX, "mtl:ofi:provider: lnx", "mtl:ofi:provider: planted-secret")
    assert not evidence.ok
    assert "planted-secret" not in json.dumps([str(evidence.proof), str(evidence.findings)])


def test_evidence_is_kept_for_the_same_contents_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MPIGRAFT_HOME", str(tmp_path / "home"))
    boot = tmp_path / "boot_id"
    boot.write_text("first\n")
    programs = cast(Any, SimpleNamespace(digest="d"))
    asking = configuration("openmpi@5.0.11", "ofi-lnx")
    key = prove.evidence_key(asking, LAYOUT, programs, boot)
    assert key == prove.evidence_key(asking, LAYOUT, programs, boot)
    others = [
        prove.evidence_key(replace(asking, key="other"), LAYOUT, programs, boot),
        prove.evidence_key(asking, Layout(ranks_per_node=4), programs, boot),
        prove.evidence_key(with_transport(asking, signs=()), LAYOUT, programs, boot),
        prove.evidence_key(with_transport(asking, env=()), LAYOUT, programs, boot),
        prove.evidence_key(with_transport(asking, probe_env=()), LAYOUT, programs, boot),
        prove.evidence_key(asking, LAYOUT, cast(Any, SimpleNamespace(digest="e")), boot),
    ]
    (tmp_path / ".openmpi").mkdir()
    (tmp_path / ".openmpi" / "mca-params.conf").write_text("btl = self,tcp\n")
    others.append(prove.evidence_key(asking, LAYOUT, programs, boot))
    boot.write_text("second\n")
    others.append(prove.evidence_key(asking, LAYOUT, programs, boot))
    assert len({key, *others}) == len(others) + 1


# ------------------------------------------------------------------ the wire


def a_phase(sent: int | None, kind: Kind = Kind.P2P, peer: Peer = Peer.ON_NODE) -> Phase:
    return Phase(kind, peer, 1000, () if sent is None else (("lo", sent),), ok=True)


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        (None, Wire.UNREAD),
        (0, Wire.QUIET),
        (100, Wire.QUIET),
        (101, Wire.UNCLEAR),
        (499, Wire.UNCLEAR),
        (500, Wire.CARRIED),
        (2000, Wire.CARRIED),
    ],
)
def test_what_the_wire_says(sent: int | None, says: Wire) -> None:
    assert wire_says(a_phase(sent), frozenset({Peer.ON_NODE})) is says


def test_a_collective_over_nodes_has_bytes_of_both_classes_in_it() -> None:
    both = frozenset({Peer.ON_NODE, Peer.OFF_NODE})
    assert wire_says(a_phase(500, Kind.COLLECTIVE), both) is None
    assert wire_says(a_phase(500), both) is Wire.CARRIED
    assert wire_says(None, both) is None
    assert wire_says(replace(a_phase(0), bytes=0), both) is Wire.UNREAD


WIRE_CASES = [
    # claim, counters -> standing; None: the counters have no say
    ("bytes", Wire.CARRIED, Standing.PROVEN),
    ("bytes", Wire.QUIET, Standing.CONTRADICTED),
    ("bytes", Wire.UNCLEAR, Standing.CONTRADICTED),
    ("bytes", Wire.UNREAD, Standing.NO_EVIDENCE),
    ("bytes", None, Standing.PROVEN),
    ("none", Wire.CARRIED, Standing.CONTRADICTED),
    ("none", Wire.QUIET, Standing.PROVEN),
    ("none", Wire.UNCLEAR, Standing.PROVEN),
    ("none", Wire.UNREAD, Standing.NO_EVIDENCE),
    ("none", None, Standing.PROVEN),
    ("", Wire.CARRIED, Standing.PROVEN),
    ("", Wire.UNREAD, Standing.PROVEN),
]


@pytest.mark.parametrize(("claim", "wire", "due"), WIRE_CASES)
def test_the_wire_against_the_signs(claim: str, wire: Wire | None, due: Standing) -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane: (?P<lane>sm)", "sm", proves=True, wire=claim)
    heard = hear(
        Kind.P2P, Peer.ON_NODE, [sign], lines("lane: sm", ""), a_phase(0), ranks=2, wire=wire
    )
    assert heard.proof.standing is due
    assert heard.by_wire is (due is Standing.CONTRADICTED)
    assert bool(heard.reason) is (due is not Standing.PROVEN)


@pytest.mark.parametrize("name", ["openmpi-5.0.11--ob1-tcp", "mpich-5.0.2--ofi-tcp"])
def test_tcp_without_bytes_on_the_wire_is_an_error(name: str) -> None:
    evidence = changed(name, r'("kind":"p2p".*"lo":)\d+', r"\g<1>0")
    assert errors(evidence) == ["wire-contradiction"]
    assert "no network, so not tcp" in evidence.ran


def test_shared_memory_with_all_bytes_on_the_wire_is_an_error() -> None:
    evidence = changed("openmpi-5.0.11--ob1-sm", r'"lo":\d+', '"lo":99999999')
    assert set(errors(evidence)) == {"wire-contradiction"}
    assert {p.standing for p in evidence.proof if p.peer is Peer.ON_NODE} == {Standing.CONTRADICTED}


def test_a_part_of_the_payload_on_the_wire_is_a_warning() -> None:
    evidence = changed("openmpi-5.0.11--ob1-sm", r'("kind":"p2p".*"lo":)\d+', r"\g<1>9999999")
    assert evidence.ok
    assert "wire-unclear" in {f.code for f in evidence.findings}


def test_counters_that_cannot_be_read_prove_nothing() -> None:
    evidence = changed("openmpi-5.0.11--ob1-sm", r'"wire":{[^}]*}', '"wire":{}')
    assert not evidence.ok
    assert "no-evidence" in errors(evidence)


# ------------------------------------------------------------------ lines and phases

GOOD = {
    "mpigraft": "phase",
    "kind": "p2p",
    "peer": "on-node",
    "bytes": 7,
    "wire": {"lo": 5},
    "ok": True,
}


def written(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def test_a_phase_is_found_behind_other_words() -> None:
    found = phases(f"libfabric: warn{written(GOOD)}tail\n")
    assert found == (Phase(Kind.P2P, Peer.ON_NODE, 7, (("lo", 5),), ok=True),)


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "p3p"},
        {"peer": "near"},
        {"bytes": "7"},
        {"bytes": -1},
        {"bytes": True},
        {"ok": 1},
        {"ok": None},
    ],
)
def test_a_malformed_phase_is_none(change: dict[str, object]) -> None:
    assert phases(written({**GOOD, **change})) == ()


def test_counts_that_are_no_counts_are_left_out() -> None:
    found = phases(written({**GOOD, "wire": {"lo": -1, "e0": "x", "e1": 3, "e2": True}}))
    assert found[0].wire == (("e1", 3),)
    assert phases(written({**GOOD, "wire": [1]}))[0].wire == ()


@given(st.text(), st.text(), st.integers(0, 60))
def test_phases_never_fail_and_never_come_from_a_cut_line(
    before: str, after: str, cut: int
) -> None:
    whole = written(GOOD)
    assert phases(before + whole[: len(whole) - 1 - cut] + "\n" + after.replace("}", "")) == ()
    assert len(phases(before.replace("{", "") + whole + after.replace("{", ""))) == 1


def test_phases_are_placed_where_the_witness_saw_the_ranks() -> None:
    """With MPIR_CVAR_NOLOCAL MPICH takes the ranks of one host for strangers."""
    told = (a_phase(5, peer=Peer.OFF_NODE),)
    assert placed(told, frozenset({Peer.ON_NODE}))[0].peer is Peer.ON_NODE
    assert placed(told, frozenset({Peer.ON_NODE, Peer.OFF_NODE})) == told


def test_which_phase_speaks_of_which_peers() -> None:
    near, far = a_phase(1), a_phase(2, peer=Peer.OFF_NODE)
    last = a_phase(3, Kind.COLLECTIVE, Peer.OFF_NODE)
    told = (near, far, last)
    assert phase_of(told, Kind.P2P, Peer.ON_NODE) is near
    assert phase_of(told, Kind.P2P, Peer.OFF_NODE) is far
    assert phase_of(told, Kind.COLLECTIVE, Peer.ON_NODE) is last
    assert phase_of((far,), Kind.P2P, Peer.ON_NODE) is None
    assert phase_of(told, Kind.ONE_SIDED, Peer.ON_NODE) is None


def test_peers_that_were_there() -> None:
    assert exercised(()) == frozenset()
    assert exercised(records(1)) == frozenset()
    assert exercised(records(2)) == {Peer.ON_NODE}
    assert exercised(records(2, hosts=2)) == {Peer.OFF_NODE}
    both = exercised(records(4, hosts=2))
    assert both == {Peer.ON_NODE, Peer.OFF_NODE}
    assert expected(frozenset()).total() == 0
    assert expected(both).total() == 5
    assert expected(both)[Kind.COLLECTIVE, Peer.OFF_NODE] == 1
    assert expected(frozenset({Peer.ON_NODE}))[Kind.COLLECTIVE, Peer.ON_NODE] == 1


def test_two_nodes_over_a_transport_of_one_are_refused() -> None:
    log = recorded("openmpi-5.0.11--ob1-sm")
    layout = Layout(nodes=2, ranks_per_node=1)
    asking = configuration(log.identity, "ob1-sm")
    evidence = prove.judge(asking, layout, log.completed, records(2, hosts=2))
    assert not evidence.ok
    assert "peer-class" in errors(evidence)


def test_a_sign_is_looked_for_where_it_is_printed() -> None:
    sign = Sign(Kind.P2P, Peer.ON_NODE, "lane (?P<lane>x)", "", proves=True, where="stderr")
    output = [Line("stdout", "lane x")]
    assert look(sign, output) is None
    assert look(replace(sign, where="any"), output) is not None
    seen = look(sign, [*output, Line("stderr", " lane x ")])
    assert seen is not None
    assert (seen.lane, seen.line, seen.each) == ("x", "lane x", False)


def test_lanes_are_named_once() -> None:
    def seen(pattern: str, lane: str, text: str) -> Any:
        return look(Sign(Kind.P2P, Peer.ON_NODE, pattern, lane, proves=True), lines(text, ""))

    one = seen("a (?P<lane>lnx)", "provider", "a lnx")
    two = seen("b (?P<lane>shm)", "domain", "b shm")
    unnamed = seen("c ofi", "", "c ofi")
    fixed = seen("d", "posix shm", "d")
    assert named([one, two, one, unnamed]) == "lnx (shm)"
    assert named([fixed]) == "posix shm"
    assert named([unnamed]) == ""


def test_mpich_that_takes_the_ranks_for_strangers_has_no_shared_memory_of_its_own() -> None:
    """NOLOCAL under the name of the default: nothing is said to be on a node."""
    log = recorded("mpich-5.0.2--shm-ofi-tcp")
    done = log.edited('"peer":"on-node"', '"peer":"off-node"')
    evidence = prove.judge(configuration(log.identity, "shm-ofi-tcp"), LAYOUT, done, log.ranks)
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
    noted = Finding(Level.WARNING, "lane-beside", "")
    assert prove.worth_repeating(Evidence("a", "b", (), (*findings, noted), ())) is again


def heard(
    standing: Standing, kind: Kind = Kind.P2P, *, refused: bool = False, untold: bool = False
) -> Heard:
    proof = Proof(Peer.ON_NODE, kind, standing, "", "")
    return Heard(proof=proof, refused=refused, untold=untold)


P, N, C, X = Standing.PROVEN, Standing.NO_EVIDENCE, Standing.CONTRADICTED, Standing.NOT_EXERCISED
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
        ([heard(P), heard(N, PUT, untold=True)], True),
        ([heard(N, refused=True)], False),
        ([heard(P), heard(N, untold=True)], False),
    ],
)
def test_a_pass_needs_every_kind_that_moved_bytes(all_heard: list[Heard], due: bool) -> None:
    """By itself, whatever the findings say."""
    assert prove._all_proven(all_heard) is due


def test_the_wire_of_the_messages_is_kept() -> None:
    evidence = changed(LNX, r'("kind":"p2p".*"lo":)\d+', r"\g<1>77")
    assert dict(evidence.wire)["lo"] == 77
    assert evidence.ok
