"""Find what disturbed a campaign's launches, and withhold verdicts that rest on noise.

A launch is disturbed if others (other processes, or a hypervisor's other guests) took TAKEN or
more of the CPUs of its ranks on some node; a round if one of its launches is. Ranks that poll, and
ranks that share CPUs as the layout has it, do not count as others. A curve is judged by its other
rounds where these are enough; else by all, if what others took cannot explain the difference. A
curve with too much noise has no verdict, with the reason (docs/explanation/method.md, Conditions).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import NamedTuple

from mpigraft.analysis.interim import PLANNED_ONCE
from mpigraft.analysis.multiplicity import ONE_TIME
from mpigraft.analysis.reasons import too_noisy
from mpigraft.analysis.summary import with_summary
from mpigraft.core.model import (
    METRICS,
    Benchmark,
    Better,
    CellGroup,
    Comparison,
    CpuUse,
    Finding,
    LaunchRecord,
    Noise,
    NoiseKind,
    NoVerdict,
    SeriesKey,
    ValueRow,
    Verdict,
)
from mpigraft.core.numbers import round_numbers
from mpigraft.core.text import join_some

TAKEN = 0.1  # of the CPUs of a node's ranks
SLACK_S = 0.04  # the kernel counts CPU time in hundredths of a second, in four columns
UNBOUNDED = 1e6  # a slow-down without a bound: no difference is as large
CALLED = 0.1  # of the control's cells; without disturbance it calls one in a hundred
SHOWN = 12  # rounds, curves and nodes in a finding
WINNERS = (Verdict.FASTER, Verdict.SLOWER)

Compare = Callable[[Sequence[ValueRow]], Comparison]
Round = tuple[str, int]  # allocation, number
Launched = tuple[str, str, str, int, int]  # allocation, configuration, layout, round, replica
Curve = tuple[SeriesKey, str]  # and the label of a configuration


def taken(use: CpuUse) -> float:
    """Return the least share, 0 to 1, that others took of the CPUs of a node's ranks."""
    return max(use.others - SLACK_S / use.wall_s, 0.0) if use.wall_s > 0 else 0.0


def is_disturbed(launch: LaunchRecord) -> bool:
    """Test whether others took the CPU on one of a launch's nodes, during a benchmark or all."""
    return any(taken(use) >= TAKEN for use in _nodes(launch))


def disturbance_findings(
    launches: Sequence[LaunchRecord], labels: Mapping[str, str]
) -> Iterator[Finding]:
    """Count the rounds in which others took the CPU, by configuration where these differ."""
    disturbed: dict[str, set[int]] = {x.configuration: set() for x in launches}
    for launch in filter(is_disturbed, launches):  # two jobs may have parts of one round
        disturbed[launch.configuration].add(launch.round)
    if not (rounds := set[int]().union(*disturbed.values())):
        return
    known = {x.round for x in launches if _nodes(x)}
    uses = [use for x in launches for use in _nodes(x) if taken(use) >= TAKEN]
    listed = join_some(round_numbers(rounds), SHOWN, ", ")
    by_configuration = ""
    if len(set(map(frozenset, disturbed.values()))) > 1:
        counts = sorted((labels.get(key, key), len(own)) for key, own in disturbed.items())
        named = [f"{label} in {count}" for label, count in counts if count]
        if len(named) < len(counts):
            named.append(f"{len(counts) - len(named)} of {len(counts)} in none")
        by_configuration = ": " + ", ".join(named)
    yield Finding.of(
        "cpu-taken",
        count=len(rounds),
        known=len(known),
        rounds=f" ({listed})" if len(rounds) < len(known) else "",
        by_configuration=by_configuration,
        range=_range([use.others for use in uses]),
        hosts=join_some(sorted({use.host for use in uses}), SHOWN, ", "),
        least=_percent(TAKEN),
    )


def uses_of(launch: LaunchRecord, benchmark: str) -> tuple[tuple[CpuUse, ...], bool]:
    """Return who used the CPUs while a launch ran a benchmark, and whether it is only known for
    the whole launch. A benchmark's record is of all values whose options are its own and more."""
    nodes = _nodes(launch)
    if own := tuple(use for use in nodes if use.benchmark == benchmark):
        return own, False
    value = Benchmark.parse(benchmark)
    if own := tuple(use for use in nodes if Benchmark.parse(use.benchmark).covers(value)):
        return own, False
    return tuple(use for use in nodes if not use.benchmark), True


