"""Compare one configuration of two campaigns in one series: cells, and all of them pooled.

The words and rules of a verdict are those within a campaign (`analysis.verdict_rules`); the
interval and the joint test are those of rounds that nothing pairs (`shift`, `permutation`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from mpigraft.analysis import equivalence
from mpigraft.analysis.between_campaigns import shift
from mpigraft.analysis.between_campaigns.permutation import Arms
from mpigraft.analysis.curve_comparison import Columns, JudgedCurve, Pooled
from mpigraft.analysis.grouping import Arm
from mpigraft.analysis.statistics import bootstrap, serial
from mpigraft.analysis.statistics.coarseness import steps_of
from mpigraft.analysis.verdict_rules import MIN_ROUNDS
from mpigraft.core.arrays import Bools, Floats, Ints, np
from mpigraft.core.model import METRICS, JointBound, SeriesKey

DEALT = 32  # deals to count the cells that chance would call


class Side(NamedTuple):
    """A curve in one campaign: its values, the number of each round, and of its allocation."""

    arm: Arm
    rounds: Ints
    allocations: Ints


class UnpairedCurve(JudgedCurve):
    """One configuration in one series of the new and of the old campaign."""

    def __init__(
        self, key: SeriesKey, label: str, sizes: Sequence[int], sides: tuple[Side, Side], seed: int
    ) -> None:
        self.key, self.label, self.seed = key, label, seed
        self.metric = METRICS[key.metric]
        logs = [side.arm.logs for side in sides]
        common = bootstrap.filled(logs[0]) & bootstrap.filled(logs[1])
        self.sizes = [size for size, both in zip(sizes, common.tolist(), strict=True) if both]
        used = [bool_rows(part[:, common]) for part in logs]
        self.new, self.old = (part[rows][:, common] for part, rows in zip(logs, used, strict=True))
        self.rounds = sides[0].rounds[used[0]], sides[1].rounds[used[1]]
        self.allocations = sides[0].allocations[used[0]], sides[1].allocations[used[1]]
        steps = np.array([steps_of(side.arm.steps)[common] for side in sides])
        self.off, self.widest = steps.sum(axis=0), steps.max(axis=0)
        self.dependence = serial.UNKNOWN
        if self.sizes:
            both = np.concatenate([self.new, self.old])
            places = np.concatenate([self.allocations[0] * 2, self.allocations[1] * 2 + 1])
            self.dependence = serial.dependence(both, places, seed)

    @property
    def arms(self) -> Arms | None:
        """The rounds that can be dealt anew, by the sizes that they all have; None: too few."""
        parts = self._complete()
        if parts is None or min(map(len, parts[:2])) < 2:
            return None
        new, old, rows = parts
        return Arms(new, old, rows)

    def _joint_bound(self, margin: float) -> JointBound:
        """Bound the size that may differ most in a curve that is equivalent when pooled."""
        bounds = shift.joint_bounds(self.new, self.old, self.seed)
        low, high = serial.stretched(bounds, self._middles(), self.dependence.stretch)
        return equivalence.widest_bound((low - self.off, high + self.off), self.sizes, margin)

    def _middles(self) -> Floats:
        return bootstrap.medians(self.new) - bootstrap.medians(self.old)

    def _columns(self) -> Columns:
        middles, stretch = self._middles(), self.dependence.stretch
        counts = np.minimum(*((~np.isnan(part)).sum(axis=0) for part in (self.new, self.old)))
        bounds = shift.intervals(self.new, self.old, self.allocations, self.seed)
        lows, highs = serial.stretched(bounds, middles, stretch)
        spreads = np.sqrt(bootstrap.deviations(self.new) ** 2 + bootstrap.deviations(self.old) ** 2)
        old, new = bootstrap.medians(self.old), bootstrap.medians(self.new)
        spreads = spreads * stretch  # what it gives are rounds of each of the two campaigns
        return Columns(
            old=old,
            new=new,
            middle=middles,
            low=lows,
            high=highs,
            rounds=counts,
            spread=spreads,
            coarse=self.off,
            widest=self.widest,
        )

    def _by_chance(self, winner: float) -> float:
        """Count the cells that would be faster or slower if nothing had changed: the rounds of both
        campaigns, each less its own campaign's mean, are dealt anew and judged as the values are.
        The mean over DEALT deals; all rounds count as of one allocation."""
        arms = self.arms
        if arms is None or min(map(len, arms[:2])) < MIN_ROUNDS:
            return 0.0
        centred = np.concatenate([arm - arm.mean(axis=0) for arm in arms[:2]])
        rng = np.random.default_rng(self.seed)
        orders = rng.permuted(np.tile(np.arange(len(centred)), (DEALT, 1)), axis=1)
        dealt = np.concatenate([centred[order] for order in orders], axis=1)
        new, old = dealt[: len(arms.new)], dealt[len(arms.new) :]
        places = np.zeros(len(new), dtype=np.int64), np.zeros(len(old), dtype=np.int64)
        lows, highs = shift.intervals(new, old, places, self.seed)
        limit = math.log1p(winner)
        return float(((lows > limit) | (highs < -limit)).sum()) / DEALT

    def _pooled(self) -> Pooled:
        """Pool the sizes; the rounds are those of the campaign that has fewer."""
        parts = self._complete()
        if parts is None:
            return Pooled(float(self._middles().mean()), math.nan, math.nan, 0, tuple(self.sizes))
        new, old = (part.mean(axis=1, keepdims=True) for part in parts[:2])
        marked = [np.isin(all_, some) for all_, some in zip(self.rounds, parts[2], strict=True)]
        places = self.allocations[0][marked[0]], self.allocations[1][marked[1]]
        middle = np.median(new, axis=0) - np.median(old, axis=0)
        bounds = shift.intervals(new, old, places, self.seed)
        low, high = serial.stretched(bounds, middle, self.dependence.stretch)
        off = float(np.mean(self.off))
        rounds = min(len(new), len(old))
        common = self._common()
        sizes = tuple(size for size, used in zip(self.sizes, common, strict=True) if used)
        return Pooled(float(middle[0]), float(low[0]) - off, float(high[0]) + off, rounds, sizes)

    def _common(self) -> Bools:
        """Mark the sizes that have every round of both campaigns."""
        common: Bools = shift.complete_rounds(self.new)[0] & shift.complete_rounds(self.old)[0]
        return common

    def _complete(self) -> tuple[Floats, Floats, tuple[Ints, Ints]] | None:
        """Return the sizes that have every round of both campaigns, and the rounds that have all of
        these; None where there are none."""
        sizes = self._common()
        rows = [np.all(~np.isnan(arm[:, sizes]), axis=1) for arm in (self.new, self.old)]
        if not sizes.any() or not all(row.any() for row in rows):
            return None
        numbers = self.rounds[0][rows[0]], self.rounds[1][rows[1]]
        return self.new[np.ix_(rows[0], sizes)], self.old[np.ix_(rows[1], sizes)], numbers


def bool_rows(logs: Floats) -> Ints:
    """Give the numbers of the rounds that have any value."""
    rows: Ints = np.flatnonzero(~np.isnan(logs).all(axis=1))
    return rows
