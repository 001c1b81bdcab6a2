"""Measure how often `compare OLD NEW` and `mpigraft recheck` are right, where the truth is known.

    python -m evaluation.overtime_synthetic [--campaigns 400]

A campaign has a baseline that is launched twice a round and one other configuration, three
benchmarks of 23 sizes (those of `bench --quick`). Launches vary by 5 % (or 10), with the shapes of
verdicts_synthetic.py. Of their variance 0.7 is common to the sizes of a benchmark, half of that to
all benchmarks of the launch. `nights` is how much whole campaigns of the same software differ, as
a standard deviation: the two are not measured on the same day, and nothing in them shows it.

The unit tests call the same functions with fewer campaigns.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.verdicts_synthetic import SHAPES, standard
from mpigraft.analysis.between_campaigns.campaigns import compare_campaigns
from mpigraft.analysis.overtime.reference_state import RECHECK
from mpigraft.core.model import (
    AcrossRule,
    AllocationRecord,
    CampaignRecord,
    Comparison,
    ConfigurationRecord,
    Measured,
    Origin,
    ValueRow,
    Verdict,
)

BENCHMARKS = (("native:latency", "latency"), ("native:bibw", "bandwidth"),
              ("native:allreduce", "latency"))  # fmt: skip
SIZES = tuple(1 << n for n in range(23))
SHARED, COMMON = 0.7, 0.5  # of the variance: between sizes, and of that between benchmarks
NAMES = ("base", "k0")
WINNERS = (Verdict.FASTER, Verdict.SLOWER)
EFFECTS = ("everything", "one configuration", "one benchmark", "the greater half of its sizes")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Kind:
    """How campaigns of one row are made."""

    rounds: tuple[int, int] = (10, 10)  # of the old and the new campaign
    spread: float = 0.05  # launch to launch
    shape: str = "normal"
    nights: float = 0.0  # campaign to campaign
    ratio: float = 1.0  # how much slower the new one is
    effect: str = EFFECTS[0]


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of campaigns, or of cells."""

    slower: float  # campaigns with a slower curve
    called: float  # campaigns with a curve that is called either way
    cells: float  # cells called that do not differ
    coverage: float  # intervals of cells that hold the truth
    width: float  # typical half-width of a cell's interval
    pooled: float  # of a curve's


def measured(rng: np.random.Generator, name: str, kind: Kind, *, new: bool) -> Measured:
    """Simulate one campaign."""
    rounds = kind.rounds[new]
    night = kind.nights * rng.standard_normal()
    slower = _effect(kind) if new else np.zeros((len(NAMES), len(BENCHMARKS), len(SIZES)))
    rows = []
    for slot, replica in ((0, 0), (0, 1), (1, 0)):
        shape = kind.shape
        launch = standard(rng, shape, (rounds, 1, 1)) * math.sqrt(SHARED * COMMON)
        common = standard(rng, shape, (rounds, 3, 1)) * math.sqrt(SHARED * (1 - COMMON))
        own = standard(rng, shape, (rounds, 3, len(SIZES))) * math.sqrt(1 - SHARED)
        logs = kind.spread * (launch + common + own) + night + slower[slot]
        rows += list(_rows(name, NAMES[slot], replica, logs))
    record = CampaignRecord(
        f"{name}-0000", name, "2026-01-01T00:00:00+00:00", Origin.RUN,
        1 + int(rng.integers(1 << 31)), rounds, "base", "{}", "0.1",
    )  # fmt: skip
    configurations = tuple(ConfigurationRecord(record.id, k, f"mpi@1/{k}", "{}") for k in NAMES)
    allocation = AllocationRecord(f"{name}-a", record.id, record.created, "n1", "{}")
    return Measured(record, configurations, (allocation,), (), tuple(rows))


def _effect(kind: Kind) -> Floats:
    slower = np.zeros((len(NAMES), len(BENCHMARKS), len(SIZES)))
    parts: dict[str, tuple[slice | int, ...]] = {
        EFFECTS[0]: (slice(None),),
        EFFECTS[1]: (1,),
        EFFECTS[2]: (1, 0),
        EFFECTS[3]: (1, 0, slice(12, None)),
    }
    slower[parts[kind.effect]] = math.log(kind.ratio)
    return slower


def _rows(name: str, key: str, replica: int, logs: Floats) -> Iterator[ValueRow]:
    for number, benchmark in enumerate(BENCHMARKS):
        sign = 1 if benchmark[1] == "latency" else -1
        for turn, sizes in enumerate(np.exp(sign * logs[:, number]).tolist()):
            for size, value in zip(SIZES, sizes, strict=True):
                yield ValueRow(
                    key, "1x2", f"{name}-a", turn, replica, *benchmark, size, value, "host"
                )


