"""What the looks of a campaign called: after how many rounds, by which p, and what comes next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from mpigraft.core import numbers
from mpigraft.core.model import Comparison
from mpigraft.core.serialize import plain
from mpigraft.report.wording.counts import distinct_curves

if TYPE_CHECKING:
    from mpigraft.core.model import Look
    from mpigraft.core.serialize import Keys

    # taken: its rounds are over; called: curves
    LookKeys = Annotated[dict[str, Any], Look, Keys(taken=bool, called=int)]


def look_lines(comparison: Comparison) -> list[str]:
    """List a sentence for each look that was taken, then what follows; none for a single look."""
    looks, groups = comparison.looks, distinct_curves(comparison)
    if len(looks) < 2 or not groups:
        return []
    lines: list[str] = []
    for look in looks[: comparison.taken]:
        here = [g for g in groups if g.look == look.rounds and not g.withheld]
        p = max((g.curve_p for g in here if g.curve_p is not None), default=None)
        called = f"{len(here)} of {numbers.counted(len(groups), 'curve')} called"
        if lines:
            called = f"{len(here) or 'no'} more"
        by = "" if p is None else f", p {'at most ' * (len(here) > 1)}{numbers.percent(p)}"
        lines.append(
            f"look after {look.rounds} rounds (p up to {numbers.percent(look.level)}): {called}{by}"
        )
    after = looks[comparison.taken :]
    if ended_early(comparison):
        rest = looks[-1].rounds - looks[comparison.taken - 1].rounds
        lines.append(f"every curve is called: {numbers.counted(rest, 'round')} fewer than planned")
    elif after:
        lines.append(
            f"no curve is called before the {'next' if lines else 'first'} look, "
            f"after {after[0].rounds} rounds"
        )
    return lines


def ended_early(comparison: Comparison) -> bool:
    """Return whether a look has ended the campaign before the last of those that were planned."""
    planned = [look for look in comparison.looks if not look.extension]
    groups = distinct_curves(comparison)
    called = bool(groups) and all(g.look is not None and not g.withheld for g in groups)
    return len(planned) > 1 and called and comparison.taken < len(comparison.looks)


def document(comparison: Comparison) -> list[LookKeys]:
    """List the looks for other tools."""
    return [
        {
            **plain(look),
            "taken": number < comparison.taken,
            "called": sum(
                g.look == look.rounds and not g.withheld for g in distinct_curves(comparison)
            ),
        }
        for number, look in enumerate(comparison.looks)
    ]
