"""Compare one configuration with the baseline in one series: cells, and all of them pooled."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mpigraft.analysis import equivalence
from mpigraft.analysis.curve_comparison import Columns, JudgedCurve, Pooled
from mpigraft.analysis.grouping import Arm
from mpigraft.analysis.statistics import bootstrap, serial
from mpigraft.analysis.statistics.coarseness import steps_of
from mpigraft.analysis.verdict_rules import CONCLUSIVE, decide, intervals
from mpigraft.core.arrays import Bools, Ints, np
from mpigraft.core.model import (
    METRICS,
    CampaignRecord,
    JointBound,
    Origin,
    SeriesKey,
)

FLIPPED = 32  # sign patterns to count the cells that chance would call


class PairedCurve(JudgedCurve):
    """One configuration and the baseline in one series; arrays are (blocks, sizes).

    `arms` are the configuration's and the baseline's, `blocks` the number of each block's round
    and of its allocation.
    """

    def __init__(
        self,
        key: SeriesKey,
        label: str,
        sizes: Sequence[int],
        arms: tuple[Arm, Arm],
        blocks: tuple[Ints, Ints],
        campaign: CampaignRecord,
    ) -> None:
        self.key, self.label = key, label
        self.metric = METRICS[key.metric]
        self.seed = campaign.seed
        self.rounds, self.allocations = blocks
        # Imported tables were not measured side by side: nothing pairs their rounds.
        self.alternated = campaign.origin is Origin.RUN
        self.candidate, self.baseline = (arm.logs for arm in arms)
        self.steps = np.array([steps_of(arm.steps) for arm in arms])
        self.logs = self.candidate - self.baseline
        if self.alternated:
            self.candidate = np.where(np.isnan(self.logs), np.nan, self.candidate)
            self.baseline = np.where(np.isnan(self.logs), np.nan, self.baseline)
        common = bootstrap.filled(self.candidate) & bootstrap.filled(self.baseline)
        self.sizes = [size for size, both in zip(sizes, common.tolist(), strict=True) if both]
        self.candidate, self.baseline, self.logs = (
            part[:, common] for part in (self.candidate, self.baseline, self.logs)
        )
        self.steps = self.steps[:, common]
        self.dependence = serial.UNKNOWN
        if self.alternated:
            self.dependence = serial.dependence(self.logs, self.allocations, self.seed)

    @property
    def tested(self) -> bool:
        """Whether there are rounds whose signs can be flipped."""
        return self.alternated and int(self._complete().sum()) > 1

    def _joint_bound(self, margin: float) -> JointBound:
        """Bound the size that may differ most in a curve that is equivalent when pooled."""
        bounds = equivalence.joint_bounds(self.logs, self.allocations, self.seed)
        low, high = serial.stretched(bounds, bootstrap.medians(self.logs), self.dependence.stretch)
        off = self.steps.sum(axis=0)
        return equivalence.widest_bound((low - off, high + off), self.sizes, margin)

    def _columns(self) -> Columns:
        candidate, baseline = bootstrap.medians(self.candidate), bootstrap.medians(self.baseline)
        counts = np.minimum(
            (~np.isnan(self.candidate)).sum(axis=0), (~np.isnan(self.baseline)).sum(axis=0)
        )
        if self.alternated:
            middles, spreads = bootstrap.medians(self.logs), bootstrap.deviations(self.logs)
            bounds = intervals(self.logs, self.allocations, self.seed)
            lows, highs = serial.stretched(bounds, middles, self.dependence.stretch)
            spreads = spreads * self.dependence.stretch
        else:
            middles = candidate - baseline
            spreads = lows = highs = np.full(len(self.sizes), np.nan)
        off, widest = self.steps.sum(axis=0), self.steps.max(axis=0)
        return Columns(
            old=baseline,
            new=candidate,
            middle=middles,
            low=lows,
            high=highs,
            rounds=counts,
            spread=spreads,
            coarse=off,
            widest=widest,
        )

    def _by_chance(self, limit: float) -> float:
        """Count the cells that would be faster or slower if there were no difference: each size
        without its mean, with the signs of whole rounds drawn at random, is judged as the values
        are. The mean over FLIPPED drawings; all rounds count as of one allocation."""
        if not self.alternated:
            return 0.0
        counts = (~np.isnan(self.logs)).sum(axis=0)
        residuals = self.logs - np.nansum(self.logs, axis=0) / counts
        drawn = np.random.default_rng(self.seed).choice((-1.0, 1.0), (FLIPPED, len(residuals)))
        flipped = np.concatenate([signs[:, None] * residuals for signs in drawn], axis=1)
        lows, highs = intervals(flipped, np.zeros_like(self.allocations), self.seed)
        off = np.tile(self.steps.sum(axis=0), FLIPPED)
        columns = (lows - off, highs + off, np.tile(counts, FLIPPED))
        verdicts = [
            decide(low, high, self.metric.better, count, limit, limit)
            for low, high, count in zip(*(c.tolist() for c in columns), strict=True)
        ]
        return sum(verdict in CONCLUSIVE for verdict in verdicts) / FLIPPED

    def _pooled(self) -> Pooled:
        """Pool the sizes. Those that lack rounds are left out, and then rounds that lack sizes."""
        if not self.alternated:
            middles = bootstrap.medians(self.candidate) - bootstrap.medians(self.baseline)
            return Pooled(float(middles.mean()), math.nan, math.nan, 1, tuple(self.sizes))
        complete = self._complete()
        if not complete.any():
            middle = float(bootstrap.medians(self.logs).mean())
            return Pooled(middle, math.nan, math.nan, 0, tuple(self.sizes))
        means = self.logs[np.ix_(complete, self._common())].mean(axis=1, keepdims=True)
        middle = np.median(means, axis=0)
        bounds = bootstrap.interval(means, self.allocations[complete], self.seed)
        low, high = serial.stretched(bounds, middle, self.dependence.stretch)
        off = float(self.steps.sum(axis=0)[self._common()].mean())
        sizes = tuple(size for size, used in zip(self.sizes, self._common(), strict=True) if used)
        ends = float(low[0]) - off, float(high[0]) + off
        return Pooled(float(middle[0]), *ends, int(complete.sum()), sizes)

    def _common(self) -> Bools:
        """Mark the sizes that have every round which any size has."""
        counts = (~np.isnan(self.logs)).sum(axis=0)
        common: Bools = np.equal(counts, counts.max())
        return common

    def _complete(self) -> Bools:
        """Mark the rounds that have all of those sizes."""
        complete: Bools = np.all(~np.isnan(self.logs[:, self._common()]), axis=1)
        return complete
