"""Find what disturbed a campaign's launches, and withhold verdicts that rest on noise.

A launch is disturbed if others (other processes, or a hypervisor's other guests) took TAKEN or
more of the CPUs of its ranks on some node; a round if one of its launches is. Ranks that poll, and
ranks that share CPUs as the layout has it, do not count as others. A curve with too much noise has
no verdict, with the reason (docs/explanation/method.md, Conditions).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from mpigraft.analysis.interim import PLANNED_ONCE
from mpigraft.analysis.summary import with_summary
from mpigraft.core.model import (
    CellGroup,
    Comparison,
    CpuUse,
    Finding,
    LaunchRecord,
    Noise,
    SeriesKey,
    ValueRow,
    Verdict,
)
from mpigraft.core.numbers import round_numbers
from mpigraft.core.text import join_some

TAKEN = 0.1  # of the CPUs of a node's ranks
SLACK_S = 0.04  # the kernel counts CPU time in hundredths of a second, in four columns
CALLED = 0.1  # of the control's cells; without disturbance it calls one in a hundred
SHOWN = 12  # rounds, curves and nodes in a finding
WINNERS = (Verdict.FASTER, Verdict.SLOWER)

Compare = Callable[[Sequence[ValueRow]], Comparison]
Round = tuple[str, int]  # allocation, number
Curve = tuple[SeriesKey, str]  # and the label of a configuration


def taken(use: CpuUse) -> float:
    """Return the least share, 0 to 1, that others took of the CPUs of a node's ranks."""
    return max(use.others - SLACK_S / use.wall_s, 0.0) if use.wall_s > 0 else 0.0


def is_disturbed(launch: LaunchRecord) -> bool:
    """Test whether others took the CPU on one of a launch's nodes."""
    return any(taken(use) >= TAKEN for use in _nodes(launch))


def disturbance_findings(
    launches: Sequence[LaunchRecord], labels: Mapping[str, str]
) -> Iterator[Finding]:
    """Count the rounds in which others took the CPU, by configuration where these differ."""
    disturbed: dict[str, set[Round]] = {x.configuration: set() for x in launches}
    for launch in filter(is_disturbed, launches):
        disturbed[launch.configuration].add((launch.allocation, launch.round))
    if not (rounds := set[Round]().union(*disturbed.values())):
        return
    known = {(x.allocation, x.round) for x in launches if _nodes(x)}
    uses = [use for x in launches for use in _nodes(x) if taken(use) >= TAKEN]
    listed = round_numbers({number for _, number in rounds})
    by_configuration = ""
    if len(set(map(frozenset, disturbed.values()))) > 1:
        counts = sorted((labels.get(key, key), len(own)) for key, own in disturbed.items())
        by_configuration = ": " + ", ".join(f"{label} in {count}" for label, count in counts)
    yield Finding.of(
        "cpu-taken",
        count=len(rounds),
        known=len(known),
        rounds=join_some(listed, SHOWN, ", "),
        by_configuration=by_configuration,
        range=_range([use.others for use in uses]),
        hosts=join_some(sorted({use.host for use in uses}), SHOWN, ", "),
        least=_percent(TAKEN),
    )


def undisturbed(values: Iterable[ValueRow], launches: Iterable[LaunchRecord]) -> list[bool]:
    """Tell for each value whether its launch was not disturbed."""
    disturbed = {
        (x.allocation, x.configuration, x.layout, x.round, x.replica)
        for x in filter(is_disturbed, launches)
    }
    return [
        (row.allocation, row.configuration, row.layout, row.round, row.replica) not in disturbed
        for row in values
    ]


def withhold_verdicts(
    compare: Compare,
    values: Sequence[ValueRow],
    clean: Sequence[bool],
    labels: Mapping[str, str],
    margin: float,
) -> Comparison:
    """Compare the values, and withhold the verdicts that are within the noise: these curves are
    inconclusive, and their `withheld` has the reason.

    `clean` tells for each value whether its launch was not disturbed; `labels` has the labels of
    configurations by key, `margin` is the fixed one.
    """
    whole = compare(values)
    rest = [row for row, is_clean in zip(values, clean, strict=True) if is_clean]
    again = _compare_rest(whole, compare, rest, labels) if len(rest) < len(values) else {}
    rounds = disturbed_rounds(values, clean, labels)
    groups = []
    for group in whole.groups:
        own, base = (
            rounds[_curve(group, label)] for label in (group.configuration, whole.baseline)
        )
        both = own.keys() & base.keys()
        disturbed = sum(own[one] or base[one] for one in both)
        counts, pair = (disturbed, len(both)), control_of(group, whole.noise)
        reason = noise_reason(group, again.get(_curve(group)), pair, counts, margin)
        verdict = Verdict.INCONCLUSIVE if reason else group.curve
        groups.append(replace(group, curve=verdict, withheld=reason))
    if not any(group.withheld for group in groups):
        return whole
    finding = verdict_finding([g for g in groups if g.withheld and not g.repeats])
    findings = (*whole.findings, finding)
    return with_summary(replace(whole, groups=tuple(groups), findings=findings))


