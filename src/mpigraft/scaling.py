"""Growth: what starting, memory and collectives cost against the number of ranks.

Layouts of one campaign that differ in their number of nodes alone, or of ranks per node alone,
make a series. Three laws are held against it: a constant, a + b log2 p and a + b p^c. Residuals
are relative to the median at their number of ranks, since times of many ranks scatter more in
the same proportion. The law is chosen by AICc over all launches (Hurvich and Tsai, Biometrika 76,
1989), the simplest of those within 2 of the least (Burnham and Anderson, Model Selection and
Multimodel Inference, 2.6). The interval comes from launches drawn anew at each number of ranks;
the law is chosen anew each time, as the choice is the greater part of the doubt.

For a given c both laws are linear in a and b, so that the least squares are exact and c is looked
for on a grid: no start value, no local minimum, and no scipy, which takes a second to import.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mpigraft.errors import UsageError
from mpigraft.layouts import parse
from mpigraft.model import METRICS, Layout, ValueRow
from mpigraft.natives import STARTUP

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

LEAST_POINTS = 4  # numbers of ranks under a law of three parameters
REACH = 4  # times the most ranks that were measured: what a prediction may be for
RESAMPLES = 400
WITHIN = 2.0  # of the least AICc
FLOOR = 1e-4  # relative: closer to a law than values are printed is no closer
COLLECTIVES = re.compile(r"native:(barrier|bcast|reduce|allreduce|gather|allgather|alltoall)v?\b")
CONSTANT, LOGARITHM, POWER = "constant", "logarithm", "power"
LAWS = {CONSTANT: "a", LOGARITHM: "a + b log2 p", POWER: "a + b p^c"}
COUNTED = {CONSTANT: 2, LOGARITHM: 3, POWER: 4}  # parameters, with the variance


@dataclass(frozen=True, slots=True)
class Point:
    """All launches of one layout. `value` is their median, in the metric's unit."""

    layout: str
    ranks: int
    value: float
    lowest: float
    highest: float
    launches: int


@dataclass(frozen=True, slots=True)
class Law:
    """y = a + b f(p), p being ranks; f is log2 p, p^c or nothing."""

    name: str  # a key of LAWS
    a: float
    b: float = 0.0
    c: float = 0.0

    def at(self, ranks: float) -> float:
        match self.name:
            case "logarithm":
                return self.a + self.b * math.log2(ranks)
            case "power":
                return self.a + self.b * math.pow(ranks, self.c)
        return self.a


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was not measured. `low` and `high` enclose 95 % of the resampled laws' values."""

    ranks: int
    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Growth:
    """One configuration's series of one metric. Without a law, `refused` says why."""

    configuration: str  # id
    benchmark: str
    metric: str
    unit: str
    size: int
    series: str  # for a person: "1 rank per node", "on 1 node"
    points: tuple[Point, ...]
    law: Law | None = None
    why: str = ""  # this law and none of the others
    predictions: tuple[Prediction, ...] = ()
    refused: str = ""
    left_out: tuple[tuple[str, str], ...] = ()  # (layout, why its values count for nothing)


Launches = dict[Layout, list[float]]


def growth(
    values: Iterable[ValueRow],
    labels: Mapping[str, str],
    crowded: Mapping[tuple[str, str], str],
    seed: int = 0,
) -> tuple[Growth, ...]:
    """Every series of a campaign, fitted or with the reason why not.

    `labels` has ids by configuration key; `crowded` says of (configuration key, layout key) why
    its ranks did not have a core each, or that it is not known. One number of ranks is no series.
    """
    found: dict[tuple[str, str, str, int], Launches] = {}
    for row in _wanted(list(values)):
        layout = _layout(row.layout)
        if layout is None or row.metric not in METRICS:
            continue
        what = (row.configuration, row.benchmark, row.metric, row.size)
        found.setdefault(what, defaultdict(list))[layout].append(row.value)
    series = [
        _series(what, labels.get(what[0], what[0]), name, launches, crowded, seed)
        for what, every in found.items()
        for name, launches in _cut(every)
    ]
    return tuple(sorted(series, key=lambda g: (g.benchmark, g.size, g.series, g.configuration)))


