"""Measure the machine's noise by the baseline's two launches of each round: the control."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

from mpigraft.analysis.grouping import SeriesTable
from mpigraft.analysis.multiplicity import repeated_metric
from mpigraft.analysis.statistics import bootstrap
from mpigraft.analysis.verdict_rules import CONCLUSIVE, decide, intervals
from mpigraft.core.arrays import Floats, Ints, np
from mpigraft.core.model import Better, CampaignRecord, CellGroup, Noise, SeriesKey, layout_order

Pairs = dict[tuple[str, str], list[tuple[Floats, Ints]]]  # by benchmark and layout


def pairs_of(table: SeriesTable) -> Pairs:
    """List, per benchmark and layout, the log ratios of the second to the first launch of a round,
    and the allocations of these rounds. Two metrics of one measurement count once."""
    pairs: Pairs = defaultdict(list)
    for key, series in table.series.items():
        if repeated_metric(key, table.series):
            continue
        for first, second, *_ in series.logs.values():
            logs = second - first
            logs = logs[:, bootstrap.filled(logs)]
            if logs.size:
                pairs[key.benchmark, key.layout].append((logs, table.allocations_of(series)))
    return pairs


def margins_of(pairs: Pairs, margin: float) -> dict[tuple[str, str], float]:
    """Find what a winner must exceed: `margin`, or the typical ratio of the control if greater."""
    margins = {}
    for key, ratios in pairs.items():
        medians = np.concatenate([bootstrap.medians(logs) for logs, _ in ratios])
        margins[key] = max(margin, float(np.median(np.expm1(np.abs(medians)))))
    return margins


def limit_of(margins: dict[tuple[str, str], float], key: SeriesKey, margin: float) -> float:
    """Find what a winner of a series must exceed: the margin of its control; else the widest of
    the benchmark's other pairs, because only the baseline is launched twice, and layouts may be
    compared for other configurations too."""
    others = [limit for (benchmark, _), limit in margins.items() if benchmark == key.benchmark]
    return margins.get((key.benchmark, key.layout), max(others, default=margin))


def noise_of(
    table: SeriesTable, groups: Sequence[CellGroup], margin: float, campaign: CampaignRecord
) -> tuple[Noise, ...]:
    """Measure how far the control differs, how many of its cells would have been called, and how
    wide a typical cell's interval is. Nothing from fewer than two rounds."""
    pairs = pairs_of(table)
    margins = margins_of(pairs, margin)
    noise = []
    for key, ratios in sorted(
        pairs.items(), key=lambda item: (item[0][0], layout_order(item[0][1]))
    ):
        halves = [
            math.sqrt(c.high / c.low) - 1
            for g in groups
            if (g.benchmark, g.layout) == key and not g.repeats
            for c in g.cells
            if c.low is not None and c.high is not None
        ]
        called = cells = 0
        for logs, allocations in ratios:
            lows, highs = intervals(logs, allocations, campaign.seed)
            rounds = (~np.isnan(logs)).sum(axis=0)
            halves = halves or [float(h) for h in np.expm1((highs - lows) / 2)[rounds > 1]]
            for low, high, count in zip(lows, highs, rounds, strict=True):
                verdict = decide(low, high, Better.LOWER, int(count), margin, margins[key])
                called += verdict in CONCLUSIVE
                cells += bool(count > 1)
        if halves and cells:
            noise.append(Noise(*key, margins[key], float(np.median(halves)), called, cells))
    return tuple(noise)
