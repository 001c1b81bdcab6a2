"""What the jobs of a submission will do, as far as it is known before they start."""

from __future__ import annotations

import json
import math
import os
import shlex
from dataclasses import dataclass, replace

from mpigraft.bench.schedule.campaign import Campaign, plan_campaign, schedule_launches
from mpigraft.bench.submission import planned_of, requested_nodes
from mpigraft.core.clock import utc_time
from mpigraft.core.errors import CheckFailed, MpigraftError, UsageError
from mpigraft.core.model import Allocation, Machine, Scheduler, SubmissionRecord
from mpigraft.graft import read_machine
from mpigraft.launch import kept_document
from mpigraft.request import stored_spec
from mpigraft.store import Store

MOST_LINKS = 10  # jobs of a chain that are proposed; beyond it a longer time is


@dataclass(frozen=True, slots=True)
class JobsPlan:
    """What the jobs launch on nodes like those that were described, and how long it takes."""

    campaign: Campaign
    launches: int  # at most, of all shares
    share_s: float  # of the jobs of one share: its launches, and the proofs of each job
    time_s: float  # that each of these jobs needs
    chain: int  # jobs of a share that have the time; 0: none have, or too many would be needed


@dataclass(frozen=True, slots=True)
class Forecast:
    """What jobs do. Without `made`, `problem` and `day` their nodes are not known."""

    record: SubmissionRecord
    partition: str  # empty: the site's
    links: int  # jobs of each share, one after the other
    how: str  # to describe nodes of the partition
    idle: tuple[tuple[str, int], ...]  # layouts that leave nodes idle, and the nodes of each
    made: int | None = None  # launches before now, of a campaign that its jobs have planned
    problem: str = ""  # of the description of the partition's nodes
    day: str = ""  # on which they were described
    plan: JobsPlan | None = None  # None with a `day`: there is none, since
    error: MpigraftError | None = None
    unchecked: bool = False  # the error may be of this host, which lacks the MPIs of the nodes


def idle_layouts(record: SubmissionRecord) -> tuple[tuple[str, int], ...]:
    """List the layouts that leave nodes of a job idle, and how many nodes each uses."""
    spec = stored_spec(json.loads(record.wish), "the submission")
    return tuple((what, used) for what, used in requested_nodes(spec) if used < record.nodes)


def forecast_jobs(store: Store, record: SubmissionRecord, partition: str, links: int) -> Forecast:
    """Say what the jobs of a submission do in a partition, if nodes of it were described."""
    path = kept_document(partition or "P")
    how = f"mpigraft discover --partition {shlex.quote(partition or 'P')}"
    if record.scheduler == "pbs":  # no command of it starts one on a node and prints its output
        how = f"mpigraft discover --json --abi > {shlex.quote(str(path))}, in a job there"
    known = Forecast(record, partition, links, how, idle_layouts(record))
    if planned_of(store, record.campaign) is not None:
        return replace(known, made=len(store.launches(record.campaign)))
    if not partition or "," in partition or not os.path.isfile(path):  # noqa: PTH113
        return known
    try:
        machine = read_machine(path)
    except UsageError as error:
        return replace(known, problem=error.message)
    known = replace(known, day=utc_time(path.stat().st_mtime)[:10])
    try:
        return replace(known, plan=_plan(record, machine, links))
    except MpigraftError as error:
        return replace(known, error=error, unchecked=_is_unchecked(error, record, machine))


def _is_unchecked(error: MpigraftError, record: SubmissionRecord, machine: Machine) -> bool:
    """Return whether an error may come from files of the nodes' MPIs, which are not here."""
    spec = stored_spec(json.loads(record.wish), "the submission")
    compares = isinstance(error, CheckFailed) or bool(spec.image or spec.stack)
    return compares and not all(mpi.libmpi and mpi.libmpi.exists() for mpi in machine.mpis)


def _plan(record: SubmissionRecord, machine: Machine, links: int) -> JobsPlan:
    """Plan a submission as its jobs would on nodes like `machine`, whose files need not be here: so
    MPIs of equal libraries are not counted once. Raises as `plan_campaign` does."""
    spec = stored_spec(json.loads(record.wish), "the submission")
    hosts = tuple(f"node{number}" for number in range(1, record.nodes + 1))
    nodes = Allocation(hosts, "the job", record.scheduler)
    version = machine.scheduler.version if machine.scheduler else ""
    machine = replace(machine, scheduler=Scheduler(record.scheduler, version, in_allocation=True))
    campaign = plan_campaign(spec, machine, lambda mpi: ((mpi.id, str(mpi.libmpi)),), nodes)
    launches = len(schedule_launches(campaign))
    launches += launches // campaign.spec.rounds * campaign.spec.spare_rounds
    launches_s = campaign.launch_s * math.ceil(launches / record.shares)
    spare_s = record.limit_s - campaign.proofs_s  # each job proves transports on its own nodes
    chain = math.ceil(launches_s / spare_s) if spare_s > 0 else 0
    return JobsPlan(
        campaign=campaign,
        launches=launches,
        share_s=launches_s + links * campaign.proofs_s,
        time_s=launches_s / links + campaign.proofs_s,
        chain=chain if chain <= MOST_LINKS else 0,
    )
