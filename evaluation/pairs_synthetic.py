"""Measure how often `bench --pairs` names the slow node and nothing else, on made campaigns.

    python evaluation/pairs_synthetic.py [CAMPAIGNS]

One of 3, 4 or 8 nodes is slow by 1.5 to 20 times, in sending, in receiving or in both; each
campaign has a matrix of latencies and one of bandwidths, of 20 launches whose values vary by 10 %.
False alarms: campaigns in which all nodes are alike and any node, link or part is named, with
five kinds of noise. Seeds are fixed, so the same number of campaigns gives the same figures.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mpigraft.analysis.pairs.matrices import PairMatrix, pair_matrices
from mpigraft.core.model import ValueRow

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Floats]  # launches, nodes -> log of each value

NODES, LAUNCHES, SPREAD = (3, 4, 8), 20, 0.1
FACTORS = (1.5, 2.0, 5.0, 10.0, 20.0)
SIDES = {"sending": (True, False), "receiving": (False, True), "both": (True, True)}


def even(rng: np.random.Generator, launches: int, nodes: int) -> Floats:
    """Every value varies by 10 %."""
    logs: Floats = SPREAD * rng.normal(size=(launches, nodes, nodes))
    return logs


def by_node(rng: np.random.Generator, launches: int, nodes: int) -> Floats:
    """Half of it is a node's own in a launch, shared by its links."""
    own: Floats = SPREAD / 2 * rng.normal(size=(launches, nodes, 1))
    logs: Floats = own + own.swapaxes(1, 2) + even(rng, launches, nodes) / np.sqrt(2)
    return logs


def restless(rng: np.random.Generator, launches: int, nodes: int) -> Floats:
    """One value in ten is up to several times as slow; one launch in three has a busy node."""
    shape = (launches, nodes, nodes)
    spikes = np.where(rng.random(shape) < 0.1, np.abs(rng.normal(size=shape)), 0.0)
    busy = np.zeros((launches, nodes))
    busy[np.arange(launches), rng.integers(nodes, size=launches)] = rng.random(launches) < 1 / 3
    touched = (busy[:, :, None] + busy[:, None, :]) > 0
    logs: Floats = even(rng, launches, nodes) + spikes + np.log(2) * touched
    return logs


def unlike(spread: float) -> Noise:
    """Links differ by `spread` from each other in all launches, as routes and cores do."""

    def made(rng: np.random.Generator, launches: int, nodes: int) -> Floats:
        return even(rng, launches, nodes) + spread * rng.normal(size=(nodes, nodes))

    return made


NOISES: dict[str, Noise] = {
    "each value by 10 %": even,
    "half of it shared by a node's links": by_node,
    "one value in ten up to several times, busy nodes": restless,
    "links unlike by 5 % throughout": unlike(0.05),
    "links unlike by 10 % throughout": unlike(0.10),
}


def campaign(
    nodes: int, noise: Noise, seed: int, factor: float = 1.0, side: str = "both",
    launches: int = LAUNCHES,
) -> dict[str, PairMatrix]:  # fmt: skip
    """Matrices by metric; n2 is the slow node."""
    rng = np.random.default_rng([seed, nodes])
    sends, receives = (np.log(factor) * on for on in SIDES[side])
    rows = []
    for metric, base in (("latency", 9.0), ("bandwidth", 1e4)):
        logs = noise(rng, launches, nodes)
        logs[:, 1, :] += sends
        logs[:, :, 1] += receives
        both = metric == "latency"  # half a round trip
        logs = np.log((np.exp(logs) + np.exp(logs.swapaxes(1, 2))) / 2) if both else -logs
        values = base * np.exp(logs)
        rows += [
            ValueRow("key", f"{nodes}x1", "job", launch, 0,
                     f"native:pairs,from=n{a + 1},to=n{b + 1}", metric, 8,
                     float(values[launch, a, b]), "host")
            for launch in range(launches)
            for a in range(nodes)
            for b in range(nodes)
            if a != b and (a < b or not both)
        ]  # fmt: skip
    return {one.metric: one for one in pair_matrices(rows, {})}


def named(one: PairMatrix) -> bool:
    return bool(one.slow_nodes or one.slow_links or one.parts)


def named_shares(nodes: int, factor: float, side: str, campaigns: int) -> tuple[float, float]:
    """Shares of campaigns: n2 alone named, with its direction; anything else named as well."""
    right = wrong = 0
    for seed in range(campaigns):
        made = campaign(nodes, even, seed, factor, side)
        one = made["bandwidth"]
        right += [(n.node, str(n.way)) for n in one.slow_nodes] == [("n2", side)]
        wrong += any(
            [n.node for n in one.slow_nodes] not in ([], ["n2"]) or one.slow_links or one.parts
            for one in made.values()
        )
    return right / campaigns, wrong / campaigns


def false_alarms(nodes: int, noise: Noise, campaigns: int, launches: int = LAUNCHES) -> float:
    made = (campaign(nodes, noise, seed, launches=launches) for seed in range(campaigns))
    return sum(any(map(named, one.values())) for one in made) / campaigns


def main() -> None:
    campaigns = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    print(f"{LAUNCHES} launches; {campaigns} campaigns each, {5 * campaigns} of false alarms")
    for side in SIDES:
        for factor in FACTORS:
            shares = [named_shares(n, factor, side, campaigns) for n in NODES]
            text = ", ".join(
                f"{n} nodes {right:.1%} ({wrong:.1%} more than it)"
                for n, (right, wrong) in zip(NODES, shares, strict=True)
            )
            print(f"slow in {side} by {factor:g}, named: {text}")
    for what, noise in NOISES.items():
        for launches in (3, 6, LAUNCHES):
            text = ", ".join(
                f"{n} nodes {false_alarms(n, noise, 5 * campaigns, launches):.1%}" for n in NODES
            )
            print(f"false alarms, {what}, {launches} launches: {text}")


if __name__ == "__main__":
    main()
