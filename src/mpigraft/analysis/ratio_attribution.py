"""Say which step of a series of benchmarks moves the ratio of two configurations.

Each benchmark has one property more than the one before it; all were measured in the same rounds.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from mpigraft.analysis.grouping import Block, Series, SeriesTable, labels_of, table_of
from mpigraft.analysis.multiplicity import adjusted_p
from mpigraft.analysis.noise import margins_of, pairs_of
from mpigraft.analysis.verdict_rules import decide, intervals
from mpigraft.core.arrays import Floats, Ints, np
from mpigraft.core.model import (
    Better,
    CampaignRecord,
    ConfigurationRecord,
    ValueRow,
    Verdict,
    layout_order,
)

LEVEL = 0.05  # of the steps' tests, corrected for their number
MARGIN = 0.03


@dataclass(frozen=True, slots=True)
class Ratio:
    """A ratio with its 95 % interval; no bounds: too few rounds."""

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class StepRatio:
    """One step of one configuration against the baseline. `change` is its ratio over that of the
    step before; `p` is corrected for the number of steps and configurations."""

    step: str
    configuration: str
    ratio: Ratio
    verdict: Verdict
    rounds: int
    change: Ratio | None = None
    p: float | None = None
    moves: bool = False


def judge_steps(
    campaign: CampaignRecord,
    configurations: Sequence[ConfigurationRecord],
    values: Iterable[ValueRow],
    steps: Sequence[tuple[str, str]],
) -> tuple[str, tuple[StepRatio, ...]]:
    """Return the baseline's id and a row for each configuration and step, in their order.

    `values` are times, of one metric. `steps` has a name and what its benchmark's key contains.
    A step moves the ratio if the interval of the change is outside the margin, the baseline's
    own difference between two launches if that is greater, and its sign test holds for all steps
    together.
    """
    rows = [*values]
    labels = labels_of(configurations, rows)
    table = table_of(rows, {}, labels)
    series = [(name, _series(table, part)) for name, part in steps]
    limit = float(np.median([*margins_of(pairs_of(table), MARGIN).values()] or [MARGIN]))
    others = {row.configuration for row in rows} - {campaign.baseline}
    out: list[StepRatio] = []
    changes: list[tuple[int, Floats, Ints]] = []
    for key in sorted(others, key=lambda key: layout_order(labels[key])):
        before: dict[Block, float] = {}
        for name, one in series:
            logs = _log_ratios(one, key, campaign.baseline) if one else {}
            if logs:
                bounds = _bounds([*logs.values()], campaign.seed)
                verdict = decide(*bounds[1:], Better.LOWER, len(logs), MARGIN, limit)
                out.append(StepRatio(name, labels[key], _ratio(*bounds), verdict, len(logs)))
            if common := [block for block in logs if block in before]:
                moved = [logs[block] - before[block] for block in common]
                change = _ratio(*_bounds(moved, campaign.seed))
                out[-1] = replace(out[-1], change=change)
                rounds = np.array([block.round for block in common], dtype=np.int64)
                changes.append((len(out) - 1, np.array(moved)[:, None], rounds))
            before = logs
    tests = adjusted_p([logs for _, logs, _ in changes], [at for *_, at in changes], campaign.seed)
    for (number, *_), p in zip(changes, tests, strict=True):
        out[number] = replace(out[number], p=p, moves=_moves(out[number].change, p, limit))
    return labels.get(campaign.baseline, campaign.baseline), tuple(out)


def _series(table: SeriesTable, part: str) -> Series | None:
    return next((one for key, one in table.series.items() if part in key.benchmark), None)


def _log_ratios(series: Series, key: str, baseline: str) -> dict[Block, float]:
    if key not in series.logs or baseline not in series.logs:
        return {}
    logs = (series.launches(key) - series.launches(baseline))[:, 0].tolist()
    pairs = zip(series.blocks, logs, strict=True)
    return {block: value for block, value in pairs if not math.isnan(value)}


def _bounds(logs: Sequence[float], seed: int) -> tuple[float, float, float]:
    column = np.array(logs)[:, None]
    low, high = intervals(column, np.zeros(len(logs), dtype=np.int64), seed)
    return float(np.median(column)), float(low[0]), float(high[0])


def _ratio(middle: float, low: float, high: float) -> Ratio:
    if math.isnan(low) or math.isnan(high):
        return Ratio(math.exp(middle))
    return Ratio(math.exp(middle), math.exp(low), math.exp(high))


def _moves(change: Ratio | None, p: float, limit: float) -> bool:
    if change is None or change.low is None or change.high is None or p > LEVEL:
        return False
    return change.low > 1 + limit or change.high < 1 / (1 + limit)
