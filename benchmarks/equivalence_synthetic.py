"""How often a curve is called equivalent, on seeded synthetic campaigns of known truth.

    python -m benchmarks.equivalence_synthetic [--campaigns 400]

23 sizes, launches that vary by 3 to 5 % with a correlation of 0.7 between sizes, whole rounds by
10 %. The truth is 1.00, 1.035 at every size, or 1.10 at 4 of the 23 and 1.00 at the others: 4
neighbours, or 4 far from each other. Beside the verdict: what the pooled interval alone would
call, and the share of campaigns in which the joint bounds hold the truth of all sizes at once.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.verdicts_synthetic import CORRELATION, DRIFT, SHAPES, Floats, standard
from mpigraft import equivalence
from mpigraft.compare import compare
from mpigraft.model import CampaignRecord, ConfigurationRecord, Origin, ValueRow, Verdict

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
    held: float  # all sizes at once by the joint bounds
    reach: float  # median of how far they reach, a fraction


def shares(rounds: int, shape: str, truth: str, campaigns: int, *, seed: int = 1) -> Shares:
    rng = np.random.default_rng([seed, rounds, SHAPES.index(shape), list(TRUTHS).index(truth)])
    ratio, where = TRUTHS[truth]
    truths = np.zeros(SIZES)
    truths[list(where)] = math.log(ratio)
    arms = [ConfigurationRecord("c", name, name, "{}") for name in ("base", "other")]
    equivalent = pooled = held = 0
    reaches = []
    for number in range(campaigns):
        logs = _logs(rng, rounds, shape)
        logs[2] += truths
        record = CampaignRecord("c", "made", "", Origin.RUN, number, rounds, "base", "{}", "")
        (group,) = compare(record, arms, _rows(logs), margin=MARGIN).groups
        equivalent += group.curve is Verdict.EQUIVALENT
        pooled += group.joint is not None
        low, high = equivalence.joint_bounds(
            logs[2] - (logs[0] + logs[1]) / 2, np.zeros(rounds, dtype=np.int64), number
        )
        held += bool(((low <= truths) & (truths <= high)).all())
        reaches.append(math.expm1(float(np.maximum(high, -low).max())))
    found = (equivalent / campaigns, pooled / campaigns, held / campaigns)
    return Shares(*found, float(np.median(reaches)))


def _logs(rng: np.random.Generator, rounds: int, shape: str) -> Floats:
    """(arms, rounds, sizes): the baseline's two launches of each round and another's."""
    spread = rng.uniform(*VARIATION)
    launch = standard(rng, shape, (3, rounds, 1)) * math.sqrt(CORRELATION)
    own = standard(rng, shape, (3, rounds, SIZES)) * math.sqrt(1 - CORRELATION)
    logs: Floats = spread * (launch + own) + DRIFT * rng.standard_normal((rounds, 1))
    return logs


def _rows(logs: Floats) -> list[ValueRow]:
    arms = (("base", 0), ("base", 1), ("other", 0))
    return [
        ValueRow(
            name, "1x2", "a0", turn, replica, "native:latency", "latency", 1 << size, value, "host"
        )
        for (name, replica), values in zip(arms, np.exp(logs).tolist(), strict=True)
        for turn, sizes in enumerate(values)
        for size, value in enumerate(sizes)
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=400)
    given = parser.parse_args()
    print(f"{given.campaigns} campaigns a row, {SIZES} sizes, margin {MARGIN:.0%}; percent")
    print("rounds  shape        truth                 equivalent  pooled  bounds  reach")
    print("                                                       alone   hold    to")
    for rounds in (20, 40):
        for shape in SHAPES:
            for truth in TRUTHS:
                found = shares(rounds, shape, truth, given.campaigns)
                print(
                    f"{rounds:6}  {shape:12} {truth:20}  {100 * found.equivalent:10.1f}"
                    f"  {100 * found.pooled:6.1f}  {100 * found.held:6.1f}"
                    f"  {100 * found.reach:5.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
