"""`mpigraft submit`: run a campaign as jobs of a scheduler."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpigraft.cli.common import out, program, settings, tell
from mpigraft.errors import UsageError

if TYPE_CHECKING:
    from mpigraft.model import CampaignRecord, JobRecord, JobWish, SubmissionRecord
    from mpigraft.store import Store

CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": False}
MOST = 100  # jobs of one chain; sites allow a user about as many in the queue
HANDED_ON = ("MPIGRAFT_HOME", "CONTAINERS_CONF")  # a scheduler may start jobs in a bare environment


def command(
    ctx: typer.Context,
    campaign: Annotated[
        str,
        typer.Argument(
            metavar="CAMPAIGN",
            help="A campaign file (TOML); with --resume the id or name of a submission.",
            show_default=False,
        ),
    ],
    nodes: Annotated[
        int | None, typer.Option(metavar="N", help="Nodes of each job.", show_default="1", min=1)
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(
            metavar="T",
            help="Limit of each job: 30m, 1h30m, 1:30:00.",
            show_default="1h; with --resume what it was",
        ),
    ] = None,
    allocations: Annotated[
        int | None,
        typer.Option(
            metavar="J",
            help="Jobs among which the rounds are shared: other nodes, another hour.",
            show_default="1",
            min=1,
        ),
    ] = None,
    chain: Annotated[
        int,
        typer.Option(
            metavar="N",
            help="Jobs one after the other, each of which goes on where time ran out.",
            min=1,
            max=MOST,
        ),
    ] = 1,
    scheduler: Annotated[
        str,
        typer.Option(metavar="NAME", help="slurm, pbs or flux.", show_default="whose is here"),
    ] = "",
    partition: Annotated[
        str, typer.Option(metavar="P", help="Partition or queue.", show_default="the site's")
    ] = "",
    network: Annotated[
        str | None,
        typer.Option(
            metavar="WHAT",
            help="Slingshot: single_node_vni, job_vni; none to ask for nothing.",
            show_default="what Slurm's switch needs",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Submit what was cut off once more.")
    ] = False,
    rounds: Annotated[
        int | None,
        typer.Option(metavar="N", help="With --resume: extend the campaign to N rounds.", min=1),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the job script, submit nothing.")
    ] = False,
) -> None:
    """Run a campaign as jobs of a scheduler; `mpigraft status` follows them.

    The first job that starts plans it on its nodes. A job that meets its time limit ends in
    order; the next of its --chain, or a job of --resume, does what is left. Words after -- go
    to the scheduler.

    \b
    Examples:
      mpigraft submit campaign.toml --nodes 2 --time 30m -- --account=project_1
      mpigraft submit campaign.toml --nodes 2 --allocations 4 --dry-run
      mpigraft submit campaign.toml --time 30m --chain 3
      mpigraft submit --resume night --rounds 24
    """
    from mpigraft import schedulers, submission
    from mpigraft.model import JobWish
    from mpigraft.store import Store
    from mpigraft.wish import read_wish

    if rounds is not None and not resume:
        raise UsageError(
            "--rounds without --resume: a campaign file says its rounds",
            mend="write rounds = N into the file",
        )
    store = Store(settings(ctx).store)
    plan = None
    limit_s = submission.seconds(time or "1h")
    if resume:
        given = {"nodes": nodes, "shares": allocations, "scheduler": scheduler or None}
        plan = _extended(store, find(store, campaign), rounds)
        record, shares = _cut_off(store, campaign, given, plan)
        record = replace(record, limit_s=limit_s) if time else record
    else:
        wish = read_wish(Path(campaign))
        # A script may be looked at where no scheduler is.
        kind = scheduler if dry_run and scheduler else schedulers.here(scheduler)
        record = submission.planned(wish, nodes or 1, limit_s, allocations or 1, kind)
        shares = tuple(range(1, record.shares + 1))
    if record.scheduler not in schedulers.SCHEDULERS:
        schedulers.here(record.scheduler)
    if network is None:
        network = submission.network(record.scheduler, record.nodes)
    base = JobWish(
        folder=str(Path.cwd()),
        environment=tuple((n, os.environ[n]) for n in HANDED_ON if os.environ.get(n)),
        partition=partition,
        network="" if network == "none" else network,
        extra=tuple(ctx.args),
    )
    links = _links(store, record, shares, base, chain)
    script = schedulers.SCHEDULERS[record.scheduler].script
    scripts = [script(wish) for link in links for wish in link.values()]  # or refused, unstored
    if dry_run:
        _show(scripts, len(shares))
        return
    _told(record, submission.submit(store, record, links, plan), len(shares))


def find(store: Store, wish: str) -> SubmissionRecord:
    """The submission of that id, its beginning, or name; the latest without a wish."""
    known = store.submissions()
    same = [s for s in known if not wish or s.campaign.startswith(wish) or s.name == wish]
    exact = [s for s in same if s.campaign == wish]
    if not known and not wish:
        raise UsageError(
            f"no campaign was submitted into {store.folder}",
            mend="mpigraft submit CAMPAIGN.toml --nodes N --time T; or name another --store",
        )
    if not same:
        told = ", ".join(f"{s.campaign[:8]} ({s.name})" for s in known[-8:]) or "there is none"
        raise UsageError(f"no submission {wish!r} in {store.folder}", mend=f"take one of: {told}")
    return (exact or same)[-1]


def _extended(store: Store, record: SubmissionRecord, rounds: int | None) -> CampaignRecord | None:
    """The plan of a submission with as many rounds as it shall have; None: as it is."""
    from mpigraft import submission
    from mpigraft.wish import Wish, merged

    if rounds is None:
        return None
    return submission.extended(store, record, merged(Wish(), {"rounds": rounds}).rounds)


def _cut_off(
    store: Store, wish: str, given: Mapping[str, object], plan: CampaignRecord | None
) -> tuple[SubmissionRecord, tuple[int, ...]]:
    """The submission and its shares that no job is at, of its own plan or of `plan`. Raises
    UsageError where nothing is left, and for what was `given`, by field of its record, that is
    no more to be chosen."""
    from mpigraft import schedulers, submission

    record = find(store, wish)
    for field, value in given.items():
        was = getattr(record, field)
        if value not in (None, was):
            flag = "allocations" if field == "shares" else field
            raise UsageError(
                f"{record.name} was submitted with --{flag} {was}, not {value}",
                mend=f"leave --{flag} out, or submit a new campaign",
            )
    states = schedulers.states(record.scheduler, [j.job for j in store.jobs(record.campaign)])
    left = submission.status(store, record, states, plan).open
    if not left:
        raise UsageError(
            f"nothing of {record.name} is left to submit: each share is done or has a job",
            mend=f"`mpigraft status {record.campaign[:8]}` shows them",
        )
    return record, left


def _links(
    store: Store, record: SubmissionRecord, shares: tuple[int, ...], base: JobWish, chain: int
) -> list[dict[int, JobWish]]:
    """Of each link of the chain its jobs by share."""
    from mpigraft import submission

    before = Counter(known.share for known in store.jobs(record.campaign))
    return [
        {
            share: submission.job(
                record, share, program(), store.folder, base, before[share] + number
            )
            for share in shares
        }
        for number in range(1, chain + 1)
    ]


def _show(scripts: list[str], shares: int) -> None:
    out(scripts[0])
    if shares > 1:
        out(f"# and {shares - 1} more, with --share and the file of output of their own")
    if later := len(scripts) // shares - 1:
        each = " for each" if shares > 1 else ""
        out(f"# then {later}{each}, one by one: each starts when the one before has ended")


def _told(record: SubmissionRecord, jobs: list[JobRecord], shares: int) -> None:
    links = [jobs[start : start + shares] for start in range(0, len(jobs), shares)]
    listed = "; then ".join(", ".join(job.job for job in link) for link in links)
    out(f"{record.name} ({record.campaign[:8]}): {record.scheduler} job {listed}")
    tell(f"`mpigraft status {record.campaign[:8]}` follows it")
