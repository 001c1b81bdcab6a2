"""End launches of a campaign early, once a look has called all their curves.

A configuration ends on a layout when every curve of it there is called; the baseline and its second
launch go on as long as any other does. The decision depends only on the stored values of the look's
rounds, so every job of a campaign, and one that is resumed after a kill, decides the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence

from mpigraft.analysis import (
    campaign_looks,
    is_link,
    judge_campaign,
    labels_of,
    looks_taken,
    rounds_over,
)
from mpigraft.bench import shards
from mpigraft.bench.schedule.campaign import Step
from mpigraft.bench.shards import Pair
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    CellGroup,
    LaunchRecord,
    Look,
    Measured,
    Shard,
)
from mpigraft.store import Store


class Stops:
    """The pairs of configuration and layout that have ended, in `pairs`."""

    def __init__(
        self,
        campaign: CampaignRecord,
        store: Store,
        share: Shard,
        report: Callable[[Look, int, int], None],
    ) -> None:
        """Plan the looks. `report` is called with each look that is taken, the number of curves
        without a verdict after it, and the number of launches that this job still makes."""
        self.pairs: frozenset[Pair] = frozenset()
        self._steps: tuple[Step, ...] = ()
        self._campaign, self._store, self._share, self._report = campaign, store, share, report
        planned = campaign_looks(campaign)
        self._due = list(planned[:-1]) if len(planned) > 1 and not planned[1].extension else []

    def ended(self) -> dict[Pair, int]:
        """Find the rounds after which pairs end, by the looks that stored values allow."""
        launches = self._store.launches(self._campaign.id)
        allocations = self._store.allocations(self._campaign.id)
        over = rounds_over(launches, allocations)
        rounds: dict[Pair, int] = {}
        for look in looks_taken(self._due, over):
            groups = _groups(self._campaign, self._store, look)
            launched = _launched(launches, allocations, look)
            for pair in decide_ends(self._campaign.baseline, groups, launched)[0]:
                rounds.setdefault(pair, look.rounds)
        return rounds

    def remaining_steps(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Select, of this job's steps, those that the looks taken until now do not end."""
        self._steps = steps
        if steps:
            self.take_looks(steps[0].round)
        return tuple(step for step in steps if shards.arm_key(step) not in self.pairs)

    def take_looks(self, before: int) -> None:
        """Take the looks that are due before a round, once this job has made its share of the
        rounds before it. A look is taken later if another job is still making its rounds."""
        while self._due and self._due[0].rounds <= before:
            own = {n for n in range(before) if self._share.has(n)}
            allocations = self._store.allocations(self._campaign.id)
            launches = self._store.launches(self._campaign.id)
            others = rounds_over(launches, allocations)
            if not looks_taken(self._due[:1], own | others):
                return
            look = self._due.pop(0)
            groups = _groups(self._campaign, self._store, look)
            if not groups:
                continue
            launched = _launched(launches, allocations, look)
            ended, still_open = decide_ends(self._campaign.baseline, groups, launched)
            self.pairs |= ended
            remaining = [
                s for s in self._steps if s.round >= before and shards.arm_key(s) not in self.pairs
            ]
            self._report(look, still_open, len(remaining))
            if not still_open:
                self._due.clear()


def _groups(campaign: CampaignRecord, store: Store, look: Look) -> list[tuple[Pair, CellGroup]]:
    """Judge every curve of the rounds of a look, with its pair; none where there are no values."""
    configurations = store.configurations(campaign.id)
    every = store.values(campaign.id)
    values = [row for row in every if row.round < look.rounds and not is_link(row)]
    if not values:
        return []
    side = Measured(
        campaign,
        tuple(configurations),
        tuple(store.allocations(campaign.id)),
        tuple(x for x in store.launches(campaign.id) if x.round < look.rounds),
        tuple(values),
    )
    comparison = judge_campaign(side, over=range(look.rounds))
    keys = {label: key for key, label in labels_of(configurations, values).items()}
    return [((keys[g.configuration], g.layout), g) for g in comparison.groups]


def _launched(
    launches: Sequence[LaunchRecord], allocations: Sequence[AllocationRecord], look: Look
) -> set[Pair]:
    """Find the pairs that any share still launched in its last round before the look."""
    shares = {a.id: a.share for a in allocations}
    before = [(shares.get(x.allocation, ""), x) for x in launches if x.round < look.rounds]
    last: dict[str, int] = {}
    for share, launch in before:
        last[share] = max(last.get(share, 0), launch.round)
    return {(x.configuration, x.layout) for share, x in before if x.round == last[share]}


def decide_ends(
    baseline: str, groups: Iterable[tuple[Pair, CellGroup]], launched: Collection[Pair]
) -> tuple[frozenset[Pair], int]:
    """Find the pairs whose curves are all called, and count the open curves: not called, or
    withheld for noise. The `baseline` ends on layouts where no curve is open. A pair that is not
    `launched` any more, because it failed, keeps no curve open."""
    curves: dict[Pair, list[bool]] = defaultdict(list)
    still_open = 0
    for pair, group in groups:
        if group.repeats:
            continue
        is_open = (group.look is None or bool(group.withheld)) and pair in launched
        still_open += is_open
        curves[pair].append(is_open)
        curves[baseline, pair[1]].append(is_open)
    return frozenset(pair for pair, is_open in curves.items() if not any(is_open)), still_open
