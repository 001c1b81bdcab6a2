"""Measure how often verdicts are right where rounds resemble their neighbours.

    python -m evaluation.serial_synthetic [--campaigns 400]

Seeded synthetic campaigns. Launches vary as in verdicts_synthetic.py (8 to 18 %, 12 sizes
correlated at 0.7), but each round depends on the one before: an autoregression whose neighbouring
rounds are correlated at rho. `twin` is the baseline under another name, `slow` takes FACTOR times
as long. Each row is counted with and without `serial.dependence`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from evaluation.verdicts_synthetic import (
    CORRELATION,
    FACTOR,
    SIZES,
    VARIATION,
    WINS,
    Floats,
    campaign,
    campaigns_option,
    measured,
    value_rows,
)
from mpigraft.analysis.comparison import compare
from mpigraft.analysis.statistics import serial
from mpigraft.core.model import ValueRow, Verdict

TRUTH = {"twin": 0.0, "slow": math.log(FACTOR)}


@dataclass(frozen=True, slots=True)
class Shares:
    """Shares over all campaigns of one kind."""

    false_cells: float  # of the twin's
    false_curves: float
    power: float  # of the slow one's cells
    curve_power: float
    widened: float  # of all curves: intervals were


def followed(rng: np.random.Generator, rounds: int, rho: float, width: int) -> Floats:
    """(rounds, width) of mean 0 and deviation 1, neighbouring rounds correlated at `rho`."""
    steps = rng.standard_normal((rounds, width))
    for turn in range(1, rounds):
        steps[turn] = rho * steps[turn - 1] + math.sqrt(1 - rho**2) * steps[turn]
    return steps


def values(rng: np.random.Generator, rounds: int, rho: float) -> list[ValueRow]:
    """One campaign: the baseline's two launches of a round, the twin and the slow row."""
    spread = rng.uniform(*VARIATION)
    launches = []
    for name, replica in (("base", 0), ("base", 1), ("twin", 0), ("slow", 0)):
        launch = followed(rng, rounds, rho, 1) * math.sqrt(CORRELATION)
        own = followed(rng, rounds, rho, SIZES) * math.sqrt(1 - CORRELATION)
        launches.append((name, replica, TRUTH.get(name, 0.0) + spread * (launch + own)))
    return value_rows(launches)


def shares(rounds: int, rho: float, campaigns: int, *, seed: int = 1) -> Shares:
    rng = np.random.default_rng([seed, rounds, int(10 * rho)])
    count = np.zeros(5)
    for number in range(campaigns):
        rows = values(rng, rounds, rho)
        groups = compare(measured(campaign(number, rounds), TRUTH, rows)).groups
        twin, slow = (next(g for g in groups if g.configuration == n) for n in TRUTH)
        count += (
            sum(c.verdict in WINS for c in twin.cells) / SIZES,
            twin.curve in WINS,
            sum(c.verdict is Verdict.SLOWER for c in slow.cells) / SIZES,
            slow.curve is Verdict.SLOWER,
            sum(g.effective_rounds is not None for g in groups) / 2,
        )
    return Shares(*(count / campaigns).tolist())


def main() -> None:
    campaigns = campaigns_option(__doc__, 400).campaigns
    print(f"{campaigns} campaigns a row, {SIZES} sizes, ratio {FACTOR}; percent")
    print("                  as they are                     neighbours counted")
    print("             false         power           false         power         inter-")
    print("rounds  rho  cells curves  cells curves    cells curves  cells curves  vals wider")
    chance = serial.CHANCE
    for rounds in (6, 10, 20, 40):
        for rho in (0.0, 0.3, 0.6, 0.9):
            text = ""
            for serial.CHANCE in (0.0, chance):
                row = shares(rounds, rho, campaigns)
                text += (
                    f"  {100 * row.false_cells:5.1f} {100 * row.false_curves:6.1f}"
                    f"  {100 * row.power:5.1f} {100 * row.curve_power:6.1f}  "
                )
            print(f"{rounds:6}  {rho:3} {text} {100 * row.widened:5.1f}", flush=True)


if __name__ == "__main__":
    main()
