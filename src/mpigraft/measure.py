"""What one measured launch gave: values, or the reason why there are none.

A value counts when the witness is right (one libmpi, the right one, the world that was asked
for), it was printed whole and its buffers were. A benchmark that crashes does not void those
that ran before it in the same launch; the launch is marked as failed and says why.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from mpigraft.campaign import Step, time_of
from mpigraft.env import redact
from mpigraft.errors import UsageError
from mpigraft.knowledge.loader import matching_issues
from mpigraft.model import (
    NOWHERE,
    Benchmark,
    Conditions,
    Configuration,
    CpuUse,
    Finding,
    LaunchRecord,
    LaunchState,
    Layout,
    Level,
    Measurement,
    NodeState,
    Placement,
    RankRecord,
)
from mpigraft.natives import NOW, Natives
from mpigraft.prove import check_witness
from mpigraft.run import Completed, clean
from mpigraft.suites import SUITES
from mpigraft.wish import Wish

TAIL_LINES = 12  # of a failed launch's output, in the finding
TIMED_OUT = 124  # exit code of mpigraft-guard at the time limit


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a launch ended and the values that count, which a failed launch may have too."""

    state: LaunchState
    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...]
    nodes: tuple[CpuUse, ...] = ()  # who used the CPUs of each node's ranks


def program(wish: Wish, benchmarks: Sequence[Benchmark], natives: Natives) -> tuple[str, ...]:
    """The native benchmark's command line for one launch that runs all `benchmarks`."""
    names = [":".join([b.name, *(f"{k}={v}" for k, v in b.options)]) for b in benchmarks]
    words = [
        str(natives.bench),
        "--benchmark", ",".join(names),
        "--min", str(wish.min_size),
        "--budget", f"{wish.budget_ms:g}",
        "--buffers", wish.buffers,
    ]  # fmt: skip
    if wish.max_size != Wish().max_size:
        words += [
            "--max",
            str(wish.max_size),
        ]  # asked for: what does not fit into memory is refused
    if not wish.validate:
        words.append("--no-validate")
    if any(b.name == "launch_time" for b in benchmarks):
        words += ["--launched", NOW]
    return tuple(words)


def outcome(
    configuration: Configuration,
    layout: Layout,
    benchmarks: Sequence[Benchmark],
    completed: Completed,
    ranks: tuple[RankRecord, ...],
    placement: Placement = NOWHERE,
    hosts: Sequence[str] = (),
    nodes: Sequence[Finding] = (),
) -> Outcome:
    """Judge one finished launch and take its values out of its output. `nodes`: what is known to
    be wrong with these, which is said before how the launch ended."""
    witness = check_witness(configuration, layout, ranks, placement, hosts, ended=completed.ok)
    ended, state = _ending(configuration, completed)
    ended = (*nodes, *ended)
    if state is None and _errors(nodes):
        state = LaunchState.FAILED
    if _errors(witness):
        return Outcome(state or LaunchState.MISMATCH, (), ended + witness)
    try:
        parsed = SUITES["native"].parse(completed.stdout, source=configuration.id)
    except UsageError as error:
        bad = _finding(configuration, completed, "bad-output", error.seen)
        return Outcome(state or LaunchState.FAILED, (), (*ended, *witness, bad))
    findings = ended + parsed.findings + _missing(benchmarks, parsed.measurements)
    good = tuple(m for m in parsed.measurements if m.valid is not False)
    if state is None:
        state = LaunchState.FAILED if _errors(findings) else LaunchState.OK
    return Outcome(state, good, witness + findings, parsed.nodes)


def _errors(findings: Sequence[Finding]) -> bool:
    return any(f.level is Level.ERROR for f in findings)


def _ending(
    configuration: Configuration, completed: Completed
) -> tuple[tuple[Finding, ...], LaunchState | None]:
    """What is to be said of a launch that did not end by itself with exit code 0."""
    if completed.timed_out or completed.code == TIMED_OUT:
        seen = f"was still running after {completed.wall_s:.0f} s and was ended"
        return (_finding(configuration, completed, "timed-out", seen),), LaunchState.TIMEOUT
    if completed.code != 0:
        seen = f"ended with exit code {completed.code}"
        return (_finding(configuration, completed, "launch-failed", seen),), LaunchState.FAILED
    return (), None


def _missing(
    benchmarks: Sequence[Benchmark], measurements: Sequence[Measurement]
) -> tuple[Finding, ...]:
    got = {m.benchmark for m in measurements}
    lost = [b.key for b in benchmarks if b not in got]
    if not lost:
        return ()
    seen = f"no values of {', '.join(lost)} although the launch ended with exit code 0"
    return (Finding(Level.ERROR, "no-output", seen),)


def _finding(configuration: Configuration, completed: Completed, code: str, seen: str) -> Finding:
    """A launch that did not end well: what it said last and what is known of that."""
    text = redact(clean(completed.stderr) or clean(completed.stdout))
    tail = "\n".join([line for line in text.splitlines() if line.strip()][-TAIL_LINES:])
    known = matching_issues(completed.text(), configuration.transport)
    mend = "; ".join(f"{issue.id}: {issue.fix}" for issue in known)
    why = tail or "it printed nothing"
    return Finding(Level.ERROR, code, f"the launch {seen}", why=why, mend=mend)


def record(
    campaign: str,
    allocation: str,
    step: Step,
    completed: Completed,
    result: Outcome,
    states: tuple[NodeState, NodeState],
) -> LaunchRecord:
    """One launch that just ended, as the store keeps it; `states` of this node before and after
    it."""
    return LaunchRecord(
        id=str(uuid.uuid4()),
        campaign=campaign,
        allocation=allocation,
        configuration=step.configuration.key,
        layout=step.layout.key,
        round=step.round,
        slot=step.slot,
        replica=step.replica,
        started=time_of(completed.started),
        wall_s=completed.wall_s,
        exit_code=completed.code,
        state=result.state,
        findings=result.findings,
        ended=time_of(completed.started + completed.wall_s),
        conditions=Conditions(*states, result.nodes),
    )


def place(launch: LaunchRecord) -> tuple[int, str, str, int]:
    """Where a stored launch stands in the schedule: the counterpart of Step.place."""
    return (launch.round, launch.configuration, launch.layout, launch.replica)
