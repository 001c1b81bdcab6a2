"""What the baseline's two launches of a round say of the machine: the A/A pair."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mpigraft import stats
from mpigraft.blocks import Subject, Table
from mpigraft.decision import CONCLUSIVE, decide, intervals
from mpigraft.model import Better, CampaignRecord, CellGroup, Noise
from mpigraft.multiplicity import repeated

if TYPE_CHECKING:
    from mpigraft.stats import Floats, Ints


def pairs_of(table: Table) -> dict[tuple[str, str], list[tuple[Floats, Ints]]]:
    """Per benchmark and layout the log ratios of second to first launch of a round, wherever a
    configuration was launched twice, and the allocations of these rounds. A measurement that two
    metrics repeat is there once."""
    found: dict[tuple[str, str], list[tuple[Floats, Ints]]] = defaultdict(list)
    for subject, held in table.subjects.items():
        if repeated(subject, table.subjects):
            continue
        for first, second, *_ in held.logs.values():
            logs = second - first
            logs = logs[:, stats.filled(logs)]
            if logs.size:
                found[subject.benchmark, subject.layout].append((logs, table.numbers(held)))
    return found


def margins_of(
    pairs: dict[tuple[str, str], list[tuple[Floats, Ints]]], margin: float
) -> dict[tuple[str, str], float]:
    """What a winner must exceed: `margin`, or the A/A pair's typical false ratio if greater."""
    import numpy as np

    margins = {}
    for place, found in pairs.items():
        medians = np.concatenate([stats.medians(logs) for logs, _ in found])
        margins[place] = max(margin, float(np.median(np.expm1(np.abs(medians)))))
    return margins


def limit_of(margins: dict[tuple[str, str], float], subject: Subject, margin: float) -> float:
    """What a winner must exceed on a subject: that of its A/A pair; where there is none, the widest
    of the benchmark's other pairs: the baseline alone is launched twice, and layouts may be
    compared for other configurations too."""
    others = [own for (name, _), own in margins.items() if name == subject.benchmark]
    return margins.get((subject.benchmark, subject.layout), max(others, default=margin))


def noise_of(
    table: Table, groups: Sequence[CellGroup], margin: float, campaign: CampaignRecord
) -> tuple[Noise, ...]:
    """How far the A/A pair strays, how many of its cells would have been called, and how well
    a typical cell is known. Nothing from fewer than two rounds."""
    import numpy as np

    pairs = pairs_of(table)
    margins = margins_of(pairs, margin)
    noise = []
    for place, found in sorted(pairs.items()):
        halves = [
            math.sqrt(c.high / c.low) - 1
            for g in groups
            if (g.benchmark, g.layout) == place and not g.repeats
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
                called += verdict in CONCLUSIVE
                cells += bool(count > 1)
        if halves and cells:
            noise.append(Noise(*place, margins[place], float(np.median(halves)), called, cells))
    return tuple(noise)
