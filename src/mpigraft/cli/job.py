"""One job of a user, as every command takes it that starts one: its options, plan and start."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mpigraft.cli.common import (
    console,
    out,
    refuse_unknown_engine,
    tell,
    tell_component,
    tell_step,
)
from mpigraft.core.errors import LaunchFailed, MissingError, MpigraftError, UsageError

if TYPE_CHECKING:
    from mpigraft.core.model import Finding, Machine
    from mpigraft.request import Asked, RunSpec
    from mpigraft.run import Job

Collected = TypeVar("Collected")

# Options end at the program: what follows is its own.
CONTEXT = {"allow_interspersed_args": False}
NOT_CHECKED = "--no-proof starts programs that never call it"
Program = Annotated[
    list[str],
    typer.Argument(
        metavar="PROGRAM",
        help="Program and its arguments. Give options of this command before it.",
        show_default=False,
    ),
]


def requested_job(asked: Asked[RunSpec], program: Sequence[str], verb: str = "run") -> RunSpec:
    """Lay the options that were given to the command `verb` over the site's profile. Raises
    UsageError."""
    from mpigraft.core.model import refuse_count
    from mpigraft.request import STDIN, mpmd_programs, read_site, replaced_part

    one, given = asked.value, asked.given
    if one.stdin not in STDIN:
        raise UsageError.unknown("word-unknown", one.stdin, STDIN, what="--stdin")
    refuse_unknown_engine(one.engine)
    replaced_part(one.replace)
    if "ranks" in given:
        refuse_count("-n", one.where.ranks)
    profile = read_site(os.environ)
    spec = profile.merged(asked)
    first, others = mpmd_programs(program)
    for name in ("nodes", "ranks_per_node", "threads"):
        if name in given:
            refuse_count(f"--{name.replace('_', '-')}", getattr(one.where, name))
    # the user's ranks per node count, not the site's number of ranks
    site_ranks = "ranks_per_node" in given and "ranks" not in given
    image, alias = profile.image(spec.image)
    sources = dict(spec.sources)
    if alias:
        sources["image"] = f"{sources['image']}, {spec.image} of {alias}"
    if spec.stack and spec.image:
        raise UsageError.of("stack-and-image")
    return replace(
        spec,
        program=first,
        image=image,
        where=replace(spec.where, ranks=0 if site_ranks else spec.where.ranks, others=others),
        verb=("mpigraft", verb),
        site=profile.path,
        sources=tuple(sources.items()),
        fixed=tuple(profile.fixed_where.items()),
        typed=_typed_options(sys.argv[1:], verb, program),
    )


def _typed_options(line: Sequence[str], verb: str, program: Sequence[str]) -> tuple[str, ...]:
    """Return the options of a command line between the verb and the program, for a command to type
    in its place. Empty where the line is of another command."""
    words = line[: len(line) - len(program)]
    if verb not in words or line[len(words) :] != list(program):
        return ()
    options = words[words.index(verb) + 1 :]
    return tuple(options[:-1] if options[-1:] == ["--"] else options)


def decide_job(
    spec: RunSpec, tracing: tuple[str, ...] | None = None, *, machine: Machine | None = None
) -> Job:
    """Plan a job, and tell what could not be taken into account. `machine` is this one, where that
    is known already. Raises MpigraftError."""
    from mpigraft.core import file_dependencies
    from mpigraft.discovery import discover_machine, with_places
    from mpigraft.request import job_subject
    from mpigraft.run import keep_refusal, plan_job, start_key, unknown_parts
    from mpigraft.selection import drop_forbidden_fixes

    environ = dict(os.environ)
    try:
        Path.cwd()
    except OSError as error:
        raise UsageError.of("cwd-gone") from error
    with (
        console(stderr=True).status("looking at this machine"),
        file_dependencies.recorded() as noted,
    ):
        if spec.site:
            file_dependencies.file(spec.site)
        try:
            subject = job_subject(spec, environ)  # first: it may end the matter at once
            if machine is None:
                tell_step(machine := discover_machine())
            here = with_places(machine, spec.mpi_places)
            planned = plan_job(spec, here, environ, subject, tracing)
        except MpigraftError as error:
            drop_forbidden_fixes(error, dict(spec.fixed))
            blamed = blame_site(error, spec.sources)
            if sys.argv[1:2] == ["run"]:
                keep_refusal(start_key(sys.argv[2:], environ), spec, blamed, noted, environ)
            raise blamed from error
    tell_component(planned.allocation)
    for line in dict.fromkeys(unknown_parts(planned)):
        tell(f"mpigraft: {line}")
    for one in planned.limits:
        tell_finding(one)
    return planned


def print_script(planned: Job) -> int:
    """Print what a job would start, and on stderr how much that is; its exit code."""
    from mpigraft.core.numbers import counted
    from mpigraft.run import job_script, proof_step

    layout = planned.layout
    where = f"{counted(layout.ranks, 'rank')} on {counted(layout.nodes, 'node')}"
    step = proof_step(planned)
    before = f", after {step} if that was not done before" if step else ""
    tell(f"mpigraft: 1 launch of {where}{before}")
    out(job_script(planned, os.environ), exact=True)
    return 0


def prove_and_start(
    planned: Job, *, keep: bool = False, collect: Callable[[str, int], None] | None = None
) -> int:
    """Prove the transport of a job and start it; its exit code. `keep`: start it without a plan
    next time. `collect` is given the folder of its records, before that is removed, and the exit
    code of the program. Raises MpigraftError."""
    from mpigraft.run import (
        keep_start,
        may_be_kept,
        proof_step,
        prove_job,
        setting_findings,
        start_document,
        start_job,
        start_key,
        watched_files,
    )

    environ = dict(os.environ)
    inputs = watched_files(planned)
    unlike: list[Finding] = [*setting_findings(planned)]
    if step := proof_step(planned):
        with console(stderr=True).status(step):
            proof = prove_job(planned)
        unlike += [one for one in proof.findings if one.code == "node-unlike"]
    for one in unlike:
        tell_finding(one)
    words = sys.argv[2:] if sys.argv[1:2] == ["run"] else sys.argv[1:]
    key = start_key(words, environ)  # what `entry` looks it up by
    document = start_document(planned, key, environ, inputs)
    quiet = not unlike and not planned.limits  # else the next start would be silent
    if keep and may_be_kept(planned) and quiet:
        keep_start(document, environ)
    try:
        code = start_job(document, environ, judge, collect)
    except OSError as error:
        what = error.filename or document["argv"][0]
        raise LaunchFailed.of("program-fails", program=what, reason=error.strerror) from error
    if code is None:
        where = "TMPDIR" if planned.allocation.here else "MPIGRAFT_HOME"
        where = "MPIGRAFT_HOME" if planned.configuration.graft else where
        raise MissingError.of("job-unwritable", folder=document["home"], variable=where)
    return code


def prove_and_collect(
    planned: Job, collect: Callable[[Path, int], Collected | None]
) -> tuple[int, Collected | None]:
    """Prove the transport of a job and start it. Return its exit code, and what `collect` made of
    the folder of its records and that code. Raises MpigraftError."""
    made: Collected | None = None

    def take(folder: str, code: int) -> None:
        nonlocal made
        made = collect(Path(folder), code)

    code = prove_and_start(planned, collect=take)
    return code, made


def blame_site(error: MpigraftError, sources: Sequence[tuple[str, str]]) -> MpigraftError:
    """Return the same error, with what a site's profile had a part in: the user did not type it."""
    requests = [f"{what} ({where})" for what, where in sources if where != "command line"]
    if requests:
        reason = f"the site's profile requested {', '.join(requests)}"
        error.why = f"{error.why}; {reason}" if error.why else reason
    return error


def judge(key: str, folder: str, failed: int) -> bool:
    """Return whether the world of the job kept under `key` was wrong, by the records in `folder`;
    says on stderr what and why. `failed`: its exit code, if it failed by itself."""
    from mpigraft.core.model import Level
    from mpigraft.run import launch_findings

    with console(stderr=True).status("looking for the cause"):
        findings = launch_findings(key, Path(folder), failed=failed)
    for one in findings:
        tell_finding(one, f"; {NOT_CHECKED}" if one.code == "no-witness" else "")
    return any(one.level is Level.ERROR for one in findings)


def tell_finding(finding: Finding, more: str = "") -> None:
    """Print a finding to stderr; `more` goes on with what to do."""
    from mpigraft.report import finding_text

    tell(finding_text(finding, more=more))
