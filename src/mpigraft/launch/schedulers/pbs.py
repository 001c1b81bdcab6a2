"""PBS Professional and OpenPBS: qsub(1B), qstat(1B). Torque has no JSON and is not asked."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence

from mpigraft.core.errors import UsageError
from mpigraft.core.model import JobRequest, JobState, JobStatus
from mpigraft.launch.schedulers import parts

SUBMIT: tuple[str, ...] = ("qsub",)
CANCEL: tuple[str, ...] = ("qdel",)
WAITS = set("QHWTU")  # queued, held, waiting, in transit, suspended for its owner
RUNS = set("RESB")  # running, ending, suspended, begun
NAME_LENGTH = 15  # what every version takes
LATE = -29  # Exit_status of a job that was over its walltime (pbs_ifl: JOB_EXEC_KILL_WALLTIME)


def script(request: JobRequest) -> str:
    """`place=scatter:exclhost` gives whole nodes, each once. Before its kill PBS sends SIGTERM by
    itself, kill_delay seconds ahead (10 by default), so nothing has to be asked for.

    Of several `-l` of one name in a script the first counts, of all else the last (openpbs's
    set_resource.c and set_attr.c): the user's words are between, and win over both. A site
    whose jobs are confined to the cores they ask for wants `-- -l select=2:ncpus=64`."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", request.name)[:NAME_LENGTH]
    directives = [
        f"-N {name}",
        "-j oe",
        "-k doe",  # written as it comes, so that it can be followed
        f"-o {shlex.quote(request.output + '.out')}",
        "-r n",
        *([f"-q {shlex.quote(request.partition)}"] if request.partition else []),
    ]
    resources = [
        f"-l select={request.nodes}",
        "-l place=scatter:exclhost",
        f"-l walltime={parts.clock(request.limit_s)}",
        *parts.next_of(request, "-W depend=afterany:"),
    ]
    parts.refuse_network(request, "PBS")
    return parts.script(request, "#PBS", directives, resources)


def partition_of(extra: Sequence[str]) -> str:
    return parts.last_value(extra, "-q").partition("@")[0]  # QUEUE@SERVER


def job_id(output: str) -> str:
    """`42.server`, which is how qstat calls it too."""
    ids = re.findall(r"^(\d+(?:\.[\w.-]+)?)$", output, re.MULTILINE)
    return str(ids[-1]) if ids else ""


def status_commands(jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    return (("qstat", "-x", "-f", "-F", "json", *jobs),)


def parse_states(output: str) -> dict[str, JobStatus]:
    """Return its `Jobs` by id. Some versions leave quotes in values unescaped: then nothing is
    known."""
    try:
        jobs = json.loads(output).get("Jobs", {})
    except (ValueError, AttributeError, RecursionError):
        return {}
    rows = jobs.items() if isinstance(jobs, dict) else ()
    return {job: _status(row) for job, row in rows if isinstance(row, dict)}


def _status(row: dict[str, object]) -> JobStatus:
    letter = str(row.get("job_state", ""))
    comment = str(row.get("comment", ""))
    if letter in WAITS or letter in RUNS:
        state = JobState.PENDING if letter in WAITS else JobState.RUNNING
        return JobStatus(state, letter, comment if state is JobState.PENDING else "")
    code = row.get("Exit_status")
    word = letter if code is None else f"exit status {code}"
    return JobStatus(JobState.ENDED, "over its walltime" if code == LATE else word, comment)


def is_unknown(output: str) -> bool:
    return "Unknown Job" in output


def node_command(request: JobRequest) -> tuple[str, ...]:
    raise UsageError.of("pbs-no-nodes", nodes=request.nodes)
