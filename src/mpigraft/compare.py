"""Stored values -> Comparison: per size a ratio with its interval and a verdict.

The rules, tried on launches of a small noisy machine (docs/method.md has figures and sources):
1. One value per launch and size. Within a round a configuration is held against the geometric
   mean of the baseline's launches. Fewer than MIN_ROUNDS rounds: everything is inconclusive.
2. faster, slower: the 95 % interval of the median ratio lies outside what the machine does to
   the baseline's own pair of launches, and outside the margin.
3. equivalent: the interval lies inside the margin, which noise never widens; of a curve that of
   the pooled ratio does, and no size may be more than twice as far from 1.
4. A whole curve is called by a joint test over its sizes, since launches move all sizes at once,
   and the test is corrected for the campaign's curves, since more of them win more by chance,
   and for its looks: curves are tested after fixed numbers of rounds, each by a level of its own.
All is done on logarithms, so that A over B and B over A get mirrored answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial

from mpigraft import completion, looks, serial, summary
from mpigraft.blocks import Subject, Table, labels_of, table_of
from mpigraft.curve import Curve, JointTest
from mpigraft.decision import MIN_ROUNDS
from mpigraft.errors import MissingError, UsageError
from mpigraft.model import (
    AllocationRecord,
    CampaignRecord,
    CellGroup,
    Comparison,
    ConfigurationRecord,
    Finding,
    LaunchRecord,
    Level,
    Origin,
    ValueRow,
)
from mpigraft.multiplicity import adjusted_p, repeated
from mpigraft.noise import limit_of, margins_of, noise_of, pairs_of

MARGIN = 0.03  # the fixed one, unless said otherwise
ANY = 1.0  # of the level: whatever the joint test says


def compare(
    campaign: CampaignRecord,
    configurations: Sequence[ConfigurationRecord],
    values: Sequence[ValueRow],
    *,
    baseline: str | None = None,
    margin: float = MARGIN,
    allocations: Sequence[AllocationRecord] = (),
    launches: Sequence[LaunchRecord] = (),
    over: Collection[int] | None = None,
) -> Comparison:
    """Hold every configuration of a campaign against its baseline, or against `baseline`, an id
    or key or the beginning of one. `margin` is a fraction: 0.03 calls 3 % equivalent.

    With `allocations` a round that a kill split in two is still one round if it went on on the
    same host; with `launches` those that failed weigh. `over` are the rounds that nobody measures
    any more, else all that have values: a campaign of several looks takes those whose rounds are
    over. Raises UsageError for an unknown baseline or a campaign mixed with another one,
    MissingError when there is nothing to compare.
    """
    _refuse(campaign, configurations, values)
    labels = labels_of(configurations, values)
    sort = partial(table_of, hosts={a.id: a.nodes for a in allocations}, labels=labels)
    table = sort(values)
    key, told = _baseline(baseline, campaign, labels, {row.configuration for row in values})
    planned = looks.looks_of(campaign)
    judge = partial(_groups, key=key, labels=labels, campaign=campaign, margin=margin)
    groups = judge(table, level=planned[0].level if len(planned) == 1 else ANY)
    stages = [
        (look, judge(sort([r for r in values if r.round < look.rounds]), level=look.level))
        for look in looks.taken(planned, {r.round for r in values} if over is None else over)
        if len(planned) > 1
    ]
    groups = looks.called(groups, stages, planned) if len(planned) > 1 else groups
    if launches and campaign.origin is Origin.RUN:
        counts = completion.completions(table, key, labels, launches)
        groups = [completion.weighed(group, counts) for group in groups]
    noise = noise_of(table, groups, margin, campaign)
    due = looks.due(groups, planned, labels[key], _begun(launches, labels))
    findings = (
        *told,
        *table.findings,
        *summary.findings(campaign, labels, key, table, noise, MIN_ROUNDS, due),
        *serial.findings(groups, campaign),
        *completion.findings(groups),
    )
    said = Comparison(
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
    return summary.told(said)


def _begun(
    launches: Sequence[LaunchRecord], labels: Mapping[str, str]
) -> dict[tuple[str, str], int]:
    """By configuration and layout, the rounds until its last launch; empty if these are unknown."""
    found: dict[tuple[str, str], int] = defaultdict(int)
    for launch in launches:
        place = (labels.get(launch.configuration, launch.configuration), launch.layout)
        found[place] = max(found[place], launch.round + 1)
    return dict(found)


def _refuse(
    campaign: CampaignRecord,
    configurations: Sequence[ConfigurationRecord],
    values: Sequence[ValueRow],
) -> None:
    """Raise UsageError for configurations of another campaign, MissingError for no values."""
    if strange := {c.campaign for c in configurations} - {campaign.id}:
        raise UsageError(
            f"configurations of campaign {min(strange)} among those of {campaign.id}",
            why="another campaign is another time and perhaps another machine",
            mend="compare one campaign at a time",
        )
    if not values:
        raise MissingError(
            f"campaign {campaign.name} ({campaign.id[:8]}) has no value to compare",
            mend="`mpigraft results show` says how its launches ended",
        )


def _groups(
    table: Table,
    key: str,
    labels: dict[str, str],
    campaign: CampaignRecord,
    margin: float,
    level: float,
) -> list[CellGroup]:
    """Every curve against the baseline `key`, by a joint test at `level`."""
    margins = margins_of(pairs_of(table), margin)
    curves = _curves(table, key, labels, campaign)
    tests = _joint_tests(curves, campaign.seed)
    return [
        curve.group(margin, limit_of(margins, curve.subject, margin), test, level)
        for curve, test in zip(curves, tests, strict=True)
    ]


def _curves(
    table: Table, baseline: str, labels: dict[str, str], campaign: CampaignRecord
) -> list[Curve]:
    """Every configuration against the baseline, wherever the two have a size in common."""
    found = []
    for subject, held in sorted(table.subjects.items()):
        others = set(held.logs) - {baseline} if baseline in held.logs else set()
        for other in sorted(others, key=labels.__getitem__):
            arms = (held.arm(other), held.arm(baseline))
            places = (table.rounds(held), table.numbers(held))
            curve = Curve(subject, labels[other], held.sizes, arms, places, campaign)
            if curve.sizes:
                found.append(curve)
    return found


def _joint_tests(curves: Sequence[Curve], seed: int) -> list[JointTest]:
    """The joint test of each curve, corrected for the number of those that are measurements of
    their own; a curve that repeats another has the p of that one."""
    measured: dict[str, dict[Subject, Curve]] = defaultdict(dict)
    for curve in curves:
        measured[curve.label][curve.subject] = curve
    repeats = [repeated(curve.subject, measured[curve.label]) for curve in curves]
    tested = [c for c, metric in zip(curves, repeats, strict=True) if c.tested and not metric]
    logs, rounds = [c.logs for c in tested], [c.rounds for c in tested]
    every = dict(zip(tested, adjusted_p(logs, rounds, seed), strict=True))
    found = []
    for curve, metric in zip(curves, repeats, strict=True):
        own = curve.subject._replace(metric=metric) if metric else curve.subject
        counted = measured[curve.label][own]
        p = every.get(counted)
        alone = None if p is None else adjusted_p([counted.logs], [counted.rounds], seed)[0]
        found.append(JointTest(p, alone, metric))
    return found


def _baseline(
    wish: str | None, campaign: CampaignRecord, labels: dict[str, str], measured: set[str]
) -> tuple[str, tuple[Finding, ...]]:
    """The key of the baseline, and what has to be said of the choice."""
    if wish:
        names = {k: (k, i) for k, i in labels.items() if k in measured}
        hits = [k for k, both in names.items() if wish in both]
        hits = hits or [k for k, both in names.items() if any(n.startswith(wish) for n in both)]
        if len(hits) == 1:
            return hits[0], ()
        listed = ", ".join(sorted(labels[k] for k in hits or names))
        problem = "begins the names of several configurations" if hits else "has no values here"
        raise UsageError(f"baseline {wish!r} {problem}", mend=f"name one of: {listed}")
    if campaign.baseline in measured:
        return campaign.baseline, ()
    first = min(measured, key=labels.__getitem__)
    meant = labels.get(campaign.baseline, campaign.baseline[:8])
    seen = f"the campaign's baseline {meant} has no values; {labels[first]} stands in"
    why = "the two launches of the baseline in each round say how much the machine varies"
    return first, (Finding(Level.WARNING, "baseline-missing", seen, why),)
