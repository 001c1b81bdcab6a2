"""Fit laws of growth to launches at several numbers of ranks.

Three laws are tried: a constant, a + b log2 p and a + b p^c. Residuals are relative to the median
at their number of ranks, because times of many ranks scatter more in proportion. The law is chosen
by AICc over all launches (Hurvich and Tsai, Biometrika 76, 1989): the simplest of those within 2 of
the least (Burnham and Anderson, Model Selection and Multimodel Inference, 2.6). A law that is zero
or less up to LAW_REACH times the ranks is not taken, because these are costs.

For a given c both laws are linear in a and b, so the least squares are exact and only c is searched
on a grid: no start value, no local minimum, and no scipy, which takes a second to import.

Intervals come from resampled campaigns. Launches are drawn at each number of ranks, with their
distances from the mean stretched by sqrt(n / (n - 1)), because those of few launches are too small
(Davison and Hinkley, Bootstrap Methods and their Application, 2.3). Each mean is also moved by as
much as the means are further from the law than their launches explain: no machine follows a law
exactly, and more launches do not change that. The law is chosen again each time, because most of
the uncertainty is in the choice.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from mpigraft.core.arrays import Floats, np

LAW_REACH = 4  # times the most measured ranks: the limit of a prediction
RESAMPLES = 400
WITHIN = 2.0  # of the least AICc
FLOOR = 1e-4  # relative: the precision of printed values
CONSTANT, LOGARITHM, POWER = "constant", "logarithm", "power"
LAWS = {CONSTANT: "a", LOGARITHM: "a + b log2 p", POWER: "a + b p^c"}
PARAMETERS = {CONSTANT: 2, LOGARITHM: 3, POWER: 4}  # with the variance

Launches = Sequence[tuple[int, Sequence[float]]]  # ranks, and the value of each launch with them


@dataclass(frozen=True, slots=True)
class Law:
    """y = a + b f(p), where p is the number of ranks and f is log2 p, p^c or 0."""

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


def choose(launches: Launches) -> tuple[Law, str]:
    """Choose the law of the launches, whose values are above 0, and say why."""
    data = _Data.of(launches)
    laws, scores = data.fit(data.means[None], data.inner[None])
    best = float(min(scores[name][0] for name in LAWS))
    name = next(n for n in LAWS if scores[n][0] <= best + WITHIN)
    others = [
        f"{LAWS[other]} {scores[other][0] - scores[name][0]:+.1f}"
        for other in LAWS
        if other != name and np.isfinite(scores[other][0])
    ]
    why = f"AICc of the others: {', '.join(others)}" if others else "no other law can be compared"
    return laws[name][0], why


def resampled(launches: Launches, law: Law, seed: int) -> tuple[Law, ...]:
    """Choose the laws of RESAMPLES campaigns like this one, whose law is `law`."""
    data = _Data.of(launches)
    laws, scores = data.fit(*_resample(launches, data, law, seed))
    least = np.min([scores[name] for name in LAWS], axis=0)
    return tuple(
        next(laws[name][k] for name in LAWS if scores[name][k] <= least[k] + WITHIN)
        for k in range(RESAMPLES)
    )


def _resample(launches: Launches, data: _Data, law: Law, seed: int) -> tuple[Floats, Floats]:
    """Draw campaigns: their means and the sums of squares around them, as in _Data, each
    (RESAMPLES, numbers of ranks)."""
    rng = np.random.default_rng(seed)
    pairs = zip(launches, data.scale, strict=True)
    distances = [_distances(np.asarray(values) / scale) for (_, values), scale in pairs]
    every = np.concatenate([x for x in distances if len(x) > 1] or [np.zeros(1)])
    means, inner = np.empty((2, RESAMPLES, len(launches)))
    moved = rng.normal(0, data.misfit(law, every), (RESAMPLES, len(launches)))
    for n, own in enumerate(distances):
        # a single launch has no distance of its own, so it takes those of all others
        drawn = rng.choice(own if len(own) > 1 else every, (RESAMPLES, len(own)))
        centre = drawn.mean(axis=1)
        means[:, n] = data.means[n] + centre + moved[:, n]
        inner[:, n] = ((drawn - centre[:, None]) ** 2).sum(axis=1)
    return np.maximum(means, FLOOR), inner


def _distances(values: Floats) -> Floats:
    """Return distances from the mean, scaled to the variance of the values' distribution."""
    count = len(values)
    stretch = math.sqrt(count / (count - 1)) if count > 1 else 0.0
    distances: Floats = (values - values.mean()) * stretch
    return distances


