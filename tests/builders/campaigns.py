"""Hand-made campaigns for the tests of comparisons: values of which the answer is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from mpigraft.core.model import CampaignRecord, ConfigurationRecord, Origin, ValueRow

CAMPAIGN = CampaignRecord("c1", "hand-made", "", Origin.RUN, 1, 6, "base", "{}", "")
# Six rounds that spread by 3 %: standard deviation 0.0326 of the logarithm.
SPREAD = (0.01, -0.04, 0.03, 0.0, -0.03, 0.04)
Ratio = Callable[[int, int], float]  # (round, size) -> ratio to the baseline


def arms(*names: str) -> list[ConfigurationRecord]:
    return [ConfigurationRecord("c1", name, f"mpi@{name}", "{}") for name in ("base", *names)]


def row(name: str, turn: int, size: int, value: float, **changes: object) -> ValueRow:
    made = ValueRow(name, "1x2", "a0", turn, 0, "native:latency", "latency", size, value, "host")
    return made._replace(**changes)  # type: ignore[arg-type]


def campaign(
    *others: Ratio,
    rounds: int = 6,
    sizes: Sequence[int] = (1, 8, 64),
    pair: float = 1.0,
    **changes: object,
) -> list[ValueRow]:
    """Values of a baseline, whose second launch is `pair` of the first, and of others k0, k1."""
    rows = []
    for turn in range(rounds):
        for size in sizes:
            level = (2.0 + size) * (1 + 0.3 * turn)  # rounds drift; pairing takes it out
            rows.append(row("base", turn, size, level / math.sqrt(pair), **changes))
            rows.append(row("base", turn, size, level * math.sqrt(pair), replica=1, **changes))
            for n, ratio in enumerate(others):
                rows.append(row(f"k{n}", turn, size, level * ratio(turn, size), **changes))
    return rows


def lacking(rows: Sequence[ValueRow], lost: Callable[[ValueRow], bool]) -> list[ValueRow]:
    """Without the values that are `lost`; the baseline has all of its own."""
    return [r for r in rows if r.configuration == "base" or not lost(r)]


def around(ratio: float) -> Ratio:
    return lambda turn, _: ratio * math.exp(SPREAD[turn % 6])
