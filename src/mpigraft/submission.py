"""Campaigns as jobs: what is handed to a scheduler, and how far its jobs are.

The campaign is planned by the first of its jobs to start, on a compute node: a login node is
another machine. What all jobs must agree on before (rounds, seed, name) is settled here.
"""

from __future__ import annotations

import json
import re
import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mpigraft import campaign, configure, schedulers
from mpigraft.errors import LaunchFailed, MissingError, UsageError
from mpigraft.jsonout import canonical
from mpigraft.layouts import MOST, parse
from mpigraft.model import (
    Allocation,
    AllocationRecord,
    CampaignRecord,
    Finding,
    JobRecord,
    JobState,
    JobStatus,
    JobWish,
    LaunchRecord,
    LaunchState,
    Level,
    Machine,
    Share,
    SubmissionRecord,
)
from mpigraft.run import run
from mpigraft.store import Store
from mpigraft.wish import Wish, wish_from

SCONTROL_LIMIT_S = 10.0
SLINGSHOT = re.compile(r"^SwitchType\s*=\s*switch/hpe_slingshot\s*$", re.MULTILINE)
TIME = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?")
CLOCK = re.compile(r"(?:(\d{1,4})-)?(\d{1,5}):(\d{1,2}):(\d{1,2})")
LEAST_S = 60  # Slurm counts in minutes
WAITING = (JobState.PENDING, JobState.RUNNING)
UNKNOWN = JobStatus(JobState.GONE)


def seconds(text: str) -> int:
    """`90` (minutes), `90m`, `1h30m`, `1:30:00`, `2-00:00:00` -> seconds. Raises UsageError.

    `1:30` is refused: sbatch reads minutes and seconds, people mean hours.
    """
    found = 0
    if text.isdecimal() and text.isascii() and len(text) < 8:
        found = int(text) * 60
    elif match := CLOCK.fullmatch(text) or TIME.fullmatch(text):
        days, hours, minutes, rest = (int(part or 0) for part in match.groups())
        found = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    if found < LEAST_S:
        raise UsageError(
            f"--time {text!r} is no time of a minute or more", mend="say 30m, 1h30m or 1:30:00"
        )
    return found


# ------------------------------------------------------------------ handing in


def planned(wish: Wish, nodes: int, limit_s: int, jobs: int, scheduler: str) -> SubmissionRecord:
    """A submission of `jobs` jobs. Raises UsageError for a wish that no allocation of that many
    nodes can meet."""
    whole = campaign.completed(wish, nodes)
    if not 1 <= jobs <= whole.rounds:
        raise UsageError(
            f"{jobs} allocations for {whole.rounds} rounds",
            why="each allocation measures whole rounds",
            mend=f"1 to {whole.rounds}, or more --rounds",
        )
    asking = [(f"layout {text}", parse(text, MOST**2).nodes) for text in whole.layout]
    asking += [(f"nodes = {count}", count) for count in whole.nodes]
    for what, wanted in asking:
        if wanted > nodes:
            raise UsageError(
                f"{what} asks for {wanted} nodes, the job has {nodes}", mend=f"--nodes {wanted}"
            )
    return SubmissionRecord(
        campaign=str(uuid.uuid4()),
        name=whole.name,
        created=campaign.now(),
        scheduler=scheduler,
        wish=canonical(whole),
        nodes=nodes,
        limit_s=limit_s,
        shares=jobs,
    )


def network(scheduler: str, nodes: int) -> str:
    """What a job must ask for on Slingshot: Slurm gives a step on one node no VNI unless asked,
    and each step another, so that what an mpirun starts beside it could not be reached.
    Source: srun(1), --network; LUMI's notes on Open MPI; CXI-04 of the known issues."""
    if scheduler != "slurm":
        return ""
    said = run(["scontrol", "show", "config"], limit_s=SCONTROL_LIMIT_S)
    if not SLINGSHOT.search(said.text()):
        return ""
    return "single_node_vni" if nodes == 1 else "single_node_vni,job_vni"


def job(
    record: SubmissionRecord,
    share: int,
    mpigraft: Sequence[str],
    store: Path,
    base: JobWish,
    number: int = 1,
) -> JobWish:
    """The `number`-th job of one share: `base`, which has what all of them say, with its own
    command, and its own file: PBS would write over that of the job before."""
    place = store.absolute()
    part = str(Share(share, record.shares))
    again = "" if number == 1 else f".{number}"
    return replace(
        base,
        name="mpigraft-" + re.sub(r"[^A-Za-z0-9_.-]", "_", record.name)[:40],
        nodes=record.nodes,
        limit_s=record.limit_s,
        output=str(place / "logs" / f"{record.campaign[:8]}-{share}{again}"),
        command=(*mpigraft, "--store", str(place), "bench", "--resume", record.campaign,
                 "--share", part),
    )  # fmt: skip