def slow_down(uses: Sequence[CpuUse], benchmarks: int = 1) -> float:
    """Return the greatest factor by which others may have slowed the values of one of the
    `benchmarks` that ran meanwhile, in a disturbed launch; 1 if others took less than TAKEN of it.

    While one rank does not run, all may wait. So at worst the CPU seconds that others took from
    ranks follow each other, all during this benchmark. A value is a median: at worst they fell on
    the half of the samples that makes it, and the other half took no longer than without them:
    (1 + taken) / (1 - taken). If nothing is left of the time, there is no bound: UNBOUNDED.
    """
    if all(use.others < TAKEN for use in uses):
        return 1.0
    lost = benchmarks * sum(use.others * use.cpus for use in uses)
    return min((1 + lost) / (1 - lost), UNBOUNDED) if lost < 1 else UNBOUNDED


def slow_downs(values: Sequence[ValueRow], launches: Iterable[LaunchRecord]) -> list[float]:
    """Return for each value the `slow_down` of its benchmark in its launch."""
    measured: dict[Launched, set[str]] = defaultdict(set)
    for row in values:
        measured[_launched(row)].add(row.benchmark)
    known = {}
    for launch in filter(is_disturbed, launches):
        place = _launched(launch)
        found = {benchmark: uses_of(launch, benchmark) for benchmark in measured.get(place, ())}
        shared = sum(is_shared for _, is_shared in found.values())
        for benchmark, (uses, is_shared) in found.items():
            known[place, benchmark] = slow_down(uses, shared if is_shared else 1)
    return [known.get((_launched(row), row.benchmark), 1.0) for row in values]


def without_slow_down(row: ValueRow, factor: float) -> ValueRow:
    """Return a value as it may have been if others had slowed its launch by `factor`: what is no
    time or rate of messages has no bound."""
    if factor <= 1:
        return row
    factor = factor if row.metric in ONE_TIME else UNBOUNDED
    lower = METRICS[row.metric].better is Better.LOWER
    return row._replace(value=row.value / factor if lower else row.value * factor)


def withhold_verdicts(
    compare: Compare,
    values: Sequence[ValueRow],
    factors: Sequence[float],
    labels: Mapping[str, str],
    margin: float,
) -> Comparison:
    """Compare the values, judge curves without their disturbed rounds, and withhold the verdicts
    that are within the noise: these curves are inconclusive, and have the reason.

    `factors` has the `slow_down` of each value's launch; `labels` has the labels of
    configurations by key, `margin` is the fixed one.
    """
    whole = compare(values)
    rounds = disturbed_rounds(values, [factor <= 1 for factor in factors], labels)
    rest = _compare_rest(whole, compare, (values, factors), rounds)

    @cache
    def bounded(winner: Verdict) -> dict[Curve, CellGroup]:
        """Compare all values, as if the loser had been slowed by as much as it can have been."""
        slowed = [
            (labels.get(row.configuration) == whole.baseline) is (winner is Verdict.FASTER)
            for row in values
        ]
        made = compare(
            [
                without_slow_down(row, factor) if is_slowed else row
                for row, factor, is_slowed in zip(values, factors, slowed, strict=True)
            ]
        )
        return {_curve(group): group for group in made.groups}

    judged = []
    for group in whole.groups:
        own, base = (
            rounds[_curve(group, label)] for label in (group.configuration, whole.baseline)
        )
        both = own.keys() & base.keys()
        disturbed = Disturbed(sum(own[one] or base[one] for one in both), len(both))
        again = rest.groups.get(_curve(group))
        pairs = (control_of(group, whole.noise), control_of(group, rest.noise))
        holds = partial(same_winner, bounded, _curve(group))
        judged.append(judge_group(group, disturbed, again, holds, pairs, margin))
    if not any(one.code for one in judged):
        return whole
    groups = tuple(one.group for one in judged)
    findings = (*whole.findings, *judged_findings(judged))
    return with_summary(replace(whole, groups=groups, findings=findings))


class Rest(NamedTuple):
    """The comparison without disturbed rounds."""

    groups: Mapping[Curve, CellGroup]
    noise: tuple[Noise, ...]


def _compare_rest(
    whole: Comparison,
    compare: Compare,
    marked: tuple[Sequence[ValueRow], Sequence[float]],
    rounds: Mapping[Curve, Mapping[Round, bool]],
) -> Rest:
    """Compare the rounds in which neither a curve nor its baseline was disturbed, by curve, with
    their control. Empty if all rounds are such, or the baseline has none of them."""
    values, factors = marked
    rest = [
        row
        for row, factor in zip(values, factors, strict=True)
        if factor <= 1 and not rounds[row.series, whole.baseline].get((row.allocation, row.round))
    ]
    left = {label for (_, label), own in rounds.items() if not all(own.values())}
    if len(rest) == len(values) or whole.baseline not in left:
        return Rest({}, ())
    made = compare(rest)
    return Rest({_curve(group): group for group in made.groups}, made.noise)


# ------------------------------------------------------------------ one curve


class Disturbed(NamedTuple):
    """How many rounds of a curve are disturbed, of how many."""

    rounds: int
    total: int


