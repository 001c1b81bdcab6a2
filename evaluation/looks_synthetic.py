"""Measure what ending a campaign early costs and saves, on campaigns whose truth is known.

    python -m evaluation.looks_synthetic [--campaigns 200] [--null 2000]

A campaign has a baseline with its second launch and one or ten configurations on one benchmark of
23 sizes. Launches vary as in verdicts_synthetic.py: all sizes of a launch together (correlation
0.7), whole rounds by 10 %. At each look `compare` judges what was measured, as `bench` does, and a
configuration whose curve is called is not launched any more. Printed are, over all campaigns: how
many launches of the fixed campaign were made, in how many campaigns any curve of an equal
configuration was called, in how many cases a true difference was, and how far the ratio of a
called curve lies from the truth. The unit tests call the same function with fewer campaigns.
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
    WINS,
    Floats,
    campaign,
    campaigns_option,
    measured,
    standard,
    value_rows,
)
from mpigraft.analysis.comparison import compare
from mpigraft.analysis.interim import campaign_looks
from mpigraft.analysis.multiplicity import adjusted_p
from mpigraft.core.model import CampaignRecord, CellGroup
from mpigraft.core.serialize import canonical

SIZES = 23
LOOKS = (9, 14, 20)


@dataclass(frozen=True, slots=True)
class Ends:
    """What campaigns of one kind came to. Shares are of campaigns or of curves."""

    launches: float  # of those of the fixed campaign
    crossed: float  # campaigns in which the joint test alone passed a level
    false: float  # campaigns in which a curve of an equal configuration was called
    right: float  # curves of a true difference that were called, and the right way
    first: float  # of these, at the first look
    bias: float  # of called curves: ratio over true ratio, away from 1, less 1


def ends(
    ratio: float,
    count: int,
    spread: float,
    campaigns: int,
    *,
    looks: Sequence[int] = LOOKS,
    shape: str = "normal",
    seed: int = 1,
) -> Ends:
    """Run `campaigns` campaigns of `count` configurations with the same true `ratio`. With one
    look it is the fixed campaign."""
    rng = np.random.default_rng([seed, count, round(1e4 * spread), round(1e4 * ratio)])
    names = [f"c{number}" for number in range(count)]
    launches = crossed = false = right = first = 0
    biases = []
    for number in range(campaigns):
        plan = canonical({"wish": {"looks": looks if len(looks) > 1 else ()}})
        record = campaign(number, looks[-1], plan)
        groups = _ended(record, _launches(rng, names, ratio, spread, shape, looks[-1]))
        crossed += bool(groups)
        called = [group for group in groups if group.curve in WINS]
        over = {g.configuration: g.look or looks[-1] for g in called}
        last = max(over.get(name, looks[-1]) for name in names)
        launches += 2 * last + sum(over.get(name, looks[-1]) for name in names)
        false += ratio == 1 and bool(called)
        correct = [g for g in called if ratio != 1 and (g.pooled > 1) is (ratio > 1)]
        right += len(correct)
        first += sum(g.look == looks[0] for g in correct)
        away = 1 if ratio > 1 else -1
        biases += [away * (math.log(g.pooled) - math.log(ratio)) for g in correct]
    return Ends(
        crossed=crossed / campaigns,
        launches=launches / (campaigns * looks[-1] * (count + 2)),
        false=false / campaigns,
        right=right / (campaigns * count),
        first=first / max(right, 1),
        bias=math.expm1(float(np.mean(biases))) if biases else 0.0,
    )


def _ended(record: CampaignRecord, launches: dict[str, Floats]) -> tuple[CellGroup, ...]:
    """The comparison at the end of a campaign, which configurations leave as they are called;
    empty where the joint test passed no level. `launches` are logarithms: of a configuration
    (rounds, sizes), of the baseline (2, rounds, sizes). `compare` is called only where it may call
    a curve."""
    base = launches["base"].mean(axis=0)
    names = [name for name in launches if name != "base"]
    over: dict[str, int] = {}
    groups: tuple[CellGroup, ...] = ()
    for look in campaign_looks(record):
        ends = [min(look.rounds, over.get(name, look.rounds)) for name in names]
        logs = [launches[name][:end] - base[:end] for name, end in zip(names, ends, strict=True)]
        chances = adjusted_p(logs, [np.arange(end) for end in ends], record.seed)
        tried = [p for name, p in zip(names, chances, strict=True) if name not in over]
        if min(tried) > look.level:
            continue
        rows = value_rows(
            [
                ("base", replica, launch[: look.rounds])
                for replica, launch in enumerate(launches["base"])
            ]
            + [(name, 0, launches[name][:end]) for name, end in zip(names, ends, strict=True)]
        )
        groups = compare(measured(record, names, rows), over=range(look.rounds)).groups
        over.update({g.configuration: g.look for g in groups if g.look is not None})
        if len(over) == len(names):
            break
    return groups


def _launches(
    rng: np.random.Generator,
    names: Sequence[str],
    ratio: float,
    spread: float,
    shape: str,
    rounds: int,
) -> dict[str, Floats]:
    drift = DRIFT * rng.standard_normal(rounds)[:, None]

    def launch(count: int) -> Floats:
        alike = standard(rng, shape, (count * rounds, 1)) * math.sqrt(CORRELATION)
        own = standard(rng, shape, (count * rounds, SIZES)) * math.sqrt(1 - CORRELATION)
        logs: Floats = spread * (alike + own).reshape(count, rounds, SIZES) + drift
        return logs

    return {"base": launch(2), **{name: launch(1)[0] + math.log(ratio) for name in names}}


NULL = [("normal", 0.03), ("normal", 0.05), ("normal", 0.12)] + [(s, 0.05) for s in SHAPES[1:]]


def main() -> None:
    given = campaigns_option(__doc__, 200, null=2000)
    print(f"a true ratio, {given.campaigns} campaigns a row (ten configurations: a tenth); percent")
    print("ratio  varies by  configurations  launches  called  first look  bias  fixed  bias")
    for ratio in (1.1, 1.2, 1.4, 0.8):
        for spread in (0.03, 0.05):
            for count in (1, 10):
                number = given.campaigns // count
                early = ends(ratio, count, spread, number)
                fixed = ends(ratio, count, spread, number, looks=LOOKS[-1:])
                shares = (early.launches, early.right, early.first, early.bias, fixed.right)
                text = "  ".join(f"{100 * share:8.2f}" for share in (*shares, fixed.bias))
                print(f"{ratio:5}  {100 * spread:9.0f}  {count:14}  {text}", flush=True)
    print(f"nothing differs, {given.null} campaigns a row (ten configurations: a quarter); percent")
    print("shape        varies by  configurations  p alone  false campaigns  launches")
    for shape, spread in NULL:
        for count in (1, 10):
            null = ends(1.0, count, spread, given.null // (1 if count == 1 else 4), shape=shape)
            errors = (null.crossed, null.false, null.launches)
            text = "  ".join(f"{100 * share:8.2f}" for share in errors)
            print(f"{shape:12} {100 * spread:9.0f}  {count:14}  {text}", flush=True)


if __name__ == "__main__":
    main()
