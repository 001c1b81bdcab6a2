"""Compare two campaigns: each configuration with itself, then and now.

Values are those of launches, one for each round; the verdicts have the rules of a comparison within
a campaign (`analysis.comparison`). Two things differ. Nothing pairs the rounds, which makes the
intervals wider (`shift`). And two days differ by more than two launches of a day: an interval says
what was so in the allocations that were measured, which a finding states.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial

from mpigraft.analysis import completion, cut, summary
from mpigraft.analysis.between_campaigns.curve import Side, UnpairedCurve
from mpigraft.analysis.between_campaigns.permutation import joint_p
from mpigraft.analysis.curve_comparison import JointTest, Limits
from mpigraft.analysis.disturbance import (
    CurveJudgement,
    Disturbed,
    control_of,
    disturbed_rounds,
    judge_group,
    judged_findings,
    same_winner,
    slow_downs,
    without_slow_down,
)
from mpigraft.analysis.grouping import Series, SeriesTable, labels_of, table_of
from mpigraft.analysis.interim import PLANNED_ONCE
from mpigraft.analysis.multiplicity import repeated_metric
from mpigraft.analysis.noise import limit_of, margins_of, noise_of, pairs_of
from mpigraft.analysis.overtime.matching import (
    MatchedConfiguration,
    labels_with_values,
    match_configurations,
    unmatched,
)
from mpigraft.analysis.verdict_rules import MIN_ROUNDS
from mpigraft.core.arrays import np
from mpigraft.core.errors import MissingError
from mpigraft.core.model import (
    AcrossRule,
    CellGroup,
    Comparison,
    Completion,
    Finding,
    Measured,
    Noise,
    Origin,
    SeriesKey,
    ValueRow,
    Verdict,
    layout_order,
)
from mpigraft.core.numbers import counted
from mpigraft.core.text import join_some

SHOWN = 8  # configurations in a finding
WINNERS = (Verdict.FASTER, Verdict.SLOWER)


USUAL = AcrossRule(level=PLANNED_ONCE)


def campaign_table(side: Measured, rows: Sequence[ValueRow]) -> SeriesTable:
    """Sort values of a campaign into what may be compared."""
    labels = labels_of(side.configurations, side.values)
    return table_of(rows, {a.id: a.nodes for a in side.allocations}, labels)


def compare_campaigns(old: Measured, new: Measured, rule: AcrossRule = USUAL) -> Comparison:
    """Compare every configuration of `new` with the one of `old` that it continues.

    Raises MissingError when the campaigns have no configuration or no curve in common, UsageError
    for a match by hand that names none.
    """
    before, after = labels_with_values(old), labels_with_values(new)
    pairs = match_configurations(before, after, rule.chosen)
    judge = partial(_judge, old, new, pairs, rule)
    whole, noise, tables = judge(old.values, new.values)
    if not whole:
        raise MissingError.of("campaigns-no-match", old=old.title, new=new.title)
    judged = _withheld(old, new, pairs, rule, whole, noise)
    groups = [one.group for one in judged]
    rounds = min(len(table.allocation) for table in tables)
    findings = (
        *(f for table in tables for f in table.findings),
        *_matching_findings(unmatched(before, after, pairs), old, new),
        *_gaps(old, new, groups, rounds),
        *completion.findings(groups),
        *cut.cut_findings(_cut(old, new, pairs)),
        *judged_findings(judged),
    )
    comparison = Comparison(
        new.campaign.id,
        old.title,
        new.campaign.origin,
        rounds,
        tuple(groups),
        noise,
        findings,
        launches=completion.launch_counts(new.launches, after),
    )
    return summary.with_summary(comparison)


def _judge(
    old: Measured,
    new: Measured,
    pairs: Sequence[MatchedConfiguration],
    rule: AcrossRule,
    old_rows: Sequence[ValueRow],
    new_rows: Sequence[ValueRow],
) -> tuple[list[CellGroup], tuple[Noise, ...], tuple[SeriesTable, SeriesTable]]:
    tables = campaign_table(new, new_rows), campaign_table(old, old_rows)
    curves = _curves(tables, pairs, new.campaign.seed)
    tests = _tests(curves, tables, new.campaign.seed)
    margins = margins_of(pairs_of(tables[0]), rule.margin)
    for place, margin in margins_of(pairs_of(tables[1]), rule.margin).items():
        margins[place] = max(margins.get(place, margin), margin)
    groups = []
    for curve, test in zip(curves.values(), tests, strict=True):
        limits = Limits(rule.margin, limit_of(margins, curve.key, rule.margin), rule.level)
        groups.append(curve.group(limits, test))
    counts = _completions(tables, pairs, (new, old))
    groups = [completion.apply_completion(group, counts) for group in groups]
    groups = cut.withhold_cut(groups, _cut(old, new, pairs))
    noise = [
        *noise_of(tables[0], groups, rule.margin, new.campaign),
        *noise_of(tables[1], groups, rule.margin, old.campaign),
    ]
    worst = {(n.benchmark, n.layout): n for n in sorted(noise, key=lambda n: n.margin)}
    places = sorted(worst, key=lambda place: (place[0], layout_order(place[1])))
    return groups, tuple(worst[place] for place in places), tables


def _cut(old: Measured, new: Measured, pairs: Sequence[MatchedConfiguration]) -> cut.Cut:
    """Return the curves whose tables in either campaign may lack the end."""
    return cut.cut_tables(old.launches, {pair.old: pair.name for pair in pairs}) | (
        cut.cut_tables(new.launches, {pair.new: pair.name for pair in pairs})
    )


Key = tuple[SeriesKey, MatchedConfiguration]


def _curves(
    tables: tuple[SeriesTable, SeriesTable], pairs: Sequence[MatchedConfiguration], seed: int
) -> dict[Key, UnpairedCurve]:
    """Return every curve that both campaigns have, at the sizes that both have."""
    curves = {}
    both = set(tables[0].series) & set(tables[1].series)
    for key in sorted(both, key=lambda key: key.order):
        for pair in sorted(pairs, key=lambda pair: pair.name):
            series = [table.series[key] for table in tables]
            if pair.new not in series[0].logs or pair.old not in series[1].logs:
                continue
            sizes = sorted(set(series[0].sizes) & set(series[1].sizes))
            sides = [
                _side(table, one, name, sizes)
                for table, one, name in zip(tables, series, (pair.new, pair.old), strict=True)
            ]
            curve = UnpairedCurve(key, pair.name, sizes, (sides[0], sides[1]), seed)
            if curve.sizes:
                curves[key, pair] = curve
    return curves


def _side(table: SeriesTable, series: Series, configuration: str, sizes: Sequence[int]) -> Side:
    columns = np.array([series.sizes.index(size) for size in sizes], dtype=np.int64)
    arm = series.arm(configuration)
    arm = arm._replace(logs=arm.logs[:, columns], steps=arm.steps[:, columns])
    return Side(arm, table.rounds_of(series), table.allocations_of(series))


def _tests(
    curves: Mapping[Key, UnpairedCurve], tables: tuple[SeriesTable, SeriesTable], seed: int
) -> list[JointTest]:
    """Test each curve over its sizes, corrected for the number of independent measurements."""
    measured: dict[MatchedConfiguration, set[SeriesKey]] = defaultdict(set)
    for key, pair in curves:
        measured[pair].add(key)
    repeats = {place: repeated_metric(place[0], measured[place[1]]) for place in curves}
    arms = {
        place: arms
        for place, curve in curves.items()
        if not repeats[place] and (arms := curve.arms) is not None
    }
    counts = len(tables[0].allocation), len(tables[1].allocation)
    p_of = dict(zip(arms, joint_p(list(arms.values()), counts, seed), strict=True))
    tests = []
    for key, pair in curves:
        metric = repeats[key, pair]
        place = (key._replace(metric=metric) if metric else key, pair)
        p, alone = p_of.get(place, (None, None))
        tests.append(JointTest(p, alone, metric))
    return tests


def _completions(
    tables: tuple[SeriesTable, SeriesTable],
    pairs: Sequence[MatchedConfiguration],
    sides: tuple[Measured, Measured],
) -> dict[tuple[SeriesKey, str], Completion]:
    """Judge the lost launches of each curve in the new campaign against those in the old one."""
    launched = [completion.count_launches(side.launches) for side in sides]
    results = {}
    for key in set(tables[0].series) & set(tables[1].series):
        series = [table.series[key] for table in tables]
        for pair in pairs:
            names = (pair.new, pair.old)
            if not all(name in one.logs for name, one in zip(names, series, strict=True)):
                continue
            common = set.intersection(
                *(one.sizes_of(name) for name, one in zip(names, series, strict=True))
            )
            counts = [
                (
                    completion.whole_launches(
                        one.logs[name][..., [size in common for size in one.sizes]],
                        [True] * len(common),
                    ),
                    made[name, key.layout],
                )
                for name, one, made in zip(names, series, launched, strict=True)
                if common
            ]
            if counts:
                results[key, pair.name] = completion.judge_completion(counts[0], counts[1])
    return results


def _withheld(
    old: Measured,
    new: Measured,
    pairs: Sequence[MatchedConfiguration],
    rule: AcrossRule,
    whole: Sequence[CellGroup],
    noise: Sequence[Noise],
) -> list[CurveJudgement]:
    """Withhold the verdicts that are within the noise, as within a campaign."""
    sides = (new, old)
    factors = [slow_downs(side.values, side.launches) for side in sides]
    marks = [[factor <= 1 for factor in own] for own in factors]
    rest = [
        [row for row, is_clean in zip(side.values, own, strict=True) if is_clean]
        for side, own in zip(sides, marks, strict=True)
    ]
    again = {}
    if all(rest) and any(len(rows) < len(s.values) for rows, s in zip(rest, sides, strict=True)):
        # Launches without values were left out, not lost.
        then, now = replace(old, launches=()), replace(new, launches=())
        again = {_place(g): g for g in _judge(then, now, pairs, rule, rest[1], rest[0])[0]}

    @cache
    def bounded(winner: Verdict) -> dict[Place, CellGroup]:
        """Compare all values, as if the loser had been slowed by as much as it can have been."""
        values = [side.values for side in sides]
        loser = 1 if winner is Verdict.FASTER else 0
        values[loser] = tuple(map(without_slow_down, values[loser], factors[loser]))
        return {_place(g): g for g in _judge(old, new, pairs, rule, values[1], values[0])[0]}

    rounds = _disturbed_rounds(pairs, sides, marks)
    judged = []
    for group in whole:
        place, pair = _place(group), control_of(group, noise)
        worst = max(rounds[place], key=lambda pair: pair.rounds / max(pair.total, 1))
        holds = partial(same_winner, bounded, place)
        judged.append(judge_group(group, worst, again.get(place), holds, (pair, pair), rule.margin))
    return judged


Place = tuple[SeriesKey, str]


def _place(group: CellGroup) -> Place:
    return group.series, group.configuration


def _disturbed_rounds(
    pairs: Sequence[MatchedConfiguration],
    sides: tuple[Measured, Measured],
    clean: Sequence[Sequence[bool]],
) -> dict[Place, list[Disturbed]]:
    """Count, for each curve and campaign, the disturbed rounds and all rounds."""
    counts: dict[Place, list[Disturbed]] = defaultdict(list)
    for number, (side, marks) in enumerate(zip(sides, clean, strict=True)):
        names = {(pair.new, pair.old)[number]: pair.name for pair in pairs}
        for place, rounds in disturbed_rounds(side.values, marks, names).items():
            counts[place].append(Disturbed(sum(rounds.values()), len(rounds)))
    return counts


def _matching_findings(
    alone: tuple[tuple[str, ...], tuple[str, ...]], old: Measured, new: Measured
) -> list[Finding]:
    findings = []
    sides = ((alone[0], old, new), (alone[1], new, old))
    for labels, having, lacking in sides:
        if labels:
            listed = join_some(labels, SHOWN, ", ")
            findings.append(
                Finding.of(
                    "match-none",
                    count=counted(len(labels), "configuration"),
                    listed=listed,
                    having=having.title,
                    lacking=lacking.title,
                )
            )
    return findings


def _gaps(old: Measured, new: Measured, groups: Sequence[CellGroup], rounds: int) -> list[Finding]:
    """Report too few rounds, and curves and sizes that one of the campaigns lacks."""
    findings = []
    if Origin.IMPORT in (old.campaign.origin, new.campaign.origin):
        findings.append(Finding.of("campaign-import-compared", old=old.title, new=new.title))
    if any(len(side.allocations) < 2 for side in (old, new)):
        findings.append(Finding.of("allocations-single"))
    if rounds < MIN_ROUNDS:
        findings.append(_too_few(old, new, rounds))
    compared = {_place(group)[0] for group in groups}
    for side, other in ((old, new), (new, old)):
        table = campaign_table(side, side.values)
        missing = sorted(
            f"{key.benchmark} ({key.layout})" for key in table.series if key not in compared
        )
        if missing:
            listed = join_some(list(dict.fromkeys(missing)), SHOWN, ", ")
            findings.append(
                Finding.of(
                    "curves-unmatched", listed=listed, having=side.title, lacking=other.title
                )
            )
        if gaps := "; ".join(_missing_sizes(table, campaign_table(other, other.values), compared)):
            findings.append(Finding.of("values-missing", label=other.title, gaps=gaps))
    return findings


def _missing_sizes(
    having: SeriesTable, lacking: SeriesTable, compared: set[SeriesKey]
) -> Iterator[str]:
    """Name the sizes of curves that were compared which only one of the campaigns has."""
    for key in sorted(compared, key=lambda key: key.order):
        sizes = having.series[key].sizes
        if missing := set(sizes).difference(lacking.series[key].sizes):
            listed = summary.listed_sizes(missing, sizes)
            yield f"{key.benchmark} ({key.layout}) at sizes {listed}"


def _too_few(old: Measured, new: Measured, rounds: int) -> Finding:
    short = min((old, new), key=lambda side: len({(r.allocation, r.round) for r in side.values}))
    return Finding.of(
        "rounds-few-across",
        rounds=counted(rounds, "round"),
        min_rounds=MIN_ROUNDS,
        advice=summary.more_rounds(short.campaign),
    )