class CurveJudgement(NamedTuple):
    """A curve with the code of the finding that names it; empty: none does."""

    group: CellGroup
    code: str = ""


def judge_group(
    group: CellGroup,
    disturbed: Disturbed,
    again: CellGroup | None,
    holds: Callable[[Verdict], bool],
    pairs: tuple[Noise | None, Noise | None],
    margin: float,
) -> CurveJudgement:
    """Judge a curve by its undisturbed rounds, or by all of them, or withhold its verdict.

    `again` is the curve without disturbed rounds; `holds` tests whether a winner still wins if the
    loser was slowed by as much as it can have been; `pairs` are the controls of both.
    """
    pair, code = pairs[0], ""
    lost = group.completion is not None and group.completion.held
    if disturbed.rounds and again and again.curve is not Verdict.INCONCLUSIVE and not lost:
        group, pair, code = replace(again, completion=group.completion), pairs[1], "rounds-dropped"
        reason = None
    else:
        floor = pair.margin if pair else margin
        upheld = again is not None and _side(again, floor) == (1 if group.pooled > 1 else -1)
        reason = _disturbed_reason(group, disturbed, upheld, holds)
        if group.curve in WINNERS and 2 * disturbed.rounds > disturbed.total:
            code = "slow-down-bounded"
    if reason := reason or noise_reason(group, pair, margin):
        withheld = replace(group, curve=Verdict.INCONCLUSIVE, no_verdict=reason)
        return CurveJudgement(withheld, "verdict-withheld")
    return CurveJudgement(group, code)


def _disturbed_reason(
    group: CellGroup, disturbed: Disturbed, upheld: bool, holds: Callable[[Verdict], bool]
) -> NoVerdict | None:
    """Say why a verdict over all rounds may be that of the disturbed ones; None if it is not.
    `upheld`: the interval without them is beyond the noise, too."""
    count, total = disturbed
    winner, most = group.curve in WINNERS, 2 * count > total
    if not count or group.curve is Verdict.INCONCLUSIVE:
        return None
    if winner and ((upheld and not most) or holds(group.curve)):
        return None
    kind = NoiseKind.BUSY if most else NoiseKind.RESTS
    return too_noisy(kind, [count], [total]) if most or winner else None


def same_winner(
    bounded: Callable[[Verdict], Mapping[Curve, CellGroup]], curve: Curve, winner: Verdict
) -> bool:
    """Test whether a curve has the same winner where the loser was slowed by as much as can be."""
    group = bounded(winner).get(curve)
    return group is not None and group.curve is winner


def noise_reason(group: CellGroup, pair: Noise | None, margin: float) -> NoVerdict | None:
    """Say why a curve has no verdict that it would have with less noise; None if noise is no
    reason. `pair` is its control."""
    floor = pair.margin if pair else margin
    if group.curve in WINNERS and pair and pair.false_verdicts > CALLED * pair.cells:
        return too_noisy(NoiseKind.SIZES, [pair.false_verdicts], [pair.cells])
    open_still = group.curve is Verdict.INCONCLUSIVE and (group.curve_p or 1.0) <= PLANNED_ONCE
    if open_still and _side(group, margin) and not _side(group, floor):
        return too_noisy(NoiseKind.CONTROL, [round(100 * floor)])
    return None


def control_of(group: CellGroup, noise: Sequence[Noise]) -> Noise | None:
    """Find the control of the same benchmark and layout, else the widest of the benchmark."""
    alike = [n for n in noise if n.benchmark == group.benchmark]
    return max(alike, key=lambda n: (n.layout == group.layout, n.margin), default=None)


def _side(group: CellGroup, limit: float) -> int:
    """Return on which side of 1, -1 or 1, the whole interval of a curve is beyond a limit, or 0."""
    low, high = group.pooled_low, group.pooled_high
    if low is None or high is None:
        return 0
    return (low > 1 + limit) - (high < 1 / (1 + limit))


def judged_findings(judged: Iterable[CurveJudgement]) -> Iterator[Finding]:
    """List the curves that disturbed rounds or noise concern, by what was done."""
    by_code: dict[str, list[CellGroup]] = defaultdict(list)
    for one in judged:
        if one.code and not one.group.repeats:
            by_code[one.code].append(one.group)
    for code, groups in sorted(by_code.items()):
        texts = [
            f"{g.configuration} on {g.benchmark} ({g.layout})" + (g.withheld and f": {g.withheld}")
            for g in groups
        ]
        yield Finding.of(
            code,
            count=len(texts),
            curves_word="curve" if len(texts) == 1 else "curves",
            curves=join_some(texts, SHOWN),
        )


# ------------------------------------------------------------------ rounds and words


def _launched(one: LaunchRecord | ValueRow) -> Launched:
    """Name the launch of a value as the launch itself is named."""
    return one.allocation, one.configuration, one.layout, one.round, one.replica


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