@dataclass(frozen=True, slots=True)
class _Data:
    """Launches as sufficient statistics, each relative to the median at its number of ranks:
    arrays over numbers of ranks."""

    ranks: Floats
    counts: Floats
    scale: Floats  # these medians
    means: Floats
    inner: Floats  # sums of squares around the means

    @classmethod
    def of(cls, launches: Launches) -> _Data:
        scale = [float(np.median(values)) for _, values in launches]
        relative = [np.asarray(v) / s for (_, v), s in zip(launches, scale, strict=True)]
        return cls(
            np.array([float(ranks) for ranks, _ in launches]),
            np.array([float(len(values)) for _, values in launches]),
            np.array(scale),
            np.array([values.mean() for values in relative]),
            np.array([((values - values.mean()) ** 2).sum() for values in relative]),
        )

    def misfit(self, law: Law, every: Floats) -> float:
        """Measure how far the means are from `law`, relative, beyond what launches explain: the
        root of the mean square per degree of freedom less the means' own variance. `every` has all
        launches' distances, for numbers of ranks with a single launch."""
        expected = np.array([law.at(float(p)) for p in self.ranks]) / self.scale
        free = max(len(self.ranks) - PARAMETERS[law.name] + 1, 1)
        alone = self.counts < 2
        own = np.where(alone, (every**2).mean(), self.inner / np.maximum(self.counts - 1, 1))
        square = ((self.means - expected) ** 2).sum() / free - (own / self.counts).mean()
        return math.sqrt(max(float(square), 0.0))

    def fit(self, means: Floats, inner: Floats) -> tuple[dict[str, list[Law]], dict[str, Floats]]:
        """Fit the best law of each kind, with its AICc, to each row of `means` and `inner`
        (resamples, numbers of ranks)."""
        fine = np.linspace(-2, 3, 251)
        powers = fine[np.abs(fine) > 0.05]  # nearer to 0 it is the logarithm
        last = LAW_REACH * np.max(self.ranks)
        steps = {
            CONSTANT: (np.zeros((1, len(self.ranks))), np.zeros(1)),
            LOGARITHM: (np.log2(self.ranks)[None], np.log2(last)[None]),
            POWER: (self.ranks[None] ** powers[:, None], last**powers),
        }
        laws: dict[str, list[Law]] = {}
        scores: dict[str, Floats] = {}
        for name, (basis, ahead) in steps.items():
            a, b, squares = self._linear(basis, means)
            squares = np.where(a + b * ahead > 0, squares, np.inf)
            best = squares.argmin(axis=1)
            rows = np.arange(len(means))
            c = powers[best] if name == POWER else np.zeros(len(means))
            laws[name] = [
                Law(name, float(x), float(y), round(float(z), 2))
                for x, y, z in zip(a[rows, best], b[rows, best], c, strict=True)
            ]
            scores[name] = self._aicc(squares[rows, best] + inner.sum(axis=1), PARAMETERS[name])
        return laws, scores

    def _linear(self, basis: Floats, means: Floats) -> tuple[Floats, Floats, Floats]:
        """Solve the weighted least squares of y = a + b x for each row of `means` and of `basis`:
        a, b and the sum of squares, each (rows of means, rows of basis). For a row of zeros b is
        0."""
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
        residuals = dy[:, None, :] - b[:, :, None] * dx[None]
        return a, b, (residuals**2 @ weight)

    def _aicc(self, squares: Floats, parameters: int) -> Floats:
        """Compute n log(RSS / n) + 2k + 2k(k + 1) / (n - k - 1); infinite for too few launches."""
        n, k = float(self.counts.sum()), parameters
        if n - k - 1 <= 0:
            return np.full(len(squares), np.inf)
        fit: Floats = n * np.log(np.maximum(squares / n, FLOOR**2))
        return fit + 2 * k + 2 * k * (k + 1) / (n - k - 1)
