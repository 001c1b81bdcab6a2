"""What disturbed a campaign's launches, and the verdicts that it cannot carry for that.

A launch is marked when others, other processes or a hypervisor's other guests, took TAKEN or more
of the CPUs of its ranks on some node; a round when one of its launches is. Ranks that poll, and
ranks that share CPUs with each other as the layout has it, are no others. A curve whose noise is
too large has no verdict, and says why (docs/method.md, Conditions).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mpigraft import summary
from mpigraft.looks import PLANNED_ONCE
from mpigraft.model import (
    CellGroup,
    Comparison,
    CpuUse,
    Finding,
    LaunchRecord,
    Level,
    Noise,
    ValueRow,
    Verdict,
)

TAKEN = 0.1  # of CPUs that ranks have in common
SLACK_S = 0.04  # the kernel counts CPU time in hundredths of a second, in four columns
CALLED = 0.1  # of the A/A pair's cells; of rounds that are alike it calls one in a hundred
SHOWN = 12  # rounds that a finding numbers, curves and nodes that it names
WINNERS = (Verdict.FASTER, Verdict.SLOWER)

Compare = Callable[[Sequence[ValueRow]], Comparison]
Round = tuple[str, int]  # allocation, number
Curve = tuple[str, str, str, str, str]  # label, benchmark, metric, layout, buffers


def taken(use: CpuUse) -> float:
    """The share, 0 to 1, that others took at least of the CPUs of a node's ranks."""
    return max(use.others - SLACK_S / use.wall_s, 0.0) if use.wall_s > 0 else 0.0


def marked(launch: LaunchRecord) -> bool:
    """Whether others took the CPU on one of its nodes."""
    return any(taken(use) >= TAKEN for use in _nodes(launch))


def findings(launches: Sequence[LaunchRecord], labels: Mapping[str, str]) -> Iterator[Finding]:
    """In how many rounds others took the CPU, by configuration where these differ."""
    of: dict[str, set[Round]] = {x.configuration: set() for x in launches}
    for launch in filter(marked, launches):
        of[launch.configuration].add((launch.allocation, launch.round))
    if not (every := set[Round]().union(*of.values())):
        return
    known = {(x.allocation, x.round) for x in launches if _nodes(x)}
    uses = [use for x in launches for use in _nodes(x) if taken(use) >= TAKEN]
    seen = f"others took the CPU in {len(every)} of {len(known)} rounds ({_numbers(every)})"
    if len(set(map(frozenset, of.values()))) > 1:
        counts = sorted((labels.get(key, key), len(own)) for key, own in of.items())
        seen += ": " + ", ".join(f"{label} in {count}" for label, count in counts)
    yield Finding(
        Level.WARNING,
        "cpu-taken",
        f"{seen}; {_range([use.others for use in uses])} of it on {_hosts(uses)}",
        f"other processes, or other guests of a hypervisor, had {_percent(TAKEN)} or more of CPUs "
        "of the ranks while these measured: what was slow then may have been slow for their sake",
        "measure on nodes that nobody else uses, or end what runs beside (`top` names it)",
    )


@dataclass(slots=True)
class _Rounds:
    """Of one configuration on one curve."""

    every: set[Round] = field(default_factory=set)
    disturbed: set[Round] = field(default_factory=set)


def undisturbed(values: Iterable[ValueRow], launches: Iterable[LaunchRecord]) -> list[bool]:
    """Of each value whether its launch is not marked."""
    marks = {
        (x.allocation, x.configuration, x.layout, x.round, x.replica)
        for x in filter(marked, launches)
    }
    return [
        (row.allocation, row.configuration, row.layout, row.round, row.replica) not in marks
        for row in values
    ]


def judged(
    compare: Compare,
    values: Sequence[ValueRow],
    clean: Sequence[bool],
    labels: Mapping[str, str],
    margin: float,
) -> Comparison:
    """What `compare` makes of the values, without the verdicts that noise is too large to carry:
    these curves are inconclusive, and `withheld` says why.

    `clean` says of each value whether it was not disturbed; `labels` has the ids of configurations
    by key, `margin` is the fixed one.
    """
    whole = compare(values)
    rest = [row for row, kept in zip(values, clean, strict=True) if kept]
    again = _again(whole, compare, rest, labels) if len(rest) < len(values) else {}
    rounds = _rounds(values, clean, labels)
    groups = []
    for group in whole.groups:
        own, base = (rounds[_curve(group, who)] for who in (group.configuration, whole.baseline))
        both = own.every & base.every
        disturbed = len(both & (own.disturbed | base.disturbed))
        pair = _pair(group, whole.noise)
        reason = _reason(group, again.get(_curve(group)), pair, (disturbed, len(both)), margin)
        said = Verdict.INCONCLUSIVE if reason else group.curve
        groups.append(replace(group, curve=said, withheld=reason))
    if not any(group.withheld for group in groups):
        return whole
    told = (*whole.findings, _withheld([g for g in groups if g.withheld and not g.repeats]))
    return summary.told(replace(whole, groups=tuple(groups), findings=told))


