"""Whether anything is slower than the baseline, or could be judged at all: `--fail-on` of a
pipeline, and `recheck`."""

from __future__ import annotations

from collections.abc import Sequence

from mpigraft.core import numbers
from mpigraft.core.errors import CheckFailed, NotJudged
from mpigraft.core.messages import Lines
from mpigraft.core.model import CellGroup, Comparison, Verdict
from mpigraft.report.wording.counts import distinct_curves, tally
from mpigraft.report.wording.words import no_verdict_reason

NAMED = 12  # lines that a message lists; the rest are counted


def refuse_slower(comparison: Comparison, *, cells: bool = False) -> list[str]:
    """Raise CheckFailed when a curve is slower; with `cells` when a single size is as well.
    Raises NotJudged when nothing has a verdict.

    Returns what is not known where nothing is slower: inconclusive is not fine.
    """
    curves = distinct_curves(comparison)
    lines = [curve_line(g) for g in curves if g.curve is Verdict.SLOWER]
    if cells:
        slower = [g for g in curves if any(c.verdict is Verdict.SLOWER for c in g.cells)]
        lines += [_cells(g) for g in slower]
    if not lines:
        refuse_unjudged(curves, cells=cells)
        return _undecided(curves, cells=cells)
    slower_lines = Lines.below(_first(lines))
    baseline = comparison.baseline
    if cells:
        raise CheckFailed.of(
            "cells-slower", baseline=baseline, lines=slower_lines, tally=tally(comparison)
        )
    raise CheckFailed.of("curves-slower", baseline=baseline, lines=slower_lines)


def refuse_unjudged(curves: Sequence[CellGroup], *, cells: bool = False) -> None:
    """Raise NotJudged when no curve has a verdict; with `cells` no single size either."""
    verdicts = {g.curve for g in curves} | {c.verdict for g in curves for c in g.cells if cells}
    if verdicts <= {Verdict.INCONCLUSIVE}:
        reasons = [f"{_where(g)}: {reason}" for g in curves if (reason := no_verdict_reason(g))]
        raise NotJudged.of(
            "nothing-judged",
            curves=numbers.counted(len(curves), "curve"),
            reasons=Lines.below(_first(reasons)),
        )


def _first(lines: list[str]) -> list[str]:
    more = len(lines) - NAMED
    return lines[:NAMED] + ([f"and {more} more"] if more > 0 else [])


def _undecided(curves: list[CellGroup], *, cells: bool) -> list[str]:
    what = "cell" if cells else "curve"
    every = [c.verdict for g in curves for c in g.cells] if cells else [g.curve for g in curves]
    reasons = [f"{_where(g)}: {no_verdict_reason(g)}" for g in curves if no_verdict_reason(g)]
    lines = [] if cells else _first(reasons)
    if unknown := sum(verdict is Verdict.INCONCLUSIVE for verdict in every):
        are = "is" if unknown == 1 else "are"
        head = f"no {what} is slower, but {unknown} of {len(every)} {what}s {are} inconclusive"
        lines.insert(0, head)
    return lines


def curve_line(group: CellGroup) -> str:
    """Name a curve with its ratio, interval and p."""
    over = f"{numbers.ratio(group.pooled)} {numbers.interval(group.pooled_low, group.pooled_high)}"
    chance = "" if group.curve_p is None else f", p {group.curve_p:.2g}"
    return f"{_where(group)}: the curve, ratio {over}{chance}"


def _cells(group: CellGroup) -> str:
    slower = (c for c in group.cells if c.verdict is Verdict.SLOWER)
    sizes = ", ".join(f"{numbers.size(c.size)} ({numbers.ratio(c.ratio)})" for c in slower)
    return f"{_where(group)}: {sizes}"


def _where(group: CellGroup) -> str:
    return f"{group.configuration} on {group.benchmark} ({group.layout})"
