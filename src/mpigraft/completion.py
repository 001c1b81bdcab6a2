"""Launches that failed, and what the verdicts of those that did not are worth.

A launch that failed, was ended, ran something else or gave wrong data is not a slow launch: what
is left is a choice of the good ones. So where one side loses more of its launches than the other,
and chance does not explain it, that side is called neither faster nor equivalent.

Chance explains it if Fisher's exact test, one-sided, has a p above CHANCE (Statistical Methods for
Research Workers, 21.02) and fewer were lost than reach the interval of the median, had they been
the worst of all: of few launches Fisher sees nothing, and that interval hangs on each of them.
Launches that have not run yet are none.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mpigraft.blocks import Subject, Table
from mpigraft.decision import crossovers
from mpigraft.model import (
    Cell,
    CellGroup,
    Completion,
    Finding,
    LaunchCount,
    LaunchRecord,
    LaunchState,
    Level,
    Verdict,
)
from mpigraft.stats import filled, median_rank

if TYPE_CHECKING:
    from mpigraft.stats import Floats

CHANCE = 0.05
SHOWN = 4  # curves of a configuration that a finding names

Started = Counter[tuple[str, str]]  # launches by configuration (key) and layout


def started(launches: Sequence[LaunchRecord]) -> Started:
    """How many launches of each configuration on each layout have ended, well or not."""
    return Counter((launch.configuration, launch.layout) for launch in launches)


def launch_counts(
    launches: Sequence[LaunchRecord], labels: dict[str, str]
) -> tuple[LaunchCount, ...]:
    """Of each configuration on each layout, how many launches ended well, sorted by its id."""
    good = started([launch for launch in launches if launch.state is LaunchState.OK])
    every = started(launches)
    return tuple(
        sorted(
            LaunchCount(labels.get(key, key), layout, good[key, layout], count)
            for (key, layout), count in every.items()
        )
    )


def completions(
    table: Table, baseline: str, labels: dict[str, str], launches: Sequence[LaunchRecord]
) -> dict[tuple[Subject, str], Completion]:
    """Of each subject and configuration (its label) held against the baseline (a key)."""
    every = started(launches)
    found = {}
    for subject, held in table.subjects.items():
        due = held.sizes_of(baseline) if baseline in held.logs else set()
        columns = [size in due for size in held.sizes]
        counts = {
            key: (whole_launches(logs, columns), every[key, subject.layout])
            for key, logs in held.logs.items()
        }
        for key, count in counts.items():
            if key != baseline and baseline in counts:
                found[subject, labels[key]] = completion(count, counts[baseline])
    return found


def whole_launches(logs: Floats, due: Sequence[bool]) -> int:
    """How many launches gave a value at every size that is `due`, since the baseline has it, or
    that any of them gave one at. `logs` is (replicas, rounds, sizes), NaN where there is none."""
    import numpy as np

    launches = logs.reshape(-1, logs.shape[-1])
    known = ~np.isnan(launches[:, filled(launches) | np.array(due)])
    return int((known.all(axis=1) & known.any(axis=1)).sum())


def completion(mine: tuple[int, int], base: tuple[int, int]) -> Completion:
    """Judge two counts, each of launches that gave a whole curve and of those that were started."""
    lost = [max(count - good, 0) for good, count in (mine, base)]
    worse, other = (0, 1) if lost[0] * base[1] >= lost[1] * mine[1] else (1, 0)
    counts = (max(mine), max(base))
    p = fisher((lost[worse], counts[worse]), (lost[other], counts[other]))
    uneven = lost[worse] * counts[other] > lost[other] * counts[worse]
    few = lost[worse] >= median_rank(counts[worse])
    loser = ("configuration", "baseline")[worse] if uneven and (p <= CHANCE or few) else ""
    return Completion(
        counts[0] - lost[0], counts[0], counts[1] - lost[1], counts[1], p if uneven else None, loser
    )


def fisher(one: tuple[int, int], other: tuple[int, int]) -> float:
    """The chance that of the lost launches of both as many or more fall to `one`, each being
    (lost, launched), if all launches are lost alike: the hypergeometric tail."""
    lost, launched = one[0] + other[0], one[1] + other[1]
    ways = sum(
        math.comb(one[1], k) * math.comb(other[1], lost - k)
        for k in range(one[0], min(lost, one[1]) + 1)
    )
    return ways / math.comb(launched, lost)


def weighed(group: CellGroup, counts: Mapping[tuple[Subject, str], Completion]) -> CellGroup:
    """The group with its completion of `counts`, and without verdicts that rest on the launches
    which the side that loses more of them has left."""
    subject = Subject(group.benchmark, group.metric, group.layout, group.buffers)
    found = counts[subject, group.configuration]
    better = {"configuration": Verdict.FASTER, "baseline": Verdict.SLOWER}.get(found.loser)
    held = () if better is None else (better, Verdict.EQUIVALENT)
    cells = tuple(_cell(cell, held) for cell in group.cells)
    any_held = group.curve in held or cells != group.cells
    return replace(
        group,
        cells=cells,
        curve=Verdict.INCONCLUSIVE if group.curve in held else group.curve,
        look=None if group.curve in held else group.look,
        crossovers=crossovers(cells),
        joint=None if group.curve in held else group.joint,
        completion=replace(found, held=any_held),
    )


def _cell(cell: Cell, held: Sequence[Verdict]) -> Cell:
    return replace(cell, verdict=Verdict.INCONCLUSIVE) if cell.verdict in held else cell


def findings(groups: Sequence[CellGroup]) -> tuple[Finding, ...]:
    """A warning for each configuration with verdicts that were held back."""
    told: dict[tuple[str, str], list[str]] = defaultdict(list)
    for group in groups:
        of = group.completion
        if of is not None and of.held and not group.repeats:
            told[group.configuration, of.loser].append(
                f"{group.benchmark} on {group.layout} {of.completed} of {of.launched}, "
                f"the baseline {of.baseline_completed} of {of.baseline_launched}"
            )
    return tuple(
        Finding(
            Level.WARNING,
            "launches-lost",
            f"launches of {who} that completed: {_listed(places)}",
            "what is left of launches that fail is a choice of the good ones: "
            f"{_word(loser, who)} loses more of them, and is called neither faster nor equivalent",
            "see why they failed, and measure again: mpigraft results show",
        )
        for (who, loser), places in sorted(told.items())
    )


def _word(loser: str, who: str) -> str:
    return who if loser == "configuration" else "the baseline"


def _listed(places: Sequence[str]) -> str:
    more = f"; and {len(places) - SHOWN} more" if len(places) > SHOWN else ""
    return "; ".join(places[:SHOWN]) + more
