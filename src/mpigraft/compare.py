"""Stored values -> Comparison: per size a ratio with its interval and a verdict.

The rules, tried on launches of a small noisy machine (docs/method.md has figures and sources):
1. One value per launch and size. Within a round a configuration is held against the geometric
   mean of the baseline's launches. Fewer than MIN_ROUNDS rounds: everything is inconclusive.
2. faster, slower: the 95 % interval of the median ratio lies outside what the machine does to
   the baseline's own pair of launches, and outside the margin.
3. equivalent: the interval lies inside the margin, which noise never widens.
4. A whole curve is called by a joint test over its sizes, since launches move all sizes at once.
All is done on logarithms, so that A over B and B over A get mirrored answers.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from mpigraft import stats, summary
from mpigraft.blocks import Held, Subject, Table, labels_of, table_of
from mpigraft.errors import MissingError, UsageError
from mpigraft.model import (
    METRICS,
    AllocationRecord,
    Better,
    CampaignRecord,
    Cell,
    CellGroup,
    Comparison,
    ConfigurationRecord,
    Finding,
    Level,
    Noise,
    Origin,
    ValueRow,
    Verdict,
)

if TYPE_CHECKING:
    from mpigraft.stats import Floats, Ints

MIN_ROUNDS = 6
CURVE_P = 0.05


def compare(
    campaign: CampaignRecord,
    configurations: Sequence[ConfigurationRecord],
    values: Sequence[ValueRow],
    *,
    baseline: str | None = None,
    margin: float = 0.03,
    allocations: Sequence[AllocationRecord] = (),
) -> Comparison:
    """Hold every configuration of a campaign against its baseline, or against `baseline`, an id
    or key or the beginning of one. `margin` is a fraction: 0.03 calls 3 % equivalent.

    With `allocations` a round that a kill split in two is still one round if it went on on the
    same host. Raises UsageError for an unknown baseline or a campaign mixed with another one,
    MissingError when there is nothing to compare.
    """
    if strange := {c.campaign for c in configurations} - {campaign.id}:
        raise UsageError(
            f"configurations of campaign {min(strange)} among those of {campaign.id}",
            why="another campaign is another time and perhaps another machine",
            mend="compare one campaign at a time",
        )
    if not values:
        raise MissingError(
            f"campaign {campaign.name} ({campaign.id[:8]}) has no value to compare",
            mend="`mpigraft results show` says how its launches ended",
        )
    labels = labels_of(configurations, values)
    table = table_of(values, {a.id: a.nodes for a in allocations})
    key, told = _baseline(baseline, campaign, labels, {row.configuration for row in values})
    pairs = _pairs(table)
    margins = _margins(pairs, margin)
    groups = []
    for subject, held in sorted(table.subjects.items()):
        limit = _limit(margins, subject.benchmark, subject.layout, margin)
        others = set(held.logs) - {key} if key in held.logs else set()
        for other in sorted(others, key=labels.__getitem__):
            pair = _Pair(subject, held, other, key, table.numbers(held), campaign)
            if pair.sizes:
                groups.append(pair.group(labels[other], margin, limit))
    noise = _noise(pairs, groups, margin, margins, campaign)
    rounds = len(table.allocation)
    findings = (
        *told,
        *table.findings,
        *summary.findings(campaign, labels, key, table, noise, MIN_ROUNDS),
    )
    said = Comparison(
        campaign.id, labels[key], campaign.origin, rounds, tuple(groups), noise, findings
    )
    return summary.told(said)


# ------------------------------------------------------------------ one configuration's curve


class _Pair:
    """One configuration and the baseline on one subject; arrays are (blocks, sizes)."""

    def __init__(
        self,
        subject: Subject,
        held: Held,
        mine: str,
        base: str,
        numbers: Ints,
        campaign: CampaignRecord,
    ) -> None:
        import numpy as np

        self.subject = subject
        self.metric = METRICS[subject.metric]
        self.seed = campaign.seed
        self.numbers = numbers
        # Imported tables were not measured side by side: nothing pairs their rounds.
        self.paired = campaign.origin is Origin.RUN
        self.mine, self.base = held.launches(mine), held.launches(base)
        self.logs = self.mine - self.base
        if self.paired:
            self.mine = np.where(np.isnan(self.logs), np.nan, self.mine)
            self.base = np.where(np.isnan(self.logs), np.nan, self.base)
        found = stats.filled(self.mine) & stats.filled(self.base)
        self.sizes = [size for size, here in zip(held.sizes, found.tolist(), strict=True) if here]
        self.mine, self.base, self.logs = (
            part[:, found] for part in (self.mine, self.base, self.logs)
        )

    def group(self, label: str, margin: float, limit: float) -> CellGroup:
        """All cells, the joint verdict, the pooled ratio. `margin` is the fixed one, `limit`
        what a winner must exceed."""
        cells = self._cells(margin, limit)
        pooled, low, high, rounds = self._pooled()
        p = stats.joint_p(self.logs, self.seed) if self.paired and rounds > 1 else None
        whole = decide(low, high, self.metric.better, rounds, margin, limit)
        subject = self.subject
        return CellGroup(
            subject.benchmark,
            subject.metric,
            self.metric.unit,
            subject.layout,
            subject.buffers,
            label,
            cells,
            curve_verdict(cells, whole, p),
            p,
            math.exp(pooled),
            _exp(low),
            _exp(high),
            crossovers(cells),
        )

    def _cells(self, margin: float, limit: float) -> tuple[Cell, ...]:
        import numpy as np

        mine, base = stats.medians(self.mine), stats.medians(self.base)
        counts = np.minimum((~np.isnan(self.mine)).sum(axis=0), (~np.isnan(self.base)).sum(axis=0))
        if self.paired:
            middles, spreads = stats.medians(self.logs), stats.deviations(self.logs)
            lows, highs = intervals(self.logs, self.numbers, self.seed)
        else:
            middles = mine - base
            spreads = lows = highs = np.full(len(self.sizes), np.nan)
        cells = []
        columns = (self.sizes, base, mine, middles, lows, highs, counts, spreads)
        for size, old, new, middle, low, high, count, spread in zip(
            *(np.asarray(column).tolist() for column in columns), strict=True
        ):
            verdict = decide(low, high, self.metric.better, count, margin, limit)
            open_still = verdict is Verdict.INCONCLUSIVE
            needed = rounds_needed(middle, spread, count, margin, limit) if open_still else None
            absolute = (math.exp(old), math.exp(new), math.exp(middle))
            cells.append(Cell(size, *absolute, _exp(low), _exp(high), verdict, count, needed))
        return tuple(cells)

    def _pooled(self) -> tuple[float, float, float, int]:
        """Log of the geometric mean over the sizes, its bounds, and in how many rounds: those
        that have every size which any round has. Sizes that lack rounds are left out of it."""
        import numpy as np

        if not self.paired:
            middles = stats.medians(self.mine) - stats.medians(self.base)
            return float(middles.mean()), math.nan, math.nan, 1
        counts = (~np.isnan(self.logs)).sum(axis=0)
        full = self.logs[:, counts == counts.max()]
        here = ~np.isnan(full).any(axis=1)
        means = full[here].mean(axis=1, keepdims=True)
        low, high = stats.interval(means, self.numbers[here], self.seed)
        return float(np.median(means)), float(low[0]), float(high[0]), int(here.sum())


def intervals(logs: Floats, numbers: Ints, seed: int) -> tuple[Floats, Floats]:
    """Bounds per column of logs with gaps: columns that lack the same rounds go together."""
    import numpy as np

    low, high = np.full((2, logs.shape[1]), np.nan)
    gaps = np.isnan(logs)
    for pattern in {tuple(column) for column in gaps.T.tolist()}:
        columns = (gaps == np.array(pattern)[:, None]).all(axis=0)
        here = ~np.array(pattern, dtype=bool)
        low[columns], high[columns] = stats.interval(
            logs[np.ix_(here, columns)], numbers[here], seed
        )
    return low, high


# ------------------------------------------------------------------ verdicts


def decide(
    low: float, high: float, better: Better, rounds: int, margin: float, limit: float
) -> Verdict:
    """The verdict on an interval of log ratios. NaN bounds (no interval) decide nothing."""
    if rounds < MIN_ROUNDS:
        return Verdict.INCONCLUSIVE
    if low > math.log1p(limit):
        return Verdict.FASTER if better is Better.HIGHER else Verdict.SLOWER
    if high < -math.log1p(limit):
        return Verdict.FASTER if better is Better.LOWER else Verdict.SLOWER
    if low >= -math.log1p(margin) and high <= math.log1p(margin):
        return Verdict.EQUIVALENT
    return Verdict.INCONCLUSIVE


def curve_verdict(cells: Sequence[Cell], whole: Verdict, p: float | None) -> Verdict:
    """What can be said of all sizes together. A winner needs the joint test, a pooled ratio
    that is outside the margin, and no size that says the opposite; equivalence needs every
    size, which makes a joint test needless."""
    said = {cell.verdict for cell in cells}
    if said == {Verdict.EQUIVALENT}:
        return Verdict.EQUIVALENT
    opposite = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
    if whole in opposite and opposite[whole] not in said and p is not None and p <= CURVE_P:
        return whole
    return Verdict.INCONCLUSIVE


def crossovers(cells: Sequence[Cell]) -> tuple[int, ...]:
    """Sizes from which the other one is better; only conclusive cells have a say."""
    called = [c for c in cells if c.verdict in (Verdict.FASTER, Verdict.SLOWER)]
    return tuple(b.size for a, b in pairwise(called) if a.verdict is not b.verdict)


def rounds_needed(
    middle: float, spread: float, rounds: int, margin: float, limit: float
) -> int | None:
    """Rounds that would decide a cell in 80 % of campaigns, if its median and spread stayed:
    as a winner beyond `limit` or as equivalent within `margin`. None between the two."""
    gap = max(abs(middle) - math.log1p(limit), math.log1p(margin) - abs(middle))
    needed = stats.rounds_for(spread, gap)
    return None if needed is None else max(needed, MIN_ROUNDS, rounds + 1)


def _baseline(
    wish: str | None, campaign: CampaignRecord, labels: dict[str, str], measured: set[str]
) -> tuple[str, tuple[Finding, ...]]:
    """The key of the baseline, and what has to be said of the choice."""
    if wish:
        names = {k: (k, i) for k, i in labels.items() if k in measured}
        hits = [k for k, both in names.items() if wish in both]
        hits = hits or [k for k, both in names.items() if any(n.startswith(wish) for n in both)]
        if len(hits) == 1:
            return hits[0], ()
        listed = ", ".join(sorted(labels[k] for k in hits or names))
        problem = "begins the names of several configurations" if hits else "has no values here"
        raise UsageError(f"baseline {wish!r} {problem}", mend=f"name one of: {listed}")
    if campaign.baseline in measured:
        return campaign.baseline, ()
    first = min(measured, key=labels.__getitem__)
    meant = labels.get(campaign.baseline, campaign.baseline[:8])
    seen = f"the campaign's baseline {meant} has no values; {labels[first]} stands in"
    why = "the two launches of the baseline in each round say how much the machine varies"
    return first, (Finding(Level.WARNING, "baseline-missing", seen, why),)


# ------------------------------------------------------------------ the A/A pair


def _pairs(table: Table) -> dict[tuple[str, str], list[tuple[Floats, Ints]]]:
    """Per benchmark and layout the log ratios of second to first launch of a round, wherever a
    configuration was launched twice, and the allocations of these rounds."""

    found: dict[tuple[str, str], list[tuple[Floats, Ints]]] = defaultdict(list)
    for subject, held in table.subjects.items():
        for first, second, *_ in held.logs.values():
            logs = second - first
            logs = logs[:, stats.filled(logs)]
            if logs.size:
                found[subject.benchmark, subject.layout].append((logs, table.numbers(held)))
    return found


def _margins(
    pairs: dict[tuple[str, str], list[tuple[Floats, Ints]]], margin: float
) -> dict[tuple[str, str], float]:
    """What a winner must exceed: `margin`, or the A/A pair's typical false ratio if greater."""
    import numpy as np

    margins = {}
    for place, found in pairs.items():
        medians = np.concatenate([stats.medians(logs) for logs, _ in found])
        margins[place] = max(margin, float(np.median(np.expm1(np.abs(medians)))))
    return margins


