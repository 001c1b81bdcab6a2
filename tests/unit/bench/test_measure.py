"""A launch counts only when all of it is right; otherwise it says why and gives no value."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from datetime import datetime
from pathlib import Path

import pytest

from mpigraft.bench import measurement
from mpigraft.bench.schedule.campaign import Step
from mpigraft.bench.suites.base import Parsed
from mpigraft.core.model import Benchmark, Finding, LaunchState, Layout, Level, NodeState
from mpigraft.core.process.command import Completed, run_command
from mpigraft.evidence.runner import stamped
from mpigraft.knowledge import known_issues
from mpigraft.launch import LaunchResult
from mpigraft.native.programs import NOW, Natives
from mpigraft.request.spec import CampaignSpec
from tests.builders.configuration import a_configuration, an_mpi
from tests.builders.messages import shows

LATENCY = Benchmark("native", "latency")
BIBW = Benchmark("native", "bibw")
CONFIGURATION = a_configuration(an_mpi())


def lines(*benchmarks: str, valid: bool = True, end: bool = True) -> bytes:
    values = [
        {
            "mpigraft": "value",
            "benchmark": name,
            "metric": "bandwidth" if name == "bibw" else "latency",
            "unit": "MB/s" if name == "bibw" else "us",
            "size": size,
            "value": 1.5,
            "mean": 1.6,
            "min": 1.0,
            "max": 2.0,
            "p90": 1.9,
            "p99": 2.0,
            "iterations": 100,
            "batch": 10,
            "valid": valid,
            "samples": [1.5, 1.6],
        }
        for name in benchmarks
        for size in (1, 2)
    ]
    begin = {"mpigraft": "begin", "ranks": 2, "library": "Open MPI v5.0.11"}
    last = [{"mpigraft": "end", "values": len(values)}] if end else []
    return b"".join(json.dumps(v).encode() + b"\n" for v in [begin, *values, *last])


def ended(stdout: bytes = b"", code: int = 0, stderr: bytes = b"", late: bool = False) -> Completed:
    return Completed(("mpiexec",), code, stdout, stderr, 1.0, late)


def judged(
    completed: Completed,
    monkeypatch: pytest.MonkeyPatch,
    *benchmarks: Benchmark,
    witness: tuple[Finding, ...] = (),
    nodes: tuple[Finding, ...] = (),
) -> measurement.LaunchOutcome:
    def told(*arguments: object) -> tuple[Finding, ...]:
        assert arguments == (CONFIGURATION, Layout(), launched)
        return witness

    launched = LaunchResult(completed, (), nodes=nodes)
    monkeypatch.setattr(measurement, "check_launched", told)
    wanted = benchmarks or (LATENCY,)
    return measurement.launch_outcome(Step(0, 0, CONFIGURATION, Layout()), wanted, launched)


def test_a_node_that_was_lost_comes_before_how_the_launch_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What ran before counts all the same."""
    lost = Finding(Level.ERROR, "node-lost", "n2 answered")
    got = judged(ended(lines("latency"), code=124), monkeypatch, nodes=(lost,))
    assert [f.code for f in got.findings][:2] == ["node-lost", "timed-out"]
    assert got.state is LaunchState.TIMEOUT
    assert got.measurements


def test_a_launch_that_lost_a_node_failed_whatever_its_exit_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = Finding(Level.ERROR, "node-lost", "n2 answered")
    silent = Finding(Level.WARNING, "node-silent", "n2 never answered")
    none = (Finding(Level.ERROR, "no-witness", "no rank wrote a record"),)
    states = [
        judged(ended(b""), monkeypatch, witness=none, nodes=(found,)).state
        for found in (lost, silent)
    ]
    assert states == [LaunchState.FAILED, LaunchState.MISMATCH]


def test_a_good_launch_gives_its_values(monkeypatch: pytest.MonkeyPatch) -> None:
    got = judged(ended(lines("latency", "bibw")), monkeypatch, LATENCY, BIBW)
    assert got.state is LaunchState.OK
    assert [(m.benchmark, m.size, m.value) for m in got.measurements[:2]] == [
        (LATENCY, 1, 1.5),
        (LATENCY, 2, 1.5),
    ]
    assert len(got.measurements) == 4


