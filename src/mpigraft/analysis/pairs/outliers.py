"""Find the slow nodes of a matrix of links: in sending, in receiving or in both.

A node's own links are compared with those between the other nodes, so that neither the scale nor
the centre includes the candidate: of four nodes a slow one spoils a third of the links of each
good one, and a spread that includes it hides it. Sending and receiving are judged apart, because a
node may be slow in one of them only; a value of both ways (a round trip) is judged once.

An outlier of the medians over launches must be one launch after launch too: any link is slow at
times, and among many some are so twice. The number of launches in which a node was an outlier is
compared with that of the others, by the binomial distribution.

How often this is right: docs/explanation/scale.md, by evaluation/pairs_synthetic.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import median_low

from mpigraft.core.arrays import Floats, np

DEVIATIONS = 5.0  # that a node or a link must be above the others
CLIP = 3.0  # deviations beyond which a value counts for no more
NORMAL = 1.4826  # a normal distribution's deviation over its MAD
MEDIAN = 1.2533  # the deviation of a median over that of a mean, of normal values: (pi / 2)^0.5
LEAST = 0.1  # slower than the median, a fraction
CHANCE = 0.01  # of a false finding in a matrix of equal nodes


class Way(StrEnum):
    """In which direction a node's links are slow."""

    SENDING = "sending"
    RECEIVING = "receiving"
    BOTH = "both"
    EITHER = ""  # a value belongs to both directions, so they cannot be separated


@dataclass(frozen=True, slots=True)
class Excess:
    """How far a node's links in one direction are above those between the other nodes."""

    node: int
    way: Way
    above: float  # of the medians over launches, as a logarithm
    limit: float  # that it must exceed, in the medians and in a launch


def slow_nodes(logs: Floats, *, symmetric: bool) -> list[tuple[int, float, Way]]:
    """Find the slow nodes, the worst first: index, times as slow as the other links, direction.

    `logs` is (launches, from, to): how slow each link was, as a logarithm; NaN where it was not
    measured. `symmetric`: a value is of both directions. The worst node is taken out and the others
    are judged again, until there is no outlier, so that a node is not named for its links to a slow
    one. Needs three nodes: of two it may be either.
    """
    rows = []
    others = list(range(len(logs[0])))
    while excesses := _excesses(logs[:, others][:, :, others], symmetric):
        worst = max(excesses, key=lambda excess: excess.above)
        ways = [excess.way for excess in excesses if excess.node == worst.node]
        way = Way.BOTH if len(ways) > 1 else worst.way
        rows.append((others.pop(worst.node), math.exp(worst.above), way))
    return sorted(rows, key=lambda row: -row[1])


def launch_noise(logs: Floats) -> float:
    """Estimate the standard deviation of a link's median over launches, from how far all links'
    launches are off their medians. `logs` is (launches, ...), NaN where there is no value."""
    launches = len(logs)
    if launches < 2:
        return 0.0
    off = np.abs(logs - middles(logs))
    off = off[~np.isnan(off)]
    if not len(off):
        return 0.0
    each = NORMAL * float(np.median(off)) * math.sqrt(launches / (launches - 1))
    return MEDIAN * each / math.sqrt(launches)


