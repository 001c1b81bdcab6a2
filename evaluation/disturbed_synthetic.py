"""Measure what verdicts are worth when other processes disturb some of the launches, by simulation.

    python evaluation/disturbed_synthetic.py [--campaigns 200]

Launches vary by 4 % and sizes by 3 %. In a share of the rounds, launches are slowed: others take 12
to 45 % of two CPUs, and cost some part of what that can cost (1 / (1 - 2 share)). `even`: any
launch of the round; `arms`, `baseline`: that side six times as often as the other; `burst`: one
size of a launch, by up to four times that factor; `samples`: as `arms`, and all that is taken falls
on half of the samples, which are the values: (1 + 2 share) / (1 - 2 share). Half of the campaigns
have three configurations that do not differ, so that any winner is false; the others 3.2 times
slower and 6 times faster ones, so that a missing verdict is a lost one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from mpigraft.analysis import judge_campaign
from mpigraft.core.model import (
    CampaignRecord,
    Conditions,
    ConfigurationRecord,
    CpuUse,
    LaunchRecord,
    LaunchState,
    Measured,
    NodeState,
    Origin,
    ValueRow,
    Verdict,
)

SIZES = tuple(4**n for n in range(8))
SAME, UNLIKE = (1.0, 1.0, 1.0), (3.2, 1 / 6)
ROUNDS, SHARES = (6, 10), (0.3, 0.6, 0.95)
KINDS = ("even", "arms", "baseline", "burst", "samples")
RARE = 1 / 6
WINNERS = (Verdict.FASTER, Verdict.SLOWER)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=200)
    campaigns = parser.parse_args().campaigns
    print("rounds  disturbed  share   any false winner  called of 3.2x and 1/6")
    for rounds, kind, share in product(ROUNDS, KINDS, SHARES):
        rng = np.random.default_rng(7)
        false = called = 0
        for _ in range(campaigns // 2):
            false += any(v in WINNERS for v in verdicts(rng, SAME, rounds, kind, share))
            slower, faster = verdicts(rng, UNLIKE, rounds, kind, share)
            called += (slower is Verdict.SLOWER) + (faster is Verdict.FASTER)
        half = max(campaigns // 2, 1)
        rates = f"{100 * false / half:15.1f} %  {50 * called / half:20.0f} %"
        print(f"{rounds:6}  {kind:9}  {100 * share:3.0f} %  {rates}", flush=True)


def verdicts(
    rng: np.random.Generator, ratios: tuple[float, ...], rounds: int, kind: str, share: float
) -> list[Verdict]:
    """Judge one campaign; a verdict for each of the `ratios` to the baseline."""
    names = [f"k{n}" for n in range(len(ratios))]
    arms = [
        ("base", 0, 1.0),
        ("base", 1, 1.0),
        *((n, 0, r) for n, r in zip(names, ratios, strict=True)),
    ]
    values: list[ValueRow] = []
    launches: list[LaunchRecord] = []
    for number in range(rounds):
        level, disturbed = rng.normal(0, 0.05), rng.random() < share
        for name, replica, ratio in arms:
            often = share * (1 if (name == "base") is (kind == "baseline") else RARE)
            hit = disturbed if kind in ("even", "burst") else rng.random() < often
            taken = rng.uniform(0.12, 0.45) if hit and rng.random() < 0.8 else 0.02
            slowed = slowdowns(rng, kind, taken) if taken > 0.1 else np.ones(len(SIZES))
            noise = level + rng.normal(0, 0.04) + rng.normal(0, 0.03, len(SIZES))
            values += rows(name, number, replica, ratio * np.exp(noise) * slowed)
            launches.append(launch(name, number, replica, taken))
    seed = int(rng.integers(1 << 30))
    record = CampaignRecord("c1", "synthetic", "", Origin.RUN, seed, rounds, "base", "{}", "")
    records = tuple(ConfigurationRecord("c1", n, f"mpi@{n}", "{}") for n in ("base", *names))
    side = Measured(record, records, (), tuple(launches), tuple(values))
    found = {group.configuration: group.curve for group in judge_campaign(side).groups}
    return [found[f"mpi@{name}"] for name in names]


def slowdowns(rng: np.random.Generator, kind: str, taken: float) -> np.ndarray:
    most = 1 / (1 - 2 * taken)
    factors = np.ones(len(SIZES))
    if kind == "burst":
        factors[rng.integers(len(SIZES))] = rng.uniform(1, 4 * most)
        return factors
    if kind == "samples":
        return factors * (1 + 2 * taken) / (1 - 2 * taken)
    part = 1 + (most - 1) * rng.beta(1, 2)
    return np.maximum(factors * part * np.exp(rng.normal(0, 0.03, len(SIZES))), 1)


def rows(name: str, number: int, replica: int, ratios: np.ndarray) -> Iterator[ValueRow]:
    for size, ratio in zip(SIZES, ratios.tolist(), strict=True):
        place = (name, "1x2", "a0", number, replica, "native:latency", "latency", size)
        yield ValueRow(*place, (2 + size) * ratio, "host")


def launch(name: str, number: int, replica: int, taken: float) -> LaunchRecord:
    use = CpuUse("n1", 2, 2, 3.0, 6.0, 0.0, 5.0, taken, 9)
    here = Conditions(NodeState(), NodeState(), (use,))
    identity = f"{name}-{number}-{replica}"
    made = LaunchRecord(
        identity, "c1", "a0", name, "1x2", number, 0, replica, "", 3.0, 0, LaunchState.OK, ()
    )
    return replace(made, conditions=here)


if __name__ == "__main__":
    main()
