"""Compare stored values: per size a ratio with its interval and a verdict.

The rules were tried on launches of a small noisy machine (figures: docs/explanation/method.md):
1. One value per launch and size. In each round a configuration is compared with the geometric
   mean of the baseline's launches. With fewer than MIN_ROUNDS rounds everything is inconclusive.
2. faster, slower: the 95 % interval of the median ratio is outside the margin, and outside what
   the baseline's own two launches of a round differ by.
3. equivalent: the interval is inside the margin, which noise never widens. For a curve it is
   the interval of the pooled ratio, and no size may be more than twice as far from 1.
4. A whole curve is called by a joint test over its sizes, because a launch moves all sizes at
   once. The test is corrected for the campaign's curves, because more curves give more chance
   winners, and for its looks: curves are tested after fixed numbers of rounds, each at its level.
All is done on logarithms, so that A over B and B over A get mirrored answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mpigraft.analysis import completion, summary
from mpigraft.analysis.curve_comparison import JointTest, Limits
from mpigraft.analysis.curves import PairedCurve
from mpigraft.analysis.disturbance import slow_downs, withhold_verdicts
from mpigraft.analysis.grouping import SeriesTable, labels_of, table_of
from mpigraft.analysis.interim import called_curves, campaign_looks, due_looks, looks_taken
from mpigraft.analysis.multiplicity import adjusted_p, repeated_metric
from mpigraft.analysis.noise import limit_of, margins_of, noise_of, pairs_of
from mpigraft.analysis.statistics import serial
from mpigraft.core.errors import MissingError, UsageError
from mpigraft.core.model import (
    CampaignRecord,
    CellGroup,
    Comparison,
    Finding,
    LaunchRecord,
    Measured,
    Origin,
    SeriesKey,
    ValueRow,
    layout_order,
)

MARGIN = 0.03  # the default of --margin
ANY = 1.0  # a level that every joint test passes


def compare(
    side: Measured,
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    over: Collection[int] | None = None,
) -> Comparison:
    """Compare every configuration of a campaign with its baseline, or with `baseline`: an id, a
    key, or the beginning of one. `margin` is a fraction: 0.03 calls 3 % equivalent.

    With allocations, a round that a kill split is still one round if it went on on the same
    host. With launches, failed launches withhold verdicts. `over` are the finished rounds; the
    default is all that have values. Of several looks, those whose rounds are over are taken.
    Raises UsageError for an unknown baseline or configurations of another campaign, MissingError
    when there is nothing to compare.
    """
    campaign, values, launches = side.campaign, side.values, side.launches
    _check_input(side)
    labels = labels_of(side.configurations, values)
    sort = partial(table_of, hosts={a.id: a.nodes for a in side.allocations}, labels=labels)
    table = sort(values)
    key, baseline_findings = _select_baseline(baseline, campaign, labels, values)
    planned = campaign_looks(campaign)
    judge = partial(_groups, key=key, labels=labels, campaign=campaign, margin=margin)
    groups = judge(table, level=planned[0].level if len(planned) == 1 else ANY)
    stages = [
        (look, judge(sort([r for r in values if r.round < look.rounds]), level=look.level))
        for look in looks_taken(planned, {r.round for r in values} if over is None else over)
        if len(planned) > 1
    ]
    groups = called_curves(groups, stages, planned) if len(planned) > 1 else groups
    if launches and campaign.origin is Origin.RUN:
        counts = completion.completions(table, key, labels, launches)
        groups = [completion.apply_completion(group, counts) for group in groups]
    noise = noise_of(table, groups, margin, campaign)
    due = due_looks(groups, planned, labels[key], _rounds_begun(launches, labels))
    findings = (
        *baseline_findings,
        *table.findings,
        *summary.findings(campaign, labels, key, table, noise, due),
        *serial.findings(groups, campaign),
        *completion.findings(groups),
    )
    comparison = Comparison(
        campaign.id,
        labels[key],
        campaign.origin,
        len(table.allocation),
        tuple(groups),
        noise,
        findings,
        launches=completion.launch_counts(launches, labels),
        looks=planned,
        taken=len(stages),
    )
    return summary.with_summary(comparison)


def judge_campaign(
    side: Measured,
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    over: Collection[int] | None = None,
) -> Comparison:
    """Compare as `compare` does, and withhold verdicts for which the campaign is too noisy."""

    def again(values: Sequence[ValueRow]) -> Comparison:
        # Launches without values were left out, not lost.
        launches = side.launches if len(values) == len(side.values) else ()
        same = replace(side, values=tuple(values), launches=launches)
        return compare(same, baseline=baseline, margin=margin, over=over)

    factors = slow_downs(side.values, side.launches)
    labels = labels_of(side.configurations, side.values)
    return withhold_verdicts(again, side.values, factors, labels, margin)


def _rounds_begun(
    launches: Sequence[LaunchRecord], labels: Mapping[str, str]
) -> dict[tuple[str, str], int]:
    """Count the rounds up to the last launch of each configuration (label) and layout."""
    rounds: dict[tuple[str, str], int] = defaultdict(int)
    for launch in launches:
        pair = (labels.get(launch.configuration, launch.configuration), launch.layout)
        rounds[pair] = max(rounds[pair], launch.round + 1)
    return dict(rounds)


def _check_input(side: Measured) -> None:
    """Raise UsageError for configurations of another campaign, MissingError for no values."""
    campaign = side.campaign
    if others := {c.campaign for c in side.configurations} - {campaign.id}:
        raise UsageError.of("campaigns-mixed", other=min(others), campaign=campaign.id)
    if not side.values:
        raise MissingError.of("campaign-empty", name=campaign.name, campaign=campaign.id[:8])


def _groups(
    table: SeriesTable,
    key: str,
    labels: dict[str, str],
    campaign: CampaignRecord,
    margin: float,
    level: float,
) -> list[CellGroup]:
    """Judge every curve against the baseline `key`, by a joint test at `level`."""
    margins = margins_of(pairs_of(table), margin)
    curves = _curves(table, key, labels, campaign)
    tests = _joint_tests(curves, campaign.seed)
    return [
        curve.group(Limits(margin, limit_of(margins, curve.key, margin), level), test)
        for curve, test in zip(curves, tests, strict=True)
    ]


def _curves(
    table: SeriesTable, baseline: str, labels: dict[str, str], campaign: CampaignRecord
) -> list[PairedCurve]:
    """Pair every configuration with the baseline, wherever the two have a size in common."""
    curves = []
    for key, series in sorted(table.series.items(), key=lambda item: item[0].order):
        others = set(series.logs) - {baseline} if baseline in series.logs else set()
        for other in sorted(others, key=lambda key: layout_order(labels[key])):
            arms = (series.arm(other), series.arm(baseline))
            blocks = (table.rounds_of(series), table.allocations_of(series))
            curve = PairedCurve(key, labels[other], series.sizes, arms, blocks, campaign)
            if curve.sizes:
                curves.append(curve)
    return curves


def _joint_tests(curves: Sequence[PairedCurve], seed: int) -> list[JointTest]:
    """Test each curve over its sizes, corrected for the number of independent measurements. A
    curve that repeats another has the p of that one."""
    measured: dict[str, dict[SeriesKey, PairedCurve]] = defaultdict(dict)
    for curve in curves:
        measured[curve.label][curve.key] = curve
    repeats = [repeated_metric(curve.key, measured[curve.label]) for curve in curves]
    tested = [c for c, metric in zip(curves, repeats, strict=True) if c.tested and not metric]
    logs, rounds = [c.logs for c in tested], [c.rounds for c in tested]
    p_of = dict(zip(tested, adjusted_p(logs, rounds, seed), strict=True))
    tests = []
    for curve, metric in zip(curves, repeats, strict=True):
        key = curve.key._replace(metric=metric) if metric else curve.key
        counted = measured[curve.label][key]
        p = p_of.get(counted)
        alone = None if p is None else adjusted_p([counted.logs], [counted.rounds], seed)[0]
        tests.append(JointTest(p, alone, metric))
    return tests


def _select_baseline(
    requested: str | None,
    campaign: CampaignRecord,
    labels: dict[str, str],
    values: Sequence[ValueRow],
) -> tuple[str, tuple[Finding, ...]]:
    """Find the key of the baseline, with a finding if the campaign's own has no values."""
    measured = {row.configuration for row in values}
    if requested:
        names = {k: (k, i) for k, i in labels.items() if k in measured}
        hits = [k for k, both in names.items() if requested in both] or [
            k for k, both in names.items() if any(n.startswith(requested) for n in both)
        ]
        if len(hits) == 1:
            return hits[0], ()
        listed = ", ".join(sorted(labels[k] for k in hits or names))
        problem = "begins the names of several configurations" if hits else "has no values here"
        near = () if hits else (labels[key] for key in names)
        raise UsageError.unknown("baseline-unknown", requested, near, problem=problem, known=listed)
    if campaign.baseline in measured:
        return campaign.baseline, ()
    first = min(measured, key=lambda key: layout_order(labels[key]))
    planned = labels.get(campaign.baseline, campaign.baseline[:8])
    return first, (Finding.of("baseline-missing", planned=planned, other=labels[first]),)