def submit(
    store: Store,
    record: SubmissionRecord,
    links: Sequence[Mapping[int, JobWish]],
    plan: CampaignRecord | None = None,
) -> list[JobRecord]:
    """Hand in jobs by share; those of a later link start when the share's job of the link before
    has ended, however it did. The submission is in the store before the first job can start, and
    so is the `plan` of a campaign that is extended; each job as soon as it has an id. Raises
    LaunchFailed or MissingError; jobs that were handed in until then stay and are known.

    Link by link: where a site's limit of jobs is met, no share is without its first for another's
    third.
    """
    store.logs()
    handed: list[JobRecord] = []
    with store.writer() as writer:
        if all(known.campaign != record.campaign for known in store.submissions()):
            writer.add_submission(record)
        if plan is not None:
            writer.add_campaign(plan)
        before: dict[int, str] = {}
        for share, wish in ((s, w) for link in links for s, w in link.items()):
            script = schedulers.SCHEDULERS[record.scheduler].script(
                replace(wish, after=before.get(share, ""))
            )
            try:
                before[share] = schedulers.submit(record.scheduler, script)
            except LaunchFailed as error:
                raise _refused(error, record, handed) from error
            one = JobRecord(record.campaign, share, before[share], campaign.now(), script)
            try:
                writer.add_job(one)
            except MissingError as error:
                raise _unknown(error, record.scheduler, one.job) from error
            handed.append(one)
    return handed


def _unknown(error: MissingError, scheduler: str, job: str) -> MissingError:
    """The trouble of a store that has no room for a job that is handed in already."""
    return MissingError(
        error.seen,
        why=f"{scheduler} has job {job} all the same, of which `status` and --resume do not know",
        mend=f"cancel job {job}, or two may run at once; then {error.mend or 'hand it in again'}",
    )


def _refused(
    error: LaunchFailed, record: SubmissionRecord, handed: Sequence[JobRecord]
) -> LaunchFailed:
    """The scheduler's words, and what stands all the same."""
    if not handed:
        return error
    listed = ", ".join(one.job for one in handed)
    short = record.campaign[:8]
    return LaunchFailed(
        error.seen,
        why=f"{record.scheduler} has the jobs handed in before it and runs them: {listed}",
        mend=f"`mpigraft status {short}` shows what they leave, `mpigraft submit --resume {short}` "
        f"hands that in; {error.mend}",
    )


def done(store: Store, identity: str, share: Share) -> bool:
    """Whether a job of that share of that campaign has come to its end: another has nothing to
    do, and need not look at its node to know."""
    mine = [a for a in store.allocations(identity) if a.share == str(share)]
    return _done(mine, store.launches(identity), planned_of(store, identity))


def _done(
    allocations: Iterable[AllocationRecord],
    launches: Iterable[LaunchRecord],
    plan: CampaignRecord | None,
) -> bool:
    """Whether one of them ended; of a campaign that was extended, one that knew of it: it made a
    launch of a round that was added, or none was left to make."""
    added = campaign.extended_from(plan) if plan else 0
    knew = {launch.allocation for launch in launches if launch.round >= added}
    return any(a.ended and (not added or a.steps == 0 or a.id in knew) for a in allocations)


def planned_of(store: Store, identity: str) -> CampaignRecord | None:
    """The campaign that the jobs of a submission agreed on, as it was extended since; None
    before the first of them has started."""
    settled = store.settled(identity)
    if settled is None:
        return None
    return next((c for c in store.campaigns() if c.id == identity), settled)


def extended(store: Store, record: SubmissionRecord, rounds: int) -> CampaignRecord:
    """The plan of a submitted campaign with `rounds` rounds. Raises UsageError where no job has
    planned it yet, and for fewer rounds than are planned."""
    before = planned_of(store, record.campaign)
    if before is None:
        raise UsageError(
            f"{record.name} ({record.campaign[:8]}) cannot be extended: no job has planned it yet",
            why="the first job to start chooses what is measured, on its nodes",
            mend=f"wait for it (`mpigraft status {record.campaign[:8]}`), or submit a new campaign",
        )
    begun = len({launch.round for launch in store.launches(record.campaign)})
    return campaign.extended(before, rounds, begun)


