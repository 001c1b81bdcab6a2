"""Which nodes of a matrix of links are slow, in sending, in receiving or both.

A node's own links are held against those between the other nodes, so that neither the scale nor
the centre has the candidate in it: of four nodes a slow one spoils a third of the links of each
good one, and a spread that has it in it hides it. Sending and receiving are judged apart, since a
node may be slow in one of them alone; a value both ways (a round trip) is judged once.

What stands out in the medians over launches has to do so launch after launch too: any link is
slow at times, and of many some are so twice. In how many of its launches a node stood out is held
against how often the others did, by the binomial distribution.

How often this is right: docs/scale.md, by benchmarks/pairs_synthetic.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum
from statistics import median_low
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

DEVIATIONS = 5.0  # how many of them a node or a link has to lie above the others
CLIP = 3.0  # deviations beyond which a value counts for no more
NORMAL = 1.4826  # a normal distribution's deviation over its MAD
MEDIAN = 1.2533  # the deviation of a median over that of a mean, of normal values: (pi / 2)^0.5
LEAST = 0.1  # slower than the median, a fraction
CHANCE = 0.01  # of a false name in a matrix where all are alike


class Way(StrEnum):
    """In which direction a node's links are slow."""

    SENDING = "sending"
    RECEIVING = "receiving"
    BOTH = "both"
    EITHER = ""  # a value belongs to both directions, so that nothing tells them apart


@dataclass(frozen=True, slots=True)
class Excess:
    """How far a node's links in one direction lie above those between the other nodes."""

    node: int
    way: Way
    above: float  # of the medians over launches, as a logarithm
    limit: float  # what it has to exceed, in the medians and in a launch


def slow_nodes(logs: Floats, *, symmetric: bool) -> list[tuple[int, float, Way]]:
    """The slow nodes, the worst first: index, times as slow as the other nodes' links, direction.

    `logs` is (launches, from, to): how slow each link was, as a logarithm; NaN where it was not
    measured. `symmetric`: a value is of both directions. The worst node is named first and left
    out, and the others are judged anew, until none stands out: what is slow for its sake alone is
    not named. Needs three nodes: of two it may be either.
    """
    rows = []
    others = list(range(len(logs[0])))
    while named := _named(logs[:, others][:, :, others], symmetric):
        worst = max(named, key=lambda one: one.above)
        ways = [one.way for one in named if one.node == worst.node]
        way = Way.BOTH if len(ways) > 1 else worst.way
        rows.append((others.pop(worst.node), math.exp(worst.above), way))
    return sorted(rows, key=lambda row: -row[1])


def launch_noise(logs: Floats) -> float:
    """The standard deviation of a link's median over launches, from how far all links' launches
    lie off their medians. `logs` is (launches, ...), NaN where there is no value."""
    import numpy as np

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
    """Medians over the first axis, NaN where there is no value at all."""
    import warnings

    import numpy as np

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all-NaN
        found: Floats = np.nanmedian(logs, axis=0)
    return found


def _named(logs: Floats, symmetric: bool) -> list[Excess]:
    nodes = len(logs[0])
    ways = {Way.EITHER: logs}
    if not symmetric:
        ways = {Way.SENDING: logs, Way.RECEIVING: logs.swapaxes(1, 2)}
    noise = launch_noise(logs)
    far = [
        one
        for way, links in ways.items()
        for whole in [middles(links)]
        for node in range(nodes)
        if (one := _excess(whole, node, way, noise)) and one.above > one.limit
    ]
    tests = nodes * len(ways)
    return [one for one in far if tests * _chance(one, ways) < CHANCE]


def _excess(whole: Floats, node: int, way: Way, noise: float) -> Excess | None:
    """`whole` is (from, to), the rows being what is judged. None for a node with one partner,
    which is not told from their link, for one whose partners have no link of their own, and for
    one that is not slower.

    The difference of two medians varies by what links do over the root of how many there are, and
    by what nodes do: of many nodes the first is next to nothing, of three the second is unknown.
    Of three nodes it is that of one link at most: the lower of two lies below their median."""
    import numpy as np

    others = _others(whole, node)
    own, rest = _known(whole[node]), _known(_once(others) if way is Way.EITHER else others)
    if len(own) < 2 or not len(rest):
        return None
    centre = float(np.median(rest))
    above = float(median_low(own)) - centre
    if above <= math.log(1 + LEAST):
        return None
    off = np.concatenate([np.abs(rest - centre), np.abs(own - np.median(own))])
    few = min(MEDIAN * math.sqrt(1 / len(own) + 1 / len(rest)), 1.0)
    spread = few * deviation(off, 2)
    lows = _known(_lows(others))
    if len(lows) > 2:
        spread = max(spread, NORMAL * float(np.median(np.abs(lows - np.median(lows)))))
    return Excess(node, way, above, least_above(spread, noise))


def deviation(off: Floats, centres: int) -> float:
    """The standard deviation of values from how far each lies off its centre, of which there are
    so many. None counts for more than CLIP deviations by the median: a third of the values may lie
    anywhere, and where all are of one kind it is as good as the usual one, while the median of six
    distances is too small by half every now and then."""
    import numpy as np

    most = CLIP * NORMAL * float(np.median(off))
    squares = float((np.minimum(off, most) ** 2).sum())
    return math.sqrt(squares / (len(off) - centres))


def least_above(spread: float, noise: float) -> float:
    """How far above the others something has to lie to be named, as a logarithm."""
    return max(DEVIATIONS * max(spread, noise), math.log(1 + LEAST))


def _chance(one: Excess, ways: dict[Way, Floats]) -> float:
    """Of standing out in as many launches as this node did, were it like the others."""
    import numpy as np

    own = above = others = others_above = 0
    for way, links in ways.items():
        for launch in links:
            rest = _others(launch, one.node)
            known = _known(rest)
            if not len(known):
                continue
            centre = np.median(known)
            lows = _lows(rest) - centre
            others += int(np.count_nonzero(~np.isnan(lows)))
            others_above += int(np.count_nonzero(lows > one.limit))
            mine = _known(launch[one.node])
            if way is one.way and len(mine) > 1:
                own += 1
                above += bool(median_low(mine) - centre > one.limit)
    return tail(own, above, (others_above + 1) / (others + 1))


def _others(links: Floats, node: int) -> Floats:
    """Without a node's row and column."""
    import numpy as np

    found: Floats = np.delete(np.delete(links, node, axis=0), node, axis=1)
    return found


def _once(links: Floats) -> Floats:
    """The values of which (from, to) and (to, from) are one."""
    import numpy as np

    return links[np.triu_indices(len(links), 1)]


def _known(links: Floats) -> Floats:
    import numpy as np

    return links[~np.isnan(links)]


def _lows(links: Floats) -> Floats:
    """The low median of each row: where half of a good node's links are a slow one's, the rest
    speak for it. NaN for a row without a value."""
    import numpy as np

    ordered = np.sort(links, axis=1)  # NaN last
    counts = np.count_nonzero(~np.isnan(links), axis=1)
    lows: Floats = ordered[np.arange(len(links)), (counts - 1) // 2]  # the last of none
    return lows


def tail(times: int, least: int, chance: float) -> float:
    """The binomial distribution's chance of `least` or more in `times`."""
    p = min(chance, 1.0)
    return sum(math.comb(times, k) * p**k * (1 - p) ** (times - k) for k in range(least, times + 1))
