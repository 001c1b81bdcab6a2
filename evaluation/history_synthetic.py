"""Measure how often `mpigraft history` marks a change, where the truth is known.

    python -m evaluation.history_synthetic [--histories 500]

A history is a machine of 12 lines over some campaigns. Levels vary from campaign to campaign by
1.5 % (of which the launches' own error explains half), with the shapes of verdicts_synthetic.py or
correlated from one campaign to the next; half of the variance is common to all lines of a campaign.
To state the power, one line is slower from the middle on, in the last campaign, or for a week.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evaluation.verdicts_synthetic import SHAPES, standard
from mpigraft.analysis.overtime.segments import steps

LINES = 12
SPREAD, ERROR = 0.015, 0.0106
ALIKE = "alike at 0.3"  # neighbouring campaigns
EFFECTS = ("from the middle on", "the last two campaigns", "a week of 7")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rates:
    """Shares of histories."""

    false: float  # a change where there is none
    found: float  # the true change is marked, within one campaign


def rates(
    campaigns: int, shape: str, histories: int, ratio: float = 1.0, effect: str = ""
) -> Rates:
    """Simulate histories in which the first line is `ratio` times slower."""
    rng = np.random.default_rng([campaigns, histories])
    false = found = 0
    slower = np.zeros(campaigns)
    begin = {"": campaigns, EFFECTS[0]: campaigns // 2, EFFECTS[1]: campaigns - 2}.get(
        effect, campaigns // 2
    )
    end = begin + 7 if effect == EFFECTS[2] else campaigns
    slower[begin:end] = math.log(ratio)
    for _ in range(histories):
        common = _series(rng, shape, campaigns, 1) * math.sqrt(0.5)
        own = _series(rng, shape, campaigns, LINES) * math.sqrt(0.5)
        levels = SPREAD * (common + own)
        levels[:, 0] += slower
        marks = [
            {step.place for step in steps(levels[:, n].tolist(), [ERROR] * campaigns, LINES)}
            for n in range(LINES)
        ]
        true = {begin + n for n in (-1, 0, 1)} | {end + n for n in (-1, 0, 1)}
        found += bool(marks[0] & {begin - 1, begin, begin + 1})
        false += bool(marks[0] - true) or any(marks[1:])
    return Rates(false / histories, found / histories)


def _series(rng: np.random.Generator, shape: str, campaigns: int, lines: int) -> Floats:
    if shape != ALIKE:
        return standard(rng, shape, (campaigns, lines))
    values = rng.standard_normal((campaigns, lines))
    for place in range(1, campaigns):
        values[place] = 0.3 * values[place - 1] + math.sqrt(1 - 0.3**2) * values[place]
    return values


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=500)
    count = parser.parse_args().histories
    print("| campaigns | shape | histories with a false change, % |\n| --- | --- | --- |")
    for campaigns in (4, 6, 10, 30, 90):
        for shape in (*SHAPES, ALIKE):
            print(f"| {campaigns} | {shape} | {100 * rates(campaigns, shape, count).false:.1f} |",
                  flush=True)  # fmt: skip
    print("\n| campaigns | slower | 1.05x | 1.1x | 1.2x | 1.5x |\n" + "| --- " * 6 + "|")
    for campaigns in (6, 10, 30, 90):
        for effect in EFFECTS:
            if effect == EFFECTS[2] and campaigns < 30:
                continue
            shares = [
                rates(campaigns, "normal", max(count // 5, 20), ratio, effect).found
                for ratio in (1.05, 1.1, 1.2, 1.5)
            ]
            cells = " | ".join(f"{100 * share:.0f}" for share in shares)
            print(f"| {campaigns} | {effect} | {cells} |", flush=True)
