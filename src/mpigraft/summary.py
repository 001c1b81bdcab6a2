"""What a comparison says to a person: what is missing from it, and what to take from it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from mpigraft.blocks import Held, Subject, Table
from mpigraft.decision import CONCLUSIVE
from mpigraft.looks import PLANNED_ONCE
from mpigraft.model import (
    CampaignRecord,
    CellGroup,
    Comparison,
    Finding,
    Level,
    Noise,
    Origin,
    Verdict,
)

LINES = 12  # of a summary; the tables have the rest


# ------------------------------------------------------------------ what is missing


def findings(
    campaign: CampaignRecord,
    labels: dict[str, str],
    baseline: str,
    table: Table,
    noise: Sequence[Noise],
    enough: int,
    due: Mapping[tuple[str, str], int],
) -> Iterator[Finding]:
    """What the reader has to know of the data. Gaps are named, never filled. `enough` rounds
    are the fewest that give a verdict; `due` are those of a configuration on a layout, where they
    are not all that were planned."""
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
            rounds = due.get((label, subject.layout), campaign.rounds)
            told = ["all values"]
            if key in held.logs:
                told = list(_gaps(held, key, baseline, campaign, rounds))
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


def _gaps(held: Held, key: str, baseline: str, campaign: CampaignRecord, due: int) -> Iterator[str]:
    """Sizes that the baseline has and this one has not, or any other and the baseline has not;
    rounds that were `due` and gave nothing; launches of a pair that gave nothing; rounds that
    gave some sizes only."""
    import numpy as np

    mine = held.sizes_of(key)
    others = held.logs if key == baseline else held.logs.keys() & {baseline}
    if lacking := set().union(*map(held.sizes_of, others)) - mine:
        yield f"sizes {_listed(lacking)}"
    if campaign.origin is not Origin.RUN:
        return
    here = ~np.isnan(held.logs[key])
    rounds = np.array([block.round for block in held.blocks])
    lost = set(range(due)) - set(rounds[here.any(axis=(0, 2))].tolist())
    if lost:
        yield f"rounds {_listed(lost)} of {due}"
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
    """The comparison with its summary: one line for each curve that the joint test says something
    of, those that say most first. Single cells of other curves are the tables' matter."""
    several = len({g.layout for g in comparison.groups}) > 1
    ranked = sorted(comparison.groups, key=_weight, reverse=True)
    lines = [line for g in ranked if (line := _line(g, comparison.baseline, several))]
    if len(lines) > LINES:
        more = len(lines) - LINES
        lines[LINES:] = [f"and {more} more curves with a verdict: see the tables"]
    return replace(comparison, summary=tuple(lines) or (_nothing(comparison),))


def _weight(group: CellGroup) -> tuple[bool, float]:
    """Called curves first, by how much they differ."""
    return (group.curve in CONCLUSIVE, abs(math.log(group.pooled)))


def _line(group: CellGroup, baseline: str, several: bool) -> str:
    """One curve in a line; empty when nothing is said of it as a whole, or it repeats another."""
    if group.repeats:
        return ""
    where = f"{group.configuration} against {baseline} at {_name(group, several)}"
    if group.withheld:
        return f"{where}: no verdict: {group.withheld}"
    if why := lost(group):
        return f"{where}: {why}"
    if group.curve is Verdict.EQUIVALENT:
        return f"{where}: equivalent ({group.pooled:.2f}x), {bound(group)}"
    if group.curve in CONCLUSIVE:
        return f"{where}: {group.curve}{_over(group)}"
    return f"{where}: {both}" if (both := mixed(group)) else ""


def lost(group: CellGroup) -> str:
    """Of a curve that launches which failed leave open: how many completed. Else empty."""
    of = group.completion
    if of is None or not of.held or group.curve is not Verdict.INCONCLUSIVE:
        return ""
    counts = ((of.completed, of.launched), (of.baseline_completed, of.baseline_launched))
    good, every = counts[of.loser == "baseline"]
    whose = " of the baseline" if of.loser == "baseline" else ""
    return f"no verdict: {good} of {every} launches{whose} completed"


def _over(group: CellGroup) -> str:
    """The ratio of a called curve, and at which sizes it shows where that is not at all."""
    if len(group.cells) == 1:
        return f" ({group.pooled:.2f}x)"
    called = [c.size for c in group.cells if c.verdict is group.curve]
    text = f" over all sizes ({group.pooled:.2f}x)"
    if called and len(called) < len(group.cells):
        span = size(called[0]) + (f" to {size(called[-1])}" if len(called) > 1 else "")
        text += f", by itself at {len(called)} of {len(group.cells)} ({span})"
    return text


def mixed(group: CellGroup) -> str:
    """Of a curve that differs from the baseline's in both directions: where in which. Empty for
    any other, and where the joint test leaves the difference open."""
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


def completed(comparison: Comparison) -> tuple[tuple[str, str, str], ...]:
    """(configuration, layout, `17 of 20`) of all, if any launch of any was lost; else nothing."""
    counts = comparison.launches
    if all(count.completed == count.launched for count in counts):
        return ()
    return tuple((c.configuration, c.layout, f"{c.completed} of {c.launched}") for c in counts)


def bound(group: CellGroup) -> str:
    """How far a size may be from equal where the pooled ratio is equivalent; else empty."""
    joint = group.joint
    if joint is None:
        return ""
    far = "by how much is not known"
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
    name += f" {group.metric}" if group.metric not in name else ""
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


def size(count: int) -> str:
    """8 B, 4 KiB, 1 MiB."""
    for unit, name in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit and count % unit == 0:
            return f"{count // unit} {name}"
    return f"{count} B"


def _subject(subject: Subject) -> str:
    buffers = f" {subject.buffers}" if subject.buffers != "host" else ""
    return f"{subject.benchmark} ({subject.layout}{buffers})"
