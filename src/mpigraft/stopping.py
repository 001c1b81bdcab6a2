"""Which launches of a campaign are made no more, because a look has called all their curves.

A configuration ends where every curve of it is called, layout by layout; the baseline and its
second launch go on there as long as any other does. What is decided follows from the stored values
of the look's rounds alone, so that every job of a campaign, and one that goes on after a kill,
decides the same.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection

from mpigraft import looks, pairs, shares
from mpigraft.blocks import labels_of
from mpigraft.campaign import Step
from mpigraft.compare import compare
from mpigraft.errors import MissingError
from mpigraft.model import CampaignRecord, CellGroup, Look, Share
from mpigraft.shares import Pair
from mpigraft.store import Store


class Stops:
    """The pairs of configuration and layout that a campaign has ended with, `pairs`."""

    def __init__(
        self,
        campaign: CampaignRecord,
        store: Store,
        share: Share,
        hear: Callable[[Look, int], None],
    ) -> None:
        """`hear` is called with each look that is taken, and how many curves are open after it."""
        self.pairs: frozenset[Pair] = frozenset()
        self._campaign, self._store, self._share, self._hear = campaign, store, share, hear
        planned = looks.looks_of(campaign)
        self._due = list(planned[:-1]) if len(planned) > 1 and not planned[1].extension else []

    def left(self, steps: tuple[Step, ...]) -> tuple[Step, ...]:
        """Of the steps that this job has to do, those that the looks until now leave to be made."""
        if steps:
            self.reach(steps[0].round)
        return tuple(step for step in steps if shares.pair(step) not in self.pairs)

    def reach(self, round_: int) -> None:
        """Take the looks that are due before `round_`, when all of this job's share of the rounds
        before it are made. A look whose rounds another job is still at is taken later."""
        while self._due and self._due[0].rounds <= round_:
            own = {n for n in range(round_) if self._share.has(n)}
            allocations = self._store.allocations(self._campaign.id)
            others = looks.rounds_over(self._store.launches(self._campaign.id), allocations)
            if not looks.taken(self._due[:1], own | others):
                return
            look = self._due.pop(0)
            called, still_open = _called(self._campaign, self._store, look)
            self.pairs |= called
            self._hear(look, still_open)
            if not still_open:
                self._due.clear()


def _called(campaign: CampaignRecord, store: Store, look: Look) -> tuple[frozenset[Pair], int]:
    """Pairs of which every curve is called by the looks up to this one, and how many curves are
    not. Nothing is called where there are no values."""
    configurations = store.configurations(campaign.id)
    values = [
        row
        for row in store.values(campaign.id)
        if row.round < look.rounds and not pairs.is_link(row)
    ]
    try:
        found = compare(
            campaign,
            configurations,
            values,
            allocations=store.allocations(campaign.id),
            over=range(look.rounds),
        )
    except MissingError:
        return frozenset(), 0
    keys = {label: key for key, label in labels_of(configurations, values).items()}
    return _decided(campaign.baseline, keys, found.groups)


def _decided(
    baseline: str, keys: dict[str, str], groups: Collection[CellGroup]
) -> tuple[frozenset[Pair], int]:
    curves: dict[Pair, list[bool]] = defaultdict(list)
    for group in groups:
        called = group.look is not None
        curves[keys[group.configuration], group.layout].append(called)
        curves[baseline, group.layout].append(called)
    ended = frozenset(pair for pair, called in curves.items() if all(called))
    return ended, sum(group.look is None for group in groups)
