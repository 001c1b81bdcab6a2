"""Test curves of two campaigns by dealing their rounds anew.

If nothing changed, it is chance which rounds are of the one campaign and which of the other. So
whole rounds are dealt anew, for all curves at once, and each time the greatest |T| over the sizes
of each curve is taken. The step-down max-T method corrects for the number of curves, as it does
within a campaign (analysis/multiplicity.py); there the signs of rounds are flipped, here nothing
pairs them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import NamedTuple

from mpigraft.analysis.interim import FLIPS
from mpigraft.analysis.multiplicity import TIED, step_down
from mpigraft.core.arrays import Floats, Ints, np


class Arms(NamedTuple):
    """A curve's complete rounds in both campaigns: (rounds, sizes) of logarithms, and the number
    of each round in its campaign."""

    new: Floats
    old: Floats
    rounds: tuple[Ints, Ints]


def joint_p(
    curves: Sequence[Arms], counts: tuple[int, int], seed: int
) -> list[tuple[float, float]]:
    """Return each curve's p: the chance, if nothing changed, that any has as great a |T| as this
    one, or as one of those with a greater; then the same if it were the only one. `counts` are
    the rounds of the new and the old campaign; FLIPS - 1 random deals and the measured one are
    tried."""
    if not curves:
        return []
    keys = _deals(*counts, seed)
    greatest = np.column_stack([_greatest_t(arms, keys, counts[0]) for arms in curves])
    alone = (greatest >= greatest[0] * TIED).mean(axis=0).tolist()
    return list(zip(step_down(greatest), alone, strict=True))


@functools.lru_cache(maxsize=8)
def _deals(new: int, old: int, seed: int) -> Floats:
    """Draw (deals, rounds): of any set of rounds, as many as were new have the smallest numbers.
    The first deal is the measured one."""
    keys = np.random.default_rng(seed).random((FLIPS, new + old))
    keys[0] = np.arange(new + old)
    return keys


def _greatest_t(arms: Arms, keys: Floats, begin: int) -> Floats:
    """Find each deal's greatest |T| over the sizes, as the normal deviate that is as unlikely
    (Wallace, Annals of Mathematical Statistics 30, 1959).

    The share of the sum of squares that is between the two groups orders deals as Student's t
    does: log(1 + t^2 / f) = -log(1 - share)."""
    first, second = len(arms.new), len(arms.old)
    logs = np.concatenate([arms.new, arms.old])
    logs = logs - logs.mean(axis=0)
    squares = (logs**2).sum(axis=0)
    logs, squares = logs[:, squares > 0], squares[squares > 0]
    free = first + second - 2
    if not logs.size or free < 1:
        return np.zeros(len(keys))
    columns = np.concatenate([arms.rounds[0], arms.rounds[1] + begin])
    own = keys[:, columns]
    dealt = (own <= np.partition(own, first - 1, axis=1)[:, first - 1 : first]).astype(np.float64)
    share = ((dealt @ logs) ** 2 / squares).max(axis=1) * (1 / first + 1 / second)
    scale = math.sqrt(free) * (8 * free + 1) / (8 * free + 3)
    deviates: Floats = scale * np.sqrt(-np.log1p(-np.minimum(share, TIED)))
    return deviates