def test_a_program_of_a_suite_has_a_reader_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads the launch, and not our native program's lines, whatever was printed."""
    monkeypatch.setattr(measurement, "check_launched", lambda *_: ())
    launched = LaunchResult(ended(lines("latency", "bibw")), ())
    bibw = measurement.read_native(Step(0, 0, CONFIGURATION, Layout()), launched)
    only = replace(bibw, measurements=bibw.measurements[2:])

    def read(given: LaunchResult) -> Parsed:
        assert given is launched
        return only

    step = Step(0, 0, CONFIGURATION, Layout())
    got = measurement.launch_outcome(step, (BIBW,), launched, read)
    assert [m.benchmark for m in got.measurements] == [BIBW, BIBW]


@pytest.mark.parametrize(
    ("completed", "state", "code"),
    [
        (ended(late=True), LaunchState.TIMEOUT, "timed-out"),
        (ended(code=124), LaunchState.TIMEOUT, "timed-out"),
        (ended(code=1), LaunchState.FAILED, "launch-failed"),
        (ended(code=-11), LaunchState.FAILED, "launch-failed"),
        (ended(b""), LaunchState.FAILED, ""),
        (ended(b"\0\0 noise \0"), LaunchState.FAILED, ""),
        (ended(lines("latency", valid=False)), LaunchState.FAILED, ""),
    ],
)
def test_a_launch_without_a_good_value_gives_none_and_says_why(
    completed: Completed, state: LaunchState, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = judged(completed, monkeypatch)
    assert got.state is state
    assert got.measurements == ()
    assert any(f.level is Level.ERROR for f in got.findings)
    if code:
        assert code in {f.code for f in got.findings}


@pytest.mark.parametrize(
    ("completed", "state"),
    [
        (ended(lines("latency", end=False), code=-11), LaunchState.FAILED),
        (ended(lines("latency", end=False), late=True), LaunchState.TIMEOUT),
        (ended(lines("latency", end=False)), LaunchState.FAILED),
        (ended(lines("latency")), LaunchState.FAILED),
    ],
)
def test_values_before_a_crash_count_and_the_launch_is_failed_all_the_same(
    completed: Completed, state: LaunchState, monkeypatch: pytest.MonkeyPatch
) -> None:
    got = judged(completed, monkeypatch, LATENCY, BIBW)
    assert got.state is state
    assert {m.benchmark for m in got.measurements} == {LATENCY}
    assert any(f.level is Level.ERROR for f in got.findings)


def test_a_wrong_world_is_a_mismatch_however_good_the_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    worlds = (Finding(Level.ERROR, "LCH-01", "two worlds of one"),)
    got = judged(ended(lines("latency")), monkeypatch, witness=worlds)
    assert (got.state, got.measurements) == (LaunchState.MISMATCH, ())


def test_a_wrong_world_that_had_to_be_ended_is_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    worlds = (Finding(Level.ERROR, "LCH-01", "two worlds of one"),)
    got = judged(ended(lines("latency"), late=True), monkeypatch, witness=worlds)
    assert (got.state, got.measurements) == (LaunchState.TIMEOUT, ())
    assert [f.code for f in got.findings] == ["timed-out", "LCH-01"]


@pytest.mark.parametrize(
    ("code", "state", "codes"),
    [
        (0, LaunchState.FAILED, ["binding", "bad-output"]),
        (124, LaunchState.TIMEOUT, ["timed-out", "binding", "bad-output"]),
    ],
)
def test_output_that_is_not_the_programs_gives_nothing(
    code: int, state: LaunchState, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = b'{"mpigraft":"value","size":"x"}\n' + lines("latency")
    noted = (Finding(Level.WARNING, "binding", "ranks share cores"),)
    got = judged(ended(bad, code=code), monkeypatch, witness=noted)
    assert (got.state, got.measurements) == (state, ())
    assert [f.code for f in got.findings] == codes
    levels = [Level.WARNING if name == "binding" else Level.ERROR for name in codes]
    assert [f.level for f in got.findings] == levels


def test_a_failure_names_the_known_issue_and_its_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    said = b"x\nOMPI was not built with SLURM's PMI support\n"
    finding = judged(ended(code=1, stderr=said), monkeypatch).findings[0]
    issue = next(i for i in known_issues() if i.id == "LCH-02")
    assert finding.fix == f"LCH-02: {issue.fix}"
    assert shows(judged(ended(code=1), monkeypatch).findings[0].why, "nothing")


def test_the_last_lines_of_a_failure_are_those_with_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said = b"".join(b"line %d\n\n" % n for n in range(20))
    finding = judged(ended(code=1, stderr=said), monkeypatch).findings[0]
    assert finding.why.split("\n") == [f"line {n}" for n in range(8, 20)]


def test_what_our_program_said_stands_before_the_last_lines_of_a_launcher(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = [b"mpigraft-mini: rank %d: no diagonal\n" % rank for rank in range(5)]
    said = b"".join([b"start\n" * 15, *own, *(b"launcher %d\n" % n for n in range(20))])
    lines = judged(ended(code=3, stderr=said), monkeypatch).findings[0].why.split("\n")
    assert lines[:3] == [f"mpigraft-mini: rank {rank}: no diagonal" for rank in range(3)]
    assert lines[3:] == [f"launcher {n}" for n in range(8, 20)]


def test_how_a_launch_ended_comes_before_what_the_witness_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A launcher that was killed writes no record: the signal is the news, not the record."""
    missed = (Finding(Level.ERROR, "no-witness", "no rank wrote a record"),)
    got = judged(ended(code=-9), monkeypatch, witness=missed)
    assert [f.code for f in got.findings] == ["launch-failed", "no-witness"]
    assert got.state is LaunchState.FAILED


def test_a_failure_quotes_the_last_output_without_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "planted-1234")
    said = b"one\n\nmpirun: no such planted-1234 \x1b[2J host\n"
    finding = judged(ended(code=1, stderr=said), monkeypatch).findings[0]
    assert "no such" in finding.why
    assert "planted" not in finding.why
    assert "\x1b" not in finding.why


def test_options_of_a_benchmark_reach_the_program() -> None:
    sparse = Benchmark.parse("native:alltoallv,counts=sparse")
    here = Natives(Path("/n/bench"), Path("/n/witness"), Path("/n/guard"), "d")
    words = measurement.program(CampaignSpec(budget_ms=5, validate=False), (LATENCY, sparse), here)
    assert words[:3] == ("/n/bench", "--benchmark", "latency,alltoallv:counts=sparse")
    assert "--no-validate" in words


def test_a_program_gets_the_time_at_which_its_launcher_started(tmp_path: Path) -> None:
    """Only where launch_time is measured, and not before the launcher is started."""
    natives = Natives(tmp_path / "bench", tmp_path / "witness", tmp_path / "guard", "")
    timeless = measurement.program(CampaignSpec(), (LATENCY,), natives)
    assert "--launched" not in timeless
    words = measurement.program(
        CampaignSpec(), (LATENCY, Benchmark("native", "launch_time")), natives
    )
    assert words[-2:] == ("--launched", NOW)
    before = time.time()
    stamp = float(stamped(("mpirun", *words))[-1])
    assert before - 1e-6 <= stamp <= time.time()
    assert stamped(timeless) == [*timeless]


def test_a_launch_is_stored_with_the_times_at_which_it_started_and_ended() -> None:
    completed = run_command(["sh", "-c", "date +%s.%N; sleep 0.05"])
    within = float(completed.stdout)
    step = Step(0, 0, CONFIGURATION, Layout())
    outcome = measurement.LaunchOutcome(LaunchState.OK, (), ())
    launched = LaunchResult(completed, ())
    kept = measurement.launch_record("c", "a", step, launched, outcome, (NodeState(), NodeState()))
    started, ended = map(datetime.fromisoformat, (kept.started, kept.ended))
    assert started.timestamp() <= within <= ended.timestamp()
