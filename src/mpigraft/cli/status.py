"""`mpigraft status`: the progress of a campaign's jobs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypedDict

import typer

from mpigraft.cli.common import Json, flag, out, store_of, tell
from mpigraft.core.errors import MissingError
from mpigraft.core.numbers import counted

if TYPE_CHECKING:
    from mpigraft.bench import SubmissionStatus
    from mpigraft.core.model import Finding, SubmissionRecord


class StatusDocument(TypedDict):
    """The progress of a submitted campaign's jobs."""

    submission: SubmissionStatus
    scheduler_silent: str  # why the scheduler did not answer; empty: it did
    findings: Sequence[Finding]  # files of the store that could not be read


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(help="Id, its beginning, or name.", show_default="the last submitted"),
    ] = "",
    cancel: Annotated[
        bool, flag("Cancel its jobs first, the waiting ones before the others.", "--cancel")
    ] = False,
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
    from mpigraft.report import submission_lines

    store = store_of(ctx)
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
    out("\n".join(submission_lines(status, silent=bool(silent))))


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
