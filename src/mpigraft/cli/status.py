"""`mpigraft status`: the progress of a campaign's jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from mpigraft.cli.common import Json, flag, out, settings, tell
from mpigraft.core.errors import MissingError
from mpigraft.core.numbers import counted, duration

if TYPE_CHECKING:
    from mpigraft.bench import ShareStatus, SubmissionStatus
    from mpigraft.core.model import Finding, SubmissionRecord


class StatusDocument(TypedDict):
    """The progress of a submitted campaign's jobs."""

    submission: SubmissionStatus
    scheduler_silent: str  # why the scheduler did not answer; empty: it did
    findings: Sequence[Finding]  # files of the store that could not be read


SHOWN = 5  # findings, and words of a list of hosts


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(help="Id, its beginning, or name.", show_default="the last submitted"),
    ] = "",
    cancel: Annotated[bool, flag("Cancel its jobs first, the waiting ones before the others.")] = (
        False
    ),
    as_json: Json = False,
) -> None:
    """Show the progress of a submitted campaign's jobs, and what went wrong.

    \b
    Examples:
      mpigraft status night
      mpigraft status night --cancel
    """
    from mpigraft.bench import submission_status
    from mpigraft.cli.submit import find
    from mpigraft.core.serialize import document
    from mpigraft.launch import job_states
    from mpigraft.store import Store

    store = Store(settings(ctx).store)
    record = find(store, campaign)
    jobs = [job.job for job in store.jobs(record.campaign)]
    silent = ""
    if cancel:
        _cancel(record, jobs)
    try:
        states = job_states(record.scheduler, jobs)
    except MissingError as error:  # the store has its part to show all the same
        states, silent = {}, str(error)
    status = submission_status(store, record, states)
    if as_json:
        keys = StatusDocument(submission=status, scheduler_silent=silent, findings=store.findings)
        out(document(**keys))
        return
    if silent:
        tell(silent)
    out("\n".join(lines(status, silent=bool(silent))))


def _cancel(record: SubmissionRecord, jobs: Sequence[str]) -> None:
    """Cancel those that wait, the last first, then those that run: if a job of a chain ended while
    the next one waits, that one would start. Raises what the scheduler's commands raise."""
    from mpigraft.core.model import JobState
    from mpigraft.launch import cancel_jobs, job_states

    states = job_states(record.scheduler, jobs)
    for state in (JobState.PENDING, JobState.RUNNING):
        if own := [job for job in reversed(jobs) if states[job].state is state]:
            cancel_jobs(record.scheduler, own)
            tell(f"cancelled {state} {counted(len(own), 'job')}: {', '.join(own)}")
    if not any(status.state in (JobState.PENDING, JobState.RUNNING) for status in states.values()):
        tell(f"no job of {record.name} waits or runs")


def lines(status: SubmissionStatus, *, silent: bool = False) -> Iterator[str]:
    record = status.record
    jobs, nodes = counted(record.shares, "job"), counted(record.nodes, "node")
    yield f"{record.name} ({record.campaign[:8]}), {jobs} of {nodes} by {record.scheduler}"
    if not status.planned:
        yield "  not planned yet: the first job to start does that"
    for share in status.shares:
        yield f"  share {share.share}/{record.shares}  {_share(share, silent)}"
    for finding, times in status.findings[:SHOWN]:
        yield f"  {times} x {finding.code}: {finding.message.partition(chr(10))[0]}"
    if len(status.findings) > SHOWN:
        yield f"  and {len(status.findings) - SHOWN} other failures: `mpigraft results show`"
    short = record.campaign[:8]
    if all(share.done for share in status.shares):
        yield f"done: `mpigraft compare {short}`"
    elif status.open and not silent:
        yield f"`mpigraft submit --resume {short}` submits what was cut off"


def _share(share: ShareStatus, silent: bool) -> str:
    from mpigraft.core.hostlist import fold_hosts
    from mpigraft.launch import waiting_reason

    made = counted(share.launches, "launch")
    where = f" on {fold_hosts(share.nodes.split(','), SHOWN)}" if share.nodes else ""
    if share.done:
        waits = share.status.state == "pending"
        rest = (share.job, *share.behind) if waits else share.behind
        idle = f"; queued with nothing left to do: {', '.join(rest)}" if rest else ""
        return f"done: {made}{where}{idle}"
    if not share.job:
        return "not submitted"
    state = "state not known" if silent else str(share.status.state)
    word = f" ({share.status.word})" if share.status.word.lower() != state else ""
    word += " again after it ran" if share.requeued else ""
    reason = f", {share.status.reason}" if share.status.reason else ""
    if share.status.state == "pending" and (words := waiting_reason(share.status.reason)):
        reason += f": {words}"
    left = f", {share.left} left" if share.left else ""
    eta = "" if share.left_s is None else f", about {duration(share.left_s)}"
    then = f"; then {', '.join(share.behind)}" if share.behind else ""
    return f"job {share.job} {state}{word}{reason}{where}: {made}{left}{eta}{then}"
