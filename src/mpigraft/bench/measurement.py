"""What one measured launch gave: values, or the reason why there are none.

A value counts when the witness is right (one libmpi, the right one, the world that was asked
for), it was printed whole and its buffers were. A benchmark that crashes does not void those
that ran before it in the same launch; the launch is marked as failed and says why.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mpigraft.bench.schedule.campaign import Step
from mpigraft.bench.suites.base import Parsed
from mpigraft.bench.suites.registry import SUITES
from mpigraft.core.clock import utc_time
from mpigraft.core.env import redact
from mpigraft.core.errors import UsageError
from mpigraft.core.messages import Lines
from mpigraft.core.model import (
    Benchmark,
    Conditions,
    Configuration,
    CpuUse,
    Finding,
    LaunchRecord,
    LaunchState,
    Level,
    Measurement,
    NodeState,
)
from mpigraft.core.process import Completed, clean
from mpigraft.evidence import check_launched, matching_issues
from mpigraft.launch import LaunchResult
from mpigraft.native import NOW, Natives
from mpigraft.request import USUAL_MAX_SIZE, CampaignSpec

TAIL_LINES = 12  # of a failed launch's output, in the finding
OWN_LINES = 3  # of our programs, one for each rank that prints
TIMED_OUT = 124  # exit code of mpigraft-guard at the time limit


@dataclass(frozen=True, slots=True)
class LaunchOutcome:
    """How a launch ended and the values that count, which a failed launch may have too."""

    state: LaunchState
    measurements: tuple[Measurement, ...]
    findings: tuple[Finding, ...]
    nodes: tuple[CpuUse, ...] = ()  # who used the CPUs of each node's ranks
    files: tuple[tuple[str, bytes], ...] = ()  # what it wrote and is kept besides its output


def program(
    spec: CampaignSpec, benchmarks: Sequence[Benchmark], natives: Natives
) -> tuple[str, ...]:
    """Return the native benchmark's command line for one launch that runs all `benchmarks`."""
    names = [":".join([b.name, *(f"{k}={v}" for k, v in b.options)]) for b in benchmarks]
    words = (str(natives.bench), *native_words(spec, names))
    starts = any(b.name == "launch_time" for b in benchmarks)
    return (*words, "--launched", NOW) if starts else words


def native_words(spec: CampaignSpec, names: Sequence[str]) -> tuple[str, ...]:
    """Write the options of mpigraft-bench (docs/reference/native.md) for benchmarks by name. A
    largest size that was requested is passed on: what does not fit into memory is refused."""
    words = ["--benchmark", ",".join(names), "--min", str(spec.min_size)]
    words += ["--budget", f"{spec.budget_ms:g}", "--buffers", spec.buffers]
    if spec.max_size != USUAL_MAX_SIZE:
        words += ["--max", str(spec.max_size)]
    return tuple(words if spec.validate else [*words, "--no-validate"])


Read = Callable[[LaunchResult], Parsed]  # measurements of a launch; raises UsageError


def read_native(step: Step, launched: LaunchResult) -> Parsed:
    return SUITES["native"].parse(launched.completed.stdout, source=step.configuration.id)


def launch_outcome(
    step: Step, benchmarks: Sequence[Benchmark], launched: LaunchResult, read: Read | None = None
) -> LaunchOutcome:
    """Judge one finished launch and take its values out of its output. What is known to be wrong
    with its nodes is reported before how the launch ended."""
    configuration, completed, nodes = step.configuration, launched.completed, launched.nodes
    witness = check_launched(configuration, step.layout, launched)
    ended, state = _ending(configuration, completed)
    ended = (*nodes, *ended)
    if state is None and _errors(nodes):
        state = LaunchState.FAILED
    if _errors(witness):
        return LaunchOutcome(state or LaunchState.MISMATCH, (), ended + witness)
    try:
        parsed = read(launched) if read else read_native(step, launched)
    except UsageError as error:
        output, advice = _last_words(configuration, completed)
        bad = Finding.of("bad-output", problem=error.message, output=output, advice=advice)
        return LaunchOutcome(state or LaunchState.FAILED, (), (*ended, *witness, bad))
    findings = ended + parsed.findings + _missing(benchmarks, parsed.measurements)
    good = tuple(m for m in parsed.measurements if m.valid is not False)
    if state is None:
        state = LaunchState.FAILED if _errors(findings) else LaunchState.OK
    return LaunchOutcome(state, good, witness + findings, parsed.nodes)


def _errors(findings: Sequence[Finding]) -> bool:
    return any(f.level is Level.ERROR for f in findings)


def _ending(
    configuration: Configuration, completed: Completed
) -> tuple[tuple[Finding, ...], LaunchState | None]:
    """Explain a launch that did not end by itself with exit code 0."""
    if completed.ok:
        return (), None
    output, advice = _last_words(configuration, completed)
    if completed.timed_out or completed.code == TIMED_OUT:
        late = Finding.of("timed-out", seconds=completed.wall_s, output=output, advice=advice)
        return (late,), LaunchState.TIMEOUT
    code = completed.code
    failed = Finding.of("launch-failed", exit_code=code, output=output, advice=advice)
    return (failed,), LaunchState.FAILED


def _missing(
    benchmarks: Sequence[Benchmark], measurements: Sequence[Measurement]
) -> tuple[Finding, ...]:
    got = {m.benchmark for m in measurements}
    missing = [b.key for b in benchmarks if not any(b.covers(one) for one in got)]
    if not missing:
        return ()
    return (Finding.of("no-values", benchmarks=", ".join(missing)),)


def _last_words(configuration: Configuration, completed: Completed) -> tuple[str, str]:
    """Give the last lines that a launch printed, and what to do where they are of a known issue.
    Before them what our own programs said: launchers talk long after it."""
    text = redact(clean(completed.stderr) or clean(completed.stdout))
    lines = [line for line in text.splitlines() if line.strip()]
    own = [line for line in lines[:-TAIL_LINES] if line.startswith("mpigraft-")][:OWN_LINES]
    tail = "\n".join([*own, *lines[-TAIL_LINES:]])
    known = matching_issues(completed.text(), configuration.transport)
    fix = "; ".join(f"{issue.id}: {issue.fix}" for issue in known)
    return Lines(tail or "it printed nothing"), fix


def launch_record(
    campaign: str,
    allocation: str,
    step: Step,
    launched: LaunchResult,
    result: LaunchOutcome,
    states: tuple[NodeState, NodeState],
) -> LaunchRecord:
    """Return one launch that just ended, as the store keeps it; `states` of this node before and
    after it."""
    completed = launched.completed
    return LaunchRecord(
        id=str(uuid.uuid4()),
        campaign=campaign,
        allocation=allocation,
        configuration=step.configuration.key,
        layout=step.layout.key,
        round=step.round,
        slot=step.slot,
        replica=step.replica,
        started=utc_time(completed.started),
        wall_s=completed.wall_s,
        exit_code=completed.code,
        state=result.state,
        findings=result.findings,
        ended=utc_time(completed.started + completed.wall_s),
        conditions=Conditions(*states, result.nodes),
        program=step.program,
    )


def place(launch: LaunchRecord) -> tuple[int, str, str, int, str]:
    """Return the place of a stored launch in the schedule: the counterpart of Step.place."""
    return (launch.round, launch.configuration, launch.layout, launch.replica, launch.program)
