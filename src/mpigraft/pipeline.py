"""The whole flow, read first: discover -> plan -> launch -> prove -> measure -> store.

Stages compute; this file has the effects between them: it starts what `launch` made, and hands
what came back to `prove`, `measure` and the store. `watch` hears of each thing as it happens.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol

from mpigraft import campaign, configure, grafts, layouts, measure, provenance, shares
from mpigraft.campaign import Campaign, Step
from mpigraft.campaign_files import LaunchFiles, launch_files, refuse_changed, refuse_other
from mpigraft.conditions import node_state
from mpigraft.errors import LaunchFailed, MpigraftError, TransportMismatch, UsageError
from mpigraft.launch import HERE
from mpigraft.lock import nodes_lock
from mpigraft.model import (
    Allocation,
    AllocationRecord,
    CampaignRecord,
    Configuration,
    Evidence,
    EvidenceRecord,
    LaunchState,
    Layout,
    Look,
    Machine,
    Share,
)
from mpigraft.natives import Natives, natives
from mpigraft.shares import GIVE_UP_AFTER, Pair
from mpigraft.starter import error_of, evidence_of, refusal, starter
from mpigraft.stopping import Stops
from mpigraft.store import Store, Writer

ALL = Share()


class Watch(Protocol):
    """Hears of a campaign's progress; cli shows it."""

    def began(self, campaign: Campaign, launches: int) -> None: ...
    def proved(self, configuration: Configuration, layout: Layout, evidence: Evidence) -> None: ...
    def launched(self, step: Step, outcome: measure.Outcome, wall_s: float) -> None: ...
    def looked(self, look: Look, open_curves: int, launches: int) -> None: ...


def bench(
    asked: Campaign,
    machine: Machine,
    store: Store,
    watch: Watch,
    resume: CampaignRecord | None = None,
    nodes: Allocation = HERE,
    share: Share = ALL,
) -> str:
    """Run a campaign, or what is left of campaign `resume`, on `nodes`, and return its id. Of its
    rounds this job measures `share`; others of the same campaign may run at the same time.

    Raises LaunchFailed or TransportMismatch when a configuration that was named did not run as
    asked, and MissingError when the store cannot be written; what was measured until then stays."""
    programs = {c.key: _natives(c, machine, asked) for c in asked.configurations}
    files = {c.key: launch_files(c, programs[c.key]) for c in asked.configurations}
    place = partial(layouts.told, machine=machine)
    with nodes_lock(nodes), store.writer() as writer, starter(programs, nodes, place) as start:
        record = _announce(asked, programs, files, store, writer, resume)
        before = (store.evidence(record.id, every=True), store.allocations(record.id))
        allocation = campaign.allocation(record.id, machine, nodes)
        made = (store.launches(record.id), *before, allocation.nodes)
        stops = Stops(record, store, share, watch.looked)
        steps = stops.left(shares.left(campaign.schedule(asked), share, *made, stops.ended()))
        allocation = replace(allocation, share=str(share), steps=len(steps))
        writer.add_allocation(allocation)
        watch.began(asked, len(steps))
        refused = shares.refused(*before, allocation.nodes)

        def look(configuration: Configuration, layout: Layout) -> Evidence:
            return evidence_of(configuration, layout, programs[configuration.key], start, nodes)

        trouble: list[MpigraftError] = []
        ready = set(_prove(asked, allocation, refused, look, writer, watch, trouble))
        failed: Counter[Pair] = Counter()
        for step in steps:
            pair = shares.pair(step)
            stops.reach(step.round)
            if pair not in ready or pair in stops.pairs or failed[pair] >= GIVE_UP_AFTER:
                continue
            refuse_changed(step.configuration, files[pair[0]])
            words = measure.program(asked.wish, asked.benchmarks, programs[pair[0]])
            state = node_state()
            ran = start(step.configuration, step.layout, words, asked.wish.limit_s, False)
            states = (state, node_state())
            outcome = measure.outcome(step.configuration, step.layout, asked.benchmarks, *ran)
            writer.add_launch(
                measure.record(record.id, allocation.id, step, ran[0], outcome, states),
                outcome.measurements,
                {"stdout": ran[0].stdout, "stderr": ran[0].stderr},
            )
            failed[pair] = 0 if outcome.measurements else failed[pair] + 1
            if step.configuration.named and outcome.state is not LaunchState.OK:
                trouble.append(_trouble(step.configuration, outcome))
            watch.launched(step, outcome, ran[0].wall_s)
        writer.add_allocation(replace(allocation, ended=campaign.now()))
    if trouble:
        raise trouble[0]
    return record.id


def _natives(configuration: Configuration, machine: Machine, asked: Campaign) -> Natives:
    assert configuration.mpi is not None
    found = natives(configuration.mpi, machine.cpu.architecture, asked.wish.native_build)
    if configuration.graft is None:
        return found
    grafts.make(configuration.graft)  # its copies are among the files that launches use
    return grafts.seen(configuration.graft, found)


def _announce(
    asked: Campaign,
    programs: dict[str, Natives],
    files: dict[str, LaunchFiles],
    store: Store,
    writer: Writer,
    resume: CampaignRecord | None,
) -> CampaignRecord:
    """Write the configurations, then the campaign, before anything is started: a campaign that
    is there has all of them, whenever it was killed. Returns it. Raises UsageError when what
    would go on measuring is not what began."""
    record = resume or campaign.record(asked)
    for old in store.configurations(record.id) if resume else ():
        began = json.loads(old.provenance)
        if old.key in programs and began.get("programs") != programs[old.key].digest:
            raise UsageError(
                f"cannot resume: {old.id} was measured with other benchmark programs",
                why="old and new rounds would be mixed",
                mend="start a new campaign",
            )
        if old.key in files:
            refuse_other(old.id, began.get("files"), files[old.key])
    for configuration in asked.configurations:
        key = configuration.key
        told = provenance.provenance(configuration, programs[key].digest, files[key].recorded)
        writer.add_configuration(provenance.record(record.id, configuration, told))
    writer.add_campaign(record)
    return record


def _prove(
    asked: Campaign,
    nodes: AllocationRecord,
    refused: set[Pair],
    look: Callable[[Configuration, Layout], Evidence],
    writer: Writer,
    watch: Watch,
    trouble: list[MpigraftError],
) -> Iterator[Pair]:
    """Probe every configuration on every layout, or take the evidence of an earlier probe of
    the same contents on this boot of this host; yield the pairs that run as asked. A refusal of
    one that was named is `trouble` at the end: a job's nodes are not given back for it. Without
    its baseline a campaign says nothing, so that ends it at once."""
    for configuration in asked.configurations:
        for layout in asked.layouts:
            if not configure.reaches(configuration, layout):
                continue
            if (configuration.key, layout.key) in refused:
                continue  # refused here when it began: its rounds would lack a first half
            evidence = look(configuration, layout)
            writer.add_evidence(
                EvidenceRecord(nodes.campaign, configuration.key, layout.key, evidence, nodes.id)
            )
            watch.proved(configuration, layout, evidence)
            if evidence.ok:
                yield configuration.key, layout.key
            elif configuration.named:
                trouble.append(refusal(configuration, evidence))
                if configuration.key == asked.baseline.key:
                    raise trouble[-1]


def _trouble(configuration: Configuration, outcome: measure.Outcome) -> MpigraftError:
    """The error for a named configuration of which a launch went wrong."""
    kind = TransportMismatch if outcome.state is LaunchState.MISMATCH else LaunchFailed
    return error_of(kind, configuration.id, outcome.findings)