def _again(
    whole: Comparison, compare: Compare, rest: Sequence[ValueRow], labels: Mapping[str, str]
) -> dict[Curve, CellGroup]:
    """What is left without the marked launches; nothing where that is not needed, or where
    nothing of the baseline is."""
    needed = any(group.curve in WINNERS for group in whole.groups)
    if not needed or whole.baseline not in {labels[row.configuration] for row in rest}:
        return {}
    return {_curve(group): group for group in compare(rest).groups}


def _reason(
    group: CellGroup,
    again: CellGroup | None,
    pair: Noise | None,
    rounds: tuple[int, int],
    margin: float,
) -> str:
    """Why a curve has no verdict that it would have in less noise; empty where noise is no reason.
    `again` is the curve without marked launches, `rounds` how many are disturbed of how many."""
    disturbed, every = rounds
    if group.curve is not Verdict.INCONCLUSIVE and 2 * disturbed > every:
        return f"others took the CPU in {disturbed} of {every} rounds"
    floor = pair.margin if pair else margin
    if group.curve in WINNERS and disturbed and not _upheld(group, again, floor):
        return f"nothing is left of it without the {disturbed} rounds in which others took the CPU"
    if group.curve in WINNERS and pair and pair.false_verdicts > CALLED * pair.cells:
        called = f"{pair.false_verdicts} of {pair.cells}"
        return f"the baseline's two launches differ from each other at {called} sizes"
    open_still = group.curve is Verdict.INCONCLUSIVE and (group.curve_p or 1.0) <= PLANNED_ONCE
    if open_still and _beyond(group, margin) and not _beyond(group, floor):
        return f"the baseline's two launches differ by {_percent(floor)} from each other"
    return ""


def _pair(group: CellGroup, noise: Sequence[Noise]) -> Noise | None:
    """The A/A pair of the same benchmark and layout, else the widest of the benchmark's."""
    alike = [n for n in noise if n.benchmark == group.benchmark]
    return max(alike, key=lambda n: (n.layout == group.layout, n.margin), default=None)


def _upheld(group: CellGroup, again: CellGroup | None, floor: float) -> bool:
    """Whether the ratio of the rounds that nobody disturbed lies beyond the floor too."""
    if again is None:
        return False
    return again.pooled > 1 + floor if group.pooled > 1 else again.pooled < 1 / (1 + floor)


def _beyond(group: CellGroup, limit: float) -> bool:
    low, high = group.pooled_low, group.pooled_high
    return low is not None and high is not None and (low > 1 + limit or high < 1 / (1 + limit))


def _withheld(groups: Sequence[CellGroup]) -> Finding:
    told = [f"{g.configuration} on {g.benchmark} ({g.layout}): {g.withheld}" for g in groups]
    more = f"; and {len(told) - SHOWN} more" if len(told) > SHOWN else ""
    return Finding(
        Level.WARNING,
        "verdict-withheld",
        f"noise withholds the verdict on {len(told)} "
        f"{'curve' if len(told) == 1 else 'curves'}: {'; '.join(told[:SHOWN])}{more}",
        "a difference that noise can make by itself says nothing of the MPI",
        "measure on nodes that nobody else uses; where that cannot be, more rounds narrow what two "
        "launches of one thing differ by",
    )


# ------------------------------------------------------------------ rounds and words


def _nodes(launch: LaunchRecord) -> tuple[CpuUse, ...]:
    return launch.conditions.nodes if launch.conditions else ()


def _curve(group: CellGroup, label: str = "") -> Curve:
    subject = (group.benchmark, group.metric, group.layout, group.buffers)
    return (label or group.configuration, *subject)


def _rounds(
    values: Sequence[ValueRow], clean: Sequence[bool], labels: Mapping[str, str]
) -> dict[Curve, _Rounds]:
    found: dict[Curve, _Rounds] = {}
    for row, kept in zip(values, clean, strict=True):
        what = (labels[row.configuration], row.benchmark, row.metric, row.layout, row.buffers)
        rounds = found.setdefault(what, _Rounds())
        rounds.every.add((row.allocation, row.round))
        if not kept:
            rounds.disturbed.add((row.allocation, row.round))
    return found


def _numbers(rounds: Iterable[Round]) -> str:
    numbers = sorted({number for _, number in rounds})
    more = f" and {len(numbers) - SHOWN} more" if len(numbers) > SHOWN else ""
    return ", ".join(map(str, numbers[:SHOWN])) + more


def _range(shares: Sequence[float]) -> str:
    low, high = _percent(min(shares)), _percent(max(shares))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def _hosts(uses: Sequence[CpuUse]) -> str:
    hosts = sorted({use.host for use in uses})
    more = f" and {len(hosts) - SHOWN} more" if len(hosts) > SHOWN else ""
    return ", ".join(hosts[:SHOWN]) + more
