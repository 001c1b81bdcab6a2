"""Measure how often verdicts are right, on seeded synthetic campaigns whose truth is known.

    python evaluation/verdicts_synthetic.py [--campaigns 400]

Each campaign has a baseline with its second launch, a twin of it (every verdict on it is false),
one that is FACTOR slower and one FACTOR faster. Launches vary by 8 to 18 % and move all sizes
together (correlation 0.7), as real ones of a small machine did; whole rounds drift by 10 %, which
pairing removes. Shapes of the variation: normal, heavy tails (Student's t
with 4 degrees of freedom), skewed (exponential: launches are slow, never fast), and two modes
(one launch in ten is slow). The unit tests call the same function with fewer campaigns.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mpigraft.analysis.comparison import compare
from mpigraft.core.model import (
    CampaignRecord,
    CellGroup,
    ConfigurationRecord,
    Measured,
    Origin,
    ValueRow,
    Verdict,
)

FACTOR = 1.4
SIZES = 12
CORRELATION = 0.7  # between sizes of one launch
DRIFT = 0.10  # standard deviation of whole rounds
VARIATION = (0.08, 0.18)  # launch to launch, standard deviation of the logarithm
SHAPES = ("normal", "heavy tails", "skewed", "two modes")
TRUTH = {"twin": 0.0, "slow": math.log(FACTOR), "fast": -math.log(FACTOR)}
WINS = (Verdict.FASTER, Verdict.SLOWER)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of cells (or curves) over all campaigns of one kind."""

    cells: int
    false_winners: float  # of the twin's cells
    by_chance: float  # the same, as a comparison expects it
    false_curves: float  # of the twin's curves
    power: float  # of cells with a true FACTOR: called, and the right way
    wrong: float  # of those: called the wrong way
    curve_power: float
    coverage: float  # intervals that hold the true ratio
    width: float  # typical half-width of an interval, as a fraction
    pair: float  # of the A/A pair's cells: would have been called


def rates(
    rounds: int,
    campaigns: int,
    shape: str,
    *,
    seed: int = 1,
    variation: tuple[float, float] = VARIATION,
    allocations: int = 1,
    between: float = 0.0,
) -> Rates:
    """Run `campaigns` campaigns through `compare` and count. `between` is how much a ratio
    differs from allocation to allocation, as a standard deviation."""
    rng = np.random.default_rng([seed, rounds, SHAPES.index(shape)])
    count: Counter[str] = Counter()
    halves, chance = [], 0.0
    for number in range(campaigns):
        spread = rng.uniform(*variation)
        rows = values(rng, rounds, spread, shape, allocations, between)
        comparison = compare(measured(campaign(number, rounds), TRUTH, rows))
        for group in comparison.groups:
            _count(group, count)
            chance += group.by_chance if group.configuration == "twin" else 0.0
            halves += [c.high / c.low for c in group.cells if c.high and c.low]
        count["pair"] += sum(n.false_verdicts for n in comparison.noise)
        count["pairs"] += sum(n.cells for n in comparison.noise)
    return Rates(
        cells=count["cells"],
        false_winners=count["false"] / count["twins"],
        by_chance=chance / count["twins"],
        false_curves=count["false curves"] / campaigns,
        power=count["right"] / (2 * count["twins"]),
        wrong=count["wrong"] / (2 * count["twins"]),
        curve_power=count["right curves"] / (2 * campaigns),
        coverage=count["covered"] / count["cells"],
        width=math.sqrt(float(np.median(halves))) - 1,
        pair=count["pair"] / max(count["pairs"], 1),
    )


def _count(group: CellGroup, count: Counter[str]) -> None:
    truth = TRUTH[group.configuration]
    right = Verdict.FASTER if truth < 0 else Verdict.SLOWER
    for cell in group.cells:
        assert cell.low is not None
        assert cell.high is not None
        count["cells"] += 1
        count["covered"] += cell.low <= math.exp(truth) <= cell.high
        if group.configuration == "twin":
            count["twins"] += 1
            count["false"] += cell.verdict in WINS
        else:
            count["right"] += cell.verdict is right
            count["wrong"] += cell.verdict in WINS and cell.verdict is not right
    if group.configuration == "twin":
        count["false curves"] += group.curve in WINS
    else:
        count["right curves"] += group.curve is right


