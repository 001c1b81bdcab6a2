"""Slurm: sbatch(1), squeue(1), sacct(1), srun(1)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from mpigraft.errors import UsageError
from mpigraft.model import JobState, JobStatus, JobWish
from mpigraft.schedulers import parts

SUBMIT: tuple[str, ...] = ("sbatch", "--parsable")
WAITS = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT",
         "RESV_DEL_HOLD"}  # fmt: skip
RUNS = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "STAGE_OUT", "SIGNALING", "RESIZING"}


def script(wish: JobWish) -> str:
    if "\\" in wish.output:  # sbatch(1), filename pattern: it would be no part of the name
        raise UsageError(
            f"Slurm writes no output into {wish.output}, whose name has a backslash",
            mend="name another folder: mpigraft --store FOLDER",
        )
    directives = [
        f"--job-name={_quoted(wish.name)}",
        f"--nodes={wish.nodes}",
        "--exclusive",
        f"--time={parts.clock(wish.limit_s)}",
        # %j is the job; a % of the path itself is written twice.
        f"--output={_quoted(wish.output.replace('%', '%%'))}-%j.out",
        f"--signal=B:TERM@{parts.warning_s(wish)}",  # B: the command, which ends its own ranks
        "--no-requeue",  # after a node failure the share is submitted again, on purpose
        *([f"--partition={_quoted(wish.partition)}"] if wish.partition else []),
        *([f"--network={_quoted(wish.network)}"] if wish.network else []),
    ]
    behind = parts.next_of(wish, "--dependency=afterany:")
    return parts.script(wish, "#SBATCH", directives, behind, _quoted)


def _quoted(word: str) -> str:
    """The word in its directives: sbatch (seen with 22.05) splits them like a shell, but takes a
    backslash for one within single quotes too, and a space for one behind a backslash."""
    return shlex.quote(word).replace("\\", "\\\\")


def job_id(said: str) -> str:
    """`--parsable` prints `42`, or `42;cluster`; notes of a site may stand before it."""
    found = re.findall(r"^(\d+)(?:;\S*)?$", said, re.MULTILINE)
    return str(found[-1]) if found else ""


def asking(jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """squeue forgets a job minutes after its end (MinJobAge); sacct remembers where there is
    accounting."""
    listed = ",".join(jobs)
    return (
        ("squeue", "--noheader", "--states=all", "--format=%i|%T|%r", f"--jobs={listed}"),
        ("sacct", "-n", "-X", "-P", "--format=JobIDRaw,State,Reason", f"--jobs={listed}"),
    )


def states(said: str) -> dict[str, JobStatus]:
    found = {}
    for line in said.splitlines():
        job, _, rest = line.strip().partition("|")
        word, _, reason = rest.partition("|")
        head = word.split()[0] if word.split() else ""  # sacct: "CANCELLED by 1000"
        if job.isdecimal() and head:
            found[job] = JobStatus(_state(head), head, "" if reason == "None" else reason)
    return found


def _state(word: str) -> JobState:
    if word in WAITS:
        return JobState.PENDING
    return JobState.RUNNING if word in RUNS else JobState.ENDED


def unknown(said: str) -> bool:
    return "Invalid job id" in said


def through(wish: JobWish) -> tuple[str, ...]:
    return (
        "srun",
        f"--job-name={wish.name}",
        f"--nodes={wish.nodes}",
        f"--ntasks={wish.nodes}",
        "--ntasks-per-node=1",
        "--exclusive",  # all cores of the node, or it would look smaller than it is
        f"--time={parts.clock(wish.limit_s)}",
        "--label",
        "--mpi=none",
        *([f"--partition={wish.partition}"] if wish.partition else []),
        *wish.extra,
        *wish.command,
    )
