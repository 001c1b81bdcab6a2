"""Decide when the curves of a campaign may be called: after which rounds, and by which levels.

Repeating a test until it passes finds winners everywhere. So the numbers of rounds after which
curves are tested, the looks, are fixed before the start. A campaign has a total chance of any
false curve, and each look spends a part of it, in proportion to the rounds since the look before:
the spending function alpha t (Lan and DeMets, Biometrika 70, 1983; Kim and DeMets, Biometrika 74,
1987, with rho = 1). The levels add up, so the total holds however the looks depend on each other.
Why no other function: docs/explanation/method.md.

Extending a campaign adds a look. Extensions have a part of the chance of their own, which no plan
may spend, and each of them spends half of the rest of it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from mpigraft.core.errors import UsageError
from mpigraft.core.model import (
    AllocationRecord,
    CampaignRecord,
    Cause,
    CellGroup,
    LaunchRecord,
    Look,
    NoVerdict,
    SeriesKey,
    Verdict,
)

FIRST = 9  # rounds: with fewer, no p is below 0.78 %
ONCE, PLANNED_ONCE = 0.05, 0.04  # chance of any false curve: of one planned look, 3.1 % at 6 rounds
SEVERAL, PLANNED_SEVERAL = 0.01, 0.009  # and of several looks; the rest is for extensions
FLIPS = 4096  # all sign patterns of 12 rounds; of more rounds the joint test draws as many


def settle_looks(rounds: int, looks: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """Return the number of rounds and the looks of a plan; the last look is the end. Raises
    UsageError for looks that are too early, out of order, or too close to call anything."""
    if not looks:
        return rounds, ()
    ends = (*looks, rounds) if rounds > looks[-1] else tuple(looks)
    listed = ",".join(map(str, looks))
    if list(ends) != sorted(set(ends)) or (rounds and rounds < ends[-1]):
        limit = f" within {rounds} rounds" if rounds else ""
        raise UsageError.of("looks-order", listed=listed, limit=limit)
    if len(ends) == 1:
        raise UsageError.of("looks-single", listed=listed)
    if ends[0] < FIRST:
        raise UsageError.of(
            "looks-early",
            listed=listed,
            first_look=ends[0],
            percent=_percent(_smallest_p(ends[0])),
            first=FIRST,
        )
    for look in _planned(ends):
        if smallest := _smallest_if_above(look):
            raise UsageError.of(
                "looks-level",
                listed=listed,
                rounds=look.rounds,
                last=ends[-1],
                alpha=_percent(look.level),
                smallest=smallest,
            )
    return ends[-1], ends


def campaign_looks(campaign: CampaignRecord) -> tuple[Look, ...]:
    """List the looks of a stored campaign in order: those of its plan, then one per extension."""
    plan = json.loads(campaign.plan)
    extensions = plan.get("extensions", ())
    rounds = extensions[0]["planned"] if extensions else campaign.rounds
    planned = _planned(tuple(plan.get("wish", {}).get("looks", ())) or (rounds,))
    rest = SEVERAL - PLANNED_SEVERAL if len(planned) > 1 else ONCE - PLANNED_ONCE
    added = [
        Look(step["rounds"], rest * 0.5**number, extension=True)
        for number, step in enumerate(extensions, start=1)
    ]
    return (*planned, *added)


def refuse_empty_look(campaign: CampaignRecord) -> None:
    """Raise UsageError if the last look, an extension, cannot call any curve."""
    last = campaign_looks(campaign)[-1]
    if smallest := _smallest_if_above(last):
        raise UsageError.of(
            "extension-level",
            name=campaign.name,
            campaign=campaign.id[:8],
            alpha=_percent(last.level),
            rounds=last.rounds,
            smallest=smallest,
        )


def _smallest_if_above(look: Look) -> str:
    """Give the smallest p of so many rounds, in percent, if it is above the look's level."""
    smallest = _smallest_p(look.rounds)
    return _percent(smallest) if look.level < smallest else ""


def _planned(ends: Sequence[int]) -> tuple[Look, ...]:
    alpha = PLANNED_SEVERAL if len(ends) > 1 else PLANNED_ONCE
    starts = (0, *ends[:-1])
    return tuple(
        Look(end, alpha * (end - start) / max(ends[-1], 1))
        for start, end in zip(starts, ends, strict=True)
    )


def _smallest_p(rounds: int) -> float:
    """Return the smallest p of a sign-flip test: all rounds on one side or the other."""
    return max(2.0 ** (1 - rounds), 1 / FLIPS)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %"


# ------------------------------------------------------------------ which are due


def looks_taken(looks: Iterable[Look], over: Collection[int]) -> tuple[Look, ...]:
    """Select the looks whose rounds are all over."""
    return tuple(look for look in looks if all(n in over for n in range(look.rounds)))


