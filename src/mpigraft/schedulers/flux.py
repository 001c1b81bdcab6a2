"""Flux: flux-batch(1), flux-jobs(1), flux-run(1); ids are F58, as in its RFC 19."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mpigraft.model import JobState, JobStatus, JobWish
from mpigraft.schedulers import parts

SUBMIT: tuple[str, ...] = ("flux", "batch")
ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
WAITS = {"DEPEND", "PRIORITY", "SCHED", "PENDING", "NEW"}
RUNS = {"RUN", "CLEANUP", "RUNNING"}


def script(wish: JobWish) -> str:
    directives = [
        f"--job-name={_quoted(wish.name)}",
        f"--nodes={wish.nodes}",
        "--exclusive",
        f"--time-limit={wish.limit_s}s",
        f"--output={_quoted(wish.output)}-{{{{id}}}}.out",
        f"--signal=SIGTERM@{parts.warning_s(wish)}s",
        *([f"--queue={_quoted(wish.partition)}"] if wish.partition else []),
    ]
    parts.refuse_network(wish, "Flux")
    behind = parts.next_of(wish, "--dependency=afterany:")
    return parts.script(wish, "#flux:", directives, behind, _quoted)


def _quoted(word: str) -> str:
    """The word in its directives, where shlex.quote would not do: within single quotes a
    backslash is one too, and three quotes in a row begin a text of several lines. Source:
    flux-core's job/directives.py, of 0.88."""
    return re.sub(r"([^A-Za-z0-9_@%+=:,./-])", r"\\\1", word) or "''"


def job_id(said: str) -> str:
    """The id as a decimal number: without a UTF-8 locale its letter is another."""
    words = said.split()
    return decimal(words[-1]) if words else ""


def decimal(name: str) -> str:
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


def asking(jobs: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    fields = "{id.dec}|{state}|{result}|{exception.note}"
    # -n: in the long form it was --suppress-header, and since 2023 is --no-header.
    return (("flux", "jobs", "-n", f"--format={fields}", *jobs),)


def states(said: str) -> dict[str, JobStatus]:
    found = {}
    for line in said.splitlines():
        match = re.fullmatch(r"\s*(\d+)\|(\w+)\|(\w*)\|(.*)", line)
        if match:
            job, word, result, note = match.groups()
            state = JobState.PENDING if word in WAITS else JobState.ENDED
            state = JobState.RUNNING if word in RUNS else state
            found[job] = JobStatus(state, result or word, note.strip())
    return found


def unknown(said: str) -> bool:
    return "unknown" in said.lower() and "job" in said.lower()


def through(wish: JobWish) -> tuple[str, ...]:
    return (
        "flux",
        "run",
        f"--nodes={wish.nodes}",
        "--tasks-per-node=1",
        "--exclusive",
        f"--time-limit={wish.limit_s}s",
        "--label-io",
        *([f"--queue={wish.partition}"] if wish.partition else []),
        *wish.extra,
        *wish.command,
    )