def middles(logs: Floats) -> Floats:
    """Take medians over the first axis; NaN where there is no value at all."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all-NaN
        centres: Floats = np.nanmedian(logs, axis=0)
    return centres


def _excesses(logs: Floats, symmetric: bool) -> list[Excess]:
    nodes = len(logs[0])
    ways = {Way.EITHER: logs}
    if not symmetric:
        ways = {Way.SENDING: logs, Way.RECEIVING: logs.swapaxes(1, 2)}
    noise = launch_noise(logs)
    far = [
        excess
        for way, links in ways.items()
        for whole in [middles(links)]
        for node in range(nodes)
        if (excess := _excess(whole, node, way, noise)) and excess.above > excess.limit
    ]
    tests = nodes * len(ways)
    return [excess for excess in far if tests * _chance(excess, ways) < CHANCE]


def _excess(whole: Floats, node: int, way: Way, noise: float) -> Excess | None:
    """Measure how far a node is above the others in `whole`, (from, to), by its row. None for a
    node with one partner, because the link may be slow; for one whose partners have no link of
    their own; and for one that is not slower.

    The difference of two medians varies by what links vary over the root of their number, and by
    what nodes vary: of many nodes the first is next to nothing, of three the second is unknown.
    Of three nodes it is that of one link at most: the lower of two is below their median."""
    others = _others(whole, node)
    own, other = _known(whole[node]), _known(_once(others) if way is Way.EITHER else others)
    if len(own) < 2 or not len(other):
        return None
    centre = float(np.median(other))
    above = float(median_low(own)) - centre
    if above <= math.log(1 + LEAST):
        return None
    off = np.concatenate([np.abs(other - centre), np.abs(own - np.median(own))])
    few = min(MEDIAN * math.sqrt(1 / len(own) + 1 / len(other)), 1.0)
    spread = few * deviation(off, 2)
    lows = _known(_lows(others))
    if len(lows) > 2:
        spread = max(spread, NORMAL * float(np.median(np.abs(lows - np.median(lows)))))
    return Excess(node, way, above, least_above(spread, noise))


def deviation(off: Floats, centres: int) -> float:
    """Estimate the standard deviation of values from their distances to `centres` centres. Each
    distance is clipped at CLIP deviations by the median: then a third of the values may be
    anywhere. For values of one kind it is as good as the usual estimate, while the median of six
    distances is too small by half every now and then."""
    most = CLIP * NORMAL * float(np.median(off))
    squares = float((np.minimum(off, most) ** 2).sum())
    return math.sqrt(squares / (len(off) - centres))


def least_above(spread: float, noise: float) -> float:
    """Return how far above the others something must be to be named, as a logarithm."""
    return max(DEVIATIONS * max(spread, noise), math.log(1 + LEAST))


def _chance(excess: Excess, ways: dict[Way, Floats]) -> float:
    """Return the chance of as many outliers as this node has, if it is like the others."""
    own = above = others = others_above = 0
    for way, links in ways.items():
        for launch in links:
            between_others = _others(launch, excess.node)
            known = _known(between_others)
            if not len(known):
                continue
            centre = np.median(known)
            lows = _lows(between_others) - centre
            others += int(np.count_nonzero(~np.isnan(lows)))
            others_above += int(np.count_nonzero(lows > excess.limit))
            links_of_node = _known(launch[excess.node])
            if way is excess.way and len(links_of_node) > 1:
                own += 1
                above += bool(median_low(links_of_node) - centre > excess.limit)
    return tail(own, above, (others_above + 1) / (others + 1))


def _others(links: Floats, node: int) -> Floats:
    """Leave out a node's row and column."""
    others: Floats = np.delete(np.delete(links, node, axis=0), node, axis=1)
    return others


def _once(links: Floats) -> Floats:
    """Take each value once where (from, to) and (to, from) are the same."""
    return links[np.triu_indices(len(links), 1)]


def _known(links: Floats) -> Floats:
    return links[~np.isnan(links)]


def _lows(links: Floats) -> Floats:
    """Take the low median of each row: if half of a good node's links go to a slow one, the other
    half decides. NaN for a row without a value."""
    ordered = np.sort(links, axis=1)  # NaN last
    counts = np.count_nonzero(~np.isnan(links), axis=1)
    lows: Floats = ordered[
        np.arange(len(links)), (counts - 1) // 2
    ]  # without values: the last, NaN
    return lows


def tail(times: int, least: int, chance: float) -> float:
    """Return the binomial chance of `least` or more in `times`."""
    p = min(chance, 1.0)
    return sum(math.comb(times, k) * p**k * (1 - p) ** (times - k) for k in range(least, times + 1))
