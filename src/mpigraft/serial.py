"""Rounds that resemble their neighbours: what an interval takes for many looks may be a few.

An interval of R rounds holds if the rounds know nothing of each other. Where a state of the
machine lasts for several rounds and moves one configuration more than the other, their
differences follow each other, and R of them are worth R (1 - r) / (1 + r), r being the
correlation of neighbours (Bayley and Hammersley, JRSS Supplement 8, 1946).

r is the mean over the sizes of each size's own, rid of its bias in short series: (R r + 1) /
(R - 3) (Kendall, Biometrika 41, 1954). The order of whole rounds is permuted to see how often
chance alone makes neighbours so alike; where that is rarer than CHANCE, intervals are stretched
to what so many rounds are worth, Student's quantile included.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mpigraft.model import CampaignRecord, CellGroup, Finding, Level
from mpigraft.stats import T_975, Z_95

if TYPE_CHECKING:
    from mpigraft.stats import Floats, Ints

LEAST_ROUNDS = 6  # of an allocation on average: of fewer, no order is rare
CHANCE = 0.01  # of stretching intervals of rounds that know nothing of each other
MOST_ALIKE = 0.99  # correlation that an estimate is cut at
LEAST_WORTH = 2.0  # rounds: fewer have no interval
ORDERS = 2000  # random ones, the one seen among them
ROUNDING = 1e-9  # what is left of ratios that are all the same
SHOWN = 4  # curves that a finding names


@dataclass(frozen=True, slots=True)
class Dependence:
    """How much rounds resemble their neighbours, and what that leaves of them."""

    correlation: float | None  # of neighbours, rid of its bias; None: not known
    effective: float | None = None  # rounds that they are worth; None: it may be chance
    stretch: float = 1.0  # of an interval, from its middle


UNKNOWN = Dependence(None)


def dependence(logs: Floats, allocations: Ints, seed: int) -> Dependence:
    """Of the rounds of one curve; UNKNOWN where they are too few, or all the same.

    `logs` is (rounds, sizes) of log ratios in the order of the rounds, NaN where a round lacks a
    size; `allocations` numbers the allocation of each. Rounds of two allocations are no
    neighbours, and each size is held against its own mean in an allocation.
    """
    import numpy as np

    here = ~np.isnan(logs).all(axis=1)
    logs, allocations = logs[here], allocations[here]
    order = np.argsort(allocations, kind="stable")
    logs, allocations = logs[order], allocations[order]
    count = len(logs)
    length = count / max(len(np.unique(allocations)), 1)
    if length < LEAST_ROUNDS:
        return UNKNOWN
    residuals = _residuals(logs, allocations)
    roots = np.sqrt((residuals**2).sum(axis=0))
    if not (roots > ROUNDING).any():
        return UNKNOWN
    scaled = residuals[:, roots > ROUNDING] / roots[roots > ROUNDING]
    products = scaled @ scaled.T / scaled.shape[1]
    neighbours = allocations[1:] == allocations[:-1]
    orders = _orders(tuple(allocations.tolist()), seed)
    found = (products[orders[:, :-1], orders[:, 1:]] * neighbours).sum(axis=1)
    correlation = min((length * float(found[0]) + 1) / (length - 3), MOST_ALIKE)
    if float(np.mean(found >= found[0] - 1e-12)) > CHANCE:
        return Dependence(correlation)
    worth = max(count * (1 - correlation) / (1 + correlation), LEAST_WORTH)
    wider = _quantile(worth - 1) / _quantile(count - 1) * math.sqrt(count / worth)
    return Dependence(correlation, worth, wider)


def _residuals(logs: Floats, allocations: Ints) -> Floats:
    """Each size against its own mean in each allocation; 0 where there is none."""
    import numpy as np

    residuals = np.zeros(logs.shape)
    for name in np.unique(allocations):
        rows = allocations == name
        counts = np.maximum((~np.isnan(logs[rows])).sum(axis=0), 1)
        means = np.nansum(logs[rows], axis=0) / counts
        residuals[rows] = np.nan_to_num(logs[rows] - means)
    return residuals


@functools.lru_cache(maxsize=8)
def _orders(allocations: tuple[int, ...], seed: int) -> Ints:
    """(ORDERS, rounds): orders of the rounds within each allocation, the first the one seen."""
    import numpy as np

    rng = np.random.default_rng(seed)
    ranks = np.unique(allocations, return_inverse=True)[1]
    keys = ranks + rng.random((ORDERS, len(allocations)))
    orders: Ints = keys.argsort(axis=1)
    orders[0] = np.arange(len(allocations))
    return orders


def _quantile(free: float) -> float:
    """Student's t, 97.5 %, for any degrees of freedom of 1 or more: between whole ones, and beyond
    the table, by what 1 / free leaves of the distance."""
    import numpy as np

    ends = [0.0, *(1 / k for k in range(len(T_975), 0, -1))]
    return float(np.interp(1 / free, ends, [Z_95, *T_975[::-1]]))


def stretched(
    bounds: tuple[Floats, Floats], middles: Floats, factor: float
) -> tuple[Floats, Floats]:
    """Intervals whose bounds are `factor` times as far from their middles."""
    low, high = bounds
    return middles - (middles - low) * factor, middles + (high - middles) * factor


def findings(groups: Sequence[CellGroup], campaign: CampaignRecord) -> tuple[Finding, ...]:
    """One finding for all curves whose intervals were stretched, those that lost most first."""
    groups = [group for group in groups if not group.repeats]
    worth = sorted(
        (g.effective_rounds, place)
        for place, g in enumerate(groups)
        if g.effective_rounds is not None
    )
    if not worth:
        return ()
    named = "; ".join(
        f"{groups[place].configuration} at {groups[place].benchmark} on {groups[place].layout} "
        f"(correlation {groups[place].autocorrelation:.2f}: worth {rounds:.1f} rounds)"
        for rounds, place in worth[:SHOWN]
    )
    more = f"; and {len(worth) - SHOWN} more" if len(worth) > SHOWN else ""
    return (
        Finding(
            Level.WARNING,
            "rounds-alike",
            f"rounds resemble their neighbours on {len(worth)} of {len(groups)} curves: "
            f"{named}{more}",
            "a state that lasts for several rounds is measured several times and counts once: "
            "intervals of these curves are as wide as those of so many rounds; "
            f"chance alone does it to {CHANCE:.0%} of curves",
            "measure more rounds, or at another hour: "
            f"mpigraft bench --resume {campaign.id[:8]} --rounds {2 * campaign.rounds}",
        ),
    )
