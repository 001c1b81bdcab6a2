"""What the looks of a campaign called: after how many rounds, by which p, and what comes next."""

from __future__ import annotations

from collections.abc import Sequence

from mpigraft.model import Comparison, Look
from mpigraft.report import words
from mpigraft.report.sections import counted


def plan(looks: Sequence[Look]) -> str:
    """The looks that are planned, in one line; empty for a campaign of a single one."""
    if len(looks) < 2:
        return ""
    rounds = ", ".join(str(look.rounds) for look in looks)
    return f"looks: after {rounds} rounds, p up to {_levels(looks)}"


def _levels(looks: Sequence[Look]) -> str:
    """`0.4, 0.22, 0.27 %`."""
    return ", ".join(words.percent(look.level).removesuffix(" %") for look in looks) + " %"


def lines(comparison: Comparison) -> list[str]:
    """A sentence for each look that was taken, then what follows; none for a single look."""
    looks, groups = comparison.looks, counted(comparison)
    if len(looks) < 2 or not groups:
        return []
    found: list[str] = []
    for look in looks[: comparison.taken]:
        here = [g for g in groups if g.look == look.rounds and not g.withheld]
        p = max((g.curve_p for g in here if g.curve_p is not None), default=None)
        called = f"{len(here)} of {words.many(len(groups), 'curve')} called"
        if found:
            called = f"{len(here) or 'no'} more"
        by = "" if p is None else f", p {'at most ' * (len(here) > 1)}{words.percent(p)}"
        found.append(
            f"look after {look.rounds} rounds (p up to {words.percent(look.level)}): {called}{by}"
        )
    after = looks[comparison.taken :]
    if ended(comparison):
        rest = looks[-1].rounds - looks[comparison.taken - 1].rounds
        found.append(f"every curve is called: {words.many(rest, 'round')} fewer than planned")
    elif after:
        found.append(
            f"no curve is called before the {'next' if found else 'first'} look, "
            f"after {after[0].rounds} rounds"
        )
    return found


def ended(comparison: Comparison) -> bool:
    """Whether a look has ended the campaign before the last of those that were planned."""
    planned = [look for look in comparison.looks if not look.extension]
    groups = counted(comparison)
    called = bool(groups) and all(g.look is not None and not g.withheld for g in groups)
    return len(planned) > 1 and called and comparison.taken < len(comparison.looks)


def document(comparison: Comparison) -> list[dict[str, object]]:
    """The same for other tools."""
    return [
        {
            "rounds": look.rounds,
            "level": look.level,
            "extension": look.extension,
            "taken": number < comparison.taken,
            "called": sum(g.look == look.rounds and not g.withheld for g in counted(comparison)),
        }
        for number, look in enumerate(comparison.looks)
    ]