def values(
    rng: np.random.Generator,
    rounds: int,
    spread: float,
    shape: str,
    allocations: int = 1,
    between: float = 0.0,
) -> list[ValueRow]:
    """One campaign's values. In the skewed and two-mode shapes the median ratio lies a little
    off the stated truth; that counts against the coverage."""
    curve = np.log(1.0 + np.arange(SIZES))
    drift = DRIFT * rng.standard_normal(rounds)
    allocation = np.arange(rounds) * allocations // rounds
    launches = []
    for name, replica in (("base", 0), ("base", 1), *((name, 0) for name in TRUTH)):
        launch = standard(rng, shape, (rounds, 1)) * math.sqrt(CORRELATION)
        own = standard(rng, shape, (rounds, SIZES)) * math.sqrt(1 - CORRELATION)
        logs = curve + TRUTH.get(name, 0.0) + spread * (launch + own) + drift[:, None]
        if name != "base":
            logs += between * rng.standard_normal(allocations)[allocation][:, None]
        launches.append((name, replica, logs))
    return value_rows(launches, allocation.tolist())


def campaign(seed: int, rounds: int, plan: str = "{}") -> CampaignRecord:
    return CampaignRecord("c", "synthetic", "", Origin.RUN, seed, rounds, "base", plan, "")


def configurations(*names: str) -> list[ConfigurationRecord]:
    """The baseline and others."""
    return [ConfigurationRecord("c", name, name, "{}") for name in ("base", *names)]


def measured(record: CampaignRecord, names: Iterable[str], rows: Iterable[ValueRow]) -> Measured:
    return Measured(record, tuple(configurations(*names)), (), (), tuple(rows))


def value_rows(
    launches: Iterable[tuple[str, int, Floats]], allocations: Sequence[int] | None = None
) -> list[ValueRow]:
    """Latencies of (configuration, replica, logarithms of (rounds, sizes)); `allocations` numbers
    the allocation of each round."""
    return [
        ValueRow(
            name, "1x2", f"a{allocations[turn] if allocations else 0}", turn, replica,
            "native:latency", "latency", 1 << size, value, "host",
        )
        for name, replica, logs in launches
        for turn, sizes in enumerate(np.exp(logs).tolist())
        for size, value in enumerate(sizes)
    ]  # fmt: skip


def campaigns_option(description: str | None, default: int, **others: int) -> argparse.Namespace:
    """Parse --campaigns, and `others` with their defaults."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    for name, number in {"campaigns": default, **others}.items():
        parser.add_argument(f"--{name}", type=int, default=number)
    return parser.parse_args()


def standard(rng: np.random.Generator, shape: str, size: tuple[int, ...]) -> Floats:
    """Draws of mean 0 and standard deviation 1."""
    if shape == "heavy tails":
        return rng.standard_t(4, size) / math.sqrt(2)
    if shape == "skewed":
        return rng.exponential(1.0, size) - 1.0
    if shape == "two modes":
        draws: Floats = 3.0 * (rng.random(size) < 0.1) + 0.6 * rng.standard_normal(size)
        return (draws - 0.3) / math.sqrt(0.36 + 0.81)
    return rng.standard_normal(size)


def main() -> None:
    campaigns = campaigns_option(__doc__, 400).campaigns
    print(f"{campaigns} campaigns a row, {SIZES} sizes, ratio {FACTOR}; percent")
    print("rounds  shape        false  by    false   power  wrong  curve  cover-  half-  A/A")
    print("                     cells chance curves  cells         power  age     width  pair")
    for rounds in (5, 6, 10, 20):
        for shape in SHAPES:
            _print(f"{rounds:6}  {shape:12}", rates(rounds, campaigns, shape))
    print("the noisy end alone: launches vary by 18 %")
    for shape in SHAPES:
        _print(f"{6:6}  {shape:12}", rates(6, campaigns, shape, variation=(0.18, 0.18)))
    print("several allocations, whose ratios differ by 6 %, normal")
    for allocations, rounds in ((2, 12), (3, 12), (3, 18), (5, 20)):
        several = rates(rounds, campaigns, "normal", allocations=allocations, between=0.06)
        _print(f"{rounds:6}  in {allocations}        ", several)


def _print(head: str, r: Rates) -> None:
    shares = (
        r.false_winners, r.by_chance, r.false_curves, r.power, r.wrong, r.curve_power, r.coverage,
        r.width, r.pair,
    )  # fmt: skip
    print(head, "  ".join(f"{100 * share:5.1f}" for share in shares))


if __name__ == "__main__":
    main()
