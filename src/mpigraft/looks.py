"""When the curves of a campaign may be called: after which rounds, and by which level each time.

Who tests again and again until a test pleases finds winners everywhere. So the numbers of rounds
after which curves are tested are fixed before the start. Each such look spends a part of the
chance of any false curve that the whole campaign is allowed, in proportion to the rounds since the
look before: the spending function alpha t (Lan and DeMets, Biometrika 70, 1983; Kim and DeMets,
Biometrika 74, 1987, with rho = 1). The levels add up, so that the chance holds however the looks
depend on each other. Why no other function: docs/method.md.

A campaign that is extended is looked at once more than was planned. That has a part of its own,
which no plan may spend, and each extension spends half of what is left of it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from mpigraft.errors import UsageError
from mpigraft.model import (
    AllocationRecord,
    CampaignRecord,
    CellGroup,
    LaunchRecord,
    Look,
    Verdict,
)

FIRST = 9  # rounds: a test of fewer has no p below 0.78 %
ONCE, PLANNED_ONCE = 0.05, 0.04  # chance of any false curve: of one planned look, 3.1 % at 6 rounds
SEVERAL, PLANNED_SEVERAL = 0.01, 0.009  # and of several looks; what is left is for extensions
FLIPS = 4096  # all sign patterns of 12 rounds; the joint test draws that many of more rounds


def settled(rounds: int, looks: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """The number of rounds and the looks of a plan: the last look is the end. Raises UsageError
    for looks that are too early, too close to each other to call anything, or in disorder."""
    if not looks:
        return rounds, ()
    ends = (*looks, rounds) if rounds > looks[-1] else tuple(looks)
    listed = ",".join(map(str, looks))
    if list(ends) != sorted(set(ends)) or (rounds and rounds < ends[-1]):
        limit = f" within {rounds} rounds" if rounds else ""
        raise UsageError(f"--looks {listed} is no ascending list{limit}", mend="as in 9,14,20")
    if len(ends) == 1:
        raise UsageError(
            f"--looks {listed} is one look, at the end",
            mend=f"--rounds {listed} does that; several looks may end a campaign early: 9,14,20",
        )
    if ends[0] < FIRST:
        raise UsageError(
            f"--looks {listed}: the first look is after {ends[0]} rounds",
            why=f"{ends[0]} rounds all on one side happen by chance in "
            f"{_percent(_smallest_p(ends[0]))} of campaigns, too often to end one early",
            mend=f"look first after {FIRST} rounds or later",
        )
    for look in _planned(ends):
        if look.level < _smallest_p(look.rounds):
            raise UsageError(
                f"--looks {listed}: the look after {look.rounds} of {ends[-1]} rounds could call "
                f"nothing: its level is {_percent(look.level)}, and no p of {look.rounds} rounds "
                f"is below {_percent(_smallest_p(look.rounds))}",
                mend="plan fewer looks, or later ones, as in 9,14,20",
            )
    return ends[-1], ends


def looks_of(campaign: CampaignRecord) -> tuple[Look, ...]:
    """Every look of a stored campaign, in order: those of its plan, then one per extension."""
    plan = json.loads(campaign.plan)
    extensions = plan.get("extensions", ())
    rounds = extensions[0]["planned"] if extensions else campaign.rounds
    planned = _planned(tuple(plan.get("wish", {}).get("looks", ())) or (rounds,))
    left = SEVERAL - PLANNED_SEVERAL if len(planned) > 1 else ONCE - PLANNED_ONCE
    added = [
        Look(step["rounds"], left * 0.5**number, extension=True)
        for number, step in enumerate(extensions, start=1)
    ]
    return (*planned, *added)


def refuse_empty(campaign: CampaignRecord) -> None:
    """Raise UsageError where the last look, an extension, could call nothing: each spends half of
    what is left, and a test of so many rounds has a smallest p."""
    last = looks_of(campaign)[-1]
    if last.level < _smallest_p(last.rounds):
        raise UsageError(
            f"{campaign.name} ({campaign.id[:8]}) cannot be extended once more: what is left of "
            f"the chance of a false curve is {_percent(last.level)}, and no p of {last.rounds} "
            f"rounds is below {_percent(_smallest_p(last.rounds))}",
            why="who tests again and again finds winners by chance",
            mend=f"start a new campaign with as many rounds as it takes: --rounds {last.rounds}",
        )


def _planned(ends: Sequence[int]) -> tuple[Look, ...]:
    alpha = PLANNED_SEVERAL if len(ends) > 1 else PLANNED_ONCE
    starts = (0, *ends[:-1])
    return tuple(
        Look(end, alpha * (end - start) / max(ends[-1], 1))
        for start, end in zip(starts, ends, strict=True)
    )


def _smallest_p(rounds: int) -> float:
    """Of a sign-flip test: all rounds on one side, or the other."""
    return max(2.0 ** (1 - rounds), 1 / FLIPS)


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2g} %"


# ------------------------------------------------------------------ which are due


def taken(looks: Iterable[Look], over: Collection[int]) -> tuple[Look, ...]:
    """The looks of which every round is over."""
    return tuple(look for look in looks if all(n in over for n in range(look.rounds)))


def rounds_over(
    launches: Iterable[LaunchRecord], allocations: Iterable[AllocationRecord]
) -> frozenset[int]:
    """Rounds that some nodes have measured and passed: a job of the same share went on to a later
    one there, or came to its end. A round in which a job was killed is not over before another
    job has ended it. Both are in the order in which they started."""
    of: dict[str, tuple[str, str]] = {}
    order: dict[str, int] = {}
    last_end: dict[tuple[str, str], int] = {}
    for number, allocation in enumerate(allocations):
        of[allocation.id] = (allocation.nodes, allocation.share)
        order[allocation.id] = number
        if allocation.ended:
            last_end[of[allocation.id]] = number
    begun: dict[tuple[str, str], dict[int, int]] = defaultdict(dict)
    for launch in launches:
        if launch.allocation in of:
            begun[of[launch.allocation]][launch.round] = order[launch.allocation]
    return frozenset(
        number
        for place, rounds in begun.items()
        for number, job in rounds.items()
        if number < max(rounds) or job <= last_end.get(place, -1)
    )


def called(
    now: Iterable[CellGroup],
    stages: Sequence[tuple[Look, Sequence[CellGroup]]],
    looks: Sequence[Look],
) -> list[CellGroup]:
    """Curves of all rounds with the verdicts of the looks: `now` has them as if any p would do,
    `stages` as each look that was taken has them, of its rounds and by its level.

    The first look that calls a curve decides, unless rounds after it show something else. A curve
    is equivalent only by a planned end or an extension: an interval that is tried at every look
    lies within the margin by chance more often than one that is tried once.
    """
    then = [(look, {_place(group): group for group in groups}) for look, groups in stages]
    end = max(look.rounds for look in looks if not look.extension)
    return [
        _called(
            group,
            [(look, by[_place(group)]) for look, by in then if _place(group) in by],
            end,
        )
        for group in now
    ]


def _called(now: CellGroup, tests: Sequence[tuple[Look, CellGroup]], end: int) -> CellGroup:
    for look, then in tests:
        if then.curve in (Verdict.FASTER, Verdict.SLOWER):
            if now.curve is then.curve or _rounds(now) == _rounds(then):
                return replace(now, curve=then.curve, curve_p=then.curve_p, look=look.rounds)
            return replace(now, curve=Verdict.INCONCLUSIVE, curve_p=then.curve_p)
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
    )


def due(
    groups: Iterable[CellGroup],
    looks: Sequence[Look],
    baseline: str,
    begun: Mapping[tuple[str, str], int],
) -> dict[tuple[str, str], int]:
    """By configuration and layout, how many rounds it has to have: all that are planned, or those
    of the look that called the last of its curves. As many as any other has the `baseline`. Looks
    were taken by the margin and the baseline of the plan, which another comparison may not have:
    what was `begun` before they ended it is all that is due."""
    stops = sum(not look.extension for look in looks) > 1
    rounds: dict[tuple[str, str], int] = defaultdict(int)
    for group in groups:
        last = looks[-1].rounds if group.look is None or not stops else group.look
        for name in (group.configuration, baseline):
            rounds[name, group.layout] = max(rounds[name, group.layout], last)
    if not stops:
        return dict(rounds)
    return {place: min(number, begun.get(place, number)) for place, number in rounds.items()}


def _place(group: CellGroup) -> tuple[str, ...]:
    return (group.benchmark, group.metric, group.layout, group.buffers, group.configuration)


def _rounds(group: CellGroup) -> int:
    return max(cell.rounds for cell in group.cells)
