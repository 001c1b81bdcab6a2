"""Measure how often a campaign's curves are called, rightly and wrongly, with known truth.

    python evaluation/verdicts_curves.py [--campaigns 400] [--store FOLDER]

A campaign is judged as `compare` judges it (a unit test holds the two against each other), but
whole arrays at a time. Each has the six default benchmarks of 23 sizes, a baseline that is launched
twice a round, and 1 or 10 configurations. Nothing differs in an A/A campaign, so that any slower
curve is a false alarm of `compare --fail-on slower`; to state its power, one of the configurations
is slower in all its benchmarks, in one, or at the greater half of the sizes of one. Launches vary
by 4 % (quiet), by 8 to 18 % (noisy, with the shapes of verdicts_synthetic.py), or as variation.py
measured on a small machine: by 4.4 % at one size to 13.3 % at another, sizes correlated at 0.65.
Of their variance 0.7 is common to the sizes of a benchmark, half of that to all benchmarks.

With a store the launches are real ones: a campaign of aa_campaign.py, in which one MPI has several
names. Rounds are drawn with replacement, and in each the names change places, so that sizes,
benchmarks and rounds go together as they did on that machine.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evaluation.verdicts_synthetic import SHAPES, standard
from mpigraft.analysis.grouping import labels_of, table_of
from mpigraft.analysis.interim import PLANNED_ONCE
from mpigraft.analysis.multiplicity import adjusted_p
from mpigraft.analysis.statistics import bootstrap
from mpigraft.store import Store

BENCHMARKS, SIZES = 6, 23
MARGIN = 0.03
CORRELATION = 0.7  # between the sizes of one benchmark in a launch
COMMON = 0.5  # of that: between the benchmarks of a launch
QUIET, NOISY = (0.04, 0.04), (0.08, 0.18)
MEASURED = (0.044, 0.133, 0.65)  # least and greatest of the sizes, correlation between them
EFFECTS = ("all", "one", "part")  # benchmarks that are slower; part: the greater sizes of one
CAMPAIGNS = tuple((configurations, rounds) for configurations in (1, 10) for rounds in (6, 10, 20))
SHOWN = ("quiet", "as measured", "noisy, normal", "of the store")

Floats = NDArray[np.float64]
# (generator, launches of a round, rounds) -> logarithms: (launches, rounds, benchmarks, sizes)
Source = Callable[[np.random.Generator, int, int], Floats]


@dataclass(frozen=True, slots=True)
class Alarms:
    """Shares of campaigns."""

    false: float  # any curve slower that is not
    uncorrected: float  # the same, were each curve tested as if it were the only one
    caught: float  # any curve slower of those that are
    by_mean: float  # the same, were curves tested by the |T| of the mean over their sizes
    curves: float  # of those curves: slower


def alarms(
    launches: Source,
    configurations: int,
    rounds: int,
    *,
    ratio: float = 1.0,
    effect: str = "all",
    campaigns: int = 400,
    seed: int = 1,
) -> Alarms:
    """Judge `campaigns` campaigns of which the first configuration is `ratio` times slower."""
    rng = np.random.default_rng([seed, configurations, rounds])
    counted = np.zeros(5)
    for _ in range(campaigns):
        logs = launches(rng, configurations + 2, rounds)
        shift = np.zeros((configurations, *logs.shape[2:]))
        first = 12 if effect == "part" else 0
        shift[0, slice(None) if effect == "all" else slice(1), first:] = math.log(ratio)
        logs[2:] += shift[:, None]
        slower, alone, by_mean = judge(logs, rng.integers(1 << 30).item())
        different = shift.any(axis=2)
        right = slower[different] if different.any() else np.zeros(1)
        false = [(called & ~different).any() for called in (slower, alone)]
        counted += [*false, right.any(), (by_mean & different).any(), right.mean()]
    return Alarms(*(counted / campaigns).tolist())


def judge(
    logs: Floats, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]:
    """Find which curves are slower, (configurations, benchmarks); which by the test of a single
    one; and which if the |T| of the mean over the sizes were tested rather than the greatest.

    `logs` are latencies of (launches of a round, rounds, benchmarks, sizes), the first two launches
    those of the baseline. Without gaps, in one allocation.
    """
    pair = logs[1] - logs[0]
    differences = logs[2:] - (logs[0] + logs[1]) / 2
    allocations = np.zeros(logs.shape[1], dtype=np.int64)
    floor = np.median(np.expm1(np.abs(np.median(pair, axis=0))), axis=1)
    limit = np.log1p(np.maximum(MARGIN, floor))
    _, high = bounds(differences, allocations)
    pooled_low, _ = bounds(differences.mean(axis=3, keepdims=True), allocations)
    outside = (pooled_low[..., 0] > limit) & ~(high < -limit[:, None]).any(axis=2)
    if not outside.any():
        return outside, outside, outside
    curves = [curve for arm in differences.transpose(0, 2, 1, 3) for curve in arm]
    rounds = [np.arange(logs.shape[1])] * len(curves)
    p = np.array(adjusted_p(curves, rounds, seed)).reshape(outside.shape)
    means = [curve.mean(axis=1, keepdims=True) for curve in curves]
    by_mean = np.array(adjusted_p(means, rounds, seed)).reshape(outside.shape) <= PLANNED_ONCE
    alone = np.zeros(outside.shape, dtype=bool)
    for place in np.argwhere(outside).tolist():
        curve = differences[place[0], :, place[1]]
        alone[tuple(place)] = adjusted_p([curve], rounds[:1], seed)[0] <= PLANNED_ONCE
    return outside & (p <= PLANNED_ONCE), alone, outside & by_mean


def bounds(differences: Floats, allocations: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Intervals of (configurations, rounds, benchmarks, sizes) over the rounds."""
    arms, rounds, benchmarks, sizes = differences.shape
    columns = differences.transpose(1, 0, 2, 3).reshape(rounds, -1)
    low, high = bootstrap.interval(columns, allocations)
    return low.reshape(arms, benchmarks, sizes), high.reshape(arms, benchmarks, sizes)