def predicted(growth: Growth, ranks: int, boots: Sequence[Law] = ()) -> Prediction:
    """What the law says of `ranks`, with `boots`, the resampled laws, for the interval. Raises
    UsageError for more than REACH times what was measured, or where there is no law."""
    most = max((point.ranks for point in growth.points), default=0)
    if growth.law is None or not 1 <= ranks <= REACH * most:
        raise UsageError(
            f"{growth.benchmark} at {ranks} ranks cannot be predicted",
            why=growth.refused or f"{most} ranks were measured, and laws break further on",
            mend=f"measure with {math.ceil(ranks / REACH)} ranks or more",
        )
    said = sorted(law.at(ranks) for law in boots) or [growth.law.at(ranks)]
    low, high = said[int(0.025 * (len(said) - 1))], said[math.ceil(0.975 * (len(said) - 1))]
    value = growth.law.at(ranks)
    return Prediction(ranks, value, min(low, value), max(high, value))


# ------------------------------------------------------------------ series


def _wanted(values: Sequence[ValueRow]) -> list[ValueRow]:
    """Start-up costs, and of each collective its smallest and its largest message."""
    ends: dict[str, tuple[int, int]] = {}
    for row in values:
        low, high = ends.get(row.benchmark, (row.size, row.size))
        ends[row.benchmark] = (min(low, row.size), max(high, row.size))
    costs = {f"native:{name}" for name in STARTUP}
    return [
        row
        for row in values
        if row.benchmark in costs
        or (COLLECTIVES.match(row.benchmark) and row.size in ends[row.benchmark])
    ]


def _layout(key: str) -> Layout | None:
    """None for a name that an import made up."""
    try:
        return parse(key, 1 << 30)
    except UsageError:
        return None


def _cut(every: Launches) -> list[tuple[str, Launches]]:
    """Series of layouts that differ in one thing: the longest first, none within another."""
    together: dict[tuple[str, Layout], Launches] = defaultdict(dict)
    for layout, launches in every.items():
        together["nodes", replace(layout, nodes=1)][layout] = launches
        together["ranks", replace(layout, ranks_per_node=1)][layout] = launches
    found: list[tuple[str, Launches]] = []
    for (grows, layout), part in sorted(together.items(), key=lambda item: -len(item[1])):
        if len(part) > 1 and not any(part.keys() <= other.keys() for _, other in found):
            each, nodes = layout.ranks_per_node, layout.nodes
            by_node = f"{each} {'rank' if each == 1 else 'ranks'} per node"
            on = f"on {nodes} {'node' if nodes == 1 else 'nodes'}"
            found.append((by_node if grows == "nodes" else on, part))
    return found


def _series(
    what: tuple[str, str, str, int],
    label: str,
    name: str,
    every: Launches,
    crowded: Mapping[tuple[str, str], str],
    seed: int,
) -> Growth:
    key, benchmark, metric, size = what
    ordered = sorted(every.items(), key=lambda item: item[0].ranks)
    out = tuple((x.key, crowded[key, x.key]) for x, _ in ordered if (key, x.key) in crowded)
    good = [(x.ranks, values) for x, values in ordered if (key, x.key) not in crowded]
    points = tuple(_point(x, values) for x, values in ordered if (key, x.key) not in crowded)
    unit = METRICS[metric].unit
    plain = Growth(label, benchmark, metric, unit, size, name, points, left_out=out)
    if len(points) < LEAST_POINTS:
        told = "; ".join(f"{reason}: {', '.join(who)}" for reason, who in _by_reason(out))
        reason = f"a law takes {LEAST_POINTS} numbers of ranks, and there are {len(points)}"
        return replace(plain, refused=reason + (f" ({told})" if told else ""))
    law, why = choose(good)
    fitted = replace(plain, law=law, why=why)
    boots = resampled(good, seed)
    most = points[-1].ranks
    told_for = [2 * most, REACH * most]
    return replace(fitted, predictions=tuple(predicted(fitted, p, boots) for p in told_for))


