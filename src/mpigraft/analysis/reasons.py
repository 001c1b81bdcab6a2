"""Say why a curve has no verdict: one reason each, the same in every table, page and document."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from mpigraft.analysis.interim import PLANNED_ONCE
from mpigraft.analysis.verdict_rules import CONCLUSIVE, MIN_ROUNDS
from mpigraft.core import numbers
from mpigraft.core.model import Cause, CellGroup, NoiseKind, NoVerdict, Verdict
from mpigraft.core.numbers import size

if TYPE_CHECKING:
    from mpigraft.analysis.curve_comparison import Limits

OPEN = NoVerdict(Cause.LOOKS, "no look has called it")
IMPORTED = NoVerdict(Cause.ORDER, "imported runs did not alternate, so the ratio has no interval")


def reason_of(group: CellGroup) -> NoVerdict | None:
    """Return why a curve has no verdict; None where it has one."""
    if group.curve is not Verdict.INCONCLUSIVE:
        return None
    if group.withheld:
        return group.no_verdict
    texts = {
        Cause.LAUNCHES: lost_launches(group),
        Cause.MIXED: mixed_directions(group),
        Cause.SIZES: size_bound(group),
    }
    known = (NoVerdict(cause, text) for cause, text in texts.items() if text)
    return next(known, group.no_verdict or OPEN)


def too_noisy(kind: NoiseKind, counts: Sequence[int], totals: Sequence[int] = ()) -> NoVerdict:
    """Say how noise keeps a curve from a verdict, or several: then with the ranges of the figures,
    which are those of `NoVerdict`."""
    count, total = _range(counts), _range(totals)
    of = "every round" if [*counts] == [*totals] else f"{count} of {total} rounds"
    busy = "round" if count == "1" else f"{count} rounds"
    text = {
        NoiseKind.BUSY: f"other processes used the CPU in {of}",
        NoiseKind.RESTS: f"the difference may come from the {busy} in which other processes used "
        "the CPU",
        NoiseKind.SIZES: f"the baseline's two launches differ at {count} of {total} sizes",
        NoiseKind.CONTROL: f"the baseline's two launches differ by {count} % from each other",
    }
    return NoVerdict(Cause.NOISE, text[kind], kind, max(counts), max(totals, default=None))


def _range(figures: Sequence[int]) -> str:
    return " to ".join(dict.fromkeys((str(min(figures)), str(max(figures))))) if figures else ""


def open_reason(group: CellGroup, whole: Verdict, rounds: int, limits: Limits) -> NoVerdict | None:
    """Say which of the conditions of a verdict a curve fails, apart from noise and lost launches;
    None where it fails none. `whole` is what its pooled ratio says, after so many `rounds`."""
    if group.curve is not Verdict.INCONCLUSIVE:
        return None
    if rounds < MIN_ROUNDS:
        most = max(cell.rounds for cell in group.cells)
        have = numbers.counted(most, "round")
        if most >= MIN_ROUNDS:
            have = f"{numbers.counted(rounds, 'round')} of {most} with all sizes"
        return NoVerdict(Cause.ROUNDS, f"{have}, where {MIN_ROUNDS} are needed")
    if whole is Verdict.INCONCLUSIVE:
        span = numbers.interval(group.pooled_low, group.pooled_high)
        beyond, within = numbers.percent(limits.winner), numbers.percent(limits.margin)
        text = f"the interval of its ratio {span} is neither beyond {beyond} nor within {within}"
        return NoVerdict(Cause.MARGIN, text)
    against = [c.size for c in group.cells if c.verdict in CONCLUSIVE and c.verdict is not whole]
    if against:
        others = numbers.counted(len(against), "size")
        return NoVerdict(Cause.MIXED, f"{whole} over all sizes, but not at {others}")
    p, alone = group.curve_p, group.curve_p_alone
    if p is None or p <= limits.level:
        return None
    chance = f"chance gives as much in {_percent(p)} of campaigns, and {_percent(limits.level)}"
    single = f" ({_percent(alone)} if it were the only curve)" if alone is not None else ""
    return NoVerdict(Cause.CHANCE, f"{chance} is the limit{single}")


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %"


def lost_launches(group: CellGroup) -> str:
    """Count the launches that completed, for a curve that failed launches leave without a verdict;
    empty for any other."""
    completion = group.completion
    if completion is None or not completion.held or group.curve is not Verdict.INCONCLUSIVE:
        return ""
    if completion.loser == "baseline":
        counts = f"{completion.baseline_completed} of {completion.baseline_launched}"
        return f"{counts} launches of the baseline completed"
    return f"{completion.completed} of {completion.launched} launches completed"


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
        return f"{first} up to {size(low[-1].size)}, {second} from {size(high[0].size)}"
    faster = sum(c.verdict is Verdict.FASTER for c in called)
    return f"faster at {faster} sizes, slower at {len(called) - faster}"


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
    span = numbers.size_span(joint.beyond)
    few = f"{len(joint.beyond)} of {len(group.cells)} sizes, " if len(joint.beyond) > 1 else ""
    return f"equivalent over all sizes, but {few}{span}, may differ {far}"
