"""Slurm: sbatch(1), squeue(1), sacct(1), salloc(1), srun(1)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from mpigraft.core.errors import UsageError
from mpigraft.core.model import JobRequest, JobState, JobStatus
from mpigraft.launch.schedulers import parts

SUBMIT: tuple[str, ...] = ("sbatch", "--parsable")
CANCEL: tuple[str, ...] = ("scancel",)
WAITS = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT",
         "RESV_DEL_HOLD"}  # fmt: skip
RUNS = {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "STAGE_OUT", "SIGNALING", "RESIZING"}

# Settings of the job's script that srun reads as options of every step, and that its command line
# here cannot override. Daemons of other launchers are not started at all: "More processors
# requested than permitted", which PRRTE does not show, and hydra waits for its time limit.
STEP_OPTIONS = (
    "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK", "SLURM_TRES_PER_TASK", "SLURM_THREADS_PER_CORE",
    "SLURM_HINT", "SLURM_EXACT", "SLURM_EXCLUSIVE", "SLURM_NTASKS_PER_CORE",
    "SLURM_NTASKS_PER_SOCKET", "SLURM_MULTI_PROG", "SLURM_WAIT", "SLURM_LABELIO",
)  # fmt: skip


def script(request: JobRequest) -> str:
    if "\\" in request.output:  # sbatch(1), filename pattern: it would be no part of the name
        raise UsageError.of("slurm-backslash", output=request.output)
    directives = [
        f"--job-name={_quoted(request.name)}",
        f"--nodes={request.nodes}",
        "--exclusive",
        f"--time={parts.clock(request.limit_s)}",
        # %j is the job; a % of the path itself is written twice.
        f"--output={_quoted(request.output.replace('%', '%%'))}-%j.out",
        f"--signal=B:TERM@{parts.warning_s(request)}",  # B: the command, which ends its own ranks
        "--open-mode=append",  # or a job that is started again empties its file
        "--no-requeue",  # after a node failure the share is submitted again, on purpose
        *([f"--partition={_quoted(request.partition)}"] if request.partition else []),
        *([f"--network={_quoted(request.network)}"] if request.network else []),
    ]
    behind = parts.next_of(request, "--dependency=afterany:")
    return parts.script(request, "#SBATCH", directives, behind, _quoted)


def _quoted(word: str) -> str:
    """Return the word in its directives: sbatch (seen with 22.05) splits them like a shell, but
    takes a backslash for one within single quotes too, and a space for one behind a backslash."""
    return shlex.quote(word).replace("\\", "\\\\")


def partition_of(extra: Sequence[str]) -> str:
    return parts.last_value(extra, "-p", "--partition")


def job_id(output: str) -> str:
    """`--parsable` prints `42`, or `42;cluster`; notes of a site may come before it."""
    ids = re.findall(r"^(\d+)(?:;\S*)?$", output, re.MULTILINE)
    return str(ids[-1]) if ids else ""


def status_commands(jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """squeue forgets a job minutes after its end (MinJobAge); sacct remembers where there is
    accounting."""
    listed = ",".join(jobs)
    return (
        ("squeue", "--noheader", "--states=all", "--format=%i|%T|%r", f"--jobs={listed}"),
        ("sacct", "-n", "-X", "-P", "--format=JobIDRaw,State,Reason", f"--jobs={listed}"),
    )


def parse_states(output: str) -> dict[str, JobStatus]:
    states = {}
    for line in output.splitlines():
        job, _, rest = line.strip().partition("|")
        word, _, reason = rest.partition("|")
        head = word.split()[0] if word.split() else ""  # sacct: "CANCELLED by 1000"
        if job.isdecimal() and head:
            states[job] = JobStatus(_state(head), head, "" if reason == "None" else reason)
    return states


def _state(word: str) -> JobState:
    if word in WAITS:
        return JobState.PENDING
    return JobState.RUNNING if word in RUNS else JobState.ENDED


def is_unknown(output: str) -> bool:
    return "Invalid job id" in output


def node_command(request: JobRequest) -> tuple[str, ...]:
    """Return a job, and a step in it. One srun for both is not enough: its --exclusive makes the
    step exact, so that it has the one core of its task with any --cpu-bind (seen with 22.05 and
    task/affinity), and a node would look smaller than it is."""
    return (
        "salloc",
        "--quiet",
        f"--job-name={request.name}",
        f"--nodes={request.nodes}",
        "--ntasks-per-node=1",
        "--exclusive",
        f"--time={parts.clock(request.limit_s)}",
        *([f"--partition={request.partition}"] if request.partition else []),
        *request.extra,
        "srun",
        f"--nodes={request.nodes}",
        f"--ntasks={request.nodes}",
        "--ntasks-per-node=1",
        "--cpu-bind=none",
        "--label",
        "--mpi=none",
        *request.command,
    )
