"""Test whole curves, corrected for the number of the campaign's curves.

Sizes of a launch move together, and so do the curves of a round: they share one baseline, and
what disturbed the round disturbed each of them. So the sign of a whole round is flipped at
once, over all sizes of all curves, and a curve has to exceed the greatest |T| of all of them.
Curves are taken in the order of their own greatest |T|, and each that was passed is left out of
the comparison of the next: the step-down max-T method of Westfall and Young
(Resampling-Based Multiple Testing, 1993, algorithm 4.1). Why the greatest |T| over the sizes rather
than that of their mean: docs/explanation/method.md.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Container, Sequence
from typing import Protocol, Self

from mpigraft.analysis.interim import FLIPS
from mpigraft.core.arrays import Floats, Ints, np

ONE_TIME = ("latency", "bandwidth", "message_rate")  # each of the others follows from the first
TIED = 1 - 1e-7  # of a statistic: what rounding may take from one that is as great


class HasMetric(Protocol):
    """The key of a series or curve: a named tuple with a metric."""

    @property
    def metric(self) -> str: ...

    def _replace(self, *, metric: str) -> Self: ...


def repeated_metric(key: HasMetric, measured: Container[HasMetric]) -> str:
    """Return the metric that this one only repeats, else an empty text. Bandwidth and message rate
    of one benchmark are both its messages over one time, so the first of ONE_TIME that was
    `measured` counts for all."""
    if key.metric not in ONE_TIME:
        return ""
    first = next(m for m in ONE_TIME if key._replace(metric=m) in measured)
    return "" if first == key.metric else first


def adjusted_p(curves: Sequence[Floats], rounds: Sequence[Ints], seed: int) -> list[float]:
    """Return each curve's p: the chance, if no curve differed, that any has as great a |T| as this
    one, or as one of those with a greater. A familywise error, whichever curves really differ.

    A curve is (rounds, sizes) of log ratios, NaN where it lacks one; `rounds` numbers the
    campaign's round of each of its rows. All patterns of signs are tried up to 12 rounds, else
    FLIPS random ones that `seed` draws and the measured one. One curve alone has its own p.
    """
    if not curves:
        return []
    names, places = np.unique(np.concatenate(rounds), return_inverse=True)
    signs = sign_patterns(len(names), seed)
    ends = np.cumsum([len(numbers) for numbers in rounds])[:-1]
    rows = np.split(places, ends)
    columns = [
        _greatest_t(_in_rounds(curve, own, len(names)), signs)
        for curve, own in zip(curves, rows, strict=True)
    ]
    return step_down(np.column_stack(columns))


def _in_rounds(curve: Floats, places: Ints, rounds: int) -> Floats:
    """Put the rows of a curve in their places among all rounds: to copy the columns of `signs`
    instead takes ten times as long as the test."""
    whole = np.full((rounds, curve.shape[1]), np.nan)
    whole[places] = curve
    return whole


def _greatest_t(curve: Floats, signs: Floats) -> Floats:
    """Find each pattern's greatest |T| over the sizes, as the normal deviate that is as unlikely.

    T is the sum over the root of the sum of squares, which orders patterns as Student's t does.
    It cannot exceed the root of the number of rounds, so sizes and curves of different numbers
    are made comparable: z = (8 f + 1) / (8 f + 3) sqrt(f log(1 + t^2 / f)) for f degrees of freedom
    (Wallace, Annals of Mathematical Statistics 30, 1959). A NaN counts for nothing.
    """
    known = np.nan_to_num(curve)
    roots = np.sqrt((known**2).sum(axis=0))
    varying = roots > 0
    counts = (~np.isnan(curve[:, varying])).sum(axis=0)
    squares = (signs @ (known[:, varying] / roots[varying])) ** 2
    greatest = np.zeros(len(signs))
    for count in np.unique(counts).tolist():
        share = squares[:, counts == count].max(axis=1) / count
        free = count - 1
        scale = math.sqrt(free) * (8 * free + 1) / (8 * free + 3)
        deviates = scale * np.sqrt(-np.log1p(-np.minimum(share, TIED)))
        greatest = np.maximum(greatest, deviates)
    return greatest


def step_down(greatest: Floats) -> list[float]:
    """Return the p of each column of (patterns, curves); the first pattern is the measured one."""
    order = np.argsort(-greatest[0], kind="stable")
    beaten = np.maximum.accumulate(greatest[:, order[::-1]], axis=1)[:, ::-1]
    shares = (beaten >= greatest[0, order] * TIED).mean(axis=0)
    p = np.empty(len(order))
    p[order] = np.maximum.accumulate(shares)
    values: list[float] = p.tolist()
    return values


@functools.lru_cache(maxsize=8)
def sign_patterns(rounds: int, seed: int) -> Floats:
    """Make (patterns, rounds) of 1 and -1, the first all 1: every pattern, or FLIPS random ones."""
    if 2**rounds <= FLIPS:
        bits = np.arange(2**rounds)[:, None] >> np.arange(rounds) & 1
    else:
        bits = np.random.default_rng(seed).integers(0, 2, (FLIPS, rounds))
        bits[0] = 0
    signs: Floats = np.where(bits, -1.0, 1.0)
    return signs