def agreed(
    store: Store, identity: str, machine: Machine, nodes: Allocation
) -> CampaignRecord | None:
    """The campaign of the submission of that id, planned for this machine unless another of its
    jobs was first; None where there is no such submission."""
    found = [record for record in store.submissions() if record.campaign == identity]
    if not found:
        return None
    if settled := planned_of(store, identity):
        return settled
    wish = wish_from(json.loads(found[0].wish), "the submission")
    planned = campaign.plan(wish, machine, configure.contents, nodes)
    return store.settle(campaign.record(planned, identity))


# ------------------------------------------------------------------ how far it is


@dataclass(frozen=True, slots=True)
class ShareStatus:
    """One share: the job that is at it, else the next, else the last; what all have measured."""

    share: int
    job: str  # empty: none was handed in
    behind: tuple[str, ...]  # jobs that wait for the end of that one, in order
    status: JobStatus
    nodes: str  # of the last allocation; empty: none has started
    launches: int  # made until now
    left: int  # launches that the last allocation has not made; 0 before one has started
    left_s: float | None  # at its pace; None: it has none yet, or does not run
    done: bool


@dataclass(frozen=True, slots=True)
class Status:
    """A submission and its shares, in order."""

    record: SubmissionRecord
    planned: bool
    shares: tuple[ShareStatus, ...]
    findings: tuple[tuple[Finding, int], ...]  # what went wrong, most often first, and how often

    @property
    def open(self) -> tuple[int, ...]:
        """Shares that are not done and that no job is at or waits for."""
        return tuple(s.share for s in self.shares if not s.done and s.status.state not in WAITING)


def status(
    store: Store,
    record: SubmissionRecord,
    states: Mapping[str, JobStatus],
    plan: CampaignRecord | None = None,
) -> Status:
    """How a submission stands; `states` is what the scheduler says of its jobs. With a `plan` how
    it would stand if that were its own. Raises MissingError when what the jobs agreed on cannot
    be read."""
    allocations = store.allocations(record.campaign)
    launches = store.launches(record.campaign)
    jobs = store.jobs(record.campaign)
    plan = plan or planned_of(store, record.campaign)
    rows = []
    for number in range(1, record.shares + 1):
        share = Share(number, record.shares)
        on = [a for a in allocations if a.share == str(share)]
        known = {one.job: states.get(one.job, UNKNOWN) for one in jobs if one.share == number}
        rows.append(_share(share, known, on, launches, plan))
    trouble = Counter(
        finding
        for one in store.evidence(record.campaign, every=True)
        if not one.evidence.ok
        for finding in one.evidence.findings
    )
    trouble.update(f for x in launches if x.state is not LaunchState.OK for f in x.findings)
    errors = [(f, n) for f, n in trouble.most_common() if f.level is Level.ERROR]
    return Status(record, plan is not None, tuple(rows), tuple(errors))


def _share(
    share: Share,
    jobs: Mapping[str, JobStatus],
    allocations: Sequence[AllocationRecord],
    launches: Sequence[LaunchRecord],
    plan: CampaignRecord | None,
) -> ShareStatus:
    job, behind = _turn(jobs)
    status = jobs.get(job, UNKNOWN)
    mine = [x for x in launches if share.has(x.round)]
    now = allocations[-1] if allocations else None
    made = [x for x in mine if now and x.allocation == now.id]
    done = _done(allocations, launches, plan)
    left = max(0, now.steps - len(made)) if now and not done else 0
    runs = now is not None and status.state is JobState.RUNNING and now.job == job
    pace_s = sum(x.wall_s for x in made) / len(made) if made and runs else None
    return ShareStatus(
        share=share.number,
        job=job,
        behind=behind,
        status=status,
        nodes=now.nodes if now else "",
        launches=len(mine),
        left=left,
        left_s=None if pace_s is None else pace_s * left,
        done=done,
    )


def _turn(jobs: Mapping[str, JobStatus]) -> tuple[str, tuple[str, ...]]:
    """Of the jobs of a share, oldest first: the one whose turn it is, and those that wait behind
    it. Where none runs or waits, the last."""
    waits = [job for job, status in jobs.items() if status.state is JobState.PENDING]
    runs = [job for job, status in jobs.items() if status.state is JobState.RUNNING]
    queue = [*runs, *waits] or list(jobs)[-1:] or [""]
    return queue[0], tuple(queue[1:])
