"""What a comparison says to a person: what is missing from it, and what to take from it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from mpigraft.blocks import Series, Subject, Table
from mpigraft.model import (
    CampaignRecord,
    Cell,
    CellGroup,
    Comparison,
    Finding,
    Level,
    Noise,
    Origin,
    Verdict,
)

LINES = 12  # of a summary; the tables have the rest
CONCLUSIVE = (Verdict.FASTER, Verdict.SLOWER)


# ------------------------------------------------------------------ what is missing


def findings(
    campaign: CampaignRecord,
    labels: dict[str, str],
    baseline: str,
    table: Table,
    noise: Sequence[Noise],
    enough: int,
) -> Iterator[Finding]:
    """What the reader has to know of the data. Gaps are named, never filled. `enough` rounds
    are the fewest that give a verdict."""
    yield from _too_few(campaign, len(table.allocation), enough)
    if campaign.origin is Origin.RUN and not noise and len(table.allocation) > 1:
        yield Finding(
            Level.WARNING,
            "no-noise",
            "no configuration was launched twice in a round",
            "how much two launches of one thing differ here is unknown; only the margin is used",
        )
    gaps: dict[str, list[str]] = defaultdict(list)
    for subject, held in sorted(table.series.items()):
        for key in sorted(labels, key=labels.__getitem__):
            where = _subject(subject)
            if key not in held:
                gaps[labels[key]].append(f"{where}: nothing")
                continue
            if baseline in held:
                gaps[labels[key]] += [f"{where}: {gap}" for gap in _gaps(held, key, baseline)]
            if campaign.origin is Origin.RUN:
                gaps[labels[key]] += [f"{where}: {gap}" for gap in _lost(held[key], campaign)]
    for label, told in gaps.items():
        if told:
            seen = f"{label} lacks {'; '.join(told)}"
            why = "what is missing is not filled in: these cells have fewer rounds or are left out"
            yield Finding(Level.WARNING, "values-missing", seen, why)


def _too_few(campaign: CampaignRecord, rounds: int, enough: int) -> Iterator[Finding]:
    if campaign.origin is Origin.IMPORT:
        yield Finding(
            Level.INFO,
            "no-interval",
            "imported tables give ratios without an interval",
            "a single run has none, and runs that were not alternated cannot be paired:"
            " how much of a ratio is chance is unknown, so every verdict is inconclusive",
        )
    elif rounds == 1:
        yield Finding(
            Level.WARNING,
            "no-interval",
            "a single run has no interval",
            "how much of a ratio is chance is unknown, so every verdict is inconclusive",
            f"measure {enough} rounds or more: mpigraft bench --rounds 10",
        )
    elif rounds < enough:
        yield Finding(
            Level.WARNING,
            "few-rounds",
            f"{rounds} rounds: every verdict is inconclusive",
            f"{enough} rounds are the fewest in which chance alone has less than 5 %"
            " to put all of them on one side",
            f"measure {enough} rounds or more: mpigraft bench --rounds 10",
        )


def _gaps(held: dict[str, Series], key: str, baseline: str) -> Iterator[str]:
    absent = held[baseline].sizes - held[key].sizes
    if absent:
        yield f"sizes {_listed(absent)}"
    alone = held[key].sizes - held[baseline].sizes
    if alone:
        yield f"the baseline's values at {_listed(alone)}"


def _lost(series: Series, campaign: CampaignRecord) -> Iterator[str]:
    """Rounds that were planned and gave nothing, and launches of a pair that did."""
    lost = set(range(campaign.rounds)) - {block.round for block in series.logs}
    if lost:
        yield f"rounds {_listed(lost)} of {campaign.rounds}"
    replicas = {r for launches in series.logs.values() for r in launches}
    for replica in sorted(replicas):
        short = {b.round for b, launches in series.logs.items() if replica not in launches}
        if short:
            yield f"launch {replica + 1} of rounds {_listed(short)}"
    sizes = series.sizes
    cut = {
        block.round
        for block, launches in series.logs.items()
        for launch in launches.values()
        if set(launch) != sizes
    }
    if cut:
        yield f"some sizes in rounds {_listed(cut)}"


def _listed(numbers: set[int]) -> str:
    return ", ".join(str(n) for n in sorted(numbers))


# ------------------------------------------------------------------ what to take from it


def told(comparison: Comparison) -> Comparison:
    """The comparison with its summary: one line for each curve that says something, those that
    say most first."""
    several = len({g.layout for g in comparison.groups}) > 1
    ranked = sorted(comparison.groups, key=_weight, reverse=True)
    lines = [line for g in ranked if (line := _line(g, comparison.baseline, several))]
    if len(lines) > LINES:
        more = len(lines) - LINES
        lines[LINES:] = [f"and {more} more curves with a verdict: see the tables"]
    return replace(comparison, summary=tuple(lines) or (_nothing(comparison),))


def _weight(group: CellGroup) -> tuple[bool, float]:
    """Called curves before single cells, then by how much was called."""
    called = [abs(math.log(c.ratio)) for c in group.cells if c.verdict in CONCLUSIVE]
    return (group.curve in CONCLUSIVE, sum(called))


def _line(group: CellGroup, baseline: str, several: bool) -> str:
    """One curve in a line; empty when nothing in it was called."""
    where = f"{group.configuration} against {baseline} at {_name(group, several)}"
    if group.curve is Verdict.EQUIVALENT:
        return f"{where}: equivalent at every size ({group.pooled:.2f}x)"
    called = [c for c in group.cells if c.verdict in CONCLUSIVE]
    runs = [_range(group, list(run)) for _, run in groupby(called, key=lambda c: c.verdict)]
    return f"{where}: {', '.join(runs)}" if runs else ""


def _range(group: CellGroup, run: list[Cell]) -> str:
    """Neighbours with one verdict; inconclusive sizes between them are counted."""
    ratio = math.exp(sum(math.log(c.ratio) for c in run) / len(run))
    first, last = run[0].size, run[-1].size
    if last == 0:
        span = ""
    elif first == last:
        span = f" at {size(first)}"
    else:
        within = sum(first <= c.size <= last for c in group.cells)
        few = f" at {len(run)} of {within} sizes" if len(run) < within else ""
        span = f"{few} from {size(first)} to {size(last)}"
    return f"{run[0].verdict}{span} ({ratio:.2f}x)"


def _name(group: CellGroup, several: bool) -> str:
    name = group.benchmark.removeprefix("native:")
    name += f" {group.metric}" if group.metric not in name else ""
    name += f" on {group.layout}" if several else ""
    return name + (f" with {group.buffers} buffers" if group.buffers != "host" else "")


def _nothing(comparison: Comparison) -> str:
    if not comparison.groups:
        return f"only {comparison.baseline} has values: there is nothing to compare it with"
    if comparison.origin is Origin.IMPORT:
        return "ratios only: a single run has no interval, so nothing is called faster or slower"
    return (
        f"nothing is called faster or slower than {comparison.baseline}"
        f" after {comparison.rounds} rounds"
    )


def size(count: int) -> str:
    """8 B, 4 KiB, 1 MiB."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def _subject(subject: Subject) -> str:
    buffers = f" {subject.buffers}" if subject.buffers != "host" else ""
    return f"{subject.benchmark} ({subject.layout}{buffers})"
