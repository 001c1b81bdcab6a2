"""Measure how often a curve is called equivalent, on seeded synthetic campaigns of known truth.

    python -m evaluation.equivalence_synthetic [--campaigns 400]

23 sizes, launches that vary by 3 to 5 % with a correlation of 0.7 between sizes, whole rounds by
10 %. The truth is 1.00, 1.035 at every size, or 1.10 at 4 of the 23 and 1.00 at the others: 4
neighbours, or 4 far from each other. Beside the verdict: what the pooled interval alone would
call, and the share of campaigns in which the joint bounds hold the truth of all sizes at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.verdicts_synthetic import (
    CORRELATION,
    DRIFT,
    SHAPES,
    Floats,
    campaign,
    campaigns_option,
    measured,
    standard,
    value_rows,
)
from mpigraft.analysis import equivalence
from mpigraft.analysis.comparison import compare
from mpigraft.core.model import Verdict

SIZES = 23
VARIATION = (0.03, 0.05)
MARGIN = 0.03
TRUTHS: dict[str, tuple[float, Sequence[int]]] = {  # ratio, and the sizes that have it
    "1.00": (1.0, ()),
    "1.035": (1.035, range(SIZES)),
    "4 neighbours at 1.10": (1.10, range(10, 14)),
    "4 scattered at 1.10": (1.10, (2, 8, 13, 20)),
}


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares of campaigns, and what a typical joint bound reaches to."""

    equivalent: float
    pooled: float  # by the pooled interval alone
    covered: float  # all sizes at once by the joint bounds
    reach: float  # median of how far they reach, a fraction


def shares(rounds: int, shape: str, truth: str, campaigns: int, *, seed: int = 1) -> Shares:
    rng = np.random.default_rng([seed, rounds, SHAPES.index(shape), list(TRUTHS).index(truth)])
    ratio, where = TRUTHS[truth]
    truths = np.zeros(SIZES)
    truths[list(where)] = math.log(ratio)
    equivalent = pooled = covered = 0
    reaches = []
    for number in range(campaigns):
        logs = _logs(rng, rounds, shape)
        logs[2] += truths
        rows = value_rows(zip(("base", "base", "other"), (0, 1, 0), logs, strict=True))
        record = campaign(number, rounds)
        (group,) = compare(measured(record, ("other",), rows), margin=MARGIN).groups
        equivalent += group.curve is Verdict.EQUIVALENT
        pooled += group.joint is not None
        low, high = equivalence.joint_bounds(
            logs[2] - (logs[0] + logs[1]) / 2, np.zeros(rounds, dtype=np.int64), number
        )
        covered += bool(((low <= truths) & (truths <= high)).all())
        reaches.append(math.expm1(float(np.maximum(high, -low).max())))
    counts = (equivalent / campaigns, pooled / campaigns, covered / campaigns)
    return Shares(*counts, float(np.median(reaches)))


def _logs(rng: np.random.Generator, rounds: int, shape: str) -> Floats:
    """(arms, rounds, sizes): the baseline's two launches of each round and another's."""
    spread = rng.uniform(*VARIATION)
    launch = standard(rng, shape, (3, rounds, 1)) * math.sqrt(CORRELATION)
    own = standard(rng, shape, (3, rounds, SIZES)) * math.sqrt(1 - CORRELATION)
    logs: Floats = spread * (launch + own) + DRIFT * rng.standard_normal((rounds, 1))
    return logs


def main() -> None:
    campaigns = campaigns_option(__doc__, 400).campaigns
    print(f"{campaigns} campaigns a row, {SIZES} sizes, margin {MARGIN:.0%}; percent")
    print("rounds  shape        truth                 equivalent  pooled  bounds  reach")
    print("                                                       alone   hold    to")
    for rounds in (20, 40):
        for shape in SHAPES:
            for truth in TRUTHS:
                row = shares(rounds, shape, truth, campaigns)
                print(
                    f"{rounds:6}  {shape:12} {truth:20}  {100 * row.equivalent:10.1f}"
                    f"  {100 * row.pooled:6.1f}  {100 * row.covered:6.1f}"
                    f"  {100 * row.reach:5.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
