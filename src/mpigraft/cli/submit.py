"""`mpigraft submit`: run a campaign as jobs of a scheduler."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import (
    examine_machine,
    flag,
    option,
    out,
    program,
    store_of,
    tell,
    tell_unread,
)
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.numbers import counted
from mpigraft.core.text import columns, fold

if TYPE_CHECKING:
    from mpigraft.core.model import CampaignRecord, JobRecord, JobRequest, SubmissionRecord
    from mpigraft.request import CampaignSpec
    from mpigraft.store import Store

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": False}
MOST = 100  # jobs of one chain; sites allow a user about as many in the queue
PASSED_ON = ("MPIGRAFT_HOME", "CONTAINERS_CONF")  # a scheduler may start jobs in a bare environment


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(
            metavar="CAMPAIGN",
            help="Campaign file (TOML). With --resume the id or name of a submission.",
            show_default=False,
        ),
    ],
    nodes: Annotated[int | None, option("N", "Nodes of each job.", "1", min=1)] = None,
    time: Annotated[
        str | None,
        option(
            "T", "Time limit of each job: 30m, 1h30m, 1:30:00.", "1h; with --resume what it was"
        ),
    ] = None,
    allocations: Annotated[
        int | None,
        option(
            "J",
            "Divide the rounds among this many jobs. They get different nodes and times.",
            "1",
            min=1,
        ),
    ] = None,
    chain: Annotated[
        int,
        option(
            "N",
            "Queue this many jobs one after the other. Each continues where time ran out.",
            min=1,
            max=MOST,
        ),
    ] = 1,
    scheduler: Annotated[str, option("NAME", "slurm, pbs or flux.", "the one here")] = "",
    partition: Annotated[str, option("P", "Partition or queue.", "the site's")] = "",
    network: Annotated[
        str | None,
        option(
            "WHAT",
            "Slurm --network for Slingshot: single_node_vni, job_vni; none: no request.",
            "what Slurm's switch needs",
            rare=True,
        ),
    ] = None,
    resume: Annotated[bool, flag("Submit again what was cut off.", "--resume")] = False,
    rounds: Annotated[
        int | None, option("N", "With --resume: extend the campaign to N rounds.", min=1)
    ] = None,
    dry_run: Annotated[bool, flag("Print the job script; submit nothing.", "--dry-run")] = False,
) -> None:
    """Run a campaign as jobs of a scheduler; `mpigraft status` shows their progress.

    The first job that starts plans the campaign on its nodes. A job that reaches its time limit
    stops cleanly; the next job of its --chain, or of --resume, continues. Options after -- go to
    the scheduler.

    \b
    Examples:
      mpigraft submit campaign.toml --nodes 2 --time 30m -- --account=project_1
      mpigraft submit campaign.toml --nodes 2 --allocations 4 --dry-run
      mpigraft submit campaign.toml --time 30m --chain 3
      mpigraft submit --resume night --rounds 24
    """
    from mpigraft.bench import network_options, parse_duration, plan_submission, submit_jobs
    from mpigraft.core.model import JobRequest, refuse_count
    from mpigraft.launch import SCHEDULERS, find_scheduler
    from mpigraft.store import refuse_unwritable

    if rounds is not None and not resume:
        raise UsageError.of("rounds-need-resume")
    refuse_count("--nodes", 1 if nodes is None else nodes)
    store = store_of(ctx)
    plan = None
    limit_s = parse_duration(time or "1h")
    if resume:
        given = {"nodes": nodes, "shares": allocations, "scheduler": scheduler or None}
        plan = _extended(store, find(store, campaign), rounds)
        record, shares = _cut_off(store, campaign, given, plan)
        record = replace(record, limit_s=limit_s) if time else record
    else:
        spec = _spec(campaign)
        # A script may be looked at where no scheduler is.
        kind = scheduler if dry_run and scheduler else find_scheduler(scheduler)
        record = plan_submission(spec, nodes or 1, limit_s, allocations or 1, kind)
        shares = tuple(range(1, record.shares + 1))
    if record.scheduler not in SCHEDULERS:
        find_scheduler(record.scheduler)
    if network is None:
        network = network_options(record.scheduler, record.nodes)
    base = JobRequest(
        folder=str(Path.cwd()),
        environment=tuple((n, os.environ[n]) for n in PASSED_ON if os.environ.get(n)),
        partition=partition,
        network="" if network == "none" else network,
        extra=tuple(ctx.args),
    )
    links = _links(store, record, shares, base, chain)
    script = SCHEDULERS[record.scheduler].script
    scripts = [script(job) for link in links for job in link.values()]  # or refused, unstored
    if dry_run:
        refuse_unwritable(store.folder)
        _print_scripts(scripts, len(shares))
        _comment(_cost(record, len(scripts)))
        _print_forecast(store, record, base, len(links))
        return
    _print_jobs(record, submit_jobs(store, record, links, plan), len(shares))


def _spec(file: str) -> CampaignSpec:
    """Read a campaign file, with what the site's profile adds. Raises UsageError."""
    from mpigraft.bench import refuse_unknown_settings
    from mpigraft.request import read_site, read_spec

    spec = read_site(os.environ).with_defaults(read_spec(Path(file)))
    if spec.setting:
        refuse_unknown_settings(spec, examine_machine())
    return spec


