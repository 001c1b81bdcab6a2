"""Which launches of a campaign are made no more, because a look has called all their curves.

A configuration ends where every curve of it is called, layout by layout; the baseline and its
second launch go on there as long as any other does. What is decided follows from the stored values
of the look's rounds alone, so that every job of a campaign, and one that goes on after a kill,
decides the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial

from mpigraft import disturbance, looks, pairs, shares
from mpigraft.blocks import labels_of
from mpigraft.campaign import Step
from mpigraft.compare import MARGIN, compare
from mpigraft.model import (
    AllocationRecord,
    CampaignRecord,
    CellGroup,
    LaunchRecord,
    Look,
    Share,
)
from mpigraft.shares import Pair
from mpigraft.store import Store


class Stops:
    """The pairs of configuration and layout that a campaign has ended with, `pairs`."""

    def __init__(
        self,
        campaign: CampaignRecord,
        store: Store,
        share: Share,
        hear: Callable[[Look, int, int], None],
    ) -> None:
        """`hear` is called with each look that is taken, how many curves are open after it, and
        how many launches this job still makes."""
        self.pairs: frozenset[Pair] = frozenset()
        self._steps: tuple[Step, ...] = ()
        self._campaign, self._store, self._share, self._hear = campaign, store, share, hear
        planned = looks.looks_of(campaign)
        self._due = list(planned[:-1]) if len(planned) > 1 and not planned[1].extension else []

    def ended(self) -> dict[Pair, int]:
        """After how many rounds looks that can be taken of what is stored end a pair."""
        launches = self._store.launches(self._campaign.id)
        allocations = self._store.allocations(self._campaign.id)
        over = looks.rounds_over(launches, allocations)
        found: dict[Pair, int] = {}
        for look in looks.taken(self._due, over):
            groups = _groups(self._campaign, self._store, look)
            launched = _launched(launches, allocations, look)
            for pair in decided(self._campaign.baseline, groups, launched)[0]:
                found.setdefault(pair, look.rounds)
        return found

    def left(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Of the steps that this job has to do, those that the looks until now leave to be made."""
        self._steps = steps
        if steps:
            self.reach(steps[0].round)
        return tuple(step for step in steps if shares.pair(step) not in self.pairs)

    def reach(self, round_: int) -> None:
        """Take the looks that are due before `round_`, when all of this job's share of the rounds
        before it are made. A look whose rounds another job is still at is taken later."""
        while self._due and self._due[0].rounds <= round_:
            own = {n for n in range(round_) if self._share.has(n)}
            allocations = self._store.allocations(self._campaign.id)
            launches = self._store.launches(self._campaign.id)
            others = looks.rounds_over(launches, allocations)
            if not looks.taken(self._due[:1], own | others):
                return
            look = self._due.pop(0)
            groups = _groups(self._campaign, self._store, look)
            if not groups:
                continue
            launched = _launched(launches, allocations, look)
            ended, still_open = decided(self._campaign.baseline, groups, launched)
            self.pairs |= ended
            left = [
                s for s in self._steps if s.round >= round_ and shares.pair(s) not in self.pairs
            ]
            self._hear(look, still_open, len(left))
            if not still_open:
                self._due.clear()


def _groups(campaign: CampaignRecord, store: Store, look: Look) -> list[tuple[Pair, CellGroup]]:
    """Every curve of the rounds of a look, and whose it is; none where there are no values."""
    configurations = store.configurations(campaign.id)
    every = store.values(campaign.id)
    values = [row for row in every if row.round < look.rounds and not pairs.is_link(row)]
    if not values:
        return []
    allocations = store.allocations(campaign.id)
    launches = [x for x in store.launches(campaign.id) if x.round < look.rounds]
    labels = labels_of(configurations, values)
    found = disturbance.judged(
        partial(
            compare,
            campaign,
            configurations,
            allocations=allocations,
            launches=launches,
            over=range(look.rounds),
        ),
        values,
        disturbance.undisturbed(values, launches),
        labels,
        MARGIN,
    )
    keys = {label: key for key, label in labels.items()}
    return [((keys[g.configuration], g.layout), g) for g in found.groups]


def _launched(
    launches: Sequence[LaunchRecord], allocations: Sequence[AllocationRecord], look: Look
) -> set[Pair]:
    """Pairs that a share of the rounds still launched in its last round before the look."""
    share = {a.id: a.share for a in allocations}
    before = [(share.get(x.allocation, ""), x) for x in launches if x.round < look.rounds]
    last: dict[str, int] = {}
    for of, launch in before:
        last[of] = max(last.get(of, 0), launch.round)
    return {(x.configuration, x.layout) for of, x in before if x.round == last[of]}


def decided(
    baseline: str, groups: Iterable[tuple[Pair, CellGroup]], launched: Collection[Pair]
) -> tuple[frozenset[Pair], int]:
    """Pairs of which every curve is called, the `baseline` among them on layouts where nothing is
    open, and how many curves are open: not called, or withheld for noise. What is not `launched`
    any more, since it failed, keeps nothing open."""
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
