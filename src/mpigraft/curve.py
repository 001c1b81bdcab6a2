"""One configuration held against the baseline on one subject: its cells and what they pool to."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from mpigraft import equivalence, serial, stats
from mpigraft.blocks import Arm, Subject
from mpigraft.coarseness import narrowed, resolved, steps_of
from mpigraft.decision import (
    CONCLUSIVE,
    crossovers,
    curve_verdict,
    decide,
    intervals,
    rounds_needed,
)
from mpigraft.model import (
    METRICS,
    CampaignRecord,
    Cell,
    CellGroup,
    JointBound,
    Origin,
    Verdict,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from mpigraft.stats import Ints


FLIPPED = 32  # patterns of signs by which the cells of a curve without a difference are counted


class JointTest(NamedTuple):
    """Whether all sizes together differ. None: nothing whose signs could be flipped."""

    p: float | None  # corrected for the campaign's curves
    alone: float | None  # as if this were its only one
    repeats: str = ""  # metric of the same measurement, which counts in its place


class Curve:
    """One configuration and the baseline on one subject; arrays are (blocks, sizes).

    `arms` are the one and the other, `places` the campaign's round of each
    block and its allocation.
    """

    def __init__(
        self,
        subject: Subject,
        label: str,
        sizes: Sequence[int],
        arms: tuple[Arm, Arm],
        places: tuple[Ints, Ints],
        campaign: CampaignRecord,
    ) -> None:
        import numpy as np

        self.subject, self.label = subject, label
        self.metric = METRICS[subject.metric]
        self.seed = campaign.seed
        self.rounds, self.numbers = places
        # Imported tables were not measured side by side: nothing pairs their rounds.
        self.paired = campaign.origin is Origin.RUN
        self.mine, self.base = (arm.logs for arm in arms)
        self.steps = np.array([steps_of(arm.steps) for arm in arms])
        self.logs = self.mine - self.base
        if self.paired:
            self.mine = np.where(np.isnan(self.logs), np.nan, self.mine)
            self.base = np.where(np.isnan(self.logs), np.nan, self.base)
        found = stats.filled(self.mine) & stats.filled(self.base)
        self.sizes = [size for size, here in zip(sizes, found.tolist(), strict=True) if here]
        self.mine, self.base, self.logs = (
            part[:, found] for part in (self.mine, self.base, self.logs)
        )
        self.steps = self.steps[:, found]
        self.dependence = serial.UNKNOWN
        if self.paired:
            self.dependence = serial.dependence(self.logs, self.numbers, self.seed)

    @property
    def tested(self) -> bool:
        """Whether there are rounds whose signs can be flipped."""
        return self.paired and int(self._complete().sum()) > 1

    def group(self, margin: float, limit: float, test: JointTest, level: float) -> CellGroup:
        """All cells, the joint verdict, the pooled ratio. `margin` is the fixed one, `limit`
        what a winner must exceed, `level` that of the joint test."""
        cells = self._cells(margin, limit)
        pooled, low, high, rounds = self._pooled()
        whole = decide(low, high, self.metric.better, rounds, margin, limit)
        bound = self._joint(margin) if whole is Verdict.EQUIVALENT else None
        subject, alike = self.subject, self.dependence
        return CellGroup(
            subject.benchmark,
            subject.metric,
            self.metric.unit,
            subject.layout,
            subject.buffers,
            self.label,
            cells,
            curve_verdict(cells, whole, test.p, level, bound),
            test.p,
            math.exp(pooled),
            _exp(low),
            _exp(high),
            crossovers(cells),
            curve_p_alone=test.alone,
            by_chance=self._by_chance(limit),
            repeats=test.repeats,
            joint=bound,
            autocorrelation=alike.correlation,
            effective_rounds=alike.effective,
        )

    def _joint(self, margin: float) -> JointBound:
        """Of the sizes of a curve that is equivalent when pooled, the one that may differ most."""
        bounds = equivalence.joint_bounds(self.logs, self.numbers, self.seed)
        low, high = serial.stretched(bounds, stats.medians(self.logs), self.dependence.stretch)
        off = self.steps.sum(axis=0)
        return equivalence.widest_bound((low - off, high + off), self.sizes, margin)

    def _cells(self, margin: float, limit: float) -> tuple[Cell, ...]:
        import numpy as np

        mine, base = stats.medians(self.mine), stats.medians(self.base)
        counts = np.minimum((~np.isnan(self.mine)).sum(axis=0), (~np.isnan(self.base)).sum(axis=0))
        if self.paired:
            middles, spreads = stats.medians(self.logs), stats.deviations(self.logs)
            bounds = intervals(self.logs, self.numbers, self.seed)
            lows, highs = serial.stretched(bounds, middles, self.dependence.stretch)
            spreads = spreads * self.dependence.stretch
        else:
            middles = mine - base
            spreads = lows = highs = np.full(len(self.sizes), np.nan)
        off = self.steps.sum(axis=0)
        cells = []
        columns = (self.sizes, base, mine, middles, lows - off, highs + off, counts, spreads)
        both = (*columns, off, self.steps.max(axis=0))
        for size, old, new, middle, low, high, count, spread, coarse, one in zip(
            *(np.asarray(column).tolist() for column in both), strict=True
        ):
            verdict = decide(low, high, self.metric.better, count, margin, limit)
            verdict = resolved(verdict, new - old, one)
            open_still = verdict is Verdict.INCONCLUSIVE
            edges = narrowed(margin, limit, coarse)
            needed = rounds_needed(middle, spread, count, *edges) if open_still else None
            absolute = (math.exp(old), math.exp(new), math.exp(middle))
            cells.append(Cell(size, *absolute, _exp(low), _exp(high), verdict, count, needed))
        return tuple(cells)

    def _by_chance(self, limit: float) -> float:
        """How many cells would be faster or slower, were there no difference: what is left of
        each size without its mean, with the signs of whole rounds drawn at random, judged as
        the values themselves. The mean over FLIPPED drawings. Allocations are not told apart."""
        import numpy as np

        if not self.paired:
            return 0.0
        counts = (~np.isnan(self.logs)).sum(axis=0)
        rest = self.logs - np.nansum(self.logs, axis=0) / counts
        drawn = np.random.default_rng(self.seed).choice((-1.0, 1.0), (FLIPPED, len(rest)))
        flipped = np.concatenate([signs[:, None] * rest for signs in drawn], axis=1)
        lows, highs = intervals(flipped, np.zeros_like(self.numbers), self.seed)
        off = np.tile(self.steps.sum(axis=0), FLIPPED)
        columns = (lows - off, highs + off, np.tile(counts, FLIPPED))
        verdicts = [
            decide(low, high, self.metric.better, count, limit, limit)
            for low, high, count in zip(*(c.tolist() for c in columns), strict=True)
        ]
        return sum(verdict in CONCLUSIVE for verdict in verdicts) / FLIPPED

    def _pooled(self) -> tuple[float, float, float, int]:
        """Log of the geometric mean over the sizes, its bounds, and in how many rounds: those
        that have every size which any round has. Sizes that lack rounds are left out of it."""
        import numpy as np

        if not self.paired:
            middles = stats.medians(self.mine) - stats.medians(self.base)
            return float(middles.mean()), math.nan, math.nan, 1
        here = self._complete()
        if not here.any():
            return float(stats.medians(self.logs).mean()), math.nan, math.nan, 0
        means = self.logs[np.ix_(here, self._common())].mean(axis=1, keepdims=True)
        middle = np.median(means, axis=0)
        bounds = stats.interval(means, self.numbers[here], self.seed)
        low, high = serial.stretched(bounds, middle, self.dependence.stretch)
        off = float(self.steps.sum(axis=0)[self._common()].mean())
        return float(middle[0]), float(low[0]) - off, float(high[0]) + off, int(here.sum())

    def _common(self) -> NDArray[np.bool_]:
        """Which sizes have every round that any size has."""
        import numpy as np

        counts = (~np.isnan(self.logs)).sum(axis=0)
        common: NDArray[np.bool_] = np.equal(counts, counts.max())
        return common

    def _complete(self) -> NDArray[np.bool_]:
        """Which rounds have all of those sizes."""
        import numpy as np

        complete: NDArray[np.bool_] = np.all(~np.isnan(self.logs[:, self._common()]), axis=1)
        return complete


def _exp(log: float) -> float | None:
    return None if math.isnan(log) else math.exp(log)
