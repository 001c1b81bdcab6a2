"""Describe a comparison for people: what is missing from it, and what it concludes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from mpigraft.analysis.decision import CONCLUSIVE, MIN_ROUNDS
from mpigraft.analysis.grouping import OVERLAP, Series, SeriesKey, Table
from mpigraft.analysis.interim import PLANNED_ONCE
from mpigraft.core.arrays import np
from mpigraft.core.model import (
    CampaignRecord,
    CellGroup,
    Comparison,
    Finding,
    Noise,
    Origin,
    Verdict,
    metric_name,
)
from mpigraft.core.numbers import size

LINES = 12  # in a summary; the tables have the rest


# ------------------------------------------------------------------ what is missing


def findings(
    campaign: CampaignRecord,
    labels: dict[str, str],
    baseline: str,
    table: Table,
    noise: Sequence[Noise],
    due: Mapping[tuple[str, str], int],
) -> Iterator[Finding]:
    """Report what the data lack. Gaps are named, never filled. `due` has the rounds that a
    configuration (label) must have on a layout, where these are fewer than planned."""
    if any(key != baseline for series in table.series.values() for key in series.logs):
        yield from _too_few(campaign, len(table.allocation))
    if campaign.origin is Origin.RUN and not noise and len(table.allocation) > 1:
        yield Finding.of("no-noise")
    gaps: dict[str, dict[str, None]] = defaultdict(dict)  # ordered sets: metrics repeat each other
    for series_key, series in sorted(table.series.items(), key=lambda item: item[0].order):
        if series_key.metric == OVERLAP:
            continue  # values of 0 are gaps of it, and the latency of the same call has the others
        for key, label in labels.items():
            rounds = due.get((label, series_key.layout), campaign.rounds)
            missing = ["all values"]
            if key in series.logs:
                missing = list(_gaps(series, key, baseline, campaign, rounds))
            gaps[label] |= dict.fromkeys(f"{_series_name(series_key)}: {gap}" for gap in missing)
    for label, clauses in sorted(gaps.items()):
        if clauses:
            yield Finding.of("values-missing", label=label, gaps="; ".join(clauses))


def _too_few(campaign: CampaignRecord, rounds: int) -> Iterator[Finding]:
    if campaign.origin is Origin.IMPORT:
        yield Finding.of("no-interval-imported")
    elif rounds == 1:
        yield Finding.of("no-interval", advice=_more(campaign))
    elif rounds < MIN_ROUNDS:
        yield Finding.of("few-rounds", rounds=rounds, min_rounds=MIN_ROUNDS, advice=_more(campaign))


def _more(campaign: CampaignRecord) -> str:
    rounds = max(10, campaign.rounds)
    command = f"mpigraft bench --resume {campaign.id[:8]} --rounds {rounds}"
    return f"measure {MIN_ROUNDS} rounds or more: {command}"


def _gaps(
    series: Series, key: str, baseline: str, campaign: CampaignRecord, due: int
) -> Iterator[str]:
    """List what a configuration lacks: sizes that the baseline has, or of the baseline those that
    any other has; rounds of `due` without any value; second launches without any value; rounds
    with values of some sizes only."""
    others = series.logs if key == baseline else series.logs.keys() & {baseline}
    if sizes := set().union(*map(series.sizes_of, others)) - series.sizes_of(key):
        yield f"sizes {_numbers(sizes)}"
    if campaign.origin is not Origin.RUN:
        return
    present = ~np.isnan(series.logs[key])
    rounds = np.array([block.round for block in series.blocks])
    empty = set(range(due)) - set(rounds[present.any(axis=(0, 2))].tolist())
    if empty:
        yield f"rounds {_numbers(empty)} of {due}"
    measured = present.any(axis=(0, 1))
    for replica, launched in enumerate(present):
        some = launched.any(axis=1)
        if replica and some.any() and (single := set(rounds[~some].tolist()) - empty):
            yield f"second launch of rounds {_numbers(single)}"
        partial = some & ~launched[:, measured].all(axis=1)
        if partial.any():
            yield f"some sizes in rounds {_numbers(set(rounds[partial].tolist()))}"


def _numbers(numbers: set[int]) -> str:
    return ", ".join(str(n) for n in sorted(numbers))


# ------------------------------------------------------------------ what it concludes


def with_summary(comparison: Comparison) -> Comparison:
    """Add a line for each curve with a verdict, or a reason to have none; the greatest differences
    first. Single cells of other curves are in the tables."""
    several = len({g.layout for g in comparison.groups}) > 1
    ranked = sorted(comparison.groups, key=_weight, reverse=True)
    lines = [line for g in ranked if (line := _line(g, comparison.baseline, several))]
    if len(lines) > LINES:
        more = len(lines) - LINES
        lines[LINES:] = [f"and {more} more curves with a verdict: see the tables"]
    return replace(comparison, summary=tuple(lines) or (_nothing(comparison),))


def _weight(group: CellGroup) -> tuple[bool, float]:
    """Rank called curves first, by how much they differ."""
    return (group.curve in CONCLUSIVE, abs(math.log(group.pooled)))


def _line(group: CellGroup, baseline: str, several: bool) -> str:
    """Describe one curve in a line; empty for one without a verdict, or that repeats another."""
    if group.repeats:
        return ""
    where = f"{group.configuration} against {baseline} at {_name(group, several)}"
    if group.withheld:
        return f"{where}: no verdict: {group.withheld}"
    if why := lost_launches(group):
        return f"{where}: {why}"
    if group.curve is Verdict.EQUIVALENT:
        return f"{where}: equivalent ({group.pooled:.2f}x), {size_bound(group)}"
    if group.curve in CONCLUSIVE:
        return f"{where}: {group.curve}{_over(group)}"
    return f"{where}: {mixed}" if (mixed := mixed_directions(group)) else ""


def lost_launches(group: CellGroup) -> str:
    """Count the launches that completed, for a curve that failed launches leave without a verdict;
    empty for any other."""
    completion = group.completion
    if completion is None or not completion.held or group.curve is not Verdict.INCONCLUSIVE:
        return ""
    if completion.loser == "baseline":
        counts = f"{completion.baseline_completed} of {completion.baseline_launched}"
        return f"no verdict: {counts} launches of the baseline completed"
    return f"no verdict: {completion.completed} of {completion.launched} launches completed"


def _over(group: CellGroup) -> str:
    """Write the ratio of a called curve, and which sizes show it by themselves if not all do."""
    if len(group.cells) == 1:
        return f" ({group.pooled:.2f}x)"
    called = [c.size for c in group.cells if c.verdict is group.curve]
    text = f" over all sizes ({group.pooled:.2f}x)"
    if called and len(called) < len(group.cells):
        span = size(called[0]) + (f" to {size(called[-1])}" if len(called) > 1 else "")
        text += f", by itself at {len(called)} of {len(group.cells)} ({span})"
    return text


def mixed_directions(group: CellGroup) -> str:
    """Describe a curve that is faster at some sizes and slower at others. Empty for any other, and
    where the joint test leaves the difference open."""
    called = [c for c in group.cells if c.verdict in CONCLUSIVE]
    runs = [(verdict, list(run)) for verdict, run in groupby(called, key=lambda c: c.verdict)]
    differs = group.curve_p is not None and group.curve_p <= PLANNED_ONCE
    if group.curve is not Verdict.INCONCLUSIVE or len(runs) < 2 or not differs:
        return ""
    if len(runs) == 2:
        (first, low), (second, high) = runs
        return f"mixed: {first} up to {size(low[-1].size)}, {second} from {size(high[0].size)}"
    faster = sum(c.verdict is Verdict.FASTER for c in called)
    return f"mixed: faster at {faster} sizes, slower at {len(called) - faster}"


def size_bound(group: CellGroup) -> str:
    """Bound how far a size may be from equal where the pooled ratio is equivalent; else empty."""
    joint = group.joint
    if joint is None:
        return ""
    far = "by an unknown amount"
    if joint.low is not None and joint.high is not None:
        reach = f"{100 * (max(joint.high, 1 / joint.low) - 1):.2g} %"
        at = f" ({size(joint.size)})" if joint.size else ""
        if not joint.beyond:
            return f"no size differs by more than {reach}{at}"
        far = f"by up to {reach}{at}"
    first, last = joint.beyond[0], joint.beyond[-1]
    span = size(first) if first == last else f"{size(first)} to {size(last)}"
    few = f"{len(joint.beyond)} of {len(group.cells)} sizes, " if len(joint.beyond) > 1 else ""
    return f"equivalent over all sizes, but {few}{span}, may differ {far}"


def _name(group: CellGroup, several: bool) -> str:
    name = group.benchmark.removeprefix("native:")
    quantity = metric_name(group.metric)
    name += f" {quantity}" if quantity not in name else ""
    name += f" on {group.layout}" if several else ""
    return name + (f" with {group.buffers} buffers" if group.buffers != "host" else "")


def _nothing(comparison: Comparison) -> str:
    if not comparison.groups:
        return f"only {comparison.baseline} has values: there is nothing to compare it with"
    if comparison.origin is Origin.IMPORT:
        return "ratios only: a single run has no interval, so nothing is called faster or slower"
    return (
        f"no curve is called faster or slower than {comparison.baseline}"
        f" after {comparison.rounds} rounds"
    )


def _series_name(key: SeriesKey) -> str:
    buffers = f" {key.buffers}" if key.buffers != "host" else ""
    return f"{key.benchmark} ({key.layout}{buffers})"
