"""Withhold verdicts that rest on the launches that did not fail.

A launch that failed, was killed, ran something else or gave wrong data is not a slow launch: the
others are a selection of the good ones. So if one side loses more of its launches than the other,
and chance does not explain it, that side is called neither faster nor equivalent.

Chance explains it if both hold: Fisher's exact test, one-sided, has a p above CHANCE (Statistical
Methods for Research Workers, 21.02), and the lost launches, had they been the worst of all, would
not reach the interval of the median. The second is for few launches: Fisher's test cannot decide
there, and the interval depends on each of them. Launches that have not run yet do not count.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mpigraft.analysis.grouping import SeriesTable
from mpigraft.analysis.statistics.bootstrap import filled, median_rank
from mpigraft.analysis.verdict_rules import crossovers
from mpigraft.core.arrays import Floats, np
from mpigraft.core.model import (
    Benchmark,
    CellGroup,
    Completion,
    Finding,
    LaunchCount,
    LaunchRecord,
    LaunchState,
    SeriesKey,
    Verdict,
    layout_order,
)
from mpigraft.core.text import join_some

CHANCE = 0.05
SHOWN = 4  # curves of a configuration in a finding

Counts = tuple[int, int]  # launches that gave a whole curve, and launches that ended


def count_launches(launches: Sequence[LaunchRecord]) -> Counter[tuple[str, str]]:
    """Count the launches that ended, well or not, by configuration (key) and layout."""
    return Counter((launch.configuration, launch.layout) for launch in launches)


def launch_counts(
    launches: Sequence[LaunchRecord], labels: dict[str, str]
) -> tuple[LaunchCount, ...]:
    """Count the launches of each configuration and layout that ended well, sorted by id."""
    good = count_launches([launch for launch in launches if launch.state is LaunchState.OK])
    counts = [
        LaunchCount(labels.get(key, key), layout, good[key, layout], count)
        for (key, layout), count in count_launches(launches).items()
    ]
    counts.sort(key=lambda c: (layout_order(c.configuration), layout_order(c.layout)))
    return tuple(counts)


def completions(
    table: SeriesTable, baseline: str, labels: dict[str, str], launches: Sequence[LaunchRecord]
) -> dict[tuple[SeriesKey, str], Completion]:
    """Judge the lost launches of each series and configuration (its label) against those of the
    baseline (a key)."""
    programs = [Benchmark.parse(p) for p in {x.program for x in launches} if p]
    launched = {
        p: count_launches([x for x in launches if x.program == p])
        for p in ("", *(b.key for b in programs))
    }
    results = {}
    for series_key, series in table.series.items():
        program = program_of(Benchmark.parse(series_key.benchmark), programs)
        required = series.sizes_of(baseline) if baseline in series.logs else set()
        columns = [size in required for size in series.sizes]
        counts = {
            key: (whole_launches(logs, columns), launched[program][key, series_key.layout])
            for key, logs in series.logs.items()
        }
        for key, count in counts.items():
            if key != baseline and baseline in counts:
                results[series_key, labels[key]] = judge_completion(count, counts[baseline])
    return results


def program_of(benchmark: Benchmark, programs: Sequence[Benchmark]) -> str:
    """Key of the benchmark whose program measured this one; empty: it had none of its own. The
    one with most options is meant where two of one name were asked for."""
    covering = [p for p in programs if p.covers(benchmark)]
    return max(covering, key=lambda p: (len(p.options), p.key)).key if covering else ""


def whole_launches(logs: Floats, required: Sequence[bool]) -> int:
    """Count the launches with a value at every size that is `required`, since the baseline has it,
    or that any of them has. `logs` is (replicas, rounds, sizes), NaN where there is no value."""
    launches = logs.reshape(-1, logs.shape[-1])
    known = ~np.isnan(launches[:, filled(launches) | np.array(required)])
    return int((known.all(axis=1) & known.any(axis=1)).sum())


def judge_completion(candidate: Counts, baseline: Counts) -> Completion:
    """Find the side that loses more of its launches than chance explains."""
    lost = [max(count - good, 0) for good, count in (candidate, baseline)]
    worse, other = (0, 1) if lost[0] * baseline[1] >= lost[1] * candidate[1] else (1, 0)
    counts = (max(candidate), max(baseline))
    p = fisher((lost[worse], counts[worse]), (lost[other], counts[other]))
    uneven = lost[worse] * counts[other] > lost[other] * counts[worse]
    few = lost[worse] >= median_rank(counts[worse])
    loser = ("configuration", "baseline")[worse] if uneven and (p <= CHANCE or few) else ""
    return Completion(
        counts[0] - lost[0], counts[0], counts[1] - lost[1], counts[1], p if uneven else None, loser
    )


def fisher(worse: tuple[int, int], other: tuple[int, int]) -> float:
    """Return the chance that as many or more of all lost launches fall to the `worse` side, if
    both lose alike: the hypergeometric tail. A side is (lost, launched)."""
    lost, launched = worse[0] + other[0], worse[1] + other[1]
    ways = sum(
        math.comb(worse[1], k) * math.comb(other[1], lost - k)
        for k in range(worse[0], min(lost, worse[1]) + 1)
    )
    return ways / math.comb(launched, lost)


def apply_completion(
    group: CellGroup, completions: Mapping[tuple[SeriesKey, str], Completion]
) -> CellGroup:
    """Add its completion to a group, and withhold verdicts that rest on the launches which the
    side that loses more of them did not lose."""
    completion = completions[group.series, group.configuration]
    better = {"configuration": Verdict.FASTER, "baseline": Verdict.SLOWER}.get(completion.loser)
    withheld = () if better is None else (better, Verdict.EQUIVALENT)
    cells = tuple(
        replace(c, verdict=Verdict.INCONCLUSIVE) if c.verdict in withheld else c
        for c in group.cells
    )
    held = group.curve in withheld or cells != group.cells
    if group.curve in withheld:
        group = replace(group, curve=Verdict.INCONCLUSIVE, look=None, joint=None)
    return replace(
        group,
        cells=cells,
        crossovers=crossovers(cells),
        completion=replace(completion, held=held),
    )


def findings(groups: Sequence[CellGroup]) -> tuple[Finding, ...]:
    """Warn of each configuration with verdicts that were withheld."""
    curves: dict[tuple[str, str], list[str]] = defaultdict(list)
    for group in groups:
        counts = group.completion
        if counts is not None and counts.held and not group.repeats:
            curves[group.configuration, counts.loser].append(
                f"{group.benchmark} on {group.layout} {counts.completed} of {counts.launched}, "
                f"the baseline {counts.baseline_completed} of {counts.baseline_launched}"
            )
    return tuple(
        Finding.of(
            "launches-lost",
            configuration=configuration,
            counts=join_some(texts, SHOWN),
            side=_side(loser, configuration),
        )
        for (configuration, loser), texts in sorted(curves.items())
    )


def _side(loser: str, configuration: str) -> str:
    return configuration if loser == "configuration" else "the baseline"