def _limit(
    margins: dict[tuple[str, str], float], benchmark: str, layout: str, margin: float
) -> float:
    """That of the A/A pair; where there is none, the widest of the benchmark's other pairs: the
    baseline alone is launched twice, and layouts may be compared for other configurations too."""
    others = [own for (name, _), own in margins.items() if name == benchmark]
    return margins.get((benchmark, layout), max(others, default=margin))


def _noise(
    pairs: dict[tuple[str, str], list[tuple[Floats, Ints]]],
    groups: Sequence[CellGroup],
    margin: float,
    margins: dict[tuple[str, str], float],
    campaign: CampaignRecord,
) -> tuple[Noise, ...]:
    """How far the A/A pair strays, how many of its cells would have been called, and how well
    a typical cell is known. Nothing from fewer than two rounds."""
    import numpy as np

    noise = []
    for place, found in sorted(pairs.items()):
        halves = [
            math.sqrt(c.high / c.low) - 1
            for g in groups
            if (g.benchmark, g.layout) == place
            for c in g.cells
            if c.low is not None and c.high is not None
        ]
        called = cells = 0
        for logs, numbers in found:
            lows, highs = intervals(logs, numbers, campaign.seed)
            rounds = (~np.isnan(logs)).sum(axis=0)
            halves = halves or [float(h) for h in np.expm1((highs - lows) / 2)[rounds > 1]]
            for low, high, count in zip(lows, highs, rounds, strict=True):
                verdict = decide(low, high, Better.LOWER, int(count), margin, margins[place])
                called += verdict in (Verdict.FASTER, Verdict.SLOWER)
                cells += bool(count > 1)
        if halves and cells:
            noise.append(Noise(*place, margins[place], float(np.median(halves)), called, cells))
    return tuple(noise)


def _exp(log: float) -> float | None:
    return None if math.isnan(log) else math.exp(log)
