"""Correct intervals for rounds that resemble their neighbours and so tell less than they seem to.

An interval of R rounds holds if the rounds are independent. Where a state of the machine lasts for
several rounds and moves one configuration more than the other, their differences are correlated,
and R rounds are worth R (1 - r) / (1 + r), r being the
correlation of neighbours (Bayley and Hammersley, JRSS Supplement 8, 1946).

r is the mean over the sizes of each size's own, corrected for its bias in short series: (R r + 1)
/ (R - 3) (Kendall, Biometrika 41, 1954). The order of whole rounds is permuted to see how often
chance alone makes neighbours so similar. Where that is rarer than CHANCE, intervals are stretched
to those of as many rounds as these are worth, Student's quantile included.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from mpigraft.analysis.statistics.bootstrap import T_975, Z_95
from mpigraft.core.arrays import Floats, Ints, np
from mpigraft.core.model import CampaignRecord, CellGroup, Finding
from mpigraft.core.text import join_some

LEAST_ROUNDS = 6  # of an allocation on average: with fewer, no order is rare
CHANCE = 0.01  # of stretching intervals of independent rounds
MOST_ALIKE = 0.99  # greatest correlation of an estimate
LEAST_WORTH = 2.0  # rounds: fewer have no interval
ORDERS = 2000  # random ones, and the measured one
ROUNDING = 1e-9  # what rounding makes of ratios that are all equal
SHOWN = 4  # curves in a finding


@dataclass(frozen=True, slots=True)
class Dependence:
    """How much rounds resemble their neighbours, and how many independent ones they are worth."""

    correlation: float | None  # of neighbours, corrected for its bias; None: unknown
    effective: float | None = None  # rounds that they are worth; None: it may be chance
    stretch: float = 1.0  # of an interval, from its middle


UNKNOWN = Dependence(None)


def dependence(logs: Floats, allocations: Ints, seed: int) -> Dependence:
    """Estimate the dependence of one curve's rounds; UNKNOWN if they are too few, or all equal.

    `logs` is (rounds, sizes) of log ratios in the order of the rounds, NaN where a round lacks a
    size; `allocations` numbers the allocation of each. Rounds of two allocations are not
    neighbours, and each size is compared with its own mean in an allocation.
    """
    measured = ~np.isnan(logs).all(axis=1)
    logs, allocations = logs[measured], allocations[measured]
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
    sums = (products[orders[:, :-1], orders[:, 1:]] * neighbours).sum(axis=1)
    correlation = min((length * float(sums[0]) + 1) / (length - 3), MOST_ALIKE)
    if float(np.mean(sums >= sums[0] - 1e-12)) > CHANCE:
        return Dependence(correlation)
    worth = max(count * (1 - correlation) / (1 + correlation), LEAST_WORTH)
    wider = _quantile(worth - 1) / _quantile(count - 1) * math.sqrt(count / worth)
    return Dependence(correlation, worth, wider)


def _residuals(logs: Floats, allocations: Ints) -> Floats:
    """Subtract from each size its own mean in each allocation; 0 where there is no value."""
    residuals = np.zeros(logs.shape)
    for name in np.unique(allocations):
        rows = allocations == name
        counts = np.maximum((~np.isnan(logs[rows])).sum(axis=0), 1)
        means = np.nansum(logs[rows], axis=0) / counts
        residuals[rows] = np.nan_to_num(logs[rows] - means)
    return residuals


@functools.lru_cache(maxsize=8)
def _orders(allocations: tuple[int, ...], seed: int) -> Ints:
    """Permute the rounds within each allocation: (ORDERS, rounds), the first the measured order."""
    rng = np.random.default_rng(seed)
    ranks = np.unique(allocations, return_inverse=True)[1]
    keys = ranks + rng.random((ORDERS, len(allocations)))
    orders: Ints = keys.argsort(axis=1)
    orders[0] = np.arange(len(allocations))
    return orders


def _quantile(free: float) -> float:
    """Interpolate Student's t, 97.5 %, for any degrees of freedom of 1 or more, in 1 / free."""
    ends = [0.0, *(1 / k for k in range(len(T_975), 0, -1))]
    return float(np.interp(1 / free, ends, [Z_95, *T_975[::-1]]))


def stretched(
    bounds: tuple[Floats, Floats], middles: Floats, factor: float
) -> tuple[Floats, Floats]:
    """Move the bounds of intervals `factor` times as far from their middles."""
    low, high = bounds
    return middles - (middles - low) * factor, middles + (high - middles) * factor


def findings(groups: Sequence[CellGroup], campaign: CampaignRecord) -> tuple[Finding, ...]:
    """Report all curves whose intervals were stretched, in one finding, the worst first."""
    groups = [group for group in groups if not group.repeats]
    worth = sorted(
        (g.effective_rounds, n) for n, g in enumerate(groups) if g.effective_rounds is not None
    )
    if not worth:
        return ()
    texts = [
        f"{groups[n].configuration} at {groups[n].benchmark} on {groups[n].layout} "
        f"(correlation {groups[n].autocorrelation:.2f}: worth {rounds:.1f} rounds)"
        for rounds, n in worth
    ]
    return (
        Finding.of(
            "rounds-alike",
            count=len(worth),
            curves=len(groups),
            examples=join_some(texts, SHOWN),
            chance=CHANCE,
            campaign=campaign.id[:8],
            rounds=2 * campaign.rounds,
        ),
    )
