"""The whole flow, read first: discover -> plan -> launch -> prove -> measure -> store.

Stages compute; this file has the effects between them: it starts what `launch` made, and hands
what came back to `prove`, `measure` and the store. `watch` hears of each thing as it happens.
"""

from __future__ import annotations

import json
import math
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, product
from typing import Protocol

from mpigraft.bench import measurement, provenance, shards
from mpigraft.bench.conditions import node_state
from mpigraft.bench.files import launch_files, refuse_changed_files, refuse_other_files
from mpigraft.bench.launching import make_launcher
from mpigraft.bench.schedule.campaign import (
    Campaign,
    Step,
    allocation_record,
    campaign_record,
    schedule_launches,
)
from mpigraft.bench.schedule.extension import with_spare_rounds
from mpigraft.bench.shards import GIVE_UP_AFTER, Pair, Work
from mpigraft.bench.stopping import Stops
from mpigraft.core.clock import utc_now
from mpigraft.core.errors import LaunchFailed, MpigraftError, TransportMismatch, UsageError
from mpigraft.core.lease import holding_leases
from mpigraft.core.lock import nodes_lock
from mpigraft.core.model import (
    Allocation,
    AllocationRecord,
    CampaignRecord,
    Configuration,
    ConfigurationRecord,
    Evidence,
    EvidenceRecord,
    LaunchState,
    Layout,
    Look,
    Machine,
    Shard,
)
from mpigraft.evidence import (
    Fingerprint,
    error_from_findings,
    evidence_of,
    make_starter,
    refused_evidence,
    with_setting_effects,
)
from mpigraft.graft import due_leases, materialize, paths_in_guest
from mpigraft.launch import THIS_HOST, placement_for
from mpigraft.native import Natives, choose_natives
from mpigraft.selection import reached_nodes
from mpigraft.store import Store, Writer

ALL = Shard()


@dataclass(frozen=True, slots=True)
class JobPart:
    """The part of a campaign that one job measures, and how."""

    nodes: Allocation = THIS_HOST
    share: Shard = ALL
    deadline: float = math.inf  # of time.monotonic(): nothing is started after it
    locked: bool = True  # keeps others off its nodes
    apart: bool = False  # each configuration is compared with its earlier self: any may be absent


ALONE = JobPart()


class Watch(Protocol):
    """Hears of a campaign's progress; cli shows it."""

    def began(self, campaign: Campaign, launches: int) -> None: ...
    def proved(self, configuration: Configuration, layout: Layout, evidence: Evidence) -> None: ...
    def launched(self, step: Step, outcome: measurement.LaunchOutcome, wall_s: float) -> None: ...
    def looked(self, look: Look, open_curves: int, launches: int) -> None: ...
    def grew(self, rounds: int, planned: int, launches: int) -> None: ...


def run_campaign(
    asked: Campaign,
    machine: Machine,
    store: Store,
    watch: Watch,
    resume: CampaignRecord | None = None,
    part: JobPart = ALONE,
) -> str:
    """Run a campaign, or what is left of campaign `resume`, and return its id. Of its rounds this
    job measures its `part`; others of the same campaign may run at the same time.

    Raises LaunchFailed or TransportMismatch when a configuration that was named did not run as
    asked, and MissingError when the store cannot be written; what was measured until then stays."""
    nodes, share = part.nodes, part.share
    programs = {c.key: _natives(c, machine, asked) for c in asked.configurations}
    files = {c.key: launch_files(c, programs[c.key], asked.files(c)) for c in asked.configurations}
    make = partial(
        make_starter, programs, nodes, partial(placement_for, machine=machine, nodes=nodes)
    )
    with _lock(asked, part), store.writer() as writer, make_launcher(asked, programs, make) as run:
        record = _announce(asked, programs, files, store, writer, resume)
        made = shards.read_made(store, record.id)
        allocation = allocation_record(record.id, machine, nodes)
        here = allocation.nodes
        stops = Stops(record, store, share, watch.looked)
        pending = shards.pending_steps(schedule_launches(asked), share, made, here, stops.ended())
        steps = stops.remaining_steps(pending)
        allocation = replace(allocation, share=str(share), steps=len(steps))
        writer.add_allocation(allocation)
        watch.began(asked, len(steps))

        def judge(one: Configuration, layout: Layout) -> EvidenceRecord:
            evidence = evidence_of(one, layout, programs[one.key], run.start, nodes)
            evidence = with_setting_effects(evidence, asked.effects.get(one.key, ()))
            return EvidenceRecord(record.id, one.key, layout.key, evidence, allocation.id)

        ready, trouble = _prove(asked, part, shards.refused_arms(made, here), judge, writer, watch)
        failed: Counter[Work] = Counter()
        for step in chain(steps, _spare_steps(asked, record, allocation, store, writer, watch)):
            arm, program = shards.arm_key(step), shards.program_key(step)
            if time.monotonic() >= part.deadline:
                break
            stops.take_looks(step.round)
            if arm not in ready or arm in stops.pairs or failed[program] >= GIVE_UP_AFTER:
                continue
            refuse_changed_files(step.configuration, files[arm[0]])
            before = node_state()
            ran, outcome = run.launch(step)
            states = (before, node_state())
            kept = measurement.launch_record(record.id, allocation.id, step, ran, outcome, states)
            writer.add_launch(kept, outcome.measurements, {**ran.output, **dict(outcome.files)})
            failed[program] = 0 if outcome.measurements else failed[program] + 1
            if step.configuration.named and outcome.state is not LaunchState.OK:
                trouble.append(_trouble(step, outcome))
            watch.launched(step, outcome, ran.completed.wall_s)
        writer.add_allocation(replace(allocation, ended=utc_now()))
    if trouble:
        raise trouble[0]
    return record.id


