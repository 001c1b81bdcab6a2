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

from mpigraft.bench.schedule.campaign import campaign_record, completed_spec, plan_campaign
from mpigraft.bench.schedule.extension import extend_campaign, extended_rounds
from mpigraft.core.clock import utc_now
from mpigraft.core.errors import LaunchFailed, MissingError, UsageError
from mpigraft.core.model import (
    MAX_COUNT,
    Allocation,
    AllocationRecord,
    CampaignRecord,
    Finding,
    JobRecord,
    JobRequest,
    JobState,
    JobStatus,
    LaunchRecord,
    LaunchState,
    Level,
    Machine,
    Shard,
    SubmissionRecord,
    parse_layout,
)
from mpigraft.core.process import run_command
from mpigraft.core.serialize import canonical
from mpigraft.launch import SCHEDULERS, submit_script
from mpigraft.request import CampaignSpec, stored_spec
from mpigraft.selection import library_digests
from mpigraft.store import Store, agree_on_plan, agreed_plan

SCONTROL_LIMIT_S = 10.0
SLINGSHOT = re.compile(r"^SwitchType\s*=\s*switch/hpe_slingshot\s*$", re.MULTILINE)
TIME = re.compile(r"(?:(\d{1,4})d)?(?:(\d{1,5})h)?(?:(\d{1,6})m)?(?:(\d{1,8})s)?")
CLOCK = re.compile(r"(?:(\d{1,4})-)?(\d{1,5}):(\d{1,2}):(\d{1,2})")
LEAST_S = 60  # Slurm counts in minutes
WAITING = (JobState.PENDING, JobState.RUNNING)
UNKNOWN = JobStatus(JobState.GONE)


def parse_duration(text: str) -> int:
    """`90` (minutes), `90m`, `1h30m`, `1:30:00`, `2-00:00:00` -> seconds. Raises UsageError.

    `1:30` is refused: sbatch reads minutes and seconds, people mean hours.
    """
    total = 0
    if text.isdecimal() and text.isascii() and len(text) < 8:
        total = int(text) * 60
    elif match := CLOCK.fullmatch(text) or TIME.fullmatch(text):
        days, hours, minutes, rest = (int(part or 0) for part in match.groups())
        total = ((days * 24 + hours) * 60 + minutes) * 60 + rest
    if total < LEAST_S:
        raise UsageError.of("time-invalid", text=text)
    return total


# ------------------------------------------------------------------ handing in


def plan_submission(
    spec: CampaignSpec, nodes: int, limit_s: int, jobs: int, scheduler: str
) -> SubmissionRecord:
    """Return a submission of `jobs` jobs. Raises UsageError for a spec that no allocation of that
    many nodes can meet."""
    whole = completed_spec(spec, nodes)
    if jobs > 1:
        if spec.spare_rounds:
            raise UsageError.of("spare-rounds-shares", jobs=jobs)
        whole = replace(whole, spare_rounds=0)
    if not 1 <= jobs <= whole.rounds:
        raise UsageError.of("allocations-too-many", jobs=jobs, rounds=whole.rounds)
    for what, wanted in requested_nodes(whole):
        if wanted > nodes:
            raise UsageError.of("nodes-too-few", what=what, wanted=wanted, nodes=nodes)
    return SubmissionRecord(
        campaign=str(uuid.uuid4()),
        name=whole.name,
        created=utc_now(),
        scheduler=scheduler,
        wish=canonical(whole),
        nodes=nodes,
        limit_s=limit_s,
        shares=jobs,
    )


def requested_nodes(spec: CampaignSpec) -> list[tuple[str, int]]:
    """List what requests a number of nodes, and the number."""
    layouts = [(f"layout {text}", parse_layout(text, MAX_COUNT**2).nodes) for text in spec.layout]
    return [*layouts, *((f"nodes = {count}", count) for count in spec.nodes)]


def network_options(scheduler: str, nodes: int) -> str:
    """Return what a job must ask for on Slingshot: Slurm gives a step on one node no VNI unless
    asked, and each step another, so that what an mpirun starts beside it could not be reached.
    Source: srun(1), --network; LUMI's notes on Open MPI; CXI-04 of the known issues."""
    if scheduler != "slurm":
        return ""
    answer = run_command(["scontrol", "show", "config"], limit_s=SCONTROL_LIMIT_S)
    if not SLINGSHOT.search(answer.text()):
        return ""
    return "single_node_vni" if nodes == 1 else "single_node_vni,job_vni"


