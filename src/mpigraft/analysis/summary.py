"""Describe a comparison for people: what is missing from it, and what it concludes."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace

from mpigraft.analysis.grouping import OVERLAP, Series, SeriesTable
from mpigraft.analysis.reasons import IMPORTED, reason_of, size_bound
from mpigraft.analysis.verdict_rules import CONCLUSIVE, MIN_ROUNDS
from mpigraft.core import numbers
from mpigraft.core.arrays import np
from mpigraft.core.model import (
    CampaignRecord,
    CellGroup,
    Comparison,
    Finding,
    Noise,
    Origin,
    SeriesKey,
    Verdict,
    metric_name,
    shared_reason,
)
from mpigraft.core.numbers import plural, round_numbers, size_span

SPAN = 3  # more sizes in a row are given by their ends
LINES = 12  # in a summary; the tables have the rest


# ------------------------------------------------------------------ what is missing


def findings(
    campaign: CampaignRecord,
    labels: dict[str, str],
    baseline: str,
    table: SeriesTable,
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
            missing = ["in any round"]
            if key in series.logs:
                missing = list(_gaps(series, key, baseline, campaign, rounds))
            gaps[label] |= dict.fromkeys(f"{_series_name(series_key)} {gap}" for gap in missing)
    for label, clauses in sorted(gaps.items()):
        if clauses:
            yield Finding.of("values-missing", label=label, gaps="; ".join(clauses))


def _too_few(campaign: CampaignRecord, rounds: int) -> Iterator[Finding]:
    if campaign.origin is Origin.IMPORT:
        yield Finding.of("no-interval-imported")
    elif rounds == 1:
        yield Finding.of("no-interval", advice=more_rounds(campaign))
    elif rounds < MIN_ROUNDS:
        yield Finding.of(
            "few-rounds", rounds=rounds, min_rounds=MIN_ROUNDS, advice=more_rounds(campaign)
        )


def more_rounds(campaign: CampaignRecord) -> str:
    """Say how a campaign gets as many rounds as a verdict needs."""
    if campaign.origin is Origin.IMPORT:
        return f"import {MIN_ROUNDS} runs or more into {campaign.name} {campaign.id[:8]}"
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
        yield f"at sizes {listed_sizes(sizes, series.sizes)}"
    if campaign.origin is not Origin.RUN:
        return
    present = ~np.isnan(series.logs[key])
    rounds = np.array([block.round for block in series.blocks])
    empty = set(range(due)) - set(rounds[present.any(axis=(0, 2))].tolist())
    if empty:
        yield f"in {_rounds(empty)} of {due}"
    measured = present.any(axis=(0, 1))
    for replica, launched in enumerate(present):
        some = launched.any(axis=1)
        if replica and some.any() and (single := set(rounds[~some].tolist()) - empty):
            yield f"of the second launch in {_rounds(single)}"
        partial = some & ~launched[:, measured].all(axis=1)
        if partial.any():
            yield f"at some sizes in {_rounds(set(rounds[partial].tolist()))}"


def _rounds(numbers: Set[int]) -> str:
    return f"{plural(len(numbers), 'round')} {', '.join(round_numbers(numbers))}"


def listed_sizes(missing: set[int], every: Sequence[int]) -> str:
    """List sizes; several that follow one another by their ends."""
    listed = sorted(missing)
    between = [size for size in sorted(every) if listed[0] <= size <= listed[-1]]
    if len(listed) > SPAN and listed == between:
        return f"{size_span(listed)} ({len(listed)})"
    return ", ".join(map(numbers.size, listed))


# ------------------------------------------------------------------ what it concludes


def with_summary(comparison: Comparison) -> Comparison:
    """Give each curve without a verdict its reason, and add a line for each curve, the greatest
    differences first; one line where all have no verdict for the same reason."""
    groups = tuple(replace(group, no_verdict=reason_of(group)) for group in comparison.groups)
    comparison = replace(comparison, groups=groups)
    if shared_reason(groups) or not groups:
        return replace(comparison, summary=(_nothing(comparison),))
    several = len({g.layout for g in groups}) > 1
    ranked = sorted(groups, key=_weight, reverse=True)
    lines = [line for g in ranked if (line := _line(g, comparison.baseline, several))]
    if len(lines) > LINES:
        lines[LINES:] = [f"and {len(lines) - LINES} more curves: see the tables"]
    return replace(comparison, summary=tuple(lines))


def _weight(group: CellGroup) -> tuple[bool, float]:
    """Rank called curves first, by how much they differ."""
    return (group.curve in CONCLUSIVE, abs(math.log(group.pooled)))


def _line(group: CellGroup, baseline: str, several: bool) -> str:
    """Describe one curve in a line; empty for one that repeats another."""
    if group.repeats:
        return ""
    where = f"{group.configuration} against {baseline} at {_name(group, several)}"
    if reason := reason_of(group):
        return f"{where}: {reason.sentence}"
    if group.curve is Verdict.EQUIVALENT:
        return f"{where}: equivalent ({group.pooled:.2f}x), {size_bound(group)}"
    return f"{where}: {group.curve}{_over(group)}"


def _over(group: CellGroup) -> str:
    """Write the ratio of a called curve, and which sizes show it by themselves if not all do."""
    if len(group.cells) == 1:
        return f" ({group.pooled:.2f}x)"
    called = [c.size for c in group.cells if c.verdict is group.curve]
    text = f" over all sizes ({group.pooled:.2f}x)"
    if called and len(called) < len(group.cells):
        span = size_span(called)
        text += f", and at {len(called)} of {len(group.cells)} sizes alone ({span})"
    return text


def _name(group: CellGroup, several: bool) -> str:
    name = group.benchmark.removeprefix("native:")
    quantity = metric_name(group.metric)
    name += f" {quantity}" if quantity not in name else ""
    name += f" on {group.layout}" if several else ""
    return name + (f" with {group.buffers} buffers" if group.buffers != "host" else "")


def _nothing(comparison: Comparison) -> str:
    if not comparison.groups:
        return f"only {comparison.baseline} has values: there is nothing to compare it with"
    shared = shared_reason(comparison.groups)
    if shared == IMPORTED.text:
        return "ratios only: imported runs did not alternate, so none is called faster or slower"
    nothing = f"no curve is called faster or slower than {comparison.baseline}"
    return f"{nothing}: {shared}"


def _series_name(key: SeriesKey) -> str:
    buffers = f" {key.buffers}" if key.buffers != "host" else ""
    return f"{key.benchmark} ({key.layout}{buffers})"
