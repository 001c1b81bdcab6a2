"""Schedulers: what a job script says in their words, and what they say of jobs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol

from mpigraft.errors import LaunchFailed, MissingError, UsageError
from mpigraft.model import JobState, JobStatus, JobWish
from mpigraft.run import Completed, run
from mpigraft.schedulers import flux, pbs, slurm

SUBMIT_LIMIT_S = 60.0  # a busy controller is slow; one that is being restarted answers later
ASK_LIMIT_S = 30.0


class Batch(Protocol):
    """What a scheduler's module gives: words and readings only, nothing is started there."""

    SUBMIT: tuple[str, ...]  # reads the script on its standard input

    def script(self, wish: JobWish) -> str:
        """The whole job script. Raises UsageError for words that cannot stand in it."""

    def job_id(self, said: str) -> str:
        """The id in what SUBMIT printed; empty where there is none."""

    def asking(self, jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Commands that tell of jobs; each is asked of those that the one before did not know."""

    def states(self, said: str) -> dict[str, JobStatus]:
        """What one of these commands printed; jobs that it did not name are not in it."""

    def unknown(self, said: str) -> bool:
        """Whether a command failed only since it knows none of the jobs."""

    def through(self, wish: JobWish) -> tuple[str, ...]:
        """A command that runs `wish.command` once on each of its nodes, waits, and prints what it
        printed, each line after the number of its node and `: `. Raises UsageError where the
        scheduler has no such command."""


SCHEDULERS: Mapping[str, Batch] = MappingProxyType({"slurm": slurm, "pbs": pbs, "flux": flux})


def here(wish: str = "") -> str:
    """The scheduler to use: the one that was asked for, else the one whose commands are here.
    Raises UsageError for another name, MissingError where there is none."""
    if wish and wish not in SCHEDULERS:
        raise UsageError(f"--scheduler {wish!r}", mend=f"one of {', '.join(SCHEDULERS)}")
    for name, kind in SCHEDULERS.items():
        if wish in ("", name) and shutil.which(kind.SUBMIT[0]):
            return name
    tools = ", ".join(SCHEDULERS[n].SUBMIT[0] for n in SCHEDULERS if wish in ("", n))
    raise MissingError(
        f"no scheduler to submit to: {tools} is not in PATH",
        mend="submit from a login node, or measure here with `mpigraft bench`",
    )


def submit(name: str, script: str) -> str:
    """Hand a script in and return the job's id. Raises LaunchFailed with the scheduler's words."""
    kind = SCHEDULERS[name]
    # The job has an environment of its own: what this process has in it of another job would
    # be taken for options (sbatch(1), INPUT ENVIRONMENT VARIABLES) or for the job's own.
    said = run(kind.SUBMIT, env=_outside(), limit_s=SUBMIT_LIMIT_S, stdin=script.encode())
    job = kind.job_id(said.stdout.decode(errors="replace")) if said.ok else ""
    if not job:
        raise LaunchFailed(
            f"{kind.SUBMIT[0]} took no job: {_told(said)}",
            mend="flags after -- go into the script, for example: -- --account=PROJECT",
        )
    return job


def states(name: str, jobs: Sequence[str]) -> dict[str, JobStatus]:
    """How each job stands; GONE for one that the scheduler has forgotten. Raises MissingError
    when it does not answer."""
    kind = SCHEDULERS[name]
    found: dict[str, JobStatus] = {}
    for number, words in enumerate(kind.asking(jobs) if jobs else ()):
        if not set(jobs) - set(found):
            break
        said = run(words, limit_s=ASK_LIMIT_S)
        if not said.ok and not kind.unknown(said.text()) and number == 0:
            raise MissingError(
                f"{words[0]} does not answer: {_told(said)}",
                why="the state of the jobs is not known",
                mend="try again; what the jobs have measured is in the store all the same",
            )
        told = kind.states(said.stdout.decode(errors="replace"))
        found |= {job: status for job, status in told.items() if job not in found}
    return {job: found.get(job, JobStatus(JobState.GONE)) for job in jobs}


def through(name: str, wish: JobWish) -> Completed:
    """Run a command on nodes of the scheduler and wait for it; see Batch.through. Raises
    LaunchFailed with what was said when it did not go well."""
    words = SCHEDULERS[name].through(wish)
    said = run(words, env=_outside(), limit_s=wish.limit_s)
    if not said.ok:
        late = f"no answer in {wish.limit_s} s" if said.timed_out else _told(said)
        more = "give it more --time, or another" if said.timed_out else "choose another"
        mend = f"{more} --partition; words after -- go to the scheduler"
        raise LaunchFailed(late if late.startswith(words[0]) else f"{words[0]}: {late}", mend=mend)
    return said


def _outside() -> dict[str, str]:
    steps = ("SLURM_", "SBATCH_", "SRUN_", "PBS_", "FLUX_JOB_", "PMI_", "PMIX_")
    kept = ("SLURM_CONF", "PBS_CONF_FILE", "PBS_EXEC", "PBS_SERVER")
    return {k: v for k, v in os.environ.items() if k in kept or not k.startswith(steps)}


def _told(said: Completed) -> str:
    return " ".join(said.text().split())[-400:] or f"exit code {said.code}"
