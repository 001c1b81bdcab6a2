"""How the figures of one campaign were come by: what was done here, not what could have been.

docs/explanation/method.md has the reasons; `stats` and `compare` do it.
"""

from __future__ import annotations

from mpigraft.analysis import MIN_ROUNDS
from mpigraft.core import numbers
from mpigraft.core.model import EXACT_FROM, Origin
from mpigraft.core.serialize import parse_object
from mpigraft.report.contents import ReportData
from mpigraft.report.wording.counts import cells

BETTER = "Times below 1 and bandwidths above 1 are better than the baseline."
IMPORTED = (
    "These tables were measured elsewhere and imported. Runs that were not alternated cannot be "
    "paired, and a single run has no interval: how much of a ratio is chance is unknown, so every "
    f"verdict is inconclusive. {BETTER}",
)
STUDENT = "Student's t on the logarithms of the ratios (and as far as their median)"
ORDER = "order statistics of the median, which ask nothing of the distribution"


def method(data: ReportData) -> tuple[str, ...]:
    """Paragraphs: how it was measured, what the intervals are, how verdicts fall."""
    if data.comparison.origin is Origin.IMPORT:
        return IMPORTED
    return (
        "Each round starts every configuration once and the baseline twice, in random order; "
        f"{_end(data)} A launch gives one value per size, the "
        "median of its iterations. A ratio divides a launch's value by the geometric mean of the "
        "baseline's launches of the same round; the ratio shown is the median over rounds.",
        f"{_intervals(data)} Faster or slower: the interval is outside the margin, which is "
        f"{numbers.percent(data.margin)}, or as much as the baseline typically differs from itself "
        f"if that is more. Equivalent: the interval is within {numbers.percent(data.margin)}. "
        "Everything else is inconclusive, and so is everything with fewer than "
        f"{MIN_ROUNDS} rounds.",
        "A whole curve is equivalent if its pooled interval is within that margin and no size may "
        "differ by more than twice the margin, by bounds that hold for all sizes at once. "
        "It is called faster or slower by a joint test over its sizes (sign flips, largest |T|), "
        f"because a launch that is slow is slow at many sizes. {BETTER}",
    )


def _end(data: ReportData) -> str:
    """Return when the campaign was to end, which was fixed before it began."""
    looks = data.comparison.looks
    planned = [str(look.rounds) for look in looks if not look.extension]
    added = [str(look.rounds) for look in looks if look.extension]
    text = "the number of rounds is fixed before the start."
    match parse_object(data.campaign.plan).get("spare"):
        case {"planned": int(before), "rounds": int(rounds)}:
            text = (
                f"the number of rounds is fixed before the start: {before}, and a spare one for "
                "each in which other processes used the CPU, up to a number that is fixed too. "
                f"They made it {rounds}."
            )
    if len(planned) > 1:
        text = (
            f"after {', '.join(planned)} rounds its curves are tested, and a configuration ends "
            "where all of its curves are called. A curve that was called early "
            "shows a ratio farther from 1 than the true one, because being far from 1 ended it."
        )
    if added:
        text += f" It was extended to {', '.join(added)} rounds."
    if len(looks) > 1:
        text += " Each of these looks has a level of its own, so that together they call a curve "
        text += "by chance no more often than one would."
    return text


def _intervals(data: ReportData) -> str:
    """Return which interval the cells of this campaign have: that depends on their rounds."""
    counts = {c.rounds for c in cells(data.comparison) if c.low is not None}
    if not counts:
        return "No ratio has two rounds, so none has an interval."
    if max(counts) < EXACT_FROM:
        text = f"Intervals are 95 %, by {STUDENT}, as there are fewer than {EXACT_FROM} rounds."
    elif min(counts) >= EXACT_FROM:
        text = f"Intervals are 95 %, by {ORDER}, as there are {EXACT_FROM} rounds or more."
    else:
        text = (
            f"Intervals are 95 %: by {ORDER}, for cells with {EXACT_FROM} rounds or more; by "
            f"{STUDENT} for those with fewer."
        )
    number = _allocations(data)
    if number > 1:
        return (
            f"{text} Where the bootstrap over the {number} allocations, then over the rounds of "
            "each, is wider, the interval reaches as far as that."
        )
    return f"{text} All rounds are of one allocation: other nodes are not accounted for."


def _allocations(data: ReportData) -> int:
    """Allocations that the rounds count for: one that was killed within a round and went on
    on the same host shares that round with the next, which is how `blocks` numbers them."""
    hosts = {a.id: a.host for a in data.allocations}
    first: dict[tuple[str, int], str] = {}
    for row in data.values:
        place = (hosts.get(row.allocation, row.allocation), row.round)
        first.setdefault(place, row.allocation)
    return len(set(first.values()))
