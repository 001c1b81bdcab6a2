"""What one measured launch gave: values, or the reason why there are none.

A launch counts only when all of it is right: the exit code, the witness (one libmpi, the right
one, the world that was asked for) and every buffer. Values of any other launch are dropped and
the launch says why; its output is kept.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from mpigraft.campaign import Step, now
from mpigraft.env import redact
from mpigraft.errors import UsageError
from mpigraft.knowledge.loader import matching_issues
from mpigraft.model import (
    Benchmark,
    Configuration,
    Finding,
    LaunchRecord,
    LaunchState,
    Layout,
    Level,
    Measurement,
    RankRecord,
)
from mpigraft.natives import Natives
from mpigraft.prove import check_witness
from mpigraft.run import Completed, clean
from mpigraft.suites import SUITES
from mpigraft.wish import Wish

TAIL_LINES = 12  # of a failed launch's output, in the finding


@dataclass(frozen=True, slots=True)
class Outcome:
    """`measurements` is empty unless `state` is OK."""

    state: LaunchState
    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...]


def program(wish: Wish, benchmarks: Sequence[Benchmark], natives: Natives) -> tuple[str, ...]:
    """The native benchmark's command line for one launch that runs all `benchmarks`."""
    names = [":".join([b.name, *(f"{k}={v}" for k, v in b.options)]) for b in benchmarks]
    words = [
        str(natives.bench),
        "--benchmark", ",".join(names),
        "--min", str(wish.min_size),
        "--max", str(wish.max_size),
        "--budget", f"{wish.budget_ms:g}",
        "--buffers", wish.buffers,
    ]  # fmt: skip
    return tuple(words if wish.validate else [*words, "--no-validate"])


def outcome(
    configuration: Configuration,
    layout: Layout,
    benchmarks: Sequence[Benchmark],
    completed: Completed,
    ranks: tuple[RankRecord, ...],
) -> Outcome:
    """Judge one finished launch and take its values out of its output."""
    if completed.timed_out or completed.code == 124:
        return _bad(LaunchState.TIMEOUT, configuration, completed, "timed-out", "was hung: ended")
    if completed.code != 0:
        seen = f"ended with exit code {completed.code}"
        return _bad(LaunchState.FAILED, configuration, completed, "launch-failed", seen)
    witness = check_witness(configuration, layout, ranks)
    if any(f.level is Level.ERROR for f in witness):
        return Outcome(LaunchState.MISMATCH, (), witness)
    try:
        parsed = SUITES["native"].parse(completed.stdout, source=configuration.id)
    except UsageError as error:
        return _bad(LaunchState.FAILED, configuration, completed, "bad-output", error.seen)
    findings = witness + parsed.findings + _missing(benchmarks, parsed.measurements)
    wrong = any(f.level is Level.ERROR for f in findings)
    if wrong:
        return Outcome(LaunchState.FAILED, (), findings)
    return Outcome(LaunchState.OK, parsed.measurements, findings)


def _missing(
    benchmarks: Sequence[Benchmark], measurements: Sequence[Measurement]
) -> tuple[Finding, ...]:
    got = {m.benchmark for m in measurements}
    lost = [b.key for b in benchmarks if b not in got]
    if not lost:
        return ()
    seen = f"no values of {', '.join(lost)} although the launch ended with exit code 0"
    return (Finding(Level.ERROR, "no-output", seen),)


def _bad(
    state: LaunchState, configuration: Configuration, completed: Completed, code: str, seen: str
) -> Outcome:
    """The finding of a launch that did not end well: what it said last and what is known."""
    text = redact(clean(completed.stderr) or clean(completed.stdout))
    tail = "\n".join([line for line in text.splitlines() if line.strip()][-TAIL_LINES:])
    known = ()
    if configuration.transport and configuration.mpi:
        known = matching_issues(completed.text(), configuration.transport, configuration.mpi)
    mend = "; ".join(f"{issue.id}: {issue.fix}" for issue in known)
    finding = Finding(
        Level.ERROR, code, f"{configuration.id} {seen}", why=tail or "it printed nothing", mend=mend
    )
    return Outcome(state, (), (finding,))


def record(
    campaign: str, allocation: str, step: Step, completed: Completed, result: Outcome
) -> LaunchRecord:
    """One launch that just ended, as the store keeps it."""
    return LaunchRecord(
        id=str(uuid.uuid4()),
        campaign=campaign,
        allocation=allocation,
        configuration=step.configuration.key,
        layout=step.layout.key,
        round=step.round,
        slot=step.slot,
        replica=step.replica,
        started=now(),
        wall_s=completed.wall_s,
        exit_code=completed.code,
        state=result.state,
        findings=result.findings,
    )


def place(launch: LaunchRecord) -> tuple[int, str, str, int]:
    """Where a stored launch stands in the schedule: the counterpart of Step.place."""
    return (launch.round, launch.configuration, launch.layout, launch.replica)