def shares(kind: Kind, campaigns: int, rule: AcrossRule, seed: int = 1) -> Shares:
    """Compare pairs of simulated campaigns and count."""
    rng = np.random.default_rng([seed, *kind.rounds, SHAPES.index(kind.shape)])
    slower = called = wrong = cells = covered = 0
    widths, pooled = [], []
    for _ in range(campaigns):
        old, new = (measured(rng, name, kind, new=name == "new") for name in ("old", "new"))
        comparison = compare_campaigns(old, new, rule)
        slower += any(group.curve is Verdict.SLOWER for group in comparison.groups)
        called += any(group.curve in WINNERS for group in comparison.groups)
        for truth, low, high, verdict in _cells(comparison, kind):
            cells += 1
            covered += low <= truth <= high
            wrong += truth == 1 and verdict in WINNERS
            widths.append(high / low)
        bounds = [(g.pooled_low, g.pooled_high) for g in comparison.groups]
        pooled += [high / low for low, high in bounds if low and high]
    half = [math.sqrt(float(np.median(ratios))) - 1 for ratios in (widths, pooled)]
    return Shares(slower / campaigns, called / campaigns, wrong / cells, covered / cells, *half)


def _cells(comparison: Comparison, kind: Kind) -> Iterator[tuple[float, float, float, Verdict]]:
    effect = np.exp(_effect(kind))
    for group in comparison.groups:
        slot = [f"mpi@1/{k}" for k in NAMES].index(group.configuration)
        number = [b for b, _ in BENCHMARKS].index(group.benchmark)
        truths = effect[slot, number].tolist()
        for cell, truth in zip(group.cells, truths, strict=True):
            assert cell.low is not None
            assert cell.high is not None
            exact = truth if group.metric == "latency" else 1 / truth
            yield exact, cell.low, cell.high, cell.verdict


def _null(campaigns: int, rule: AcrossRule) -> None:
    heads = ("launches vary by", "campaigns differ by", "rounds", "any curve slower",
             "faster or slower", "cells called", "intervals that contain the truth",
             "a cell is known to", "a curve")  # fmt: skip
    print(f"| {' | '.join(heads)} |")
    print("| --- " * 9 + "|")
    plain = [((r, r), 0.05, 0.0, shape) for shape in SHAPES for r in (6, 10)]
    others = [((20, 10), 0.05, 0.0), ((20, 20), 0.05, 0.0), ((10, 10), 0.1, 0.0)]
    others += [((10, 10), 0.05, nights) for nights in (0.01, 0.02, 0.03)]
    for rounds, spread, nights, shape in (*plain, *((*row, "normal") for row in others)):
        s = shares(Kind(rounds, spread, shape, nights), campaigns, rule)
        print(f"| {shape}, {spread:.0%} | {nights:.0%} | {rounds[0]} and {rounds[1]} | "
              f"{100 * s.slower:.1f} | {100 * s.called:.1f} | {100 * s.cells:.1f} | "
              f"{100 * s.coverage:.1f} | {100 * s.width:.1f} | {100 * s.pooled:.1f} |",
              flush=True)  # fmt: skip


def _power(campaigns: int, rule: AcrossRule) -> None:
    print("| slower | rounds | 1.1x | 1.2x | 1.4x |")
    print("| --- " * 5 + "|")
    for effect in EFFECTS:
        for rounds in ((6, 6), (10, 10)):
            found = [
                shares(Kind(rounds, ratio=ratio, effect=effect), campaigns, rule).slower
                for ratio in (1.1, 1.2, 1.4)
            ]
            cells = " | ".join(f"{100 * share:.0f}" for share in found)
            print(f"| {effect} | {rounds[0]} and {rounds[1]} | {cells} |", flush=True)


PARTS = {"null": _null, "power": _power}
RULES = {"compare": AcrossRule(), "recheck": RECHECK}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--campaigns", type=int, default=400)
    parser.add_argument("--part", choices=PARTS, help="default: both")
    parser.add_argument("--rule", choices=RULES, help="default: both")
    args = parser.parse_args()
    for name in [args.rule] if args.rule else RULES:
        for part in [args.part] if args.part else PARTS:
            print(f"\n{name} at level {RULES[name].level}, {part}\n")
            PARTS[part](args.campaigns, RULES[name])