def _compare_rest(
    whole: Comparison, compare: Compare, rest: Sequence[ValueRow], labels: Mapping[str, str]
) -> dict[Curve, CellGroup]:
    """Compare the launches that were not disturbed, by curve; empty if no curve has a winner, or
    the baseline has no such launch."""
    needed = any(group.curve in WINNERS for group in whole.groups)
    if not needed or whole.baseline not in {labels[row.configuration] for row in rest}:
        return {}
    return {_curve(group): group for group in compare(rest).groups}


def noise_reason(
    group: CellGroup,
    again: CellGroup | None,
    pair: Noise | None,
    rounds: tuple[int, int],
    margin: float,
) -> str:
    """Say why a curve has no verdict that it would have with less noise; empty if noise is no
    reason. `again` is the curve without disturbed launches, `pair` its control, `rounds` how many
    are disturbed of how many."""
    disturbed, total = rounds
    if group.curve is not Verdict.INCONCLUSIVE and 2 * disturbed > total:
        when = "every round" if disturbed == total else f"{disturbed} of {total} rounds"
        return f"other processes used the CPU in {when}"
    floor = pair.margin if pair else margin
    if group.curve in WINNERS and disturbed and not _upheld(group, again, floor):
        return (
            f"it does not hold without the {disturbed} rounds in which other processes used the CPU"
        )
    if group.curve in WINNERS and pair and pair.false_verdicts > CALLED * pair.cells:
        called = f"{pair.false_verdicts} of {pair.cells}"
        return f"the baseline's two launches differ from each other at {called} sizes"
    open_still = group.curve is Verdict.INCONCLUSIVE and (group.curve_p or 1.0) <= PLANNED_ONCE
    if open_still and _beyond(group, margin) and not _beyond(group, floor):
        return f"the baseline's two launches differ by {_percent(floor)} from each other"
    return ""


def control_of(group: CellGroup, noise: Sequence[Noise]) -> Noise | None:
    """Find the control of the same benchmark and layout, else the widest of the benchmark."""
    alike = [n for n in noise if n.benchmark == group.benchmark]
    return max(alike, key=lambda n: (n.layout == group.layout, n.margin), default=None)


def _upheld(group: CellGroup, again: CellGroup | None, floor: float) -> bool:
    """Test whether the ratio of the undisturbed rounds is beyond the floor too."""
    if again is None:
        return False
    return again.pooled > 1 + floor if group.pooled > 1 else again.pooled < 1 / (1 + floor)


def _beyond(group: CellGroup, limit: float) -> bool:
    low, high = group.pooled_low, group.pooled_high
    return low is not None and high is not None and (low > 1 + limit or high < 1 / (1 + limit))


def verdict_finding(groups: Sequence[CellGroup]) -> Finding:
    """List the curves whose verdicts were withheld."""
    texts = [f"{g.configuration} on {g.benchmark} ({g.layout}): {g.withheld}" for g in groups]
    return Finding.of(
        "verdict-withheld",
        count=len(texts),
        curves_word="curve" if len(texts) == 1 else "curves",
        curves=join_some(texts, SHOWN),
    )


# ------------------------------------------------------------------ rounds and words


def _nodes(launch: LaunchRecord) -> tuple[CpuUse, ...]:
    return launch.conditions.nodes if launch.conditions else ()


def _curve(group: CellGroup, label: str = "") -> Curve:
    return group.series, label or group.configuration


def disturbed_rounds(
    values: Sequence[ValueRow], clean: Sequence[bool], labels: Mapping[str, str]
) -> dict[Curve, dict[Round, bool]]:
    """Tell of each round of a curve whether it was disturbed; of the configurations in `labels`."""
    by_curve: dict[Curve, dict[Round, bool]] = defaultdict(dict)
    for row, is_clean in zip(values, clean, strict=True):
        if row.configuration in labels:
            rounds = by_curve[row.series, labels[row.configuration]]
            place = (row.allocation, row.round)
            rounds[place] = rounds.get(place, False) or not is_clean
    return by_curve


def _range(shares: Sequence[float]) -> str:
    low, high = _percent(min(shares)), _percent(max(shares))
    return low if low == high else f"{low.removesuffix(' %')} to {high}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