# ------------------------------------------------------------------ where launches come from


def synthetic(
    variation: tuple[float, float], shape: str, correlation: float = CORRELATION
) -> Source:
    """Launches that vary by `variation`, drawn once a campaign."""

    def draw(rng: np.random.Generator, launches: int, rounds: int) -> Floats:
        parts = (
            (COMMON * correlation, (1, 1)),
            ((1 - COMMON) * correlation, (BENCHMARKS, 1)),
            (1 - correlation, (BENCHMARKS, SIZES)),
        )
        logs = np.zeros((launches, rounds, BENCHMARKS, SIZES))
        for share, axes in parts:
            logs += math.sqrt(share) * standard(rng, shape, (launches, rounds, *axes))
        return logs * rng.uniform(*variation)

    return draw


def measured() -> Source:
    """As MEASURED: which sizes vary most is drawn for each benchmark of a campaign."""
    least, greatest, correlation = MEASURED
    alike = synthetic((1.0, 1.0), "normal", correlation)

    def draw(rng: np.random.Generator, launches: int, rounds: int) -> Floats:
        spreads = np.tile(np.linspace(least, greatest, SIZES), (BENCHMARKS, 1))
        logs: Floats = alike(rng, launches, rounds) * rng.permuted(spreads, axis=1)
        return logs

    return draw


def real(folder: Path) -> Source:
    """Launches of the latest campaign of a store, of which every configuration is the same: those
    that gave every value, of benchmarks of SIZES sizes."""
    store = Store(folder)
    values = store.values(store.campaign(None).id)
    table = table_of(values, {}, labels_of((), values))
    benchmarks = []
    for series in table.series.values():
        if len(series.sizes) == SIZES:
            launched = np.concatenate(list(series.logs.values()))
            benchmarks.append(launched - np.nanmedian(launched, axis=(0, 1)))
    logs = np.stack(benchmarks, axis=2)
    whole = ~np.isnan(logs).any(axis=(2, 3))
    turns = [turn for turn in range(whole.shape[1]) if whole[:, turn].sum() == whole.sum(0).max()]

    def draw(rng: np.random.Generator, launches: int, rounds: int) -> Floats:
        drawn = [turns[n] for n in rng.integers(len(turns), size=rounds)]
        arms = [rng.permutation(np.flatnonzero(whole[:, turn]))[:launches] for turn in drawn]
        return logs[np.array(arms).T, drawn]

    return draw


# ------------------------------------------------------------------ tables


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=400)
    parser.add_argument("--store", type=Path, help="of an A/A campaign: draw its launches")
    given = parser.parse_args()
    print(f"{given.campaigns} campaigns a row; percent of campaigns")
    if given.store:
        sources = {"of the store": real(given.store)}
    else:
        sources = {"quiet": synthetic(QUIET, "normal"), "as measured": measured()}
        sources |= {f"noisy, {shape}": synthetic(NOISY, shape) for shape in SHAPES}
    print("launches            configurations  rounds  false alarms  each curve alone")
    for name, source in sources.items():
        for configurations, rounds in CAMPAIGNS:
            row = alarms(source, configurations, rounds, campaigns=given.campaigns)
            print(
                f"{name:20}{configurations:14}{rounds:8}{100 * row.false:14.1f}"
                f"{100 * row.uncorrected:18.1f}"
            )
    print("one configuration slower: caught / by the mean over the sizes / of its curves called")
    ratios = (1.1, 1.2, 1.4)
    heads = "".join(f"{ratio:14}x" for ratio in ratios)
    print(f"launches            effect  configurations  rounds{heads}")
    for name in [name for name in sources if name in SHOWN]:
        for effect, (configurations, rounds) in product(EFFECTS, CAMPAIGNS):
            few = given.campaigns // 4
            every = [
                alarms(sources[name], configurations, rounds, ratio=r, effect=effect, campaigns=few)
                for r in ratios
            ]
            shares = "".join(
                f"{100 * a.caught:6.0f} /{100 * a.by_mean:3.0f} /{100 * a.curves:3.0f}"
                for a in every
            )
            print(f"{name:20}{effect:6}{configurations:16}{rounds:8}{shares}", flush=True)


if __name__ == "__main__":
    main()
