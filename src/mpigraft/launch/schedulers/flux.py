"""Flux: flux-batch(1), flux-jobs(1), flux-run(1); ids are F58, as in its RFC 19."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mpigraft.core.model import JobRequest, JobState, JobStatus
from mpigraft.launch.schedulers import parts

SUBMIT: tuple[str, ...] = ("flux", "batch")
CANCEL: tuple[str, ...] = ("flux", "cancel")
ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
WAITS = {"DEPEND", "PRIORITY", "SCHED", "PENDING", "NEW"}
RUNS = {"RUN", "CLEANUP", "RUNNING"}


def script(request: JobRequest) -> str:
    directives = [
        f"--job-name={_quoted(request.name)}",
        f"--nodes={request.nodes}",
        "--exclusive",
        f"--time-limit={request.limit_s}s",
        f"--output={_quoted(request.output)}-{{{{id}}}}.out",
        f"--signal=SIGTERM@{parts.warning_s(request)}s",
        *([f"--queue={_quoted(request.partition)}"] if request.partition else []),
    ]
    parts.refuse_network(request, "Flux")
    behind = parts.next_of(request, "--dependency=afterany:")
    return parts.script(request, "#flux:", directives, behind, _quoted)


def _quoted(word: str) -> str:
    """Return the word in its directives, where shlex.quote would not do: within single quotes a
    backslash is one too, and three quotes in a row begin a text of several lines. Source:
    flux-core's job/directives.py, of 0.88."""
    return re.sub(r"([^A-Za-z0-9_@%+=:,./-])", r"\\\1", word) or "''"


def partition_of(extra: Sequence[str]) -> str:
    return parts.last_value(extra, "-q", "--queue")


def job_id(output: str) -> str:
    """Return the id as a decimal number: without a UTF-8 locale its letter is another."""
    words = output.split()
    return decimal_id(words[-1]) if words else ""


def decimal_id(name: str) -> str:
    """`ƒuZZybuNNy` or `fuZZybuNNy` -> 6731191091817518; empty for what is no id."""
    if name.isdecimal() and name.isascii():
        return name
    digits = name[1:]
    if name[:1] not in ("ƒ", "f") or not digits or set(digits) - set(ALPHABET):
        return ""
    value = 0
    for digit in digits:
        value = value * len(ALPHABET) + ALPHABET.index(digit)
    return str(value)


def status_commands(jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    fields = "{id.dec}|{state}|{result}|{exception.note}"
    # -n: in the long form it was --suppress-header, and since 2023 is --no-header.
    return (("flux", "jobs", "-n", f"--format={fields}", *jobs),)


def parse_states(output: str) -> dict[str, JobStatus]:
    states = {}
    for line in output.splitlines():
        match = re.fullmatch(r"\s*(\d+)\|(\w+)\|(\w*)\|(.*)", line)
        if match:
            job, word, result, note = match.groups()
            state = JobState.PENDING if word in WAITS else JobState.ENDED
            state = JobState.RUNNING if word in RUNS else state
            states[job] = JobStatus(state, result or word, note.strip())
    return states


def is_unknown(output: str) -> bool:
    return "unknown" in output.lower() and "job" in output.lower()


def node_command(request: JobRequest) -> tuple[str, ...]:
    return (
        "flux",
        "run",
        f"--nodes={request.nodes}",
        "--tasks-per-node=1",
        "--exclusive",
        f"--time-limit={request.limit_s}s",
        "--label-io",
        *([f"--queue={request.partition}"] if request.partition else []),
        *request.extra,
        *request.command,
    )