def find(store: Store, name: str) -> SubmissionRecord:
    """Return the submission of that id, its beginning, or name; the latest without one. Of several
    of a name, and without one, it is the latest with a job that the scheduler accepted."""
    known = store.submissions()
    tell_unread(store)
    same = [s for s in known if not name or s.campaign.startswith(name) or s.name == name]
    exact = [s for s in same if s.campaign == name]
    taken = [s for s in same if store.jobs(s.campaign)]
    if not known or (not taken and not name):
        raise MissingError.of("no-submission", folder=store.folder)
    if not same:
        names = ", ".join(f"{s.campaign[:8]} ({s.name})" for s in known[-8:]) or "there is none"
        raise UsageError.unknown(
            "submission-unknown", name, (s.name for s in known), folder=store.folder, known=names
        )
    return (exact or taken or same)[-1]


def _extended(store: Store, record: SubmissionRecord, rounds: int | None) -> CampaignRecord | None:
    """Return the plan of a submission with as many rounds as it shall have; None: as it is."""
    from mpigraft.bench import extend_submission
    from mpigraft.request import asked_campaign

    if rounds is None:
        return None
    return extend_submission(store, record, asked_campaign({"rounds": rounds}).value.rounds)


def _cut_off(
    store: Store, name: str, given: Mapping[str, object], plan: CampaignRecord | None
) -> tuple[SubmissionRecord, tuple[int, ...]]:
    """Return the submission and its shares that no job is at, of its own plan or of `plan`. Raises
    UsageError where nothing is left, and for what was `given`, by field of its record, that is no
    more to be chosen."""
    from mpigraft.bench import submission_status
    from mpigraft.launch import job_states

    record = find(store, name)
    for field, value in given.items():
        was = getattr(record, field)
        if value not in (None, was):
            flag = "allocations" if field == "shares" else field
            raise UsageError.of(
                "submission-differs", name=record.name, flag=flag, was=was, value=value
            )
    states = job_states(record.scheduler, [j.job for j in store.jobs(record.campaign)])
    open_shares = submission_status(store, record, states, plan).open
    if not open_shares:
        raise UsageError.of("submission-done", name=record.name, record=record.campaign[:8])
    return record, open_shares


def _links(
    store: Store, record: SubmissionRecord, shares: tuple[int, ...], base: JobRequest, chain: int
) -> list[dict[int, JobRequest]]:
    """Of each link of the chain its jobs by share."""
    from mpigraft.bench import share_job

    before = Counter(known.share for known in store.jobs(record.campaign))
    return [
        {
            share: share_job(record, share, program(), store.folder, base, before[share] + number)
            for share in shares
        }
        for number in range(1, chain + 1)
    ]


def _print_scripts(scripts: list[str], shares: int) -> None:
    out(scripts[0])
    if shares > 1:
        _comment(f"and {shares - 1} more, each with a --share and an output file of its own")
    if later := len(scripts) // shares - 1:
        each = " for each" if shares > 1 else ""
        text = f"then {later}{each}, one after the other"
        _comment(f"{text}: each starts when the one before has ended")


def _print_forecast(store: Store, record: SubmissionRecord, base: JobRequest, links: int) -> None:
    """Print what the jobs will do. Raises what they would end with on nodes of their partition."""
    from mpigraft.bench import forecast_jobs
    from mpigraft.launch import SCHEDULERS
    from mpigraft.report import forecast_lines

    partition = SCHEDULERS[record.scheduler].partition_of(base.extra) or base.partition
    forecast = forecast_jobs(store, record, partition, links)
    for line in forecast_lines(forecast):
        _comment(line)
    if forecast.error and not forecast.unchecked:
        raise forecast.error


def _comment(text: str) -> None:
    for line in fold(text, rest=0, width=columns() - 2):
        out(f"# {line}")


def _print_jobs(record: SubmissionRecord, jobs: list[JobRecord], shares: int) -> None:
    from mpigraft.bench import idle_layouts
    from mpigraft.report import idle_lines

    links = [jobs[start : start + shares] for start in range(0, len(jobs), shares)]
    listed = "; then ".join(", ".join(job.job for job in link) for link in links)
    out(f"{record.name} ({record.campaign[:8]}): {record.scheduler} job {listed}")
    for line in idle_lines(record.nodes, idle_layouts(record)):
        tell(line)
    tell(f"{_cost(record, len(jobs))}; `mpigraft status {record.campaign[:8]}` shows its progress")


def _cost(record: SubmissionRecord, jobs: int) -> str:
    """Say what jobs may cost at most: each ends as soon as its share is done."""
    from mpigraft.core.numbers import duration, node_hours

    each = f" of {counted(record.nodes, 'node')} and {duration(record.limit_s)}"
    most = node_hours(jobs * record.limit_s, record.nodes)
    return f"{counted(jobs, 'job')}{each}: at most {most}"