def share_job(
    record: SubmissionRecord,
    share: int,
    mpigraft: Sequence[str],
    store: Path,
    base: JobRequest,
    number: int = 1,
) -> JobRequest:
    """Return the `number`-th job of one share: `base`, which has what all of them say, with its own
    command, and its own file: PBS would write over that of the job before."""
    place = store.absolute()
    part = str(Shard(share, record.shares))
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


def submit_jobs(
    store: Store,
    record: SubmissionRecord,
    links: Sequence[Mapping[int, JobRequest]],
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
        for share, job in (pair for link in links for pair in link.items()):
            script = SCHEDULERS[record.scheduler].script(replace(job, after=before.get(share, "")))
            try:
                before[share] = submit_script(record.scheduler, script)
            except LaunchFailed as error:
                raise _refused(error, record, handed) from error
            one = JobRecord(record.campaign, share, before[share], utc_now(), script)
            try:
                writer.add_job(one)
            except MissingError as error:
                raise _unknown(error, record.scheduler, one.job) from error
            handed.append(one)
    return handed


def _unknown(error: MissingError, scheduler: str, job: str) -> MissingError:
    """Return the trouble of a store that has no room for a job that is handed in already."""
    return MissingError.of(
        "job-not-recorded",
        problem=error.message,
        scheduler=scheduler,
        job=job,
        advice=error.fix or "submit it again",
    )


def _refused(
    error: LaunchFailed, record: SubmissionRecord, handed: Sequence[JobRecord]
) -> LaunchFailed:
    """Return the scheduler's words, and what was submitted all the same."""
    if not handed:
        return error
    listed = ", ".join(one.job for one in handed)
    short = record.campaign[:8]
    return LaunchFailed.of(
        "jobs-refused-later",
        problem=error.message,
        scheduler=record.scheduler,
        listed=listed,
        short=short,
        advice=error.fix,
    )


def share_done(store: Store, identity: str, share: Shard) -> bool:
    """Return whether a job of that share of that campaign has come to its end: another has nothing
    to do, and need not look at its node to know."""
    allocations = [a for a in store.allocations(identity) if a.share == str(share)]
    return _done(allocations, store.launches(identity), planned_of(store, identity))


def _done(
    allocations: Iterable[AllocationRecord],
    launches: Iterable[LaunchRecord],
    plan: CampaignRecord | None,
) -> bool:
    """Return whether one of them ended; of a campaign that was extended, one that knew of it: it
    made a launch of a round that was added, or none was left to make."""
    added = extended_rounds(plan) if plan else 0
    knew = {launch.allocation for launch in launches if launch.round >= added}
    return any(a.ended and (not added or a.steps == 0 or a.id in knew) for a in allocations)


def planned_of(store: Store, identity: str) -> CampaignRecord | None:
    """Return the campaign that the jobs of a submission agreed on, as it was extended since; None
    before the first of them has started."""
    settled = agreed_plan(store.folder, identity)
    if settled is None:
        return None
    return next((c for c in store.campaigns() if c.id == identity), settled)


def extend_submission(store: Store, record: SubmissionRecord, rounds: int) -> CampaignRecord:
    """Return the plan of a submitted campaign with `rounds` rounds. Raises UsageError where no job
    has planned it yet, and for fewer rounds than are planned."""
    before = planned_of(store, record.campaign)
    if before is None:
        raise UsageError.of("submission-unplanned", name=record.name, record=record.campaign[:8])
    begun = len({launch.round for launch in store.launches(record.campaign)})
    return extend_campaign(before, rounds, begun)


def agreed_campaign(
    store: Store, identity: str, machine: Machine, nodes: Allocation
) -> CampaignRecord | None:
    """Return the campaign of the submission of that id, planned for this machine unless another of
    its jobs was first; None where there is no such submission."""
    records = [record for record in store.submissions() if record.campaign == identity]
    if not records:
        return None
    if settled := planned_of(store, identity):
        return settled
    spec = stored_spec(json.loads(records[0].wish), "the submission")
    planned = plan_campaign(spec, machine, library_digests, nodes)
    return agree_on_plan(store.folder, campaign_record(planned, identity))


# ------------------------------------------------------------------ how far it is


@dataclass(frozen=True, slots=True)
class ShareStatus:
    """One share: the job that is at it, else the next, else the last; what all have measured."""

    share: int
    job: str  # empty: none was handed in
    behind: tuple[str, ...]  # jobs that wait for the end of that one, in order
    status: JobStatus
    requeued: bool  # whether that job ran before, and waits again: after preemption, say
    nodes: str  # of the last allocation; empty: none has started
    launches: int  # made until now
    left: int  # launches that the last allocation has not made; 0 before one has started
    left_s: float | None  # at its pace; None: it has none yet, or does not run
    done: bool
    proved: int = 0  # configurations and layouts that the last allocation has judged
    to_prove: int = 0  # of how many, before it measures; 0: it measures, or does not run


@dataclass(frozen=True, slots=True)
class SubmissionStatus:
    """A submission and its shares, in order."""

    record: SubmissionRecord
    planned: bool
    shares: tuple[ShareStatus, ...]
    findings: tuple[tuple[Finding, int], ...]  # what went wrong, most often first, and how often

    @property
    def open(self) -> tuple[int, ...]:
        """Shares that are not done and that no job is at or waits for."""
        return tuple(s.share for s in self.shares if not s.done and s.status.state not in WAITING)


def submission_status(
    store: Store,
    record: SubmissionRecord,
    states: Mapping[str, JobStatus],
    plan: CampaignRecord | None = None,
) -> SubmissionStatus:
    """Return a submission's state; `states` are its jobs' by the scheduler. With a `plan`, the
    state as if that were its own. Raises MissingError when the plan that the jobs agreed on cannot
    be read."""
    allocations = store.allocations(record.campaign)
    launches = store.launches(record.campaign)
    jobs = store.jobs(record.campaign)
    plan = plan or planned_of(store, record.campaign)
    evidence = store.evidence(record.campaign, every=True)
    proved = Counter(one.allocation for one in evidence)
    rows = []
    for number in range(1, record.shares + 1):
        share = Shard(number, record.shares)
        on = [a for a in allocations if a.share == str(share)]
        known = {one.job: states.get(one.job, UNKNOWN) for one in jobs if one.share == number}
        rows.append(_share(share, known, on, launches, (plan, proved)))
    trouble = Counter(
        finding for one in evidence if not one.evidence.ok for finding in one.evidence.findings
    )
    trouble.update(f for x in launches if x.state is not LaunchState.OK for f in x.findings)
    errors = [(f, n) for f, n in trouble.most_common() if f.level is Level.ERROR]
    return SubmissionStatus(record, plan is not None, tuple(rows), tuple(errors))


def _share(
    share: Shard,
    jobs: Mapping[str, JobStatus],
    allocations: Sequence[AllocationRecord],
    launches: Sequence[LaunchRecord],
    planned: tuple[CampaignRecord | None, Mapping[str, int]],
) -> ShareStatus:
    plan, proved = planned
    job, behind = _turn(jobs)
    status = jobs.get(job, UNKNOWN)
    launched = [x for x in launches if share.has(x.round)]
    now = allocations[-1] if allocations else None
    made = [x for x in launched if now and x.allocation == now.id]
    done = _done(allocations, launches, plan)
    pending = max(0, now.steps - len(made)) if now and not done else 0
    runs = now is not None and status.state is JobState.RUNNING and now.job == job
    pace_s = sum(x.wall_s for x in made) / len(made) if made and runs else None
    return ShareStatus(
        share=share.number,
        job=job,
        behind=behind,
        status=status,
        requeued=status.state is JobState.PENDING and job in {a.job for a in allocations},
        nodes=now.nodes if now else "",
        launches=len(launched),
        left=pending,
        left_s=None if pace_s is None else pace_s * pending,
        done=done,
        proved=proved.get(now.id, 0) if now else 0,
        to_prove=_pairs(plan) if plan and runs and not made else 0,
    )


def _pairs(plan: CampaignRecord) -> int:
    """Count the pairs of configuration and layout that a job judges before it measures."""
    stored = json.loads(plan.plan)
    return len(stored.get("configurations", ())) * len(stored.get("layouts", ()))


def _turn(jobs: Mapping[str, JobStatus]) -> tuple[str, tuple[str, ...]]:
    """Return the job of a share whose turn it is, and those that wait behind it. `jobs` are oldest
    first. Where none runs or waits, it is the last."""
    waits = [job for job, status in jobs.items() if status.state is JobState.PENDING]
    runs = [job for job, status in jobs.items() if status.state is JobState.RUNNING]
    queue = [*runs, *waits] or list(jobs)[-1:] or [""]
    return queue[0], tuple(queue[1:])
