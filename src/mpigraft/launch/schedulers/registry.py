"""Schedulers: how each writes a job script, and what each reports of jobs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from mpigraft.core.env import SCHEDULER_CONFIGURATION
from mpigraft.core.errors import LaunchFailed, MissingError, UsageError
from mpigraft.core.model import JobRequest, JobState, JobStatus
from mpigraft.core.process import Completed, run_command
from mpigraft.launch.schedulers import flux, pbs, slurm

SUBMIT_LIMIT_S = 60.0  # a busy controller is slow; one that is being restarted answers later
ASK_LIMIT_S = 30.0


class Batch(Protocol):
    """What a scheduler's module has: it writes commands and reads output, and starts nothing."""

    SUBMIT: tuple[str, ...]  # reads the script on its standard input
    CANCEL: tuple[str, ...]  # takes the ids of jobs

    def script(self, request: JobRequest) -> str:
        """Return the whole job script. Raises UsageError for words that it cannot contain."""

    def partition_of(self, extra: Sequence[str]) -> str:
        """Return the partition or queue that a user's words name; empty for none. They override
        that of the request, as they come after it in the script."""

    def job_id(self, output: str) -> str:
        """Return the id in what SUBMIT printed; empty where there is none."""

    def status_commands(self, jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Commands that report jobs; each is run for those that the one before did not know."""

    def parse_states(self, output: str) -> dict[str, JobStatus]:
        """Read what one of these commands printed; jobs that it did not name are left out."""

    def is_unknown(self, output: str) -> bool:
        """Return whether a command failed only since it knows none of the jobs."""

    def node_command(self, request: JobRequest) -> tuple[str, ...]:
        """Return a command that runs `request.command` once on each of its nodes, waits, and prints
        its output, each line after the number of its node and `: `. Raises UsageError where the
        scheduler has no such command."""


SCHEDULERS: Mapping[str, Batch] = MappingProxyType({"slurm": slurm, "pbs": pbs, "flux": flux})


def find_scheduler(name: str = "") -> str:
    """Choose the scheduler: the named one, else the one whose commands are installed.
    Raises UsageError for another name, MissingError where there is none."""
    if name:
        _kind(name)
    for known, kind in SCHEDULERS.items():
        if name in ("", known) and shutil.which(kind.SUBMIT[0]):
            return known
    tools = ", ".join(SCHEDULERS[n].SUBMIT[0] for n in SCHEDULERS if name in ("", n))
    raise MissingError.of("no-scheduler", tools=tools)


def submit_script(name: str, script: str) -> str:
    """Submit a script and return the job's id. Raises LaunchFailed with the scheduler's output."""
    kind = SCHEDULERS[name]
    # The job has an environment of its own: what this process has in it of another job would
    # be taken for options (sbatch(1), INPUT ENVIRONMENT VARIABLES) or for the job's own.
    answer = run_command(kind.SUBMIT, env=_outside(), limit_s=SUBMIT_LIMIT_S, stdin=script.encode())
    job = kind.job_id(answer.stdout.decode(errors="replace")) if answer.ok else ""
    if not job:
        raise LaunchFailed.of("job-refused", command=kind.SUBMIT[0], output=_summary(answer))
    return job


def _kind(name: str) -> Batch:
    """Give the scheduler of that name. Raises UsageError."""
    if name not in SCHEDULERS:
        raise UsageError.unknown("word-unknown", name, SCHEDULERS, what="--scheduler")
    return SCHEDULERS[name]


def job_states(name: str, jobs: Sequence[str]) -> dict[str, JobStatus]:
    """Return the state of each job; GONE for one that the scheduler no longer knows. Raises
    MissingError when it does not answer, UsageError for another scheduler."""
    kind = _kind(name)
    known: dict[str, JobStatus] = {}
    for number, words in enumerate(kind.status_commands(jobs) if jobs else ()):
        if not set(jobs) - set(known):
            break
        answer = run_command(words, limit_s=ASK_LIMIT_S)
        if not answer.ok and not kind.is_unknown(answer.text()) and number == 0:
            raise MissingError.of("scheduler-silent", command=words[0], output=_summary(answer))
        states = kind.parse_states(answer.stdout.decode(errors="replace"))
        known |= {job: status for job, status in states.items() if job not in known}
    return {job: known.get(job, JobStatus(JobState.GONE)) for job in jobs}


def cancel_jobs(name: str, jobs: Sequence[str]) -> None:
    """Cancel jobs. Raises LaunchFailed with the scheduler's output, MissingError where it is not
    here."""
    words = (*SCHEDULERS[find_scheduler(name)].CANCEL, *jobs)
    answer = run_command(words, limit_s=ASK_LIMIT_S)
    if not answer.ok:
        raise LaunchFailed.of("job-not-cancelled", command=words[0], output=_summary(answer))


def run_on_nodes(name: str, request: JobRequest) -> Completed:
    """Run a command on nodes of the scheduler and wait for it; see Batch.node_command. Raises
    LaunchFailed with its output when it fails."""
    words = SCHEDULERS[name].node_command(request)
    answer = run_command(words, env=_outside(), limit_s=request.limit_s)
    if not answer.ok:
        late = f"no answer in {request.limit_s} s" if answer.timed_out else _summary(answer)
        more = "give it more --time, or another" if answer.timed_out else "choose another"
        problem = late if late.startswith(words[0]) else f"{words[0]}: {late}"
        raise LaunchFailed.of("node-command-failed", problem=problem, more=more)
    return answer


def _outside() -> dict[str, str]:
    steps = ("SLURM_", "SBATCH_", "SRUN_", "PBS_", "FLUX_JOB_", "PMI_", "PMIX_")
    kept = SCHEDULER_CONFIGURATION
    return {k: v for k, v in os.environ.items() if k in kept or not k.startswith(steps)}


def _summary(answer: Completed) -> str:
    return " ".join(answer.text().split())[-400:] or f"exit code {answer.code}"
