"""Measure how often laws, groups and drift are right, on made campaigns whose truth is known.

    python evaluation/scale_synthetic.py [CAMPAIGNS]

Growth: how often the law that made the values is found, and how often the interval at four times
the most ranks holds it. Groups and drift: findings where there is nothing to find, and where there
is; slow nodes have pairs_synthetic.py. Seeds are fixed, so the same number of campaigns gives the
same figures.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Callable

import numpy as np

from mpigraft.analysis import bimodality, drift
from mpigraft.analysis.rank_scaling.laws import LAW_REACH, choose, resampled
from mpigraft.core.model import ValueRow

LAWS: dict[str, Callable[[float], float]] = {
    "constant": lambda p: 40.0 + 0 * p,
    "logarithm": lambda p: 40.0 + 12.0 * math.log2(p),
    "power": lambda p: 40.0 + 3.0 * p**0.8,
}
SCATTERS: dict[str, Callable[[random.Random], float]] = {
    "even": lambda r: r.uniform(0, 0.6),
    "normal": lambda r: r.gauss(0, 0.3),
    "skewed": lambda r: r.expovariate(3),
    "half disturbed": lambda r: r.gauss(0, 0.02) if r.random() < 0.5 else r.uniform(0, 1),
    "two at 1.35": lambda r: r.gauss(0, 0.03) + (0.3 if r.random() < 0.5 else 0),
    "two at 1.5": lambda r: r.gauss(0, 0.03) + (0.41 if r.random() < 0.5 else 0),
}


def row(layout: str, number: int, name: str, metric: str, value: float) -> ValueRow:
    return ValueRow("key", layout, "job", number, 0, name, metric, 8, value, "host")


def growth(ranks: tuple[int, ...], launches: int, misfit: float, campaigns: int) -> str:
    """Launches vary by 5 %; each number of ranks is off the law by `misfit`."""
    lines = []
    for name, curve in LAWS.items():
        chosen = covered = 0
        for seed in range(campaigns):
            rng = np.random.default_rng(1000 * seed + 7)
            values = [
                (p, [curve(p) * math.exp(off + 0.05 * rng.normal()) for _ in range(launches)])
                for p in ranks
                for off in [misfit * rng.normal()]
            ]
            law, _ = choose(values)
            last = LAW_REACH * ranks[-1]
            predictions = sorted(one.at(last) for one in resampled(values, law, seed))
            low, high = (
                predictions[int(0.025 * (len(predictions) - 1))],
                predictions[math.ceil(0.975 * len(predictions)) - 1],
            )
            chosen += law.name == name
            covered += min(low, law.at(last)) <= curve(last) <= max(high, law.at(last))
        lines.append(f"{name} found {chosen / campaigns:.0%}, held {covered / campaigns:.0%}")
    return "; ".join(lines)


def grouped(scatter: Callable[[random.Random], float], rounds: int, campaigns: int) -> float:
    def once(seed: int) -> bool:
        rng = random.Random(seed)
        values = [math.exp(scatter(rng)) for _ in range(rounds)]
        rows = [row("1x2", n, "native:latency", "latency", x) for n, x in enumerate(values)]
        return bool(bimodality.bimodality_findings(rows, {}))

    return sum(map(once, range(campaigns))) / campaigns


# Which of three launches of a round take the slower of two states: mine and the baseline's two.
STATES: dict[str, Callable[[random.Random], tuple[bool, bool, bool]]] = {
    "none": lambda _: (False, False, False),
    "its own": lambda r: (r.random() < 0.5, False, False),
    "the baseline's": lambda r: (False, r.random() < 0.5, r.random() < 0.5),
    "the round's": lambda r: (state := r.random() < 0.5, state, state),
    "7 in 10 of a round": lambda r: (
        (state := r.random() < 0.5) and r.random() < 0.7,
        state and r.random() < 0.7,
        state and r.random() < 0.7,
    ),
}


def beside_others(state: str, apart: float, spread: float, rounds: int, campaigns: int) -> str:
    """Beside a baseline, whose two launches and this configuration's vary by 3 %, rounds by
    `spread`: how often which of the three is named."""
    names = {"key": "mine", "base": "baseline"}
    count = {"mine": 0, "baseline": 0, "machine": 0}
    for seed in range(campaigns):
        rng, rows = random.Random(seed), []
        for n in range(rounds):
            level = rng.gauss(0, spread)
            for who, slow in enumerate(STATES[state](rng)):
                value = math.exp(level + rng.gauss(0, 0.03) + apart * slow)
                one = row("1x2", n, "native:latency", "latency", value)
                rows.append(
                    one if who == 0 else one._replace(configuration="base", replica=who - 1)
                )
        for finding in bimodality.bimodality_findings(rows, names):
            count["machine" if finding.code == "slow-rounds" else finding.message.split()[2]] += 1
    return ", ".join(f"{who} {n / campaigns:.1%}" for who, n in count.items())


def drifted(rounds: int, curves: int, alike: float, trend: float, campaigns: int) -> float:
    """Rounds vary by 5 %, neighbours correlated by `alike`; `trend` is from first to last."""

    def once(seed: int) -> bool:
        rng, rows = random.Random(seed), []
        for curve in range(curves):
            x = rng.gauss(0, 0.05)
            for n in range(rounds):
                x = alike * x + rng.gauss(0, 0.05 * math.sqrt(1 - alike**2))
                value = math.exp(x + trend * n / (rounds - 1))
                rows.append(row("1x2", n, f"native:b{curve}", "latency", value))
        return bool(drift.drift_findings(rows, {}))

    return sum(map(once, range(campaigns))) / campaigns


def main() -> None:
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    many = (1, 2, 4, 8, 16, 32, 64)
    for ranks, launches, misfit in (
        (many, 3, 0.0), (many, 10, 0.0), (many[:4], 3, 0.0), (many, 10, 0.05), (many[:4], 8, 0.05),
    ):  # fmt: skip
        what = f"{len(ranks)} numbers of ranks, {launches} launches, {misfit:.0%} off the law"
        print(f"growth, {what}: {growth(ranks, launches, misfit, campaigns)}")
    for name, scatter in SCATTERS.items():
        shares = ", ".join(f"{n}: {grouped(scatter, n, 5 * campaigns):.1%}" for n in (8, 12, 20))
        print(f"groups, {name}, told by rounds: {shares}")
    for state in STATES:
        cases = ((1.5, 0.0), (1.5, 0.1), (3.2, 0.1))
        for apart, spread in cases[:2] if state == "none" else cases:
            shares = "; ".join(
                f"{n}: {beside_others(state, math.log(apart), spread, n, 5 * campaigns)}"
                for n in (12, 20)
            )
            what = f"{state}, {apart:g} apart, rounds vary by {spread:.0%}"
            print(f"groups beside a baseline, {what}, named by rounds: {shares}")
    for alike, trend in ((0.0, 0.0), (0.3, 0.0), (0.6, 0.0), (0.0, math.log(1.2))):
        curves = 1 if trend else 12
        shares = ", ".join(
            f"{n}: {drifted(n, curves, alike, trend, campaigns):.1%}" for n in (8, 12, 20)
        )
        print(f"drift, correlated {alike}, trend {math.expm1(trend):.0%}, told by rounds: {shares}")


if __name__ == "__main__":
    main()