def _spare_steps(
    asked: Campaign,
    record: CampaignRecord,
    allocation: AllocationRecord,
    store: Store,
    writer: Writer,
    watch: Watch,
) -> Iterator[Step]:
    """Yield the launches of the spare rounds that others turn out to need, once these are over. A
    job that has only a share of the rounds makes none."""
    if allocation.share != str(ALL):
        return
    longer, record = with_spare_rounds(asked, record, store.launches(record.id))
    if longer is not asked:
        writer.add_campaign(record)
        made = shards.read_made(store, record.id)
        pending = shards.pending_steps(schedule_launches(longer), ALL, made, allocation.nodes, {})
        steps = [step for step in pending if step.round >= asked.spec.rounds]
        watch.grew(longer.spec.rounds, asked.spec.rounds, len(steps))
        yield from steps


@contextmanager
def _lock(asked: Campaign, part: JobPart) -> Iterator[None]:
    """Hold the locks of nodes, and leases of what was injected into stacks."""
    leases = due_leases(c.graft.libmpi for c in asked.configurations if c.graft)
    lock = nodes_lock(part.nodes) if part.locked else nullcontext()
    with lock, holding_leases(leases, os.environ):
        yield


def _natives(configuration: Configuration, machine: Machine, asked: Campaign) -> Natives:
    assert configuration.mpi is not None
    natives = choose_natives(configuration.mpi, machine.cpu.architecture, asked.spec.native_build)
    if configuration.graft is None:
        return natives
    materialize(configuration.graft)  # its copies are among the files that launches use
    return paths_in_guest(configuration.graft, natives)


def _announce(
    asked: Campaign,
    programs: dict[str, Natives],
    files: dict[str, Fingerprint],
    store: Store,
    writer: Writer,
    resume: CampaignRecord | None,
) -> CampaignRecord:
    """Write the configurations, then the campaign, before anything is started: a campaign that
    is there has all of them, whenever it was killed. Returns it. Raises UsageError when what
    would go on measuring is not what began."""
    record = resume or campaign_record(asked)
    for old in store.configurations(record.id) if resume else ():
        began = json.loads(old.provenance)
        if old.key in programs and began.get("programs") != programs[old.key].digest:
            raise UsageError.of("resume-other-programs", id=old.id)
        if old.key in files:
            refuse_other_files(old.id, began.get("files"), files[old.key])
    for configuration in asked.configurations:
        key = configuration.key
        document = provenance.provenance(
            configuration,
            programs[key].digest,
            files[key].named,
            asked.commands(configuration),
            asked.command_lines(configuration),
        )
        writer.add_configuration(
            ConfigurationRecord(record.id, key, configuration.id, document, configuration.buffers)
        )
    writer.add_campaign(record)
    return record


def _prove(
    asked: Campaign,
    part: JobPart,
    refused: set[Pair],
    judge: Callable[[Configuration, Layout], EvidenceRecord],
    writer: Writer,
    watch: Watch,
) -> tuple[set[Pair], list[MpigraftError]]:
    """Judge every configuration on every layout, by a probe or by an earlier one of the same
    contents on this boot of this host. Return the pairs that run as asked, and the refusals of
    those that were named, for the end: a job's nodes are not given back for one. Without its
    baseline a campaign says nothing, so that ends it at once."""
    ready: set[Pair] = set()
    refusals: list[MpigraftError] = []
    for configuration, layout in product(asked.configurations, asked.layouts):
        pair = configuration.key, layout.key
        # What was refused here when it began: its rounds would lack a first half.
        if not reached_nodes(configuration, layout) or pair in refused:
            continue
        if time.monotonic() >= part.deadline:
            break
        record = judge(configuration, layout)
        writer.add_evidence(record)
        watch.proved(configuration, layout, record.evidence)
        if record.evidence.ok:
            ready.add(pair)
        elif configuration.named:
            refusals.append(refused_evidence(configuration, record.evidence))
            if configuration.key == asked.baseline.key and not part.apart:
                raise refusals[-1]
    return ready, refusals


def _trouble(step: Step, outcome: measurement.LaunchOutcome) -> MpigraftError:
    """Return the error for a named configuration with a failed launch."""
    what = f"{step.configuration.id} {step.program}".strip()
    kind = TransportMismatch if outcome.state is LaunchState.MISMATCH else LaunchFailed
    return error_from_findings(kind, what, outcome.findings)
