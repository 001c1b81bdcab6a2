"""The answer in one sentence, and what goes with it.

It names the configuration with the largest gain over the baseline among those that are faster
on most curves. It does not claim that this one beats the other configurations: they were compared
with the baseline, not with each other.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mpigraft.analysis import reason_of, speed_of, too_noisy
from mpigraft.core import numbers
from mpigraft.core.model import (
    Better,
    CellGroup,
    NoiseKind,
    NoVerdict,
    Verdict,
    shared_reason,
)
from mpigraft.report.contents import ReportData
from mpigraft.report.software import guest_words
from mpigraft.report.wording import words

SHOWN = 3  # configurations that a line names


@dataclass(frozen=True, slots=True)
class Record:
    """How one configuration did over all its curves."""

    configuration: str
    faster: int
    slower: int
    curves: int
    gain: float  # geometric mean over the curves; above 1 is better than the baseline


def headline(data: ReportData) -> tuple[str, ...]:
    """Give the answer, most useful first, and why curves have none; empty where all share one
    reason, which the summary gives. Configurations are named with their roles in a guest."""
    comparison = data.comparison
    called = {name: f"{name} ({role})" for name, role in guest_words(data).items()}
    baseline = called.get(comparison.baseline, comparison.baseline)
    ranking, withheld = records(comparison.groups), open_curves(comparison.groups)
    ranking = [
        replace(r, configuration=called.get(r.configuration, r.configuration)) for r in ranking
    ]
    if not any(r.faster or r.slower for r in ranking):
        return withheld
    whole = [r for r in ranking if r.faster == r.curves]
    some = [r for r in ranking if r.faster]
    lines = [_best((whole or some)[0], baseline) if some else _stay(baseline)]
    if len(whole) > 1:
        lines.append(f"Faster on every curve as well: {_listed(whole[1:])}.")
    if slower := [r for r in ranking if r.slower]:
        named = [f"{r.configuration} on {r.slower} of {r.curves}" for r in slower[:SHOWN]]
        more = f", and {len(slower) - SHOWN} more" if len(slower) > SHOWN else ""
        lines.append(f"Slower: {', '.join(named)} curves{more}.")
    return (*lines, *withheld)


def open_curves(groups: Sequence[CellGroup]) -> tuple[str, ...]:
    """On how many curves there is no verdict, and why: the reason, or how many have which."""
    groups = [group for group in groups if not group.repeats]
    reasons = [reason for group in groups if (reason := reason_of(group))]
    if not reasons or shared_reason(groups):
        return ()  # the summary gives the reason that all share
    kinds, ranges = Counter(reason.kind for reason in reasons), dict[NoiseKind | None, str]()
    ranges |= {kind: _ranged(kind, reasons) for kind, n in kinds.items() if kind and n > 1}
    one = len({reason.text for reason in reasons}) == 1
    whys = Counter(r.text if one else ranges.get(r.kind, r.cause) for r in reasons)
    why = "; ".join(f"on {count}, {text}" for text, count in whys.most_common())
    decided, every = len(groups) - len(reasons), numbers.counted(len(groups), "curve")
    what = f"{decided} of {every} {'is' if decided == 1 else 'are'} decided"
    what = what if decided else f"No curve is decided (0 of {every})"
    return (f"{what}. {why[:1].upper()}{why[1:]}.",)


def _ranged(kind: NoiseKind, reasons: Sequence[NoVerdict]) -> str:
    """Give the reasons of one kind as one, with the range of their figures."""
    same = [reason for reason in reasons if reason.kind is kind]
    counts = [r.count for r in same if r.count is not None]
    return too_noisy(kind, counts, [r.total for r in same if r.total is not None]).text


def records(groups: Sequence[CellGroup]) -> list[Record]:
    """Return every configuration's record: most curves won first, then fewest lost, then the gain.
    A measurement that two metrics repeat counts once; a curve that only others have is not won."""
    curves_of: dict[str, list[CellGroup]] = {}
    subjects = set()
    for group in groups:
        if group.repeats:
            continue
        curves_of.setdefault(group.configuration, []).append(group)
        subjects.add(group.series)
    rows = [
        Record(
            name,
            sum(g.curve is Verdict.FASTER for g in curves),
            sum(g.curve is Verdict.SLOWER for g in curves),
            len(subjects),
            math.exp(sum(math.log(speed_of(g)) for g in curves) / len(curves)),
        )
        for name, curves in curves_of.items()
    ]
    return sorted(rows, key=lambda r: (-r.faster / r.curves, r.slower, -r.gain, r.configuration))


def _best(best: Record, baseline: str) -> str:
    """Name a configuration that is faster on every curve, or on most; over all sizes it may still
    be slower."""
    if best.faster == best.curves:
        by = f"{numbers.ratio(best.gain)}x over all sizes"
        return (
            f"Largest gain over {baseline}: {best.configuration}, faster on every curve, by {by}."
        )
    text = f"Most often faster than {baseline}: {best.configuration}, on {best.faster} of "
    text += f"{numbers.counted(best.curves, 'curve')}"
    if best.slower:
        text += f" and slower on {best.slower}"
    return f"{text}; {words.factor(best.gain, Better.HIGHER)} over all sizes."


def _stay(baseline: str) -> str:
    return f"Stay with {baseline}: nothing is faster than it over a whole curve."


def _listed(rows: Sequence[Record]) -> str:
    return ", ".join(f"{r.configuration} ({numbers.ratio(r.gain)}x)" for r in rows)