def _by_reason(out: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    found: dict[str, list[str]] = {}
    for layout, reason in out:
        found.setdefault(reason, []).append(layout)
    return list(found.items())


def _point(layout: Layout, values: Sequence[float]) -> Point:
    import numpy as np

    middle = float(np.median(values))
    return Point(layout.key, layout.ranks, middle, min(values), max(values), len(values))


# ------------------------------------------------------------------ laws


def choose(launches: Sequence[tuple[int, Sequence[float]]]) -> tuple[Law, str]:
    """The law of (ranks, values) and why it is this one."""
    import numpy as np

    data = _Data.of(launches)
    laws, scores = data.fit(data.means[None], data.inner[None])
    best = float(min(scores[name][0] for name in LAWS))
    name = next(n for n in LAWS if scores[n][0] <= best + WITHIN)
    rest = [
        f"{LAWS[other]} {scores[other][0] - scores[name][0]:+.1f}"
        for other in LAWS
        if other != name and np.isfinite(scores[other][0])
    ]
    why = f"AICc against it: {', '.join(rest)}" if rest else "no other law can be told from it"
    return laws[name][0], why


def resampled(launches: Sequence[tuple[int, Sequence[float]]], seed: int) -> tuple[Law, ...]:
    """The laws of RESAMPLES campaigns, made of these launches drawn with replacement at each
    number of ranks. One launch everywhere has none: nothing is known of how it varies."""
    import numpy as np

    if all(len(values) < 2 for _, values in launches):
        return ()
    data, rng = _Data.of(launches), np.random.default_rng(seed)
    means, inner = np.empty((2, RESAMPLES, len(launches)))
    for place, (_, values) in enumerate(launches):
        relative = np.asarray(values) / data.scale[place]
        drawn = rng.choice(relative, (RESAMPLES, len(values)))
        means[:, place] = drawn.mean(axis=1)
        inner[:, place] = ((drawn - means[:, place, None]) ** 2).sum(axis=1)
    laws, scores = data.fit(means, inner)
    least = np.min([scores[name] for name in LAWS], axis=0)
    return tuple(
        next(laws[name][k] for name in LAWS if scores[name][k] <= least[k] + WITHIN)
        for k in range(RESAMPLES)
    )


@dataclass(frozen=True, slots=True)
class _Data:
    """Launches as sufficient statistics, each relative to the median at its number of ranks:
    arrays over numbers of ranks."""

    ranks: Floats
    counts: Floats
    scale: Floats  # those medians
    means: Floats
    inner: Floats  # sums of squares around the means

    @classmethod
    def of(cls, launches: Sequence[tuple[int, Sequence[float]]]) -> _Data:
        import numpy as np

        scale = [float(np.median(values)) for _, values in launches]
        relative = [np.asarray(v) / s for (_, v), s in zip(launches, scale, strict=True)]
        return cls(
            np.array([float(ranks) for ranks, _ in launches]),
            np.array([float(len(values)) for _, values in launches]),
            np.array(scale),
            np.array([values.mean() for values in relative]),
            np.array([((values - values.mean()) ** 2).sum() for values in relative]),
        )

    def fit(
        self, means: Floats, inner: Floats
    ) -> tuple[dict[str, list[Law]], dict[str, NDArray[np.float64]]]:
        """The best law of each kind and its AICc, for each row of `means` and `inner`
        (resamples, numbers of ranks)."""
        import numpy as np

        fine = np.linspace(-2, 3, 251)
        powers = fine[np.abs(fine) > 0.05]  # nearer to 0 it is the logarithm
        steps = {
            CONSTANT: np.zeros((1, len(self.ranks))),
            LOGARITHM: np.log2(self.ranks)[None],
            POWER: self.ranks[None] ** powers[:, None],
        }
        laws: dict[str, list[Law]] = {}
        scores: dict[str, Floats] = {}
        for name, basis in steps.items():
            a, b, squares = self._linear(basis, means)
            best = squares.argmin(axis=1)
            rows = np.arange(len(means))
            c = powers[best] if name == POWER else np.zeros(len(means))
            laws[name] = [
                Law(name, float(x), float(y), round(float(z), 2))
                for x, y, z in zip(a[rows, best], b[rows, best], c, strict=True)
            ]
            scores[name] = self._aicc(squares[rows, best] + inner.sum(axis=1), COUNTED[name])
        return laws, scores

    def _linear(self, basis: Floats, means: Floats) -> tuple[Floats, Floats, Floats]:
        """Weighted least squares of y = a + b x for each row of `means` and of `basis`: a, b and
        the sum of squares, each (rows of means, rows of basis). A row of zeros is a alone."""
        import numpy as np

        weight = self.counts / self.scale**2
        y = means * self.scale
        total = weight.sum()
        x_mean = basis @ weight / total
        y_mean = y @ weight / total
        dx = basis - x_mean[:, None]
        dy = y - y_mean[:, None]
        spread = dx**2 @ weight
        b = (dy * weight) @ dx.T / np.where(spread > 0, spread, np.inf)
        a = y_mean[:, None] - b * x_mean
        left = dy[:, None, :] - b[:, :, None] * dx[None]
        return a, b, (left**2 @ weight)

    def _aicc(self, squares: Floats, parameters: int) -> Floats:
        """n log(RSS / n) + 2k + 2k(k + 1) / (n - k - 1); infinite where launches are too few."""
        import numpy as np

        n, k = float(self.counts.sum()), parameters
        if n - k - 1 <= 0:
            return np.full(len(squares), np.inf)
        fit: Floats = n * np.log(np.maximum(squares / n, FLOOR**2))
        return fit + 2 * k + 2 * k * (k + 1) / (n - k - 1)