def rounds_over(
    launches: Iterable[LaunchRecord], allocations: Iterable[AllocationRecord]
) -> frozenset[int]:
    """Find the rounds that are over: on some nodes a job of the same share went on to a later one,
    or ended. A round in which a job was killed is over when another job has finished it. Launches
    and allocations are in the order in which they started."""
    site: dict[str, tuple[str, str]] = {}  # nodes and share of each allocation
    order: dict[str, int] = {}
    last_end: dict[tuple[str, str], int] = {}
    for number, allocation in enumerate(allocations):
        site[allocation.id] = (allocation.nodes, allocation.share)
        order[allocation.id] = number
        if allocation.ended:
            last_end[site[allocation.id]] = number
    begun: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for launch in launches:
        if launch.allocation in site:
            begun[site[launch.allocation]][launch.round] = order[launch.allocation]
    return frozenset(
        number
        for where, rounds in begun.items()
        for number, job in rounds.items()
        if number < max(rounds) or job <= last_end.get(where, -1)
    )


def called_curves(
    now: Iterable[CellGroup],
    stages: Sequence[tuple[Look, Sequence[CellGroup]]],
    looks: Sequence[Look],
) -> list[CellGroup]:
    """Give the curves of all rounds the verdicts of the looks. `now` has them as if any p passed,
    `stages` as of each look that was taken: from its rounds and by its level.

    The first look that calls a curve decides, unless later rounds contradict it. Only a planned
    end or an extension calls a curve equivalent, because an interval that is tried at every look
    is within the margin by chance more often than one that is tried once.
    """
    by_look = [(look, {_key(group): group for group in groups}) for look, groups in stages]
    end = max(look.rounds for look in looks if not look.extension)
    return [
        _called(
            group,
            [(look, curves[_key(group)]) for look, curves in by_look if _key(group) in curves],
            end,
        )
        for group in now
    ]


def _called(now: CellGroup, tests: Sequence[tuple[Look, CellGroup]], end: int) -> CellGroup:
    for look, then in tests:
        if then.curve in (Verdict.FASTER, Verdict.SLOWER):
            if now.curve is then.curve or _rounds(now) == _rounds(then):
                return replace(now, curve=then.curve, curve_p=then.curve_p, look=look.rounds)
            text = f"{then.curve} after {look.rounds} rounds, and later ones contradict it"
            reason = NoVerdict(Cause.LOOKS, text)
            return replace(now, curve=Verdict.INCONCLUSIVE, curve_p=then.curve_p, no_verdict=reason)
    ends = [then for look, then in tests if look.rounds >= end]
    equivalent = any(
        then.curve is Verdict.EQUIVALENT
        and (now.curve is Verdict.EQUIVALENT or _rounds(now) == _rounds(then))
        for then in ends[-1:]
    )
    return replace(
        now,
        curve=Verdict.EQUIVALENT if equivalent else Verdict.INCONCLUSIVE,
        curve_p=tests[-1][1].curve_p if tests else None,
        no_verdict=_reason(tests, end),
    )


def _reason(tests: Sequence[tuple[Look, CellGroup]], end: int) -> NoVerdict:
    """Say why no look has called a curve: what the last one that was taken lacked."""
    if not tests:
        return NoVerdict(Cause.LOOKS, "the first look is not over")
    look, then = tests[-1]
    if then.no_verdict is None:  # equivalent
        text = f"only the look after {end} rounds can call it equivalent"
        return NoVerdict(Cause.LOOKS, text)
    return replace(then.no_verdict, text=f"{then.no_verdict.text}, after {look.rounds} rounds")


def due_looks(
    groups: Iterable[CellGroup],
    looks: Sequence[Look],
    baseline: str,
    begun: Mapping[tuple[str, str], int],
) -> dict[tuple[str, str], int]:
    """Count the rounds that each configuration and layout must have: all that are planned, or those
    of the look that called the last of its curves. The `baseline` must have as many as any other.
    Looks were taken by the margin and the baseline of the plan, which another comparison may not
    share, so no more is due than had `begun` when they ended it."""
    stops = sum(not look.extension for look in looks) > 1
    rounds: dict[tuple[str, str], int] = defaultdict(int)
    for group in groups:
        last = looks[-1].rounds if group.look is None or not stops else group.look
        for name in (group.configuration, baseline):
            rounds[name, group.layout] = max(rounds[name, group.layout], last)
    if not stops:
        return dict(rounds)
    return {pair: min(number, begun.get(pair, number)) for pair, number in rounds.items()}


def _key(group: CellGroup) -> tuple[SeriesKey, str]:
    return group.series, group.configuration


def _rounds(group: CellGroup) -> int:
    return max(cell.rounds for cell in group.cells)
