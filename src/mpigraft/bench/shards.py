"""What is left of a campaign: for one of several jobs, after a time limit, on other nodes.

A round is a comparison on one set of nodes. One that began elsewhere and did not end there is
measured again as a whole: its other half would have no partner. On the same nodes it goes on.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mpigraft.bench.measurement import place
from mpigraft.bench.schedule.campaign import Step
from mpigraft.core.model import AllocationRecord, EvidenceRecord, LaunchRecord, LaunchState, Shard
from mpigraft.store import Store

GIVE_UP_AFTER = 2  # launches in a row without a value: the configuration is not started again

Pair = tuple[str, str]  # keys of configuration and layout
Work = tuple[str, str, str]  # the same, and the program that a launch starts (Step.program)
Place = tuple[int, str, str, int, str]  # Step.place


class Made(NamedTuple):
    """What the store has of a campaign when a job begins."""

    launches: Sequence[LaunchRecord]
    evidence: Sequence[EvidenceRecord]
    allocations: Sequence[AllocationRecord]


def read_made(store: Store, campaign: str) -> Made:
    evidence = store.evidence(campaign, every=True)
    return Made(store.launches(campaign), evidence, store.allocations(campaign))


def pending_steps(
    steps: Sequence[Step],
    share: Shard,
    made: Made,
    here: str,
    ended: Mapping[Pair, int] | None = None,
) -> tuple[Step, ...]:
    """Return the steps of `share` that are still to be done on the nodes `here`
    (AllocationRecord.nodes).

    A round is done where, on one set of nodes, every launch was made but those of pairs that had
    been refused, and of programs that had been given up there.
    """
    nodes = {a.id: a.nodes for a in made.allocations}
    launches: dict[str, list[LaunchRecord]] = defaultdict(list)
    for launch in made.launches:
        launches[nodes.get(launch.allocation, "")].append(launch)
    out: dict[str, set[Work | Pair]] = {
        where: {*abandoned_programs(r)} for where, r in launches.items()
    }
    for record in made.evidence:
        if not record.evidence.ok and (where := nodes.get(record.allocation, "")) in out:
            out[where].add((record.configuration, record.layout))
    places = {where: {place(launch) for launch in rows} for where, rows in launches.items()}
    ended = ended or {}
    due = [s for s in steps if share.has(s.round) and s.round < ended.get(arm_key(s), s.round + 1)]
    done = _done(due, places, out)
    return tuple(
        step
        for step in steps
        if share.has(step.round)
        and step.round not in done
        and step.place not in places.get(here, ())
    )


def _done(
    steps: Sequence[Step],
    places: Mapping[str, set[Place]],
    out: Mapping[str, set[Work | Pair]],
) -> set[int]:
    rounds: dict[int, list[Step]] = defaultdict(list)
    for step in steps:
        rounds[step.round].append(step)
    return {
        number
        for number, of_round in rounds.items()
        for where, covered in places.items()
        if any(step.place in covered for step in of_round)
        and all(
            step.place in covered or not out[where].isdisjoint((arm_key(step), program_key(step)))
            for step in of_round
        )
    }


def arm_key(step: Step) -> Pair:
    return (step.configuration.key, step.layout.key)


def program_key(step: Step) -> Work:
    return (*arm_key(step), step.program)


def abandoned_programs(launches: Iterable[LaunchRecord]) -> set[Work]:
    """Return programs of a pair whose last launches of those, GIVE_UP_AFTER of them, did not end
    well."""
    ends: dict[Work, list[bool]] = defaultdict(list)
    for launch in launches:
        place = (launch.configuration, launch.layout, launch.program)
        ends[place].append(launch.state is LaunchState.OK)
    return {
        key
        for key, well in ends.items()
        if len(well) >= GIVE_UP_AFTER and not any(well[-GIVE_UP_AFTER:])
    }


def refused_arms(made: Made, here: str) -> set[Pair]:
    """List pairs that were refused on the nodes `here`, or by a version that kept no nodes."""
    nodes = {a.id: a.nodes for a in made.allocations}
    return {
        (e.configuration, e.layout)
        for e in made.evidence
        if not e.evidence.ok and nodes.get(e.allocation, here) == here
    }
