"""What a comparison says to a person: what is missing from it, and what to take from it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from mpigraft.blocks import Held, Subject, Table
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
    if any(key != baseline for held in table.subjects.values() for key in held.logs):
        yield from _too_few(campaign, len(table.allocation), enough)
    if campaign.origin is Origin.RUN and not noise and len(table.allocation) > 1:
        yield Finding(
            Level.WARNING,
            "no-noise",
            "no configuration was launched twice in a round",
            "how much two launches of one thing differ here is unknown; only the margin is used",
        )
    gaps: dict[str, list[str]] = defaultdict(list)
    for subject, held in sorted(table.subjects.items()):
        for key, label in labels.items():
            told = list(_gaps(held, key, baseline, campaign)) if key in held.logs else ["nothing"]
            gaps[label] += [f"{_subject(subject)}: {gap}" for gap in told]
    for who, lacking in sorted(gaps.items()):
        if lacking:
            seen = f"{who} lacks {'; '.join(lacking)}"
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
            _more(campaign, enough),
        )
    elif rounds < enough:
        yield Finding(
            Level.WARNING,
            "few-rounds",
            f"{rounds} rounds: every verdict is inconclusive",
            f"{enough} rounds are the fewest in which chance alone has less than 5 %"
            " to put all of them on one side",
            _more(campaign, enough),
        )


def _more(campaign: CampaignRecord, enough: int) -> str:
    rounds = max(10, campaign.rounds)
    command = f"mpigraft bench --resume {campaign.id[:8]} --rounds {rounds}"
    return f"measure {enough} rounds or more: {command}"


def _gaps(held: Held, key: str, baseline: str, campaign: CampaignRecord) -> Iterator[str]:
    """Sizes that only one of the two has; rounds that were planned and gave nothing; launches
    of a pair that gave nothing; rounds that gave some sizes only."""
    import numpy as np

    mine = held.sizes_of(key)
    theirs = held.sizes_of(baseline) if baseline in held.logs else mine
    if theirs - mine:
        yield f"sizes {_listed(theirs - mine)}"
    if mine - theirs:
        yield f"the baseline's values at sizes {_listed(mine - theirs)}"
    if campaign.origin is not Origin.RUN:
        return
    here = ~np.isnan(held.logs[key])
    rounds = np.array([block.round for block in held.blocks])
    lost = set(range(campaign.rounds)) - set(rounds[here.any(axis=(0, 2))].tolist())
    if lost:
        yield f"rounds {_listed(lost)} of {campaign.rounds}"
    whole = here.any(axis=(0, 1))
    for replica, launched in enumerate(here):
        some = launched.any(axis=1)
        if replica and some.any() and (short := set(rounds[~some].tolist()) - lost):
            yield f"second launch of rounds {_listed(short)}"
        cut = some & ~launched[:, whole].all(axis=1)
        if cut.any():
            yield f"some sizes in rounds {_listed(set(rounds[cut].tolist()))}"


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
    if group.withheld:
        return f"{where}: no verdict: {group.withheld}"
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
